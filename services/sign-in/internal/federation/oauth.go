package federation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/oauth2"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/outbound"
)

// dialect is how a provider speaks that has OAuth 2.0 or something like it, and no OpenID Connect: each names things in
// its own way.
type dialect struct {
	// page is where people sign in.
	page func(f *fields) string
	// query is what the page gets, but for redirect_uri and state.
	query func(f *fields, kept Kept) url.Values
	// fragment ends the page's address.
	fragment string
	// identify asks who has brought a code. The error is ErrAway or ErrRefused.
	identify func(ctx context.Context, ask caller, f *fields, kept Kept, code string) (Identity, error)
}

// dialects are those of providers, by their codes.
var dialects = map[string]dialect{
	"github": {
		page:     func(f *fields) string { return f.github("https://github.com", "") + "/login/oauth/authorize" },
		query:    githubQuery,
		identify: identifyAtGitHub,
	},
	"wechat_scan_qr": {
		page: func(*fields) string { return "https://open.weixin.qq.com/connect/qrconnect" },
		query: func(f *fields, _ Kept) url.Values {
			return url.Values{"appid": {f.AppID}, "response_type": {"code"}, "scope": {"snsapi_login"}}
		},
		fragment: "#wechat_redirect",
		identify: identifyAtWeChat,
	},
	"dingding_scan_qr": {
		page: func(*fields) string { return "https://login.dingtalk.com/oauth2/auth" },
		query: func(f *fields, _ Kept) url.Values {
			return url.Values{
				"client_id": {f.AppID}, "response_type": {"code"}, "scope": {"openid"}, "prompt": {"consent"},
			}
		},
		identify: identifyAtDingTalk,
	},
	"feishu_scan_qr": {
		page: func(*fields) string { return "https://accounts.feishu.cn/open-apis/authen/v1/authorize" },
		query: func(f *fields, kept Kept) url.Values {
			return url.Values{
				"client_id": {f.AppID}, "response_type": {"code"}, "code_challenge_method": {"S256"},
				"code_challenge": {oauth2.S256ChallengeFromVerifier(kept.Verifier)},
			}
		},
		identify: identifyAtFeishu,
	},
	"qywechat_scan_qr": {
		page: func(*fields) string { return "https://login.work.weixin.qq.com/wwlogin/sso/login" },
		query: func(f *fields, _ Kept) url.Values {
			return url.Values{"login_type": {"CorpApp"}, "appid": {f.CorpID}, "agentid": {f.AgentID}}
		},
		identify: identifyAtWeCom,
	},
}

// oauthClient is this platform as a client of such a provider, for one connection.
type oauthClient struct {
	dialect
	fields fields
	ask    caller
}

func (c *oauthClient) begin(r Request, _ clock.Time) (string, Kept) {
	kept := Kept{Callback: r.Callback, Verifier: oauth2.GenerateVerifier()}
	q := c.query(&c.fields, kept)
	q.Set("redirect_uri", r.Callback)
	q.Set("state", r.State)
	return c.page(&c.fields) + "?" + q.Encode() + c.fragment, kept
}

func (c *oauthClient) end(ctx context.Context, kept Kept, a Answer) (Identity, error) {
	if a.Code == "" {
		return Identity{}, refused("the answer has no code")
	}
	who, err := c.identify(ctx, c.ask, &c.fields, kept, a.Code)
	if err != nil {
		return Identity{}, err
	}
	if n := utf8.RuneCountInString(who.Subject); n == 0 || n > maxSubject {
		return Identity{}, refused("the subject has %d characters", n)
	}
	return who, nil
}

// caller asks providers. Its errors have no address: some of these have secrets.
type caller struct{ http *http.Client }

// get asks an address, with a token in a header if its name is not empty, and reads a JSON answer.
func (c caller) get(ctx context.Context, address string, q url.Values, header, token string, into any) error {
	if len(q) > 0 {
		address += "?" + q.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return refused("its address is not a URL")
	}
	if header != "" {
		r.Header.Set(header, token)
	}
	return c.do(r, into)
}

// post sends JSON to an address, and reads a JSON answer.
func (c caller) post(ctx context.Context, address string, body map[string]string, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(text))
	if err != nil {
		return refused("its address is not a URL")
	}
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	return c.do(r, into)
}

