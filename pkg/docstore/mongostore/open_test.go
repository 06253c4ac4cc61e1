package mongostore

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

func TestOpenProvesTransactions(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, nil)
	e, err := Open(t.Context(), s.options(t))
	require.NoError(t, err)
	require.Equal(t, []string{"create", "insert", "abortTransaction", "delete"}, s.names())
	require.Equal(t, probeCollection, s.the(t, "insert").Lookup("insert").StringValue())
	open, inUse := e.Connections()
	require.Positive(t, open)
	require.Zero(t, inUse)
	require.NoError(t, e.Close())
	open, _ = e.Connections()
	require.Zero(t, open)
}

func TestOpenRefusesServersWithoutTransactions(t *testing.T) {
	t.Parallel()
	standalone := func(s *fakeServer) { s.hello = nil }
	ignoresAbort := func(s *fakeServer) {
		s.answer = func(command string, _ bson.Raw) bson.D {
			if command == "delete" {
				return bson.D{{Key: "n", Value: 1}} // as if the aborted document existed
			}
			return nil
		}
	}
	for name, make := range map[string]func(*fakeServer){"a standalone server": standalone,
		"a server that ignores aborts": ignoresAbort} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFakeServer(t, nil)
			make(s)
			o := s.options(t)
			_, err := Open(t.Context(), o)
			require.ErrorContains(t, err, "replica set")

			var log bytes.Buffer
			o.AllowStandalone, o.Log = true, slog.New(slog.NewTextHandler(&log, nil))
			e, err := Open(t.Context(), o)
			require.NoError(t, err)
			require.Contains(t, log.String(), "level=ERROR")
			require.Contains(t, log.String(), "leaves incomplete writes")
			s.forget()
			require.NoError(t, e.Write(t.Context(), func(tx docstore.EngineTx) error {
				return tx.Insert(t.Context(), def, entry(newThing("a")))
			}))
			require.Equal(t, []string{"insert"}, s.names())
			require.NoError(t, e.Close())
		})
	}
}

func TestOpenWithoutServer(t *testing.T) {
	t.Parallel()
	const uri = "mongodb://127.0.0.1:1"
	_, err := Open(t.Context(), Options{URI: uri, Database: "db", Log: slog.New(slog.DiscardHandler),
		Select: 50 * time.Millisecond})
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err), "%v", err)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Open(ctx, Options{URI: uri, Database: "db", Log: slog.New(slog.DiscardHandler)})
	require.ErrorIs(t, err, context.Canceled)
}

func TestOpenTellsNoSecret(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{
		"mongodb://ada:hunter2", "mongodb://ada:hunter2:hunter2@localhost", "mongodb://ada:hunter2%zz@localhost/",
		"ada:hunter2@localhost", "mongodb://hunter2:x/?w=a&ssl=perhaps",
		"mongodb://ada:hunter2@localhost/?authMechanism=MONGODB-X509", "",
	} {
		_, err := Open(t.Context(), Options{URI: uri, Database: "db", Log: slog.New(slog.DiscardHandler),
			Select: time.Millisecond})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestReadsAndWritesAreMajority(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, nil)
	o := s.options(t)
	o.URI += "&readPreference=secondary&w=1&readConcernLevel=local&retryWrites=false"
	e, err := Open(t.Context(), o)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	s.forget()
	_, err = e.Get(t.Context(), def, "t1", []string{"a"})
	require.NoError(t, err)
	_, err = e.Reserve(t.Context(), "seq", 1)
	require.NoError(t, err)
	require.Equal(t, `{"level": "majority"}`, s.the(t, "find").Lookup("readConcern").String())
	require.NotContains(t, s.the(t, "find").String(), "secondary")
	reserve := s.the(t, "findAndModify")
	require.Equal(t, `{"w": "majority","j": true}`, reserve.Lookup("writeConcern").String())
	require.NotZero(t, reserve.Lookup("txnNumber").Type, "a write that is sent again must not count twice")
}
