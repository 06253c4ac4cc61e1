package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/cache"
	"github.com/idplatform/idplatform/pkg/clock"
)

const (
	// MaxTokenSize is the size of the longest token that is parsed, in bytes.
	MaxTokenSize = 8 << 10
	// Leeway is how much the clocks of issuer and verifier may differ.
	Leeway = 30 * time.Second
	// MaxCacheTTL bounds how long a token that was found valid is not looked at again. It is shorter than the 30 s
	// after which the end of a token must be noticed everywhere: a verifier that is cut off (see AskMeanwhile) notices
	// it when it looks again.
	MaxCacheTTL = 20 * time.Second

	// Platform is the Issuer.Name of the platform itself. The iss of its tokens is its public URL, which may change.
	Platform = "idplatform"

	// DefaultTenantClaim is the claim that names the tenant.
	DefaultTenantClaim = "tenant_id"
	// DefaultScopeClaim is the claim that names the scopes (RFC 8693 §4.2).
	DefaultScopeClaim = "scope"

	clientVersionClaim = "client_version" // in the platform's own tokens
	applicationClaim   = "application_id" // in the platform's own tokens

	maxSubjectSize = 255     // OpenID Connect Core §2
	usualToken     = 1 << 10 // bytes; a longer token is copied to the heap
)

// Issuer is an issuer whose tokens are accepted.
type Issuer struct {
	Name        string   // Principal.Issuer, and the exact value of iss
	Aliases     []string // further values of iss that mean this issuer
	Keys        KeySource
	Algorithms  []string // of EdDSA, RS256, ES256; empty means EdDSA
	Audience    string   // must be in aud; empty: aud is not checked
	Tenant      string   // the tenant of all its tokens; empty: TenantClaim names it
	TenantClaim string   // empty means DefaultTenantClaim
	ScopeClaim  string   // a text of scopes separated by spaces, or a list; empty means DefaultScopeClaim
	Scopes      Scopes   // the scopes that its tokens can grant; others in them are ignored
}

// Config configures a Verifier.
type Config struct {
	Issuers   []Issuer
	Clock     clock.Clock
	Log       *slog.Logger
	CacheSize int           // number of cached tokens; 0 means 10,000
	CacheTTL  time.Duration // at most MaxCacheTTL; 0 means MaxCacheTTL

	verified func() // for tests: called after a token that is not in the cache was found valid
}

// Verifier verifies access tokens. It is safe for concurrent use.
type Verifier struct {
	trusting sync.Mutex
	issuers  atomic.Pointer[map[string]*issuer] // by iss; a map is never changed, only replaced

	parser *jwt.Parser
	clock  clock.Clock
	log    *slog.Logger
	ended  endedTokens
	asks   atomic.Pointer[Meanwhile]
	test   func()

	cache *cache.Cache[[sha256.Size]byte, *verified]
	ttl   time.Duration
}

type issuer struct {
	Issuer
	keys keys
}

// verified is a token that was found valid. It stays valid while the issuer's key set is the one that it was verified
// with, and it has not ended.
type verified struct {
	principal *Principal
	issuer    *issuer
	set       *keySet
	keyID     string
	since     clock.Time // when it was last looked at
	until     clock.Time
}

// New makes a Verifier. It refuses a configuration that could accept more than is intended.
func New(c Config) (*Verifier, error) {
	c.CacheSize = cmp.Or(c.CacheSize, 10_000)
	c.CacheTTL = cmp.Or(c.CacheTTL, MaxCacheTTL)
	if c.CacheTTL < 0 || c.CacheTTL > MaxCacheTTL || c.CacheSize < 0 {
		return nil, fmt.Errorf("the token cache needs a size above 0 and a lifetime up to %v", MaxCacheTTL)
	}
	v := &Verifier{clock: c.Clock, log: c.Log, test: c.verified, ttl: c.CacheTTL}
	v.issuers.Store(&map[string]*issuer{})
	v.ended.list, v.ended.sweep = map[endedKey]Ended{}, firstSweep
	for _, i := range c.Issuers {
		if err := v.Trust(i); err != nil {
			return nil, err
		}
	}
	v.parser = jwt.NewParser(
		jwt.WithValidMethods([]string{EdDSA, RS256, ES256}), jwt.WithStrictDecoding(), jwt.WithExpirationRequired(),
		jwt.WithLeeway(Leeway), jwt.WithTimeFunc(func() time.Time { return c.Clock.Now().Std() }),
	)
	v.cache = cache.New[[sha256.Size]byte, *verified](c.CacheSize)
	return v, nil
}

