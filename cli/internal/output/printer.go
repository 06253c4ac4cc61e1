package output

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/itchyny/gojq"
	"go.yaml.in/yaml/v3"

	"github.com/idplatform/idplatform/cli/internal/failure"
)

// Formats are the values of -o, beside template=….
var Formats = []string{"table", "wide", "json", "jsonl", "yaml", "csv", "name"}

// Form says how answers are printed.
type Form struct {
	Format   string   // one of Formats, or template=…
	JQ       string   // a jq program that runs on what would be printed as JSON
	Fields   []string // the only members to be printed
	Width    int      // columns of a line of a terminal; 0: nothing is cut
	Terminal bool     // a terminal reads it, which no value may steer
	Style    Style
}

// Printer prints answers in the form that the caller chose.
type Printer struct {
	w        io.Writer
	format   string
	fields   []string
	template *template.Template
	query    *gojq.Code
	width    int
	style    Style
}

// New makes a Printer.
func New(w io.Writer, f Form) (*Printer, error) {
	p := &Printer{w: w, format: f.Format, fields: f.Fields, width: f.Width, style: f.Style}
	if text, ok := strings.CutPrefix(f.Format, "template="); ok {
		parsed, err := template.New("template").Option("missingkey=zero").Parse(text)
		if err != nil {
			return nil, failure.Usagef("-o template: %w", err)
		}
		p.template = parsed
	} else if !slices.Contains(Formats, f.Format) {
		return nil, failure.Usagef("-o must be one of %s, template=…", strings.Join(Formats, ", "))
	}
	if f.JQ != "" {
		parsed, err := gojq.Parse(f.JQ)
		if err == nil {
			p.query, err = gojq.Compile(parsed)
		}
		if err != nil {
			return nil, failure.Usagef("--jq: %w", err)
		}
	}
	if f.Terminal && !p.ForPeople() { // tables are made of safe texts, and have colours
		p.w = Safe(w)
	}
	return p, nil
}

// ForPeople reports whether the form is for people rather than for programs.
func (p *Printer) ForPeople() bool {
	return (p.format == "table" || p.format == "wide") && p.query == nil
}

// Streams reports whether every item can be printed by itself.
func (p *Printer) Streams() bool { return p.format == "jsonl" && p.query == nil }

// JSON reports whether errors are printed as JSON, too.
func (p *Printer) JSON() bool { return p.format == "json" || p.format == "jsonl" }

// View says how records are shown to people.
type View struct {
	Columns, Wide []Column // Wide comes after Columns with -o wide
	Name          string   // the member that names a record; "": the first of name, code, id that it has
	Items         string   // the member of the answer that has the list; "": items
}

// Body prints an answer as it came: a record, or a list with its items.
func (p *Printer) Body(body []byte, view View) error {
	value, err := Parse(body)
	if err != nil {
		return fmt.Errorf("the answer is not JSON: %w", err)
	}
	if p.query != nil {
		return p.jq(value)
	}
	list, isList := List(value, view.Items)
	if p.format == "json" || p.format == "yaml" {
		return p.document(p.only(value))
	}
	if !isList {
		return p.record(value, view)
	}
	items := p.Items(view)
	for _, item := range list {
		if err := items.Add(item); err != nil {
			return err
		}
	}
	if err := items.Close(); err != nil || !p.ForPeople() || len(p.fields) > 0 {
		return err
	}
	object, _ := value.(Object)
	object = slices.DeleteFunc(slices.Clone(object), func(m Member) bool { return m.Name == view.Items })
	return p.beside(object, len(list))
}

// paging are the members of a list that say which page it is. Whether there is more is said elsewhere.
var paging = []string{"items", "total_relation", "page_num", "page_size", "next_page_token"}

// beside prints what a list says beside its items: totals, and where a feed goes on.
func (p *Printer) beside(list Object, shown int) error {
	var out Object
	for _, m := range list {
		allShown := m.Name == "total" && (Text(m.Value) == strconv.Itoa(shown) || list.Text("next_page_token") != "")
		if !slices.Contains(paging, m.Name) && !allShown {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(p.w); err != nil {
		return err
	}
	return p.members(out)
}

// only keeps the members that --fields names.
func (p *Printer) only(value any) any {
	if len(p.fields) == 0 {
		return value
	}
	switch v := value.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = p.only(item)
		}
		return out
	case Object:
		if items, ok := v.Get("items").([]any); ok {
			out := slices.Clone(v)
			for i := range out {
				if out[i].Name == "items" {
					out[i].Value = p.only(items)
				}
			}
			return out
		}
		out := Object{}
		for _, name := range p.fields {
			out = append(out, Member{name, v.Get(name)})
		}
		return out
	}
	return value
}

func (p *Printer) document(value any) error {
	if p.format == "yaml" {
		encoder := yaml.NewEncoder(p.w)
		encoder.SetIndent(2)
		if err := encoder.Encode(node(value)); err != nil {
			return err
		}
		return encoder.Close()
	}
	text, err := encode(value)
	if err != nil {
		return err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return err
	}
	indented.WriteByte('\n')
	_, err = p.w.Write(indented.Bytes())
	return err
}

// node makes YAML of a value, which keeps the order of members and the digits of numbers.
func node(value any) *yaml.Node {
	switch v := value.(type) {
	case Object:
		out := &yaml.Node{Kind: yaml.MappingNode}
		for _, m := range v {
			out.Content = append(out.Content, node(m.Name), node(m.Value))
		}
		return out
	case []any:
		out := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range v {
			out.Content = append(out.Content, node(item))
		}
		return out
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}
	case string:
		out := &yaml.Node{}
		out.SetString(v)
		return out
	}
	out := &yaml.Node{}
	_ = out.Encode(value) // true, false and null can be encoded
	return out
}

func (p *Printer) record(value any, view View) error {
	object, ok := value.(Object)
	if !ok || p.format != "table" && p.format != "wide" || len(p.fields) > 0 {
		items := p.Items(view)
		if err := items.Add(value); err != nil {
			return err
		}
		return items.Close()
	}
	if len(object) == 0 {
		_, err := fmt.Fprintln(p.w, "done")
		return err
	}
	return p.members(view.inWords(object))
}

// inWords shows members as the columns of a list that are called like them do: a status is a word.
func (v View) inWords(record Object) Object {
	out := slices.Clone(record)
	for i, m := range out {
		at := slices.IndexFunc(v.Columns, func(c Column) bool { return c.Title == title(m.Name) })
		if at < 0 {
			continue
		}
		if words := v.Columns[at].Of(record); words != "" {
			out[i].Value = words
		}
	}
	return out
}

// jq prints what the jq program makes of a value: strings as they are, all else as JSON, a line each.
func (p *Printer) jq(value any) error {
	results := p.query.Run(plain(value, forJQ))
	for {
		result, ok := results.Next()
		if !ok {
			return nil
		}
		if err, isError := result.(error); isError {
			return failure.Usagef("--jq: %w", err)
		}
		text, isString := result.(string)
		if !isString {
			encoded, err := gojq.Marshal(result)
			if err != nil {
				return err
			}
			text = string(encoded)
		}
		if _, err := fmt.Fprintln(p.w, text); err != nil {
			return err
		}
	}
}

// csvRow writes a row by the rules of RFC 4180.
func csvRow(w io.Writer, cells []string) error {
	out := csv.NewWriter(w)
	if err := out.Write(cells); err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}
