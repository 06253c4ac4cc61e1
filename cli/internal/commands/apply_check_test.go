package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestFilesTellFirst: what the files alone tell is told before the first write, with its line.
func TestFilesTellFirst(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("first")
	const app = "{kind: Application, name: crm}\n---\n{kind: Resource, application: crm, type: data, code: a, " +
		"actions: [{code: read}]}\n---\n"
	for _, c := range []struct{ text, want string }{
		{app + "kind: Rule\napplication: crm\ntype: data\ncode: a\nidentity: {type: everyone}\nactions: [read, fly]",
			":10: Resource crm:data:a, in "},
		{app + "kind: ResourceSet\napplication: crm\ncode: all\nmembers:\n- type: data\n  code: a\n  actions: [fly]",
			`:11: Resource crm:data:a, in `},
		{"kind: Application\nname: crm\nprotocols:\n- type: saml\n  status: 1\n  protocol_prop:\n" +
			"    acs_url: https://a.test/acs",
			":7: saml cannot be enabled without protocol_prop.sp_entity"},
		{"kind: Application\nname: crm\nprotocols:\n- type: cas\n  status: 1",
			":4: cas cannot be enabled without redirect_url of Application crm"},
		{"kind: Tree\ncode: t\nname: T\nnodes:\n- {code: a, name: A, is_pointer: 1, pointer: t/b}\n" +
			"- {code: b, name: B, is_pointer: 1, pointer: t/a}", ":5: t/a → t/b → t/a: pointers lead in a circle"},
	} {
		for _, command := range []string{"diff", "apply"} {
			got := p.run(command, "-f", p.file(c.text), "--yes")
			assert.Equal(t, 2, got.code, c.text+got.err+got.out)
			assert.Contains(t, got.err, c.want)
		}
	}
	assert.Empty(t, p.done("api", "list-applications", "--jq", ".items[].name").out)

	// What runs counts, too: only what a file has is changed.
	p.done("apply", "-f", p.file("{kind: Application, name: crm, redirect_url: 'https://crm.test/cb'}"), "--yes")
	got := p.run("apply", "-f", p.file("{kind: Application, name: crm, protocols: [{type: cas, status: 1}]}"), "--yes")
	assert.Equal(t, 0, got.code, got.err+got.out)

	// A stop names the document that the platform means, and says that it must be mended.
	file := p.file("{kind: Application, name: hr, protocols: [{type: saml, protocol_prop: {acs_url: nowhere}}]}")
	got = p.run("apply", "-f", file, "--yes")
	assert.Equal(t, 9, got.code, got.out)
	assert.Contains(t, got.err, "stopped: "+file+":1: Protocol hr/saml: ")
	assert.Contains(t, got.err, file+":1: protocol_prop.acs_url: ")
	assert.Contains(t, got.err, "  1 of 2 steps are done; once that is mended, the same command goes on\n")
}

// aheadBase is there before TestTryAhead tries more.
const aheadBase = `kind: Application
name: hr
---
{kind: Resource, application: hr, type: data, code: a, actions: [{code: read}]}
---
{kind: Rule, application: hr, type: data, code: a, actions: [read], identity: {type: everyone}}
---
{kind: Tree, code: company, name: Acme, nodes: [{code: rd, name: RD}]}
`

