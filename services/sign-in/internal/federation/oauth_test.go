package federation

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
)

// play is what a provider is asked, and answers: by its documentation, since none of their servers was met.
type play struct {
	request string // method, address and headers or body that must be there
	status  int
	answer  string
}

// server answers the requests of a play, in their order.
type server struct {
	t     *testing.T
	plays []play
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	require.NotEmpty(s.t, s.plays, "%s", r.URL)
	next := s.plays[0]
	s.plays = s.plays[1:]
	body := ""
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		require.NoError(s.t, err)
		body = string(text)
	}
	parts := strings.Fields(next.request)
	require.Equal(s.t, parts[:2], []string{r.Method, r.URL.Scheme + "://" + r.URL.Host + r.URL.Path})
	sent := r.URL.RawQuery + " " + body
	for name, values := range r.Header {
		sent += " " + name + ":" + strings.ReplaceAll(values[0], " ", "_")
	}
	for _, part := range parts[2:] {
		require.Contains(s.t, sent, part, next.request)
	}
	if next.status == 0 {
		return nil, errors.New("no route to host")
	}
	return &http.Response{
		StatusCode: next.status, Body: io.NopCloser(strings.NewReader(next.answer)), Header: http.Header{}, Request: r,
	}, nil
}

const (
	testCallback = "https://idp.test/sign-in/acme/callback/7"
	testSecret   = "a-secret-that-must-not-be-told"
)

var testFields = fields{
	ClientID: "cid", ClientSecret: testSecret, AppID: "app", AppSecret: testSecret, CorpID: "corp",
	CorpSecret: testSecret, AgentID: "9",
}

var (
	githubToken = play{
		"POST https://github.com/login/oauth/access_token \"client_secret\":\"" + testSecret + "\" \"code\":\"c1\" " +
			"\"code_verifier\":\" \"redirect_uri\":\"" + testCallback + "\" Accept:application/json",
		200, `{"access_token":"gho_1","token_type":"bearer","scope":"read:user,user:email"}`,
	}
	githubUser = play{
		"GET https://api.github.com/user Authorization:Bearer_gho_1", 200,
		`{"login":"octocat","id":583231,"name":"The Octocat","email":null}`,
	}
	githubEmails = play{
		"GET https://api.github.com/user/emails Authorization:Bearer_gho_1", 200,
		`[{"email":"old@acme.test","primary":false,"verified":true},` +
			`{"email":"octo@acme.test","primary":true,"verified":true,"visibility":null}]`,
	}
	wechatToken = play{
		"GET https://api.weixin.qq.com/sns/oauth2/access_token appid=app secret=" + testSecret +
			" code=c1 grant_type=authorization_code",
		200, `{"access_token":"w1","expires_in":7200,"refresh_token":"r","openid":"o6_1","scope":"snsapi_login"}`,
	}
	wechatUser = play{
		"GET https://api.weixin.qq.com/sns/userinfo access_token=w1 openid=o6_1", 200,
		`{"openid":"o6_1","nickname":"李伟","sex":0,"unionid":"u_1","privilege":[]}`,
	}
	dingToken = play{
		"POST https://api.dingtalk.com/v1.0/oauth2/userAccessToken \"clientId\":\"app\" \"clientSecret\":\"" +
			testSecret + "\" \"code\":\"c1\" \"grantType\":\"authorization_code\" Content-Type:application/json",
		200, `{"accessToken":"d1","refreshToken":"r","expireIn":7200,"corpId":"ding1"}`,
	}
	dingUser = play{
		"GET https://api.dingtalk.com/v1.0/contact/users/me X-Acs-Dingtalk-Access-Token:d1", 200,
		`{"nick":"李伟","avatarUrl":"https://x.test","mobile":"13800000000","openId":"do1","unionId":"du1"}`,
	}
	feishuToken = play{
		"POST https://open.feishu.cn/open-apis/authen/v2/oauth/token \"client_id\":\"app\" \"client_secret\":\"" +
			testSecret + "\" \"code\":\"c1\" \"code_verifier\":\" \"grant_type\":\"authorization_code\"",
		200, `{"code":0,"access_token":"f1","expires_in":7200,"token_type":"Bearer"}`,
	}
	feishuUser = play{
		"GET https://open.feishu.cn/open-apis/authen/v1/user_info Authorization:Bearer_f1", 200,
		`{"code":0,"msg":"success","data":{"name":"李伟","open_id":"ou_1","union_id":"on_1","email":"x@acme.test"}}`,
	}
	wecomToken = play{
		"GET https://qyapi.weixin.qq.com/cgi-bin/gettoken corpid=corp corpsecret=" + testSecret, 200,
		`{"errcode":0,"errmsg":"ok","access_token":"q1","expires_in":7200}`,
	}
	wecomUser = play{
		"GET https://qyapi.weixin.qq.com/cgi-bin/auth/getuserinfo access_token=q1 code=c1", 200,
		`{"errcode":0,"errmsg":"ok","userid":"liwei","user_ticket":"t"}`,
	}
)

