package idp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// TokenSource gives the token of each request. If it has the method Forget(), a request whose token is refused calls it
// and is repeated once.
type TokenSource interface {
	Token(ctx context.Context) (string, error)
}

// StaticToken is a token that somebody else got.
type StaticToken string

// Token returns the token.
func (t StaticToken) Token(context.Context) (string, error) { return string(t), nil }

// ClientCredentials is an application of category 4 that gets tokens at the platform's token endpoint (RFC 6749 §4.4):
// with its secret, or by signing with Key (private_key_jwt, RFC 7523), so that the platform has only the public key.
type ClientCredentials struct {
	URL      string // the platform's, as in Config
	ClientID string
	Secret   string
	Key      *SigningKey // instead of Secret

	Scope    string       // scopes, separated by spaces; "": all of the application's
	Tenant   string       // another tenant than the application's, for the scope platform:admin
	Audience string       // of signed assertions: the issuer of the platform's tokens; "": URL
	HTTP     *http.Client // nil: http.DefaultClient

	MaxWait  time.Duration // as in Config
	Attempts int           // as in Config; a signed assertion is sent three times at most
}

// Source returns a token source that keeps each token until shortly before its end.
func (c ClientCredentials) Source() (*CachedTokens, error) {
	if c.ClientID == "" || (c.Secret == "") == (c.Key == nil) {
		return nil, errors.New("client credentials need a client id and either a secret or a key")
	}
	config := Config{URL: c.URL, HTTP: c.HTTP, MaxWait: c.MaxWait, Attempts: c.Attempts}
	if c.Key != nil {
		config.Attempts = 1 // an assertion can be used once
	}
	client, err := New(config)
	if err != nil {
		return nil, err
	}
	return NewCachedTokens(func(ctx context.Context) (string, time.Duration, error) {
		return c.get(ctx, client)
	}), nil
}

// get asks for a token.
func (c ClientCredentials) get(ctx context.Context, client *Client) (string, time.Duration, error) {
	for try := 1; ; try++ {
		form, options, err := c.form()
		if err != nil {
			return "", 0, err
		}
		token, err := client.CreateToken(ctx, form, options...)
		if err == nil {
			return token.AccessToken, time.Duration(token.ExpiresIn) * time.Second, nil
		}
		if c.Key == nil || !passes(err) || try == 3 || client.sleep(ctx, pause(try)) != nil {
			return "", 0, err
		}
	}
}

func (c ClientCredentials) form() (TokenForm, []Option, error) {
	form, options := TokenForm{GrantType: "client_credentials"}, []Option(nil)
	if c.Scope != "" {
		form.Scope = &c.Scope
	}
	if c.Tenant != "" {
		options = append(options, ForTenant(c.Tenant))
	}
	if c.Key == nil {
		return form, append(options, BasicAuth(c.ClientID, c.Secret)), nil
	}
	now := time.Now()
	assertion, err := c.Key.sign(map[string]any{
		"iss": c.ClientID, "sub": c.ClientID, "jti": rand.Text(), "iat": now.Unix(),
		"aud": strings.TrimSuffix(cmp.Or(c.Audience, c.URL), "/"), "exp": now.Add(time.Minute).Unix(),
	})
	kind := "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	form.ClientAssertion, form.ClientAssertionType = &assertion, &kind
	return form, options, err
}

// BasicAuth authenticates an application at the operations for tokens (client_secret_basic).
func BasicAuth(clientID, secret string) Option {
	both := url.QueryEscape(clientID) + ":" + url.QueryEscape(secret)
	return Header("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(both)))
}

// CachedTokens keeps a token until shortly before its end. It can be used by many goroutines.
type CachedTokens struct {
	get func(context.Context) (string, time.Duration, error)
	now func() time.Time

	mu    sync.Mutex
	token string
	until time.Time
}

// NewCachedTokens makes a token source of a function that gets a token and says how long it is good.
func NewCachedTokens(get func(context.Context) (token string, lifetime time.Duration, err error)) *CachedTokens {
	return &CachedTokens{get: get, now: time.Now}
}

// Token returns the token, or gets another one.
func (t *CachedTokens) Token(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token != "" && t.now().Before(t.until) {
		return t.token, nil
	}
	asked := t.now()
	token, lifetime, err := t.get(ctx)
	if err != nil {
		return "", err
	}
	t.token, t.until = token, asked.Add(lifetime-min(30*time.Second, lifetime/10))
	return token, nil
}

// Until returns the time from which on the token is replaced; the zero time if there is none yet.
func (t *CachedTokens) Until() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.until
}

// Forget makes the next call of Token get another token.
func (t *CachedTokens) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.token = ""
}