// read returns an answer whose status is 200.
func (c caller) read(r *http.Request, accept string) ([]byte, error) {
	r.Header.Set("Accept", accept)
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, errors.Join(ErrAway, outbound.Cause(err))
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return nil, errors.Join(ErrAway, outbound.Cause(err))
	case answer.StatusCode >= http.StatusInternalServerError:
		return nil, refusedOrAway(ErrAway, r, answer.StatusCode)
	case answer.StatusCode != http.StatusOK:
		return nil, refusedOrAway(ErrRefused, r, answer.StatusCode)
	}
	return body, nil
}

func (c caller) do(r *http.Request, into any) error {
	body, err := c.read(r, "application/json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return refused("the answer of %s is not what is expected: %w", r.URL.Host+r.URL.Path, err)
	}
	return nil
}

func refusedOrAway(kind error, r *http.Request, status int) error {
	return errors.Join(kind, errors.New(r.URL.Host+r.URL.Path+" has answered with status "+strconv.Itoa(status)))
}

// github is an address of GitHub, or of the company's own server with a path.
func (f *fields) github(public, path string) string {
	if f.EnterpriseURL == "" {
		return public
	}
	return strings.TrimSuffix(f.EnterpriseURL, "/") + path
}

func githubQuery(f *fields, kept Kept) url.Values {
	scopes := append([]string{"read:user", "user:email"}, f.Scopes...)
	return url.Values{
		"client_id": {f.ClientID}, "scope": {strings.Join(scopes, " ")}, "code_challenge_method": {"S256"},
		"code_challenge": {oauth2.S256ChallengeFromVerifier(kept.Verifier)},
	}
}

func identifyAtGitHub(ctx context.Context, ask caller, f *fields, kept Kept, code string) (Identity, error) {
	var token struct {
		AccessToken string `json:"access_token"`
		Error       string `json:"error"`
	}
	if err := ask.post(ctx, f.github("https://github.com", "")+"/login/oauth/access_token", map[string]string{
		"client_id": f.ClientID, "client_secret": f.ClientSecret, "code": code, "redirect_uri": kept.Callback,
		"code_verifier": kept.Verifier,
	}, &token); err != nil {
		return Identity{}, err
	}
	if token.AccessToken == "" {
		return Identity{}, refused("it has answered %.100q", token.Error)
	}
	api, bearer := f.github("https://api.github.com", "/api/v3"), "Bearer "+token.AccessToken
	var user struct {
		ID    int64  `json:"id"`
		Login string `json:"login"`
		Name  string `json:"name"`
	}
	if err := ask.get(ctx, api+"/user", nil, "Authorization", bearer, &user); err != nil {
		return Identity{}, err
	}
	if user.ID == 0 {
		return Identity{}, refused("the user has no id")
	}
	var emails []struct {
		Email             string `json:"email"`
		Primary, Verified bool
	}
	// The person may have kept the addresses from the application: the sign-in goes on without.
	if err := ask.get(ctx, api+"/user/emails", nil, "Authorization", bearer, &emails); errors.Is(err, ErrAway) {
		return Identity{}, err
	}
	who := Identity{Subject: strconv.FormatInt(user.ID, 10), Username: user.Login, DisplayName: user.Name}
	for _, one := range emails {
		if one.Primary && one.Verified {
			who.Email = one.Email
		}
	}
	return who, nil
}

// tencentError is what WeChat and WeCom answer instead of an error's status.
type tencentError struct {
	Code int64 `json:"errcode"`
}

func (e tencentError) err() error {
	if e.Code == 0 {
		return nil
	}
	return refused("it has answered errcode %d", e.Code)
}

