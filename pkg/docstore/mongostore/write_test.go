package mongostore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

var errOwn = errors.New("the function's own error")

// writeConflict is the server's answer when another transaction was first.
func writeConflict() bson.D { return failed(112, labelTransient) }

// once answers the first command of a name with answer, not counting those of Open.
func once(name string, answer bson.D) func(string, bson.Raw) bson.D {
	done := false
	return func(command string, body bson.Raw) bson.D {
		collection, _ := body.Lookup(command).StringValueOK()
		if command == name && collection != probeCollection && !done {
			done = true
			return answer
		}
		return nil
	}
}

// other is a second collection.
var other = &docstore.Def{Name: "others", Indexes: def.Indexes, Revision: def.Revision}

func members(t *testing.T, c bson.Raw) map[string]any {
	t.Helper()
	var m map[string]any
	require.NoError(t, bson.Unmarshal(c, &m))
	return m
}

func TestWriteIsOneTransaction(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, nil)
	e := s.open(t)
	err := e.Write(t.Context(), func(tx docstore.EngineTx) error {
		require.NoError(t, tx.Append(t.Context(), docstore.Message{ID: "m1", Subject: "s", Record: "a", Sequence: 10}))
		require.NoError(t, tx.Append(t.Context(), docstore.Message{ID: "m2", Subject: "s", Record: "a", Sequence: 11}))
		return tx.Insert(t.Context(), def, entry(newThing("a")))
	})
	require.NoError(t, err)
	require.Equal(t, []string{"bulkWrite", "commitTransaction"}, s.names())
	all := s.all()
	require.Equal(t, []string{"insert things", "insert docstore.outbox", "insert docstore.outbox"}, operations(all[0]),
		"messages get their numbers when everything else is written")
	write, commit := members(t, all[0]), members(t, all[1])
	require.Equal(t, true, write["startTransaction"])
	require.Equal(t, false, write["autocommit"])
	require.Equal(t, "snapshot", write["readConcern"].(bson.D)[0].Value)
	require.NotContains(t, write, "writeConcern", "the write concern is sent with the commit")
	first, second := all[0].Lookup("ops", "1", "document"), all[0].Lookup("ops", "2", "document")
	require.Equal(t, first.Document().Lookup("_id").Int64()+1, second.Document().Lookup("_id").Int64())
	require.EqualValues(t, 10, first.Document().Lookup("sequence").Int64())
	require.Equal(t, bson.D{{Key: "w", Value: "majority"}, {Key: "j", Value: true}}, commit["writeConcern"])
}

// Servers before MongoDB 8.0 have no bulkWrite.
func TestWriteByCollection(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, nil)
	e := s.open(t)
	e.bulkWrite = false
	require.NoError(t, e.Write(t.Context(), func(tx docstore.EngineTx) error {
		for _, id := range []string{"a", "b", "c"} {
			if err := tx.Insert(t.Context(), def, entry(newThing(id))); err != nil {
				return err
			}
			if err := tx.Append(t.Context(), docstore.Message{ID: id}); err != nil {
				return err
			}
		}
		return nil
	}))
	require.Equal(t, []string{"insert", "insert", "commitTransaction"}, s.names(), "one for each collection")
}

// Own writes that wait to be sent answer reads by id, and are sent before a query that must see them.
func TestOwnWritesAreSeen(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, nil)
	e := s.open(t)
	require.NoError(t, e.Write(t.Context(), func(tx docstore.EngineTx) error {
		require.NoError(t, tx.Insert(t.Context(), def, entry(newThing("a"))))
		rows, err := tx.Get(t.Context(), def, "t1", []string{"a", "a"})
		require.NoError(t, err)
		require.Len(t, rows, 1)
		require.Empty(t, s.names(), "the document is known")
		_, err = tx.Find(t.Context(), other, "t1", docstore.Find{Limit: 1})
		require.NoError(t, err)
		require.Equal(t, []string{"find"}, s.names(), "a query about another collection")
		_, err = tx.Find(t.Context(), def, "t1", docstore.Find{Limit: 1})
		require.NoError(t, err)
		require.Equal(t, []string{"find", "bulkWrite", "find"}, s.names())
		require.NoError(t, tx.Delete(t.Context(), def, "t1", "a", docstore.Stamp{Version: 1}))
		rows, err = tx.Get(t.Context(), def, "t1", []string{"a"})
		require.Empty(t, rows)
		return err
	}))
	require.Equal(t, []string{"find", "bulkWrite", "find", "bulkWrite", "commitTransaction"}, s.names())
}

