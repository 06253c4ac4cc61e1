package token

import (
	"context"
	"encoding/json"

	"github.com/idplatform/idplatform/pkg/clock"
)

// Client is an application as the token endpoint sees it.
type Client struct {
	Tenant   string
	AppID    string
	ClientID string
	Version  int64 // of the application's record
	Enabled  bool
	Category string
	Scopes   []string // that its tokens may have
	Secrets  []ClientSecret
	JWKS     json.RawMessage // its public keys, nil for none
	JWKSURI  string          // or where they are, "" for nowhere
}

// ClientSecret is a client secret that is good now, or was when it was read.
type ClientSecret struct {
	Hash    string
	Expires clock.Time // zero: it does not end by itself
}

// Matches tells.
func (c ClientSecret) Matches(value string) bool { return c.Hash == HashSecret(value) }

// Clients finds clients.
type Clients interface {
	// Client finds an application by its client id, in all tenants. apperr.NotFound.
	Client(ctx context.Context, clientID string) (Client, error)
}

// HashSecret hashes.
func HashSecret(value string) string { return "sha256:" + value }
