package rest_test

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/service"
)

// A replica that is cut off from NATS has the token in its cache. A stream ends there as well, when the token has ended
// and when nobody says whether it has, although it was in the cache when that happened.
func TestStreamsEndWhereTheReplicaIsCutOff(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]error{"it has ended": nil, "nobody knows": apperr.Away("it", io.EOF)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(s *rest.Server, _ service.Deps) {
				rest.Handle(s, rest.Op{ID: "watch-things", Method: http.MethodGet, Path: "/v1/watch",
					Scope: auth.UsersRead, Summary: "Watch things"},
					func(context.Context, *struct{}) (rest.Events, error) {
						return rest.Events{Run: func(ctx context.Context, send func(...rest.ServerEvent) error) error {
							for ctx.Err() == nil { // busy: it sends all the time
								if err := send(rest.ServerEvent{Data: []byte("thing")}); err != nil {
									return err
								}
							}
							return nil
						}}, nil
					})
			})
			var over atomic.Bool
			w.Deps.Verifier.AskMeanwhile(auth.Meanwhile{
				Age: func() time.Duration { return time.Hour },
				Active: func(context.Context, string) (bool, error) {
					if over.Load() {
						return false, away
					}
					return true, nil
				},
			})
			key, err := auth.GenerateKey()
			require.NoError(t, err)
			signer, err := auth.NewSigner("platform", auth.NewKeys(key), w.Clock)
			require.NoError(t, err)
			require.NoError(t, w.Deps.Verifier.Trust(auth.Issuer{
				Name: auth.Platform, Aliases: []string{"platform"}, Keys: signer, Scopes: auth.AllScopes,
			}))
			token, err := signer.Mint(auth.Claims{
				Subject: "1", Tenant: "acme", Scopes: auth.NewScopes(auth.UsersRead), TTL: time.Hour,
			})
			require.NoError(t, err)
			stream := w.Stranger().With("Authorization", "Bearer "+token).Events("/v1/watch")
			require.Equal(t, "thing", string(stream.Next().Data))
			over.Store(true)
			w.Clock.Advance(5 * time.Second)
			stream.End()
		})
	}
}
