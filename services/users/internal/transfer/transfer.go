// Package transfer imports and exports users in bulk, as NDJSON or CSV streams of any length in bounded memory.
//
// An import is stored in batches. Each is one transaction with its results. With an Idempotency-Key the results are
// stored beside the users, so that an interrupted import can be sent again: batches that were stored are recognised by
// their bytes and answered with the stored results.
package transfer

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/users/internal/user"
)

const (
	batchSize   = 2000    // records; other writers wait about 0.2 s for a batch
	maxBatch    = 4 << 20 // bytes; a batch that has reached this size takes no further record
	maxLine     = 1 << 20 // bytes of a record
	maxColumns  = 100
	keepResults = 24 * time.Hour
)

// storedBatch has the results of one batch of an import with an Idempotency-Key. Its id is made of the key and the
// batch's number.
type storedBatch struct {
	docstore.Meta
	Print   string          `json:"print"` // fingerprint of the batch
	Results []user.Imported `json:"results"`
	Until   clock.Time      `json:"expires"`
}

var storedBatches = docstore.Define(docstore.Schema[storedBatch]{
	Name: "imports", Noun: "import", NoIfMatch: true,
	Due: func(b *storedBatch) clock.Time { return b.Until },
})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{storedBatches.Def()} }

// Deps are what Transfers need. All are required.
type Deps struct {
	Store *docstore.Store
	Users *user.Users
	Log   *slog.Logger
}

// Transfers are the use cases.
type Transfers struct{ Deps }

// New makes the use cases.
func New(d Deps) *Transfers { return &Transfers{d} }

// ImportOptions are the options of an import.
type ImportOptions struct {
	Format Format
	user.ImportOptions
	Key     string // identifies the import and its caller (rest.KeyOf); may be empty
	Secrets bool   // the caller may set passwords
}

// Line is the result of one record, in the form of the answer.
type Line struct {
	Line int64 `json:"line"`
	user.Imported
}

// block is a batch that is being processed: its records as received, and later parsed.
type block struct {
	number int
	first  int64 // line number
	last   bool  // the stream ends after it

	records []record
	parsed  []*user.Import
}

// Import reads body to its end and then returns the results: one Line of NDJSON for each record, in order. If it fails,
// the records that were stored before stay stored; the error says how many they are.
func (t *Transfers) Import(ctx context.Context, body io.Reader, o ImportOptions) (*Results, error) {
	results, err := newResults()
	if err != nil {
		return nil, err
	}
	if err := t.run(ctx, body, o, results); err != nil {
		results.Close()
		if e, ok := errors.AsType[*apperr.Error](err); ok && results.lines > 0 && e != errRefused && e != errTried {
			partial := *e
			partial.Detail = fmt.Sprintf(
				"%s (%d records are stored; the same request with the same Idempotency-Key continues after them)",
				e.Detail, results.lines)
			return nil, &partial
		}
		return nil, err
	}
	return results, nil
}

