package issuer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/idplatform/idplatform/console/internal/session"
	"github.com/idplatform/idplatform/pkg/secret"
)

const (
	// leeway is how much the clocks of the issuer and the console may differ.
	leeway = 30 * time.Second
	// maxName bounds how a person is shown, in characters.
	maxName = 80
)

var (
	// ErrRefused means that the issuer did not give a token for the code or refresh token.
	ErrRefused = errors.New("console: the issuer refuses")
	// ErrAnswer means that what the issuer sent proves nothing.
	ErrAnswer = errors.New("console: the issuer's answer is not valid")
	// ErrNotFresh means that the issuer did not ask the person again, or does not say that it did.
	ErrNotFresh = errors.New("console: the issuer did not ask the person again")
)

// Person is somebody who has signed in at the issuer.
type Person struct {
	Tokens
	IDToken string
	Name    string
	Proved  int64 // when the issuer last asked for proof, in Unix seconds; 0: it does not say
}

// Tokens are what the issuer gives.
type Tokens struct {
	Access, Refresh string
	Expires         int64 // of the access token, in Unix seconds
}

// NewFlow returns what belongs to a sign-in besides the session's part: the secret that proves who began it.
func NewFlow(path string, fresh bool) session.Flow {
	return session.Flow{Verifier: oauth2.GenerateVerifier(), Return: path, Fresh: fresh}
}

// SignInURL is where the browser goes for a flow. The answer comes to callback.
//
// max_age makes auth_time a required claim, and keeps a sign-in at the issuer from reviving sessions for days.
func (i *Issuer) SignInURL(ctx context.Context, f session.Flow, callback string) (string, error) {
	m, err := i.discover(ctx)
	if err != nil {
		return "", err
	}
	age := session.MaxAge
	options := []oauth2.AuthCodeOption{oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)}
	for name, value := range i.config.Params {
		options = append(options, oauth2.SetAuthURLParam(name, value))
	}
	if f.Fresh {
		age = 0
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"))
	}
	options = append(options, oauth2.SetAuthURLParam("max_age", strconv.Itoa(int(age/time.Second))))
	return i.oauth(m, callback).AuthCodeURL(f.State, options...), nil
}

// Finish exchanges the code that the issuer gave to the flow's browser.
func (i *Issuer) Finish(ctx context.Context, f session.Flow, callback, code string) (p Person, err error) {
	m, err := i.discover(ctx)
	if err != nil {
		return p, err
	}
	token, err := i.oauth(m, callback).Exchange(i.context(ctx), code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return p, i.refused(err)
	}
	p.Tokens = i.tokens(token)
	p.IDToken, _ = token.Extra("id_token").(string)
	return p, i.verify(ctx, m, f, &p)
}

// verify reads the ID token, which must be the answer to this flow.
func (i *Issuer) verify(ctx context.Context, m *metadata, f session.Flow, p *Person) error {
	verifier := m.provider.VerifierContext(i.context(ctx), &oidc.Config{ClientID: i.config.ClientID, Now: i.now})
	token, err := verifier.Verify(ctx, p.IDToken)
	if err != nil {
		return fmt.Errorf("%w: %s", ErrAnswer, brief(err))
	}
	if f.Nonce == "" || !secret.Equal(token.Nonce, f.Nonce) {
		return fmt.Errorf("%w: the ID token belongs to another sign-in", ErrAnswer)
	}
	if token.AccessTokenHash != "" {
		if err := token.VerifyAccessToken(p.Access); err != nil {
			return fmt.Errorf("%w: %w", ErrAnswer, err)
		}
	}
	var claims struct {
		AuthTime float64 `json:"auth_time"`
		Username string  `json:"preferred_username"`
		Email    string  `json:"email"`
		Name     string  `json:"name"`
	}
	if err := token.Claims(&claims); err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	p.Name = short(claims.Username, claims.Email, claims.Name, token.Subject)
	now := i.now()
	if claims.AuthTime > 0 {
		p.Proved = min(int64(claims.AuthTime), now.Unix())
	}
	if f.Fresh && now.Sub(time.Unix(p.Proved, 0)) > session.Fresh+leeway {
		return ErrNotFresh
	}
	return nil
}

// short returns the first name that is not empty.
func short(names ...string) string {
	for _, name := range names {
		if runes := []rune(name); len(runes) > 0 {
			return string(runes[:min(len(runes), maxName)])
		}
	}
	return ""
}

// Renew exchanges a refresh token. The issuer may give another, and then the former is used up.
func (i *Issuer) Renew(ctx context.Context, refresh string) (t Tokens, err error) {
	m, err := i.discover(ctx)
	if err != nil {
		return t, err
	}
	source := i.oauth(m, "").TokenSource(i.context(ctx), &oauth2.Token{RefreshToken: refresh})
	token, err := source.Token()
	if err != nil {
		return t, i.refused(err)
	}
	return i.tokens(token), nil
}

// tokens reads the token endpoint's answer. If that does not say how long the access token is good, it is for a minute,
// and then asked for again.
func (i *Issuer) tokens(t *oauth2.Token) Tokens {
	life := time.Minute
	if t.ExpiresIn > 0 {
		life = time.Duration(t.ExpiresIn) * time.Second
	}
	return Tokens{t.AccessToken, t.RefreshToken, i.now().Add(life).Unix()}
}

// refused tells a refusal from an issuer that is away. The issuer's text is not kept: it may quote what was sent.
func (i *Issuer) refused(err error) error {
	e, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok || e.Response == nil {
		i.log.Warn("the issuer does not answer", "error", brief(err))
		return ErrAway
	}
	if status := e.Response.StatusCode; status >= 500 || status == http.StatusTooManyRequests {
		i.log.Warn("the issuer gives no tokens now", "status", status)
		return ErrAway
	}
	return fmt.Errorf("%w: status %d, %s", ErrRefused, e.Response.StatusCode, Code(e.ErrorCode))
}
