package oidc_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbound"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc/backchannel"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc/keys"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

func TestLogout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tokens := w.tokens(byCode(w.code(ofShop())))
	w.clock.Advance(30 * time.Hour) // the hint has expired
	known := oidc.LogoutRequest{AppID: "2001", UserID: "1001", SessionID: "s-1"}
	to := func(r oidc.LogoutRequest, uri string) oidc.LogoutRequest {
		r.Return = uri
		return r
	}
	hint := form(nil, "id_token_hint", tokens.IDToken)
	of := form(nil, "client_id", "shop")
	for name, row := range map[string]struct {
		v    url.Values
		want oidc.LogoutRequest
	}{
		"nothing":              {nil, oidc.LogoutRequest{}},
		"a hint":               {hint, known},
		"a hint and an id":     {form(hint, "client_id", "shop"), known},
		"an address":           {form(hint, "post_logout_redirect_uri", "https://shop.test/bye"), to(known, "https://shop.test/bye")},
		"state":                {form(hint, "post_logout_redirect_uri", "https://shop.test/out?a=b", "state", "x&y"), to(known, "https://shop.test/out?a=b&state=x%26y")},
		"an id alone":          {form(of, "post_logout_redirect_uri", "https://shop.test/bye", "state", "1"), oidc.LogoutRequest{AppID: "2001", Return: "https://shop.test/bye?state=1"}},
		"another address":      {form(hint, "post_logout_redirect_uri", "https://evil.test/bye"), known},
		"below":                {form(hint, "post_logout_redirect_uri", "https://shop.test/bye/x"), known},
		"a redirect_uri":       {form(hint, "post_logout_redirect_uri", callback), known},
		"an address of nobody": {form(nil, "post_logout_redirect_uri", "https://shop.test/bye"), oidc.LogoutRequest{}},
		"a bad hint":           {form(of, "id_token_hint", "x"), oidc.LogoutRequest{AppID: "2001"}},
		"an access token":      {form(nil, "id_token_hint", tokens.AccessToken), oidc.LogoutRequest{}},
		"an unknown id":        {form(nil, "client_id", "nobody"), oidc.LogoutRequest{}},
	} {
		r, err := w.Logout(w.ctx(), issuer, row.v)
		require.NoError(t, err, name)
		r.Locales = nil
		require.Equal(t, row.want, r, name)
	}
	for name, v := range map[string]url.Values{
		"another application's": form(hint, "client_id", "spa"),
		"twice":                 {"client_id": {"shop", "shop"}},
	} {
		_, err := w.Logout(w.ctx(), issuer, v)
		var page *protocol.PageError
		require.ErrorAs(t, err, &page, name)
	}
	other, err := w.Logout(w.ctx(), "https://idp.test/sign-in/globex", hint)
	require.NoError(t, err)
	require.Empty(t, other.UserID, "another issuer's hint")

	require.Equal(t, "https://shop.test/front?iss=https%3A%2F%2Fidp.test%2Fsign-in%2Facme&sid=s-1",
		oidc.FrontchannelURL(shop(), issuer, "s-1"))
	require.Empty(t, oidc.FrontchannelURL(spa(), issuer, "s-1"))
}

// listener is an application that hears of logouts.
type listener struct {
	*httptest.Server
	status atomic.Int64
	heard  chan string
}

func newListener(t *testing.T) *listener {
	l := &listener{heard: make(chan string, 10)}
	l.status.Store(http.StatusOK)
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(int(l.status.Load()))
		l.heard <- r.Method + " " + r.Header.Get("Content-Type") + " " + string(body)
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *listener) hears(t *testing.T) string {
	t.Helper()
	select {
	case text := <-l.heard:
		return text
	case <-time.After(wait.Long):
		t.Fatal("nothing was heard")
		return ""
	}
}

// sender makes a backchannel.Sender.
func (w *world) sender(client *http.Client) *backchannel.Sender {
	return backchannel.New(backchannel.Deps{Store: w.store, Metrics: prometheus.NewRegistry(),
		Keys: keys.New(w.store), Clients: w, HTTP: client,
		Log: slog.New(slog.DiscardHandler), Algorithm: oidc.Algorithm})
}

// run sends the notices that are due now, and returns their number.
func (w *world) run(s *backchannel.Sender) int {
	w.t.Helper()
	n, err := s.Once(w.t.Context())
	require.NoError(w.t, err)
	return n
}

func (w *world) tell(appIDs ...string) {
	w.t.Helper()
	require.NoError(w.t, docstore.Do(w.ctx(), w.store, func(tx *docstore.Tx) error {
		return oidc.TellLogout(w.ctx(), tx, backchannel.Ended{
			Issuer: issuer, SessionID: "s-1", UserID: "1001", AppIDs: appIDs,
		})
	}))
}