// run is a pipeline of three goroutines: one reads blocks, one parses them, and one stores them.
func (t *Transfers) run(ctx context.Context, body io.Reader, o ImportOptions, results *Results) error {
	group, ctx := errgroup.WithContext(ctx)
	read, parsed := make(chan block), make(chan block)
	group.Go(func() error {
		defer close(read)
		return split(ctx, newReader(o.Format, body, user.IsImportMember), read)
	})
	group.Go(func() error {
		defer close(parsed)
		for b := range read {
			if err := t.parse(ctx, &b, o.Secrets); err != nil {
				return err
			}
			select {
			case parsed <- b:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	group.Go(func() error {
		var seen user.Seen
		if docstore.IsDryRun(ctx) { // nothing is stored that would tell later batches about earlier ones
			seen = user.Seen{}
		}
		for b := range parsed {
			imported, replayed, err := t.storeBlock(ctx, b, o, seen)
			if err != nil {
				return err
			}
			if len(seen) > maxSeen {
				return errTried
			}
			results.Replayed = replayed && (results.Replayed || b.number == 0)
			if err := results.add(b.first, imported); err != nil {
				return err
			}
			if results.lines%(20*batchSize) == 0 {
				t.Log.InfoContext(ctx, "import continues", "records", results.lines)
			}
		}
		return nil
	})
	return group.Wait()
}

// split cuts the stream into blocks. It passes a block on when it knows whether that is the last one, so that a longer
// or shorter stream has a different last block. If the stream breaks off, the current block is dropped.
func split(ctx context.Context, records reader, out chan<- block) error {
	b, size := block{first: 1}, 0
	send := func() error {
		select {
		case out <- b:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for {
		r, err := records.next()
		if b.last = errors.Is(err, io.EOF); b.last && len(b.records) > 0 {
			return send()
		} else if b.last {
			return nil
		}
		if err != nil {
			return err
		}
		if len(b.records) == batchSize || size >= maxBatch {
			if err := send(); err != nil {
				return err
			}
			b, size = block{number: b.number + 1, first: b.first + int64(len(b.records))}, 0
		}
		b.records, size = append(b.records, r), size+len(r.raw)
	}
}

func (t *Transfers) parse(ctx context.Context, b *block, secrets bool) error {
	b.parsed = make([]*user.Import, len(b.records))
	group, ctx := errgroup.WithContext(ctx)
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		group.Go(func() error {
			for i := w; i < len(b.records); i += workers {
				if fault := b.records[i].fault; fault != "" {
					b.parsed[i] = user.BadImport(fault)
					continue
				}
				parsed, err := t.Users.ParseImport(ctx, b.records[i].raw, secrets)
				if err != nil {
					return err
				}
				b.parsed[i] = parsed
			}
			return nil
		})
	}
	return group.Wait()
}

// storeBlock stores a block, or returns its stored results if it was stored before.
func (t *Transfers) storeBlock(ctx context.Context, b block, o ImportOptions, seen user.Seen) (_ []user.Imported,
	replayed bool, _ error) {
	if o.Key == "" || docstore.IsDryRun(ctx) {
		imported, err := t.Users.ImportMany(ctx, b.parsed, o.ImportOptions, seen,
			func(*docstore.Tx, []user.Imported) error { return nil })
		return imported, false, err
	}
	now := storedBatch{Print: b.print(t.Users.HashKey, o)}
	now.ID = fmt.Sprintf("%s/%d", o.Key, b.number)
	if doc, err := storedBatches.Find(ctx, t.Store, now.ID); err == nil {
		before, err := doc.Value()
		if err != nil {
			return nil, false, err
		}
		if before.Print != now.Print {
			return nil, false, apperr.New(apperr.IdempotencyKeyReused, "the key was used with another import")
		}
		return before.Results, true, nil
	} else if !apperr.IsNotFound(err) {
		return nil, false, err
	}
	imported, err := t.Users.ImportMany(ctx, b.parsed, o.ImportOptions, nil,
		func(tx *docstore.Tx, results []user.Imported) error {
			batch := now
			batch.Results, batch.Until = results, tx.Now.Add(keepResults)
			_, err := storedBatches.Insert(ctx, tx, &batch)
			return err
		})
	duplicate, ok := errors.AsType[*docstore.DuplicateError](err)
	if ok && duplicate.Collection == storedBatches.Def().Name {
		return nil, false, apperr.New(apperr.RequestInProgress, "another import with this key is running").Because(err)
	}
	return imported, false, err
}

// print is the fingerprint of a batch: of its records, its place at the end of the stream, and the options. It has a
// key, because a password could be guessed by it.
func (b *block) print(key []byte, o ImportOptions) string {
	h := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(h, "%s %s %d %t\n", o.Format, o.OnConflict, len(b.records), b.last)
	if o.Invite {
		_, _ = io.WriteString(h, "invite\n")
	}
	for _, r := range b.records {
		_, _ = fmt.Fprintf(h, "%d\n", len(r.raw))
		_, _ = h.Write(r.raw)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Due lists stored results that have expired.
func Due(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return storedBatches.Due(ctx, s, limit)
}

// Forget deletes the results of a batch.
func (t *Transfers) Forget(ctx context.Context, id string) error {
	return docstore.Do(ctx, t.Store, func(tx *docstore.Tx) error {
		return storedBatches.DeleteWhere(ctx, tx, docstore.ID(id), nil)
	})
}

// Results are the results of an import. They are in a temporary file until the whole body is read, because many clients
// read nothing before they have sent everything.
type Results struct {
	Replayed bool // nothing is new: the same import was done before

	file  *os.File
	out   *bufio.Writer
	lines int64

	failed int
}

// maxFailed bounds the results of an import: a refused record takes far less in the request than its faults in the
// answer.
const maxFailed = 100_000

// maxSeen bounds the login names that a dry run remembers.
const maxSeen = 1_000_000

var (
	errRefused = apperr.New(apperr.TooLarge, "more than %d records of the import are refused: begin with a "+
		"part of it", maxFailed)
	errTried = apperr.New(apperr.TooLarge, "a dry run has at most %d login names: try a part of the import", maxSeen)
)

func newResults() (*Results, error) {
	file, err := os.CreateTemp("", "idp-import-*")
	if err != nil {
		return nil, fmt.Errorf("spool the results: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil { // the file disappears with the process, however that ends
		_ = file.Close()
		return nil, fmt.Errorf("spool the results: %w", err)
	}
	return &Results{file: file, out: bufio.NewWriterSize(file, 64<<10)}, nil
}

func (r *Results) add(first int64, imported []user.Imported) error {
	enc := json.NewEncoder(r.out)
	for i := range imported {
		if err := enc.Encode(Line{first + int64(i), imported[i]}); err != nil {
			return fmt.Errorf("spool the results: %w", err)
		}
		if imported[i].Status == user.Failed {
			r.failed++
		}
	}
	r.lines += int64(len(imported))
	if r.failed > maxFailed {
		return errRefused
	}
	return nil
}

// WriteTo writes all lines.
func (r *Results) WriteTo(w io.Writer) (int64, error) {
	if err := r.out.Flush(); err != nil {
		return 0, err
	}
	if _, err := r.file.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return io.Copy(w, r.file)
}

// Close closes the file.
func (r *Results) Close() { _ = r.file.Close() }
