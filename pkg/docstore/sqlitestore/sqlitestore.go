// Package sqlitestore stores documents in one SQLite file. It is the storage engine for an installation on one machine.
//
// Each collection is a table. It has a real column for every single-value index, filled by Go so that both engines
// agree on what a value is, and the document's JSON as a blob. Words, facets and spans of values have postings, which
// are sets of documents in a table of their own (postings.go). A unique list index is a table of (tenant, value,
// document). One connection writes. It commits the transactions of many callers together (writer.go), so that every
// acknowledged write survives power loss at little cost. A few other connections read.
//
// A file must be used by one process at a time; the program that opens it is responsible for locking it. Two engines in
// one process on one file are safe, but slow.
package sqlitestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// Options say how a file is opened.
type Options struct {
	// Path is the database file, created if missing; its folder must exist. SQLite puts two more files beside it.
	Path   string
	Driver Driver       // nil means Default
	Log    *slog.Logger // required
	// Cache is how many bytes these caches may take together; 0 means DefaultCache: SQLite's page cache of the writer
	// (one half), those of the readers (three eighths), and the first pages of lists (one eighth).
	Cache int64
}

// DefaultCache is the value of Options.Cache if that is 0.
const DefaultCache = 64_000 << 10

// Engine is a docstore.Engine on one file.
type Engine struct {
	driver  Driver
	path    string
	log     *slog.Logger
	tables  map[string]*table // by collection; only Prepare writes it
	writer  *writer
	readers *readers
	results *results
	pages   *pages
	closing sync.Once
	closed  error
}

var _ docstore.Engine = (*Engine)(nil)

// Open opens the file or creates it. It refuses a file of a later format.
func Open(ctx context.Context, opts Options) (*Engine, error) {
	if opts.Driver == nil {
		opts.Driver = Default
	}
	if err := makeFile(opts.Path); err != nil {
		return nil, fmt.Errorf("open %s: %w", opts.Path, err)
	}
	eighth := cmp.Or(opts.Cache, DefaultCache) / 8
	conn, err := connect(ctx, opts.Driver, opts.Path, writing+cacheSize(4*eighth))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", opts.Path, err)
	}
	if err := errors.Join(checkJournal(ctx, conn), checkFormat(ctx, conn)); err != nil {
		return nil, fmt.Errorf("open %s: %w", opts.Path, errors.Join(err, conn.Close()))
	}
	e := &Engine{driver: opts.Driver, path: opts.Path, log: opts.Log, tables: map[string]*table{},
		results: newResults(), pages: newPages(eighth)}
	e.readers = newReaders(func(ctx context.Context) (Conn, error) {
		return connect(ctx, opts.Driver, opts.Path, reading+cacheSize(3*eighth/maxReaders))
	})
	e.writer = startWriter(conn)
	return e, nil
}

// makeFile creates a missing file that only its owner can read. SQLite gives the files beside it the same mode.
func makeFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// checkJournal refuses a file system without shared memory: SQLite would silently use another journal, with which
// readers and writers block each other.
func checkJournal(ctx context.Context, conn Conn) error {
	return conn.Query(ctx, "PRAGMA journal_mode", nil, func(c Columns) error {
		if mode := string(c.Bytes(0)); mode != "wal" {
			return fmt.Errorf("the file system allows no write-ahead log; the journal is %q", mode)
		}
		return nil
	})
}

// The pragmas of each kind of connection. busy_timeout comes first, so that it holds for the others. SQLite copies the
// write-ahead log into the file at 16 MiB. After a large transaction it cuts the log to 32 MiB when the log starts
// again.
const (
	common = "PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = off; PRAGMA temp_store = memory; " +
		"PRAGMA trusted_schema = off; "
	writing = common + "PRAGMA journal_mode = wal; PRAGMA synchronous = full; " +
		"PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 33554432"
	reading = common + "PRAGMA query_only = on"
)

// cacheSize bounds a connection's page cache, which grows as pages are read.
func cacheSize(bytes int64) string { return fmt.Sprintf("; PRAGMA cache_size = -%d", bytes>>10) }

func connect(ctx context.Context, driver Driver, path, pragmas string) (Conn, error) {
	conn, err := driver(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := script(ctx, conn, pragmas); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Ping uses the writer and a reader, so that it fails if either is stuck.
func (e *Engine) Ping(ctx context.Context) error {
	if err := e.Write(ctx, func(docstore.EngineTx) error { return nil }); err != nil {
		return err
	}
	return e.read(ctx, func(conn Conn) error {
		_, err := number(ctx, conn, "SELECT 1")
		return err
	})
}

// Decode decodes a document's JSON. It does not check for duplicate names and invalid UTF-8: docstore has encoded it.
func (e *Engine) Decode(data []byte, into any) error {
	return json.Unmarshal(data, into, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// DataIsJSON returns true: a row's data are the stored JSON.
func (e *Engine) DataIsJSON() bool { return true }

// Close runs the queued transactions, waits for readers and closes the file. Later calls of all methods fail; a second
// Close does nothing.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		e.closed = errors.Join(e.readers.close(), e.writer.close())
	})
	return e.closed
}

var errClosed = errors.New("sqlitestore: closed")

func (e *Engine) table(def *docstore.Def) (*table, error) {
	if t := e.tables[def.Name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("sqlitestore: collection %s was not prepared", def.Name)
}
