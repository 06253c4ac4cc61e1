package commands

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestApplicationStory plays the commands about applications, and what belongs to them, on the real platform.
func TestApplicationStory(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("acme")
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte(strings.Repeat("a1", 20)+"\n"), 0o600))
	p.play([]step{
		{command: "apps create crm --redirect-url https://crm.acme.test/cb", out: "client_secret"},
		{command: "apps create crm", code: 5, err: "is taken"},
		{command: "apps create hr --category 4 --scopes users:read -o name", out: "hr"},
		{command: "apps update crm --descr x --if-version 9", code: 6},
		{command: "apps disable crm --dry-run", out: "- status: 1\n+ status: 0"},
		{command: "apps disable crm"},
		{command: "apps list --status 0", out: "disabled"},
		{command: "apps enable crm"},
		{command: "apps rotate crm --grace 24h", out: "client_secret"},
		{command: "apps secrets crm -o json --jq length", out: "2"},
		{command: "apps templates --name gitlab", out: "base_url"},
		{command: "apps get cm", code: 3, err: "cm"},

		{command: "protocols get crm saml", code: 3},
		{command: "protocols set crm saml acs_url=https://crm.acme.test/acs"},
		{command: "protocols enable crm saml", code: 5, err: "sp_entity"},
		{command: "protocols set crm saml sp_entity=crm --dry-run", out: `"sp_entity":"crm"`},
		{command: "protocols set crm saml sp_entity=crm nonsense=1", code: 5, err: "nonsense"},
		{command: "protocols set crm saml sp_entity=crm"},
		{command: "protocols get crm saml -o json", out: "https://crm.acme.test/acs"},
		{command: "protocols enable crm saml --if-version 1", code: 6},
		{command: "protocols enable crm saml"},
		{command: "protocols list crm", out: "saml      enabled"},
		{command: "protocols rotate crm oidc --jq .secret"},
		{command: "protocols disable crm saml"},

		{command: "accounts create crm liwei --user li.wei", out: "liwei"},
		{command: "accounts create crm other --user li.wei", code: 5, err: "is taken"},
		{command: "accounts update crm li.wei --display-name 李伟 -F free_ext_props.a=12345678901234567890"},
		{command: "accounts update crm liwei --is-default 1", out: "12345678901234567890"},
		{command: "accounts of li.wei", out: "crm          "},
		{command: "accounts disable crm liwei"},
		{command: "accounts list crm --user li.wei", out: "disabled"},
		{command: "accounts enable crm liwei"},
		{command: "accounts delete crm liwei --yes"},
		{command: "accounts get crm liwei", code: 3},

		{command: "sources create --provider github --display-name Our ClientId=Iv1.8a61f9b3a7aba766 " +
			"ClientSecret=@" + secret, out: masked},
		{command: "sources create --provider github ClientId=1", code: 5, err: "ClientSecret"},
		{command: "sources test github/Our", out: "ok      ClientSecret"},
		{command: "sources update Our ClientId=Iv1.8a61f9b3a7aba767 --dry-run", out: "aba767"},
		{command: "sources update Our --display-name GitHub", out: "GitHub"},
		{command: "sources test GitHub", out: "ok      ClientSecret"},
		{command: "sources attach GitHub crm"},
		{command: "sources delete GitHub --yes", code: 5, err: "in_use"},
		{command: "sources detach GitHub crm --yes"},
		{command: "sources disable GitHub"},
		{command: "sources list --status 0", out: "disabled"},
		{command: "sources enable GitHub"},
		{command: "sources delete GitHub --yes"},
		{command: "apps delete crm --yes"},
	})
}

