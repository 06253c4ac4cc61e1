package commands

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/cli/internal/operations"
)

// healthy is a platform without faults; answers replace its own, by path.
func healthy(replaced map[string]http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if own := replaced[r.URL.Path]; own != nil {
			own(w, r)
			return
		}
		switch r.URL.Path {
		case "/readyz":
			_, _ = io.WriteString(w, `{"status":"ready","services":{"users":"ready","events":"ready"}}`)
		case "/openapi.json":
			_, _ = w.Write(documentOf(operations.CompiledIn().All))
		default:
			signing(w, r)
		}
	}
}

// documentOf is an OpenAPI document with some operations.
func documentOf(all []*operations.Operation) []byte {
	paths := map[string]map[string]any{}
	for _, o := range all {
		if paths[o.Path] == nil {
			paths[o.Path] = map[string]any{}
		}
		paths[o.Path][strings.ToLower(o.Method)] = map[string]string{"operationId": o.ID}
	}
	text, _ := json.Marshal(map[string]any{"paths": paths}) // texts can be encoded
	return text
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// TestDoctor shows each fault by a platform that has it.
func TestDoctor(t *testing.T) {
	t.Parallel()
	p := newPlay(t, healthy(nil))
	p.env["IDPCLI_TENANT"] = "globex"
	got := p.run("doctor", "-o", "csv", "--fields", "check,state")
	assert.Equal(t, 0, got.code, got.err)
	assert.Equal(t, "check,state\nconfiguration,ok\nproxy,ok\ndns,ok\nplatform,ok\nclock,ok\n"+
		"credential,ok\nscopes,ok\ntenant,ok\nversions,ok\noperations,ok\n", got.out)

	all := operations.CompiledIn().All
	newer := append([]*operations.Operation{{ID: "get-pet", Method: "GET", Path: "/v9/pets"}}, all...)
	late := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-5*time.Minute).UTC().Format(http.TimeFormat))
		_, _ = io.WriteString(w, `{"status":"ready"}`)
	}
	for _, c := range []struct {
		name    string
		path    string
		answer  http.HandlerFunc
		code    int
		finding finding // Message is a part
	}{
		{"not ready", "/readyz", says(503, `{"status":"not_ready","services":{"users":"not_ready"}}`), 10,
			finding{"platform", "fault", "it is not ready", "look at the platform's log"}},
		{"a service is not ready", "/readyz", says(200, `{"status":"ready","services":{"users":"not_ready"}}`), 0,
			finding{"platform", "warning", "users is not ready", "look at the log of users"}},
		{"warnings", "/readyz", says(200, `{"status":"ready","services":{"events":"ready"},
			"warnings":{"events":["without 3 records"]}}`), 0,
			finding{"platform", "warning", "events works without 3 records", "look at the log of events"}},
		{"something else", "/readyz", says(200, "<html>"), 10,
			finding{"platform", "fault", "is not the platform's", "look at the URL: something else answers there"}},
		{"clock", "/readyz", late, 0, finding{"clock", "warning", "by 5m", "set this machine's clock"}},
		{"token", "/v1/oauth2/whoami", says(401, `{"code":"unauthenticated","status":401}`), 10,
			finding{"credential", "fault", "401 unauthenticated", "idp login again"}},
		{"scopes", "/v1/oauth2/whoami", says(200, `{"actor":"client:crm","tenant_id":"globex","scopes":[]}`), 0,
			finding{"scopes", "warning", "none", "give the application scopes"}},
		{"tenant", "/v1/oauth2/whoami", says(200, `{"actor":"client:crm","tenant_id":"acme","scopes":["users:read"]}`), 10,
			finding{"tenant", "fault", "globex is not the credential's tenant, which is acme",
				"leave --tenant and IDPCLI_TENANT out"}},
		{"newer platform", "/openapi.json", says(200, string(documentOf(newer))), 0,
			finding{"operations", "warning", "does not know, such as get-pet",
				"update idp, or call them with idp api --from-server"}},
		{"older platform", "/openapi.json", says(200, string(documentOf(all[1:]))), 0,
			finding{"operations", "warning", "lacks 1 of idp's, such as " + all[0].ID,
				"update the platform, or start the service that has them"}},
		{"no document", "/openapi.json", says(503, ""), 0,
			finding{"operations", "warning", "503", "look at /openapi.json of the platform"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, healthy(map[string]http.HandlerFunc{c.path: c.answer}))
			p.env["IDPCLI_TENANT"] = "globex"
			p.finds(c.code, c.finding)
		})
	}
}

// finds runs doctor and looks for a finding.
func (p *play) finds(code int, want finding) {
	p.t.Helper()
	got := p.run("doctor", "--wait", "0", "-o", "json")
	assert.Equal(p.t, code, got.code, got.err)
	var findings []finding
	require.NoError(p.t, json.Unmarshal([]byte(got.out), &findings), got.out)
	for _, f := range findings {
		if f.Check == want.Check && f.State == want.State && strings.Contains(f.Message, want.Message) {
			assert.Equal(p.t, want.Advice, f.Advice)
			return
		}
	}
	assert.Fail(p.t, "not found", "%+v in %+v", want, findings)
}

// TestDoctorOnTheWay shows the faults between here and the platform.
func TestDoctorOnTheWay(t *testing.T) {
	t.Parallel()
	p := newPlay(t, healthy(nil))
	p.env["IDPCLI_URL"] = nobody
	p.finds(10, finding{"platform", "fault", "it does not answer", "look whether it runs, and at the firewall"})
	p.env["IDPCLI_URL"] = "http://nowhere.invalid"
	p.finds(10, finding{"dns", "fault", "has no address", "look at the name in the URL, and at this machine's DNS"})
	p.finds(10, finding{"encryption", "warning", "unencrypted", "use https"})
	p.env = nil
	p.finds(10, finding{"configuration", "fault", "", "idp login URL"})
}

// TestDoctorLooksAtTheCertificate reads its end, and refuses one that nobody trusts.
func TestDoctorLooksAtTheCertificate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		left time.Duration
		code int
		want finding
	}{
		{90 * 24 * time.Hour, 0, finding{"tls", "ok", "good until", ""}},
		{5*24*time.Hour + time.Hour, 0, finding{"tls", "warning", "it ends in 5 days", "replace the certificate"}},
		{-time.Hour, 10, finding{"tls", "fault", "it ended on", "replace the certificate"}},
	} {
		p := newPlay(t, healthy(nil))
		server := httptest.NewUnstartedServer(healthy(nil))
		server.TLS = &tls.Config{Certificates: []tls.Certificate{certificateFor(t, c.left)}}
		server.Config.ErrorLog = nil
		server.StartTLS()
		t.Cleanup(server.Close)
		// The platform of this very machine is reached whatever its certificate is.
		folder := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(folder, "api.url"), []byte(server.URL), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "administrator.json"),
			[]byte(`{"client_id":"crm","client_secret":"s3cret"}`), 0o600))
		p.env = nil
		require.Equal(t, 0, p.run("login", "--data-dir", folder).code)
		p.finds(c.code, c.want)

		p.env = map[string]string{"IDPCLI_URL": server.URL, "IDPCLI_TOKEN": "t0"}
		p.finds(10, finding{"tls", "fault", "certificate",
			"look at the certificate: its name, its end and who signed it"})
	}
}

func certificateFor(t *testing.T, left time.Duration) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(left),
		DNSNames: []string{"idp.example"},
	}
	text, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{text}, PrivateKey: key}
}
