package sqlitestore

import (
	"context"
	"fmt"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// Check runs SQLite's own integrity check, and then compares the keys, list entries, postings and counters of every
// collection with its documents. It returns the first fault that it finds. It reads one state of the file and blocks
// nobody, but takes at least as long as reading the whole file.
func (e *Engine) Check(ctx context.Context) error {
	return e.snapshot(ctx, func(conn Conn) error {
		err := conn.Query(ctx, "PRAGMA integrity_check(3)", nil, func(c Columns) error {
			if s := string(c.Bytes(0)); s != "ok" {
				return fmt.Errorf("sqlitestore: %s: %s", e.path, s)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, t := range e.tables {
			if err := e.checkTable(ctx, conn, t); err != nil {
				return fmt.Errorf("sqlitestore: %s: %w", t.name, err)
			}
		}
		return nil
	})
}

func (e *Engine) checkTable(ctx context.Context, conn Conn, t *table) error {
	entries := map[string]int64{} // what the documents should have, by table
	counts := map[counter]int64{}
	err := conn.Query(ctx, "SELECT rid, tenant, id, version, due, lists, doc"+t.keyFields()+" FROM "+t.name, nil,
		func(c Columns) error {
			entry, err := t.def.Extract(e, c.Bytes(6))
			if err != nil {
				return fmt.Errorf("document %s: %w", c.Bytes(2), err)
			}
			counts[counter{scope: scope{t.def.Name, entry.Tenant}}]++
			for _, c := range t.counts {
				counts[counter{scope{t.def.Name, entry.Tenant}, c.counter, entry.Keys[c.slot].Text}]++
			}
			if entry.Tenant != string(c.Bytes(1)) || entry.ID != string(c.Bytes(2)) || entry.Version != c.Int(3) ||
				entry.Due != c.Int(4) ||
				string(encodeLists(entry.Lists)) != string(c.Bytes(5)) {
				return fmt.Errorf("document %s differs from its row", entry.ID)
			}
			if row, ok := rowOf(entry.ID); c.Int(0) >= 0 && (!ok || row != c.Int(0)) {
				return fmt.Errorf("document %s has row %d", entry.ID, c.Int(0))
			}
			for i, k := range t.keys {
				if k.value(c, 7+i) != entry.Keys[i] {
					return fmt.Errorf("document %s: wrong key in %s", entry.ID, k.index)
				}
			}
			return t.checkEntries(conn, entry, c.Int(0), entries)
		})
	if err != nil {
		return err
	}
	counted, err := t.countEntries(conn)
	if err != nil {
		return err
	}
	for name, n := range counted {
		if n != entries[name] {
			return fmt.Errorf("%d entries in %s, the documents have %d", n, name, entries[name])
		}
	}
	return e.checkCounters(ctx, conn, t, counts)
}

// checkEntries looks for the list entries and postings of a document, and counts them.
func (t *table) checkEntries(conn Conn, entry *docstore.Entry, rid int64, entries map[string]int64) error {
	const value = " WHERE tenant = ?1 AND value = ?2 AND rid = ?3"
	for _, c := range t.columns() {
		for _, v := range c.postingsOf(entry.Keys, listsOf(entry)) {
			_, row, err := c.findPosting(conn, entry.Tenant, v, rid)
			if err != nil {
				return err
			}
			if row == nil {
				return fmt.Errorf("document %s: no posting in %s", entry.ID, c.postings)
			}
			entries[c.postings]++
		}
		if !c.many || !c.unique {
			continue
		}
		for _, s := range entry.Lists[c.slot] {
			n, err := number(context.Background(), conn, "SELECT count(*) FROM "+c.index+value, entry.Tenant, s, rid)
			if err != nil {
				return err
			}
			if n != 1 {
				return fmt.Errorf("document %s: no entry in %s", entry.ID, c.index)
			}
			entries[c.index]++
		}
	}
	return nil
}

// countEntries counts the rows in the tables of lists and the ids in those of postings.
func (t *table) countEntries(conn Conn) (map[string]int64, error) {
	counts := map[string]int64{}
	for _, c := range t.columns() {
		if c.many && c.unique {
			n, err := number(context.Background(), conn, "SELECT count(*) FROM "+c.index)
			if err != nil {
				return nil, err
			}
			counts[c.index] = n
		}
		if c.postings == "" {
			continue
		}
		err := conn.Query(context.Background(), "SELECT first, more FROM "+c.postings, nil, func(row Columns) error {
			unpack(row.Int(0), row.Bytes(1), func(int64) { counts[c.postings]++ })
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return counts, nil
}

func (e *Engine) checkCounters(ctx context.Context, conn Conn, t *table, counts map[counter]int64) error {
	const all = "SELECT tenant, n, '', '' FROM counters WHERE collection = ?1 " +
		"UNION ALL SELECT tenant, n, facet, value FROM facet_counters WHERE collection = ?1"
	err := conn.Query(ctx, all, []any{t.def.Name}, func(c Columns) error {
		of := counter{scope{t.def.Name, string(c.Bytes(0))}, string(c.Bytes(2)), string(c.Bytes(3))}
		if n := c.Int(1); n != counts[of] {
			return fmt.Errorf("the counter of %s is %d, there are %d documents", of, n, counts[of])
		}
		delete(counts, of)
		return nil
	})
	if err != nil {
		return err
	}
	for of := range counts {
		return fmt.Errorf("there is no counter of %s", of)
	}
	return nil
}

func (c counter) String() string {
	if c.index == "" {
		return "tenant " + c.tenant
	}
	return fmt.Sprintf("tenant %s, %s %q", c.tenant, c.index, c.value)
}
