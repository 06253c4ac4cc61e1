package commands

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// crm is a platform with an application, and what belongs to it.
func crm(w http.ResponseWriter, r *http.Request) {
	known := answers{
		"GET /v1/applications/30":           `{"id":"30","name":"CRM","client_id":"c30","secrets":[{"id":"1","hint":"…a3f9"}]}`,
		"POST /v1/applications":             `{"id":"34","name":"hr","client_id":"c34","client_secret":"s3cret"}`,
		"POST /v1/applications/30/secrets":  `{"client_id":"c30","client_secret":"s3cret"}`,
		"POST /v1/applications/30/disable":  `{"id":"30","status":"0"}`,
		"DELETE /v1/applications/30":        `{"id":"30"}`,
		"GET /v1/application-templates":     `[{"template_id":"gitlab","params_schema":{"required":["base_url"]}}]`,
		"GET /v1/applications/30/protocols": `[{"protocol_type":"saml","status":"0"}]`,
		"GET /v1/applications/30/protocols/saml": `{"id":"44","protocol_type":"saml","status":"0","version":4,
			"protocol_prop":{"acs_url":"https://old.test","sp_entity":"crm","lifetime_in_seconds":60}}`,
		"PUT /v1/applications/30/protocols/saml":         `{}`,
		"PUT /v1/applications/30/protocols/cas":          `{}`,
		"POST /v1/applications/30/protocols/saml/enable": `{"protocol_type":"saml","status":"1"}`,
		"POST /v1/applications/30/protocols/oidc/secret": `{"protocol_type":"oidc","secret":"s3cret"}`,
		"GET /v1/applications/30/accounts/51":            `{"id":"51","account":"liwei","version":2,"is_default":"1"}`,
		"PUT /v1/applications/30/accounts/51":            `{"id":"51","account":"liwei","display_name":"李伟"}`,
		"POST /v1/applications/30/accounts":              `{"id":"52","account":"new"}`,
		"POST /v1/applications/30/accounts/51/enable":    `{"id":"51"}`,
		"DELETE /v1/applications/30/accounts/51":         `{"id":"51"}`,
		"GET /v1/accounts":                               `{"items":[{"account":"liwei","app_id":"30","user_id":"7"}]}`,
		"GET /v1/idp/connections": `[{"id":"61","provider_code":"github","display_name":"Our"},
			{"id":"62","provider_code":"ldap","display_name":"A"},{"id":"63","provider_code":"ldap","display_name":"B"}]`,
		"GET /v1/idp/connections/61": `{"id":"61","provider_code":"github","display_name":"Our","version":3,
			"config_fields":{"ClientId":"1","ClientSecret":"******"}}`,
		"GET /v1/idp/providers": `[{"provider_code":"github","config_schema":{"required":["ClientId"],"properties":{
			"ClientId":{"type":"string"},"ClientSecret":{"type":"string","writeOnly":true},"Port":{"type":"integer"}}}}]`,
		"POST /v1/idp/connections":          `{"id":"64"}`,
		"PUT /v1/idp/connections/61":        `[{"id":"61","display_name":"New"}]`,
		"POST /v1/applications/30/idp":      `{}`,
		"DELETE /v1/applications/30/idp/61": `{"id":"61"}`,
		"POST /v1/idp/connections/61/test":  `{"ok":true,"steps":[{"name":"keys","ok":true,"message":"fine"}]}`,
		"POST /v1/idp/connections/62/test":  `{"ok":false,"steps":[{"name":"bind","ok":false,"message":"refused"}]}`,
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /v1/applications/30/accounts":
		query := r.URL.Query()
		if query.Get("account") == "liwei" || query.Get("user_id") == "7" || query.Get("account") == "" {
			_, _ = io.WriteString(w, `{"items":[{"id":"51","account":"liwei","display_name":"","user_id":"7","is_default":"1"}]}`)
			return
		}
		_, _ = io.WriteString(w, `{"items":[]}`)
	default:
		if _, has := known[r.Method+" "+r.URL.Path]; has {
			known.serve(w, r)
			return
		}
		acme(w, r)
	}
}

