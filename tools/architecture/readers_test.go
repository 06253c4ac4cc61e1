package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// maxUnread is how many members that can be set have no effect. It only gets smaller.
const maxUnread = 16

// TestReaders: what an administrator can set has an effect, which a test shows. The schemas of readers.txt have each
// member there, and nothing else.
func TestReaders(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("readers.txt")
	require.NoError(t, err)
	listed := map[string]map[string]bool{} // by service: Schema.member
	unread := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		require.GreaterOrEqual(t, len(fields), 3, line)
		service, member, reader := fields[0], fields[1], fields[2]
		if listed[service] == nil {
			listed[service] = map[string]bool{}
		}
		require.False(t, listed[service][member], "%s is there twice", line)
		listed[service][member] = true
		switch {
		case reader == "none":
			require.Greater(t, len(fields), 3, "%s must say what will give it a reader", line)
			unread++
		case reader != "shown":
			require.Len(t, fields, 4, line)
			require.True(t, hasTest(t, reader, fields[3]), "there is no test %s in %s", fields[3], reader)
		}
	}
	require.LessOrEqual(t, unread, maxUnread, "more members have no effect than before")
	for service, members := range listed {
		require.ElementsMatch(t, settable(t, service, members), keysOf(members), service)
	}
}

func keysOf(set map[string]bool) (keys []string) {
	for key := range set {
		keys = append(keys, key)
	}
	return keys
}

// hasTest reports whether a folder has a test of a name.
func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", folder, "*_test.go"))
	require.NoError(t, err)
	declared := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(name) + `\(`)
	return slices.ContainsFunc(files, func(file string) bool {
		source, err := os.ReadFile(file)
		return err == nil && declared.Match(source)
	})
}

// schema is what the test looks at of a schema in an OpenAPI document.
type schema struct {
	Ref        string            `yaml:"$ref"`
	ReadOnly   bool              `yaml:"readOnly"`
	Properties map[string]schema `yaml:"properties"`
}

// settable are the members of those schemas of a service of which any member is listed, without those that are read
// only or have a schema of their own.
func settable(t *testing.T, service string, listed map[string]bool) (members []string) {
	t.Helper()
	var document struct {
		Components struct {
			Schemas map[string]schema `yaml:"schemas"`
		} `yaml:"components"`
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "services", service, "api", "openapi.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &document))
	seen := map[string]bool{}
	for member := range listed {
		name, _, _ := strings.Cut(member, ".")
		if seen[name] {
			continue
		}
		seen[name] = true
		require.Contains(t, document.Components.Schemas, name)
		for property, of := range document.Components.Schemas[name].Properties {
			if !of.ReadOnly && of.Ref == "" {
				members = append(members, name+"."+property)
			}
		}
	}
	return members
}
