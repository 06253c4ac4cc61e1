package token_test

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/applications/internal/ended"
)

// elsewhere starts another service, which asks this one for the ended tokens, and returns its verifier.
func (w *world) elsewhere(t testing.TB, keys auth.KeySource) (*service.Unit, *auth.Verifier) {
	spec := service.Spec{Name: "users", New: func(context.Context, service.Deps) (service.App, error) {
		return service.App{Handler: http.NotFoundHandler()}, nil
	}}
	deps := w.Deps
	deps.AskForEnded, deps.Metrics = true, prometheus.NewRegistry()
	deps.Store = basic.Store(t, w.Clock, spec.Defs()...)
	var err error
	deps.Verifier, err = auth.New(auth.Config{Clock: w.Clock, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, deps.TrustPlatform(keys))
	unit, err := service.Start(context.Background(), spec, deps)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unit.Stop(context.Background())) })
	return unit, deps.Verifier
}

func TestTokensEndInEveryReplicaOfEveryService(t *testing.T) {
	t.Parallel()
	w := newWorld(t, machine("c1", "acme", "s3cret"))
	replica := w.Replica(w.spec)
	keys := auth.StaticKeys(w.Stranger().Get("/v1/oauth2/jwks").OK(nil).Body)
	tokens := make([]string, 4)
	for i := range tokens {
		tokens[i] = w.token(t, "c1", "s3cret")
	}
	revoke := func(text string) {
		w.form(revokePath, "token="+text, "Authorization", basicAuth("c1", "s3cret")).OK(nil)
	}
	revoke(tokens[0])

	unit, users := w.elsewhere(t, keys)
	wait.Until(t, func() bool { return unit.Ready(t.Context()) == nil })
	good := func(v *auth.Verifier, text string) bool {
		_, err := v.Verify(t.Context(), text)
		return err == nil
	}
	ends := func(text string) {
		t.Helper()
		for _, v := range []*auth.Verifier{w.Deps.Verifier, replica.Deps.Verifier, users} {
			wait.Until(t, func() bool { return !good(v, text) })
		}
	}
	require.False(t, good(users, tokens[0]), "a service that is ready knows the ended tokens")
	require.True(t, good(users, tokens[1]))
	revoke(tokens[1])
	ends(tokens[1])

	// The client's record is changed so that its tokens end: version 2.
	require.True(t, good(users, tokens[2]))
	changed := machine("c1", "acme", "s3cret")
	changed.Version = 2
	w.clients.set(changed)
	ctx := request.System(t.Context(), "acme")
	require.NoError(t, docstore.Do(ctx, w.Deps.Store,
		func(tx *docstore.Tx) error { return ended.Client(ctx, tx, "c1", 2) }))
	ends(tokens[2])
	ends(tokens[3])
	after := w.token(t, "c1", "s3cret")
	require.True(t, good(users, after))

	late, others := w.elsewhere(t, keys)
	wait.Until(t, func() bool { return late.Ready(t.Context()) == nil })
	require.False(t, good(others, tokens[1]))
	require.False(t, good(others, tokens[3]))
	require.True(t, good(others, after))
}

// A rotation at once ends the old key and all tokens that it signed, in every replica of every service. The event is
// enough: a service may keep its copy of the key set. Replicas of this service sign with the new key from then on.
func TestRotationAtOnceEndsTokensInEveryReplicaOfEveryService(t *testing.T) {
	t.Parallel()
	w := newWorld(t, machine("c1", "acme", "s3cret"))
	replica := w.Replica(w.spec)
	published := func(s *testkit.Service) string { return string(s.Stranger().Get("/v1/oauth2/jwks").OK(nil).Body) }
	old := published(w.Service)
	_, users := w.elsewhere(t, auth.StaticKeys(old))
	stolen := w.token(t, "c1", "s3cret")
	verifiers := []*auth.Verifier{w.Deps.Verifier, replica.Deps.Verifier, users}
	for _, v := range verifiers {
		_, err := v.Verify(t.Context(), stolen)
		require.NoError(t, err)
	}
	w.As("acme", auth.PlatformAdmin).Post("/v1/oauth2/keys/rotate?at_once=true", nil).OK(nil)
	for _, v := range verifiers {
		wait.Until(t, func() bool { _, err := v.Verify(t.Context(), stolen); return err != nil })
	}
	require.NotEqual(t, old, published(w.Service))
	wait.Until(t, func() bool { return published(replica) == published(w.Service) },
		"the event makes the replica read the new keys")
	_, err := replica.Deps.Verifier.Verify(t.Context(), w.token(t, "c1", "s3cret"))
	require.NoError(t, err)

	late, others := w.elsewhere(t, auth.StaticKeys(old))
	wait.Until(t, func() bool { return late.Ready(t.Context()) == nil })
	_, err = others.Verify(t.Context(), stolen)
	require.Error(t, err, "a service that is ready knows the ended tokens")
}

// A service that starts while nobody answers which tokens have ended is not ready.
func TestNotReadyBeforeEndedTokensAreKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keys := auth.StaticKeys(w.Stranger().Get("/v1/oauth2/jwks").OK(nil).Body)
	alone := testkit.Start(t, service.Spec{Name: "alone",
		New: func(context.Context, service.Deps) (service.App, error) {
			return service.App{Handler: http.NotFoundHandler()}, nil
		}})
	elsewhere := &world{Service: alone}
	unit, _ := elsewhere.elsewhere(t, keys)
	require.ErrorContains(t, unit.Ready(t.Context()), "a follower has not caught up yet")
	require.NoError(t, ended.Answer(alone.Deps.Bus, w.Deps.Store))
	wait.Until(t, func() bool { return unit.Ready(t.Context()) == nil })
}

// A service that starts gets all ended tokens, however many they are. Entries are deleted when their tokens have
// expired.
func TestManyEndedTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const many = 1001 // more than a page
	ctx := request.System(t.Context(), "acme")
	expires := w.Clock.Now().Add(time.Minute)
	require.NoError(t, docstore.Do(ctx, w.Deps.Store, func(tx *docstore.Tx) error {
		for i := range many {
			if err := ended.Token(ctx, tx, strconv.Itoa(i), expires); err != nil {
				return err
			}
		}
		return nil
	}))
	count := func() int {
		n, page := 0, service.EndedPage{}
		for {
			list, err := service.EndedQuestion.Ask(ctx, w.Deps.Bus, page)
			require.NoError(t, err)
			if n += len(list.Ended); list.Next == "" {
				return n
			}
			page.After = list.Next
		}
	}
	require.Equal(t, many, count())

	w.Clock.Advance(time.Minute + auth.Leeway - time.Millisecond)
	due, err := ended.Due(t.Context(), w.Deps.Store, 10)
	require.NoError(t, err)
	require.Empty(t, due)
	w.Clock.Advance(time.Millisecond)
	due, err = ended.Due(t.Context(), w.Deps.Store, 10)
	require.NoError(t, err)
	require.Len(t, due, 10)
	for _, ref := range due {
		require.NoError(t, ended.Forget(request.System(t.Context(), ref.Tenant), w.Deps.Store, ref.ID))
	}
	require.Equal(t, many-10, count())
}
