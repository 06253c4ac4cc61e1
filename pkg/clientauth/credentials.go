// Package clientauth reads by what an OAuth client proves in a request who it is: a client secret (client_secret_basic
// and client_secret_post, RFC 6749 §2.3.1) or an assertion that it has signed (private_key_jwt, RFC 7523 §2.2). It
// checks assertions; secrets are compared by those who keep their hashes.
package clientauth

import (
	"net/http"
	"net/url"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// The methods, with their names in RFC 8414 §2.
const (
	SecretBasic   = "client_secret_basic"
	SecretPost    = "client_secret_post"
	PrivateKeyJWT = "private_key_jwt"
	None          = "none" // the client id alone
)

// assertionType is the only valid value of client_assertion_type.
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// Credentials are the parts of a request by which a client can authenticate.
type Credentials struct {
	Authorization []string // every header of that name
	ClientID      string
	ClientSecret  string
	AssertionType string
	Assertion     string
}

// Proof is the client id and the evidence that a request has for it.
type Proof struct {
	Method    string
	ClientID  string
	Secret    string
	Assertion string
}

// Proof returns the proof of the one method that the request uses; an assertion is not verified yet. The error is
// apperr.Unauthenticated or InvalidParameters.
func (c Credentials) Proof() (Proof, error) {
	var used []Proof
	if len(c.Authorization) > 0 {
		id, secret, err := c.basic()
		if err != nil {
			return Proof{}, err
		}
		used = append(used, Proof{Method: SecretBasic, ClientID: id, Secret: secret})
	}
	if c.ClientSecret != "" && !repeats(used, c.ClientID, c.ClientSecret) {
		used = append(used, Proof{Method: SecretPost, ClientID: c.ClientID, Secret: c.ClientSecret})
	}
	if c.Assertion != "" || c.AssertionType != "" {
		if c.AssertionType != assertionType {
			return Proof{}, apperr.Invalid("client_assertion_type", "must be %s", assertionType)
		}
		id, err := claimedBy(c.Assertion)
		if err != nil {
			return Proof{}, err
		}
		used = append(used, Proof{Method: PrivateKeyJWT, ClientID: id, Assertion: c.Assertion})
	}
	switch {
	case len(used) > 1:
		return Proof{}, apperr.New(apperr.InvalidParameters, "the client must use exactly one authentication method")
	case len(used) == 0 && c.ClientID == "":
		return Proof{}, ErrMissing
	case len(used) == 0:
		return Proof{Method: None, ClientID: c.ClientID}, nil
	case used[0].ClientID == "":
		return Proof{}, apperr.Invalid("client_id", "is missing")
	case c.ClientID != "" && c.ClientID != used[0].ClientID:
		return Proof{}, apperr.Invalid("client_id", "is not the client that authenticates")
	case used[0].Method == SecretBasic && used[0].Secret == "":
		used[0].Method = None // some libraries send public clients' ids so
	}
	return used[0], nil
}

// ErrMissing is the error for a request that names no client, or has no proof where there must be one.
var ErrMissing = apperr.New(apperr.Unauthenticated, "the client must authenticate")

// ErrUnproven is the error for every invalid credential: nobody learns whether it was the id or the secret.
var ErrUnproven = apperr.New(apperr.Unauthenticated, "the client's credential is not valid")

// repeats reports whether the form repeats the id and secret of the Authorization header. A client must not send both
// (RFC 6749 §2.3), but zitadel/oidc does when it revokes a token, and they are one credential.
func repeats(used []Proof, clientID, secret string) bool {
	return len(used) == 1 && used[0].ClientID == clientID && used[0].Secret == secret
}

// basic parses client_secret_basic. Id and secret are form-encoded before they are joined (RFC 6749 §2.3.1).
func (c Credentials) basic() (id, secret string, err error) {
	if len(c.Authorization) > 1 {
		return "", "", apperr.New(apperr.InvalidParameters, "there must be exactly one Authorization header")
	}
	r := http.Request{Header: http.Header{"Authorization": c.Authorization}}
	user, password, ok := r.BasicAuth()
	if !ok {
		return "", "", apperr.New(apperr.Unauthenticated,
			"the Authorization header must be: Basic, a space, id:secret in base64")
	}
	id, idErr := url.QueryUnescape(user)
	secret, secretErr := url.QueryUnescape(password)
	if idErr != nil || secretErr != nil { // the cause would quote them
		return "", "", apperr.New(apperr.Unauthenticated, "the client's id and secret must be form-encoded")
	}
	return id, secret, nil
}
