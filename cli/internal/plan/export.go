package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/idplatform/idplatform/cli/internal/failure"
)

const masked = "******" // how the platform shows a secret

// Export makes files of what runs, by their names: those of an application in one, and one for each other record.
func (l *Actual) Export(wanted Scope) (map[string][]byte, error) {
	l.arrange()
	l.variables = variablesOf(l.order)
	files, names := map[string]*bytes.Buffer{}, map[string]string{}
	for _, k := range kinds {
		if k.parts || !wanted.has(k.name) {
			continue
		}
		for _, r := range l.sorted(k.name) {
			if k.name == connection && r.again {
				return nil, failure.Usagef("several connections are named %s: give them other display names first",
					plainKey(r.Key))
			}
			name := fileOf(r)
			if first := names[strings.ToLower(name)]; first != "" {
				name = first // file systems may not tell CRM.yaml from crm.yaml
			}
			names[strings.ToLower(name)] = name
			if files[name] == nil {
				files[name] = &bytes.Buffer{}
			} else {
				files[name].WriteString("---\n")
			}
			encoder := yaml.NewEncoder(files[name])
			encoder.SetIndent(2)
			if err := encoder.Encode(l.document(k, r)); err != nil {
				return nil, fmt.Errorf("%s: %w", r.Ref, err)
			}
			if err := encoder.Close(); err != nil {
				return nil, err
			}
		}
	}
	if l.variables.collision != nil {
		return nil, l.variables.collision
	}
	out := map[string][]byte{}
	for name, file := range files {
		out[name] = file.Bytes()
	}
	return out, nil
}

// sorted are the records of a kind by their keys.
func (l *Actual) sorted(kind string) []*Record {
	out := slices.DeleteFunc(slices.Clone(l.order), func(r *Record) bool { return r.Kind != kind })
	slices.SortFunc(out, func(a, b *Record) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// fileOf is the file in which a record comes.
func fileOf(r *Record) string {
	of, folder := r.Key, "applications"
	switch r.Kind {
	case resource, resourceSet, rule:
		of, _ = r.Values["application"].(string)
	case tree:
		folder = "trees"
	case connection:
		folder = "connections"
	case subscription:
		folder = "subscriptions"
	}
	return folder + "/" + fileName(of) + ".yaml"
}

// longestName is how many bytes of a name go into the name of its file: file systems have limits.
const longestName = 120

// fileName keeps letters and digits of any script. Long names end with a hash.
func fileName(name string) string {
	out := cmp.Or(strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '.':
			return r
		}
		return '-'
	}, name), "-."), "unnamed")
	if len(out) <= longestName {
		return out
	}
	return fmt.Sprintf("%s-%x", strings.ToValidUTF8(out[:longestName], ""), crc32.ChecksumIEEE([]byte(name)))
}

// document makes a document, or a part of one, with its parts.
func (l *Actual) document(k *kind, r *Record) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode}
	put := func(name string, value *yaml.Node) {
		out.Content = append(out.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, value)
	}
	if !k.parts {
		put("kind", &yaml.Node{Kind: yaml.ScalarNode, Value: k.name})
	}
	secrets := l.variables.begin(r)
	for _, name := range []string{"name", "code"} { // what names the record comes first
		if value := r.Values[name]; value != nil && value != "" && k.find(name) != nil {
			put(name, l.variables.yaml(value, secrets))
		}
	}
	for _, f := range k.fields() {
		value := r.Values[f.name]
		if f.name == "name" || f.name == "code" || value == nil || !f.required && (empty(value) || usual(k, f, r)) {
			continue
		}
		if f.name == "actions" && k.name == resource {
			value = withoutEmpty(value)
		}
		put(f.name, l.variables.yaml(value, secrets+separator+f.name))
	}
	for _, name := range []string{"protocols", "sources", "members", "nodes"} {
		if list := l.parts(k, r, name); len(list) > 0 {
			put(name, &yaml.Node{Kind: yaml.SequenceNode, Content: list})
		}
	}
	return out
}

func (l *Actual) parts(of *kind, r *Record, name string) []*yaml.Node {
	var out []*yaml.Node
	if of.find(name) == nil {
		return nil
	}
	switch name {
	case "protocols":
		for _, p := range l.below[protocol+r.Key] {
			out = append(out, l.document(kindOf(protocol), p))
		}
	case "sources":
		for _, s := range l.below[source+r.Key] {
			out = append(out, l.variables.yaml(s.Values["connection"], ""))
		}
	case "members":
		for _, m := range l.below[member+r.Key] {
			out = append(out, l.document(kindOf(member), m))
		}
	case "nodes":
		parent := ""
		if of.name == node {
			parent, _ = r.Values["code"].(string)
		}
		code := r.Values["code"]
		if of.name == node {
			code = r.Values["tree"]
		}
		for _, n := range l.below[fmt.Sprintf("%s/%s", code, parent)] {
			out = append(out, l.document(kindOf(node), n))
		}
	}
	return out
}

// arrange finds the parts of each record.
func (l *Actual) arrange() {
	l.below = map[string][]*Record{}
	for _, r := range l.order {
		of := ""
		switch r.Kind {
		case protocol, source:
			of = fmt.Sprint(r.Kind, r.Values["application"])
		case member:
			of = fmt.Sprint(r.Kind, r.Values["set"])
		case node:
			of = fmt.Sprintf("%s/%s", r.Values["tree"], r.Values["parent"])
		}
		l.below[of] = append(l.below[of], r)
	}
}

// empty reports whether a value is what a record has that was made without it.
func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	case json.Number:
		return v == "0"
	}
	return false
}

// usual reports whether a member has the value that it gets if nobody says anything.
func usual(k *kind, f field, r *Record) bool {
	value := r.Values[f.name]
	switch {
	case f.name == "affect":
		return value == "affect"
	case f.name == "actions" && k.name == rule:
		return r.Values["resource_match_all_actions"] == "1"
	}
	return value == "0" && slices.Contains(f.values, "0") && f.name != "status"
}

// withoutEmpty drops empty members of the objects of a list.
func withoutEmpty(value any) any {
	list, _ := value.([]any)
	out := []any{}
	for _, item := range list {
		if object, is := item.(map[string]any); is {
			item = maps.Clone(object)
			maps.DeleteFunc(item.(map[string]any), func(_ string, v any) bool { return empty(v) })
		}
		out = append(out, item)
	}
	return out
}
