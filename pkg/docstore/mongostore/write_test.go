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
)

var errOwn = errors.New("the function's own")

// writeConflict is what the server says when another transaction was first.
func writeConflict() bson.D { return failed(112, labelTransient) }

// once gives an answer to the first command of a name, not counting those of Open.
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
		require.NoError(t, tx.Append(t.Context(), docstore.Message{ID: "m1", Subject: "s", Record: "a"}))
		require.NoError(t, tx.Append(t.Context(), docstore.Message{ID: "m2", Subject: "s", Record: "a"}))
		return tx.Insert(t.Context(), def, entry(newThing("a")))
	})
	require.NoError(t, err)
	require.Equal(t, []string{"insert", "findAndModify", "insert", "commitTransaction"}, s.names(), "numbers are taken when all is written")
	all := s.all()
	insert, numbers, outbox, commit := members(t, all[0]), members(t, all[1]), all[2], members(t, all[3])

	require.Equal(t, true, insert["startTransaction"])
	require.Equal(t, false, insert["autocommit"])
	require.Equal(t, "snapshot", insert["readConcern"].(bson.D)[0].Value)
	require.NotContains(t, insert, "writeConcern", "a transaction has one when it commits")

	require.Equal(t, sequencesCollection, numbers["findAndModify"])
	require.NotContains(t, numbers, "autocommit", "not in the transaction")
	require.NotEqual(t, insert["lsid"], numbers["lsid"])
	require.Equal(t, "majority", numbers["writeConcern"].(bson.D)[0].Value)

	require.Equal(t, outboxCollection, outbox.Lookup("insert").StringValue())
	require.False(t, outbox.Lookup("autocommit").Boolean())
	require.EqualValues(t, 6, outbox.Lookup("documents", "0", "_id").Int64(), "of two numbers up to 7")
	require.EqualValues(t, 7, outbox.Lookup("documents", "1", "_id").Int64())
	require.Equal(t, bson.D{{Key: "w", Value: "majority"}, {Key: "j", Value: true}}, commit["writeConcern"])
}

func TestWriteRunsAgainAfterAConflict(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]func(error) error{
		"as it is":  func(err error) error { return err },
		"wrapped":   func(err error) error { return fmt.Errorf("insert: %w", err) },
		"replaced":  func(error) error { return apperr.Taken("body.name") },
		"swallowed": func(error) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFakeServer(t, once("insert", writeConflict()))
			e := s.open(t)
			runs := 0
			require.NoError(t, e.Write(t.Context(), func(tx docstore.EngineTx) error {
				runs++
				if err := tx.Insert(t.Context(), def, entry(newThing("a"))); err != nil {
					return result(err)
				}
				return nil
			}))
			require.Equal(t, 2, runs)
			require.Equal(t, []string{"insert", "abortTransaction", "insert", "commitTransaction"}, s.names())
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
				return want
			})
			require.Equal(t, want, err)
			require.Equal(t, 1, runs)
			require.Equal(t, []string{"insert", "abortTransaction"}, s.names())
		})
	}
}

func TestWriteTurnsAPanicIntoAnError(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, nil)
	err := s.open(t).Write(t.Context(), func(tx docstore.EngineTx) error {
		require.NoError(t, tx.Insert(t.Context(), def, entry(newThing("a"))))
		panic("boom")
	})
	require.ErrorContains(t, err, "boom")
	require.Equal(t, []string{"insert", "abortTransaction"}, s.names())
}

func TestCommitIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]bson.D{
		"unknown result":    failed(64, labelUnknownCommit),
		"connection broken": dead,
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
			require.Equal(t, []string{"insert", "commitTransaction", "commitTransaction"}, s.names())
		})
	}
}

