package keys

import (
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/cache"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/service"
)

const (
	// reread is how long a replica uses the rings that it has read. It is much shorter than publishedBefore.
	reread = time.Minute
	// again is how long a replica does not look again for a key that it has not found.
	again     = 50 * time.Millisecond
	maxHeld   = 1000 // tenants whose keys are in memory
	maxHeader = 100  // bytes of a key id
	// maxRead bounds the tokens that are kept once their signature is verified, in bytes of their claims.
	maxRead = 4 << 20
)

// Keys are the signing keys of all tenants, for one replica. The tenant is the context's.
type Keys struct {
	store *docstore.Store
	held  *cache.Cache[string, *held]
	read  *cache.Cache[readKey, signed]
}

// readKey is a tenant's token that was read: the hash of its text, which may be long.
type readKey struct {
	tenant, typ string
	text        [sha256.Size]byte
}

// signed are the claims of a token whose signature is right, and the key that has made it.
type signed struct {
	algorithm, key string
	claims         []byte
}

// held are a tenant's rings in memory.
type held struct {
	mu    sync.Mutex
	read  time.Time // by the clock of the machine, like the life of a cache
	rings map[string]*ring
	pairs map[string]crypto.Signer // by key id
}

// New makes the keys of a store that has Collections.
func New(store *docstore.Store) *Keys {
	weigh := func(_ readKey, s signed) int { return len(s.claims) }
	return &Keys{store, cache.New[string, *held](maxHeld), cache.NewWeighed(maxRead, weigh)}
}

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{rings.Def()} }

// Sign signs claims by an algorithm with the tenant's key. typ is the header member of that name.
func (k *Keys) Sign(ctx context.Context, algorithm, typ string, claims any) (string, error) {
	id, pair, err := k.signer(ctx, algorithm)
	if err != nil {
		return "", err
	}
	token := jwt.NewWithClaims(jwt.GetSigningMethod(algorithm), body{of: claims})
	token.Header["typ"], token.Header["kid"] = typ, id
	return token.SignedString(pair)
}

// body makes a value that has a JSON form the claims of a token. Signing calls none of the methods of jwt.Claims.
type body struct {
	jwt.Claims
	of any
}

// MarshalJSON implements json.Marshaler.
func (b body) MarshalJSON() ([]byte, error) { return json.Marshal(b.of) }

// ErrToken means that a text is not a token that the tenant's keys have signed.
var ErrToken = errors.New("not one of our tokens")

// Read verifies the signature of one of the tenant's own tokens, and decodes its claims. It checks neither times nor
// any other claim. The key decides by which algorithm the signature must be made. A token is verified once; after that
// it is good as long as its key. The error is ErrToken, or the store's.
func (k *Keys) Read(ctx context.Context, text, typ string, claims any) error {
	name := readKey{request.Tenant(ctx), typ, sha256.Sum256([]byte(text))}
	token, known := k.read.Get(name)
	if known {
		if _, err := k.find(ctx, token.algorithm, token.key); err != nil {
			return err
		}
	} else {
		var err error
		if token, err = k.verify(ctx, text, typ); err != nil {
			return err
		}
		k.read.Set(name, token)
	}
	if json.Unmarshal(token.claims, claims) != nil {
		return ErrToken
	}
	return nil
}

// verify checks the signature of a token and returns its claims as they were signed.
func (k *Keys) verify(ctx context.Context, text, typ string) (signed, error) {
	parser := jwt.NewParser(jwt.WithValidMethods(Algorithms), jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation())
	var token signed
	var broken error
	_, err := parser.ParseWithClaims(text, jwt.MapClaims{}, func(t *jwt.Token) (any, error) {
		id, _ := t.Header["kid"].(string)
		if _, critical := t.Header["crit"]; critical || t.Header["typ"] != typ || id == "" || len(id) > maxHeader {
			return nil, ErrToken
		}
		token.algorithm, token.key = t.Method.Alg(), id
		var key any
		key, broken = k.find(ctx, token.algorithm, id)
		return key, broken
	})
	if broken != nil && !errors.Is(broken, ErrToken) {
		return signed{}, broken
	}
	if err == nil {
		token.claims, err = parser.DecodeSegment(strings.Split(text, ".")[1])
	}
	if err != nil {
		return signed{}, ErrToken
	}
	return token, nil
}

// JWKS is the tenant's key set (RFC 7517 §5): the keys that sign, will sign or have signed tokens that may be valid.
type JWKS struct {
	Keys []json.RawMessage `json:"keys"`
}

// Prepare makes the tenant's keys for algorithms that are not there yet.
func (k *Keys) Prepare(ctx context.Context, algorithms ...string) error {
	for _, algorithm := range algorithms {
		if _, _, err := k.signer(ctx, algorithm); err != nil {
			return err
		}
	}
	return nil
}

