package commands

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// signing is a platform that gives the client crm tokens.
func signing(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/v1/oauth2/token":
		id, secret, _ := r.BasicAuth()
		text, _ := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(text))
		if id+secret != "crms3cret" && form.Get("client_assertion") == "" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":"invalid_client","error_description":"the client is unknown"}`)
			return
		}
		_, _ = io.WriteString(w, `{"access_token":"fresh","expires_in":3600}`)
	case "/v1/oauth2/whoami":
		_, _ = io.WriteString(w, `{"actor":"client:crm","tenant_id":"globex","scopes":["users:read"],
			"time_expires":"2026-01-31T09:30:00.000Z","platform_version":"v1"}`)
	case "/v1/users/7":
		_, _ = io.WriteString(w, `{"id":"7"}`)
	default:
		refuse(w, http.StatusNotFound, "not_found")
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	p := newPlay(t, signing)
	p.env = nil
	p.input = "crm\ns3cret\n"
	got := p.run("login", p.server.URL)
	require.Equal(t, 0, got.code, got.err)
	assert.Contains(t, got.err, "signed in as client:crm in tenant globex")
	assert.NotContains(t, got.out+got.err, "s3cret")
	info, err := os.Stat(p.config)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	require.Equal(t, 0, p.run("api", "get-user", "7").code)
	assert.Equal(t, "Bearer fresh", p.last().header.Get("Authorization"))
	assert.Equal(t, "globex", p.last().header.Get("X-Tenant-Id"))
	got = p.run("context", "list", "--fields", "name,current,tenant,signs_in", "-o", "csv")
	name := strings.TrimPrefix(p.server.URL, "http://")
	assert.Equal(t, "name,current,tenant,signs_in\n"+name+",true,globex,client crm\n", got.out)

	p.input = "wrong\n"
	got = p.run("login", p.server.URL, "--client-id", "crm", "--context", "other")
	assert.Equal(t, 4, got.code)
	assert.Contains(t, got.err, "the client is unknown")
	assert.NotContains(t, p.run("context", "list").out, "other", "what does not sign in is not kept")

	p.terminal, p.input = true, "crm\n"
	assert.Equal(t, 0, p.run("login", p.server.URL, "--context", "asked").code, "a terminal is asked for both")
}

func TestLoginWithAKey(t *testing.T) {
	t.Parallel()
	p := newPlay(t, signing)
	p.env = nil
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "crm.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	require.NoError(t, os.WriteFile(file, text, 0o600))
	got := p.run("login", p.server.URL, "--client-id", "crm", "--key", file, "--context", "key")
	require.Equal(t, 0, got.code, got.err)
	kept, err := os.ReadFile(p.config)
	require.NoError(t, err)
	assert.Contains(t, string(kept), "key_file: "+file)
	assert.NotContains(t, string(kept), "secret")

	require.NoError(t, os.WriteFile(file, []byte("nothing"), 0o600))
	assert.Equal(t, 2, p.run("api", "get-user", "7").code)
}

func TestLoginWithDataDirAndCommand(t *testing.T) {
	t.Parallel()
	p := newPlay(t, signing)
	p.env = nil
	folder := t.TempDir()
	assert.Equal(t, 4, p.run("login", "--data-dir", folder).code)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "api.url"), []byte(p.server.URL+"\n"), 0o600))
	administrator, err := json.Marshal(map[string]string{"client_id": "crm", "client_secret": "s3cret"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "administrator.json"), administrator, 0o600))
	got := p.run("login", "--data-dir", folder)
	require.Equal(t, 0, got.code, got.err)
	require.Equal(t, 0, p.run("api", "get-user", "7", "--context", "local").code)

	got = p.run("login", p.server.URL, "--client-id", "crm", "--credential-command", "echo,s3cret",
		"--context", "vault")
	require.Equal(t, 0, got.code, got.err)
	kept, err := os.ReadFile(p.config)
	require.NoError(t, err)
	assert.NotContains(t, string(kept), "client_secret", "secrets stay where they are")
	assert.Equal(t, 4, p.run("login", p.server.URL, "--client-id", "crm", "--credential-command", "false").code)
}