// Trust accepts the tokens of one more issuer from now on.
func (v *Verifier) Trust(i Issuer) error {
	opened, err := i.open(v.clock, v.log)
	if err != nil {
		return fmt.Errorf("token issuer %q: %w", i.Name, err)
	}
	v.trusting.Lock()
	defer v.trusting.Unlock()
	issuers := maps.Clone(*v.issuers.Load())
	for n, name := range append([]string{i.Name}, i.Aliases...) {
		if other := issuers[name]; other == opened && n > 0 {
			continue // the alias is given twice
		} else if other != nil {
			return fmt.Errorf("token issuer %q: named twice", name)
		}
		issuers[name] = opened
	}
	v.issuers.Store(&issuers)
	return nil
}

func (i Issuer) open(clk clock.Clock, log *slog.Logger) (*issuer, error) {
	if i.Name == "" || i.Keys == nil {
		return nil, fmt.Errorf("needs a name and keys")
	}
	if len(i.Algorithms) == 0 {
		i.Algorithms = []string{EdDSA}
	}
	for _, a := range i.Algorithms {
		if a != EdDSA && a != RS256 && a != ES256 {
			return nil, fmt.Errorf("algorithm %q is not one of EdDSA, RS256, ES256", a)
		}
	}
	if i.Tenant != "" && (i.TenantClaim != "" || !ValidTenant(i.Tenant)) {
		return nil, fmt.Errorf("needs a valid tenant or a tenant claim, not both")
	}
	i.TenantClaim = cmp.Or(i.TenantClaim, DefaultTenantClaim)
	i.ScopeClaim = cmp.Or(i.ScopeClaim, DefaultScopeClaim)
	opened, err := i.Keys.open(clk, log)
	return &issuer{i, opened}, err
}

// Verify returns the content of a valid token. For any fault of the token the error is apperr.Unauthenticated, with the
// reason as its cause, for logs. It is apperr.Unavailable if the issuer's keys are not known and its key source does
// not answer.
func (v *Verifier) Verify(ctx context.Context, token string) (*Principal, error) {
	return v.VerifyWithin(ctx, token, v.ttl)
}

// VerifyWithin is Verify, but for a token that was last looked at longer ago than age.
func (v *Verifier) VerifyWithin(ctx context.Context, token string, age time.Duration) (*Principal, error) {
	if len(token) > MaxTokenSize {
		return nil, refused(fmt.Errorf("a token of %d bytes", len(token)))
	}
	var text [usualToken]byte // on the stack
	id := sha256.Sum256(append(text[:0], token...))
	now := v.clock.Now()
	if hit, ok := v.cache.Get(id); ok && now.Before(hit.until) && now.Before(hit.since.Add(age)) &&
		hit.issuer.keys.current() == hit.set && !v.ended.has(hit.principal) {
		return hit.principal, nil
	}
	found, err := v.parse(ctx, token)
	if err != nil {
		return nil, err
	}
	if v.ended.has(found.principal) {
		return nil, refused(fmt.Errorf("the token was ended before it expired"))
	}
	if err := v.ask(ctx, found.principal, token); err != nil {
		return nil, err
	}
	if v.test != nil {
		v.test()
	}
	found.since, found.until = now, now.Add(v.ttl)
	if exp := found.principal.Expires; exp.Before(found.until) {
		found.until = exp
	}
	if now.Before(found.until) {
		v.cache.Set(id, found)
	}
	return found.principal, nil
}

func (v *Verifier) parse(ctx context.Context, text string) (*verified, error) {
	found := &verified{}
	claims := jwt.MapClaims{}
	_, err := v.parser.ParseWithClaims(text, claims, func(token *jwt.Token) (any, error) {
		return v.key(ctx, token, claims, found)
	})
	if err == nil {
		found.principal, err = found.issuer.read(claims)
	}
	if err == nil {
		found.principal.keyID = found.keyID
	}
	if away, ok := errors.AsType[*apperr.Error](err); ok {
		return nil, away
	}
	if err != nil {
		return nil, refused(err)
	}
	return found, nil
}