func TestWriteRunsAgainAfterAConflict(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]func(error) error{
		"returned unchanged": func(err error) error { return err },
		"wrapped":            func(err error) error { return fmt.Errorf("insert: %w", err) },
		"replaced":           func(error) error { return apperr.Taken("body.name") },
		"swallowed":          func(error) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFakeServer(t, once("bulkWrite", writeConflict()))
			e := s.open(t)
			runs := 0
			require.NoError(t, e.Write(t.Context(), func(tx docstore.EngineTx) error {
				runs++
				require.NoError(t, tx.Insert(t.Context(), def, entry(newThing("a"))))
				if err := tx.Flush(t.Context()); err != nil {
					return result(err)
				}
				return nil
			}))
			require.Equal(t, 2, runs)
			require.Equal(t, []string{"bulkWrite", "abortTransaction", "bulkWrite", "commitTransaction"}, s.names())
		})
	}
}

func TestWriteRunsAgainAfterAConflictAtCommit(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, once("commitTransaction", failed(251, labelTransient)))
	runs := 0
	require.NoError(t, s.open(t).Write(t.Context(), func(tx docstore.EngineTx) error {
		runs++
		return tx.Insert(t.Context(), def, entry(newThing("a")))
	}))
	require.Equal(t, 2, runs)
}

func TestWriteReturnsTheFunctionsError(t *testing.T) {
	t.Parallel()
	labelled := mongo.CommandError{Code: 112, Labels: []string{labelTransient}}
	for name, want := range map[string]error{
		"plain":          errOwn,
		"apperr":         apperr.Invalid("body.name", "is bad"),
		"with a label":   fmt.Errorf("from elsewhere: %w", labelled),
		"from elsewhere": apperr.Away("another store", errOwn),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFakeServer(t, nil)
			runs := 0
			err := s.open(t).Write(t.Context(), func(tx docstore.EngineTx) error {
				runs++
				require.NoError(t, tx.Insert(t.Context(), def, entry(newThing("a"))))
				require.NoError(t, tx.Append(t.Context(), docstore.Message{ID: "m"}))
				require.NoError(t, tx.Flush(t.Context()))
				return want
			})
			require.Equal(t, want, err)
			require.Equal(t, 1, runs)
			require.Equal(t, []string{"bulkWrite", "abortTransaction"}, s.names())
		})
	}
}

func TestWriteTurnsAPanicIntoAnError(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, nil)
	err := s.open(t).Write(t.Context(), func(tx docstore.EngineTx) error {
		require.NoError(t, tx.Insert(t.Context(), def, entry(newThing("a"))))
		require.NoError(t, tx.Flush(t.Context()))
		panic("boom")
	})
	require.ErrorContains(t, err, "boom")
	require.Equal(t, []string{"bulkWrite", "abortTransaction"}, s.names())
}

func TestCommitIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]bson.D{
		"unknown result":    failed(64, labelUnknownCommit),
		"connection broken": dead,
		"not primary":       failed(10107), // such an error has no label
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFakeServer(t, once("commitTransaction", answer))
			runs := 0
			require.NoError(t, s.open(t).Write(t.Context(), func(tx docstore.EngineTx) error {
				runs++
				return tx.Insert(t.Context(), def, entry(newThing("a")))
			}))
			require.Equal(t, 1, runs)
			require.Equal(t, []string{"bulkWrite", "commitTransaction", "commitTransaction"}, s.names())
		})
	}
}

// A caller that is told Unavailable may rely on nothing having changed.
func TestUnknownCommitIsNotUnavailable(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]bson.D{"unknown result": failed(64, labelUnknownCommit),
		"connection broken": dead} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFakeServer(t, func(command string, _ bson.Raw) bson.D {
				if command == "commitTransaction" {
					return answer
				}
				return nil
			})
			o := s.options(t)
			o.Select = 300 * time.Millisecond
			e, err := Open(t.Context(), o)
			require.NoError(t, err)
			defer func() { require.NoError(t, e.Close()) }()
			err = e.Write(t.Context(), func(tx docstore.EngineTx) error {
				return tx.Insert(t.Context(), def, entry(newThing("a")))
			})
			require.ErrorContains(t, err, "not known")
			require.Equal(t, apperr.OutcomeUnknown, apperr.KindOf(err))
		})
	}
}