func TestDialects(t *testing.T) {
	t.Parallel()
	for code, c := range map[string]struct {
		page  string // with what its query must have
		plays []play
		want  Identity
	}{
		"github": {
			"https://github.com/login/oauth/authorize?client_id=cid&code_challenge=&code_challenge_method=S256&" +
				"scope=read%3Auser+user%3Aemail",
			[]play{githubToken, githubUser, githubEmails},
			Identity{Subject: "583231", Username: "octocat", DisplayName: "The Octocat", Email: "octo@acme.test"},
		},
		"wechat_scan_qr": {
			"https://open.weixin.qq.com/connect/qrconnect?appid=app&response_type=code&scope=snsapi_login",
			[]play{wechatToken, wechatUser}, Identity{Subject: "o6_1", Subject2: "u_1", DisplayName: "李伟"},
		},
		"dingding_scan_qr": {
			"https://login.dingtalk.com/oauth2/auth?client_id=app&response_type=code&scope=openid&prompt=consent",
			[]play{dingToken, dingUser}, Identity{Subject: "do1", Subject2: "du1", DisplayName: "李伟"},
		},
		"feishu_scan_qr": {
			"https://accounts.feishu.cn/open-apis/authen/v1/authorize?client_id=app&response_type=code&" +
				"code_challenge=&code_challenge_method=S256",
			[]play{feishuToken, feishuUser}, Identity{Subject: "ou_1", Subject2: "on_1", DisplayName: "李伟"},
		},
		"qywechat_scan_qr": {
			"https://login.work.weixin.qq.com/wwlogin/sso/login?login_type=CorpApp&appid=corp&agentid=9",
			[]play{wecomToken, wecomUser}, Identity{Subject: "liwei", Username: "liwei"},
		},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			s := &server{t, c.plays}
			one := &oauthClient{dialects[code], testFields, caller{&http.Client{Transport: s}}}
			address, kept := one.begin(Request{Callback: testCallback, State: "f.s", Fresh: true}, clock.Time{})
			require.NotContains(t, address, testSecret)
			u, err := url.Parse(address)
			require.NoError(t, err)
			want, err := url.Parse(c.page)
			require.NoError(t, err)
			require.Equal(t, want.Host+want.Path, u.Host+u.Path)
			got := u.Query()
			for name, values := range want.Query() {
				if values[0] != "" {
					require.Equal(t, values, got[name], name)
				}
				require.NotEmpty(t, got.Get(name), name)
				got.Del(name)
			}
			require.Equal(t, url.Values{"redirect_uri": {testCallback}, "state": {"f.s"}}, got)
			who, err := one.end(t.Context(), kept, Answer{Code: "c1"})
			require.NoError(t, err)
			require.Equal(t, c.want, who)
			require.Empty(t, s.plays)
		})
	}
}

