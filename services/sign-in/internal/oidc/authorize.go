package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"

	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// Authorize checks an authorization request: the query or the form of /authorize. Without an application and an address
// that are known to belong together, the error is *protocol.PageError; other faults of the request are
// *protocol.AnswerError. It stores nothing.
func (p *Provider) Authorize(ctx context.Context, issuer string, v url.Values) (protocol.Request, error) {
	if tooLong(v) {
		return protocol.Request{}, &protocol.PageError{Message: "The request is too long."}
	}
	if text := v.Get("request_uri"); isPushed(text) {
		pushed, err := p.pushed(ctx, text, v.Get("client_id"))
		if err != nil {
			return protocol.Request{}, err
		}
		v = pushed
	}
	return p.authorize(ctx, issuer, v)
}

func (p *Provider) authorize(ctx context.Context, issuer string, v url.Values) (protocol.Request, error) {
	client, err := p.target(ctx, v)
	if err != nil {
		return protocol.Request{}, err
	}
	a := &Authorization{
		ClientID: client.ClientID, RedirectURI: v.Get("redirect_uri"), ResponseMode: v.Get("response_mode"),
		State: v.Get("state"), Nonce: v.Get("nonce"),
	}
	r := protocol.Request{
		Protocol: protocol.OIDC, AppID: client.AppID, LoginHint: v.Get("login_hint"),
		Locales: words(v.Get("ui_locales")),
	}
	if why := p.check(ctx, issuer, client, a, &r, v); why != nil {
		if a.ResponseMode != formPost {
			a.ResponseMode = query
		}
		return protocol.Request{}, &protocol.AnswerError{Code: why.code, Answer: a.refusal(issuer, *why)}
	}
	r.Message, err = json.Marshal(a)
	return r, err
}

// target finds the application of a request, and makes sure that the answer goes to one of its addresses.
func (p *Provider) target(ctx context.Context, v url.Values) (questions.Client, error) {
	refuse := func(text string) error { return &protocol.PageError{Message: text} }
	if len(v["client_id"]) != 1 || v.Get("client_id") == "" {
		return questions.Client{}, refuse("The request does not say which application it is from (client_id).")
	}
	client, err := p.client(ctx, questions.ClientName{ClientID: v.Get("client_id")})
	if errors.Is(err, protocol.ErrUnknown) {
		return client, refuse("The application is not known here, or is disabled (client_id).")
	}
	if err != nil {
		return client, err
	}
	if len(v["redirect_uri"]) != 1 || !isRegistered(client, v.Get("redirect_uri")) {
		return client, refuse("The address to return to is not one of the application's (redirect_uri).")
	}
	return client, nil
}

// check finds the first fault of a request whose application and address are good. It completes a and r.
func (p *Provider) check(
	ctx context.Context, issuer string, client questions.Client, a *Authorization, r *protocol.Request, v url.Values,
) *fault {
	name := repeated(v)
	switch {
	case name != "":
		return invalid("a parameter is given twice")
	case a.ResponseMode != "" && a.ResponseMode != query && a.ResponseMode != formPost:
		return invalid("response_mode must be query or form_post")
	case client.Category == questions.BackendService:
		return &fault{"unauthorized_client", "people do not sign in to backend services"}
	case v.Has("request"):
		return &fault{"request_not_supported", "request objects are not supported"}
	case v.Has("request_uri"):
		return &fault{"request_uri_not_supported", "request_uri must be one of this server (RFC 9126)"}
	case v.Has("dpop_jkt"): // a token that is not bound to the key would be worse than none
		return invalid("dpop_jkt is not supported: access tokens are bearer tokens")
	case v.Has("registration"):
		return &fault{"registration_not_supported", "registration is not supported"}
	case v.Get("response_type") == "":
		return invalid("response_type is missing")
	case v.Get("response_type") != "code":
		return &fault{"unsupported_response_type", "response_type must be code"}
	}
	return p.checkMore(ctx, issuer, client, a, r, v)
}

