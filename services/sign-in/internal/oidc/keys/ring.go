// Package keys keeps the keys that each tenant's tokens are signed with: for each signature algorithm that the tenant
// uses, a ring of keys for all replicas, stored with its private parts encrypted. A ring is made when a token is signed
// by its algorithm for the first time. The times in it say which key signs at any moment: so a rotation is one write,
// and replicas that read the ring agree without messages.
package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/secret"
)

const (
	// every is how long a key signs before the next one does.
	every = 90 * 24 * time.Hour
	// publishedBefore is how long a key is published before it signs. It is several times as long as clients may keep a
	// copy of the key set.
	publishedBefore = 24 * time.Hour
	// keptAfter is how long a key stays published after its last signature. Its last token has expired by then: an ID
	// token is valid for a day at most.
	keptAfter = 48 * time.Hour
	rsaBits   = 2048 // RFC 7518 §3.3; a signature takes less than a millisecond
)

// ES256 is the algorithm of access tokens.
const ES256 = "ES256"

// Algorithms are all signature algorithms (RFC 7518 §3.1, RFC 8037 §3.1), the default of ID tokens first.
var Algorithms = []string{
	"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", ES256, "ES384", "ES512", "EdDSA",
}

// key is the public description of a signing key.
type key struct {
	ID         string          `json:"id"` // the JWK's SHA-256 thumbprint (RFC 7638)
	TimeActive clock.Time      `json:"time_active"`
	TimeEnd    clock.Time      `json:"time_end"` // when it is no longer published; null until a next key exists
	Public     json.RawMessage `json:"public"`   // the JWK
}

// ring is the stored document of one algorithm, whose name is its id.
type ring struct {
	docstore.Meta
	Keys    []key       `json:"keys"`    // in the order in which they sign
	Private secret.Text `json:"private"` // a JWK set
}

const private = "private"

var rings = docstore.Define(docstore.Schema[ring]{
	Name: "oidc_keys", Noun: "ring of signing keys",
	Sealed: func(r *ring) []docstore.Sealed {
		return []docstore.Sealed{docstore.Seal(private, &r.Private, docstore.NotSent)}
	},
	Due: func(r *ring) clock.Time { return r.newest().TimeActive.Add(every - publishedBefore) },
})

// newest is the key that was added last. It signs, or will soon.
func (r *ring) newest() *key { return &r.Keys[len(r.Keys)-1] }

// signs is the key that signs now.
func (r *ring) signs(now clock.Time) key {
	signs := r.Keys[0]
	for _, k := range r.Keys {
		if !k.TimeActive.After(now) {
			signs = k
		}
	}
	return signs
}

func (k key) ended(now clock.Time) bool { return !k.TimeEnd.IsZero() && !k.TimeEnd.After(now) }

// add appends a new key, and removes those that have ended.
func (r *ring) add(made jose.JSONWebKey, pairs jose.JSONWebKeySet, active, now clock.Time) error {
	public, err := made.Public().MarshalJSON()
	if err != nil {
		return err
	}
	if len(r.Keys) > 0 {
		r.newest().TimeEnd = active.Add(keptAfter)
	}
	r.Keys = append(r.Keys, key{ID: made.KeyID, TimeActive: active, Public: public})
	r.Keys = slices.DeleteFunc(r.Keys, func(k key) bool { return k.ended(now) })
	pairs.Keys = slices.DeleteFunc(append(pairs.Keys, made), func(pair jose.JSONWebKey) bool {
		return !slices.ContainsFunc(r.Keys, func(k key) bool { return k.ID == pair.KeyID })
	})
	body, err := json.Marshal(pairs)
	r.Private = secret.NewText(string(body))
	return err
}

// generate makes a key pair for an algorithm.
func generate(algorithm string) (jose.JSONWebKey, error) {
	var pair crypto.Signer
	var err error
	switch algorithm {
	case "RS256", "RS384", "RS512", "PS256", "PS384", "PS512":
		pair, err = rsa.GenerateKey(rand.Reader, rsaBits)
	case ES256:
		pair, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ES384":
		pair, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ES512":
		pair, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "EdDSA":
		_, pair, err = ed25519.GenerateKey(rand.Reader)
	default:
		err = fmt.Errorf("no signature algorithm: %q", algorithm)
	}
	if err != nil {
		return jose.JSONWebKey{}, err
	}
	made := jose.JSONWebKey{Key: pair, Algorithm: algorithm, Use: "sig"}
	print, err := made.Thumbprint(crypto.SHA256)
	made.KeyID = base64.RawURLEncoding.EncodeToString(print)
	return made, err
}
