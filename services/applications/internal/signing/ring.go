// Package signing keeps the keys that the platform's tokens are signed with: one ring of keys for all replicas of the
// service, stored with its private parts encrypted. The times in the ring say which key signs at any moment. So a
// rotation is one write, and replicas that read the ring agree without messages.
package signing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/secret"
)

const (
	// publishedBefore is how long a key is published before it signs. It is several times as long as services and
	// clients may keep a copy of the key set.
	publishedBefore = 10 * time.Minute
	// keptAfter is how long a key stays published after its last signature. Its last token has expired by then.
	keptAfter = auth.MaxTokenTTL + auth.Leeway
	// maxKeys bounds the number of published keys.
	maxKeys = 20
)

// Key is the public description of a signing key.
type Key struct {
	ID          string     `json:"id" doc:"The key id: kid in the tokens' headers, the JWK's SHA-256 thumbprint (RFC 7638)"`
	TimeCreated clock.Time `json:"time_created" doc:"When it was made"`
	TimeActive  clock.Time `json:"time_active" doc:"When it starts to sign, until the next key does"`
	TimeEnd     clock.Time `json:"time_end" nullable:"true" doc:"When its last token has expired and it is no longer published; null until a next key exists"`
}

// ring is the stored document. There is one.
type ring struct {
	docstore.Meta
	Keys    []Key       `json:"keys"`    // in the order in which they sign
	Issuers []issuer    `json:"issuers"` // the last one is the current one
	Private secret.Text `json:"private"` // the key pairs, as auth.Keys writes them
}

// issuer is a public URL that tokens were issued under.
type issuer struct {
	URL     string     `json:"url"`
	TimeEnd clock.Time `json:"time_end"` // when its last token has expired; zero for the current one
}

const (
	ringID  = "tokens"
	private = "private"
)

var rings = docstore.Define(docstore.Schema[ring]{
	Name: "signing_keys", Noun: "ring of signing keys",
	Sealed: func(r *ring) []docstore.Sealed {
		return []docstore.Sealed{docstore.Seal(private, &r.Private, docstore.NotSent)}
	},
})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{rings.Def()} }

// newRing makes a ring of one key.
func newRing(key auth.Key, now clock.Time) (*ring, error) {
	r := &ring{Meta: docstore.Meta{ID: ringID}, Keys: []Key{{ID: key.ID, TimeCreated: now, TimeActive: now}}}
	return r, r.seal(auth.NewKeys(key))
}

func (r *ring) seal(keys auth.Keys) error {
	pairs, err := keys.PrivateJWKS()
	if err != nil {
		return err
	}
	r.Private = secret.NewText(string(pairs))
	return nil
}

// pairs decrypts the stored key pairs.
func pairs(ctx context.Context, from docstore.Reader) (auth.Keys, error) {
	text, err := rings.Reveal(ctx, from, ringID, private)
	if err != nil {
		return auth.Keys{}, err
	}
	return auth.ParsePrivateJWKS([]byte(text.Reveal()))
}

// maxIssuers bounds the number of stored issuers.
const maxIssuers = 20

// issueUnder makes a URL the current issuer. Earlier ones are kept until their last token has expired.
func (r *ring) issueUnder(url string, now clock.Time) {
	if n := len(r.Issuers); n > 0 {
		r.Issuers[n-1].TimeEnd = now.Add(keptAfter)
	}
	r.Issuers = slices.DeleteFunc(r.Issuers, func(i issuer) bool { return i.URL == url || !i.TimeEnd.After(now) })
	r.Issuers = append(r.Issuers, issuer{URL: url})
	r.Issuers = r.Issuers[max(0, len(r.Issuers)-maxIssuers):]
}

// issuesUnder reports whether a URL is the current issuer.
func (r *ring) issuesUnder(url string) bool {
	n := len(r.Issuers)
	return n > 0 && r.Issuers[n-1].URL == url
}

// staying is the number of keys for which stay returns true.
func (r *ring) staying(stay func(Key) bool) (n int) {
	for _, k := range r.Keys {
		if stay(k) {
			n++
		}
	}
	return n
}

// newest is the key that was added last. It signs, or will soon.
func (r *ring) newest() *Key { return &r.Keys[len(r.Keys)-1] }

// add appends a new key and removes the keys for which stay returns false, with their private parts. The others stay
// published until their last token has expired.
func (r *ring) add(keys auth.Keys, made auth.Key, active, now clock.Time, stay func(Key) bool) error {
	r.newest().TimeEnd = active.Add(keptAfter)
	r.Keys = append(r.Keys, Key{ID: made.ID, TimeCreated: now, TimeActive: active})
	keys, err := keys.Add(made).Activate(made.ID) // because the key that signs cannot be removed
	for _, k := range r.Keys {
		if err == nil && !stay(k) {
			keys, err = keys.Remove(k.ID)
		}
	}
	if err != nil {
		return err
	}
	r.Keys = slices.DeleteFunc(r.Keys, func(k Key) bool { return !stay(k) })
	return r.seal(keys)
}

// at returns the keys as they are used at a moment: the one that signs first, without those that have ended.
func (r *ring) at(now clock.Time, keys auth.Keys) (auth.Keys, error) {
	signs := r.Keys[0].ID
	for _, k := range r.Keys {
		if !k.TimeActive.After(now) {
			signs = k.ID
		}
	}
	keys, err := keys.Activate(signs)
	for _, k := range r.Keys {
		if err == nil && !k.TimeEnd.IsZero() && !k.TimeEnd.After(now) && k.ID != signs {
			keys, err = keys.Remove(k.ID)
		}
	}
	if err != nil {
		return keys, fmt.Errorf("the ring of signing keys: %w", err)
	}
	return keys, nil
}
