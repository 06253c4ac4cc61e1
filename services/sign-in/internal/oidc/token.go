package oidc

import (
	"cmp"
	"context"
	"net/url"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc/keys"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// The grant types.
const (
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
)

// TokenRequest is a request to an endpoint that applications call.
type TokenRequest struct {
	Form          url.Values
	Authorization []string // every header of that name
	// Address and Browser (User-Agent) are of the sender, for events.
	Address, Browser string
}

// TokenAnswer is the answer of the token endpoint (RFC 6749 §5.1).
type TokenAnswer struct {
	AccessToken  string `json:"access_token" doc:"A JWT (RFC 9068)"`
	TokenType    string `json:"token_type" enum:"Bearer" doc:"Bearer"`
	ExpiresIn    int64  `json:"expires_in" doc:"Seconds"`
	RefreshToken string `json:"refresh_token,omitempty" doc:"RFC 6749 §6"`
	IDToken      string `json:"id_token,omitempty" doc:"OpenID Connect Core §2"`
	Scope        string `json:"scope" doc:"RFC 6749: the access token's scopes, joined by spaces"`
}

// Token is the token endpoint. The error is apperr.InvalidParameters with the codes of RFC 6749 §5.2 (invalid_request,
// invalid_grant, unauthorized_client, unsupported_grant_type, invalid_scope) and RFC 8707 (invalid_target),
// Unauthenticated (invalid_client), or Unavailable (temporarily_unavailable), after which the grant is still good.
func (p *Provider) Token(ctx context.Context, issuer string, r TokenRequest) (TokenAnswer, error) {
	client, err := p.sender(ctx, issuer, r, "/token")
	if err != nil {
		return TokenAnswer{}, err
	}
	grantType := r.Form.Get("grant_type")
	grant, ok := grants[grantType]
	switch {
	case grantType == "":
		return TokenAnswer{}, apperr.Invalid("grant_type", "is missing")
	case !ok:
		return TokenAnswer{}, apperr.OAuth(apperr.InvalidParameters, "unsupported_grant_type",
			"grant_type must be one of those in the discovery document")
	case r.Form.Get(grant.parameter) == "": // not invalid_grant, at which libraries drop the person's session
		return TokenAnswer{}, apperr.Invalid(grant.parameter, "is missing")
	}
	return grant.tokens(p, ctx, issuer, client, r)
}

// grants are the grant types, each with the parameter that it is about.
var grants = map[string]struct {
	parameter string
	tokens    func(*Provider, context.Context, string, questions.Client, TokenRequest) (TokenAnswer, error)
}{
	grantCode:    {"code", (*Provider).byCode},
	grantRefresh: {"refresh_token", (*Provider).byRefreshToken},
	grantDevice:  {"device_code", (*Provider).byDeviceCode},
}

// sender authenticates the application that sends a request to an endpoint.
func (p *Provider) sender(ctx context.Context, issuer string, r TokenRequest, endpoint string) (
	questions.Client, error,
) {
	if tooLong(r.Form) {
		return questions.Client{}, apperr.New(apperr.TooLarge, "the form is too long")
	}
	if name := repeated(r.Form); name != "" {
		return questions.Client{}, apperr.New(apperr.InvalidParameters, "a parameter is given twice")
	}
	return p.auth.authenticate(ctx, []string{issuer, issuer + "/token", issuer + endpoint},
		credentialsIn(r.Form, r.Authorization))
}

// entitled is what a person is entitled to now.
type entitled struct {
	claims   claims // of the ID token; nil without one
	audience string
	scope    []string // the access token's
}

// entitle makes sure that the person may still sign in and use the application, in a session unless it is "", and still
// agrees to it, and finds out what for. All that others must be asked is asked here, before the grant is spent.
func (p *Provider) entitle(
	ctx context.Context, client questions.Client, g *Granted, session string, form url.Values,
) (entitled, error) {
	refused := func(err error) error {
		if kind := apperr.KindOf(err); kind == apperr.NotFound || kind == apperr.Forbidden {
			return errGrant.Because(err)
		}
		return err
	}
	person, err := p.Person(ctx, g.UserID, session)
	if err != nil {
		return entitled{}, refused(err)
	}
	if g.restsOn(proof.Password, person.TimePasswordSet) {
		return entitled{}, errGrant
	}
	if exist, err := p.Exist(ctx, g.UserID, g.Proofs); err != nil || !exist {
		return entitled{}, cmp.Or(err, error(errGrant))
	}
	if err := p.MayUse(ctx, g.UserID, g.AppID); err != nil {
		return entitled{}, refused(err)
	}
	if len(g.Consents) > 0 {
		consent, err := p.Consent(ctx, g.UserID, g.AppID, g.Consents)
		if err != nil {
			return entitled{}, err
		}
		if consent == "" || g.Consent != "" && consent != g.Consent { // it was withdrawn, and perhaps given again
			return entitled{}, errGrant
		}
	}
	audience, err := g.audience(form["resource"])
	if err != nil {
		return entitled{}, err
	}
	e := entitled{audience: audience}
	if audience == "" {
		e.audience = client.ClientID
	}
	if e.scope, err = p.scopes(ctx, client, g, audience); err != nil || !g.has(openID) {
		return e, err
	}
	e.claims, err = p.about(ctx, client, g, person, g.ofIDToken())
	return e, err
}

// audience is the resource that an access token is for: the one that the request names, or the first that the grant
// has; "" without any. A token has one audience, so that no resource can use it at another one.
func (g *Granted) audience(asked []string) (string, error) {
	switch {
	case len(asked) == 0 && len(g.Resources) == 0:
		return "", nil
	case len(asked) == 0:
		return g.Resources[0], nil
	case len(asked) == 1 && slices.Contains(g.Resources, asked[0]):
		return asked[0], nil
	}
	return "", apperr.OAuth(apperr.InvalidParameters, "invalid_target",
		"resource must be one of those that were granted")
}

// scopes are those of an access token: for the platform's API those of the application for which the person has a rule,
// otherwise what was granted.
func (p *Provider) scopes(ctx context.Context, client questions.Client, g *Granted, audience string) ([]string, error) {
	ofPlatform := func(scope string) bool { return !slices.Contains(Scopes, scope) }
	if audience != p.PublicURL || audience == "" {
		return slices.DeleteFunc(slices.Clone(g.Scope), ofPlatform), nil
	}
	candidates := client.Scopes
	if slices.ContainsFunc(g.Scope, ofPlatform) {
		candidates = slices.DeleteFunc(slices.Clone(candidates), func(scope string) bool { return !g.has(scope) })
	}
	// Whoever can change a connection can sign in by it as anybody who is linked: that alone gives none of the
	// platform's scopes.
	foreign := len(g.Proofs) > 0 && len(proof.Connections(g.Proofs)) == len(g.Proofs)
	if len(candidates) == 0 || p.Holds == nil || foreign {
		return nil, nil
	}
	held, err := p.Holds(ctx, g.UserID, g.AppID, candidates)
	return slices.DeleteFunc(slices.Clone(candidates), func(s string) bool { return !slices.Contains(held, s) }), err
}

// issue makes the tokens of a family.
func (p *Provider) issue(
	ctx context.Context, issuer string, client questions.Client, f *family, e entitled, nonce string,
) (TokenAnswer, error) {
	now := p.Store.Now()
	access := accessClaims{
		registered: registered{
			Issuer: issuer, Subject: f.UserID, Audience: e.audience, IssuedAt: seconds(now),
			Expires: seconds(now.Add(p.AccessTTL)), ID: secret.Token(16),
		},
		ClientID: f.ClientID, Scope: joined(e.scope), SessionID: f.SessionID, AuthTime: seconds(f.AuthTime), ACR: f.ACR,
		AMR: f.AMR, Family: f.ID,
	}
	token, err := p.Keys.Sign(ctx, keys.ES256, accessType, access)
	if err != nil {
		return TokenAnswer{}, err
	}
	answer := TokenAnswer{
		AccessToken: token, TokenType: "Bearer", ExpiresIn: int64(p.AccessTTL.Seconds()), Scope: access.Scope,
		RefreshToken: p.refreshToken(ctx, f.ID, f.Generation),
	}
	if f.has(openID) {
		answer.IDToken, err = p.idToken(ctx, issuer, client, f, e.claims, nonce, token)
	}
	return answer, err
}

// accessType is the type of access tokens (RFC 9068 §2.1).
const accessType = "at+jwt"

// accessClaims are an access token's (RFC 9068 §2.2).
type accessClaims struct {
	registered
	ClientID  string   `json:"client_id"`
	Scope     string   `json:"scope"`
	SessionID string   `json:"sid,omitempty"`
	AuthTime  int64    `json:"auth_time"`
	ACR       string   `json:"acr,omitempty"`
	AMR       []string `json:"amr,omitempty"`
	Family    string   `json:"family"`
}

// registered are the claims of RFC 7519 §4.1 that our tokens have. Times are seconds since 1970.
type registered struct {
	Issuer   string `json:"iss"`
	Subject  string `json:"sub"`
	Audience string `json:"aud"`
	IssuedAt int64  `json:"iat"`
	Expires  int64  `json:"exp"`
	ID       string `json:"jti"`
}
