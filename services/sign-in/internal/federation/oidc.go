package federation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/secret"
)

// The providers that speak OpenID Connect, and whose issuer is not among the fields of a connection, or need not be.
const (
	google    = "google"
	microsoft = "microsoft"
	gitlab    = "gitlab"
)

const (
	googleIssuer    = "https://accounts.google.com"
	gitlabIssuer    = "https://gitlab.com"
	microsoftOrigin = "https://login.microsoftonline.com/"
)

// issuer is where discovery starts.
func (f *fields) issuer(provider string) string {
	switch provider {
	case google:
		return googleIssuer
	case microsoft:
		return microsoftOrigin + url.PathEscape(f.TenantID) + "/v2.0"
	case gitlab:
		return cmp.Or(f.Issuer, gitlabIssuer)
	}
	return f.Issuer
}

// oidcClient is this platform as a client of an OpenID provider, for one connection.
type oidcClient struct {
	code     string // the provider's
	fields   fields
	provider *oidc.Provider
	metadata metadata
	http     *http.Client
	now      func() clock.Time
}

// metadata is what go-oidc does not tell of OpenID Provider Metadata.
type metadata struct {
	Issuer      string `json:"issuer"`
	NamesItself bool   `json:"authorization_response_iss_parameter_supported"` // RFC 9207
	UserInfo    string `json:"userinfo_endpoint"`
}

// oidcClient finds the OpenID provider of a connection.
func (c *Connections) oidcClient(ctx context.Context, code string, fields fields) (*oidcClient, error) {
	provider, err := c.discover(ctx, code, fields.issuer(code))
	if err != nil {
		return nil, err
	}
	one := &oidcClient{code: code, fields: fields, provider: provider, http: c.HTTP, now: c.Now}
	if err := provider.Claims(&one.metadata); err != nil {
		return nil, refused("its metadata cannot be read: %w", err)
	}
	return one, one.checkAddress(provider.Endpoint().AuthURL)
}

// checkAddress refuses an address of another kind than the issuer's: a page leads there.
func (c *oidcClient) checkAddress(address string) error {
	u, err := url.Parse(address)
	plain := strings.HasPrefix(c.metadata.Issuer, "http://")
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && !(plain && u.Scheme == "http") {
		return refused("its authorization_endpoint %.200q is not an https address", address)
	}
	return nil
}

// discover returns the metadata of a provider as it was within the last ten minutes.
func (c *Connections) discover(ctx context.Context, code, issuer string) (*oidc.Provider, error) {
	now := c.Now()
	kept, ok := c.known.Get(issuer)
	switch age := now.Sub(kept.read); {
	case ok && kept.failure == nil && age < reread:
		return kept.provider, nil
	case ok && kept.failure != nil && age < rest:
		return nil, kept.failure
	}
	// go-oidc keeps the context for the requests of the keys, later.
	lasting := oidc.ClientContext(context.Background(), c.HTTP)
	if code == microsoft { // the metadata for several tenants names a placeholder; see issuerOf
		lasting = oidc.InsecureIssuerURLContext(lasting, issuer)
	}
	type found struct {
		provider *oidc.Provider
		err      error
	}
	done := make(chan found, 1)
	go func() {
		provider, err := oidc.NewProvider(lasting, issuer)
		done <- found{provider, err}
	}()
	select {
	case f := <-done:
		if f.err != nil {
			f.err = failure(f.err)
		}
		c.known.Set(issuer, discovered{f.provider, f.err, now})
		return f.provider, f.err
	case <-ctx.Done():
		err := errors.Join(ErrAway, ctx.Err())
		c.known.Set(issuer, discovered{failure: err, read: c.Now()})
		return nil, err
	}
}

// failure says whether a provider is away, or answers something that cannot be used.
func failure(err error) error {
	asked, ok := errors.AsType[*oauth2.RetrieveError](err)
	away := ok && asked.Response != nil && asked.Response.StatusCode >= http.StatusInternalServerError
	_, unreachable := errors.AsType[*url.Error](err)
	text := err.Error() // of go-oidc: the status, and what came with it
	if away || unreachable || strings.HasPrefix(text, "5") || strings.Contains(text, "fetching keys") {
		return errors.Join(ErrAway, err)
	}
	if ok && (asked.ErrorCode == "invalid_client" || asked.ErrorCode == "unauthorized_client") {
		return errors.Join(ErrClient, refused("%.500s", text))
	}
	return refused("%.500s", text)
}

