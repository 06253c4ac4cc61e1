package plan

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parse reads the documents of one file.
func parse(file string, text []byte) ([]*Desired, error) {
	p := &parser{file: file}
	p.parse(text)
	return p.result()
}

// TestWrongFiles looks at the message of each mistake: it names the line, and what is possible there.
func TestWrongFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"- 1", "a.yaml:1: a document must have members, of which the first is kind"},
		{"name: crm", "a.yaml:1: kind is missing: one of Application, Connection, Resource,"},
		{"kind: Node", `a.yaml:1: there is no kind "Node": one of Application,`},
		{"kind: Application\nnmae: crm\nname: crm", `a.yaml:2: Application has no member "nmae"`},
		{"kind: Application\nname: a\nredirect: x", `:3: Application has no member "redirect"; near it: redirect_url`},
		{"kind: Application\nname: crm\nname: crm", "a.yaml:3: name stands here twice"},
		{"kind: Application", "a.yaml:1: Application needs name"},
		{"kind: Application\nname: crm\nscopes: users:read", "a.yaml:3: scopes must be an array"},
		{"kind: Application\nname: crm\ncategory: 9", "a.yaml:3: category must be one of 1, 2, 3, 4"},
		{"kind: Application\nname: [a]", "a.yaml:2: name must be a string"},
		{"kind: Application\nname: crm\nprotocols: saml", "a.yaml:3: protocols must be a list"},
		{"kind: Application\nname: crm\nprotocols: [saml]", "a.yaml:3: Protocol must have members"},
		{"kind: Application\nname: crm\nprotocols:\n- status: 1", "a.yaml:4: Protocol needs type"},
		{"kind: Application\nname: crm\nsources: [{a: b}]", "a.yaml:3: a source is the name of a connection"},
		{"kind: Application\nname: a\n---\nkind: Application\nname: a", "a.yaml:4: Application a is also in a.yaml:1"},
		{"kind: Tree\ncode: c\nname: C\nnodes:\n- name: x", "a.yaml:5: Node needs code"},
		{"kind: Application\nname: a\nfree_ext_props: {a: &x 1, b: *x}", "a.yaml:3: *x: aliases are not used here"},
		{"kind: Application\nname: a\nfree_ext_props: {a: .inf}", "a.yaml:3: this is no number of JSON"},
		{"kind: Rule\napplication: a\ntype: app", "a.yaml:1: Rule needs identity"},
		{"kind: Rule\napplication: a\ntype: app\nidentity: {type: dog}", ":1: identity.type must be one of user,"},
		{"kind: Rule\napplication: a\ntype: app\nidentity: {type: user}", "a.yaml:1: identity.name is missing"},
		{"kind: Rule\napplication: a\ntype: app\nidentity: {type: user, name: a, b: c}", `identity has no member "b"`},
		{"kind: a\nb: [", "a.yaml: it is not YAML: line 2: did not find expected node content"},
		{"kind: Application\nnmae: crm\n---\nkind: Hat", `a.yaml:4: there is no kind "Hat"`}, // all faults at once
	} {
		_, err := parse("a.yaml", []byte(c.text))
		require.Error(t, err, c.text)
		assert.Contains(t, err.Error(), c.want, c.text)
	}
}

// TestLiteralSecrets refuses secrets that stand in the files, and does not show them.
func TestLiteralSecrets(t *testing.T) {
	t.Parallel()
	const head = "kind: Subscription\nname: HR\nevent_types: [user.*]\ndelivery:\n  url: https://hr.test\n"
	for _, c := range []struct{ text, want string }{
		{head + "  secret: s3cret", "a.yaml:6: delivery.secret is a secret, which must not stand in a file: " +
			"{from: env:NAME}, {from: file:PATH} or {from: command:WORDS} says where it is"},
		{head + "  secret: {from: 's3cret'}", "a.yaml:6: delivery.secret is a secret"},
		{head + "  secret: {from: 'env:A', to: s3cret}", "a.yaml:6: delivery.secret is a secret"},
		{head + "  secret: [s3cret]", "a.yaml:6: delivery.secret is a secret"},
		{head + "  secret: 0x53c", "a.yaml:6: this is no number of JSON; a text wants quotes"},
		{head + "  headers:\n    X-Key: s3cret", "a.yaml:7: delivery.headers.X-Key is a secret"},
		{"kind: Application\nname: a\nprotocols:\n- type: saml\n  protocol_prop:\n    " +
			"saml_response_signing_key: s3cret", "a.yaml:6: protocol_prop.saml_response_signing_key is a secret"},
	} {
		_, err := parse("a.yaml", []byte(c.text))
		require.Error(t, err, c.text)
		assert.Contains(t, err.Error(), c.want, c.text)
		assert.NotContains(t, err.Error(), "s3cret", c.text)
		assert.NotContains(t, err.Error(), "0x53c", c.text)
	}
	for _, text := range []string{"  secret: {from: env:A}", "  headers: {X-Key: {from: 'file:a'}, X-Old: null}"} {
		_, err := parse("a.yaml", []byte(head+text))
		assert.NoError(t, err, text)
	}
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	desired, err := parse("a.yaml", []byte(`# texts need no quotes, and numbers keep their digits
kind: Application
name: crm
category: 4
free_ext_props: {big: 12345678901234567890, since: 2026-01-31}
protocols:
- {type: saml, status: 1}
sources: [github/Our GitHub]
---
kind: Tree
code: company
name: Acme
nodes:
- code: rd
  name: R&D
  nodes:
  - {code: platform, name: Platform, pointer: other/x}
---
kind: Rule
application: crm
type: data
code: a:b
identity: {type: node, name: company/rd}
actions: [read]
---
kind: Rule
application: crm
type: data
code: a:b
identity: {type: node, name: company/rd}
actions: [write]
`))
	require.NoError(t, err)
	var refs []string
	for _, w := range desired {
		refs = append(refs, w.String())
	}
	assert.Equal(t, []string{
		"Application crm", "Protocol crm/saml", "Source crm/github/Our GitHub", "Tree company", "Node company/rd",
		"Node company/platform", "Rule node company/rd may use crm:data:a:b",
		"Rule node company/rd may use crm:data:a:b #2",
	}, refs)
	assert.Equal(t, "4", desired[0].Values["category"])
	assert.Equal(t, map[string]any{"big": json.Number("12345678901234567890"), "since": "2026-01-31"},
		desired[0].Values["free_ext_props"])
	assert.Equal(t, map[string]any{"code": "platform", "name": "Platform", "pointer": "other/x", "tree": "company",
		"parent": "rd"}, desired[5].Values)
	assert.Equal(t, []Ref{{tree, "company"}, {node, "company/rd"}, {node, "other/x"}},
		needs(desired[5].Ref, desired[5].Values))
	assert.Equal(t, []Ref{{application, "crm"}, {node, "company/rd"}, {resource, "crm:data:a:b"}},
		needs(desired[6].Ref, desired[6].Values))
	assert.Equal(t, 8, desired[0].line("sources"))
}

func FuzzParse(f *testing.F) {
	f.Add("kind: Application\nname: crm\nprotocols: [{type: saml}]")
	f.Add("kind: Tree\ncode: c\nname: C\nnodes: [{code: x, name: X, nodes: []}]")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = parse("a.yaml", []byte(text)) })
}
