package oidc

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// LogoutRequest is a request of an application to sign a person out (OpenID Connect RP-Initiated Logout 1.0).
type LogoutRequest struct {
	// AppID is the application that it is from; "" if it does not say.
	AppID string
	// UserID and SessionID are whom and which session the id_token_hint is about; "" without one. If they are those of
	// the browser's session, it ends at once; otherwise the person is asked.
	UserID, SessionID string
	// Return is where the browser goes afterwards: an address of the application, with state; "": a page.
	Return  string
	Locales []string
}

// Logout reads a request to /logout: its query or form. The error is *protocol.PageError for one that is wrong, or
// apperr.Unavailable.
func (p *Provider) Logout(ctx context.Context, issuer string, v url.Values) (LogoutRequest, error) {
	r := LogoutRequest{Locales: words(v.Get("ui_locales"))}
	if tooLong(v) || repeated(v) != "" || len(r.Locales) > maxList {
		return r, &protocol.PageError{Message: "The request is not well-formed."}
	}
	clientID := v.Get("client_id")
	if text := v.Get("id_token_hint"); text != "" {
		claims, err := p.readHint(ctx, issuer, text)
		switch {
		case errors.Is(err, errHint): // as without one: the person is asked
		case err != nil:
			return r, err
		case clientID != "" && clientID != claims.Audience:
			return r, &protocol.PageError{Message: "The request is from another application than the one signed in to."}
		default:
			r.UserID, r.SessionID, clientID = claims.Subject, claims.SessionID, claims.Audience
		}
	}
	if clientID == "" {
		return r, nil
	}
	client, err := p.client(ctx, questions.ClientName{ClientID: clientID})
	if errors.Is(err, protocol.ErrUnknown) || apperr.KindOf(err) == apperr.Unavailable {
		return r, nil // the session can end all the same
	}
	if err != nil {
		return r, err
	}
	r.AppID = client.AppID
	r.Return = returnTo(client, v.Get("post_logout_redirect_uri"), v.Get("state"))
	return r, nil
}

// returnTo is where the browser goes after a logout: an address that is registered exactly, or "".
func returnTo(client questions.Client, uri, state string) string {
	if uri == "" || uri != client.LogoutURL && !slices.Contains(client.SignIn.PostLogoutURLs, uri) {
		return ""
	}
	if state == "" {
		return uri
	}
	return withQuery(uri, url.Values{"state": {state}})
}

// FrontchannelURL is the address that the browser loads in a frame, so that the application signs the person out
// (OpenID Connect Front-Channel Logout 1.0 §2); "" if it has none.
func FrontchannelURL(client questions.Client, issuer, sessionID string) string {
	if client.OIDC == nil || client.SignIn.FrontchannelLogoutURL == "" {
		return ""
	}
	return withQuery(client.SignIn.FrontchannelLogoutURL, url.Values{"iss": {issuer}, "sid": {sessionID}})
}

// withQuery adds members to the query of a URL, which is otherwise left as it is.
func withQuery(uri string, members url.Values) string {
	separator := "?"
	if strings.Contains(uri, "?") {
		separator = "&"
	}
	return uri + separator + members.Encode()
}
