package service

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/bus/embedded"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

func newRecorder() *httptest.ResponseRecorder { return httptest.NewRecorder() }

func newRequest(path string) *http.Request { return httptest.NewRequest(http.MethodGet, path, nil) }

func openEngine(t *testing.T) docstore.Engine {
	t.Helper()
	engine, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: filepath.Join(t.TempDir(), "test.db"),
		Log: quiet()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	return engine
}

func openStore(t *testing.T, engine docstore.Engine) *docstore.Store {
	t.Helper()
	store, err := docstore.Open(t.Context(), engine, clock.System, Spec{}.Defs()...)
	require.NoError(t, err)
	return store
}

func TestDataKeysStayOverRestartsAndRotations(t *testing.T) {
	t.Parallel()
	engine, ctx := openEngine(t), context.Background()
	a, b := newKey("a"), newKey("b")
	ask := func(purpose string, entries ...string) ([]byte, error) {
		// a new store is like a restart
		return Deps{Store: openStore(t, engine), Keys: keyring(t, entries...)}.DataKey(ctx, purpose)
	}
	first, err := ask("hashes", a)
	require.NoError(t, err)
	require.Len(t, first, 32)
	other, err := ask("others", a)
	require.NoError(t, err)
	require.NotEqual(t, first, other)
	for _, ring := range [][]string{{a}, {a, b}, {b, a}, {b}} { // (b, a) seals it again, so that b alone opens it
		again, err := ask("hashes", ring...)
		require.NoError(t, err, ring)
		require.Equal(t, first, again)
		deps := Deps{Store: openStore(t, engine), Keys: keyring(t, ring...)}
		require.NoError(t, deps.resealDataKeys(ctx))
	}
	_, err = ask("hashes", a)
	require.ErrorContains(t, err, "the key for hashes was sealed under a key that is not configured")
	require.NotContains(t, err.Error(), hex.EncodeToString(first))
}

// racing is an engine on which two replicas meet: both find no key, and both insert one.
type racing struct {
	docstore.Engine
	once sync.Once
	meet func()
}

type racingTx struct {
	docstore.EngineTx
	lost *bool
}

func (e *racing) Write(ctx context.Context, fn func(docstore.EngineTx) error) error {
	lost := false
	e.once.Do(func() { lost = true; e.meet() })
	return e.Engine.Write(ctx, func(tx docstore.EngineTx) error { return fn(racingTx{tx, &lost}) })
}

// Get hides what the other replica has inserted, as an earlier snapshot would.
func (tx racingTx) Get(ctx context.Context, def *docstore.Def, tenant string, ids []string) ([]docstore.Row, error) {
	if *tx.lost {
		return nil, nil
	}
	return tx.EngineTx.Get(ctx, def, tenant, ids)
}

func TestReplicasAgreeOnADataKey(t *testing.T) {
	t.Parallel()
	engine, ctx := openEngine(t), context.Background()
	keys := keyring(t, newKey("a"))
	var winner []byte
	replica := &racing{Engine: engine, meet: func() {
		var err error
		winner, err = Deps{Store: openStore(t, engine), Keys: keys}.DataKey(ctx, "hashes")
		require.NoError(t, err)
	}}
	loser, err := Deps{Store: openStore(t, replica), Keys: keys}.DataKey(ctx, "hashes")
	require.NoError(t, err)
	require.Equal(t, winner, loser)

	stores := []*docstore.Store{openStore(t, engine), openStore(t, engine)}
	found := make([][]byte, 16)
	var all sync.WaitGroup
	for i := range found {
		all.Go(func() { found[i], _ = Deps{Store: stores[i%2], Keys: keys}.DataKey(ctx, "at once") })
	}
	all.Wait()
	for _, key := range found {
		require.Equal(t, found[0], key)
		require.Len(t, key, 32)
	}
}

