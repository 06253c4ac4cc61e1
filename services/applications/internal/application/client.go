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

// ClientSecret is a client secret that is good now, or was when it was read.
type ClientSecret struct {
	Hash    string     // see HashSecret
	Expires clock.Time // zero: it does not end by itself
}

// Matches tells whether a secret is this one, in a time that does not tell how much of it is right.
func (c ClientSecret) Matches(value string) bool {
	return subtle.ConstantTimeCompare([]byte(c.Hash), []byte(HashSecret(value))) == 1
}

// Client is an application as whoever authenticates it sees it.
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

// Client finds an application by its client id, in any tenant. apperr.NotFound, after as many reads as for a client that
// exists, so that the time does not tell which clients there are.
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

// readNobody reads what Client reads of an application that exists: its record and the hashes of its secrets.
func (s *Applications) readNobody(ctx context.Context) error {
	const nobody = "nobody" // no application's id
	ctx = request.System(ctx, request.Platform)
	if _, err := applications.FindMany(ctx, s.Store, []string{nobody}); err != nil {
		return err
	}
	_, err := secretHashes.FindMany(ctx, s.Store, []string{nobody})
	return err
}
