package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/idplatform/idplatform/cli/internal/config"
	"github.com/idplatform/idplatform/cli/internal/failure"
	idp "github.com/idplatform/idplatform/sdk/go"
)

const (
	signInLimit = 10 * time.Minute // for a person to sign in
	renewBefore = time.Minute      // a token's end
)

// issuerDocument is what this program needs of an issuer's discovery document.
type issuerDocument struct {
	Issuer        string `json:"issuer"`
	Authorization string `json:"authorization_endpoint"`
	Token         string `json:"token_endpoint"`
	Device        string `json:"device_authorization_endpoint"`
}

// issuer reads the discovery document of an OpenID issuer.
func (s *Session) issuer(ctx context.Context, o *config.OIDC) (*oauth2.Config, error) {
	address := strings.TrimSuffix(o.Issuer, "/") + "/.well-known/openid-configuration"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, failure.Usagef("--issuer: it must be a URL")
	}
	response, err := s.issuerClient().Do(r)
	if err != nil {
		return nil, &failure.Error{Code: failure.Unavailable, Err: fmt.Errorf("the issuer: %w", err)}
	}
	defer response.Body.Close()
	var d issuerDocument
	if response.StatusCode != http.StatusOK || json.NewDecoder(response.Body).Decode(&d) != nil || d.Token == "" {
		return nil, failure.Usagef("%s is no OpenID issuer: %s answers %s", o.Issuer, address, response.Status)
	}
	if strings.TrimSuffix(d.Issuer, "/") != strings.TrimSuffix(o.Issuer, "/") {
		return nil, failure.Usagef("the issuer calls itself %s, not %s", d.Issuer, o.Issuer)
	}
	return &oauth2.Config{
		ClientID: o.ClientID, Scopes: o.Scopes, Endpoint: oauth2.Endpoint{
			AuthURL: d.Authorization, TokenURL: d.Token, DeviceAuthURL: d.Device, AuthStyle: oauth2.AuthStyleInParams,
		},
	}, nil
}

func (s *Session) issuerClient() *http.Client {
	return &http.Client{Transport: s.logged(http.DefaultTransport), Timeout: 30 * time.Second}
}

// Way is how a person signs in: in a browser on this machine, or with a code on any device.
type Way struct {
	Device   bool
	Resource string // the API that the tokens are for (RFC 8707); "" leaves it to the issuer
}

// options are the parameters of a request that begins a sign-in.
func (w Way) options(verifier string) []oauth2.AuthCodeOption {
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier)}
	if w.Resource != "" {
		options = append(options, oauth2.SetAuthURLParam("resource", w.Resource))
	}
	return options
}

// SignIn lets a person sign in at an OpenID issuer.
func (s *Session) SignIn(ctx context.Context, o *config.OIDC, way Way) error {
	ctx, cancel := context.WithTimeoutCause(ctx, signInLimit, errors.New("nobody has signed in"))
	defer cancel()
	issuer, err := s.issuer(ctx, o)
	if err != nil {
		return err
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, s.issuerClient())
	var token *oauth2.Token
	if way.Device {
		token, err = s.withDevice(ctx, issuer, way)
	} else {
		token, err = s.withBrowser(ctx, issuer, way)
	}
	if err != nil {
		return failure.NotSignedInf("signing in: %w", withoutBody(err))
	}
	keep(o, token)
	return nil
}

// keep stores a token. A renewed one may come without a refresh token: then the old one stays good.
func keep(o *config.OIDC, token *oauth2.Token) {
	o.AccessToken, o.Expires = token.AccessToken, token.Expiry
	o.RefreshToken = cmp.Or(token.RefreshToken, o.RefreshToken)
}

func (s *Session) withDevice(ctx context.Context, issuer *oauth2.Config, way Way) (*oauth2.Token, error) {
	if issuer.Endpoint.DeviceAuthURL == "" {
		return nil, errors.New("the issuer has no device flow")
	}
	verifier := oauth2.GenerateVerifier()
	device, err := issuer.DeviceAuth(ctx, way.options(verifier)...)
	if err != nil {
		return nil, err
	}
	s.Notef("On any device, open %s and enter the code %s", device.VerificationURI, device.UserCode)
	return issuer.DeviceAccessToken(ctx, device, oauth2.VerifierOption(verifier))
}