func loopback(t *testing.T) *http.Client {
	client := outbound.New(outbound.Config{AllowPrivate: true})
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func TestBackchannel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := newListener(t)
	w.change("shop", func(c *questions.Client) { c.SignIn.BackchannelLogoutURL = l.URL + "/out" })
	sender := w.sender(loopback(t))
	w.tell("2001", "2002", "9") // one has a back channel, one has none, one is gone
	require.Equal(t, 3, w.run(sender))
	text := l.hears(t)
	require.Regexp(t, `^POST application/x-www-form-urlencoded logout_token=`, text)
	header, claims := claimsOf(t, text[len("POST application/x-www-form-urlencoded logout_token="):])
	require.Equal(t, "logout+jwt", header["typ"])
	require.Equal(t, "ES256", header["alg"])
	require.NotEmpty(t, claims["jti"])
	require.EqualValues(t, 120, claims["exp"].(float64)-claims["iat"].(float64))
	for _, member := range []string{"jti", "iat", "exp"} {
		delete(claims, member)
	}
	require.Equal(t, map[string]any{
		"iss": issuer, "sub": "1001", "aud": "shop", "sid": "s-1",
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}},
	}, claims)
	w.clock.Advance(2 * time.Hour)
	require.Zero(t, w.run(sender), "it has answered")
}

// An application that does not answer is told five times within an hour.
func TestBackchannelTriesAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := newListener(t)
	l.status.Store(http.StatusBadGateway)
	w.change("shop", func(c *questions.Client) { c.SignIn.BackchannelLogoutURL = l.URL })
	sender := w.sender(loopback(t))
	w.tell("2001")
	began := w.clock.Now()
	var tries []time.Duration
	for range 61 {
		if w.run(sender) == 1 {
			l.hears(t)
			tries = append(tries, w.clock.Now().Sub(began))
		}
		w.clock.Advance(time.Minute)
	}
	require.Equal(t, []time.Duration{0, time.Minute, 6 * time.Minute, 21 * time.Minute, time.Hour}, tries)
	w.clock.Advance(time.Hour)
	require.Zero(t, w.run(sender), "it is given up")
	require.Empty(t, l.heard)
}

// An application that leads on to a page of its own after a logout has heard of it: nothing is sent again, and no log
// line warns.
func TestBackchannelTakesRedirects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := newListener(t)
	l.status.Store(http.StatusFound)
	w.change("shop", func(c *questions.Client) { c.SignIn.BackchannelLogoutURL = l.URL })
	var logged bytes.Buffer
	sender := backchannel.New(backchannel.Deps{Store: w.store, Metrics: prometheus.NewRegistry(),
		Keys: keys.New(w.store), Clients: w, HTTP: loopback(t),
		Log: slog.New(slog.NewTextHandler(&logged, nil)), Algorithm: oidc.Algorithm})
	w.tell("2001")
	require.Equal(t, 1, w.run(sender))
	l.hears(t)
	w.clock.Advance(time.Hour)
	require.Zero(t, w.run(sender))
	require.Empty(t, logged.String())
}

// inEachTenant are the applications of a world, as those of each tenant.
type inEachTenant struct{ *world }

func (e inEachTenant) Of(ctx context.Context, name questions.ClientName) (questions.Client, error) {
	return e.world.Of(request.System(ctx, tenant), name)
}

// A tenant whose application does not answer has a quarter of the places, so the others hear at once.
func TestASlowTenantDelaysNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release, asked := make(chan struct{}), atomic.Int64{}
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked.Add(1)
		<-release
	}))
	t.Cleanup(slow.Close)
	l := newListener(t)
	w.change("shop", func(c *questions.Client) { c.SignIn.BackchannelLogoutURL = slow.URL })
	w.change("spa", func(c *questions.Client) { c.SignIn.BackchannelLogoutURL = l.URL })
	sender := backchannel.New(backchannel.Deps{Store: w.store, Metrics: prometheus.NewRegistry(),
		Keys: keys.New(w.store), Clients: inEachTenant{w},
		HTTP: loopback(t), Log: slog.New(slog.DiscardHandler), Algorithm: oidc.Algorithm})
	tell := func(tenant, appID string) {
		ctx := request.System(t.Context(), tenant)
		require.NoError(t, docstore.Do(ctx, w.store, func(tx *docstore.Tx) error {
			return oidc.TellLogout(ctx, tx, backchannel.Ended{Issuer: issuer, SessionID: "s", AppIDs: []string{appID}})
		}))
	}
	for range 40 {
		tell("acme", "2001")
	}
	tell("globex", "2002")
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = sender.Run(ctx) })
	defer running.Wait()
	defer cancel()
	l.hears(t)
	require.LessOrEqual(t, asked.Load(), int64(8))
	close(release)
	wait.Until(t, func() bool { return asked.Load() == 40 })
}

// A notice is not lost when its replica ends, and goes nowhere that it must not.
func TestBackchannelSurvives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		close(asked)
		<-r.Context().Done()
	}))
	t.Cleanup(slow.Close)
	w.change("shop", func(c *questions.Client) { c.SignIn.BackchannelLogoutURL = slow.URL })
	w.tell("2001")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	_, err := w.sender(loopback(t)).Once(ctx)
	require.NoError(t, err)
	l := newListener(t)
	w.change("shop", func(c *questions.Client) { c.SignIn.BackchannelLogoutURL = l.URL })
	require.Equal(t, 1, w.run(w.sender(loopback(t))))
	l.hears(t)

	public := outbound.New(outbound.Config{})
	t.Cleanup(public.CloseIdleConnections)
	w.tell("2001")
	sender := w.sender(public)
	require.Equal(t, 1, w.run(sender))
	w.clock.Advance(2 * time.Hour)
	require.Zero(t, w.run(sender), "a loopback address: no later try may go there either")
	require.Empty(t, l.heard)
}