// TestPeopleStory plays the commands about credentials, subscriptions and the audit log on the real platform.
func TestPeopleStory(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("acme")
	p.play([]step{
		{command: "subscriptions create HR --url https://hr.acme.test/hook --type user.*", out: "whsec_"},
		{command: "subscriptions create HR --url https://hr.acme.test/hook --type user.*", code: 5, err: "is taken"},
		{command: "subscriptions create X --type user.*", code: 5, err: "delivery"},
		{command: "subscriptions update HR --type user.*,node.*", out: "node.*"},
		{command: "subscriptions pause HR"},
		{command: "subscriptions list --state paused", out: "https://hr.acme.test/hook"},
		{command: "subscriptions resume HR"},
		{command: "subscriptions rotate HR", out: "whsec_"},
		{command: "subscriptions reset HR --to 1h --dry-run"},
		{command: "subscriptions reset HR --to nowhere", code: 5, err: "must be now"},
		{command: "subscriptions test HR", code: 10, out: "false"},
		{command: "subscriptions deliveries list HR"},
		{command: "subscriptions deliveries get HR none", code: 3},
		{command: "subscriptions deliveries redeliver HR 019c1f3e-8a2b-7c4d-9e5f-0123456789ab", code: 3},
		{command: "subscriptions delete HR --yes"},

		{command: "credentials create --user li.wei --provider-code github --id1 o6x", out: "o6x"},
		{command: "credentials create --user li.wei --provider-code github --id1 o6x", code: 5, err: "is taken"},
		{command: "credentials list --user li.wei", out: "li.wei"},
		{command: "credentials disable o6x"},
		{command: "credentials list --status 0", out: "disabled"},
		{command: "credentials update o6x --display-name x --if-version 1", code: 6},
		{command: "credentials delete o6x --yes"},
		{command: "credentials get o6x", code: 3},
	})
	password := strings.TrimSpace(p.done("credentials", "reset-password", "li.wei", "--jq", ".password").out)
	p.input = password + "\nanother Secret 47\n"
	p.play([]step{
		{command: "credentials verify li.wei", out: "must_change_password  true"},
		{command: "credentials change-password li.wei"},
		{command: "credentials verify li.wei", code: 10, out: "invalid_credentials"},
	})
	p.done("users", "update", "li.wei", "--email", "li@acme.test")
	for _, command := range []string{"audit user li.wei", "audit list --entity user --since 1h"} {
		require.Eventually(t, func() bool { // the log is written after the answer
			return strings.Contains(p.done(strings.Fields(command)...).out, "email: li@acme.test")
		}, 5*time.Minute, 50*time.Millisecond, command)
	}
	p.play([]step{
		{command: "audit list --actor li.wei"}, {command: "audit denied"},
		{command: "audit export --entity user", out: `"action":"created"`},
	})
}

// TestLostSecret cuts the connection when the platform has made a secret: the same key gets the same answer again.
func TestLostSecret(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("acme")
	target, err := url.Parse(p.env["IDPCLI_URL"])
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	cuts, made := atomic.Int64{}, atomic.Pointer[http.Request]{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, keyed := r.Header["Idempotency-Key"]
		if !keyed || strings.HasPrefix(r.URL.Path, "/v1/batch") || cuts.Add(-1) < 0 {
			proxy.ServeHTTP(w, r)
			return
		}
		proxy.ServeHTTP(httptest.NewRecorder(), r) // it is done, but nobody hears
		made.Store(r)
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	p.env["IDPCLI_URL"] = server.URL
	for _, c := range []struct{ command, member string }{
		{"apps create crm", ".client_secret"},
		{"apps rotate crm", ".client_secret"},
		{"protocols rotate crm oidc", ".secret"},
		{"subscriptions create HR --url https://hr.acme.test/hook --type user.*", ".delivery.secret"},
		{"subscriptions rotate HR", ".delivery.secret"},
		{"credentials reset-password li.wei", ".password"},
	} {
		cuts.Store(2)
		got := p.run(append(strings.Fields(c.command), "--jq", c.member)...)
		require.Equal(t, 0, got.code, "%s: %s", c.command, got.err)
		assert.Greater(t, len(strings.TrimSpace(got.out)), len(masked), "%s: %s", c.command, got.out)
	}

	file := filepath.Join(t.TempDir(), "secrets")
	cuts.Store(1)
	got := p.run("apps", "create", "lost", "--wait", "0", "--secrets-to", file)
	require.Equal(t, 8, got.code, got.err)
	key := made.Load().Header.Get("Idempotency-Key")
	require.Contains(t, got.err, "--idempotency-key "+key)
	p.done("apps", "create", "lost", "--secrets-to", file, "--idempotency-key", key)
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	var line struct {
		Secret string `json:"client_secret"`
		Record string `json:"record"`
	}
	require.NoError(t, json.Unmarshal(kept, &line))
	assert.NotEmpty(t, line.Secret)
	assert.Equal(t, "Application lost", line.Record)
}
