package commands

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// hardNames have all that keys, files and YAML could stumble over.
func hardNames() []string {
	names := []string{
		"a:b", "a", "b:data:c", "a/b", `a\`, `a\:b`, "a #2", "a may use b", "Our # 1", "yes", "null",
		"~", "1e3", "0x1F",
		"2026-01-31", `it's "quoted"`, "- item", "{from: env:X}", "key: value", "研发 部门", "CRM", "crm-", "..", "*",
		"&x", strings.Repeat("研", 128), strings.Repeat("n", 128), "a  b", "%zz", "<script>", "ﬁ", "🙂",
	}
	random := rand.New(rand.NewPCG(1, 2)) // the same names each time
	const pieces = `:/\ #"'-{}[],&*!|>%@` + "`" + "abz019研é"
	for range 20 {
		var name strings.Builder
		for range 1 + random.IntN(20) {
			runes := []rune(pieces)
			name.WriteRune(runes[random.IntN(len(runes))])
		}
		names = append(names, "x"+name.String()+"x")
	}
	return names
}

// TestHardNames makes records of each kind with hard names, and exports them: the files say what is there.
func TestHardNames(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("acme")
	type object = map[string]any
	var documents []object
	nodes := []object{}
	for i, name := range hardNames() {
		code := strings.ReplaceAll(name, " ", "_")  // of nodes
		of := "c" + strings.Map(func(r rune) rune { // of resources and sets
			if r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("._-:/", r) {
				return r
			}
			return '_'
		}, name)
		reads := []object{{"code": "read"}}
		documents = append(documents,
			object{"kind": "Application", "name": name, "sources": []string{"github/" + name}},
			object{"kind": "Connection", "provider_code": "github", "display_name": name,
				"config_fields": object{"ClientId": "a", "ClientSecret": object{"from": "env:GITHUB"}}},
			object{"kind": "Resource", "application": name, "type": "data", "code": of, "actions": reads},
			object{"kind": "ResourceSet", "application": name, "code": of,
				"members": []object{{"type": "data", "code": of, "actions": []string{"read"}}}},
			object{"kind": "Rule", "application": name, "type": "data", "code": of, "actions": []string{"read"},
				"identity": object{"type": "node", "name": "company/" + code}},
			object{"kind": "Rule", "application": name, "type": "res_set", "code": of, "actions": []string{"read"},
				"identity": object{"type": "application", "name": name}},
			object{"kind": "Subscription", "name": name, "event_types": []string{"user.*"},
				"delivery": object{"type": "webhook", "url": fmt.Sprintf("https://hr.acme.test/%d", i)}})
		nodes = append(nodes, object{"code": code, "name": name})
	}
	documents = append(documents, object{"kind": "Tree", "code": "company", "name": "Acme", "nodes": nodes})
	var text strings.Builder
	encoder := yaml.NewEncoder(&text)
	for _, document := range documents {
		require.NoError(t, encoder.Encode(document))
	}
	require.NoError(t, encoder.Close())
	file, folder := p.file(text.String()), t.TempDir()
	got := p.run("apply", "-f", file, "--yes")
	require.Equal(t, 0, got.code, got.err+got.out)
	got = p.run("diff", "-f", file)
	require.Equal(t, 0, got.code, got.err+got.out)
	got = p.run("export", "-f", folder)
	require.Equal(t, 0, got.code, got.err)
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		require.LessOrEqual(t, len(entry.Name()), 255, path)
		return err
	}))
	got = p.run("diff", "-f", folder)
	require.Equal(t, 0, got.code, got.err+got.out)
	p.inTenant("empty")
	for line := range strings.Lines(exportedSecrets(t, folder)) {
		p.env[strings.TrimSpace(line)] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	}
	got = p.run("apply", "-f", folder, "--yes")
	require.Equal(t, 0, got.code, got.err+got.out)
	got = p.run("diff", "-f", folder)
	require.Equal(t, 0, got.code, got.err+got.out)
}

// exportedSecrets are the variables that exported files name, a line each.
func exportedSecrets(t *testing.T, folder string) string {
	t.Helper()
	var out strings.Builder
	for _, text := range contents(t, folder) {
		for line := range strings.Lines(text) {
			if _, name, found := strings.Cut(line, "from: env:"); found {
				out.WriteString(name)
			}
		}
	}
	return out.String()
}

// TestNamesInCase: the platform compares names of applications without case. Two that differ in case alone are refused,
// and another case is a change of the name, in a set, too.
func TestNamesInCase(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("case")
	both := p.file("{kind: Application, name: crm}\n---\n{kind: Application, name: CRM}\n---\n" +
		"{kind: Application, name: hr}")
	for _, command := range []string{"diff", "apply"} {
		got := p.run(command, "-f", both, "--yes")
		assert.Equal(t, 2, got.code, got.out)
		assert.Contains(t, got.err, both+":3: Application CRM is also in "+both+":1, as crm")
	}
	assert.Equal(t, "[]\n", p.done("api", "list-applications", "--jq", "[.items[].name]").out)

	id := func() string { return p.done("api", "list-applications", "--jq", ".items[] | .name, .id").out }
	text := smallSet + "---\n{kind: Rule, application: crm, type: app, actions: ['*'], " +
		"identity: {type: application, name: crm}}\n" +
		"---\n{kind: ResourceSet, application: crm, code: all, members: [{type: data, code: offer, actions: [read]}]}\n"
	p.done("apply", "-f", p.file(text), "--set", "crm", "--yes")
	before := id()
	file := p.file(strings.ReplaceAll(strings.ReplaceAll(text, ": crm", ": CRM"), "li.wei", "Li.Wei"))
	got := p.run("apply", "-f", file, "--set", "crm", "--prune", "--yes")
	require.Equal(t, 0, got.code, got.err+got.out)
	assert.Contains(t, got.out, "~ Application CRM  "+file+":1\n    name: crm → CRM\n")
	assert.Contains(t, got.out, "\n0 to create, 1 to change, 0 to delete; ")
	assert.Equal(t, strings.Replace(before, "crm", "CRM", 1), id())

	less := p.file("{kind: Tree, code: company, name: Acme}")
	got = p.run("apply", "-f", less, "--set", "crm", "--prune", "--yes", "--max-deletes", "100")
	require.Equal(t, 0, got.code, got.err+got.out)
	assert.Empty(t, id(), "what was made under the former name is still the set's")
}