// JWKS returns it. A tenant has no keys before the first token or Prepare.
func (k *Keys) JWKS(ctx context.Context) (JWKS, error) {
	set, now := JWKS{Keys: []json.RawMessage{}}, k.store.Now()
	h := k.of(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := k.fill(ctx, h, reread); err != nil {
		return set, err
	}
	for _, algorithm := range Algorithms {
		if r := h.rings[algorithm]; r != nil {
			for _, key := range r.Keys {
				if !key.ended(now) {
					set.Keys = append(set.Keys, key.Public)
				}
			}
		}
	}
	return set, nil
}

func (k *Keys) of(ctx context.Context) *held {
	return k.held.GetOrMake(request.Tenant(ctx), func() *held { return &held{} })
}

func (k *Keys) signer(ctx context.Context, algorithm string) (id string, pair crypto.Signer, err error) {
	if !slices.Contains(Algorithms, algorithm) {
		return "", nil, fmt.Errorf("no signature algorithm: %q", algorithm)
	}
	h := k.of(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := k.fill(ctx, h, reread); err != nil {
		return "", nil, err
	}
	if h.rings[algorithm] == nil {
		if err := k.begin(ctx, algorithm); err != nil {
			return "", nil, err
		}
		if err := k.fill(ctx, h, 0); err != nil {
			return "", nil, err
		}
	}
	r := h.rings[algorithm]
	if r == nil {
		return "", nil, fmt.Errorf("there is no ring of keys for %s", algorithm)
	}
	id = r.signs(k.store.Now()).ID
	return id, h.pairs[id], nil
}

// find returns the public key with an id, of the ring of an algorithm.
func (k *Keys) find(ctx context.Context, algorithm, id string) (crypto.PublicKey, error) {
	now := k.store.Now()
	h := k.of(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, age := range []time.Duration{reread, again} { // another replica may have just made the ring
		if err := k.fill(ctx, h, age); err != nil {
			return nil, err
		}
		if r := h.rings[algorithm]; r != nil {
			for _, key := range r.Keys {
				if key.ID == id && !key.ended(now) {
					return h.pairs[id].Public(), nil
				}
			}
		}
	}
	return nil, ErrToken
}

// fill reads the tenant's rings unless they were read within age. The caller has locked h.
func (k *Keys) fill(ctx context.Context, h *held, age time.Duration) error {
	if !h.read.IsZero() && time.Since(h.read) < age {
		return nil
	}
	began := time.Now()
	docs, err := rings.FindMany(ctx, k.store, Algorithms)
	if err != nil {
		return err
	}
	found, pairs := map[string]*ring{}, map[string]crypto.Signer{}
	for _, doc := range docs {
		r := h.rings[doc.ID]
		if r == nil || r.Version != doc.Version {
			if r, err = doc.Value(); err != nil {
				return err
			}
			set, err := k.reveal(ctx, k.store, doc.ID)
			if err != nil {
				return err
			}
			for _, pair := range set.Keys {
				pairs[pair.KeyID], _ = pair.Key.(crypto.Signer)
			}
		}
		for _, key := range r.Keys {
			if pairs[key.ID] == nil {
				pairs[key.ID] = h.pairs[key.ID]
			}
			if pairs[key.ID] == nil { // the ring has changed between the two reads
				return apperr.Away("the ring of signing keys", fmt.Errorf("no pair for the key %s", key.ID))
			}
		}
		found[doc.ID] = r
	}
	h.rings, h.pairs, h.read = found, pairs, began
	return nil
}

func (k *Keys) reveal(ctx context.Context, from docstore.Reader, id string) (jose.JSONWebKeySet, error) {
	var set jose.JSONWebKeySet
	text, err := rings.Reveal(ctx, from, id, private)
	if err == nil {
		err = json.Unmarshal([]byte(text.Reveal()), &set)
	}
	return set, err
}

// begin stores the first key of a ring, unless another replica was faster.
func (k *Keys) begin(ctx context.Context, algorithm string) error {
	made, err := generate(algorithm)
	if err != nil {
		return err
	}
	err = docstore.Do(docstore.WithoutCommitHook(ctx), k.store, func(tx *docstore.Tx) error {
		r := &ring{Meta: docstore.Meta{ID: algorithm}}
		if err := r.add(made, jose.JSONWebKeySet{}, tx.Now, tx.Now); err != nil {
			return err
		}
		_, err := rings.Insert(ctx, tx, r)
		return err
	})
	if _, taken := errors.AsType[*docstore.DuplicateError](err); taken {
		return nil
	}
	return err
}

// Rotation adds the next key to each ring whose newest key has signed for long enough.
func (k *Keys) Rotation() service.DueWork {
	return service.DueWork{Name: "rotate signing keys", Every: time.Minute, Due: rings.Due, Do: k.rotate}
}

func (k *Keys) rotate(ctx context.Context, algorithm string) error {
	made, err := generate(algorithm)
	if err != nil {
		return err
	}
	return docstore.Do(ctx, k.store, func(tx *docstore.Tx) error {
		r, err := rings.Load(ctx, tx, algorithm)
		if err != nil {
			return err
		}
		if r.newest().TimeActive.Add(every - publishedBefore).After(tx.Now) { // another replica was first
			return nil
		}
		pairs, err := k.reveal(ctx, tx, algorithm)
		if err != nil {
			return err
		}
		if err := r.add(made, pairs, tx.Now.Add(publishedBefore), tx.Now); err != nil {
			return err
		}
		_, err = rings.Replace(ctx, tx, r)
		return err
	})
}