// startTiny starts the tiny service without a listener.
func startTiny(t *testing.T, log *slog.Logger, tasks ...Task) *Unit {
	t.Helper()
	nats, err := embedded.Start(embedded.Config{StoreDir: t.TempDir(), Log: quiet()})
	require.NoError(t, err)
	t.Cleanup(nats.Stop)
	registry := telemetry.NewRegistry()
	b, err := bus.Connect(t.Context(), bus.Config{InProcess: nats.Conn(), Name: "tiny", Log: quiet()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close(context.Background())) })
	b.EnsureStreams(t.Context())
	events, err := stream.New(stream.Config{Bus: b, Log: quiet(), Metrics: registry})
	require.NoError(t, err)
	spec := tiny(func(context.Context) {}, tasks...)
	engine, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: filepath.Join(t.TempDir(), "test.db"),
		Log: quiet()})
	require.NoError(t, err)
	store, err := docstore.Open(t.Context(), engine, clock.System, spec.Defs()...)
	require.NoError(t, err)
	unit, err := Start(t.Context(), spec, Deps{
		Store: store, Bus: b, Stream: events, Keys: keyring(t, newKey("a")), Log: log, Clock: clock.System,
		Metrics:  registry,
		Requests: telemetry.NewHTTPMetrics(registry),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = unit.Stop(context.Background()) })
	return unit
}

// A service that still loads its state does not blame the store.
func TestReadyTellsALoadingServiceFromABrokenStore(t *testing.T) {
	t.Parallel()
	unit := startTiny(t, quiet())
	unit.ready = func() error { return errors.New("the index is not complete") }
	err := unit.Ready(t.Context())
	require.ErrorIs(t, err, errLoading)
	require.ErrorContains(t, err, "the index is not complete")
	require.NoError(t, unit.Stop(context.Background()))
	require.NotErrorIs(t, unit.Ready(t.Context()), errLoading)
}

func TestTasksRepeatAndStop(t *testing.T) {
	t.Parallel()
	ran := make(chan int, 1)
	n := 0
	unit := startTiny(t, quiet(), Task{Name: "count", Every: time.Millisecond,
		Do: func(ctx context.Context) (int, error) {
			n++
			select {
			case ran <- n:
			case <-ctx.Done():
			}
			return n % 3, nil // two times in a row, then after a pause
		}})
	for want := 1; want <= 7; want++ {
		require.Equal(t, want, <-ran)
	}
	require.NoError(t, unit.Ready(t.Context()))
	require.NoError(t, unit.Stop(context.Background()))
	select {
	case <-ran: // it may have run once more before it was stopped
	default:
	}
	require.Error(t, unit.Ready(t.Context()), "the store is closed")
	last := n // no data race: Stop has waited
	require.LessOrEqual(t, last, 9)
}

func TestAFailingTaskIsSaidOnceAndTriedAgain(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("it is away") },
		"panic": func() error { panic("it is away") },
	} {
		var log bytes.Buffer // read only after Stop
		var n atomic.Int32
		done := make(chan struct{})
		unit := startTiny(t, slog.New(slog.NewTextHandler(&log, nil)), Task{Name: "fragile", Every: time.Millisecond,
			Do: func(context.Context) (int, error) {
				switch i := n.Add(1); {
				case i == 4: // it works again
					return 0, nil
				case i == 8:
					close(done)
					fallthrough
				default:
					return 1, fail() // a failing task is not repeated at once
				}
			}})
		<-done
		require.NoError(t, unit.Stop(context.Background()))
		require.Equal(t, 2, strings.Count(log.String(), "task fails"), name)
		require.Contains(t, log.String(), "task=fragile")
		require.Contains(t, log.String(), "it is away")
	}
}

func TestAServiceThatCannotAnswerDoesNotStart(t *testing.T) {
	t.Parallel()
	closed := 0
	spec := Spec{Name: "mute", New: func(context.Context, Deps) (App, error) {
		return App{
			Answer: func(*bus.Bus) error { return errors.New("no subject") }, Close: func() { closed++ },
		}, nil
	}}
	_, err := Start(t.Context(), spec, Deps{})
	require.EqualError(t, err, "mute: answer questions: no subject")
	require.Equal(t, 1, closed, "what the service itself holds is freed")
}
