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
	rules := app
	for _, condition := range []string{"context.a == 1", "context.a =="} {
		rules += "---\nkind: Rule\napplication: crm\ntype: data\ncode: a\nidentity: {type: everyone}\n" +
			"actions: [read]\ncondition: " + condition + "\n"
	}
	file := p.file(strings.ReplaceAll(strings.Replace(rules, "---\n---", "---", 1), "crm", "hr"))
	got = p.run("apply", "-f", file, "--yes")
	assert.Equal(t, 9, got.code, got.out)
	assert.Contains(t, got.err, "stopped: "+file+":13: Rule everyone may use hr:data:a #2: ")
	assert.Contains(t, got.err, file+":19: condition: ")
	assert.Contains(t, got.err, "  2 of 4 steps are done; once that is mended, the same command goes on\n")
}
