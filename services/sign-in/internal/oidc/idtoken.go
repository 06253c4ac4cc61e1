package oidc

import (
	"context"
	"crypto"
	_ "crypto/sha256" // the hashes of at_hash
	_ "crypto/sha512"
	"encoding/base64"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc/keys"
)

const (
	idTokenType = "JWT"
	// idTokenTTL and defaultAlgorithm are those of ID tokens, if the application's settings do not say.
	idTokenTTL       = time.Hour
	defaultAlgorithm = "RS256" // OpenID Connect Core §15.1
)

// Algorithm is the signature algorithm of an application's ID tokens and logout tokens.
func Algorithm(c questions.Client) string {
	if c.OIDC != nil && c.OIDC.SignatureAlgorithm != "" {
		return c.OIDC.SignatureAlgorithm
	}
	return defaultAlgorithm
}

// idToken makes an ID token (OpenID Connect Core §2). nonce is "" after a refresh (§12.2).
func (p *Provider) idToken(
	ctx context.Context, issuer string, client questions.Client, f *family, granted claims, nonce, access string,
) (string, error) {
	maps.DeleteFunc(granted, func(_ string, value any) bool {
		groups, ok := value.([]string)
		return ok && len(groups) > maxGroups
	})
	now, ttl := p.Store.Now(), idTokenTTL
	if client.OIDC != nil && client.OIDC.LifetimeInSeconds > 0 {
		ttl = time.Duration(client.OIDC.LifetimeInSeconds) * time.Second
	}
	alg := Algorithm(client)
	token := jwt.MapClaims(granted)
	for name, value := range map[string]any{
		"iss": issuer, "sub": f.UserID, "aud": f.ClientID, "iat": seconds(now), "exp": seconds(now.Add(ttl)),
		"auth_time": seconds(f.AuthTime), "at_hash": hashOfAccess(alg, access),
	} {
		token[name] = value
	}
	for name, value := range map[string]string{"sid": f.SessionID, "acr": f.ACR, "nonce": nonce} {
		if value != "" {
			token[name] = value
		}
	}
	if len(f.AMR) > 0 {
		token["amr"] = f.AMR
	}
	return p.Keys.Sign(ctx, alg, idTokenType, token)
}

// hashOfAccess is at_hash (OpenID Connect Core §3.1.3.6): the left half of the access token's hash, which is that of
// the signature algorithm.
func hashOfAccess(alg, access string) string {
	hash := crypto.SHA256
	switch {
	case strings.HasSuffix(alg, "384"):
		hash = crypto.SHA384
	case strings.HasSuffix(alg, "512"), alg == "EdDSA": // Ed25519 uses SHA-512
		hash = crypto.SHA512
	}
	h := hash.New()
	h.Write([]byte(access))
	sum := h.Sum(nil)
	return base64.RawURLEncoding.EncodeToString(sum[:len(sum)/2])
}

// hint are the claims of an ID token that comes back to us.
type hint struct {
	registered
	SessionID string `json:"sid"`
}

// errHint means that a text is not an ID token of the issuer.
var errHint = errors.New("not an ID token of this issuer")

// readHint reads an ID token of the issuer, possibly an expired one. The error is errHint, or the store's.
func (p *Provider) readHint(ctx context.Context, issuer, text string) (hint, error) {
	var claims hint
	err := p.Keys.Read(ctx, text, idTokenType, &claims)
	if errors.Is(err, keys.ErrToken) || err == nil && (claims.Issuer != issuer || claims.Subject == "") {
		return hint{}, errHint
	}
	return claims, err
}