// key finds the key that must have signed the token. Nothing in the token is trusted yet: its header only selects among
// the configured keys. Keys and addresses of keys in the header (jwk, jku, x5c, x5u) are ignored.
func (v *Verifier) key(ctx context.Context, token *jwt.Token, claims jwt.MapClaims, found *verified) (any, error) {
	name, _ := claims["iss"].(string)
	from := (*v.issuers.Load())[name]
	if from == nil {
		return nil, fmt.Errorf("unknown issuer")
	}
	algorithm := token.Method.Alg()
	if !slices.Contains(from.Algorithms, algorithm) {
		return nil, fmt.Errorf("the issuer does not sign with %s", algorithm)
	}
	if _, ok := token.Header["crit"]; ok {
		// RFC 7515 §4.1.11: a token is refused if it has critical header members that the verifier does not know.
		return nil, fmt.Errorf("critical header members")
	}
	if !accessTokenType(token.Header["typ"]) {
		return nil, fmt.Errorf("not the type of an access token")
	}
	id, ok := token.Header["kid"].(string)
	if !ok && token.Header["kid"] != nil {
		return nil, fmt.Errorf("kid is not a text")
	}
	key, set, err := from.keys.find(ctx, id, algorithm)
	if err != nil {
		return nil, err
	}
	if key == nil {
		return nil, fmt.Errorf("unknown key")
	}
	found.issuer, found.set, found.keyID = from, set, key.id // the key's own id: a token may have no kid
	return key.key, nil
}

// accessTokenType refuses tokens for other purposes (logout+jwt, dpop+jwt, …) (RFC 8725 §3.11).
func accessTokenType(typ any) bool {
	name, ok := typ.(string)
	name = strings.TrimPrefix(strings.ToLower(name), "application/")
	return typ == nil || (ok && (name == "at+jwt" || name == "jwt"))
}

// read makes the principal from verified claims.
func (i *issuer) read(claims jwt.MapClaims) (*Principal, error) {
	if i.Audience != "" {
		aud, err := claims.GetAudience()
		if err != nil || !slices.Contains(aud, i.Audience) {
			return nil, fmt.Errorf("for another audience")
		}
	}
	p := &Principal{Issuer: i.Name, Tenant: i.Tenant, Scopes: scopesOf(claims[i.ScopeClaim]) & i.Scopes}
	p.Subject, _ = claims["sub"].(string)
	if p.Subject == "" || len(p.Subject) > maxSubjectSize {
		return nil, fmt.Errorf("no subject, or one over %d bytes", maxSubjectSize)
	}
	if p.Tenant == "" {
		p.Tenant, _ = claims[i.TenantClaim].(string)
	}
	if !ValidTenant(p.Tenant) {
		return nil, fmt.Errorf("no tenant")
	}
	p.ClientID, _ = claims["client_id"].(string)
	p.ApplicationID, _ = claims[applicationClaim].(string)
	p.TokenID, _ = claims["jti"].(string)
	if version, ok := claims[clientVersionClaim].(float64); ok {
		p.ClientVersion = int64(version)
	}
	exp, err := claims.GetExpirationTime()
	if err != nil || exp == nil || exp.Year() > 9999 { // RFC 3339 ends with that year
		return nil, fmt.Errorf("no possible time of expiry")
	}
	p.Expires = clock.Of(exp.Time)
	if iat, ok := claims["iat"].(float64); ok && iat > 0 && iat < 1e11 {
		p.IssuedAt = clock.FromMillis(int64(iat) * 1000)
	}
	p.caller, p.actor = callerOf(p), actorOf(p)
	return p, nil
}

// scopesOf reads the two forms that issuers use: a text, and a list of texts.
func scopesOf(claim any) Scopes {
	var s Scopes
	switch c := claim.(type) {
	case string:
		s, _ = ParseScopes(c)
	case []any:
		for _, item := range c {
			if name, ok := item.(string); ok {
				s |= bit(Scope(name))
			}
		}
	}
	return s
}

func refused(reason error) error {
	return apperr.New(apperr.Unauthenticated, "the bearer token is not valid").Because(reason)
}
