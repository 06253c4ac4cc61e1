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
const maxUnread = 11

// TestReaders: what an administrator can set has an effect, which a test shows. The file readers.txt has every schema
// that request bodies of a service refer to, with each member that can be set, and nothing else.
func TestReaders(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("readers.txt")
	require.NoError(t, err)
	listed := map[string]*readers{}
	unread := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		require.GreaterOrEqual(t, len(fields), 3, line)
		service := listed[fields[0]]
		if service == nil {
			service = &readers{members: map[string]bool{}, arguments: map[string]bool{}, like: map[string]string{}}
			listed[fields[0]] = service
		}
		what, reader := fields[1], fields[2]
		again := service.members[what] || service.arguments[what] || service.like[what] != ""
		require.False(t, again, "%s is there twice", line)
		switch {
		case reader == "argument":
			service.arguments[what] = true
			continue
		case reader == "like":
			require.Len(t, fields, 4, line)
			service.like[what] = fields[3]
			continue
		case reader == "none":
			require.Greater(t, len(fields), 3, "%s must say what will give it a reader", line)
			unread++
		case reader == "shown":
			require.Len(t, fields, 3, line)
		default:
			require.Len(t, fields, 4, line)
			require.True(t, hasTest(t, reader, fields[3]), "there is no test %s in %s", fields[3], reader)
		}
		service.members[what] = true
	}
	require.LessOrEqual(t, unread, maxUnread, "more members have no effect than before")
	documents, err := filepath.Glob("../../services/*/api/openapi.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, documents)
	for _, document := range documents {
		service := filepath.Base(filepath.Dir(filepath.Dir(document)))
		require.Contains(t, listed, service)
		listed[service].compare(t, service, requestsOf(t, document))
		delete(listed, service)
	}
	require.Empty(t, listed, "there are no such services")
}

// readers is what readers.txt says of a service.
type readers struct {
	members   map[string]bool   // Schema.member
	arguments map[string]bool   // schemas of which nothing is stored
	like      map[string]string // a schema → another one, whose members have the same readers
}

// compare compares the lists with the document of the service.
func (r *readers) compare(t *testing.T, service string, requests *requests) {
	t.Helper()
	want, excused := map[string]bool{}, map[string]bool{}
	for name := range requests.found {
		switch other, is := r.like[name]; {
		case r.arguments[name]:
			excused[name] = true
		case is:
			excused[name] = true
			require.Contains(t, requests.found, other, "%s %s", service, name)
			require.NotContains(t, r.like, other, "%s %s", service, name)
			theirs := requests.whole(other)
			for _, member := range requests.own(name) {
				if !slices.ContainsFunc(theirs, func(m string) bool {
					return m == member || strings.HasPrefix(m, member+".")
				}) {
					want[name+"."+member] = true
				}
			}
		default:
			for _, member := range requests.own(name) {
				want[name+"."+member] = true
			}
		}
	}
	require.Empty(t, without(want, r.members), "members of %s that have no line", service)
	require.Empty(t, without(r.members, want), "lines of %s without a member", service)
	require.Empty(t, without(r.arguments, excused), "lines of %s without a schema", service)
	require.Empty(t, without(r.like, excused), "lines of %s without a schema", service)
}

// without are the keys of one map that another one lacks.
func without[A, B any](m map[string]A, other map[string]B) (keys []string) {
	for key := range m {
		if _, has := other[key]; !has {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
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
	Ref        string             `yaml:"$ref"`
	ReadOnly   bool               `yaml:"readOnly"`
	Properties map[string]*schema `yaml:"properties"`
	Items      *schema            `yaml:"items"`
	Values     yaml.Node          `yaml:"additionalProperties"` // a schema, or a boolean
}

// inner is the schema of the values in a list or a map, otherwise the schema itself.
func (s *schema) inner(t *testing.T) *schema {
	t.Helper()
	switch {
	case s.Items != nil:
		return s.Items.inner(t)
	case s.Values.Kind == yaml.MappingNode:
		var values schema
		require.NoError(t, s.Values.Decode(&values))
		return values.inner(t)
	}
	return s
}

// requests are the schemas of a document.
type requests struct {
	t       *testing.T
	schemas map[string]*schema
	found   map[string]bool // those that request bodies refer to
}

// requestsOf finds the schemas of a document that request bodies refer to.
func requestsOf(t *testing.T, document string) *requests {
	t.Helper()
	var all struct {
		Paths map[string]map[string]struct {
			OperationID string `yaml:"operationId"`
			RequestBody struct {
				Content map[string]struct {
					Schema schema `yaml:"schema"`
				} `yaml:"content"`
			} `yaml:"requestBody"`
		} `yaml:"paths"`
		Components struct {
			Schemas map[string]*schema `yaml:"schemas"`
		} `yaml:"components"`
	}
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &all))
	r := &requests{t: t, schemas: all.Components.Schemas, found: map[string]bool{}}
	for _, operations := range all.Paths {
		for _, operation := range operations {
			for _, content := range operation.RequestBody.Content {
				body := content.Schema.inner(t)
				if body.Ref == "" && len(body.Properties) > 0 { // it has the name of its operation
					r.schemas[operation.OperationID] = body
					r.find(operation.OperationID)
				}
				r.follow(body)
			}
		}
	}
	return r
}

// find adds a schema, and those that it refers to.
func (r *requests) find(name string) {
	if r.found[name] {
		return
	}
	r.found[name] = true
	r.follow(r.schemas[name])
}

func (r *requests) follow(s *schema) {
	s = s.inner(r.t)
	if r.hasMembers(s) {
		r.find(nameOf(s))
	}
	for _, member := range s.Properties {
		if !member.ReadOnly {
			r.follow(member)
		}
	}
}

// hasMembers reports whether a schema refers to one with members.
func (r *requests) hasMembers(s *schema) bool {
	return s.Ref != "" && len(r.schemas[nameOf(s)].Properties) > 0
}

func nameOf(s *schema) string { return s.Ref[strings.LastIndex(s.Ref, "/")+1:] }

// own are the members that can be set, without those that have a schema with a name: its members are listed. Members of
// an object without a name are called access_policy.forget_password.
func (r *requests) own(name string) []string { return r.members(r.schemas[name], "", nil) }

// whole are the members that can be set, with those of all schemas below.
func (r *requests) whole(name string) []string { return r.members(r.schemas[name], "", []string{name}) }

// members does this; above are the schemas on the way, nil: those with a name are left out.
func (r *requests) members(s *schema, prefix string, above []string) (members []string) {
	for name, member := range s.Properties {
		if member.ReadOnly {
			continue
		}
		inner := member.inner(r.t)
		switch {
		case r.hasMembers(inner):
			if next := nameOf(inner); above != nil && !slices.Contains(above, next) {
				members = append(members, r.members(r.schemas[next], prefix+name+".", append(above, next))...)
			}
		case len(inner.Properties) > 0:
			members = append(members, r.members(inner, prefix+name+".", above)...)
		default:
			members = append(members, prefix+name)
		}
	}
	return members
}
