package keys_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc/keys"
)

func TestMain(m *testing.M) { basic.Main(m) }

const day = 24 * time.Hour

func newStore(t *testing.T) (*docstore.Store, *basic.Clock) {
	t.Helper()
	clock := basic.NewClock()
	store := basic.Store(t, clock, keys.Collections()...)
	ring, err := secret.ParseKeyring(secret.NewKey())
	require.NoError(t, err)
	require.NoError(t, store.SealWith(t.Context(), ring))
	return store, clock
}

func of(t *testing.T, tenant string) context.Context { return request.System(t.Context(), tenant) }

// ids are the key ids of a tenant's key set.
func ids(t *testing.T, k *keys.Keys, tenant string) (list []string) {
	t.Helper()
	set, err := k.JWKS(of(t, tenant))
	require.NoError(t, err)
	for _, raw := range set.Keys {
		var key map[string]any
		require.NoError(t, json.Unmarshal(raw, &key))
		require.NotContains(t, key, "d", "the private part")
		require.Equal(t, "sig", key["use"])
		list = append(list, key["kid"].(string))
	}
	return list
}

func sign(t *testing.T, k *keys.Keys, tenant, algorithm string) string {
	t.Helper()
	text, err := k.Sign(of(t, tenant), algorithm, "JWT", jwt.MapClaims{"a": 1})
	require.NoError(t, err)
	return text
}

func read(t *testing.T, k *keys.Keys, tenant, text string) error {
	return k.Read(of(t, tenant), text, "JWT", &jwt.MapClaims{})
}

// Of replicas that sign at once for the first time, one makes the key.
func TestOneRing(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	replicas := []*keys.Keys{keys.New(store), keys.New(store), keys.New(store)}
	texts := make([]string, 12)
	var all sync.WaitGroup
	for i := range texts {
		all.Go(func() { texts[i] = sign(t, replicas[i%3], "acme", keys.ES256) })
	}
	all.Wait()
	for _, k := range replicas {
		require.Len(t, ids(t, k, "acme"), 1)
		for _, text := range texts {
			require.NoError(t, read(t, k, "acme", text))
		}
	}
}

func TestTenantsAndAlgorithmsApart(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	k := keys.New(store)
	require.Empty(t, ids(t, k, "acme"))
	for _, algorithm := range keys.Algorithms {
		text := sign(t, k, "acme", algorithm)
		require.NoError(t, read(t, k, "acme", text), algorithm)
		require.NoError(t, read(t, k, "acme", text), "the second time, when it is known")
		require.ErrorIs(t, read(t, k, "globex", text), keys.ErrToken)
		require.ErrorIs(t, k.Read(of(t, "acme"), text, "at+jwt", &jwt.MapClaims{}), keys.ErrToken)
		sign(t, k, "globex", algorithm)
		require.ErrorIs(t, read(t, k, "globex", text), keys.ErrToken)
	}
	require.Len(t, ids(t, k, "acme"), len(keys.Algorithms))
	_, err := k.Sign(of(t, "acme"), "none", "JWT", &jwt.MapClaims{})
	require.Error(t, err)
	_, err = k.Sign(of(t, "acme"), "HS256", "JWT", &jwt.MapClaims{})
	require.Error(t, err)
	for _, text := range []string{"", "a.b.c", "eyJhbGciOiJub25lIn0.e30."} {
		require.ErrorIs(t, read(t, k, "acme", text), keys.ErrToken)
	}
}

// The next key is published a day before it signs, and the last one stays until its tokens have expired.
func TestRotation(t *testing.T) {
	t.Parallel()
	store, clock := newStore(t)
	fresh := func() *keys.Keys { return keys.New(store) } // without a copy of the rings
	work := fresh().Rotation()
	run := func() (n int) {
		due, err := work.Due(t.Context(), store, 10)
		require.NoError(t, err)
		for _, ref := range due {
			require.NoError(t, work.Do(request.System(t.Context(), ref.Tenant), ref.ID))
		}
		return len(due)
	}
	first := sign(t, fresh(), "acme", keys.ES256)
	reader := fresh() // has verified the token before its key ends
	require.NoError(t, read(t, reader, "acme", first))
	clock.Advance(88 * day)
	require.Zero(t, run())
	clock.Advance(day)
	require.Equal(t, 1, run())
	require.Zero(t, run())
	require.NoError(t, work.Do(of(t, "acme"), keys.ES256), "another replica was first")
	before := ids(t, fresh(), "acme")
	require.Len(t, before, 2)
	kid := func(text string) any {
		token, _, err := jwt.NewParser().ParseUnverified(text, jwt.MapClaims{})
		require.NoError(t, err)
		return token.Header["kid"]
	}
	require.Equal(t, before[0], kid(sign(t, fresh(), "acme", keys.ES256)))
	clock.Advance(day)
	second := sign(t, fresh(), "acme", keys.ES256)
	require.Equal(t, before[1], kid(second))
	require.NoError(t, read(t, fresh(), "acme", first))
	clock.Advance(2 * day)
	require.Equal(t, before[1:], ids(t, fresh(), "acme"))
	require.ErrorIs(t, read(t, fresh(), "acme", first), keys.ErrToken)
	require.NoError(t, keys.Reread(of(t, "acme"), reader))
	require.ErrorIs(t, read(t, reader, "acme", first), keys.ErrToken)
	clock.Advance(90 * day)
	require.Equal(t, 1, run())
	require.NoError(t, read(t, fresh(), "acme", second))
	require.Len(t, ids(t, fresh(), "acme"), 2)
}
