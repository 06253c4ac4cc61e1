package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
	"github.com/stretchr/testify/require"
)

const (
	callback = "https://portal.acme.test/callback"
	password = "a-long-way-home"
	verifier = "a-verifier-of-at-least-forty-three-characters"
)

// signInWorld is a platform with people, applications that all of them may open, and browsers that are signed in.
type signInWorld struct {
	b        *testing.B
	c        *child
	admin    string
	browsers []*http.Client
	cookies  []string // of the browsers
}

// relyingParty is an application that speaks OpenID Connect. A public one has no secret.
type relyingParty struct{ id, secret string }

func newSignInWorld(b *testing.B) *signInWorld {
	c := startPlatform(b, b.TempDir())
	w := &signInWorld{b: b, c: c, admin: c.token("--tenant", "acme")}
	for i := range workers {
		person := map[string]any{"username": fmt.Sprint("person", i), "password": password}
		send(b, c, w.admin, "/v1/users", person, &struct{}{})
		w.browsers = append(w.browsers, w.browser())
	}
	return w
}

func (w *signInWorld) browser() *http.Client {
	jar, err := cookiejar.New(nil)
	require.NoError(w.b, err)
	transport := &http.Transport{}
	w.b.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// application makes an application and the rule that opens it for everyone.
func (w *signInWorld) application(record map[string]any) relyingParty {
	var made struct {
		ID           string
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	send(w.b, w.c, w.admin, "/v1/applications", record, &made)
	send(w.b, w.c, w.admin, "/v1/batch/auth-unit-rules", map[string]any{
		"identities": []any{map[string]any{"identity_type": "everyone", "identity_id": "*"}},
		"rules":      []any{map[string]any{"application_id": made.ID, "type": "app"}},
	}, &struct{}{})
	return relyingParty{made.ClientID, made.ClientSecret}
}

func (w *signInWorld) oidc(name, category, algorithm string) relyingParty {
	return w.application(map[string]any{
		"name": name, "category": category, "login_url": "https://portal.acme.test/", "redirect_url": callback,
		"protocol_type": "oidc", "protocol_prop": map[string]any{"signature_algorithm": algorithm},
	})
}

func (p relyingParty) authorize() string {
	challenge := sha256.Sum256([]byte(verifier))
	return "/sign-in/acme/authorize?" + url.Values{
		"client_id": {p.id}, "response_type": {"code"}, "scope": {"openid profile email"}, "state": {"s"},
		"nonce":        {"n"},
		"redirect_uri": {callback}, "code_challenge_method": {"S256"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])},
	}.Encode()
}

// form is a request to the token endpoint.
func (p relyingParty) form(fields url.Values) []byte {
	if p.secret != "" {
		return postForm("/sign-in/acme/token", p.id, p.secret, fields.Encode())
	}
	fields.Set("client_id", p.id)
	body := fields.Encode()
	return fmt.Appendf(nil, "POST /sign-in/acme/token HTTP/1.1\r\nHost: bench\r\n"+
		"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func (p relyingParty) byCode(code string) []byte {
	return p.form(url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback},
		"code_verifier": {verifier}})
}

func (p relyingParty) refresh(token string) []byte {
	return p.form(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}})
}

var sealedRequest = regexp.MustCompile(`name="request" value="([^"]*)"`)

