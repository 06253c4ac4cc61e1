package output

import (
	"fmt"
	"io"
	"strings"

	"github.com/rivo/uniseg"
)

const (
	gap       = "  "
	maxCell   = 60 // columns of a cell of -o table; -o wide cuts nothing
	leastCell = 8  // columns that a cell keeps on a narrow terminal
	leastName = 24 // columns that the name of a record keeps there
	maxGuess  = 6  // columns of a table that no view describes
)

// Column is a column of a table.
type Column struct {
	Title string
	Of    func(Object) string
	Whole bool // never cut, because people copy it

	names bool // the record, so that it is cut last
}

// MemberColumn is a column that shows a member. Ids are shown whole.
func MemberColumn(name string) Column {
	return Column{
		Title: title(name), Of: func(o Object) string { return o.Text(name) },
		Whole: name == "id" || strings.HasSuffix(name, "_id"),
	}
}

func title(member string) string {
	return strings.ToUpper(strings.NewReplacer("_", " ", ".", " ").Replace(Printable(member)))
}

// width is how many columns of a terminal a text takes: Chinese characters take two.
func width(text string) int { return uniseg.StringWidth(text) }

// cut shortens a text to a number of columns.
func cut(text string, columns int) string {
	if width(text) <= columns {
		return text
	}
	var out strings.Builder
	used, state := 0, -1
	for rest := text; rest != ""; {
		var cluster string
		var wide int
		cluster, rest, wide, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used+wide > columns-1 {
			break
		}
		out.WriteString(cluster)
		used += wide
	}
	return out.String() + "…"
}

// table prints rows in columns whose widths are those of the first rows.
type table struct {
	w       io.Writer
	columns []Column
	style   Style
	indent  string
	limit   int  // columns of a line; 0: nothing is cut
	keep    bool // every column, since the caller named them
	least   int  // columns of a cell
	widths  []int
	titles  bool
}

func (t *table) rows(items []Object) error {
	cells := make([][]string, len(items))
	for i, item := range items {
		cells[i] = make([]string, len(t.columns))
		for at, c := range t.columns {
			cells[i][at] = Printable(c.Of(item))
		}
	}
	if t.widths == nil {
		t.measure(cells)
		t.fit()
	}
	if !t.titles {
		t.titles = true
		titles := make([]string, len(t.columns))
		for i, c := range t.columns {
			titles[i] = c.Title
		}
		if err := t.line(titles, t.style.Bold); err != nil {
			return err
		}
	}
	for _, row := range cells {
		if err := t.line(row, func(text string) string { return text }); err != nil {
			return err
		}
	}
	return nil
}

// measure gives every column the width that its first cells want.
func (t *table) measure(cells [][]string) {
	for at, c := range t.columns {
		wanted := max(t.least, width(c.Title))
		for _, row := range cells {
			wanted = max(wanted, width(row[at]))
		}
		if t.limit > 0 && !c.Whole {
			wanted = min(wanted, max(maxCell, width(c.Title)))
		}
		t.widths = append(t.widths, wanted)
	}
}

// fit makes a line as short as the terminal: it shortens the widest columns, those that name a record last, and at the
// end leaves out columns, of which the first ones matter most.
func (t *table) fit() {
	for _, names := range []bool{false, true} {
		for t.limit > 0 && t.length() > t.limit && t.shorten(names) {
		}
	}
	for t.limit > 0 && !t.keep && len(t.widths) > 1 && t.length() > t.limit {
		t.widths = t.widths[:len(t.widths)-1]
		t.columns = t.columns[:len(t.widths)]
	}
	if last := len(t.widths) - 1; t.least > 0 && t.limit > t.length() {
		t.widths[last] += t.limit - t.length() // rows that come later may need it
	}
}

// shorten takes a column of the terminal from the widest column, if one can do without.
func (t *table) shorten(names bool) bool {
	widest := -1
	for i, c := range t.columns {
		least := max(leastCell, width(c.Title))
		if names {
			least = max(leastName, width(c.Title))
		}
		if !c.Whole && c.names == names && t.widths[i] > least && (widest < 0 || t.widths[i] >= t.widths[widest]) {
			widest = i
		}
	}
	if widest < 0 {
		return false
	}
	t.widths[widest]--
	return true
}

func (t *table) length() int {
	sum := len(t.indent) + len(gap)*(len(t.widths)-1)
	for _, one := range t.widths {
		sum += one
	}
	return sum
}

func (t *table) line(row []string, paint func(string) string) error {
	line, blank := t.indent, 0 // columns that go before the next text
	for i, c := range t.columns {
		cell := row[i]
		if t.limit > 0 && !c.Whole {
			cell = cut(cell, t.widths[i])
		}
		if cell != "" {
			line += strings.Repeat(" ", blank) + paint(cell)
			blank = 0
		}
		blank += max(0, t.widths[i]-width(cell)) + len(gap)
	}
	_, err := fmt.Fprintln(t.w, strings.TrimRight(line, " "))
	return err
}

// Columns is how many columns of a terminal a text takes.
func Columns(text string) int { return width(text) }

// Cut shortens a text to a number of columns.
func Cut(text string, columns int) string { return cut(text, columns) }

// Counted is a number and what it counts, in the singular or the plural.
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Aligned are lines of rows, each cell below the one of the row before. Rows can have different numbers of cells.
func Aligned(indent string, rows [][]string) (lines []string) {
	widths := map[int]int{}
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], width(cut(Printable(cell), maxCell)))
		}
	}
	for _, row := range rows {
		line := indent
		for i, cell := range row {
			cell = cut(Printable(cell), maxCell)
			line += cell + strings.Repeat(" ", widths[i]-width(cell)) + gap
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

// telling are the members that tell records apart, in this order.
var telling = []string{
	"id", "username", "code", "name", "display_name", "type", "state", "status", "email", "object_code", "time",
	"time_created", "time_modified",
}

// guess chooses the columns of records that no view describes.
func guess(o Object, wide bool) []Column {
	var columns []Column
	taken := map[string]bool{"tenant_id": true, "version": true}
	add := func(name string) {
		if !taken[name] {
			taken[name] = true
			columns = append(columns, MemberColumn(name))
		}
	}
	for _, name := range telling {
		if o.Get(name) != nil {
			add(name)
		}
	}
	for _, m := range o {
		if _, isObject := m.Value.(Object); !isObject {
			add(m.Name)
		}
	}
	if !wide && len(columns) > maxGuess {
		columns = columns[:maxGuess]
	}
	return columns
}
