package issuer

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"

	"github.com/idplatform/idplatform/pkg/outbound"
)

// Revoke ends a token, if the issuer can (RFC 7009). Kind is refresh_token or access_token.
func (i *Issuer) Revoke(ctx context.Context, token, kind string) error {
	m, err := i.discover(ctx)
	if err != nil || m.Revocation == "" {
		return err
	}
	form := url.Values{"token": {token}, "token_type_hint": {kind}}
	inHeader := i.oauth(m, "").Endpoint.AuthStyle == oauth2.AuthStyleInHeader
	if !inHeader {
		form.Set("client_id", i.config.ClientID)
		if i.config.ClientSecret != "" {
			form.Set("client_secret", i.config.ClientSecret)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.Revocation, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if inHeader { // RFC 6749 §2.3.1
		r.SetBasicAuth(url.QueryEscape(i.config.ClientID), url.QueryEscape(i.config.ClientSecret))
	}
	response, err := i.client.Do(r)
	if err != nil {
		return outbound.Cause(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // so that the connection can be used again
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the issuer answers %d", response.StatusCode)
	}
	return nil
}

// EndsSessions reports whether people can sign out at the issuer.
func (i *Issuer) EndsSessions(ctx context.Context) bool {
	m, err := i.discover(ctx)
	return err == nil && m.EndSession != ""
}

// SignOutURL is where the browser goes to sign out at the issuer, and from there to back; empty if the issuer has no
// such page (OpenID Connect RP-Initiated Logout).
func (i *Issuer) SignOutURL(ctx context.Context, idToken, back string) string {
	m, err := i.discover(ctx)
	if err != nil || m.EndSession == "" {
		return ""
	}
	u, err := url.Parse(m.EndSession)
	if err != nil {
		return ""
	}
	q := u.Query()
	q.Set("client_id", i.config.ClientID)
	q.Set("post_logout_redirect_uri", back)
	if idToken != "" {
		q.Set("id_token_hint", idToken)
	}
	u.RawQuery = q.Encode()
	return u.String()
}