func TestApps(t *testing.T) {
	t.Parallel()
	p := newPlay(t, crm)
	p.play([]step{
		{command: "apps get crm", request: "GET /v1/applications/30"},
		{command: "apps create hr --category 4 --scopes users:read",
			request: "POST /v1/applications",
			body:    `{"name":"hr","category":"4","scopes":["users:read"]}`},
		{command: "apps rotate crm --grace 24h", request: "POST /v1/applications/30/secrets?grace_seconds=86400"},
		{command: "apps rotate crm", request: "POST /v1/applications/30/secrets"},
		{command: "apps disable crm --if-version 2", request: "POST /v1/applications/30/disable"},
		{command: "apps delete crm --yes", request: "DELETE /v1/applications/30"},
		{command: "apps templates", request: "GET /v1/application-templates?name="},
	})
	assert.Equal(t, "ID  HINT   CREATED  EXPIRES\n1   …a3f9\n", p.run("apps", "secrets", "crm").out)
	assert.Contains(t, p.run("apps", "list").out, "CLIENT ID")
	p.play([]step{
		{command: "apps delete crm", code: 2, err: "Delete crm: --yes is needed"},
		{command: "apps get twice", code: 2, err: "33"},
		{command: "apps rotate crm --grace 1ms", code: 2, err: "whole"},
		{command: "apps rotate crm --grace -1h", code: 2, err: "whole seconds"},
		{command: "apps create", code: 2, err: "takes 1 argument:"},
	})
	p.play([]step{
		{command: "apps get crn", code: 3, err: "near it: CRM"},
	})
	got := p.run("apps", "rotate", "crm", "--curl")
	assert.Contains(t, got.out, "'https://idp.example/v1/applications/30/secrets'")
	assert.Contains(t, p.run("__complete", "apps", "get", "cr").out, "crm2\n")
}

// TestOnce keeps secrets that are shown once out of the terminal, and loses none.
func TestOnce(t *testing.T) {
	t.Parallel()
	p := newPlay(t, crm)
	assert.Contains(t, p.run("apps", "create", "hr", "-o", "json").out, `"client_secret": "s3cret"`)
	file := filepath.Join(t.TempDir(), "secrets")
	for _, args := range []string{"apps create hr", "apps rotate crm -o json", "protocols rotate crm oidc"} {
		got := p.run(append(strings.Fields(args), "--secrets-to", file, "-v")...)
		require.Equal(t, 0, got.code, got.err)
		assert.NotContains(t, got.out+got.err, "s3cret", args)
		assert.Contains(t, got.out, masked, args)
	}
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, `{"client_id":"c34","client_secret":"s3cret","record":"Application hr"}
{"client_id":"c30","client_secret":"s3cret","record":"Application crm"}
{"record":"Protocol crm oidc","secret":"s3cret"}
`, string(kept))
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	for _, flag := range []string{"--dry-run", "--curl"} {
		other := filepath.Join(t.TempDir(), "none")
		got := p.run("apps", "create", "hr", "--secrets-to", other, flag)
		require.Equal(t, 0, got.code, got.err)
		assert.NotContains(t, got.out, "s3cret", "it would be another one")
		assert.NoFileExists(t, other)
	}
	require.NoError(t, os.Chmod(file, 0o644))
	got := p.run("apps", "create", "hr", "--secrets-to", file)
	assert.Equal(t, 2, got.code)
	assert.Empty(t, p.asked(), "nothing is made whose secret could not be kept")
	if _, err := os.Stat("/dev/full"); err == nil {
		got = p.run("apps", "create", "hr", "--secrets-to", "/dev/full")
		assert.Equal(t, 9, got.code)
		assert.Contains(t, got.out, "s3cret", "a secret that cannot be kept is shown")
	}
}

