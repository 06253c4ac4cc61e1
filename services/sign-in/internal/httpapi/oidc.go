package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc/keys"
)

// AuthorizeForm describes an authorization request (OpenID Connect Core §3.1.2.1).
type AuthorizeForm struct {
	ClientID            string `json:"client_id" doc:"The application"`
	ResponseType        string `json:"response_type" doc:"code"`
	RedirectURI         string `json:"redirect_uri" doc:"One that is registered"`
	Scope               string `json:"scope,omitempty" doc:"Joined by spaces; openid for an ID token"`
	State               string `json:"state,omitempty" doc:"Comes back unchanged"`
	Nonce               string `json:"nonce,omitempty" doc:"Comes back in the ID token"`
	CodeChallenge       string `json:"code_challenge,omitempty" doc:"RFC 7636"`
	CodeChallengeMethod string `json:"code_challenge_method,omitempty" doc:"S256"`
}

// ClientForm has what an application authenticates with, unless it does with an Authorization header.
type ClientForm struct {
	ClientID      string `json:"client_id,omitempty" doc:"The application"`
	ClientSecret  string `json:"client_secret,omitempty" doc:"Its secret"`
	AssertionType string `json:"client_assertion_type,omitempty" doc:"RFC 7523"`
	Assertion     string `json:"client_assertion,omitempty" doc:"RFC 7523: a JWT signed with the application's key"`
}

// GrantForm is a request for tokens.
type GrantForm struct {
	GrantType    string `json:"grant_type" doc:"authorization_code or refresh_token"`
	Code         string `json:"code,omitempty" doc:"RFC 6749 §4.1.3"`
	RedirectURI  string `json:"redirect_uri,omitempty" doc:"That of the authorization request"`
	CodeVerifier string `json:"code_verifier,omitempty" doc:"RFC 7636"`
	RefreshToken string `json:"refresh_token,omitempty" doc:"RFC 6749 §6"`
	Scope        string `json:"scope,omitempty" doc:"Fewer scopes than were granted"`
	ClientForm
}

// PersonTokenForm is a request about a token.
type PersonTokenForm struct {
	Token string `json:"token" doc:"An access or refresh token"`
	Hint  string `json:"token_type_hint,omitempty" doc:"Is not needed"`
	ClientForm
}

// BearerForm is a request for a person's data with the token in the form (RFC 6750 §2.2).
type BearerForm struct {
	AccessToken string `json:"access_token,omitempty" doc:"Unless it is in the Authorization header"`
}

type authorizeInput struct{ Visitor }

type authorizeFormInput struct {
	Visitor
	Form rest.Values[AuthorizeForm]
}

// PersonClaims are what an application is told about a person. More members follow from the scopes.
type PersonClaims struct {
	Subject string `json:"sub" doc:"The user's id" example:"1048577"`
}

// OpenIDMetadata is the discovery document.
type OpenIDMetadata struct{ oidc.Metadata }

// SigningKeySet is a JWK set (RFC 7517).
type SigningKeySet struct {
	Keys []map[string]any `json:"keys" doc:"Public keys, as JWKs"`
}

// PersonToken is an answer with tokens of a person.
type PersonToken struct{ oidc.TokenAnswer }

// TokenStatus is what a token is about.
type TokenStatus struct{ oidc.Introspection }

// documentAge is how long caches may keep discovery documents and keys: a new key is published longer before it signs.
const documentAge = time.Minute

var (
	clientErrors = []apperr.Kind{apperr.Unauthenticated, apperr.Forbidden}
	exampleGrant = GrantForm{GrantType: "authorization_code", Code: "SplxlOBeZQQYbYS6WxSbIA",
		RedirectURI: "https://app.example.com/callback", CodeVerifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}
	exampleAuthorize = AuthorizeForm{ClientID: "c1", ResponseType: "code",
		RedirectURI: "https://app.example.com/callback", Scope: "openid"}
	exampleToken = PersonTokenForm{Token: "SlAV32hkKG"}
)

func (a *api) registerOIDC(s *rest.Server) {
	a.registerDiscovery(s)
	a.registerLogout(s)
	rest.Handle(s, rest.Op{
		ID: "authorize-person", Method: http.MethodGet, Path: below + "/authorize", ErrorPage: a.failed,
		Summary: "Ask for a person to sign in", ContentTypes: htmlOnly, Response: examplePage,
		Doc: "OpenID Connect Core §3.1.2; the parameters are in the query. The answer is the page of the sign-in, " +
			"which stores nothing, or a 303 with the application's answer if nobody has to be asked.",
	}, func(ctx context.Context, in *authorizeInput) (rest.Page, error) {
		return a.authorize(ctx, &in.Visitor, in.Request.URL.Query())
	})
	rest.Handle(s, rest.Op{
		ID: "authorize-person-by-form", Method: http.MethodPost, Path: below + "/authorize",
		IfMatchParam: rest.NoRecord,
		ErrorPage:    a.failed, CrossSite: true, Summary: "Ask for a person to sign in, by a form",
		ContentTypes: htmlOnly,
		Doc: "As by GET. The answer is a page that sends the request on by a form of its own, sealed: with that form " +
			"the browser sends its cookies.",
		Request: exampleAuthorize, Response: examplePage,
	}, func(ctx context.Context, in *authorizeFormInput) (rest.Page, error) {
		return a.authorize(ctx, &in.Visitor, in.Form.Values)
	})
	a.registerTokens(s)
	a.registerDevice(s)
}

