package output

import (
	"fmt"
	"strings"
)

const deepest = 2 // names of an inner member; what lies deeper is shown as JSON

// members prints the members of one record, a line each; those of an inner object as delivery.url, and a list of
// objects as a table. Nothing is cut: this is where people copy a value from.
func (p *Printer) members(o Object) error {
	var lines Object
	p.flatten(&lines, "", o, deepest)
	longest := 0
	for _, m := range lines {
		if objects(m.Value) == nil {
			longest = max(longest, width(m.Name))
		}
	}
	for _, m := range lines {
		if err := p.member(m, longest); err != nil {
			return err
		}
	}
	return nil
}

// flatten adds the members that are shown. Empty ones are only with -o wide.
func (p *Printer) flatten(out *Object, prefix string, o Object, depth int) {
	wide := p.format == "wide"
	for _, m := range o {
		name := prefix + Printable(m.Name)
		inner, isObject := m.Value.(Object)
		list, isList := m.Value.([]any)
		empty := isObject && len(inner) == 0 || isList && len(list) == 0 || Text(m.Value) == ""
		switch {
		case empty && !wide:
		case isObject && !empty && depth > 0:
			p.flatten(out, name+".", inner, depth-1)
		default:
			*out = append(*out, Member{name, m.Value})
		}
	}
}

func (p *Printer) member(m Member, longest int) error {
	if rows := objects(m.Value); rows != nil {
		if _, err := fmt.Fprintln(p.w, m.Name); err != nil {
			return err
		}
		t := &table{w: p.w, style: p.style, indent: gap, limit: p.width, columns: guess(rows[0], p.format == "wide")}
		if p.format == "wide" {
			t.limit = 0
		}
		return t.rows(rows)
	}
	text, indent := Text(m.Value), strings.Repeat(" ", longest)+gap
	lines := strings.Split(PrintableLines(strings.TrimRight(text, "\r\n")), "\n")
	name := m.Name + strings.Repeat(" ", longest-width(m.Name)) + gap
	_, err := fmt.Fprintln(p.w, strings.TrimRight(name+strings.Join(lines, "\n"+indent), " "))
	return err
}

// objects returns the items of a list of objects; nil if the value is something else.
func objects(value any) []Object {
	list, _ := value.([]any)
	var out []Object
	for _, item := range list {
		object, isObject := item.(Object)
		if !isObject {
			return nil
		}
		out = append(out, object)
	}
	return out
}
