package questions

import (
	"encoding/json"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/secret"
)

// ApplicationsOfConnection asks how many applications use a connection as authentication source. Without an answer,
// the connection is not deleted.
var ApplicationsOfConnection = bus.Question[ConnectionID, Count]{Service: "applications", Name: "of-connection"}

// NextApplicationsTenant asks which tenant follows a tenant among those that have applications. It is asked for the
// platform, not for a tenant. Without an answer, the asking service tries again later.
var NextApplicationsTenant = bus.Question[TenantName, TenantName]{Service: "applications", Name: "next-tenant"}

// Application is an application as an identity.
type Application struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Sequence int64  `json:"sequence"` // of the first event with the application's present state
}

// Applications are a page of applications. There may be fewer than Limit; Next is empty on the last page.
type Applications struct {
	Applications []Application `json:"applications"`
	Next         string        `json:"next"`
}

// ApplicationRecords asks for applications, so that the asking service can build up its copy of them. Without an
// answer, it tries again later.
var ApplicationRecords = bus.Question[RecordsPage, Applications]{
	Service: "applications", Name: "records", Refusals: []apperr.Kind{apperr.InvalidParameters},
}

// Launchable is an application that people can open from a list: by its LoginURL, or, if that is empty, by a sign-in
// that begins at the platform (SAML).
type Launchable struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	LoginURL string `json:"login_url,omitempty"`
}

// Launchables are those of a page of applications, so there may be none; Next is empty on the last page.
type Launchables struct {
	Applications []Launchable `json:"applications"`
	Next         string       `json:"next"`
}

// LaunchableApplications asks for the enabled applications that people can open from a list, of a page of at most 200
// applications. Without an answer, the asking service uses an answer of the last ten minutes, if it has one.
var LaunchableApplications = bus.Question[RecordsPage, Launchables]{
	Service: "applications", Name: "launchable", Refusals: []apperr.Kind{apperr.InvalidParameters},
}

// ClientName names an application by its client id, its id, the entity id of its SAML service provider, a URL of a CAS
// service, or the origin of a redirect URI (domain.Origin); the others are empty. An origin names the oldest
// application that is enabled, with OpenID Connect or OAuth 2.0.
type ClientName struct {
	ClientID string `json:"client_id,omitempty"`
	AppID    string `json:"app_id,omitempty"`
	SPEntity string `json:"sp_entity,omitempty"`
	Service  string `json:"service,omitempty"`
	Origin   string `json:"origin,omitempty"`
}

// The categories of applications.
const (
	StandardWeb    = "1"
	SinglePage     = "2"
	ClientProgram  = "3"
	BackendService = "4"
)

// Client is what the sign-in service needs to know of an application. The switches are true where the record has "1".
type Client struct {
	AppID       string `json:"app_id"`
	ClientID    string `json:"client_id"`
	Name        string `json:"name"`
	Category    string `json:"category"`
	Enabled     bool   `json:"enabled"`
	SSO         bool   `json:"sso"`
	MFA         bool   `json:"mfa"`
	SubAccounts bool   `json:"sub_accounts"`
	// NoMailRecovery is true if its access_policy does not let people set a new password by mail.
	NoMailRecovery bool     `json:"no_mail_recovery,omitempty"`
	LoginURL       string   `json:"login_url,omitempty"`
	LogoutURL      string   `json:"logout_url,omitempty"`
	RedirectURLs   []string `json:"redirect_urls"`
	// MFAMethods are the types of methods that count as second factors where MFA is true; none: all. MFANoSetUp refuses
	// whoever has none yet.
	MFAMethods []string `json:"mfa_methods,omitempty"`
	MFANoSetUp bool     `json:"mfa_no_set_up,omitempty"`
	// LoginTemplate is the code of its authentication template; empty: the tenant's default.
	LoginTemplate string `json:"login_template,omitempty"`
	// FirstMethod is the code of the method that the sign-in page offers first; empty: the page decides.
	FirstMethod string `json:"first_method,omitempty"`
	// Sources are the ids of the connections that are attached to it; empty: any.
	Sources []string `json:"sources,omitempty"`
	// SocialProviders says of providers, by their codes, whether people may sign in through them by a social login.
	// Where any is named, the others are not allowed.
	SocialProviders map[string]bool `json:"social_providers,omitempty"`
	// Scopes are the platform's scopes that its tokens may have.
	Scopes []string `json:"scopes,omitempty"`
	// JWKS are the keys with which it signs (private_key_jwt), as it has sent them.
	JWKS json.RawMessage `json:"jwks,omitempty"`
	// JWKSURI is the address of these keys, if it has sent that instead.
	JWKSURI string         `json:"jwks_uri,omitempty"`
	SignIn  SignInSettings `json:"sign_in"`
	// OIDC, SAML and CAS are the settings of these protocols; null where the protocol is not enabled.
	OIDC *OIDCSettings `json:"oidc"`
	SAML *SAMLSettings `json:"saml,omitempty"`
	CAS  *CASSettings  `json:"cas,omitempty"`
	// Secrets are those that have not expired.
	Secrets []HashedSecret `json:"secrets"`
}

