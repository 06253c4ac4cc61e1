package sqlitestore

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// Prepare creates missing tables and indexes, in one transaction. A collection whose declaration has changed is written
// again from its documents; a crash in between leaves the file as it was.
func (e *Engine) Prepare(ctx context.Context, defs []*docstore.Def) error {
	tables := map[string]*table{}
	for _, def := range defs {
		t, err := newTable(def)
		if err != nil {
			return err
		}
		if tables[def.Name] != nil {
			return fmt.Errorf("sqlitestore: collection %s is declared twice", def.Name)
		}
		tables[def.Name] = t
	}
	err := e.writer.take(ctx, &turn{large: true}, func(conn Conn) error {
		if err := script(context.WithoutCancel(ctx), conn, ownTables); err != nil {
			return err
		}
		if err := setMeta(conn, "format", fmt.Sprint(format)); err != nil {
			return err
		}
		for _, def := range defs {
			if err := e.prepare(ctx, conn, def, tables[def.Name]); err != nil {
				return fmt.Errorf("collection %s: %w", def.Name, err)
			}
		}
		return nil
	})
	if err == nil {
		e.tables = tables
	}
	return err
}

func (e *Engine) prepare(ctx context.Context, conn Conn, def *docstore.Def, t *table) error {
	want, err := t.signature()
	if err != nil {
		return err
	}
	entry := "collection " + def.Name
	have, err := meta(conn, entry)
	if err != nil {
		return err
	}
	switch have {
	case want:
	case "":
		err = run(conn, t.ddl()...)
	default:
		err = e.rebuild(ctx, conn, def, t)
	}
	if err != nil {
		return err
	}
	if err := t.prepareCounters(conn, have == want); err != nil || have == want {
		return err
	}
	return setMeta(conn, entry, want)
}

// prepareCounters counts the documents of each value of counted indexes, unless the collection and the indexes that are
// counted are as before. The declaration's signature tells of facets, but not of the others.
func (t *table) prepareCounters(conn Conn, same bool) error {
	entry := "counted " + t.def.Name
	have, err := meta(conn, entry)
	if err != nil {
		return err
	}
	var names []string
	for _, c := range t.counts {
		if !c.facet {
			names = append(names, c.counter)
		}
	}
	want := strings.Join(names, " ")
	if same && have == want {
		return nil
	}
	if err := t.recount(conn); err != nil {
		return err
	}
	return setMeta(conn, entry, want)
}

// recount makes the counters of values again: an earlier declaration may have counted those of other indexes.
func (t *table) recount(conn Conn) error {
	for _, sql := range []string{
		"DELETE FROM facet_counters WHERE collection = ?1",
		"UPDATE counters SET changes = changes + 1 WHERE collection = ?1",
	} {
		if _, err := conn.Exec(context.Background(), sql, t.def.Name); err != nil {
			return err
		}
	}
	for _, c := range t.counts {
		sql := fmt.Sprintf("INSERT INTO facet_counters (collection, facet, tenant, value, n) "+
			"SELECT ?1, ?2, tenant, %s, count(*) FROM %s INDEXED BY %s GROUP BY tenant, %s",
			c.field, t.name, c.index, c.field)
		if _, err := conn.Exec(context.Background(), sql, t.def.Name, c.counter); err != nil {
			return err
		}
	}
	return nil
}

// rebuild writes a collection again, with the index entries that its current index functions make. The documents' bytes
// stay as they are.
func (e *Engine) rebuild(ctx context.Context, conn Conn, def *docstore.Def, t *table) error {
	old := quote(t.plain + "#old")
	total, err := number(ctx, conn, "SELECT count(*) FROM "+t.name)
	if err != nil {
		return err
	}
	log := e.log
	if total == 0 {
		log = slog.New(slog.DiscardHandler)
	}
	log.InfoContext(ctx, "rebuilding a collection, because its declaration has changed",
		"collection", def.Name, "documents", total)
	if err := dropDependents(conn, t); err != nil {
		return err
	}
	if err := run(conn, fmt.Sprintf("ALTER TABLE %s RENAME TO %s", t.name, old)); err != nil {
		return err
	}
	if err := run(conn, t.ddl()...); err != nil {
		return err
	}
	done, err := e.copyDocuments(ctx, conn, def, t, old, func(done int64) {
		log.InfoContext(ctx, "rebuilding a collection", "collection", def.Name, "done", done, "documents", total)
	})
	if err != nil {
		return err
	}
	if done != total {
		return fmt.Errorf("sqlitestore: %d of %d documents were rebuilt", done, total)
	}
	log.InfoContext(ctx, "the collection is rebuilt", "collection", def.Name, "documents", total)
	return run(conn, "DROP TABLE "+old)
}

// copyDocuments writes the documents of the table old into t, with new index entries, and returns their number. It
// calls report from time to time with the number so far.
func (e *Engine) copyDocuments(ctx context.Context, conn Conn, def *docstore.Def, t *table, old string,
	report func(done int64)) (done int64, err error) {
	const chunk, reportEach = 500, 20_000 // documents
	var entries late
	for after := int64(math.MinInt64); ; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		var docs []docstore.Row
		err := conn.Query(context.Background(),
			fmt.Sprintf("SELECT rid, counts, doc FROM %s WHERE rid > ?1 ORDER BY rid LIMIT %d", old, chunk),
			[]any{after}, func(c Columns) error {
				after = c.Int(0)
				docs = append(docs, docstore.Row{Stamp: docstore.Stamp{Counts: c.Int(1)},
					Data: append([]byte(nil), c.Bytes(2)...)})
				return nil
			})
		if err != nil {
			return 0, err
		}
		for _, doc := range docs {
			entry, err := def.Extract(e, doc.Data)
			if err != nil {
				return 0, err
			}
			entry.JSON, entry.Counts = doc.Data, doc.Counts
			if err := t.add(conn, def, entry, &entries); err != nil {
				return 0, err
			}
		}
		before := done
		if done += int64(len(docs)); before/reportEach != done/reportEach {
			report(done)
		}
		if len(docs) < chunk {
			break
		}
	}
	return done, entries.flush(conn)
}

// dropDependents drops all indexes and list tables of a collection, including those of an earlier declaration.
func dropDependents(conn Conn, t *table) error {
	var drops []string
	err := conn.Query(context.Background(), "SELECT type, name, tbl_name FROM sqlite_schema WHERE sql IS NOT NULL", nil,
		func(c Columns) error {
			kind, name, of := string(c.Bytes(0)), string(c.Bytes(1)), string(c.Bytes(2))
			switch {
			case kind == "index" && of == t.plain:
				drops = append(drops, "DROP INDEX "+quote(name))
			case kind == "table" && strings.HasPrefix(name, t.plain+"."):
				drops = append(drops, "DROP TABLE "+quote(name))
			}
			return nil
		})
	if err != nil {
		return err
	}
	return run(conn, drops...)
}

// run runs writing statements without arguments.
func run(conn Conn, statements ...string) error {
	for _, s := range statements {
		if _, err := conn.Exec(context.Background(), s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

func meta(conn Conn, name string) (string, error) {
	var value string
	err := conn.Query(context.Background(), "SELECT value FROM meta WHERE name = ?1", []any{name},
		func(c Columns) error {
			value = string(c.Bytes(0))
			return nil
		})
	return value, err
}

func setMeta(conn Conn, name, value string) error {
	_, err := conn.Exec(context.Background(),
		"INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value", name, value)
	return err
}
