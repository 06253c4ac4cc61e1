package output

import (
	"fmt"
	"slices"

	"github.com/idplatform/idplatform/cli/internal/failure"
)

const (
	pageRows = 200 // of a table that are measured before it is printed
	liveCell = 18  // columns of a cell, if rows are printed before the next ones are known
)

// Items prints the items of a list as they come, page after page.
type Items struct {
	p     *Printer
	view  View
	table *table
	names []string // of the columns of CSV
	rows  []Object // that wait until the table's widths are known
	count int
	live  bool
}

// AsTheyCome prints each item at once, for lists without an end.
func (i *Items) AsTheyCome() *Items {
	i.live = true
	return i
}

// Items begins a list.
func (p *Printer) Items(view View) *Items { return &Items{p: p, view: view} }

// Add prints one item.
func (i *Items) Add(item any) error {
	i.count++
	p := i.p
	if p.query != nil {
		return p.jq(item)
	}
	object, isObject := item.(Object)
	if !isObject && p.format != "json" && p.format != "yaml" && p.format != "jsonl" && p.template == nil {
		object = Object{{"value", item}}
	}
	switch p.format {
	case "json":
		if err := i.begin("{\"items\": [\n"); err != nil {
			return err
		}
		return i.line(p.only(item), "  ")
	case "yaml":
		return p.document([]any{p.only(item)})
	case "jsonl":
		return i.line(p.only(item), "")
	case "csv":
		return i.csv(object)
	case "name":
		_, err := fmt.Fprintln(p.w, Printable(i.name(object)))
		return err
	case "table", "wide":
		i.rows = append(i.rows, object)
		if len(i.rows) < pageRows && !i.live {
			return nil
		}
		return i.flush()
	}
	if err := p.template.Execute(p.w, plain(item, forTemplate)); err != nil {
		return failure.Usagef("-o template: %w", err)
	}
	_, err := fmt.Fprintln(p.w)
	return err
}

func (i *Items) begin(text string) error {
	if i.count > 1 {
		text = ",\n"
	}
	_, err := fmt.Fprint(i.p.w, text)
	return err
}

func (i *Items) line(item any, indent string) error {
	text, err := encode(item)
	if err != nil {
		return err
	}
	end := "\n"
	if i.p.format == "json" {
		end = ""
	}
	_, err = fmt.Fprintf(i.p.w, "%s%s%s", indent, text, end)
	return err
}

func (i *Items) csv(item Object) error {
	if i.names == nil {
		i.names = i.p.fields
		for _, m := range item {
			if len(i.p.fields) == 0 {
				i.names = append(i.names, m.Name)
			}
		}
		if err := csvRow(i.p.w, i.names); err != nil {
			return err
		}
	}
	row := make([]string, len(i.names))
	for at, name := range i.names {
		row[at] = item.Text(name)
	}
	return csvRow(i.p.w, row)
}

func (i *Items) name(item Object) string {
	for _, member := range []string{i.view.Name, "name", "code", "id", "value"} {
		if text := item.Text(member); text != "" {
			return text
		}
	}
	return ""
}

// flush prints the rows that wait.
func (i *Items) flush() error {
	if i.table == nil {
		i.table = &table{
			w: i.p.w, columns: i.columns(), style: i.p.style, limit: i.p.width, keep: len(i.p.fields) > 0,
		}
		if i.p.format == "wide" {
			i.table.limit = 0
		}
		if i.live {
			i.table.least = liveCell
		}
	}
	rows := i.rows
	i.rows = nil
	return i.table.rows(rows)
}

func (i *Items) columns() []Column {
	wide := i.p.format == "wide"
	var columns []Column
	switch {
	case len(i.p.fields) > 0:
		for _, name := range i.p.fields {
			columns = append(columns, MemberColumn(name))
		}
	case i.view.Columns != nil && wide:
		columns = append(append(columns, i.view.Columns...), i.view.Wide...)
	case i.view.Columns != nil:
		columns = i.view.Columns
	case len(i.rows) > 0:
		columns = guess(i.rows[0], wide)
	}
	columns = slices.Clone(columns)
	for at := range columns {
		columns[at].names = at == 0 || columns[at].Title == title(i.view.Name)
	}
	return columns
}

// Close ends the list.
func (i *Items) Close() error {
	switch format := i.p.format; {
	case i.p.query != nil:
	case format == "json" && i.count == 0:
		_, err := fmt.Fprintln(i.p.w, `{"items": []}`)
		return err
	case format == "json":
		_, err := fmt.Fprint(i.p.w, "\n]}\n")
		return err
	case (format == "table" || format == "wide") && (len(i.rows) > 0 || i.view.Columns != nil && i.table == nil):
		return i.flush()
	}
	return nil
}

// Count is how many items were printed.
func (i *Items) Count() int { return i.count }
