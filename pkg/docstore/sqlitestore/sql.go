package sqlitestore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// statement is an SQL statement being written, with its arguments.
type statement struct {
	strings.Builder
	args []any
}

// arg adds an argument and returns its placeholder.
func (s *statement) arg(v any) string {
	s.args = append(s.args, v)
	return fmt.Sprintf("?%d", len(s.args))
}

func (s *statement) add(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// leaf writes the condition of a leaf on its column.
func (s *statement) leaf(n *node) {
	c := n.column
	if n.op == isIn {
		values := make([]any, len(n.values))
		for i, v := range n.values {
			values[i] = c.arg(v)
		}
		s.oneOf(c.field, values)
		return
	}
	if n.op == isContains {
		s.add("instr(%s, %s) > 0", c.field, s.arg(c.arg(n.values[0])))
		return
	}
	s.between(c, n.low, n.high)
}

// atLeast rounds up to a power of two: 1, 2, 4, 8, …
func atLeast(n int) int {
	size := 1
	for size < n {
		size *= 2
	}
	return size
}

func (s *statement) between(c *column, low, high *docstore.Value) {
	switch {
	case low != nil && high != nil:
		s.add("%s >= %s AND %s < %s", c.field, s.arg(c.arg(*low)), c.field, s.arg(c.arg(*high)))
	case low != nil:
		s.add("%s >= %s", c.field, s.arg(c.arg(*low)))
	case high != nil:
		s.add("%s < %s", c.field, s.arg(c.arg(*high)))
	default:
		s.add("TRUE")
	}
}

// entries writes "SELECT what" of the index entries that a leaf selects. It reads only the index.
func (s *statement) entries(t *table, n *node, what, tenant string) {
	from := t.name + " INDEXED BY " + n.column.index
	if n.column.many {
		from = n.column.index
	}
	s.add("SELECT %s FROM %s WHERE tenant = %s AND ", what, from, tenant)
	s.leaf(n)
}

// postings is entries for a leaf whose column has postings. For a column with spans, the leaf is a range of spans.
func (s *statement) postings(n *node, what, tenant string) {
	named := *n.column
	named.field = "value"
	leaf := *n
	leaf.column = &named
	s.add("SELECT %s FROM %s WHERE tenant = %s AND ", what, named.postings, tenant)
	s.leaf(&leaf)
}

// limit writes "0 + ?": SQLite prepares a statement again whenever a parameter that is the whole limit changes.
func (s *statement) limit(n, offset int64) {
	s.add(" LIMIT 0 + %s OFFSET 0 + %s", s.arg(n), s.arg(offset))
}

// ordering is a complete order: the keys, then the id.
type ordering struct {
	keys []*column
	desc []bool // one for each key, then one for the id
}

func (t *table) ordering(sort []docstore.Order) (*ordering, error) {
	o := &ordering{}
	down := false
	for _, key := range sort {
		c := t.byName[key.Index]
		if c == nil || c.many {
			return nil, fmt.Errorf("sqlitestore: %s cannot be sorted by %q", t.name, key.Index)
		}
		down = key.Desc
		o.keys, o.desc = append(o.keys, c), append(o.desc, down)
	}
	o.desc = append(o.desc, down)
	return o, nil
}

func (o *ordering) fields() []string {
	var fields []string
	for _, c := range o.keys {
		fields = append(fields, c.field)
	}
	return append(fields, "id")
}

// compare orders rows by their keys' values, then by id.
func (o *ordering) compare(a, b *found) int {
	for i, key := range o.keys {
		if c := key.compare(a.sort[i], b.sort[i]); c != 0 {
			return o.signed(i, c)
		}
	}
	return o.signed(len(o.keys), strings.Compare(a.id, b.id))
}

func (o *ordering) signed(i, c int) int {
	if o.desc[i] {
		return -c
	}
	return c
}

func (s *statement) orderBy(o *ordering) {
	terms := o.fields()
	for i := range terms {
		if o.desc[i] {
			terms[i] += " DESC"
		}
	}
	s.add(" ORDER BY %s", strings.Join(terms, ", "))
}

// after writes the condition of rows that follow a position.
func (s *statement) after(o *ordering, p *docstore.Position) {
	fields := o.fields()
	args := make([]string, len(fields))
	for i, c := range o.keys {
		args[i] = s.arg(c.arg(p.Values[i]))
	}
	args[len(o.keys)] = s.arg(p.ID)
	sign := func(i int) string {
		if o.desc[i] {
			return "<"
		}
		return ">"
	}
	if !slices.Contains(o.desc, !o.desc[0]) {
		s.add("(%s) %s (%s)", strings.Join(fields, ", "), sign(0), strings.Join(args, ", "))
		return
	}
	// If directions differ, (a, b) after (x, y) means: a after x, or a = x and b after y. The first condition lets the
	// index skip rows.
	s.add("%s %s= %s AND (", fields[0], sign(0), args[0])
	for i := range fields {
		if i > 0 {
			s.add(" OR ")
		}
		for j := range i {
			s.add("%s = %s AND ", fields[j], args[j])
		}
		s.add("%s %s %s", fields[i], sign(i), args[i])
	}
	s.add(")")
}