func TestProtocols(t *testing.T) {
	t.Parallel()
	p := newPlay(t, crm)
	p.play([]step{
		{command: "protocols list crm", request: "GET /v1/applications/30/protocols"},
		{command: "protocols get crm saml", request: "GET /v1/applications/30/protocols/saml"},
		{command: "protocols enable crm saml", request: "POST /v1/applications/30/protocols/saml/enable"},
		{command: "protocols set crm cas",
			request: "PUT /v1/applications/30/protocols/cas",
			body:    `{"protocol_prop":{}}`},
		{command: "protocols set crm saml acs_url=https://new.test sp_entity=null",
			request: "PUT /v1/applications/30/protocols/saml",
			body:    `{"protocol_prop":{"acs_url":"https://new.test","lifetime_in_seconds":60}}`},
	})
	assert.Equal(t, `"4"`, p.last().header.Get("If-Match"), "what was read is what is replaced")
	p.play([]step{{command: `protocols set crm saml --data {"protocol_prop":{"sp_entity":"x"}}`,
		request: "PUT /v1/applications/30/protocols/saml",
		body:    `{"protocol_prop":{"sp_entity":"x"}}`}})
	assert.Empty(t, p.last().header.Get("If-Match"))
	got := p.run("protocols", "set", "crm", "saml", "sp_entity=y", "--dry-run")
	assert.Contains(t, got.out, `"sp_entity":"y"`, "the difference is told, though the answer is {}")
	assert.Contains(t, p.last().target, "dry_run=true")
	p.play([]step{
		{command: "protocols set crm", code: 2, err: "at least 2"},
		{command: "protocols set crm saml acs_url", code: 2, err: "must be SETTING=VALUE"},
		{command: "protocols set crm saml saml_response_signing_key=@/nowhere", code: 2, err: "no such file"},
	})
	assert.Contains(t, p.run("__complete", "protocols", "get", "crm", "o").out, "oidc\noauth2")
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	p := newPlay(t, crm)
	got := p.run("accounts", "list", "crm")
	assert.Equal(t, "ID  ACCOUNT  DISPLAY NAME  USER    DEFAULT  STATUS\n"+
		"51  liwei                  li.wei  yes\n", got.out)
	assert.Contains(t, p.run("accounts", "of", "li.wei").out, "CRM")
	for _, name := range []string{"liwei", "li.wei", "51"} {
		got = p.run("accounts", "get", "crm", name)
		assert.Equal(t, 0, got.code, "%s: %s", name, got.err)
		assert.Equal(t, "/v1/applications/30/accounts/51", p.last().target)
	}
	p.play([]step{
		{command: "accounts list crm --user li.wei -o json",
			request: "GET /v1/applications/30/accounts?page_size=200&user_id=7"},
		{command: "accounts create crm new --user li.wei",
			request: "POST /v1/applications/30/accounts",
			body:    `{"account":"new","user_id":"7"}`},
		{command: "accounts update crm liwei --display-name 李伟",
			request: "PUT /v1/applications/30/accounts/51",
			body:    `{"account":"liwei","is_default":"1","display_name":"李伟"}`},
		{command: "accounts enable crm liwei", request: "POST /v1/applications/30/accounts/51/enable?id=51"},
		{command: "accounts delete crm liwei --yes", request: "DELETE /v1/applications/30/accounts/51"},
	})
	p.play([]step{
		{command: "accounts create crm new", code: 2, err: "--user is needed"},
		{command: "accounts delete crm liwei", code: 2, err: "--yes"},
	})
	p.play([]step{
		{command: "accounts get crm liwe", code: 3, err: "near it: liwei"},
		{command: "accounts get nothing liwei", code: 3, err: "application"},
	})
}

func TestSources(t *testing.T) {
	t.Parallel()
	p := newPlay(t, crm)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("s3cret\n"), 0o600))
	p.play([]step{
		{command: "sources create --provider github ClientId=12 Port=389 ClientSecret=@" + secret,
			request: "POST /v1/idp/connections",
			body:    `{"provider_code":"github","config_fields":{"ClientId":"12","Port":389,"ClientSecret":"s3cret"}}`},
		{command: "sources update github/Our ClientId=2 --display-name New",
			request: "PUT /v1/idp/connections/61",
			body:    `{"provider_code":"github","display_name":"New","config_fields":{"ClientId":"2","ClientSecret":"******"}}`},
		{command: "sources attach Our crm", request: "POST /v1/applications/30/idp", body: `{"config_id":"61"}`},
		{command: "sources detach github crm --yes", request: "DELETE /v1/applications/30/idp/61"},
	})
	assert.Equal(t, "RESULT  STEP  MS  MESSAGE\nok      keys  0   fine\n", p.run("sources", "test", "Our").out)
	got := p.run("sources", "test", "ldap/A", "-o", "json")
	assert.Equal(t, 10, got.code)
	assert.Contains(t, got.out, `"ok": false`)
	assert.Contains(t, p.run("sources", "settings", "github").out, "ClientSecret  string           yes")
	p.play([]step{
		{command: "sources create ClientId=1", code: 2, err: "--provider is needed"},
		{command: "sources create --provider github ClientSecret=s3cret", code: 2, err: "ClientSecret=@FILE"},
		{command: "sources create --provider github ClientID=1", code: 2,
			err: "there are ClientId, ClientSecret, Port"},
		{command: "sources detach Our crm", code: 2, err: "Detach Our crm: --yes is needed"},
		{command: "sources get ldap", code: 2, err: "63  ldap/B"},
	})
	assert.NotContains(t, p.run("sources", "create", "--provider", "github", "ClientSecret=s3cret").err, "s3cret")
	p.play([]step{
		{command: "sources get gitub", code: 3, err: "near it: github"},
		{command: "sources settings githb", code: 3, err: "near it: github"},
	})
	p.input = "from input\n"
	p.play([]step{{command: "sources update Our ClientSecret=@-",
		request: "PUT /v1/idp/connections/61",
		body:    `{"provider_code":"github","display_name":"Our","config_fields":{"ClientId":"1","ClientSecret":"from input"}}`}})
}