func TestEndlessConflictIsUnavailable(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, func(command string, _ bson.Raw) bson.D {
		if command == "bulkWrite" {
			return writeConflict()
		}
		return nil
	})
	o := s.options(t)
	o.Timeout = 100 * time.Millisecond
	e, err := Open(t.Context(), o)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	err = e.Write(t.Context(), func(tx docstore.EngineTx) error {
		return tx.Insert(t.Context(), def, entry(newThing("a")))
	})
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err), "%v", err)
}

// TestServerAway: reads and writes give up after the same time, long before a transaction that meets conflicts does.
func TestServerAway(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, nil)
	o := s.options(t)
	o.Select, o.Timeout = 2*time.Second, time.Hour
	e, err := Open(t.Context(), o)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	inside := false
	err = e.Write(t.Context(), func(tx docstore.EngineTx) error {
		if !inside {
			inside = true
			_, err := tx.Get(t.Context(), def, "t1", []string{"a"})
			require.NoError(t, err)
			s.close()
		}
		return tx.Insert(t.Context(), def, entry(newThing("a")))
	})
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err), "%v", err)
	err = e.Write(t.Context(), func(tx docstore.EngineTx) error {
		return tx.Insert(t.Context(), def, entry(newThing("a")))
	})
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err), "%v", err)
	_, err = e.Get(t.Context(), def, "t1", []string{"a"})
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err), "%v", err)
}

func TestCancelledWithin(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, nil)
	e := s.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	runs := 0
	err := e.Write(ctx, func(tx docstore.EngineTx) error {
		runs++
		require.NoError(t, tx.Insert(ctx, def, entry(newThing("a"))))
		require.NoError(t, tx.Flush(ctx))
		cancel()
		require.NoError(t, tx.Insert(ctx, def, entry(newThing("b"))))
		return tx.Flush(ctx)
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, runs)
	require.Contains(t, s.names(), "abortTransaction")
	require.NotContains(t, s.names(), "commitTransaction")

	err = e.Write(ctx, func(docstore.EngineTx) error { t.Error("it ran"); return nil })
	require.ErrorIs(t, err, context.Canceled)
}

func TestCancelledAfterTheFunction(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	err := s.open(t).Write(ctx, func(tx docstore.EngineTx) error {
		require.NoError(t, tx.Insert(ctx, def, entry(newThing("a"))))
		require.NoError(t, tx.Flush(ctx))
		cancel()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, err.Error(), "not known")
	require.Equal(t, []string{"bulkWrite", "abortTransaction"}, s.names())
}

// The context of one operation may end before the transaction's. The driver takes that for a broken connection, after
// which it would try again.
func TestCancelledOperation(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	write := once("bulkWrite", dead)
	s := newFakeServer(t, func(command string, body bson.Raw) bson.D {
		answer := write(command, body)
		if answer != nil {
			cancel()
		}
		return answer
	})
	runs := 0
	err := s.open(t).Write(t.Context(), func(tx docstore.EngineTx) error {
		runs++
		require.NoError(t, tx.Insert(ctx, def, entry(newThing("a"))))
		return tx.Flush(ctx)
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, runs)
}

func duplicateOf(index int, field, value string) bson.D {
	return refusing(index, bson.E{Key: "code", Value: int32(11000)}, bson.E{Key: "errmsg", Value: "E11000 … secret"},
		bson.E{Key: "keyPattern", Value: bson.D{{Key: "tenant_id", Value: 1}, {Key: field, Value: 1}}},
		bson.E{Key: "keyValue", Value: bson.D{{Key: "tenant_id", Value: "t1"}, {Key: field, Value: value}}})
}

func TestDuplicateEndsTheTransaction(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, func(command string, _ bson.Raw) bson.D {
		if command == "bulkWrite" {
			return duplicateOf(1, "_ix.name", "ada")
		}
		return nil
	})
	e := s.open(t)
	refused := entry(newThing("a"))
	want := &docstore.DuplicateError{Collection: "things", Index: "name", Value: "ada", Entry: refused}
	for _, swallow := range []bool{false, true} {
		s.forget()
		err := e.Write(t.Context(), func(tx docstore.EngineTx) error {
			require.NoError(t, tx.Insert(t.Context(), other, entry(newThing("o"))))
			require.NoError(t, tx.Insert(t.Context(), def, refused))
			err := tx.Flush(t.Context())
			require.Equal(t, want, err)
			require.Equal(t, err, tx.Insert(t.Context(), def, entry(newThing("b"))),
				"the server would not know the transaction any more")
			_, again := tx.Get(t.Context(), def, "t1", []string{"a"})
			require.Equal(t, err, again)
			require.Equal(t, err, tx.Append(t.Context(), docstore.Message{}))
			if swallow {
				return nil
			}
			return err
		})
		require.Equal(t, want, err)
		require.Equal(t, []string{"bulkWrite", "abortTransaction"}, s.names())
	}
	s.forget()
	require.Equal(t, want, e.Write(t.Context(), func(tx docstore.EngineTx) error {
		require.NoError(t, tx.Insert(t.Context(), other, entry(newThing("o"))))
		return tx.Insert(t.Context(), def, refused)
	}), "when all is sent at the end")
	s.forget()
	twice := e.Write(t.Context(), func(tx docstore.EngineTx) error {
		require.NoError(t, tx.Insert(t.Context(), def, entry(newThing("a"))))
		return tx.Insert(t.Context(), def, refused)
	})
	require.Equal(t, &docstore.DuplicateError{Collection: "things", Value: "a", Entry: refused}, twice)
	require.Empty(t, s.names(), "a document that the transaction knows to exist")
}

// A number that another process has made, too, is replaced by a new one.
func TestNumberTakenTwice(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, once("bulkWrite", duplicateOf(0, "_id", "")))
	require.NoError(t, s.open(t).Write(t.Context(), func(tx docstore.EngineTx) error {
		return tx.Append(t.Context(), docstore.Message{ID: "m"})
	}))
	require.Equal(t, []string{"bulkWrite", "abortTransaction", "bulkWrite", "commitTransaction"}, s.names())
}