func (c *oidcClient) config(callback string) *oauth2.Config {
	endpoint := c.provider.Endpoint()
	switch c.fields.ClientAuthentication {
	case "client_secret_post", "none":
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	default:
		endpoint.AuthStyle = oauth2.AuthStyleInHeader
	}
	if c.fields.ClientSecret == "" {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	scopes := []string{oidc.ScopeOpenID, "profile", "email"}
	for _, scope := range c.fields.Scopes {
		if !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	config := &oauth2.Config{
		ClientID: c.fields.ClientID, ClientSecret: c.fields.ClientSecret, Endpoint: endpoint, RedirectURL: callback,
		Scopes: scopes,
	}
	if c.fields.ClientAuthentication == "none" {
		config.ClientSecret = ""
	}
	return config
}

// nonceBytes is the length of a nonce, which cannot be guessed.
const nonceBytes = 16

func (c *oidcClient) begin(r Request, now clock.Time) (string, Kept) {
	kept := Kept{Callback: r.Callback, Nonce: secret.Token(nonceBytes), Verifier: oauth2.GenerateVerifier()}
	options := []oauth2.AuthCodeOption{oidc.Nonce(kept.Nonce), oauth2.S256ChallengeOption(kept.Verifier)}
	add := func(name, value string) { options = append(options, oauth2.SetAuthURLParam(name, value)) }
	if r.MaxAge != nil {
		add("max_age", strconv.FormatInt(*r.MaxAge, 10))
		kept.Oldest = now.Add(-time.Duration(*r.MaxAge) * time.Second)
	}
	if r.Fresh { // the stricter of the two
		add("prompt", "login")
		kept.Oldest = now
	}
	if r.LoginHint != "" {
		add("login_hint", r.LoginHint)
	}
	if len(r.Locales) > 0 {
		add("ui_locales", strings.Join(r.Locales, " "))
	}
	if c.fields.HostedDomain != "" {
		add("hd", c.fields.HostedDomain)
	}
	return c.config(r.Callback).AuthCodeURL(r.State, options...), kept
}

// claims are those of an ID token, or of userinfo, that are read.
type claims struct {
	Name              string          `json:"name"`
	PreferredUsername string          `json:"preferred_username"`
	Email             string          `json:"email"`
	EmailVerified     json.RawMessage `json:"email_verified"` // some providers send a string
	Nonce             string          `json:"nonce"`
	AuthorizedParty   string          `json:"azp"`
	AuthTime          json.Number     `json:"auth_time"`
	ACR               string          `json:"acr"`
	AMR               texts           `json:"amr"`
	HostedDomain      string          `json:"hd"`
	Session           string          `json:"sid"`
	TenantID          string          `json:"tid"`
}

// texts are a claim that should be an array of strings. Some providers send one string; what is neither counts as
// nothing, since a sign-in does not depend on it.
type texts []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *texts) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil && one != "" {
		*t = texts{one}
		return nil
	}
	var all []string
	if json.Unmarshal(text, &all) == nil {
		*t = all
	}
	return nil
}