// TestTryAhead: what a step says itself is tried before the first write, also while the records that it refers to are
// not there yet.
func TestTryAhead(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("ahead")
	p.done("apply", "-f", p.file(aheadBase), "--yes")
	c := p.counted(t)
	const app = "{kind: Application, name: crm}\n---\n" +
		"{kind: Resource, application: crm, type: data, code: a, actions: [{code: read}]}\n"
	rule := func(identity, condition string) string {
		return "---\nkind: Rule\napplication: crm\ntype: data\ncode: a\nactions: [read]\nidentity: {type: " + identity +
			"}\ncondition: " + condition + "\n"
	}
	everyone, place := "everyone", "node, name: company/rd"
	const at = ": condition: line 1, column "
	for _, row := range []struct {
		name, text string
		want       []string
	}{
		{"a rule", app + rule(everyone, "1 +"), []string{":11" + at}},
		{"two of the rules of an identity", app + rule(everyone, "1 +") + rule(everyone, "1 == 1") +
			rule(everyone, "missing.a"), []string{":11" + at, ":27" + at}},
		{"a rule of two identities", app + rule(everyone, "1 +") + rule(place, "1 +"),
			[]string{":11" + at, ":19" + at}},
		{"a rule for a new node", "{kind: Tree, code: t, name: T, nodes: [{code: n, name: N}]}\n" + strings.ReplaceAll(
			rule("node, name: t/n", "1 +"), "crm", "hr"), []string{":9" + at}},
		{"a rule of a new set", app + "---\n{kind: ResourceSet, application: crm, code: s}\n" +
			strings.Replace(rule(everyone, "1 +"), "data\ncode: a", "res_set\ncode: s", 1), []string{":13" + at}},
		{"a rule with a new action", "kind: Resource\napplication: hr\ntype: data\ncode: a\nactions: [{code: new}]\n" +
			"---\nkind: Rule\napplication: hr\ntype: data\ncode: a\nactions: [new]\nidentity: {type: everyone}\n" +
			"condition: 1 +\n", []string{":13" + at}},
		{"the time of a rule", app + rule(everyone, "''") + "valid_from: 2027-01-01\nvalid_to: 2026-01-01",
			[]string{":13: valid_to: must be later than valid_from"}},
		{"a node of a new tree", "{kind: Tree, code: t, name: T, nodes: [{code: n, name: N, nodes: [\n" +
			"{code: m, name: M, is_dynamic: 1, condition: 1 +}]}]}", []string{":2" + at}},
		{"a node that moves below a new one", "kind: Tree\ncode: company\nname: Acme\nnodes:\n- code: new\n" +
			"  name: New\n  nodes:\n  - code: rd\n    name: RD\n    is_dynamic: 1\n    condition: 1 +\n",
			[]string{":11" + at}},
		{"a new pointer to a new node", "kind: Tree\ncode: company\nname: Acme\nnodes:\n" +
			"- {code: new, name: New}\n- code: p\n  name: P\n  is_pointer: 1\n  pointer: company/new\n" +
			"  seq: 9007199254740992",
			[]string{":10: seq: "}},
		{"the URI of a resource", app + "---\n{kind: Resource, application: crm, type: api, code: b, uri: a//b}",
			[]string{":5: uri: must be a path"}},
		{"the code of a set", app + "---\n{kind: ResourceSet, application: crm, code: a b}", []string{":5: code: "}},
	} {
		file := p.file(row.text)
		c.take()
		for _, command := range []string{"diff", "apply"} {
			got := p.run(command, "-f", file, "--yes")
			assert.Equal(t, 5, got.code, row.name+got.err+got.out)
			for _, want := range row.want {
				assert.Contains(t, got.out, "    ! "+file+want, row.name)
			}
		}
		assert.Zero(t, c.take().writes, row.name)
	}

	// What is well waits for nothing but its records.
	well := app + rule(everyone, "1 == 1") + rule(place, "1 == 1") + "---\nkind: Tree\ncode: company\nname: Acme\n" +
		"nodes:\n- code: new\n  name: New\n  nodes:\n" +
		"  - {code: rd, name: RD, is_dynamic: 1, condition: user.a == 1}\n" +
		"- {code: p, name: P, is_pointer: 1, pointer: company/new}\n"
	got := p.run("diff", "-f", p.file(well))
	assert.Equal(t, 10, got.code, got.err+got.out)
	assert.Contains(t, got.out, "not tried: Application crm is not there yet")
	got = p.run("apply", "-f", p.file(well), "--yes")
	assert.Equal(t, 0, got.code, got.err+got.out)
}
