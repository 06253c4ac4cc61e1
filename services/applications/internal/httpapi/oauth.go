package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/clientauth"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/applications/internal/signing"
	"github.com/idplatform/idplatform/services/applications/internal/token"
)

// The paths of the endpoints.
const (
	revocationPath    = "/v1/oauth2/revoke"
	introspectionPath = "/v1/oauth2/introspect"
	jwksPath          = "/v1/oauth2/jwks"
	metadataPath      = "/.well-known/oauth-authorization-server"
	keysPath          = "/v1/oauth2/keys"
)

// keySetAge is how long clients may keep a copy of the key set. Services keep theirs for at least a minute.
const keySetAge = time.Minute

// ClientForm holds the form parameters by which a client authenticates.
type ClientForm struct {
	ClientID            string `json:"client_id,omitempty" doc:"With client_secret; not needed with an Authorization header or an assertion"`
	ClientSecret        string `json:"client_secret,omitempty" doc:"For client_secret_post (RFC 6749 §2.3.1)"`
	ClientAssertionType string `json:"client_assertion_type,omitempty" doc:"For private_key_jwt: urn:ietf:params:oauth:client-assertion-type:jwt-bearer"`
	ClientAssertion     string `json:"client_assertion,omitempty" doc:"For private_key_jwt: the client's JWT (RFC 7523 §2.2)"`
}

func (f ClientForm) credentials(s rest.Sender) token.Credentials {
	return token.Credentials{Address: s.Address, Credentials: clientauth.Credentials{
		Authorization: s.Authorization, ClientID: f.ClientID, ClientSecret: f.ClientSecret,
		AssertionType: f.ClientAssertionType, Assertion: f.ClientAssertion,
	}}
}

// TokenForm is a token request (RFC 6749 §4.4.2).
type TokenForm struct {
	GrantType string `json:"grant_type" doc:"client_credentials"`
	Scope     string `json:"scope,omitempty" doc:"Scopes, separated by spaces; absent: all scopes of the client"`
	ClientForm
}

// AboutForm is a request about a token (RFC 7009 §2.1, RFC 7662 §2.1).
type AboutForm struct {
	Token         string `json:"token" doc:"The access token"`
	TokenTypeHint string `json:"token_type_hint,omitempty" doc:"Ignored: all tokens are access tokens"`
	ClientForm
}

// TokenBody is a token response (RFC 6749 §5.1).
type TokenBody struct {
	AccessToken string `json:"access_token" doc:"RFC 6749: a JWT"`
	TokenType   string `json:"token_type" enum:"Bearer" doc:"Bearer"`
	ExpiresIn   int64  `json:"expires_in" doc:"Seconds"`
	Scope       string `json:"scope" doc:"RFC 6749: its scopes, joined by spaces"`
}

// JWKSet is a JWK set (RFC 7517 §5).
type JWKSet struct {
	Keys []map[string]any `json:"keys" doc:"JWK (RFC 7517) of each public key"`
}

// Metadata is authorization server metadata (RFC 8414 §2).
type Metadata struct {
	Issuer                string   `json:"issuer" doc:"RFC 8414 §2"`
	TokenEndpoint         string   `json:"token_endpoint" doc:"RFC 8414 §2"`
	JWKSURI               string   `json:"jwks_uri" doc:"RFC 8414 §2"`
	RevocationEndpoint    string   `json:"revocation_endpoint" doc:"RFC 8414 §2"`
	IntrospectionEndpoint string   `json:"introspection_endpoint" doc:"RFC 8414 §2"`
	ServiceDocumentation  string   `json:"service_documentation" doc:"RFC 8414 §2"`
	ScopesSupported       []string `json:"scopes_supported" doc:"RFC 8414 §2"`
	ResponseTypes         []string `json:"response_types_supported" doc:"RFC 8414 §2"`
	GrantTypes            []string `json:"grant_types_supported" doc:"RFC 8414 §2"`
	TokenMethods          []string `json:"token_endpoint_auth_methods_supported" doc:"RFC 8414 §2"`
	TokenAlgorithms       []string `json:"token_endpoint_auth_signing_alg_values_supported" doc:"RFC 8414 §2"`
	RevocationMethods     []string `json:"revocation_endpoint_auth_methods_supported" doc:"RFC 8414 §2"`
	RevocationAlgs        []string `json:"revocation_endpoint_auth_signing_alg_values_supported" doc:"RFC 8414 §2"`
	IntrospectionMethods  []string `json:"introspection_endpoint_auth_methods_supported" doc:"RFC 8414 §2"`
	IntrospectionAlgs     []string `json:"introspection_endpoint_auth_signing_alg_values_supported" doc:"RFC 8414 §2"`
}