func (c *oidcClient) end(ctx context.Context, kept Kept, a Answer) (Identity, error) {
	if a.Issuer != "" && !c.isIssuer(a.Issuer) || a.Issuer == "" && c.metadata.NamesItself {
		return Identity{}, refused("the answer is of another issuer, %.200q", a.Issuer)
	}
	ctx = oidc.ClientContext(ctx, c.http)
	token, err := c.config(kept.Callback).Exchange(ctx, a.Code, oauth2.VerifierOption(kept.Verifier))
	if err != nil {
		return Identity{}, failure(err)
	}
	text, _ := token.Extra("id_token").(string)
	if text == "" {
		return Identity{}, refused("the token answer has no ID token")
	}
	verified, err := c.provider.Verifier(c.checks()).Verify(ctx, text)
	if err != nil {
		return Identity{}, failure(err)
	}
	var told claims
	if err := verified.Claims(&told); err != nil {
		return Identity{}, refused("the claims of the ID token cannot be read: %w", err)
	}
	if err := c.check(verified, told, kept); err != nil {
		return Identity{}, err
	}
	all := map[string]json.RawMessage{}
	if err := verified.Claims(&all); err != nil {
		return Identity{}, refused("the claims of the ID token cannot be read: %w", err)
	}
	if (a.AllClaims || told.Email == "" || told.Name == "") && c.metadata.UserInfo != "" {
		c.addUserInfo(ctx, token, verified.Subject, &told, all)
	}
	who := c.identity(verified.Subject, told)
	if who.Email == "" {
		delete(all, "email")
	}
	who.Claims, err = json.Marshal(all)
	return who, err
}

// checks are those of the signature, the audience, the time and, but for Microsoft, the issuer of a token.
func (c *oidcClient) checks() *oidc.Config {
	return &oidc.Config{
		ClientID: c.fields.ClientID, Now: func() time.Time { return c.now().Std() },
		SkipIssuerCheck: c.code == microsoft, // see issuerOf
	}
}

// logoutEvent is the member of events that a logout token has.
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// logoutAge is how old a logout token may be. Not every provider gives it an end.
const logoutAge = 10 * time.Minute

// logout reads a logout token.
func (c *oidcClient) logout(ctx context.Context, text string) (LoggedOut, error) {
	checks := c.checks()
	checks.SkipExpiryCheck = true
	token, err := c.provider.Verifier(checks).Verify(oidc.ClientContext(ctx, c.http), text)
	if err != nil {
		return LoggedOut{}, failure(err)
	}
	var told struct {
		claims
		Nonce  json.RawMessage            `json:"nonce"`
		Events map[string]json.RawMessage `json:"events"`
		Ends   json.Number                `json:"exp"`
	}
	if err := token.Claims(&told); err != nil {
		return LoggedOut{}, refused("the claims of the logout token cannot be read: %w", err)
	}
	if _, ok := told.Events[logoutEvent]; !ok || told.Nonce != nil {
		return LoggedOut{}, refused("it is no logout token")
	}
	if want, ok := issuerOf(c.metadata.Issuer, told.TenantID); c.code == microsoft && (!ok || token.Issuer != want) {
		return LoggedOut{}, refused("the logout token is of another issuer, %.200q", token.Issuer)
	}
	now := c.now().Std()
	if age := now.Sub(token.IssuedAt); age > logoutAge || age < -skew ||
		told.Ends != "" && now.After(token.Expiry.Add(skew)) {
		return LoggedOut{}, refused("the logout token is not of now")
	}
	if token.Subject == "" && told.Session == "" {
		return LoggedOut{}, refused("the logout token names nobody")
	}
	return LoggedOut{ProviderCode: c.code, Subject: token.Subject, Session: told.Session}, nil
}

// check refuses an ID token that is not the answer to the request, or not of whom the connection lets in.
func (c *oidcClient) check(token *oidc.IDToken, told claims, kept Kept) error {
	if !secret.Equal(told.Nonce, kept.Nonce) {
		return refused("the ID token is for another sign-in")
	}
	if told.AuthorizedParty != "" && told.AuthorizedParty != c.fields.ClientID {
		return refused("the ID token is for another client, %.200q", told.AuthorizedParty)
	}
	if want, ok := issuerOf(c.metadata.Issuer, told.TenantID); c.code == microsoft && (!ok || token.Issuer != want) {
		return refused("the ID token is of another issuer, %.200q", token.Issuer)
	}
	if n := utf8.RuneCountInString(token.Subject); n == 0 || n > maxSubject {
		return refused("the subject of the ID token has %d characters", n)
	}
	if hd := c.fields.HostedDomain; hd != "" && !strings.EqualFold(told.HostedDomain, hd) {
		return refused("the account is not of the domain %s", hd)
	}
	if kept.Oldest.IsZero() || told.AuthTime == "" {
		return nil
	}
	at, err := told.AuthTime.Float64()
	if err != nil {
		return refused("the auth_time of the ID token is no number")
	}
	if clock.FromMillis(int64(at * 1000)).Before(kept.Oldest.Add(-skew)) {
		return refused("the person has signed in there too long ago")
	}
	return nil
}