// callback is what the browser brings back.
type callback struct{ code, fault string }

// withBrowser waits for the browser on a port of this machine (RFC 8252), with PKCE (RFC 7636).
func (s *Session) withBrowser(ctx context.Context, issuer *oauth2.Config, way Way) (*oauth2.Token, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	issuer.RedirectURL = "http://" + listener.Addr().String() + "/callback"
	state, verifier, back := rand.Text(), oauth2.GenerateVerifier(), make(chan callback, 1)
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: receive(state, back)}
	go func() { _ = server.Serve(listener) }() // it ends with Close
	defer server.Close()

	s.Notef("Open this page in a browser on this machine:\n\n  %s\n",
		issuer.AuthCodeURL(state, way.options(verifier)...))
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case got := <-back:
		if got.fault != "" {
			return nil, errors.New(got.fault)
		}
		return issuer.Exchange(ctx, got.code, oauth2.VerifierOption(verifier))
	}
}

// receive takes the first callback with the right state, and none of others.
func receive(state string, back chan<- callback) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if r.URL.Path != "/callback" || query.Get("state") != state {
			http.NotFound(w, r)
			return
		}
		got := callback{query.Get("code"), query.Get("error")}
		if got.code == "" {
			description := query.Get("error_description")
			got.fault = strings.TrimSpace(cmp.Or(got.fault, "the issuer sent no code") + " " + description)
		}
		const page = "You can close this page and go back to the terminal.\n"
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(len(page)))
		_, _ = io.WriteString(w, page)
		_ = http.NewResponseController(w).Flush() // the server closes as soon as the callback is known
		select {
		case back <- got:
		default: // it has come before
		}
	})
}

// withoutBody drops the body of an issuer's answer from an error, because it may have a token.
func withoutBody(err error) error {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return fmt.Errorf("the issuer refuses: %s %s", refused.ErrorCode, refused.ErrorDescription)
	}
	return err
}

// personTokens are the tokens of a person who has signed in. They are renewed, and kept in the file.
func (s *Session) personTokens(name string, o *config.OIDC) idp.TokenSource {
	return idp.NewCachedTokens(func(ctx context.Context) (string, time.Duration, error) {
		if time.Until(o.Expires) <= renewBefore {
			if err := s.renew(ctx, name, o); err != nil {
				return "", 0, err
			}
		}
		return o.AccessToken, time.Until(o.Expires), nil
	})
}

// renew gets new tokens, and keeps them in the file. An issuer may take a refresh token only once, and end the sign-in
// when it comes again. So one process at a time renews, and the others find its tokens.
func (s *Session) renew(ctx context.Context, name string, o *config.OIDC) error {
	return config.Change(ctx, s.ConfigPath, func(f *config.File) error {
		entry := f.Contexts[name] // nil or without tokens: it was deleted meanwhile, or is about to be made
		kept := entry != nil && entry.OIDC != nil
		if kept && entry.OIDC.Expires.After(o.Expires) {
			*o = *entry.OIDC
			if time.Until(o.Expires) > renewBefore {
				return nil
			}
		}
		if s.Hasty > 0 {
			return failure.NotSignedInf("the token has ended")
		}
		if err := s.refresh(ctx, o); err != nil {
			return err
		}
		if kept {
			entry.OIDC = o
		}
		return nil
	})
}

// refresh asks the issuer for new tokens.
func (s *Session) refresh(ctx context.Context, o *config.OIDC) error {
	if o.RefreshToken == "" {
		return failure.NotSignedInf("the sign-in has ended: idp login again")
	}
	issuer, err := s.issuer(ctx, o)
	if err != nil {
		return err
	}
	// Once the issuer has the refresh token, its answer must be kept, or the sign-in is lost.
	ctx = context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, s.issuerClient())
	token, err := issuer.TokenSource(ctx, &oauth2.Token{RefreshToken: o.RefreshToken}).Token()
	if err != nil {
		return failure.NotSignedInf("the sign-in has ended: %w: idp login again", withoutBody(err))
	}
	keep(o, token)
	return nil
}
