package service

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// A process that gets the platform's keys from the applications service asks it which tokens have ended, is not ready
// before it has the answer, and learns from events about tokens that end later.
func TestAProcessFollowsEndedTokens(t *testing.T) {
	t.Parallel()
	s := newSurroundings(t)
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(s.signer.PublicJWKS())
	}))
	t.Cleanup(keys.Close)
	s.env = append(s.env, "IDP_AUTH_JWKS="+keys.URL)
	p := s.start(t, tiny(func(context.Context) {}))
	p.see(http.StatusServiceUnavailable, "a follower has not caught up yet", http.MethodGet, "/readyz", "")

	b, err := bus.Connect(t.Context(), bus.Config{URL: s.nats, Name: "applications",
		Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close(context.Background())) })
	until := clock.System.Now().Add(time.Hour)
	require.NoError(t, EndedQuestion.Answer(b, func(_ context.Context, q EndedPage) (EndedList, error) {
		if q.After == "" { // an empty page need not be the last
			return EndedList{Next: "second"}, nil
		}
		return EndedList{Ended: []EndedToken{{ClientID: "gone", ClientVersion: 2, Until: until}}}, nil
	}))
	wait.Until(t, func() bool {
		status, _, err := p.ask(http.MethodGet, p.url+"/readyz", "")
		return err == nil && status == http.StatusOK
	})

	give := func(client string, version int64) {
		p.token, err = s.signer.Mint(auth.Claims{
			Subject: client, ClientID: client, ClientVersion: version, Tenant: "acme", Scopes: auth.AllScopes,
			TTL: time.Hour,
		})
		require.NoError(t, err)
	}
	give("gone", 1)
	p.see(http.StatusUnauthorized, "unauthenticated", http.MethodPost, "/v1/notes", `{"text":"x"}`)
	give("gone", 2)
	p.see(http.StatusOK, `"x"`, http.MethodPost, "/v1/notes", `{"text":"x"}`)

	give("next", 1)
	p.see(http.StatusOK, `"x"`, http.MethodPost, "/v1/notes", `{"text":"x"}`)
	event, err := json.Marshal(map[string]any{
		"specversion": "1.0", "id": "1", "source": "/oauth2/ended", "type": TokenEnded, "subject": "next.2",
		"tenantid": "acme",
		"time":     clock.System.Now(), "sequence": "10",
		"data": map[string]any{"record": EndedToken{ClientID: "next", ClientVersion: 2, Until: until}},
	})
	require.NoError(t, err)
	_, err = b.JetStream().PublishMsg(t.Context(), &nats.Msg{Subject: "idp.events.acme.token.ended", Data: event})
	require.NoError(t, err)
	wait.Until(t, func() bool {
		status, _, err := p.ask(http.MethodPost, p.url+"/v1/notes", `{"text":"x"}`)
		return err == nil && status == http.StatusUnauthorized
	})
	p.end()
}

// The question and its answer are formats: services of different versions must agree on them.
func TestFormatOfEndedTokens(t *testing.T) {
	t.Parallel()
	until := clock.FromMillis(1767171600000)
	text, err := json.Marshal(EndedList{Next: "n", Ended: []EndedToken{
		{TokenID: "t", Until: until}, {ClientID: "c", ClientVersion: 2, Until: until},
	}})
	require.NoError(t, err)
	require.JSONEq(t, `{"ended":[{"token_id":"t","until":"2025-12-31T09:00:00.000Z"},
		{"client_id":"c","client_version":2,"until":"2025-12-31T09:00:00.000Z"}],"next":"n"}`, string(text))
	text, err = json.Marshal(EndedPage{After: "a"})
	require.NoError(t, err)
	require.JSONEq(t, `{"after":"a"}`, string(text))
}
