package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// slow is a client that takes nothing before it is let go.
type slow struct {
	httptest.ResponseRecorder
	reached, let chan struct{}
	once         *sync.Once
}

func newSlow() *slow {
	return &slow{*httptest.NewRecorder(), make(chan struct{}), make(chan struct{}), &sync.Once{}}
}

func (w *slow) Write(b []byte) (int, error) {
	w.once.Do(func() { close(w.reached) })
	<-w.let
	return w.ResponseRecorder.Write(b)
}

// large makes n things of about 100 KB.
func large(t *testing.T, w *world, n int) {
	t.Helper()
	for i := range n {
		w.client().Post("/v1/things", map[string]any{"name": fmt.Sprintf("large %03d", i),
			"props": map[string]any{"text": strings.Repeat("x", 100_000)}}).OK(nil)
	}
}

func listRequest(w *world, tenant, query string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/v1/things?"+query, nil)
	r.Header.Set("Authorization", "Bearer "+w.Token(tenant, auth.UsersRead, auth.UsersWrite))
	return r
}

// All that wait for slow clients hold no more than the budget; what is beyond it is refused. Of a large page only a
// part is held.
func TestSlowReadersShareABudget(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	budget := rest.NewBudget(16 * mib)
	w := newWorldWith(t, nil, budget)
	large(t, w, 40) // a page of 4 MB
	var waiting []*slow
	var done sync.WaitGroup
	for {
		reader := newSlow()
		answered := make(chan struct{})
		done.Add(1)
		go func() {
			defer done.Done()
			defer close(answered)
			w.Handler.ServeHTTP(reader, listRequest(w, "acme", "page_size=200"))
		}()
		<-reader.reached
		if reader.Code != http.StatusOK {
			close(reader.let)
			<-answered
			require.Equal(t, http.StatusServiceUnavailable, reader.Code)
			require.NotEmpty(t, reader.Header().Get("Retry-After"))
			break
		}
		waiting = append(waiting, reader)
	}
	require.Len(t, waiting, 4, "a tenant's share has room for so many parts of 1 MiB")
	require.EqualValues(t, 4*mib, budget.Held())
	w.client().Post("/v1/things", map[string]any{"name": "small"}).OK(nil) // others are served
	for _, reader := range waiting {
		close(reader.let)
	}
	done.Wait()
	require.Zero(t, budget.Held())
	require.LessOrEqual(t, budget.Most(), int64(16*mib))
	for _, reader := range waiting {
		var page struct {
			Items []struct{ Name string }
			Total int
		}
		require.NoError(t, json.Unmarshal(reader.Body.Bytes(), &page))
		require.Len(t, page.Items, 40)
		require.Equal(t, 40, page.Total)
		for i, item := range page.Items {
			require.Equal(t, fmt.Sprintf("large %03d", i), item.Name)
		}
	}
}

// What is deleted while a page is being sent is left out of its rest.
func TestALargePageWhileRecordsAreDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	large(t, w, 30)
	last := w.client().Get("/v1/things?page_sort=name[desc]&page_size=1").Object()["items"].([]any)[0].(map[string]any)
	reader, answered := newSlow(), make(chan struct{})
	go func() {
		defer close(answered)
		w.Handler.ServeHTTP(reader, listRequest(w, "acme", "page_size=200"))
	}()
	<-reader.reached
	ctx := request.With(t.Context(), request.Info{Tenant: "acme"})
	require.NoError(t, docstore.Do(ctx, w.Deps.Store, func(tx *docstore.Tx) error {
		v, err := things.Load(ctx, tx, last["id"].(string))
		if err == nil {
			_, err = things.Delete(ctx, tx, v)
		}
		return err
	}))
	close(reader.let)
	<-answered
	var page struct{ Items []any }
	require.NoError(t, json.Unmarshal(reader.Body.Bytes(), &page))
	require.Len(t, page.Items, 29)
}

