package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/idplatform/idplatform/cli/internal/failure"
)

// Desired is a record as the files want it. Values has only the members that the files have.
type Desired struct {
	Ref
	Values map[string]any
	File   string
	Line   int
	node   *yaml.Node // for the lines of the platform's faults
}

// Place is where the desired record stands: crm.yaml:12.
func (w *Desired) Place() string { return fmt.Sprintf("%s:%d", w.File, w.Line) }

// line is where a member such as delivery.url stands.
func (w *Desired) line(path string) int {
	at := w.node
	for name := range strings.SplitSeq(path, ".") {
		name, _, _ = strings.Cut(name, "[")
		_, value := entry(at, name)
		if value == nil {
			break
		}
		at = value
	}
	if at == w.node {
		return w.Line
	}
	return at.Line
}

type parser struct {
	file    string
	desired []*Desired
	faults  []string
}

func (p *parser) fault(at *yaml.Node, format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf("%s:%d: %s", p.file, at.Line, fmt.Sprintf(format, args...)))
}

func (p *parser) result() ([]*Desired, error) {
	inOneCase(p.desired)
	first, names := map[Ref]*Desired{}, map[Ref]*Desired{}
	for _, w := range p.desired {
		before := first[w.Ref]
		for n := 2; before != nil && w.Kind == rule && !reflect.DeepEqual(w.Values, before.Values); n++ {
			w.Key = numbered(w.Key, n) // about the same, but with another condition or other actions
			before = first[w.Ref]
		}
		if before != nil {
			p.faults = append(p.faults, fmt.Sprintf("%s: %s is also in %s", w.Place(), w.Ref, before.Place()))
		}
		first[w.Ref] = w
		name := Ref{w.Kind, fold(w.Key)}
		switch same := names[name]; {
		case !slices.Contains(foldedKinds, w.Kind) || before != nil:
		case same == nil:
			names[name] = w
		default:
			p.faults = append(p.faults, fmt.Sprintf("%s: %s is also in %s, as %s: the platform compares these names "+
				"without case", w.Place(), w.Ref, same.Place(), same.Key))
		}
	}
	if err := unusable(append(p.faults, formerFaults(p.desired)...)); err != nil {
		return nil, err
	}
	return p.desired, nil
}

// unusable is the error of files with faults; nil if there are none.
func unusable(faults []string) error {
	if len(faults) == 0 {
		return nil
	}
	return failure.Usagef("the files cannot be used:\n  %s", strings.Join(faults, "\n  "))
}

func (p *parser) parse(text []byte) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			p.faults = append(p.faults, fmt.Sprintf("%s: it is not YAML: %s", p.file,
				strings.TrimPrefix(err.Error(), "yaml: ")))
			return
		}
		root := document.Content[0]
		if root.Tag == "!!null" { // a document of comments alone
			continue
		}
		p.document(root)
	}
}

func (p *parser) document(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		p.fault(root, "a document must have members, of which the first is kind")
		return
	}
	_, value := entry(root, "kind")
	if value == nil {
		p.fault(root, "kind is missing: one of %s", strings.Join(Kinds(), ", "))
		return
	}
	k := kindOf(value.Value)
	if k == nil || k.parts {
		p.fault(value, "there is no kind %q: one of %s", value.Value, strings.Join(Kinds(), ", "))
		return
	}
	p.record(k, root, nil)
}

// record reads a document, or a part of one. outer has values that the place of a part gives.
func (p *parser) record(k *kind, at *yaml.Node, outer map[string]any) {
	if at.Kind != yaml.MappingNode {
		p.fault(at, "%s must have members", k.name)
		return
	}
	values, parts := map[string]any{}, map[string]*yaml.Node{}
	for name, value := range outer {
		values[name] = value
	}
	before := len(p.faults)
	for i := 0; i < len(at.Content); i += 2 {
		name, value := at.Content[i], at.Content[i+1]
		if name.Value == "kind" && !k.parts {
			continue
		}
		f := k.find(name.Value)
		_, again := values[name.Value]
		switch {
		case f == nil:
			p.fault(name, "%s has no member %q%s", k.name, name.Value, near(k, name.Value))
		case again || parts[name.Value] != nil:
			p.fault(name, "%s stands here twice", name.Value)
		case f.part != "" || k.name == application && f.name == "sources":
			parts[f.name] = value
		default:
			values[f.name] = p.value(f, value)
			if slices.Contains(secretPlaces, f.name) {
				values[f.name] = markSecrets(values[f.name])
			}
		}
	}
	for _, f := range k.fields() {
		if _, has := values[f.name]; f.required && !has {
			p.fault(at, "%s needs %s", k.name, f.name)
		}
	}
	if len(p.faults) > before {
		return
	}
	p.add(k, at, values, parts)
}

