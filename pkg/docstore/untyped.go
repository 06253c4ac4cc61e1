package docstore

import (
	"fmt"

	"github.com/idplatform/idplatform/pkg/clock"
)

// collection is what a Collection does, with documents that are pointers of its type as any: the compiler makes the
// methods of a generic type again in each package that uses it, so that those of Collection only convert.
type collection struct {
	def      *Def
	noun     string
	indexes  []anyIndex
	orders   []string // Schema.Sortable
	due      func(any) clock.Time
	applyDue func(any, clock.Time)
	sealed   func(any) []Sealed
	counts   func(any) []*int64
	part     bool
	clone    func(any) any
}

// define fills in what the indexes say, and how documents are read. It panics as Define does.
func (c *collection) define() {
	keys, lists := 0, 0
	for i := range c.indexes {
		d := c.indexes[i].def
		if d.Many {
			d.Slot, lists = lists, lists+1
		} else {
			d.Slot, keys = keys, keys+1
		}
		c.def.Indexes = append(c.def.Indexes, d)
	}
	for i, d := range c.def.Indexes {
		if c.indexes[i].global {
			if d.Number {
				panic("docstore: the Global index " + d.Name + " of " + c.def.Name + " must be ByText or ByList")
			}
			c.def.Points = true
		}
		if d.Span < 0 || d.Span > 0 && (d.Many && !d.Unique || len(d.Orders) > 0) {
			panic("docstore: the index " + d.Name + " of " + c.def.Name + " cannot be Spanned")
		}
		if d.Counted && (d.Many || d.Number || d.Unique) {
			panic("docstore: the index " + d.Name + " of " + c.def.Name + " cannot be Counted")
		}
		if d.GroupedBy != "" && !c.def.canBeGrouped(&d) {
			panic("docstore: the index " + d.Name + " of " + c.def.Name + " cannot be Grouped by " + d.GroupedBy)
		}
		for _, name := range d.Orders {
			if order := c.def.Index(name); order == nil || order.Many || d.Many || d.Number || d.Unique {
				panic("docstore: " + c.def.Name + " has no order by " + name + " for the facet " + d.Name)
			}
		}
	}
	for _, name := range c.orders {
		if order := c.def.Index(name); order == nil || !order.sorts() {
			panic("docstore: " + c.def.Name + " has no order by " + name)
		}
	}
	c.def.Extract = func(engine Engine, data []byte) (*Entry, error) {
		v := c.def.Blank()
		if err := engine.Decode(data, v); err != nil {
			return nil, err
		}
		return c.entry(v)
	}
}

// canBeGrouped reports whether an index is a plain text index and is grouped by one that documents can be sorted by.
func (d *Def) canBeGrouped(ix *IndexDef) bool {
	order := d.Index(ix.GroupedBy)
	return order != nil && order.sorts() && !ix.Many && !ix.Number && !ix.Unique && ix.Span == 0 && len(ix.Orders) == 0
}

func metaOf(v any) *Meta { return v.(document).meta() }

func (c *collection) encode(v any) ([]byte, error) {
	body, err := encode(v)
	if err != nil {
		return nil, fmt.Errorf("docstore: encode %s: %w", c.def.Name, err)
	}
	return body, nil
}

func (c *collection) entry(v any) (*Entry, error) {
	body, err := c.encode(v)
	if err != nil {
		return nil, err
	}
	return c.entryOf(v, body), nil
}

// entryOf makes the entry of a document whose JSON form is known.
func (c *collection) entryOf(v any, body []byte) *Entry {
	m := metaOf(v)
	e := &Entry{Tenant: m.TenantID, ID: m.ID, Stamp: m.stamp(), Doc: v, JSON: body}
	if c.due != nil {
		if due := c.due(v); !due.IsZero() {
			e.Due = due.Millis()
		}
	}
	for i := range c.indexes {
		if ix := &c.indexes[i]; ix.def.Many {
			e.Lists = append(e.Lists, distinct(ix.list(v)))
		} else {
			e.Keys = append(e.Keys, ix.key(v))
		}
	}
	return e
}
