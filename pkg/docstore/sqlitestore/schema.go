package sqlitestore

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// format is the version of the file's layout. A program refuses files of a later one.
const format = 1

// The tables beside those of collections. An outbox seq is never used again (AUTOINCREMENT), so that a late Published
// cannot remove another message.
const ownTables = `
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID, STRICT;
CREATE TABLE IF NOT EXISTS counters (collection TEXT NOT NULL, tenant TEXT NOT NULL, n INTEGER NOT NULL,
	changes INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (collection, tenant)) WITHOUT ROWID, STRICT;
CREATE TABLE IF NOT EXISTS facet_counters (collection TEXT NOT NULL, facet TEXT NOT NULL, tenant TEXT NOT NULL,
	value TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (collection, facet, tenant, value)) WITHOUT ROWID, STRICT;
CREATE TABLE IF NOT EXISTS sequences (name TEXT PRIMARY KEY, next INTEGER NOT NULL) WITHOUT ROWID, STRICT;
CREATE TABLE IF NOT EXISTS outbox (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, subject TEXT NOT NULL,
	record TEXT NOT NULL, payload BLOB NOT NULL) STRICT`

// checkFormat refuses a file whose format this program does not know.
func checkFormat(ctx context.Context, conn Conn) error {
	tables, err := number(ctx, conn, "SELECT count(*) FROM sqlite_schema WHERE name = 'meta'")
	if err != nil || tables == 0 {
		return err
	}
	found, err := number(ctx, conn, "SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'format'")
	if err != nil {
		return err
	}
	if found > format {
		return fmt.Errorf(
			"the file has format %d, this program knows formats up to %d: a later version of the program wrote it",
			found, format)
	}
	return nil
}

// table is a collection in SQL. The tables of a collection "users" are
//
//	c_users (rid, tenant, id, version, counts, due, k_<index>…, lists, doc)
//	c_users.logins (tenant, value, rid)          one for each unique list index
//	c_users.words (tenant, value, first, more)   one for each index with postings: see postings.go
//
// The column lists repeats the list values: see lists.go. Indexes are named c_users#name. The names of collections
// cannot contain a dot or #.
type table struct {
	def    *docstore.Def
	name   string // quoted
	plain  string // the name without quotes
	id     column
	byName map[string]*column // by index
	keys   []*column          // by slot
	lists  []*column          // by slot
	counts []*column          // those with counters of their values

	insert, remove string
}

// column is what filters and orders refer to: the id, the column of a key, or the table of a list.
type column struct {
	field    string // the column's name; in a list's table it is "value"
	index    string // quoted: the index, or the list's table
	postings string // quoted: the table of postings, if it has one; for a list without spans that is the list's table
	slot     int
	many     bool
	number   bool
	unique   bool
	facet    bool
	counter  string  // the name in facet_counters if the documents of each value are counted
	order    *column // the column that its index has behind it if it is grouped
	span     int64   // width of a span, in numbers or in leading bytes of texts; 0 means no spans

	deleteValue string // for a unique list
}

// columns are the columns of keys and lists.
func (t *table) columns() []*column { return slices.Concat(t.keys, t.lists) }

var validName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

func quote(name string) string { return `"` + name + `"` }

func newTable(def *docstore.Def) (*table, error) {
	t := &table{def: def, plain: "c_" + def.Name, name: quote("c_" + def.Name), byName: map[string]*column{}}
	t.id = column{field: "id", index: quote(t.plain + "#"), unique: true, slot: -1}
	names := []string{def.Name}
	for _, ix := range def.Indexes {
		names = append(names, ix.Name)
		c := &column{slot: ix.Slot, many: ix.Many, number: ix.Number, unique: ix.Unique, span: ix.Span}
		own := quote(t.plain + "." + ix.Name) // the name of its own table, if it has one
		if ix.Many {
			c.field, c.index = "value", own
			c.deleteValue = "DELETE FROM " + c.index + " WHERE tenant = ?1 AND value = ?2 AND rid = ?3"
			t.lists = append(t.lists, c)
		} else {
			c.field, c.index = "k_"+ix.Name, quote(t.plain+"#"+ix.Name)
			t.keys = append(t.keys, c)
		}
		c.facet = len(ix.Orders) > 0
		if c.facet || ix.Counted {
			c.counter = ix.Name
			t.counts = append(t.counts, c)
		}
		switch {
		case c.many && c.span > 0:
			c.postings = quote(t.plain + "." + ix.Name + "#spans")
		case c.facet || c.span > 0 || c.many && !c.unique:
			c.postings = own
		}
		t.byName[ix.Name] = c
	}
	for _, name := range names {
		if !validName.MatchString(name) {
			return nil, fmt.Errorf("sqlitestore: %q is not a valid name for a collection or index", name)
		}
	}
	for _, ix := range def.Indexes {
		t.byName[ix.Name].order = t.byName[ix.GroupedBy]
	}
	fields := "rid, tenant, id, version, counts, due, lists, doc" + t.keyFields()
	t.insert = fmt.Sprintf("INSERT OR FAIL INTO %s (%s) VALUES (%s)", t.name, fields, placeholders(8+len(t.keys)))
	t.remove = fmt.Sprintf("DELETE FROM %s WHERE rid = ?1", t.name)
	return t, nil
}