// skew is how far clocks may differ.
const skew = time.Minute

// tenantID is a directory's id at Microsoft.
var tenantID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// issuerOf is the issuer of Microsoft's tokens for a directory: the metadata for several directories has a placeholder
// in it. ok is false if the issuer or the directory is none of Microsoft's.
func issuerOf(named, directory string) (issuer string, ok bool) {
	return strings.ReplaceAll(named, "{tenantid}", directory),
		strings.HasPrefix(named, microsoftOrigin) && tenantID.MatchString(directory)
}

// isIssuer reports whether an answer is of the issuer that it names.
func (c *oidcClient) isIssuer(named string) bool {
	if c.code == microsoft {
		directory, _, _ := strings.Cut(strings.TrimPrefix(named, microsoftOrigin), "/")
		want, ok := issuerOf(c.metadata.Issuer, directory)
		return ok && named == want
	}
	return named == c.metadata.Issuer
}

// addUserInfo adds what the provider tells of a person at its userinfo endpoint, to what the ID token tells. The
// sign-in goes on without.
func (c *oidcClient) addUserInfo(ctx context.Context, token *oauth2.Token, subject string, told *claims,
	all map[string]json.RawMessage,
) {
	info, err := c.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil || info.Subject != subject {
		return
	}
	var more claims
	var others map[string]json.RawMessage
	if info.Claims(&more) == nil && info.Claims(&others) == nil {
		for name, value := range others {
			if _, ok := all[name]; !ok {
				all[name] = value
			}
		}
		told.Name = cmp.Or(told.Name, more.Name)
		told.PreferredUsername = cmp.Or(told.PreferredUsername, more.PreferredUsername)
		if told.Email == "" {
			told.Email, told.EmailVerified = more.Email, more.EmailVerified
		}
	}
}

func (c *oidcClient) identity(subject string, told claims) Identity {
	who := Identity{
		Subject: subject, Username: told.PreferredUsername, DisplayName: told.Name, Session: told.Session,
		TwoFactors: slices.Contains(told.AMR, "mfa") || slices.Contains(multiFactor, told.ACR),
		AMR:        knownNames(told.AMR),
	}
	if said := strings.Trim(string(told.EmailVerified), `"`); said == "true" && c.vouches(told) {
		who.Email = told.Email
	}
	return who
}

// vouches reports whether the provider's word for an address counts. What Microsoft tells is whatever an administrator
// of any directory has written; Google vouches for its own addresses and those of its customers' domains, and others it
// has only verified once: whoever leaves a company keeps them.
func (c *oidcClient) vouches(told claims) bool {
	switch c.code {
	case microsoft:
		return false
	case google:
		return told.HostedDomain != "" ||
			slices.ContainsFunc([]string{"@gmail.com", "@googlemail.com"}, func(domain string) bool {
				return strings.HasSuffix(strings.ToLower(told.Email), domain)
			})
	}
	return true
}

// multiFactor are the values of acr that mean two factors.
var multiFactor = []string{
	"urn:idplatform:aal:2",
	"http://schemas.openid.net/pape/policies/2007/06/multi-factor",
	"https://refeds.org/profile/mfa",
}

// names are those of RFC 8176 §2.
var names = []string{
	"face", "fpt", "geo", "hwk", "iris", "kba", "mca", "mfa", "otp", "pin", "pop", "pwd", "rba", "sc", "sms", "swk",
	"tel", "user", "vbm", "wia",
}

// knownNames are the names of RFC 8176 among some, each once.
func knownNames(all []string) []string {
	var known []string
	for _, name := range names {
		if slices.Contains(all, name) && name != "mfa" { // the session says that itself
			known = append(known, name)
		}
	}
	return known
}