func TestVariables(t *testing.T) {
	t.Parallel()
	p := newPlay(t, signing)
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("s3cret\n"), 0o600))
	p.env = map[string]string{
		"IDPCLI_URL": p.server.URL, "IDPCLI_CLIENT_ID": "crm", "IDPCLI_CLIENT_SECRET_FILE": file,
	}
	require.Equal(t, 0, p.run("api", "get-user", "7").code)
	assert.Equal(t, "Bearer fresh", p.last().header.Get("Authorization"))
	assert.Empty(t, p.last().header.Get("X-Tenant-Id"))
	require.Equal(t, 0, p.run("api", "get-user", "7", "--tenant", "initech").code)
	assert.Equal(t, "initech", p.last().header.Get("X-Tenant-Id"))
}

func TestContexts(t *testing.T) {
	t.Parallel()
	p := newPlay(t, signing)
	p.env = nil
	for _, name := range []string{"a", "b"} {
		p.input = "s3cret\n"
		require.Equal(t, 0, p.run("login", p.server.URL, "--client-id", "crm", "--context", name).code)
	}
	current := func() string { return p.run("context", "list", "--jq", ".[] | select(.current).name").out }
	assert.Equal(t, "b\n", current())
	require.Equal(t, 0, p.run("context", "use", "a").code)
	assert.Equal(t, "a\n", current())
	require.Equal(t, 0, p.run("context", "rename", "a", "c").code)
	assert.Equal(t, "c\n", current())
	assert.Equal(t, 2, p.run("context", "rename", "c", "b").code, "nothing is overwritten")
	assert.Equal(t, 2, p.run("context", "use", "a").code)
	assert.Equal(t, 2, p.run("context", "delete", "c").code, "a deletion wants --yes")
	assert.Equal(t, "c\n", current())
	require.Equal(t, 0, p.run("context", "delete", "c", "--yes").code)
	assert.Empty(t, current())
	assert.Equal(t, 4, p.run("api", "get-user", "7").code)
	assert.Equal(t, 0, p.run("api", "get-user", "7", "--context", "b").code)

	require.NoError(t, os.Chmod(p.config, 0o644))
	got := p.run("context", "list")
	assert.Equal(t, 4, got.code)
	assert.Contains(t, got.err, "chmod 600")
	require.NoError(t, os.WriteFile(p.config, []byte("contexts: {a: {client_secret: [geheim]}}"), 0o600))
	require.NoError(t, os.Chmod(p.config, 0o600))
	got = p.run("context", "list")
	assert.Equal(t, 2, got.code)
	assert.NotContains(t, got.err, "geheim")
}

func TestProtected(t *testing.T) {
	t.Parallel()
	p := newPlay(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			_, _ = io.WriteString(w, `{"id":"7"}`)
			return
		}
		signing(w, r)
	})
	p.env = nil
	p.input = "s3cret\n"
	require.Equal(t, 0, p.run("login", p.server.URL, "--client-id", "crm", "--context", "prod", "--protected").code)
	change := []string{"api", "update-user", "7", "--display-name", "a"}
	assert.Equal(t, 2, p.run(change...).code)
	assert.Equal(t, 2, p.run(append(change, "--yes")...).code, "the name is wanted, too")
	assert.Equal(t, 0, p.run(append(change, "--yes", "--context", "prod")...).code)
	assert.Equal(t, 0, p.run("api", "get-user", "7").code, "reading is free")
	p.terminal, p.input = true, "test\n"
	assert.Equal(t, 2, p.run(change...).code)
	p.input = "prod\n"
	assert.Equal(t, 0, p.run(change...).code)
}