// A stream that is never quiet, or whose client has stopped reading, ends soon after its token.
func TestStreamsEndWithTheirToken(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*world){
		"expired": func(w *world) { w.Clock.Advance(time.Hour + time.Second) },
		"revoked": func(w *world) {
			require.NoError(t, w.Deps.Verifier.End(auth.Ended{Issuer: "test", ClientID: "tester", ClientVersion: 1,
				Until: w.Clock.Now().Add(time.Hour)}))
		},
	} {
		for kind, accept := range map[string]string{"events": "text/event-stream", "lines": "application/x-ndjson"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, registerBusy)
				server := httptest.NewServer(w.Handler)
				defer server.Close()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/busy-"+kind, nil)
				require.NoError(t, err)
				r.Header.Set("Authorization", "Bearer "+w.Token("acme", auth.UsersWrite))
				r.Header.Set("Accept", accept)
				response, err := server.Client().Do(r)
				require.NoError(t, err)
				defer func() { _ = response.Body.Close() }()
				require.Equal(t, http.StatusOK, response.StatusCode)
				_, err = io.ReadFull(response.Body, make([]byte, 1<<20))
				require.NoError(t, err)
				end(w)
				_, err = io.Copy(io.Discard, response.Body) // ends
				if kind == "events" {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, io.ErrUnexpectedEOF, "no client takes a part for the whole")
				}
			})
		}
	}
}

// registerBusy adds streams that are never quiet.
func registerBusy(s *rest.Server, _ service.Deps) {
	line := append(bytes.Repeat([]byte("x"), 1000), '\n')
	rest.Handle(s, rest.Op{
		ID: "busy-events", Method: http.MethodGet, Path: "/v1/busy-events", Scope: auth.UsersWrite, Summary: "Busy",
		Streams: true, ContentTypes: []string{"text/event-stream"},
	}, func(context.Context, *struct{}) (rest.Events, error) {
		return rest.Events{Run: func(_ context.Context, send func(...rest.ServerEvent) error) error {
			for {
				if err := send(rest.ServerEvent{Data: line[:1000]}); err != nil {
					return err
				}
			}
		}}, nil
	})
	rest.Handle(s, rest.Op{
		ID: "busy-lines", Method: http.MethodGet, Path: "/v1/busy-lines", Scope: auth.UsersWrite, Summary: "Busy",
		Streams: true, ContentTypes: []string{"application/x-ndjson"},
	}, func(context.Context, *struct{}) (rest.Stream, error) {
		return rest.Stream{ContentType: "application/x-ndjson", Write: func(w http.ResponseWriter) error {
			out := rest.PatientWriter(w, time.Minute)
			for {
				if _, err := out.Write(line); err != nil {
					return err
				}
			}
		}}, nil
	})
}

// Bodies above the default size count for the budget while their operation runs: some of a tenant at a time.
func TestLargeBodiesShareABudget(t *testing.T) {
	t.Parallel()
	const mib, most = 1 << 20, 2 << 20
	budget := rest.NewBudget(16 * mib)
	entered, let := make(chan struct{}), make(chan struct{})
	w := newWorldWith(t, nil, budget, func(s *rest.Server, _ service.Deps) {
		rest.Handle(s, rest.Op{
			ID: "take-large", Method: http.MethodPost, Path: "/v1/large", Scope: auth.UsersWrite, Summary: "Take much",
			NoReplay: true, MaxBody: most,
		}, func(ctx context.Context, in *created) (rest.Empty, error) {
			entered <- struct{}{}
			<-let
			return rest.Empty{}, nil
		})
	})
	sized := func(n int) string {
		const head, tail = `{"name":"a","props":{"x":"`, `"}}`
		return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
	}
	send := func(n int) *testkit.Answer {
		return w.client().With("Content-Type", "application/json").Post("/v1/large", sized(n))
	}
	var running sync.WaitGroup
	for _, n := range []int{mib + 1, most} { // a tenant's quarter has room for two
		running.Go(func() { send(n).OK(nil) })
		<-entered
	}
	require.EqualValues(t, 2*most, budget.Held())
	require.NotEmpty(t, send(most).Problem(http.StatusServiceUnavailable, "unavailable"))
	send(most+1).Problem(http.StatusRequestEntityTooLarge, "too_large")
	running.Go(func() { send(mib).OK(nil) }) // one of the default size needs no room
	<-entered
	close(let)
	running.Wait()
	require.Zero(t, budget.Held())
}