func TestNumbersGrow(t *testing.T) {
	t.Parallel()
	var n numbers
	last := int64(1 << 40) // more than any counter has reached
	for range 100 {
		first := n.take(3)
		require.Greater(t, first, last)
		last = first + 2
	}
}

func TestReplaceAndDeleteAtAVersion(t *testing.T) {
	t.Parallel()
	existing, err := stored(def, entry(newThing("a")))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		existing []any
		want     error
	}{
		"another version": {[]any{existing}, &docstore.VersionError{Current: 1}},
		"no document":     {nil, docstore.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFakeServer(t, func(command string, _ bson.Raw) bson.D {
				if command == "find" {
					return found(c.existing...)
				}
				return nil
			})
			e := s.open(t)
			require.Equal(t, c.want, e.Write(t.Context(), func(tx docstore.EngineTx) error {
				return tx.Replace(t.Context(), def, entry(newThing("a")), docstore.Stamp{Version: 3})
			}))
			require.Equal(t, c.want, e.Write(t.Context(), func(tx docstore.EngineTx) error {
				return tx.Delete(t.Context(), def, "t1", "a", docstore.Stamp{Version: 1, Counts: 2})
			}))
			require.Equal(t, []string{"find", "abortTransaction", "find", "abortTransaction"}, s.names())
		})
	}
	s := newFakeServer(t, func(command string, body bson.Raw) bson.D {
		switch command {
		case "find":
			return found(existing)
		case "bulkWrite":
			require.Equal(t, `{"_id": "t1/a","tenant_id": "t1","version": {"$numberLong":"1"},"_counts": null}`,
				body.Lookup("ops", "0", "filter").String())
		}
		return nil
	})
	require.NoError(t, s.open(t).Write(t.Context(), func(tx docstore.EngineTx) error {
		return tx.Replace(t.Context(), def, entry(newThing("a")), docstore.Stamp{Version: 1})
	}))
}

// A write that does not find the document that was read must not be committed.
func TestWriteThatMeetsNothing(t *testing.T) {
	t.Parallel()
	existing, err := stored(def, entry(newThing("a")))
	require.NoError(t, err)
	s := newFakeServer(t, func(command string, body bson.Raw) bson.D {
		switch command {
		case "find":
			return found(existing)
		case "bulkWrite":
			return append(found(), bson.E{Key: "nDeleted", Value: int32(0)})
		}
		return nil
	})
	err = s.open(t).Write(t.Context(), func(tx docstore.EngineTx) error {
		return tx.Delete(t.Context(), def, "t1", "a", docstore.Stamp{Version: 1})
	})
	require.ErrorContains(t, err, "did not find")
	require.Equal(t, []string{"find", "bulkWrite", "abortTransaction"}, s.names())
}