func (p *Provider) checkMore(
	ctx context.Context, issuer string, client questions.Client, a *Authorization, r *protocol.Request, v url.Values,
) *fault {
	a.parseScope(client, v)
	for _, parse := range []func() *fault{
		func() *fault { return a.parseChallenge(v, client.Category != questions.StandardWeb) },
		func() *fault { return parsePrompt(v, r) },
		func() *fault { return parseMaxAge(v, r) },
		func() *fault { return a.parseClaims(v) },
		func() *fault { return a.parseClasses(v, r) },
		func() *fault { return p.parseResources(client, a, v["resource"]) },
		func() *fault { return p.parseHint(ctx, issuer, a, r, v.Get("id_token_hint")) },
	} {
		if why := parse(); why != nil {
			return why
		}
	}
	if len(r.Locales) > maxList {
		return invalid("ui_locales has too many languages")
	}
	offline := slices.Contains(a.Scope, offlineAccess)
	// Any program on the person's device can send another one's request: the person is asked each time (RFC 8252 §8.6).
	r.AskConsent = r.AskConsent || offline && client.Category == questions.ClientProgram
	switch {
	case client.SignIn.Consent || r.AskConsent:
		r.Consents = a.consents()
	case offline: // what lives on without the person is agreed to (OpenID Connect Core §11)
		r.Consents = []string{offlineAccess}
	}
	return nil
}

// parseResources checks where the access tokens are to be used (RFC 8707): audiences of the application, or the
// platform's API, if the application has scopes for it.
func (p *Provider) parseResources(client questions.Client, a *Authorization, resources []string) *fault {
	for _, resource := range resources {
		platform := resource == p.PublicURL && len(client.Scopes) > 0 && p.Holds != nil
		if !platform && !slices.Contains(client.SignIn.Audiences, resource) || len(resources) > maxResources {
			return &fault{"invalid_target", "resource must be one of the application's audiences"}
		}
	}
	a.Resources = resources
	return nil
}

// parseHint reads id_token_hint. One that cannot be verified is no reason to refuse a person who can sign in, but
// nobody else may be answered about: without questions to the person that is a refusal.
func (p *Provider) parseHint(
	ctx context.Context, issuer string, a *Authorization, r *protocol.Request, hint string,
) *fault {
	if hint == "" {
		return nil
	}
	claims, err := p.readHint(ctx, issuer, hint)
	switch {
	case err == nil && (a.Subject == "" || a.Subject == claims.Subject):
		a.Subject = claims.Subject
		return nil
	case err == nil || r.Passive:
		return &fault{string(protocol.LoginRequired), "id_token_hint is about nobody who is signed in"}
	}
	return nil
}

// consents are the scopes that a person agrees to: those that were asked for, and those of claims that were asked for.
func (a *Authorization) consents() (list []string) {
	for _, scope := range a.Scope {
		if scope != openID {
			list = append(list, scope)
		}
	}
	if a.Claims != nil {
		for _, claims := range []map[string]*wantedClaim{a.Claims.IDToken, a.Claims.UserInfo} {
			for name := range claims {
				if scope := scopeOf[name]; scope != "" && !slices.Contains(list, scope) {
					list = append(list, scope)
				}
			}
		}
		slices.Sort(list)
	}
	return list
}

// refusal is the answer to the application about a fault (RFC 6749 §4.1.2.1).
func (a *Authorization) refusal(issuer string, why fault) protocol.Answer {
	members := url.Values{"error": {why.code}, "iss": {issuer}} // RFC 9207
	if why.text != "" {
		members.Set("error_description", why.text)
	}
	if a.State != "" {
		members.Set("state", a.State)
	}
	return respond(a.RedirectURI, a.ResponseMode, members)
}

// descriptions are for developers of applications.
var descriptions = map[protocol.Refusal]string{
	protocol.AccessDenied:    "the person may not use the application, or does not want to",
	protocol.LoginRequired:   "nobody is signed in whom this request could be about",
	protocol.ConsentRequired: "the person has not agreed to the scopes",
	protocol.UnmetACR:        "the class of sign-in is not reached",
	protocol.Unavailable:     "a service that must be asked does not answer",
}

// Refuse answers a request without a person.
func (p *Provider) Refuse(
	ctx context.Context, issuer string, r protocol.Request, why protocol.Refusal,
) (protocol.Answer, error) {
	var a Authorization
	if err := json.Unmarshal(r.Message, &a); err != nil {
		return protocol.Answer{}, err
	}
	if a.Device != "" {
		return p.answerDevice(ctx, issuer, &a, nil)
	}
	return a.refusal(issuer, fault{string(why), descriptions[why]}), nil
}