func metadata(issuer string) Metadata {
	m := Metadata{
		Issuer: issuer, TokenEndpoint: issuer + token.TokenPath, JWKSURI: issuer + jwksPath,
		RevocationEndpoint: issuer + revocationPath, IntrospectionEndpoint: issuer + introspectionPath,
		ServiceDocumentation: issuer + "/docs", ResponseTypes: []string{}, GrantTypes: []string{token.GrantType},
		TokenMethods: token.Methods, RevocationMethods: token.Methods, IntrospectionMethods: token.Methods,
		TokenAlgorithms: clientauth.Algorithms, RevocationAlgs: clientauth.Algorithms,
		IntrospectionAlgs: clientauth.Algorithms,
	}
	for _, scope := range auth.AllScopes.List() {
		m.ScopesSupported = append(m.ScopesSupported, string(scope))
	}
	return m
}

type oauth struct {
	tokens *token.Tokens
	keys   *signing.Keeper
}

// RegisterOAuth adds the operations of the token service.
func RegisterOAuth(s *rest.Server, tokens *token.Tokens, keys *signing.Keeper) {
	o := &oauth{tokens, keys}
	o.registerTokens(s.Tagged("Tokens", "Issuing, revoking and introspecting access tokens of machine clients."))
	o.registerKeys(s.Tagged("Signing keys", "The keys that tokens are signed with, and discovery."))
}

func (o *oauth) registerTokens(s *rest.Server) {
	form := TokenForm{GrantType: token.GrantType, Scope: "users:read"}
	about := AboutForm{Token: "eyJhbGciOiJFZERTQSJ9.e30.c2ln"}
	refusals := []apperr.Kind{apperr.Unauthenticated, apperr.Forbidden}
	rest.Handle(s, rest.Op{
		ID: "create-token", Method: http.MethodPost, Path: token.TokenPath, Summary: "Get an access token", OAuth: true,
		NoReplay: true,
		Doc: "Client credentials (RFC 6749 §4.4) for an application of category 4, which authenticates by " +
			"`client_secret_basic`, `client_secret_post` or `private_key_jwt`. In a dry run the token is `******`.",
		Errors: refusals, Request: form,
		Response: TokenBody{AccessToken: "eyJhbGciOiJFZERTQSJ9.e30.c2ln", TokenType: "Bearer", ExpiresIn: 3600,
			Scope: "users:read"},
	}, o.create)
	rest.Handle(s, rest.Op{
		ID: "revoke-token", Method: http.MethodPost, Path: revocationPath, Summary: "Revoke an access token",
		OAuth: true, NoReplay: true,
		Doc: "RFC 7009. The caller is the client that the token was issued to, or an administrator of the platform. " +
			"It authenticates like a client that asks for a token, or with a bearer token. The token ends everywhere " +
			"within seconds.",
		Errors: refusals, Request: about,
	}, o.revoke)
	rest.Handle(s, rest.Op{
		ID: "introspect-token", Method: http.MethodPost, Path: introspectionPath, Summary: "Introspect an access token",
		OAuth: true, NoReplay: true,
		Doc: "RFC 7662. The caller authenticates as a client, or with a bearer token. A token of another tenant is " +
			"not active, except for an administrator of the platform.",
		Errors: refusals, Request: about, Response: token.Introspection{
			Active: true, Scope: "users:read", ClientID: "c1", TokenType: "Bearer", Expires: 1767175200,
			IssuedAt: 1767171600, Subject: "c1",
			Issuer: "https://id.example.com", TokenID: "N5V2W6LXOZQ3T7YB", Tenant: "acme",
		},
	}, o.introspect)
	registerWhoami(s)
}

type tokenInput struct {
	rest.Sender
	Tenant string `header:"X-Tenant-Id" doc:"For an administrator of the platform: the tenant that the token is for"`
	Form   rest.Form[TokenForm]
}