// What was read must be unchanged when the transaction commits. The server checks it, because the transaction changes a
// counter in the document.
func TestReadDocumentsAreTouched(t *testing.T) {
	t.Parallel()
	doc := func(id string) any {
		raw, err := stored(def, entry(newThing(id)))
		require.NoError(t, err)
		return raw
	}
	s := newFakeServer(t, func(command string, _ bson.Raw) bson.D {
		switch command {
		case "find":
			return found(doc("a"), doc("b"))
		case "aggregate":
			return found(bson.D{{Key: "n", Value: int32(2)}})
		}
		return nil
	})
	e := s.open(t)
	read := func(from docstore.Queries) {
		t.Helper()
		rows, err := from.Get(t.Context(), def, "t1", []string{"a", "b"})
		require.NoError(t, err)
		require.Len(t, rows, 2)
	}
	require.NoError(t, e.Write(t.Context(), func(tx docstore.EngineTx) error {
		read(tx)
		read(tx)
		return tx.Delete(t.Context(), def, "t1", "a", docstore.Stamp{Version: 1})
	}))
	require.Equal(t, []string{"find", "bulkWrite", "commitTransaction"}, s.names(),
		"known documents are not read again")
	bulk := s.the(t, "bulkWrite")
	require.Equal(t, []string{"delete things", "update things"}, operations(bulk))
	touch := bulk.Lookup("ops", "1").Document()
	require.Equal(t, `{"_id": {"$in": ["t1/b"]}}`, touch.Lookup("filter").String())
	require.Equal(t, `{"$inc": {"_reads": {"$numberLong":"1"}}}`, touch.Lookup("updateMods").String())
	require.True(t, touch.Lookup("multi").Boolean())

	s.forget()
	require.NoError(t, e.Write(t.Context(), func(tx docstore.EngineTx) error {
		n, err := tx.Count(t.Context(), def, "t1", docstore.Eq("name", docstore.Text("Ada")), 0)
		require.Equal(t, docstore.Total{N: 2}, n)
		if err != nil {
			return err
		}
		return tx.Append(t.Context(), docstore.Message{ID: "m"})
	}))
	require.Equal(t, []string{"aggregate", "bulkWrite", "commitTransaction"}, s.names())
	require.Equal(t, []string{"insert docstore.counts", "delete docstore.counts", "insert docstore.outbox"},
		operations(s.the(t, "bulkWrite")),
		"conflicts with transactions that count by the same filter, not with those that change what was counted")

	for _, who := range []func(tx docstore.EngineTx) error{
		func(tx docstore.EngineTx) error { read(tx); return nil },
		func(tx docstore.EngineTx) error {
			read(tx.Peek())
			return tx.Insert(t.Context(), other, entry(newThing("o")))
		},
	} {
		s.forget()
		require.NoError(t, e.Write(t.Context(), who))
		for _, c := range s.all() {
			require.NotContains(t, operations(c), "update things",
				"a transaction that writes nothing, or only reads, conflicts with nobody")
		}
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, nil)
	e, err := Open(t.Context(), s.options(t))
	require.NoError(t, err)
	inside, release := make(chan struct{}), make(chan struct{})
	written, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		written <- e.Write(t.Context(), func(tx docstore.EngineTx) error {
			close(inside)
			<-release
			return tx.Insert(t.Context(), def, entry(newThing("a")))
		})
	}()
	<-inside
	go func() { closed <- e.Close() }()
	wait.Until(t, func() bool { // until Close waits for its lock
		free := e.closing.TryRLock()
		if free {
			e.closing.RUnlock()
		}
		return !free
	})
	require.Empty(t, closed, "a transaction is running")
	close(release)
	require.NoError(t, <-written)
	require.NoError(t, <-closed)
	require.ErrorIs(t, e.Write(t.Context(), func(docstore.EngineTx) error { return nil }), errClosed)
	require.NoError(t, e.Close())
	require.Equal(t, apperr.Unavailable, apperr.KindOf(e.Ping(t.Context())))
	require.Contains(t, s.names(), "commitTransaction")
}