// authorize answers an authorization request.
func (a *api) authorize(ctx context.Context, in *Visitor, values url.Values) (rest.Page, error) {
	ctx, v, err := a.enter(ctx, in)
	if err != nil || in.Request.Method == http.MethodHead {
		return rest.Page{}, err
	}
	r, err := a.OIDC.Authorize(ctx, v.Issuer, values)
	return a.begin(ctx, v, r, err)
}

type pushInput struct {
	Call
	Form rest.Values[PushForm]
}

// PushForm is an authorization request from server to server.
type PushForm struct {
	AuthorizeForm
	ClientSecret  string `json:"client_secret,omitempty" doc:"The application's secret"`
	AssertionType string `json:"client_assertion_type,omitempty" doc:"RFC 7523"`
	Assertion     string `json:"client_assertion,omitempty" doc:"RFC 7523: a JWT signed with the application's key"`
}

// Call is the input of all endpoints that applications call.
type Call struct {
	rest.Browser
	rest.Sender
	Tenant string `path:"tenant" doc:"The tenant's id" example:"acme"`
}

type grantInput struct {
	Call
	Form rest.Values[GrantForm]
}

type tokenInput struct {
	Call
	Form rest.Values[PersonTokenForm]
}

type bearerInput struct{ Call }

type bearerFormInput struct {
	Call
	Form rest.Values[BearerForm]
}

func (a *api) registerTokens(s *rest.Server) {
	post := func(id, path, summary, doc string, request, response any) rest.Op {
		return rest.Op{
			ID: id, Method: http.MethodPost, Path: below + path, IfMatchParam: rest.NoRecord, Summary: summary,
			Doc:   doc,
			OAuth: true, NoReplay: true, Errors: clientErrors, Request: request, Response: response,
			Origins: a.mayRead,
		}
	}
	rest.Handle(s, post("push-authorization-request", "/par", "Push an authorization request",
		"RFC 9126. The status of the answer is 201.", PushForm{AuthorizeForm: exampleAuthorize},
		oidc.PushAnswer{RequestURI: "urn:ietf:params:oauth:request_uri:6esc_11ACC5bwc014ltc14eY22c", ExpiresIn: 90}),
		func(ctx context.Context, in *pushInput) (rest.Created[oidc.PushAnswer], error) {
			answer, err := call(ctx, a, &in.Call, in.Form.Values, a.OIDC.Push)
			return rest.Created[oidc.PushAnswer]{Body: answer}, err
		})
	rest.Handle(s, post("grant-person-token", "/token", "Get the tokens of a person",
		"RFC 6749: by an authorization code (§4.1.3) or a refresh token (§6).", exampleGrant,
		oidc.TokenAnswer{AccessToken: "eyJhbGciOiJFUzI1NiJ9.e30.c2ln", TokenType: "Bearer", ExpiresIn: 600,
			RefreshToken: "8xLOxBtZp8", IDToken: "eyJhbGciOiJFUzI1NiJ9.e30.c2ln", Scope: "openid"}),
		func(ctx context.Context, in *grantInput) (PersonToken, error) {
			answer, err := call(ctx, a, &in.Call, in.Form.Values, a.OIDC.Token)
			return PersonToken{answer}, err
		})
	rest.Handle(s, post("introspect-person-token", "/introspect", "Introspect a person's token", "RFC 7662.",
		exampleToken, oidc.Introspection{Active: true, Scope: "openid", ClientID: "c1", Subject: "1048577"}),
		func(ctx context.Context, in *tokenInput) (TokenStatus, error) {
			answer, err := call(ctx, a, &in.Call, in.Form.Values, a.OIDC.Introspect)
			return TokenStatus{answer}, err
		})
	rest.Handle(s, post("revoke-person-token", "/revoke", "Revoke a person's token",
		"RFC 7009. What the same sign-in has given ends, too.", exampleToken, rest.Empty{}),
		func(ctx context.Context, in *tokenInput) (rest.Empty, error) {
			return call(ctx, a, &in.Call, in.Form.Values,
				func(ctx context.Context, issuer string, r oidc.TokenRequest) (rest.Empty, error) {
					return rest.Empty{}, a.OIDC.Revoke(ctx, issuer, r)
				})
		})
	userinfo := rest.Op{
		ID: "get-userinfo", Method: http.MethodGet, Path: below + "/userinfo", Summary: "Get a person's claims",
		OAuth: true, Errors: clientErrors, Response: PersonClaims{"1048577"}, Origins: a.mayRead,
		Doc: "OpenID Connect Core §5.3. The access token is a bearer token (RFC 6750).",
	}
	rest.Handle(s, userinfo, func(ctx context.Context, in *bearerInput) (map[string]any, error) {
		return a.userinfo(ctx, &in.Call, "")
	})
	userinfo.ID, userinfo.Method, userinfo.IfMatchParam = "post-userinfo", http.MethodPost, rest.NoRecord
	userinfo.NoReplay = true
	userinfo.Request, userinfo.Summary = BearerForm{"eyJhbGciOiJFUzI1NiJ9.e30.c2ln"}, "Get a person's claims by a form"
	rest.Handle(s, userinfo, func(ctx context.Context, in *bearerFormInput) (map[string]any, error) {
		return a.userinfo(ctx, &in.Call, in.Form.Get("access_token"))
	})
}