func (o *oauth) create(ctx context.Context, in *tokenInput) (TokenBody, error) {
	form := in.Form.Value
	client, err := o.tokens.Authenticate(ctx, form.credentials(in.Sender))
	if err != nil {
		return TokenBody{}, err
	}
	given, err := o.tokens.Issue(ctx, client,
		token.Request{GrantType: form.GrantType, Scope: form.Scope, Tenant: in.Tenant})
	return TokenBody(given), err
}

type aboutInput struct {
	rest.Sender
	Form rest.Form[AboutForm]
}

// caller returns who asks about a token.
func (o *oauth) caller(ctx context.Context, in *aboutInput) (token.Caller, error) {
	by, err := o.tokens.Caller(ctx, in.Form.Value.credentials(in.Sender))
	if err == nil && in.Form.Value.Token == "" {
		err = apperr.Invalid("token", "is missing")
	}
	return by, err
}

func (o *oauth) revoke(ctx context.Context, in *aboutInput) (rest.Empty, error) {
	by, err := o.caller(ctx, in)
	if err != nil {
		return rest.Empty{}, err
	}
	return rest.Empty{}, o.tokens.Revoke(ctx, by, in.Form.Value.Token)
}

func (o *oauth) introspect(ctx context.Context, in *aboutInput) (token.Introspection, error) {
	by, err := o.caller(ctx, in)
	if err != nil {
		return token.Introspection{}, err
	}
	return o.tokens.Introspect(ctx, by, in.Form.Value.Token)
}

func (o *oauth) registerKeys(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "get-jwks", Method: http.MethodGet, Path: jwksPath, Summary: "Get the public signing keys",
		Doc: "A JWK set (RFC 7517). It may be cached for a minute; a token with an unknown `kid` is a reason to " +
			"fetch it again.",
		Response: JWKSet{[]map[string]any{{"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": "hIjO…",
			"x": "11qY…"}}},
	}, func(context.Context, *struct{}) (rest.Public[JWKSet], error) {
		return rest.Public[JWKSet]{JSON: o.keys.Signer().PublicJWKS(), MaxAge: keySetAge}, nil
	})
	issuer := o.keys.Signer().Issuer()
	rest.Handle(s, rest.Op{
		ID: "get-authorization-server-metadata", Method: http.MethodGet, Path: metadataPath,
		Summary: "Get authorization server metadata",
		Doc:     "RFC 8414: the endpoints, and what they support.", Response: metadata("https://id.example.com"),
	}, func(context.Context, *struct{}) (rest.Public[Metadata], error) {
		body, err := json.Marshal(metadata(issuer))
		return rest.Public[Metadata]{JSON: body, MaxAge: keySetAge}, err
	})

	now := clock.FromMillis(1767171600000)
	example := KeyList{[]signing.Key{{ID: "hIjO…", TimeCreated: now, TimeActive: now}}}
	rest.Handle(s, rest.Op{
		ID: "list-signing-keys", Method: http.MethodGet, Path: keysPath, Summary: "List the signing keys",
		Scope: auth.PlatformAdmin,
		Doc:   "In the order in which they sign.", Response: example,
	}, func(ctx context.Context, _ *struct{}) (KeyList, error) {
		keys, err := o.keys.Keys(ctx)
		return KeyList{keys}, err
	})
	rest.Handle(s, rest.Op{
		ID: "rotate-signing-keys", Method: http.MethodPost, Path: keysPath + "/rotate",
		Summary: "Rotate the signing keys", Scope: auth.PlatformAdmin,
		Doc: "Publishes a new key, which starts to sign ten minutes later. Tokens of earlier keys stay valid until " +
			"they expire. While a published key has not yet started to sign, nothing changes. `at_once=true` is for " +
			"keys that others may know: the new key signs now, and the older ones end with all their tokens, in " +
			"every service within seconds.",
		Errors: []apperr.Kind{apperr.InvalidState}, Response: example,
	}, func(ctx context.Context, in *rotateInput) (KeyList, error) {
		keys, err := o.keys.Rotate(ctx, in.AtOnce.Or(false))
		return KeyList{keys}, err
	})
}

// KeyList is the signing keys.
type KeyList struct {
	Keys []signing.Key `json:"keys" doc:"The first signs, the others only verify"`
}

type rotateInput struct {
	AtOnce docstore.Flag `query:"at_once" doc:"true: the older keys end now, with all their tokens"`
}