// SignInSettings are an application's member sign_in_prop.
type SignInSettings struct {
	Consent               bool     `json:"consent,omitempty"`
	Audiences             []string `json:"audiences,omitempty"`
	PostLogoutURLs        []string `json:"post_logout_urls,omitempty"`
	BackchannelLogoutURL  string   `json:"backchannel_logout_url,omitempty"`
	FrontchannelLogoutURL string   `json:"frontchannel_logout_url,omitempty"`
	SLOURL                string   `json:"slo_url,omitempty"`
	SLOByPost             bool     `json:"slo_by_post,omitempty"` // by HTTP-POST, not HTTP-Redirect
	SLOSOAPURL            string   `json:"slo_soap_url,omitempty"`
	ACSURLs               []string `json:"acs_urls,omitempty"`
	SPCerts               []string `json:"sp_certs,omitempty"` // PEM
	SignedRequests        bool     `json:"signed_requests,omitempty"`
	IdPInitiated          bool     `json:"idp_initiated,omitempty"`
}

// OIDCSettings are an application's settings of OpenID Connect, or of OAuth 2.0 alone.
type OIDCSettings struct {
	// OAuthOnly is true if it has OAuth 2.0 without OpenID Connect: no ID tokens and no userinfo.
	OAuthOnly          bool   `json:"oauth_only,omitempty"`
	SignatureAlgorithm string `json:"signature_algorithm"`
	LifetimeInSeconds  int64  `json:"lifetime_in_seconds"`
	// ResponseAttributes are claims of the ID token and of userinfo, beside those of the scopes.
	ResponseAttributes []Attribute `json:"response_attr,omitempty"`
}

// reservedClaims are those that the protocol has, and those that are told with whether they are verified.
var reservedClaims = []string{
	"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "auth_time", "nonce", "acr", "amr", "azp", "at_hash", "c_hash",
	"s_hash", "sid", "cnf", "events", "client_id", "scope", "sub_jwk", "sub_account", "email", "email_verified",
	"phone_number", "phone_number_verified",
}

// IsReservedClaim reports whether an attribute can not be a claim of this name.
func IsReservedClaim(name string) bool { return slices.Contains(reservedClaims, name) }

// SAMLSettings are an application's settings of SAML 2.0.
type SAMLSettings struct {
	ACSURL               string      `json:"acs_url"`
	SPEntity             string      `json:"sp_entity"`
	ResponseAttributes   []Attribute `json:"response_attr,omitempty"`
	LifetimeInSeconds    int64       `json:"lifetime_in_seconds"`
	SignatureAlgorithm   string      `json:"signature_algorithm,omitempty"`
	DigestAlgorithm      string      `json:"digest_algorithm,omitempty"`
	NameIDFormat         string      `json:"name_identifier_format,omitempty"`
	AuthnContextClassRef string      `json:"authn_context_class_ref,omitempty"`
	// SigningCert (PEM) is of the application's own key, which SigningKeyOf has; empty: the tenant's signs.
	SigningCert string `json:"signing_cert,omitempty"`
}

// Attribute is what an application is told about a person: the value of a member of the user, or a literal.
type Attribute struct {
	Value      string `json:"value"`
	Attribute  string `json:"attribute"`
	NameFormat string `json:"name_format,omitempty"`
}

// CASSettings are an application's settings of CAS. Its services lie below the redirect URLs.
type CASSettings struct{}

// HashedSecret is a client secret as its SHA-256 in hexadecimal. The platform makes client secrets of 256 random bits,
// so nobody finds a secret from its hash. TimeExpires is null if the secret does not expire.
type HashedSecret struct {
	SHA256      string     `json:"sha256"`
	TimeExpires clock.Time `json:"time_expires"`
}

// ClientOf asks for an application of the tenant; NotFound is the answer for others. Without an answer, the asking
// service uses an answer of the last ten minutes, if it has one.
var ClientOf = bus.Question[ClientName, Client]{
	Service: "applications", Name: "client", Refusals: []apperr.Kind{apperr.NotFound},
}

// AccountsQuestion names a user of an application.
type AccountsQuestion struct {
	AppID  string `json:"app_id"`
	UserID string `json:"user_id"`
}

// SubAccount is an enabled sub-account.
type SubAccount struct {
	ID          string `json:"id"`
	Account     string `json:"account"`
	DisplayName string `json:"display_name"`
	IsDefault   bool   `json:"is_default"`
}

// SubAccounts are in the order of their ids.
type SubAccounts struct {
	Accounts []SubAccount `json:"accounts"`
}

// AccountsOfUser asks for the enabled sub-accounts of a user in an application, the first 100. Without an answer, the
// user may not enter for now.
var AccountsOfUser = bus.Question[AccountsQuestion, SubAccounts]{Service: "applications", Name: "accounts-of-user"}

// SigningKeyQuestion asks for the SAML signing key of an application, sealed to the asking replica.
type SigningKeyQuestion struct {
	AppID string            `json:"app_id"`
	To    secret.TransitKey `json:"to"`
}

// SigningKey is an RSA key (PKCS #8, PEM), sealed (secret.TransitKey.Seal) for the use "applications.signing-key".
type SigningKey struct {
	Sealed string `json:"sealed"`
}

// SigningKeyOf asks for it; NotFound is the answer for applications without a key of their own. Without an answer, no
// assertion is made.
var SigningKeyOf = bus.Question[SigningKeyQuestion, SigningKey]{
	Service: "applications", Name: "signing-key",
	Refusals: []apperr.Kind{apperr.NotFound, apperr.InvalidParameters},
}