// call calls an endpoint for applications. A dry run is refused: codes and tokens are used once, and an answer without
// that would be a way around.
func call[T any](ctx context.Context, a *api, c *Call, form url.Values,
	endpoint func(context.Context, string, oidc.TokenRequest) (T, error)) (T, error) {
	var none T
	ctx, err := withTenant(ctx, c.Tenant)
	if err != nil {
		return none, err
	}
	if docstore.IsDryRun(ctx) {
		return none, apperr.Invalid("query.dry_run", "is not possible here")
	}
	r := oidc.TokenRequest{Form: form, Authorization: c.Authorization, Browser: c.Request.UserAgent()}
	if c.Address.IsValid() {
		r.Address = c.Address.String()
	}
	return endpoint(ctx, a.issuer(c.Tenant), r)
}

// mayRead lets the pages of an application read the answers in a browser.
func (a *api) mayRead(ctx context.Context, r rest.CrossOrigin) (bool, error) {
	ctx, err := withTenant(ctx, r.Param("tenant"))
	if err != nil {
		return false, nil // there is nothing at the path
	}
	clientID := r.Form.Get("client_id")
	if clientID == "" {
		token := r.Form.Get("access_token")
		if token == "" {
			token, _ = auth.BearerToken(r.Request) // a request without one is answered in any case
		}
		clientID = oidc.ClientOf(token)
	}
	return a.OIDC.MayRead(ctx, r.Origin, clientID)
}

func (a *api) userinfo(ctx context.Context, c *Call, token string) (map[string]any, error) {
	ctx, err := withTenant(ctx, c.Tenant)
	if err != nil {
		return nil, err
	}
	if token == "" && len(c.Authorization) == 0 {
		return nil, apperr.OAuth(apperr.Unauthenticated, rest.NoToken, "there is no access token")
	}
	if token == "" {
		if token, err = auth.BearerToken(c.Request); err != nil {
			return nil, apperr.OAuth(apperr.Unauthenticated, rest.InvalidToken, "there is no good access token")
		}
	}
	return a.OIDC.UserInfo(ctx, a.issuer(c.Tenant), token)
}

func (a *api) registerDiscovery(s *rest.Server) {
	example := OpenIDMetadata{oidc.Discovery("https://id.example.com/sign-in/acme")}
	for id, path := range map[string]string{
		"get-openid-configuration":  below + "/.well-known/openid-configuration",
		"get-tenant-oauth-metadata": "/.well-known/oauth-authorization-server" + below,
	} {
		rest.Handle(s, rest.Op{
			ID: id, Method: http.MethodGet, Path: path, Summary: "Get the metadata of a tenant's provider",
			Doc:      "OpenID Connect Discovery §4, RFC 8414. A tenant without applications has none: 404.",
			Response: example, AnyOrigin: true,
		}, func(ctx context.Context, input *assetInput) (rest.Public[OpenIDMetadata], error) {
			ctx, err := withTenant(ctx, input.Tenant)
			if err == nil {
				err = a.OIDC.Exists(ctx)
			}
			if err != nil {
				return rest.Public[OpenIDMetadata]{}, err
			}
			body, err := json.Marshal(oidc.Discovery(a.issuer(input.Tenant)))
			return rest.Public[OpenIDMetadata]{JSON: body, MaxAge: documentAge}, err
		})
	}
	rest.Handle(s, rest.Op{
		ID: "get-tenant-jwks", Method: http.MethodGet, Path: below + "/jwks",
		Summary:   "Get the public keys of a tenant's provider",
		Doc:       "A JWK set (RFC 7517). A tenant without applications has none: 404.",
		AnyOrigin: true,
		Response:  SigningKeySet{[]map[string]any{{"kty": "EC", "crv": "P-256", "use": "sig", "alg": keys.ES256}}},
	}, func(ctx context.Context, input *assetInput) (rest.Public[SigningKeySet], error) {
		ctx, err := withTenant(ctx, input.Tenant)
		if err != nil {
			return rest.Public[SigningKeySet]{}, err
		}
		set, err := a.OIDC.JWKS(ctx)
		if err != nil {
			return rest.Public[SigningKeySet]{}, err
		}
		body, err := json.Marshal(set)
		return rest.Public[SigningKeySet]{JSON: body, MaxAge: documentAge}, err
	})
}