// A caller who is told Unavailable may believe that nothing was changed.
func TestUnknownCommitIsNotUnavailable(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]bson.D{"unknown result": failed(64, labelUnknownCommit), "connection broken": dead} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFakeServer(t, func(command string, _ bson.Raw) bson.D {
				if command == "commitTransaction" {
					return answer
				}
				return nil
			})
			o := s.options(t)
			o.Timeout = 300 * time.Millisecond
			e, err := Open(t.Context(), o)
			require.NoError(t, err)
			defer func() { require.NoError(t, e.Close()) }()
			err = e.Write(t.Context(), func(tx docstore.EngineTx) error {
				return tx.Insert(t.Context(), def, entry(newThing("a")))
			})
			require.ErrorContains(t, err, "not known")
			require.Equal(t, apperr.Internal, apperr.KindOf(err))
		})
	}
}

func TestEndlessConflictIsUnavailable(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, func(_ string, body bson.Raw) bson.D {
		if name, _ := body.Lookup("insert").StringValueOK(); name == def.Name {
			return writeConflict()
		}
		return nil
	})
	o := s.options(t)
	o.Timeout = 100 * time.Millisecond
	e, err := Open(t.Context(), o)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	err = e.Write(t.Context(), func(tx docstore.EngineTx) error { return tx.Insert(t.Context(), def, entry(newThing("a"))) })
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
		cancel()
		return tx.Insert(ctx, def, entry(newThing("b")))
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
		cancel()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, err.Error(), "not known")
	require.Equal(t, []string{"insert", "abortTransaction"}, s.names())
}

// The context of one operation may end before the transaction's. For the driver that is a broken connection, after which it would try
// again.
func TestCancelledOperation(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	insert := once("insert", dead)
	s := newFakeServer(t, func(command string, body bson.Raw) bson.D {
		answer := insert(command, body)
		if answer != nil {
			cancel()
		}
		return answer
	})
	runs := 0
	err := s.open(t).Write(t.Context(), func(tx docstore.EngineTx) error {
		runs++
		return tx.Insert(ctx, def, entry(newThing("a")))
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, runs)
}

func duplicateOf(field, value string) bson.D {
	return bson.D{{Key: "n", Value: 0}, {Key: "writeErrors", Value: bson.A{bson.D{
		{Key: "index", Value: 0}, {Key: "code", Value: 11000}, {Key: "errmsg", Value: "E11000 duplicate key error … secret"},
		{Key: "keyPattern", Value: bson.D{{Key: "tenant_id", Value: 1}, {Key: field, Value: 1}}},
		{Key: "keyValue", Value: bson.D{{Key: "tenant_id", Value: "t1"}, {Key: field, Value: value}}},
	}}}}
}

func TestDuplicateEndsTheTransaction(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, func(_ string, body bson.Raw) bson.D {
		if name, _ := body.Lookup("insert").StringValueOK(); name == def.Name {
			return duplicateOf("_ix.name", "ada")
		}
		return nil
	})
	e := s.open(t)
	for _, swallow := range []bool{false, true} {
		s.forget()
		err := e.Write(t.Context(), func(tx docstore.EngineTx) error {
			err := tx.Insert(t.Context(), def, entry(newThing("a")))
			require.Equal(t, &docstore.DuplicateError{Collection: "things", Index: "name", Value: "ada"}, err)
			require.Equal(t, err, tx.Insert(t.Context(), def, entry(newThing("b"))), "the server would not know of a transaction any more")
			_, again := tx.Get(t.Context(), def, "t1", []string{"a"})
			require.Equal(t, err, again)
			require.Equal(t, err, tx.Append(t.Context(), docstore.Message{}))
			if swallow {
				return nil
			}
			return err
		})
		require.Equal(t, &docstore.DuplicateError{Collection: "things", Index: "name", Value: "ada"}, err)
		require.Equal(t, []string{"insert", "abortTransaction"}, s.names())
	}
}