// add adds a record and its parts.
func (p *parser) add(k *kind, at *yaml.Node, values map[string]any, parts map[string]*yaml.Node) {
	key, err := keyOf(k.name, values)
	if err != nil {
		p.fault(at, "%s", err)
		return
	}
	w := &Desired{Ref: Ref{k.name, key}, Values: values, File: p.file, Line: at.Line, node: at}
	p.desired = append(p.desired, w)
	p.faults = append(p.faults, w.literals(secretMembers[k.name])...)
	for _, name := range []string{"protocols", "sources", "members", "nodes"} {
		list := parts[name]
		if list == nil {
			continue
		}
		if list.Kind != yaml.SequenceNode {
			p.fault(list, "%s must be a list", name)
			continue
		}
		for _, item := range list.Content {
			p.part(k, name, item, key, values)
		}
	}
}

func (p *parser) part(k *kind, list string, item *yaml.Node, key string, values map[string]any) {
	switch list {
	case "protocols":
		p.record(kindOf(protocol), item, map[string]any{"application": key})
	case "members":
		p.record(kindOf(member), item, map[string]any{"set": key})
	case "sources":
		if item.Kind != yaml.ScalarNode {
			p.fault(item, "a source is the name of a connection, such as github/Our GitHub")
			return
		}
		p.add(kindOf(source), item, map[string]any{"application": key, "connection": item.Value}, nil)
	case "nodes":
		outer := map[string]any{"tree": values["code"], "parent": ""}
		if k.name == node {
			outer = map[string]any{"tree": values["tree"], "parent": values["code"]}
		}
		p.record(kindOf(node), item, outer)
	}
}

// value makes a value of a member, and checks its type.
func (p *parser) value(f *field, at *yaml.Node) any {
	if f.kind == "string" && at.Kind == yaml.ScalarNode && at.Tag != "!!null" {
		if len(f.values) > 0 && !slices.Contains(f.values, at.Value) {
			p.fault(at, "%s must be one of %s", f.name, strings.Join(f.values, ", "))
		}
		if _, err := time.Parse(time.DateOnly, at.Value); err == nil && strings.HasPrefix(f.name, "valid_") {
			return at.Value + "T00:00:00Z"
		}
		return at.Value // also a number or a date: what stands there is the text
	}
	value := p.plain(at)
	is := map[string]bool{"string": false, "": true}
	switch v := value.(type) {
	case nil:
		return nil
	case json.Number:
		is["integer"], is["number"] = !strings.ContainsAny(v.String(), ".eE"), true
	case bool:
		is["boolean"] = true
	case []any:
		is["array"] = true
	case map[string]any:
		is["object"] = true
	}
	if !is[f.kind] {
		p.fault(at, "%s must be %s", f.name, article(f.kind))
	}
	return value
}

// plain makes Go's values of YAML. Numbers keep their digits.
func (p *parser) plain(at *yaml.Node) any {
	switch at.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i < len(at.Content); i += 2 {
			name := at.Content[i]
			if _, twice := out[name.Value]; twice {
				p.fault(name, "%s stands here twice", name.Value)
			}
			out[name.Value] = p.plain(at.Content[i+1])
		}
		return out
	case yaml.SequenceNode:
		out := []any{}
		for _, item := range at.Content {
			out = append(out, p.plain(item))
		}
		return out
	case yaml.AliasNode:
		p.fault(at, "*%s: aliases are not used here", at.Value)
		return nil
	}
	switch at.Tag {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(at.Value, "true")
	case "!!int", "!!float":
		if json.Valid([]byte(at.Value)) {
			return json.Number(at.Value)
		}
		p.fault(at, "this is no number of JSON; a text wants quotes") // and may be a secret: it is not shown
	}
	return at.Value
}

// entry finds a member of a mapping.
func entry(at *yaml.Node, name string) (key, value *yaml.Node) {
	if at == nil || at.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i < len(at.Content); i += 2 {
		if at.Content[i].Value == name {
			return at.Content[i], at.Content[i+1]
		}
	}
	return nil, nil
}

func article(kind string) string {
	if strings.ContainsAny(kind[:1], "aeiou") {
		return "an " + kind
	}
	return "a " + kind
}

// near suggests the member that was meant.
func near(k *kind, name string) string {
	var all []string
	for _, f := range k.fields() {
		if strings.HasPrefix(f.name, name) || strings.HasPrefix(name, f.name) ||
			strings.ReplaceAll(f.name, "_", "") == strings.ToLower(strings.ReplaceAll(name, "-", "")) {
			all = append(all, f.name)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "; near it: " + strings.Join(all, ", ")
}
