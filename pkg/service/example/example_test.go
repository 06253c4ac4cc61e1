package example_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/service/example"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

func TestMain(m *testing.M) { basic.Main(m) }

func start(t testing.TB) *testkit.Service { return testkit.Start(t, example.Spec()) }

func TestConventions(t *testing.T) {
	t.Parallel()
	testkit.Conventions(t, start, testkit.Resource{
		Collection: "/v1/pagers",
		Body: func(n int) any {
			return map[string]any{"name": fmt.Sprintf("Pager %d", n), "pin": fmt.Sprintf("pin-of-%d", n)}
		},
		Change: map[string]any{"name": "Another name"},
		Faulty: map[string]any{"name": " ", "pin": "471"},
		Faults: []string{"body.name", "body.pin"}, Unique: []string{"name"},
		Read: auth.KVRead, Write: auth.KVWrite, Unrelated: auth.JobsRead,
		Open: []string{"send-page"}, Sealed: []string{"pin"},
		Secrets: map[string]testkit.Secret{"pagers": {NotSent: true}},
	})
}

// pager creates a pager in a tenant and returns its id and number.
func pager(s *testkit.Service, tenant string, more map[string]any) (id, number string) {
	body := map[string]any{"name": "On call", "pin": "4711"}
	for name, value := range more {
		body[name] = value
	}
	record := s.As(tenant, auth.KVWrite).Post("/v1/pagers", body).Object()
	return record["id"].(string), record["number"].(string)
}

// page sends a page without a credential.
func page(s *testkit.Service, number, pin, text string) *testkit.Answer {
	form := url.Values{"number": {number}, "pin": {pin}, "text": {text}}
	return s.Stranger().With("Content-Type", "application/x-www-form-urlencoded").Post("/v1/pagers/page", form.Encode())
}

func TestPageWithoutACredential(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, number := pager(s, "acme", nil)
	_, other := pager(s, "globex", map[string]any{"pin": "other"})
	page(s, number, "4711", "Call back").OK(nil)
	page(s, other, "other", "Call back").OK(nil)
	for _, wrong := range [][2]string{{number, "4712"}, {number, ""}, {other, "4711"}, {"nobody", "4711"}, {"", ""}} {
		page(s, wrong[0], wrong[1], "x").OAuthError(http.StatusUnauthorized, "invalid_client")
	}
}

// All replicas of a service have the same pages, each by its own follower, including those from a time without NATS.
func TestEveryReplicaShowsThePages(t *testing.T) {
	t.Parallel()
	s := start(t)
	id, number := pager(s, "acme", nil)
	_, other := pager(s, "globex", nil)
	replica := s.Replica(example.Spec())
	s.Ready()
	replica.Ready()
	var streams []*testkit.EventStream
	for _, r := range []*testkit.Service{s, replica} {
		streams = append(streams, r.As("acme", auth.KVRead).Events("/v1/pagers/pages"))
	}
	expect := func(text string) (event string) {
		t.Helper()
		for _, stream := range streams {
			e := stream.Next()
			require.Equal(t, "idp.pager.paged", e.Name)
			require.Contains(t, string(e.Data), id)
			require.Contains(t, string(e.Data), text)
			require.NotContains(t, string(e.Data), "4711")
			event = e.ID
		}
		return event
	}
	page(s, number, "4711", "first").OK(nil)
	first := expect("first")

	s.NATS.Stop()
	page(s, other, "4711", "another tenant's").OK(nil)
	page(s, number, "4711", "second").OK(nil)
	s.NATS.Start()
	expect("second")

	resumed := replica.As("acme", auth.KVRead).With("Last-Event-ID", first).Events("/v1/pagers/pages")
	require.Contains(t, string(resumed.Next().Data), "second")
	last := resumed.Drain()
	require.Len(t, last, 1)
	require.Equal(t, "goodbye", last[0].Name)
	for _, stream := range streams {
		stream.Leave()
	}
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.As("acme", auth.KVRead, auth.KVWrite)
	draft := func(owner string) map[string]any {
		return map[string]any{"name": "of " + owner, "pin": "4711", "owner_id": owner}
	}
	c.Post("/v1/pagers", draft("ann")).Problem(http.StatusServiceUnavailable, "unavailable")

	isPerson := func(ctx context.Context, o example.Owner) (bool, error) {
		return o.ID == "ann" && request.Tenant(ctx) == "acme", nil
	}
	require.NoError(t, example.PersonExists.Answer(s.Deps.Bus, isPerson))
	id := c.Post("/v1/pagers", draft("ann")).ID()
	c.Post("/v1/pagers", draft("bob")).Problem(http.StatusBadRequest, "invalid_parameters", "body.owner_id")
	c.Patch("/v1/pagers/"+id, map[string]any{"owner_id": "bob"}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.owner_id")

	for owner, want := range map[string]int64{"ann": 1, "bob": 0} {
		ctx := request.System(t.Context(), "acme")
		n, err := example.PagersOf.Ask(ctx, s.Deps.Bus, example.Owner{ID: owner})
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
}

func TestAPagerEndsWhenItIsDue(t *testing.T) {
	t.Parallel()
	s := start(t)
	end := s.Clock.Now().Add(time.Hour)
	id, number := pager(s, "acme", map[string]any{"time_end": end})
	kept, _ := pager(s, "globex", map[string]any{"time_end": end.Add(time.Hour)})
	s.RunTask("end pagers")
	page(s, number, "4711", "still there").OK(nil)
	s.Clock.Advance(time.Hour)
	s.RunTask("end pagers")
	s.As("acme", auth.KVRead).Get("/v1/pagers/"+id).Problem(http.StatusNotFound, "not_found")
	page(s, number, "4711", "too late").OAuthError(http.StatusUnauthorized, "invalid_client")
	s.As("globex", auth.KVRead).Get("/v1/pagers/" + kept).OK(nil)
	s.EventsUntil(func(e stream.Event) bool { return e.Type == "idp.pager.deleted" && e.Subject == id })
}
