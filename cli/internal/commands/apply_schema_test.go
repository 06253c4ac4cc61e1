package commands

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestSchema holds the JSON Schema against examples of all kinds, as an editor does, and against mistakes.
func TestSchema(t *testing.T) {
	t.Parallel()
	p := newPlay(t, nil)
	got := p.run("apply", "--schema")
	require.Equal(t, 0, got.code, got.err)
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(got.out))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("apply.json", document))
	schema, err := compiler.Compile("apply.json")
	require.NoError(t, err)
	check := func(text string) error {
		var value any
		require.NoError(t, yaml.Unmarshal([]byte(text), &value), text)
		encoded, err := json.Marshal(value)
		require.NoError(t, err)
		read, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
		require.NoError(t, err)
		return schema.Validate(read)
	}
	for _, file := range []string{allKinds, smallSet, access, twoResources} {
		for text := range strings.SplitSeq(file, "---\n") {
			assert.NoError(t, check(text), text)
		}
	}
	for _, text := range []string{
		"{kind: Hat, name: a}", "{kind: Application, nmae: crm}", "{kind: Application}", "{name: crm}",
		"{kind: Application, name: crm, category: 9}", "{kind: Application, name: crm, protocols: saml}",
		"{kind: Application, name: crm, protocols: [{status: 1}]}", "{kind: Rule, application: a, type: app}",
		"{kind: Rule, application: a, type: app, identity: {type: dog}}",
		"{kind: Tree, code: c, name: C, nodes: [{name: x}]}",
	} {
		assert.Error(t, check(text), text)
	}
}