// Whatever a provider answers: it is away, or refuses, and no error has a secret or a token.
func TestDialectsThatFail(t *testing.T) {
	t.Parallel()
	answers := func(p play, status int, answer string) play { return play{p.request, status, answer} }
	for name, c := range map[string]struct {
		code  string
		plays []play
		kind  error
	}{
		"GitHub: a wrong code": {
			"github", []play{answers(githubToken, 200, `{"error":"bad_verification_code"}`)}, ErrRefused,
		},
		"GitHub: no user": {"github", []play{githubToken, answers(githubUser, 401, `{}`)}, ErrRefused},
		"GitHub: no id":   {"github", []play{githubToken, answers(githubUser, 200, `{"login":"x"}`)}, ErrRefused},
		"GitHub: away":    {"github", []play{answers(githubToken, 502, `oops`)}, ErrAway},
		"GitHub: away for the addresses": {
			"github", []play{githubToken, githubUser, answers(githubEmails, 0, "")}, ErrAway,
		},
		"WeChat: a wrong code": {
			"wechat_scan_qr", []play{answers(wechatToken, 200, `{"errcode":40029,"errmsg":"invalid code"}`)},
			ErrRefused,
		},
		"WeChat: no JSON": {"wechat_scan_qr", []play{answers(wechatToken, 200, `<html>`)}, ErrRefused},
		"WeChat: away":    {"wechat_scan_qr", []play{answers(wechatToken, 0, "")}, ErrAway},
		"WeChat: somebody else": {
			"wechat_scan_qr", []play{wechatToken, answers(wechatUser, 200, `{"openid":"o6_2","nickname":"x"}`)},
			ErrRefused,
		},
		"WeChat: nobody": {
			"wechat_scan_qr", []play{wechatToken, answers(wechatUser, 200, `{"errcode":40001}`)}, ErrRefused,
		},
		"DingTalk: a wrong code": {
			"dingding_scan_qr", []play{answers(dingToken, 400, `{"code":"invalidAuthCode"}`)}, ErrRefused,
		},
		"DingTalk: nobody": {"dingding_scan_qr", []play{dingToken, answers(dingUser, 200, `{"nick":"x"}`)}, ErrRefused},
		"Feishu: a wrong code": {
			"feishu_scan_qr", []play{answers(feishuToken, 200, `{"code":20003,"error":"invalid_grant"}`)}, ErrRefused,
		},
		"Feishu: nobody": {
			"feishu_scan_qr", []play{feishuToken, answers(feishuUser, 200, `{"code":20005}`)}, ErrRefused,
		},
		"WeCom: no member": {
			"qywechat_scan_qr", []play{wecomToken, answers(wecomUser, 200, `{"errcode":0,"openid":"o1"}`)}, ErrRefused,
		},
		"WeCom: a wrong secret": {
			"qywechat_scan_qr", []play{answers(wecomToken, 200, `{"errcode":40001,"errmsg":"invalid"}`)},
			ErrRefused,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := &oauthClient{dialects[c.code], testFields, caller{&http.Client{Transport: &server{t, c.plays}}}}
			_, kept := one.begin(Request{Callback: testCallback, State: "f.s"}, clock.Time{})
			_, err := one.end(t.Context(), kept, Answer{Code: "c1"})
			require.ErrorIs(t, err, c.kind)
			for _, secret := range []string{testSecret, "c1", "w1", "gho_1", "q1"} {
				require.NotContains(t, err.Error(), secret)
			}
		})
	}
	one := &oauthClient{dialects["github"], testFields, caller{&http.Client{Transport: &server{t: t}}}}
	_, err := one.end(context.Background(), Kept{}, Answer{})
	require.ErrorIs(t, err, ErrRefused, "without a code nobody is asked")
}

// A person who has kept the addresses from the application signs in without one, and a company has a server of its own.
func TestGitHub(t *testing.T) {
	t.Parallel()
	own := testFields
	own.EnterpriseURL, own.Scopes = "https://git.acme.test/", []string{"read:org"}
	s := &server{t, []play{
		{strings.Replace(githubToken.request, "github.com", "git.acme.test", 1), 200, githubToken.answer},
		{strings.Replace(githubUser.request, "api.github.com", "git.acme.test/api/v3", 1), 200, githubUser.answer},
		{strings.Replace(githubEmails.request, "api.github.com", "git.acme.test/api/v3", 1), 404, `{}`},
	}}
	one := &oauthClient{dialects["github"], own, caller{&http.Client{Transport: s}}}
	address, kept := one.begin(Request{Callback: testCallback, State: "f.s"}, clock.Time{})
	require.True(t, strings.HasPrefix(address, "https://git.acme.test/login/oauth/authorize?"), address)
	require.Contains(t, address, "read%3Aorg")
	who, err := one.end(t.Context(), kept, Answer{Code: "c1"})
	require.NoError(t, err)
	require.Equal(t, Identity{Subject: "583231", Username: "octocat", DisplayName: "The Octocat"}, who)
}