// open follows an address until a page or another host, and returns where it came to and the page.
func (w *signInWorld) open(browser *http.Client, method, target, body string) (at, page string) {
	for range 10 {
		r, err := http.NewRequest(method, cmp.Or(httpOf(target), "http://"+w.c.Addr+target), strings.NewReader(body))
		require.NoError(w.b, err)
		if body != "" {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		answer, err := browser.Do(r)
		require.NoError(w.b, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(w.b, err)
		require.NoError(w.b, answer.Body.Close())
		require.Less(w.b, answer.StatusCode, http.StatusBadRequest, "%s", text)
		_, after, ok := strings.Cut(answer.Header.Get("Refresh"), "url=")
		if target = cmp.Or(answer.Header.Get("Location"), after); target == "" && !ok {
			return r.URL.String(), string(text)
		}
		if strings.HasPrefix(target, "https://") {
			return target, string(text)
		}
		method, body = http.MethodGet, ""
	}
	require.FailNow(w.b, "too many redirects")
	return "", ""
}

func httpOf(target string) string {
	if strings.HasPrefix(target, "http://") {
		return target
	}
	return ""
}

// signIn is a whole sign-in of a new browser: the request, its page, the form. It returns the code.
func (w *signInWorld) signIn(browser *http.Client, p relyingParty, person int) (code string) {
	_, page := w.open(browser, http.MethodGet, p.authorize(), "")
	sealed := sealedRequest.FindStringSubmatch(page)
	require.NotNil(w.b, sealed, "%s", page)
	at, page := w.open(browser, http.MethodPost, "/sign-in/acme/flow", url.Values{
		"action": {"sign-in"}, "login_name": {fmt.Sprint("person", person)}, "password": {password},
		"request": {html.UnescapeString(sealed[1])},
	}.Encode())
	require.Contains(w.b, at, callback, "%s", page)
	return codeOf(w.b, at)
}

// hidden posts a form of a flow's page, as the browser does, and returns where it leads.
func (w *signInWorld) hidden(browser *http.Client, at, page string, fields url.Values) (string, string) {
	sealed := sealedRequest.FindStringSubmatch(page)
	require.NotNil(w.b, sealed, "%s", page)
	fields.Set("request", html.UnescapeString(sealed[1]))
	return w.open(browser, http.MethodPost, at, fields.Encode())
}

var shownKey = regexp.MustCompile(`<p class="code key">([A-Z2-7-]+)</p>`)

// newcomer is a person with an authenticator app, or without one if the key is empty.
type newcomer struct{ name, key string }

// newcomers makes people, who have all signed in once.
func (w *signInWorld) newcomers(prefix string, n int, p relyingParty) (all []newcomer) {
	for i := range n {
		c := newcomer{name: fmt.Sprint(prefix, i)}
		send(w.b, w.c, w.admin, "/v1/users", map[string]any{"username": c.name, "password": password}, &struct{}{})
		w.comes(p, &c)
		all = append(all, c)
	}
	return all
}

// comes is a whole sign-in in a new browser, with whatever is asked for.
func (w *signInWorld) comes(p relyingParty, c *newcomer) {
	browser := w.browser()
	_, page := w.open(browser, http.MethodGet, p.authorize(), "")
	at, page := w.hidden(browser, "/sign-in/acme/flow", page, url.Values{
		"action": {"sign-in"}, "login_name": {c.name}, "password": {password},
	})
	code := func(later time.Duration) string {
		text, err := totp.GenerateCode(c.key, time.Now().Add(later))
		require.NoError(w.b, err)
		return text
	}
	switch {
	case strings.Contains(page, `value="set-up"`):
		at, page = w.hidden(browser, at, page, url.Values{"action": {"set-up"}, "method": {"otp"}})
		c.key = strings.ReplaceAll(shownKey.FindStringSubmatch(page)[1], "-", "")
		at, page = w.hidden(browser, at, page, url.Values{"action": {"add-factor"}, "code": {code(0)}})
		at, page = w.hidden(browser, at, page, url.Values{"action": {"kept"}})
	case strings.Contains(page, `value="factor"`): // the code of the set-up does not serve again
		at, page = w.hidden(browser, at, page, url.Values{"action": {"factor"}, "code": {code(30 * time.Second)}})
	}
	require.Contains(w.b, at, callback, "%s", page)
	w.tokens(p, codeOf(w.b, at))
}

func codeOf(b *testing.B, at string) string {
	u, err := url.Parse(at)
	require.NoError(b, err)
	require.NotEmpty(b, u.Query().Get("code"), at)
	return u.Query().Get("code")
}

// signInAll signs every browser in.
func (w *signInWorld) signInAll(p relyingParty) {
	where, err := url.Parse("http://" + w.c.Addr + "/sign-in/acme")
	require.NoError(w.b, err)
	for i, browser := range w.browsers {
		w.signIn(browser, p, i)
		var pairs []string
		for _, cookie := range browser.Jar.Cookies(where) {
			pairs = append(pairs, cookie.Name+"="+cookie.Value)
		}
		w.cookies = append(w.cookies, strings.Join(pairs, "; "))
	}
}

// codes returns n codes, each of a sign-on of one of the browsers.
func (w *signInWorld) codes(p relyingParty, n int) []string {
	codes := make([]string, n)
	var all sync.WaitGroup
	for i, browser := range w.browsers {
		all.Go(func() {
			for k := i; k < n; k += len(w.browsers) {
				at, _ := w.open(browser, http.MethodGet, p.authorize(), "")
				codes[k] = codeOf(w.b, at)
			}
		})
	}
	all.Wait()
	return codes
}

type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
}

func (w *signInWorld) tokens(p relyingParty, code string) (t tokens) {
	fields := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback},
		"code_verifier": {verifier}}
	if p.secret == "" {
		fields.Set("client_id", p.id)
	}
	target, body := "http://"+w.c.Addr+"/sign-in/acme/token", strings.NewReader(fields.Encode())
	r, err := http.NewRequest(http.MethodPost, target, body)
	require.NoError(w.b, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if p.secret != "" {
		r.SetBasicAuth(p.id, p.secret)
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(w.b, err)
	defer answer.Body.Close()
	require.Equal(w.b, http.StatusOK, answer.StatusCode)
	require.NoError(w.b, json.NewDecoder(answer.Body).Decode(&t))
	return t
}

// plain is a GET of a browser with these cookies, or none.
func plain(path, cookies string) []byte {
	if cookies != "" {
		cookies = "Cookie: " + cookies + "\r\n"
	}
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: bench\r\n%s\r\n", path, cookies)
}

// once returns each of the requests one time and then nil, which ends a worker.
func once(requests [][]byte) func(worker, n int) []byte {
	var next atomic.Int64
	return func(int, int) []byte {
		if i := int(next.Add(1)) - 1; i < len(requests) {
			return requests[i]
		}
		return nil
	}
}

// spend is share for requests that are good once: it makes them before each measurement.
func spend(b *testing.B, platform *child, prepare func() [][]byte) {
	var rates, cpus []float64
	var p50s []time.Duration
	for range repeats {
		requests := once(prepare())
		becomeCalm(platform)
		before := platform.cpu()
		ours, err := generate(platform.Addr, workers, time.Minute, requests)
		require.NoError(b, err)
		cpus = append(cpus, float64((platform.cpu()-before).Microseconds())/float64(ours.requests))
		rates, p50s = append(rates, ours.perSecond), append(p50s, ours.p50)
	}
	b.ReportMetric(median(rates), "req/s")
	b.ReportMetric(median(cpus), "cpu-µs/req")
	b.ReportMetric(float64(median(p50s).Microseconds()), "p50-µs")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSignIn measures what applications and people do, over HTTP.
func BenchmarkSignIn(b *testing.B) {
	yard := startYardstick(b)
	w := newSignInWorld(b)
	portal, shop := w.oidc("Portal", "1", "RS256"), w.oidc("Shop", "1", "ES256")
	page := w.oidc("Page", "3", "ES256")
	w.signInAll(portal)
	codes := w.codes(portal, workers)
	bearer, refreshes := make([][]byte, workers), make([][]byte, workers)
	for i, code := range codes {
		t := w.tokens(portal, code)
		bearer[i], refreshes[i] = get("/sign-in/acme/userinfo", t.Access), portal.refresh(t.Refresh)
	}
	same := func(request []byte) func(int, int) []byte { return func(int, int) []byte { return request } }
	of := func(requests [][]byte) func(int, int) []byte {
		return func(worker, n int) []byte { return requests[(worker+n)%len(requests)] }
	}
	sso := make([][]byte, workers)
	for i, cookies := range w.cookies {
		sso[i] = plain(portal.authorize(), cookies)
	}
	for _, read := range []struct {
		name string
		next func(int, int) []byte
	}{
		{"discovery", same(plain("/sign-in/acme/.well-known/openid-configuration", ""))},
		{"page", same(plain(portal.authorize(), ""))},
		{"userinfo", of(bearer)},
		{"single sign-on redirect", of(sso)},
		{"refresh, RS256", of(refreshes)},
	} {
		b.Run(read.name, func(b *testing.B) { share(b, yard, w.c, read.next) })
	}
	for name, p := range map[string]relyingParty{"token by code, RS256": portal, "token by code, ES256": shop} {
		b.Run(name, func(b *testing.B) {
			spend(b, w.c, func() (requests [][]byte) {
				for _, code := range w.codes(p, 1000) {
					requests = append(requests, p.byCode(code))
				}
				return requests
			})
		})
	}
	b.Run("refresh that rotates, ES256", func(b *testing.B) {
		spend(b, w.c, func() (requests [][]byte) {
			for _, code := range w.codes(page, 1000) {
				requests = append(requests, page.refresh(w.tokens(page, code).Refresh))
			}
			return requests
		})
	})
	b.Run("whole sign-in", func(b *testing.B) {
		before := w.c.cpu()
		for b.Loop() {
			w.tokens(shop, w.signIn(w.browser(), shop, 1))
		}
		b.ReportMetric(float64((w.c.cpu()-before).Microseconds())/float64(b.N), "cpu-µs/sign-in")
	})
	b.Run("whole sign-in with an app", func(b *testing.B) {
		const people = 20
		strict := w.application(map[string]any{
			"name": "Strict", "category": "1", "redirect_url": callback, "protocol_type": "oidc",
			"config_prop": map[string]any{"mfa_enabled": "1"}, "protocol_prop": map[string]any{"signature_algorithm": "ES256"},
		})
		cost := func(p relyingParty, all []newcomer) float64 {
			before := w.c.cpu()
			for i := range all {
				w.comes(p, &all[i])
			}
			return float64((w.c.cpu() - before).Microseconds()) / people
		}
		without, with := w.newcomers("plain", people, shop), w.newcomers("app", people, strict)
		plain := cost(shop, without)
		two := cost(strict, with)
		b.ReportMetric(plain, "cpu-µs/without")
		b.ReportMetric(two, "cpu-µs/with")
		b.ReportMetric(two/plain, "x-without")
		b.ReportMetric(0, "ns/op")
	})
}
