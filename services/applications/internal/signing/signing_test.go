package signing_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/applications/internal/signing"
)

func TestMain(m *testing.M) { basic.Main(m) }

const (
	lead   = 10 * time.Minute
	every  = 30 * 24 * time.Hour
	issuer = "https://idp.test"
)

// world is a store with a clock, for any number of replicas.
type world struct {
	t     *testing.T
	clock *basic.Clock
	store *docstore.Store
	keys  *secret.Keyring
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, clock: basic.NewClock()}
	w.store = basic.Store(t, w.clock, signing.Collections()...)
	var err error
	w.keys, err = secret.ParseKeyring(secret.NewKey())
	require.NoError(t, err)
	require.NoError(t, w.store.SealWith(t.Context(), w.keys))
	return w
}

func (w *world) config() signing.Config {
	return signing.Config{Store: w.store, Issuer: issuer, Every: every, Log: slog.New(slog.DiscardHandler),
		OnEnd: func(context.Context, *docstore.Tx, string) error { return nil }}
}

// open starts a replica.
func (w *world) open() *signing.Keeper {
	w.t.Helper()
	k, err := signing.Open(w.t.Context(), w.config())
	require.NoError(w.t, err)
	return k
}

// refresh runs the task of each replica.
func (w *world) refresh(all ...*signing.Keeper) {
	w.t.Helper()
	for _, k := range all {
		_, err := k.Refresh(w.t.Context())
		require.NoError(w.t, err)
	}
}

// verifier makes a verifier with the keys that a keeper publishes now, like that of another service.
func (w *world) verifier(k *signing.Keeper) *auth.Verifier {
	w.t.Helper()
	v, err := auth.New(auth.Config{
		Issuers: []auth.Issuer{{Name: issuer, Keys: auth.StaticKeys(k.Signer().PublicJWKS())}}, Clock: w.clock,
		Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(w.t, err)
	return v
}

func mint(t *testing.T, k *signing.Keeper, life time.Duration) string {
	t.Helper()
	token, err := k.Signer().Mint(auth.Claims{Subject: "c", ClientID: "c", Tenant: "acme", TTL: life})
	require.NoError(t, err)
	return token
}

func TestReplicasThatStartAtOnceMakeOneKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids, errs := make([]string, 8), make([]error, 8)
	var starting sync.WaitGroup
	for i := range ids {
		starting.Go(func() {
			var k *signing.Keeper
			if k, errs[i] = signing.Open(t.Context(), w.config()); errs[i] == nil {
				ids[i] = k.Signer().Keys().IDs()[0]
			}
		})
	}
	starting.Wait()
	for i, id := range ids {
		require.NoError(t, errs[i])
		require.Equal(t, ids[0], id)
	}
	require.Equal(t, ids[:1], w.open().Signer().Keys().IDs(), "after a restart, too")
}

// A key is published before it signs, and until its last token has expired. Replicas need no event for that.
func TestRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, other := w.open(), w.open()
	first := one.Signer().Keys().IDs()[0]
	long := mint(t, one, auth.MaxTokenTTL-lead)

	keys, err := one.Rotate(t.Context(), false)
	require.NoError(t, err)
	require.Len(t, keys, 2)
	second := keys[1].ID
	again, err := other.Rotate(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, keys, again, "a published key has not started to sign yet")
	w.refresh(other)
	for _, k := range []*signing.Keeper{one, other, w.open()} {
		require.Equal(t, []string{first, second}, k.Signer().Keys().IDs())
	}
	last := w.verifier(other) // the keys of a service when the new key begins to sign

	w.clock.Advance(lead)
	w.refresh(one)
	require.Equal(t, []string{second, first}, one.Signer().Keys().IDs())
	_, err = last.Verify(t.Context(), mint(t, one, time.Hour))
	require.NoError(t, err)
	_, err = last.Verify(t.Context(), mint(t, other, time.Hour)) // a replica that is late still signs with the first
	require.NoError(t, err)
	late := mint(t, other, auth.MaxTokenTTL)
	_, err = w.verifier(w.open()).Verify(t.Context(), long)
	require.NoError(t, err)

	w.clock.Advance(auth.MaxTokenTTL + auth.Leeway - time.Second) // exp is in whole seconds
	w.refresh(one, other)
	require.Equal(t, []string{second, first}, other.Signer().Keys().IDs())
	_, err = w.verifier(one).Verify(t.Context(), late)
	require.NoError(t, err, "a token is valid until it expires")
	w.clock.Advance(time.Second)
	w.refresh(one, other)
	for _, k := range []*signing.Keeper{one, other, w.open()} {
		require.Equal(t, []string{second}, k.Signer().Keys().IDs())
	}
}

func TestRotationBySchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, other := w.open(), w.open()
	w.clock.Advance(every - lead - time.Millisecond)
	w.refresh(one, other)
	require.Len(t, one.Signer().Keys().IDs(), 1)
	w.clock.Advance(time.Millisecond)
	w.refresh(one, other, one)
	require.Len(t, one.Signer().Keys().IDs(), 2, "one of the replicas makes the next key")
	require.Equal(t, one.Signer().Keys().IDs(), other.Signer().Keys().IDs())
	w.clock.Advance(lead)
	before := one.Signer().Keys().IDs()
	w.refresh(one)
	require.Equal(t, []string{before[1], before[0]}, one.Signer().Keys().IDs())
}

func TestRotationAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, other := w.open(), w.open()
	stolen := mint(t, one, time.Hour)
	_, err := one.Rotate(docstore.WithDryRun(t.Context()), true)
	require.NoError(t, err)
	w.refresh(one)
	_, err = w.verifier(one).Verify(t.Context(), stolen)
	require.NoError(t, err, "a dry run")

	keys, err := one.Rotate(t.Context(), true)
	require.NoError(t, err)
	require.Len(t, keys, 1)
	w.refresh(other)
	for _, k := range []*signing.Keeper{one, other} {
		require.Equal(t, []string{keys[0].ID}, k.Signer().Keys().IDs())
		_, err = w.verifier(k).Verify(t.Context(), stolen)
		require.Error(t, err)
		_, err = w.verifier(k).Verify(t.Context(), mint(t, k, time.Hour))
		require.NoError(t, err)
	}
}

func TestKeysAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.open()
	var err error
	for n := 1; err == nil; n++ {
		require.LessOrEqual(t, n, 20)
		_, err = k.Rotate(t.Context(), false)
		w.clock.Advance(lead)
		w.refresh(k)
	}
	require.ErrorContains(t, err, "20 keys are published already")
}

// Tokens that were issued under another public URL stay valid until they expire.
func TestEarlierIssuers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	under := func(url string) *signing.Keeper {
		c := w.config()
		c.Issuer = url
		k, err := signing.Open(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, url, k.Signer().Issuer())
		return k
	}
	require.Empty(t, under("http://127.0.0.1:8080").EarlierIssuers())
	require.Empty(t, under("http://127.0.0.1:8080").EarlierIssuers())
	w.clock.Advance(time.Hour)
	require.Equal(t, []string{"http://127.0.0.1:8080"}, under("https://id.example").EarlierIssuers())
	require.Equal(t, []string{"http://127.0.0.1:8080", "https://id.example"},
		under("https://other.example").EarlierIssuers())
	require.Equal(t, []string{"http://127.0.0.1:8080", "https://other.example"},
		under("https://id.example").EarlierIssuers())
	w.clock.Advance(auth.MaxTokenTTL + auth.Leeway)
	require.Equal(t, []string{"https://id.example"}, under("https://last.example").EarlierIssuers())
	for i := range 50 {
		require.LessOrEqual(t, len(under(fmt.Sprintf("https://%d.example", i)).EarlierIssuers()), 19)
	}
}

// The private parts are encrypted; another encryption key cannot decrypt them.
func TestPrivateKeysAreSealed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open()
	other, err := secret.ParseKeyring(secret.NewKey())
	require.NoError(t, err)
	require.NoError(t, w.store.SealWith(t.Context(), other))
	_, err = signing.Open(t.Context(), w.config())
	require.ErrorContains(t, err, "sealed under a key that is not configured")
}
