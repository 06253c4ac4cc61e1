package application

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/request"
)

// ClientSecret is a client secret that has not expired, at the time when it was read.
type ClientSecret struct {
	Hash    string     // see HashSecret
	Expires clock.Time // zero: it does not expire
}

// Matches compares in constant time.
func (c ClientSecret) Matches(value string) bool {
	return subtle.ConstantTimeCompare([]byte(c.Hash), []byte(HashSecret(value))) == 1
}

// Client is what is needed of an application to authenticate it and to issue tokens.
type Client struct {
	Tenant   string
	AppID    string
	ClientID string
	Version  int64 // of the application's record
	Enabled  bool
	Category string
	Scopes   []string // the most that its tokens can have
	Secrets  []ClientSecret
	JWKS     json.RawMessage // its public keys, nil for none
	JWKSURI  string          // or the address of these keys
}

// Client finds an application by its client id, in any tenant. For an unknown id the error is apperr.NotFound, after as
// many reads as for a known one, so that the time does not tell which clients exist.
func (s *Applications) Client(ctx context.Context, clientID string) (Client, error) {
	doc, err := applications.FindGlobal(ctx, s.Store, byClientID, clientID)
	if apperr.IsNotFound(err) {
		return Client{}, cmp.Or(s.readNobody(ctx), err)
	}
	if err != nil {
		return Client{}, err
	}
	a, err := doc.Value()
	if err != nil {
		return Client{}, err
	}
	c := Client{
		Tenant: a.TenantID, AppID: a.ID, ClientID: a.ClientID, Version: a.Version, Enabled: a.Enabled(),
		Category: a.Category,
		Scopes:   a.Scopes, JWKS: a.JWKS, JWKSURI: a.JWKSURI,
	}
	kept, err := secretHashes.Find(request.System(ctx, a.TenantID), s.Store, a.ID)
	if apperr.IsNotFound(err) {
		return c, nil
	}
	if err != nil {
		return Client{}, err
	}
	h, err := kept.Value()
	if err != nil {
		return Client{}, err
	}
	for _, shown := range a.Secrets {
		if hash, ok := h.SHA256[shown.ID]; ok {
			c.Secrets = append(c.Secrets, ClientSecret{Hash: hash, Expires: shown.TimeExpires})
		}
	}
	return c, nil
}

// readNobody makes the same reads as Client for an existing application: its record and its secrets' hashes.
func (s *Applications) readNobody(ctx context.Context) error {
	const nobody = "nobody" // no application's id
	ctx = request.System(ctx, request.Platform)
	if _, err := applications.FindMany(ctx, s.Store, []string{nobody}); err != nil {
		return err
	}
	_, err := secretHashes.FindMany(ctx, s.Store, []string{nobody})
	return err
}
