package oidc_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

func TestAuthorize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, err := w.Authorize(w.ctx(), issuer, ofShop(
		"scope", "openid profile users:read other offline_access", "prompt", "login consent", "max_age", "60",
		"acr_values", "gold urn:idplatform:aal:2 phr", "login_hint", "li.wei", "ui_locales", "zh-Hans en",
		"resource", "https://api.test", "display", "popup", "response_mode", "form_post",
		"code_challenge", s256(verifier), "code_challenge_method", "S256"))
	require.NoError(t, err)
	age := int64(60)
	message := r.Message
	r.Message = nil
	require.Equal(t, protocol.Request{
		Protocol: "oidc", AppID: "2001", Fresh: true, AskConsent: true, MaxAge: &age,
		Consents: []string{"profile", "users:read", "offline_access"},
		ACR:      []string{"urn:idplatform:aal:2", "phr"}, LoginHint: "li.wei", Locales: []string{"zh-Hans", "en"},
	}, r)
	require.JSONEq(t, `{"client_id":"shop","redirect_uri":"https://shop.test/callback","response_mode":"form_post",
		"state":"st","nonce":"n-1","scope":["openid","profile","users:read","offline_access"],
		"resources":["https://api.test"],"code_challenge":"`+s256(verifier)+`"}`, string(message))

	r, err = w.Authorize(w.ctx(), issuer, ofShop("prompt", "none", "claims",
		`{"id_token":{"acr":{"essential":true,"values":["phr","x"]},"email":null},"userinfo":{"name":{"essential":true}}}`))
	require.NoError(t, err)
	require.True(t, r.Passive && r.ACREssential)
	require.Equal(t, []string{"phr"}, r.ACR)
	require.Nil(t, r.Consents)
}

// Without a known application and one of its own addresses nothing is sent anywhere.
func TestAuthorizeRefusesOnAPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.change("spa", func(c *questions.Client) { c.Enabled = false })
	w.apps["desk"] = questions.Client{
		AppID: "2005", ClientID: "desk", Category: "3", Enabled: true, OIDC: &questions.OIDCSettings{},
		RedirectURLs: []string{"http://127.0.0.1:8080/cb"},
	}
	redirect := func(uri string) url.Values { return ofShop("redirect_uri", uri) }
	program := func(uri string) url.Values { return ofSPA("client_id", "desk", "redirect_uri", uri) }
	for name, v := range map[string]url.Values{
		"no client":            ofShop("client_id", ""),
		"unknown":              ofShop("client_id", "nobody"),
		"disabled":             ofSPA(),
		"two clients":          form(ofShop(), "client_id", "shop"),
		"no address":           ofShop("redirect_uri", ""),
		"another address":      redirect("https://evil.test/callback"),
		"below":                redirect(callback + "/x"),
		"a query":              redirect(callback + "?x=1"),
		"without the query":    redirect("https://shop.test/other"),
		"a fragment":           redirect(callback + "#x"),
		"a port":               redirect("https://shop.test:8443/callback"),
		"case":                 redirect("https://shop.test/CALLBACK"),
		"dots":                 redirect("https://shop.test/x/../callback"),
		"user information":     redirect("https://shop.test@evil.test/callback"),
		"a scheme":             redirect("javascript:alert(1)"),
		"another loopback":     program("http://127.0.0.2/cb"),
		"loopback, https":      program("https://127.0.0.1:9000/cb"),
		"loopback, path":       program("http://127.0.0.1:9000/other"),
		"loopback, user":       program("http://127.0.0.1:80@evil.test/cb"),
		"loopback, user 2":     program("http://evil.test@127.0.0.1:80/cb"),
		"loopback, odd port":   program("http://127.0.0.1:80.evil.test/cb"),
		"loopback, backslash":  program(`http://127.0.0.1:80\@evil.test/cb`),
		"loopback, fragment":   program("http://127.0.0.1:80/cb#x"),
		"loopback, query":      program("http://127.0.0.1:80/cb?x=1"),
		"localhost":            program("http://localhost:80/cb"),
		"loopback, a web app":  redirect("http://127.0.0.1:9000/cb"),
		"too long":             ofShop("state", strings.Repeat("a", 9000)),
		"an unknown request":   ofShop("request_uri", "urn:ietf:params:oauth:request_uri:x"),
		"a NUL":                redirect(callback + "\x00"),
		"a space at its end":   redirect(callback + " "),
		"several, with commas": redirect(callback + ",https://evil.test"),
	} {
		if name == "two clients" {
			v["client_id"] = []string{"shop", "spa"}
		}
		_, err := w.Authorize(w.ctx(), issuer, v)
		var page *protocol.PageError
		require.ErrorAs(t, err, &page, name)
	}
	for _, port := range []string{"", ":1", ":65535"} {
		_, err := w.Authorize(w.ctx(), issuer, program("http://127.0.0.1"+port+"/cb"))
		require.NoError(t, err, "a program listens at any port")
	}
	w.away = apperr.Away("the applications service", nil)
	_, err := w.Authorize(w.ctx(), issuer, ofShop())
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
}

