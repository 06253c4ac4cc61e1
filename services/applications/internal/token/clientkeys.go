package token

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/cache"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/services/applications/internal/application"
)

// ClientKeys caches the public keys of clients that authenticate by assertions.
type ClientKeys struct {
	client *http.Client
	clock  clock.Clock
	log    *slog.Logger
	cache  *cache.Cache[string, *clientKeys]
}

type clientKeys struct {
	from string // the key set, or its address
	keys *auth.PublicKeys
}

const maxClientKeys = 1000

// NewClientKeys makes an empty cache. Key sets are fetched with the HTTP client.
func NewClientKeys(client *http.Client, clk clock.Clock, log *slog.Logger) *ClientKeys {
	return &ClientKeys{client, clk, log, cache.New[string, *clientKeys](maxClientKeys)}
}

func (k *ClientKeys) of(c application.Client) (*auth.PublicKeys, error) {
	var source auth.KeySource
	from := c.JWKSURI
	switch {
	case len(c.JWKS) > 0:
		source, from = auth.StaticKeys(c.JWKS), string(c.JWKS)
	case from != "":
		source = auth.KeyURL{URL: from, Client: k.client}
	default:
		return nil, errors.New("the client has no keys")
	}
	if held, ok := k.cache.Get(c.ClientID); ok && held.from == from {
		return held.keys, nil
	}
	keys, err := auth.OpenKeys(source, k.clock, k.log)
	if err == nil {
		k.cache.Set(c.ClientID, &clientKeys{from, keys})
	}
	return keys, err
}
