package sqlitestore_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/request"
)

// note is a small document for tests of the engine itself.
type note struct {
	docstore.Meta
	Title string   `json:"title"`
	Code  string   `json:"code"`
	Shelf string   `json:"shelf"`
	Words []string `json:"words"`
	Keys  []string `json:"keys"`
}

func noteSchema(revision int) docstore.Schema[note] {
	return docstore.Schema[note]{
		Name: "notes", Noun: "note", Revision: revision,
		Indexes: []docstore.Index[note]{
			docstore.ByText("title", func(n *note) string { return n.Title }),
			docstore.Unique(docstore.ByText("code", func(n *note) string { return n.Code }), "code"),
			docstore.ByNumber("created", func(n *note) docstore.Value { return docstore.Moment(n.TimeCreated) }),
			docstore.Grouped(docstore.ByText("shelf", func(n *note) string { return n.Shelf }), "created"),
			docstore.ByList("words", func(n *note) []string { return n.Words }),
			docstore.Unique(docstore.ByList("keys", func(n *note) []string { return n.Keys }), "keys"),
		},
	}
}

var notes = docstore.Define(noteSchema(1))

// spy is a driver that records statements and can make them fail.
type spy struct {
	mu   sync.Mutex
	seen []string
	fail func(sql string) error
}

func (s *spy) open(ctx context.Context, path string) (sqlitestore.Conn, error) {
	conn, err := sqlitestore.Default(ctx, path)
	return spyConn{conn, s}, err
}

func (s *spy) statement(sql string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, sql)
	if s.fail != nil {
		return s.fail(sql)
	}
	return nil
}

// failOnce makes the next statement with this beginning fail with a result code of SQLite.
func (s *spy) failOnce(prefix string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = func(sql string) error {
		if !strings.HasPrefix(sql, prefix) {
			return nil
		}
		s.fail = nil
		return &sqlitestore.Failure{Code: code, Err: fmt.Errorf("code %d", code)}
	}
}

func (s *spy) count(sql string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, got := range s.seen {
		if got == sql {
			n++
		}
	}
	return n
}

type spyConn struct {
	sqlitestore.Conn
	spy *spy
}

func (c spyConn) Exec(ctx context.Context, sql string, args ...any) (sqlitestore.Result, error) {
	if err := c.spy.statement(sql); err != nil {
		return sqlitestore.Result{}, err
	}
	return c.Conn.Exec(ctx, sql, args...)
}

func (c spyConn) Query(ctx context.Context, sql string, args []any, each func(sqlitestore.Columns) error) error {
	if err := c.spy.statement(sql); err != nil {
		return err
	}
	return c.Conn.Query(ctx, sql, args, each)
}

type fixture struct {
	*docstore.Store
	engine *sqlitestore.Engine
	path   string
	spy    *spy
}

func open(t *testing.T) *fixture {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "a file?named #1 %41.db"), notes)
}

func openAt(t *testing.T, path string, c *docstore.Collection[note]) *fixture {
	t.Helper()
	f := &fixture{path: path, spy: &spy{}}
	var err error
	f.engine, err = sqlitestore.Open(t.Context(), sqlitestore.Options{Path: path, Driver: f.spy.open,
		Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	f.Store, err = docstore.Open(t.Context(), f.engine, clock.System, c.Def())
	if err != nil {
		require.NoError(t, f.engine.Close())
		require.NoError(t, err)
	}
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func tenant(t *testing.T) context.Context {
	return request.With(t.Context(), request.Info{Tenant: "t1"})
}

func (f *fixture) insert(ctx context.Context, list ...*note) error {
	_, err := docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (int, error) {
		for _, n := range list {
			c := *n
			if _, err := notes.Insert(ctx, tx, &c); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	return err
}

func (f *fixture) count(t *testing.T) int64 {
	t.Helper()
	n, err := notes.Count(tenant(t), f.Store, docstore.Filter{})
	require.NoError(t, err)
	return n
}

// script runs statements without the engine.
func (f *fixture) script(t *testing.T, statements ...string) {
	t.Helper()
	conn, err := sqlitestore.Default(t.Context(), f.path)
	require.NoError(t, err)
	for _, s := range statements {
		_, err := conn.Exec(t.Context(), s)
		require.NoError(t, err, s)
	}
	require.NoError(t, conn.Close())
}

func newNote(i int) *note {
	return &note{
		Meta: docstore.Meta{ID: fmt.Sprint(10_000 + i)}, Title: fmt.Sprint("title ", i%7), Code: fmt.Sprint("code", i),
		Shelf: fmt.Sprint(i % 4),
		Words: []string{"all", fmt.Sprint("w", i%10), fmt.Sprint("rare", i)}, Keys: []string{fmt.Sprint("k", i)},
	}
}
