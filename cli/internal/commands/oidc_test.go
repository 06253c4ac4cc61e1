package commands

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/cli/internal/session"
)

// openIDIssuer is an issuer that signs everybody in.
type openIDIssuer struct {
	url       string
	challenge string // of the last sign-in
	resource  string // likewise
	refuses   bool
	lifetime  int
	gave      int // tokens

	mu     sync.Mutex
	reused bool // an old refresh token came: whoever has it may have stolen it, so no other is taken either
}

func newIssuer(t *testing.T) *openIDIssuer {
	t.Helper()
	i := &openIDIssuer{lifetime: 3600}
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	i.url = server.URL
	return i
}

func (i *openIDIssuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]string{
			"issuer": i.url, "authorization_endpoint": i.url + "/authorize", "token_endpoint": i.url + "/token",
			"device_authorization_endpoint": i.url + "/device",
		})
	case "/authorize":
		query := r.URL.Query()
		i.challenge, i.resource = query.Get("code_challenge"), query.Get("resource")
		answer := url.Values{"state": {query.Get("state")}, "code": {"c1"}}
		if i.refuses {
			answer = url.Values{"state": {query.Get("state")}, "error": {"access_denied"}}
		}
		http.Redirect(w, r, query.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound)
	case "/device":
		i.challenge, i.resource = r.FormValue("code_challenge"), r.FormValue("resource")
		_, _ = io.WriteString(w, `{"device_code":"d1","user_code":"ABCD-EFGH","expires_in":600,"interval":1,
			"verification_uri":"https://sso.example/device"}`)
	case "/token":
		i.token(w, r)
	}
}

func (i *openIDIssuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	proven := base64.RawURLEncoding.EncodeToString(sum[:]) == i.challenge
	refresh := r.FormValue("refresh_token") == fmt.Sprintf("r%d", i.gave)
	i.reused = i.reused || !refresh && r.FormValue("refresh_token") != ""
	if i.reused || !proven && !refresh || r.FormValue("client_id") != "idp-cli" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant","error_description":"no"}`)
		return
	}
	i.gave++
	fmt.Fprintf(w, `{"access_token":"person%d","token_type":"Bearer","refresh_token":"r%d","expires_in":%d}`,
		i.gave, i.gave, i.lifetime)
}

// browser is a standard error that opens the page that it is told to open.
type browser struct {
	bytes.Buffer
	opened chan error
}

var page = regexp.MustCompile(`http://\S+/authorize\?\S+`)

func (b *browser) Write(text []byte) (int, error) {
	if address := page.Find(text); address != nil {
		go func() {
			response, err := http.Get(string(address))
			if err == nil {
				err = response.Body.Close()
			}
			b.opened <- err
		}()
	}
	return b.Buffer.Write(text)
}

func (p *play) signIn(issuer *openIDIssuer, args ...string) (int, string) {
	p.t.Helper()
	b := &browser{opened: make(chan error, 1)}
	code := Main(p.ctx, session.Terminal{
		In: strings.NewReader(""), Out: io.Discard, Err: b, Getenv: func(string) string { return "" },
		ConfigPath: p.config,
	}, append([]string{
		"login", p.server.URL, "--issuer", issuer.url, "--client-id", "idp-cli", "--context", "person",
	}, args...))
	if page.Match(b.Bytes()) {
		require.NoError(p.t, <-b.opened)
	}
	return code, b.String()
}

func TestPersonSignsIn(t *testing.T) {
	t.Parallel()
	p, issuer := newPlay(t, signing), newIssuer(t)
	p.env = nil
	code, notes := p.signIn(issuer)
	require.Equal(t, 0, code, notes)
	require.Equal(t, 0, p.run("api", "get-user", "7").code)
	assert.Equal(t, "Bearer person1", p.last().header.Get("Authorization"), "a token is kept while it is good")
	info, err := os.Stat(p.config)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	issuer.refuses = true
	code, notes = p.signIn(issuer)
	assert.Equal(t, 4, code)
	assert.Contains(t, notes, "access_denied")
}

func TestPersonIsRenewed(t *testing.T) {
	t.Parallel()
	p, issuer := newPlay(t, signing), newIssuer(t)
	p.env = nil
	issuer.lifetime = 1
	code, notes := p.signIn(issuer, "--device")
	require.Equal(t, 0, code, notes)
	assert.Contains(t, notes, "open https://sso.example/device and enter the code ABCD-EFGH")
	before := issuer.gave
	require.Equal(t, 0, p.run("api", "get-user", "7").code)
	require.Equal(t, 0, p.run("api", "get-user", "7").code, "the renewed refresh token was kept")
	assert.Greater(t, issuer.gave, before)
	issuer.gave = 99 // so that it takes no refresh token that it gave
	got := p.run("api", "get-user", "7")
	assert.Equal(t, 4, got.code)
	assert.Contains(t, got.err, "idp login again")
}

// A token is for the API that it names, as the platform's own sign-in demands.
func TestPersonSignsInForAnAPI(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	p := newPlay(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/sign-in/acme/") {
			http.StripPrefix("/sign-in/acme", issuer).ServeHTTP(w, r)
			return
		}
		signing(w, r)
	})
	p.env = nil
	for _, args := range [][]string{nil, {"--device"}} {
		code, notes := p.signIn(issuer, args...)
		require.Equal(t, 0, code, notes)
		assert.Empty(t, issuer.resource, "another issuer may refuse what it does not know")
		code, notes = p.signIn(issuer, append(args, "--resource", "https://api.example")...)
		require.Equal(t, 0, code, notes)
		assert.Equal(t, "https://api.example", issuer.resource)
	}
	issuer.url = p.server.URL + "/sign-in/acme"
	for _, args := range [][]string{nil, {"--device"}} {
		code, notes := p.signIn(issuer, args...)
		require.Equal(t, 0, code, notes)
		assert.Equal(t, p.server.URL, issuer.resource)
		issuer.resource = ""
	}
}

// TestManyRenew starts commands at the same time when the token has ended: one of them renews it, for all.
func TestManyRenew(t *testing.T) {
	t.Parallel()
	p, issuer := newPlay(t, signing), newIssuer(t)
	issuer.lifetime = 1
	code, notes := p.signIn(issuer)
	require.Equal(t, 0, code, notes)
	issuer.lifetime = 3600
	before := issuer.gave
	codes := make(chan int)
	for range 8 {
		go func() {
			codes <- Main(p.ctx, session.Terminal{
				In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Getenv: func(string) string { return "" },
				ConfigPath: p.config,
			}, []string{"api", "get-user", "7"})
		}()
	}
	for range 8 {
		assert.Equal(t, 0, <-codes)
	}
	assert.Equal(t, before+1, issuer.gave)
	assert.False(t, issuer.reused)
}

func TestIssuerThatIsNone(t *testing.T) {
	t.Parallel()
	p := newPlay(t, signing)
	p.env = nil
	assert.Equal(t, 2, p.run("login", p.server.URL, "--issuer", p.server.URL, "--client-id", "a").code)
	assert.Equal(t, 2, p.run("login", p.server.URL, "--issuer", p.server.URL).code)
}