func TestAuthorizeTellsTheApplication(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	twice := ofShop()
	twice["scope"] = []string{"openid", "openid"}
	many := ofShop()
	many["resource"] = []string{"https://api.test", "https://elsewhere.test"}
	for name, row := range map[string]struct {
		v    url.Values
		code string
	}{
		"no response_type":       {ofShop("response_type", ""), "invalid_request"},
		"implicit":               {ofShop("response_type", "id_token token"), "unsupported_response_type"},
		"hybrid":                 {ofShop("response_type", "code id_token"), "unsupported_response_type"},
		"a response mode":        {ofShop("response_mode", "fragment"), "invalid_request"},
		"a request object":       {ofShop("request", "e30.e30."), "request_not_supported"},
		"a request_uri":          {ofShop("request_uri", "https://shop.test/request"), "request_uri_not_supported"},
		"registration":           {ofShop("registration", "{}"), "registration_not_supported"},
		"DPoP":                   {ofShop("dpop_jkt", s256("key")), "invalid_request"},
		"repeated":               {twice, "invalid_request"},
		"prompt":                 {ofShop("prompt", "none login"), "invalid_request"},
		"max_age":                {ofShop("max_age", "-1"), "invalid_request"},
		"claims":                 {ofShop("claims", "[]"), "invalid_request"},
		"essential acr":          {ofShop("claims", `{"id_token":{"acr":{"essential":true,"value":"gold"}}}`), "unmet_authentication_requirements"},
		"plain PKCE":             {ofShop("code_challenge", verifier, "code_challenge_method", "plain"), "invalid_request"},
		"PKCE without a method":  {ofShop("code_challenge", s256(verifier)), "invalid_request"},
		"PKCE only a method":     {ofShop("code_challenge_method", "S256"), "invalid_request"},
		"PKCE too short":         {ofShop("code_challenge", "abc", "code_challenge_method", "S256"), "invalid_request"},
		"no PKCE, no secret":     {ofSPA("code_challenge", "", "code_challenge_method", ""), "invalid_request"},
		"resource":               {ofShop("resource", "https://elsewhere.test"), "invalid_target"},
		"one resource of two":    {many, "invalid_target"},
		"the API without scopes": {ofSPA("resource", "https://idp.test"), "invalid_target"},
		"a backend service":      {ofShop("client_id", "backend"), "unauthorized_client"},
		"a bad hint, silently":   {ofShop("prompt", "none", "id_token_hint", "x"), "login_required"},
	} {
		_, err := w.Authorize(w.ctx(), issuer, row.v)
		var refusal *protocol.AnswerError
		require.ErrorAs(t, err, &refusal, name)
		require.Equal(t, row.code, refusal.Code, name)
		require.True(t, strings.HasPrefix(refusal.Answer.URL, row.v.Get("redirect_uri")+"?"), name)
		members := answered(t, refusal.Answer)
		require.Equal(t, row.code, members.Get("error"), name)
		require.Equal(t, "st", members.Get("state"), name)
		require.Equal(t, issuer, members.Get("iss"), "the application can tell who has answered")
	}
	_, err := w.Authorize(w.ctx(), issuer, ofShop("response_mode", "form_post", "response_type", "x"))
	var refusal *protocol.AnswerError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, callback, refusal.Answer.URL)
	require.Equal(t, "unsupported_response_type", refusal.Answer.Post.Get("error"))
}

func TestGrantAndRefuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, err := w.Authorize(w.ctx(), issuer, ofShop("redirect_uri", "https://shop.test/other?x=1"))
	require.NoError(t, err)
	answer, err := w.Grant(w.ctx(), issuer, r, w.person)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(answer.URL, "https://shop.test/other?x=1&code="), answer.URL)
	for _, why := range []protocol.Refusal{protocol.AccessDenied, protocol.LoginRequired, protocol.ConsentRequired,
		protocol.UnmetACR, protocol.Unavailable} {
		answer, err := w.Refuse(w.ctx(), issuer, r, why)
		require.NoError(t, err)
		members := answered(t, answer)
		require.Equal(t, []string{string(why), "st", issuer},
			[]string{members.Get("error"), members.Get("state"), members.Get("iss")})
	}

	w.change("shop", func(c *questions.Client) { c.RedirectURLs = []string{callback} })
	_, err = w.Grant(w.ctx(), issuer, r, w.person)
	var page *protocol.PageError
	require.ErrorAs(t, err, &page, "the address was taken from it meanwhile")
	w.change("shop", func(c *questions.Client) { c.Enabled = false })
	_, err = w.Grant(w.ctx(), issuer, r, w.person)
	require.ErrorIs(t, err, protocol.ErrUnknown)
}