// keyFields lists the key columns, with a comma before each.
func (t *table) keyFields() string {
	var b strings.Builder
	for _, c := range t.keys {
		b.WriteString(", " + c.field)
	}
	return b.String()
}

func placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// ddl returns the statements that create the collection's tables and indexes.
func (t *table) ddl() []string {
	var fields strings.Builder
	for _, c := range t.keys {
		fields.WriteString(c.field + map[bool]string{true: " INTEGER NOT NULL, ", false: " TEXT NOT NULL, "}[c.number])
	}
	ddl := []string{
		fmt.Sprintf(
			"CREATE TABLE %s (rid INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT "+
				"NULL, counts INTEGER NOT NULL, due INTEGER NOT NULL, %slists BLOB NOT NULL, doc BLOB NOT NULL) STRICT",
			t.name, fields.String()),
		fmt.Sprintf("CREATE UNIQUE INDEX %s ON %s (tenant, id)", t.id.index, t.name),
		fmt.Sprintf("CREATE INDEX %s ON %s (due, tenant, id) WHERE due <> 0", t.dueIndex(), t.name),
	}
	for _, c := range t.keys {
		fields := c.field
		if c.order != nil {
			fields += ", " + c.order.field
		}
		ddl = append(ddl, fmt.Sprintf("CREATE INDEX %s ON %s (tenant, %s, id)", c.index, t.name, fields))
		if c.unique {
			ddl = append(ddl, fmt.Sprintf("CREATE UNIQUE INDEX %s ON %s (tenant, %s) WHERE %s <> %s",
				quote(strings.Trim(c.index, `"`)+"!"), t.name, c.field, c.field, c.absent()))
		}
	}
	for _, c := range t.columns() {
		if c.many && c.unique {
			ddl = append(ddl, fmt.Sprintf("CREATE TABLE %s (tenant TEXT NOT NULL, value TEXT NOT NULL, "+
				"rid INTEGER NOT NULL, PRIMARY KEY (tenant, value)) WITHOUT ROWID, STRICT", c.index))
		}
		if c.postings != "" {
			ddl = append(ddl, fmt.Sprintf("CREATE TABLE %s (tenant TEXT NOT NULL, value %s NOT NULL, "+
				"first INTEGER NOT NULL, more BLOB NOT NULL, PRIMARY KEY (tenant, value, first)) WITHOUT ROWID, STRICT",
				c.postings, map[bool]string{true: "INTEGER", false: "TEXT"}[c.number]))
		}
	}
	return ddl
}

func (t *table) dueIndex() string { return quote(t.plain + "#!due") }

// absent is the SQL literal for an absent key. Keys are never NULL, so that order and paging need no special case.
func (c *column) absent() string {
	if c.number {
		return fmt.Sprint(math.MinInt64)
	}
	return "''"
}

func (c *column) arg(v docstore.Value) any {
	if c.number {
		return v.Num
	}
	return v.Text
}

// signature identifies the declaration that the stored index entries were made with. They are valid as long as it is
// the same.
func (t *table) signature() (string, error) {
	b, err := json.Marshal(struct {
		Revision int
		Indexes  []docstore.IndexDef
	}{t.def.Revision, t.def.Indexes})
	return string(b), err
}
