package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/gateway"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/service/example"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// asEvents serves the example service at paths that the gateway routes: its pages are at /v1/events.
func asEvents(example http.Handler) http.Handler {
	paths := map[string]string{
		"/v1/events": "/v1/pagers/pages", "/v1/event-types": "/v1/pagers", "/v1/event-types/page": "/v1/pagers/page",
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = paths[r.URL.Path]
		example.ServeHTTP(w, r)
	})
}

// An open form operation and an event stream of a whole service pass through the gateway, for a service in the
// gateway's process and for one in another. When the gateway drains, it ends the stream cleanly; a service that
// learns about the drain says goodbye.
func TestExampleThroughTheGateway(t *testing.T) {
	t.Parallel()
	for _, hop := range []string{"in process", "remote"} {
		t.Run(hop, func(t *testing.T) {
			t.Parallel()
			s := testkit.Start(t, example.Spec())
			s.Ready()
			upstream := gateway.InProcess(asEvents(s.Handler), func() ([]string, error) { return nil, nil })
			if hop == "remote" {
				server := httptest.NewServer(asEvents(s.Handler))
				t.Cleanup(server.Close)
				var err error
				upstream, err = gateway.Remote(server.URL)
				require.NoError(t, err)
			}
			g, err := gateway.New(gateway.DefaultConfig(), map[string]gateway.Upstream{gateway.Events: upstream},
				gateway.Deps{Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
			require.NoError(t, err)
			t.Cleanup(g.Close)
			s.Handler = g

			c := s.As("acme", auth.KVRead, auth.KVWrite)
			pager := c.Post("/v1/event-types", map[string]any{"name": "On call", "pin": "4711"}).Object()
			stream := c.Events("/v1/events")
			page := func(pin string) *testkit.Answer {
				form := url.Values{"number": {pager["number"].(string)}, "pin": {pin}, "text": {"Call back"}}
				anybody := s.Stranger().With("Content-Type", "application/x-www-form-urlencoded")
				return anybody.Post("/v1/event-types/page", form.Encode())
			}
			page("4712").OAuthError(http.StatusUnauthorized, "invalid_client")
			page("4711").OK(nil)
			require.Contains(t, string(stream.Next().Data), "Call back")

			last := stream.Drain()
			if hop == "in process" {
				require.Len(t, last, 1)
				require.Equal(t, "goodbye", last[0].Name)
			} else {
				require.Empty(t, last)
			}
		})
	}
}
