package rest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/request"
)

// stream runs an answer of events in a synctest bubble. It returns what the client received and how the stream ended.
func stream(ctx context.Context,
	run func(ctx context.Context, send func(...ServerEvent) error) error) (string, error) {
	a, err := Events{Run: run}.answer()
	if err != nil {
		return "", err
	}
	w := httptest.NewRecorder()
	err = a.stream(ctx, w, share{NewBudget(maxHeld), "acme"})
	return w.Body.String(), err
}

func TestEventsAreFramed(t *testing.T) {
	t.Parallel()
	body, err := stream(t.Context(), func(_ context.Context, send func(...ServerEvent) error) error {
		require.NoError(t, send(ServerEvent{ID: "7\nid: 8", Name: "idp.user.created", Data: []byte(`{"a":1}`)}))
		return send(ServerEvent{Data: []byte("two\r\nlines")})
	})
	require.NoError(t, err)
	require.Equal(t, ": stream\n\nid: 7id: 8\nevent: idp.user.created\ndata: {\"a\":1}\n\ndata: two\ndata: lines\n\n",
		body)
}

func TestEventsHaveAHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		body, err := stream(t.Context(), func(_ context.Context, send func(...ServerEvent) error) error {
			time.Sleep(10 * time.Second)
			require.NoError(t, send(ServerEvent{Data: []byte("x")}))
			time.Sleep(heartbeatEvery + time.Second) // the heartbeat is due this long after the event
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, ": stream\n\ndata: x\n\n:\n\n", body)
	})
}

// A client for which nothing happens learns from a heartbeat where it can continue.
func TestHeartbeatsTellThePlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		body, err := stream(t.Context(), func(_ context.Context, send func(...ServerEvent) error) error {
			require.NoError(t, send(ServerEvent{ID: "7"}))
			require.NoError(t, send(ServerEvent{ID: "8", Data: []byte("x")}))
			time.Sleep(heartbeatEvery + time.Second)
			require.NoError(t, send(ServerEvent{ID: "9"}))
			time.Sleep(2 * heartbeatEvery)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, ": stream\n\nid: 8\ndata: x\n\n:\n\n:\nid: 9\n\n:\n\n", body)
	})
}

// An event stream ends cleanly when the server drains or the client disconnects.
func TestEventsEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(drain, leave context.CancelFunc){
		"drain":  func(drain, _ context.CancelFunc) { drain() },
		"client": func(_, leave context.CancelFunc) { leave() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				draining, drain := context.WithCancel(context.Background())
				defer drain()
				ctx, leave := context.WithCancel(request.WithDrain(context.Background(), draining))
				defer leave()
				began := time.Now()
				ended := make(chan error)
				go func() {
					_, err := stream(ctx, func(ctx context.Context, _ func(...ServerEvent) error) error {
						<-ctx.Done()
						return ctx.Err()
					})
					ended <- err
				}()
				synctest.Wait()
				end(drain, leave)
				require.NoError(t, <-ended)
				require.LessOrEqual(t, time.Since(began), heartbeatEvery)
			})
		})
	}
}

// brokenWriter refuses every write after the first.
type brokenWriter struct {
	http.ResponseWriter
	writes atomic.Int64
}

func (w *brokenWriter) Write(b []byte) (int, error) {
	if w.writes.Add(1) > 1 {
		return 0, errors.New("connection reset")
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *brokenWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestEventsToAClientThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, err := Events{Run: func(ctx context.Context, _ func(...ServerEvent) error) error {
			<-ctx.Done() // nothing to send: the heartbeat notices it
			return nil
		}}.answer()
		require.NoError(t, err)
		require.NoError(t, a.stream(t.Context(), &brokenWriter{ResponseWriter: httptest.NewRecorder()},
			share{NewBudget(maxHeld), "acme"}))
	})
	_, err := stream(t.Context(), func(context.Context, func(...ServerEvent) error) error {
		return errors.New("the store is away")
	})
	require.ErrorContains(t, err, "the store is away")
}

// A stream ends within 30 s of its token's end in any replica.
func TestStreamsEndWithin30Seconds(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, auth.Grace+recheck+recheckAge+recheckTime+endGrace, 30*time.Second)
}
