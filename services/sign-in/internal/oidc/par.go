package oidc

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// pushedTTL is how long a pushed request is good. Browsers may load the page with it several times.
const pushedTTL = 90 * time.Second

// pushedPrefix is that of RFC 9126 §2.2.
const pushedPrefix = "urn:ietf:params:oauth:request_uri:"

// pushedRequest is an authorization request that an application has pushed. Its id is the SHA-256 of its name.
type pushedRequest struct {
	docstore.Meta
	ClientID string     `json:"client_id"`
	Form     string     `json:"form"`
	Expires  clock.Time `json:"expires"`
}

var pushedRequests = docstore.Define(docstore.Schema[pushedRequest]{
	Name: "oidc_requests", Noun: "pushed authorization request",
	Due: func(r *pushedRequest) clock.Time { return r.Expires },
})

// PushAnswer is the answer to a pushed request (RFC 9126 §2.2).
type PushAnswer struct {
	RequestURI string `json:"request_uri" doc:"RFC 9126: names the request at /authorize"`
	ExpiresIn  int64  `json:"expires_in" doc:"Seconds"`
}

// Push checks and stores an authorization request (RFC 9126). The error is that of Token, with the code that the
// application would get at /authorize.
func (p *Provider) Push(ctx context.Context, issuer string, r TokenRequest) (PushAnswer, error) {
	client, err := p.sender(ctx, issuer, r, "/par")
	if err != nil {
		return PushAnswer{}, err
	}
	if r.Form.Has("request_uri") {
		return PushAnswer{}, apperr.Invalid("request_uri", "must not be pushed")
	}
	form := url.Values{}
	for name, values := range r.Form {
		if !strings.HasPrefix(name, "client_") {
			form[name] = values
		}
	}
	form.Set("client_id", client.ClientID)
	if _, err := p.authorize(ctx, issuer, form); err != nil {
		return PushAnswer{}, pushFault(err)
	}
	if err := p.mayStore(ctx, client, r); err != nil {
		return PushAnswer{}, err
	}
	text, id := newToken()
	err = docstore.Do(docstore.WithoutCommitHook(ctx), p.Store, func(tx *docstore.Tx) error {
		_, err := pushedRequests.Insert(ctx, tx, &pushedRequest{
			Meta: docstore.Meta{ID: id}, ClientID: client.ClientID, Form: form.Encode(), Expires: tx.Now.Add(pushedTTL),
		})
		return err
	})
	return PushAnswer{RequestURI: pushedPrefix + text, ExpiresIn: int64(pushedTTL.Seconds())}, err
}

// pushFault makes the error of the endpoint from one of authorize.
func pushFault(err error) error {
	if answer, ok := errors.AsType[*protocol.AnswerError](err); ok {
		text := answer.Answer.Post.Get("error_description")
		if answer.Answer.Post == nil {
			if u, err := url.Parse(answer.Answer.URL); err == nil {
				text = u.Query().Get("error_description")
			}
		}
		return apperr.OAuth(apperr.InvalidParameters, answer.Code, "%s", text)
	}
	if page, ok := errors.AsType[*protocol.PageError](err); ok {
		return apperr.OAuth(apperr.InvalidParameters, "invalid_request", "%s", page.Message)
	}
	return err
}

// isPushed reports whether a request_uri is one of a pushed request.
func isPushed(text string) bool { return strings.HasPrefix(text, pushedPrefix) }

// pushed returns the parameters of a pushed request. The error is *protocol.PageError: without the request nobody knows
// where an answer may go.
func (p *Provider) pushed(ctx context.Context, uri, clientID string) (url.Values, error) {
	doc, err := pushedRequests.Find(ctx, p.Store, hashOf(strings.TrimPrefix(uri, pushedPrefix)))
	if err != nil && !isNotFound(err) {
		return nil, err
	}
	var r *pushedRequest
	if err == nil {
		if r, err = doc.Value(); err != nil {
			return nil, err
		}
	}
	if r == nil || r.ClientID != clientID || !p.Store.Now().Before(r.Expires) {
		return nil, &protocol.PageError{
			Message: "The application's request has come too late. Please go back to the application and begin again.",
		}
	}
	return url.ParseQuery(r.Form)
}
