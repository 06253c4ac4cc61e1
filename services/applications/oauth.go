package applications

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/clientauth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/applications/internal/ended"
	"github.com/idplatform/idplatform/services/applications/internal/signing"
	"github.com/idplatform/idplatform/services/applications/internal/token"
)

// TokenConfig configures the tokens of machine clients.
type TokenConfig struct {
	TTL               time.Duration `mapstructure:"ttl" doc:"How long a token is valid"`
	PerSecond         float64       `mapstructure:"per_second" doc:"Tokens a second that one client can get from one replica; bursts may be twice as large"`
	FailuresPerMinute float64       `mapstructure:"failures_per_minute" doc:"Failed authentications a minute of one client, and from one address, that are counted and reported as events; more are answered 429. A valid credential is never refused because of them"`
	RotateEvery       time.Duration `mapstructure:"rotate_every" doc:"How long a signing key is used before the next one"`
}

func defaultTokens() TokenConfig {
	return TokenConfig{TTL: time.Hour, PerSecond: 5000, FailuresPerMinute: 30, RotateEvery: 90 * 24 * time.Hour}
}

func (c TokenConfig) check() error {
	switch {
	case c.TTL < time.Minute || c.TTL > auth.MaxTokenTTL:
		return fmt.Errorf("tokens.ttl must lie in 1m…%v", auth.MaxTokenTTL)
	case c.RotateEvery < time.Hour:
		return fmt.Errorf("tokens.rotate_every must be at least 1h")
	case c.PerSecond <= 0 || c.FailuresPerMinute <= 0:
		return fmt.Errorf("tokens.per_second and tokens.failures_per_minute must be positive")
	}
	return nil
}

func oauthCollections() []*docstore.Def {
	return append(append(signing.Collections(), ended.Collections()...), token.Collections()...)
}

// tokens makes the token service. The verifier trusts its keys from then on.
func (c Config) tokens(
	ctx context.Context, d service.Deps, clients token.Clients,
) (*token.Tokens, *signing.Keeper, error) {
	if err := c.Tokens.check(); err != nil {
		return nil, nil, err
	}
	keys, err := signing.Open(ctx, signing.Config{
		Store: d.Store, Issuer: d.PublicURL, Every: c.Tokens.RotateEvery, Log: d.Log,
		OnEnd: ended.Key,
	})
	if err != nil {
		return nil, nil, err
	}
	d.EarlierURLs = append(slices.Clip(d.EarlierURLs), keys.EarlierIssuers()...)
	if err := d.TrustPlatform(keys.Signer()); err != nil {
		return nil, nil, err
	}
	return token.New(token.Deps{
		Store: d.Store, Clients: clients, Signer: keys.Signer(), Verifier: d.Verifier, TTL: c.Tokens.TTL,
		Assertions: clientauth.NewAssertions(d.Store, d.Outbound, d.Log),
		Chosen:     func(clientID string) bool { return clientID == c.Bootstrap.ClientID },
		Limits:     token.Limits{TokensPerSecond: c.Tokens.PerSecond, FailuresPerMinute: c.Tokens.FailuresPerMinute},
	}), keys, nil
}

func oauthTasks(d service.Deps, keys *signing.Keeper, tokens *token.Tokens) []service.Task {
	return []service.Task{
		{Name: "signing keys", Every: 5 * time.Second, Do: keys.Refresh},
		d.DueTask(service.DueWork{
			Name: "forget ended tokens", Every: time.Minute, Due: ended.Due,
			Do: func(ctx context.Context, id string) error { return ended.Forget(ctx, d.Store, id) },
		}),
		d.DueTask(tokens.Assertions.Forgetting()),
	}
}