func identifyAtWeChat(ctx context.Context, ask caller, f *fields, _ Kept, code string) (Identity, error) {
	const api = "https://api.weixin.qq.com/sns"
	var token struct {
		tencentError
		AccessToken string `json:"access_token"`
		OpenID      string `json:"openid"`
		UnionID     string `json:"unionid"`
	}
	err := ask.get(ctx, api+"/oauth2/access_token", url.Values{
		"appid": {f.AppID}, "secret": {f.AppSecret}, "code": {code}, "grant_type": {"authorization_code"},
	}, "", "", &token)
	if err = cmp.Or(err, token.err()); err != nil {
		return Identity{}, err
	}
	var user struct {
		tencentError
		OpenID   string `json:"openid"`
		Nickname string `json:"nickname"`
		UnionID  string `json:"unionid"`
	}
	err = ask.get(ctx, api+"/userinfo", url.Values{"access_token": {token.AccessToken}, "openid": {token.OpenID}},
		"", "", &user)
	if err = cmp.Or(err, user.err()); err != nil {
		return Identity{}, err
	}
	if user.OpenID != token.OpenID {
		return Identity{}, refused("the two answers are of different people")
	}
	return Identity{
		Subject: token.OpenID, Subject2: cmp.Or(user.UnionID, token.UnionID), DisplayName: user.Nickname,
	}, nil
}

func identifyAtDingTalk(ctx context.Context, ask caller, f *fields, _ Kept, code string) (Identity, error) {
	const api = "https://api.dingtalk.com/v1.0"
	var token struct {
		AccessToken string `json:"accessToken"`
	}
	if err := ask.post(ctx, api+"/oauth2/userAccessToken", map[string]string{
		"clientId": f.AppID, "clientSecret": f.AppSecret, "code": code, "grantType": "authorization_code",
	}, &token); err != nil {
		return Identity{}, err
	}
	var user struct {
		Nick    string `json:"nick"`
		OpenID  string `json:"openId"`
		UnionID string `json:"unionId"`
	}
	err := ask.get(ctx, api+"/contact/users/me", nil, "x-acs-dingtalk-access-token", token.AccessToken, &user)
	return Identity{Subject: user.OpenID, Subject2: user.UnionID, DisplayName: user.Nick}, err
}

func identifyAtFeishu(ctx context.Context, ask caller, f *fields, kept Kept, code string) (Identity, error) {
	const api = "https://open.feishu.cn/open-apis/authen"
	var token struct {
		Code        int64  `json:"code"`
		AccessToken string `json:"access_token"`
	}
	if err := ask.post(ctx, api+"/v2/oauth/token", map[string]string{
		"grant_type": "authorization_code", "client_id": f.AppID, "client_secret": f.AppSecret, "code": code,
		"redirect_uri": kept.Callback, "code_verifier": kept.Verifier,
	}, &token); err != nil {
		return Identity{}, err
	}
	if token.Code != 0 {
		return Identity{}, refused("it has answered code %d", token.Code)
	}
	var user struct {
		Code int64 `json:"code"`
		Data struct {
			Name    string `json:"name"`
			OpenID  string `json:"open_id"`
			UnionID string `json:"union_id"`
		} `json:"data"`
	}
	err := ask.get(ctx, api+"/v1/user_info", nil, "Authorization", "Bearer "+token.AccessToken, &user)
	if err == nil && user.Code != 0 {
		err = refused("it has answered code %d", user.Code)
	}
	return Identity{Subject: user.Data.OpenID, Subject2: user.Data.UnionID, DisplayName: user.Data.Name}, err
}

// identifyAtWeCom returns a member of the company: whoever is none has no userid, and does not come in.
func identifyAtWeCom(ctx context.Context, ask caller, f *fields, _ Kept, code string) (Identity, error) {
	const api = "https://qyapi.weixin.qq.com/cgi-bin"
	var token struct {
		tencentError
		AccessToken string `json:"access_token"`
	}
	err := ask.get(ctx, api+"/gettoken", url.Values{"corpid": {f.CorpID}, "corpsecret": {f.CorpSecret}}, "", "", &token)
	if err = cmp.Or(err, token.err()); err != nil {
		return Identity{}, err
	}
	var user struct {
		tencentError
		UserID string `json:"userid"`
	}
	err = ask.get(ctx, api+"/auth/getuserinfo",
		url.Values{"access_token": {token.AccessToken}, "code": {code}}, "", "", &user)
	if err = cmp.Or(err, user.err()); err != nil {
		return Identity{}, err
	}
	if user.UserID == "" {
		return Identity{}, refused("the person is no member of the company")
	}
	return Identity{Subject: user.UserID, Username: user.UserID}, nil
}