// A request that is about one person is answered for nobody else.
func TestHint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hint := w.tokens(byCode(w.code(ofShop()))).IDToken
	other := w.person
	other.UserID = "1002"
	for name, v := range map[string]url.Values{
		"hint":  ofShop("id_token_hint", hint),
		"claim": ofShop("claims", `{"id_token":{"sub":{"value":"1001"}}}`),
	} {
		r, err := w.Authorize(w.ctx(), issuer, v)
		require.NoError(t, err, name)
		answer, err := w.Grant(w.ctx(), issuer, r, other)
		require.NoError(t, err, name)
		require.Equal(t, "login_required", answered(t, answer).Get("error"), name)
		answer, err = w.Grant(w.ctx(), issuer, r, w.person)
		require.NoError(t, err, name)
		require.NotEmpty(t, answered(t, answer).Get("code"), name)
	}
	_, err := w.Authorize(w.ctx(), issuer, ofShop("id_token_hint", hint,
		"claims", `{"id_token":{"sub":{"value":"9"}}}`))
	var refusal *protocol.AnswerError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, "login_required", refusal.Code)
	_, err = w.Authorize(w.ctx(), issuer, ofShop("id_token_hint", "x"))
	require.NoError(t, err, "the person can sign in")
}

// The request travels in forms and flows, and versions of the service exchange it.
func TestAuthorizationIsKept(t *testing.T) {
	t.Parallel()
	var a oidc.Authorization
	text := `{"client_id":"c","redirect_uri":"r","response_mode":"m","state":"s","nonce":"n","scope":["a"],` +
		`"resources":["b"],"code_challenge":"x","claims":{"id_token":{"acr":{"essential":true,"value":"v"}}},"subject":"u"}`
	require.NoError(t, json.Unmarshal([]byte(text), &a))
	again, err := json.Marshal(a)
	require.NoError(t, err)
	require.JSONEq(t, text, string(again))
}

func TestPush(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	push := func(v url.Values, auth []string) (oidc.PushAnswer, error) {
		return w.Push(w.ctx(), issuer, oidc.TokenRequest{Form: v, Authorization: auth})
	}
	pushed, err := push(ofShop("scope", "openid email"), shopAuth())
	require.NoError(t, err)
	require.EqualValues(t, 90, pushed.ExpiresIn)
	at := url.Values{"client_id": {"shop"}, "request_uri": {pushed.RequestURI}}
	for range 2 {
		r, err := w.Authorize(w.ctx(), issuer, form(at, "redirect_uri", "https://evil.test"))
		require.NoError(t, err, "the page may be reloaded; nothing beside the pushed request counts")
		require.Contains(t, string(r.Message), `"scope":["openid","email"]`)
		require.NotContains(t, string(r.Message), "evil")
	}
	var page *protocol.PageError
	_, err = w.Authorize(w.ctx(), issuer, form(at, "client_id", "spa"))
	require.ErrorAs(t, err, &page, "another application's")
	w.clock.Advance(90e9)
	_, err = w.Authorize(w.ctx(), issuer, at)
	require.ErrorAs(t, err, &page, "too late")

	_, err = push(ofShop("redirect_uri", "https://evil.test"), shopAuth())
	refusedAs(t, err, 400, "invalid_request")
	_, err = push(ofShop("response_type", "token"), shopAuth())
	refusedAs(t, err, 400, "unsupported_response_type")
	_, err = push(ofShop("request_uri", pushed.RequestURI), shopAuth())
	refusedAs(t, err, 400, "invalid_request")
	_, err = push(ofShop(), []string{basicAuth("shop", "wrong")})
	refusedAs(t, err, 401, "invalid_client")
	_, err = push(ofShop(), nil)
	refusedAs(t, err, 401, "invalid_client")
	_, err = push(ofSPA(), nil)
	require.NoError(t, err, "an application without a secret may push")
	_, err = push(ofSPA(), shopAuth())
	refusedAs(t, err, 400, "invalid_request")
}