func TestReplaceAndDeleteAtAVersion(t *testing.T) {
	t.Parallel()
	stored := bson.D{{Key: "_id", Value: "t1/a"}, {Key: "version", Value: int64(5)}}
	for name, c := range map[string]struct {
		there any
		want  error
	}{
		"another version": {stored, &docstore.VersionError{Current: 5}},
		"not there":       {nil, docstore.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFakeServer(t, func(command string, _ bson.Raw) bson.D {
				switch {
				case command == "findAndModify":
					return bson.D{{Key: "value", Value: nil}}
				case command == "find" && c.there != nil:
					return found(c.there)
				}
				return nil
			})
			e := s.open(t)
			require.Equal(t, c.want, e.Write(t.Context(), func(tx docstore.EngineTx) error {
				return tx.Replace(t.Context(), def, entry(newThing("a")), docstore.Stamp{Version: 3})
			}))
			require.Equal(t, `{"_id": "t1/a","tenant_id": "t1","version": {"$numberLong":"3"},"_counts": null}`, s.the(t, "findAndModify").Lookup("query").String())
			s.forget()
			require.Equal(t, c.want, e.Write(t.Context(), func(tx docstore.EngineTx) error {
				return tx.Delete(t.Context(), def, "t1", "a", docstore.Stamp{Version: 3, Counts: 2})
			}))
			remove := s.the(t, "findAndModify")
			require.True(t, remove.Lookup("remove").Boolean())
			require.EqualValues(t, 2, remove.Lookup("query", "_counts").Int64())
		})
	}
}

// What was read must not have changed when the transaction commits; the server sees to it if the document is changed a little.
func TestReadDocumentsAreTouched(t *testing.T) {
	t.Parallel()
	doc := func(id string) any {
		raw, err := stored(def, entry(newThing(id)))
		require.NoError(t, err)
		return raw
	}
	s := newFakeServer(t, func(command string, _ bson.Raw) bson.D {
		if command == "find" {
			return found(doc("a"), doc("b"))
		}
		return nil
	})
	e := s.open(t)
	read := func(tx docstore.EngineTx) {
		_, err := tx.Get(t.Context(), def, "t1", []string{"a", "b"})
		require.NoError(t, err)
	}
	require.NoError(t, e.Write(t.Context(), func(tx docstore.EngineTx) error {
		read(tx)
		if err := tx.Delete(t.Context(), def, "t1", "a", docstore.Stamp{Version: 1}); err != nil {
			return err
		}
		read(tx)
		return nil
	}))
	require.Equal(t, []string{"find", "findAndModify", "find", "update", "commitTransaction"}, s.names())
	update := s.the(t, "update").Lookup("updates", "0")
	require.Equal(t, `{"q": {"_id": {"$in": ["t1/b"]}},"u": {"$inc": {"_reads": {"$numberLong":"1"}}},"multi": true}`, update.String())

	s.forget()
	require.NoError(t, e.Write(t.Context(), func(tx docstore.EngineTx) error {
		n, err := tx.Count(t.Context(), def, "t1", docstore.Eq("name", docstore.Text("Ada")), 0)
		require.Equal(t, docstore.Total{N: 2}, n)
		if err != nil {
			return err
		}
		return tx.Append(t.Context(), docstore.Message{ID: "m"})
	}))
	require.Equal(t, []string{"find", "update", "findAndModify", "insert", "commitTransaction"}, s.names(), "what was counted too")

	s.forget()
	require.NoError(t, e.Write(t.Context(), func(tx docstore.EngineTx) error {
		read(tx)
		return nil
	}))
	require.NotContains(t, s.names(), "update", "who writes nothing disturbs nobody")
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
	require.Eventually(t, func() bool { // until Close waits for its lock
		free := e.closing.TryRLock()
		if free {
			e.closing.RUnlock()
		}
		return !free
	}, 5*time.Second, time.Millisecond)
	require.Empty(t, closed, "a transaction is running")
	close(release)
	require.NoError(t, <-written)
	require.NoError(t, <-closed)
	require.ErrorIs(t, e.Write(t.Context(), func(docstore.EngineTx) error { return nil }), errClosed)
	require.NoError(t, e.Close())
	require.Equal(t, apperr.Unavailable, apperr.KindOf(e.Ping(t.Context())))
	require.Contains(t, s.names(), "commitTransaction")
}
