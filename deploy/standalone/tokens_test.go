package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/secret"
)

// unverified is a token's header and claims.
func unverified(t *testing.T, text string) (header, claims map[string]any) {
	t.Helper()
	read := jwt.MapClaims{}
	token, _, err := jwt.NewParser().ParseUnverified(text, read)
	require.NoError(t, err)
	return token.Header, read
}

// status is the answer to a GET.
func status(t *testing.T, c *child, token, path string) int {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://"+c.Addr+path, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

// A folder of a program without an applications service goes on: its keys sign, and its tokens are good.
func TestFolderWithFormerSigningKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, err := auth.GenerateKey()
	require.NoError(t, err)
	private, err := auth.NewKeys(key).PrivateJWKS()
	require.NoError(t, err)
	encryption := secret.NewKey()
	keys, err := secret.ParseKeyring(encryption)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"VERSION": "1", "encryption.key": encryption.Reveal(),
		"signing.sealed": keys.Seal(private, []byte("signing.sealed")), "jwks.json": "{}",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600))
	}
	former, err := auth.NewSigner("idplatform", auth.NewKeys(key), clock.System)
	require.NoError(t, err)
	old, err := former.Mint(auth.Claims{Subject: "admin", ClientID: "admin", Tenant: "acme", Scopes: auth.AllScopes,
		TTL: time.Hour})
	require.NoError(t, err)

	c := startPlatform(t, dir)
	assert.Equal(t, http.StatusOK, status(t, c, old, "/v1/users"))
	header, _ := unverified(t, c.token())
	assert.Equal(t, key.ID, header["kid"])
	for _, name := range []string{"signing.sealed", "jwks.json"} {
		assert.NoFileExists(t, filepath.Join(dir, name))
	}
}

// Tokens that were given before the public URL was set, or at another address, stay good.
func TestPublicURL(t *testing.T) {
	t.Parallel()
	c := startPlatform(t, t.TempDir())
	before := c.token("--tenant", "acme")
	_, claims := unverified(t, before)
	assert.Equal(t, "http://"+c.Addr, claims["iss"])
	c.stop()
	c = startPlatform(t, c.Dir, "IDP_PUBLIC_URL=https://id.example.com")
	assert.Equal(t, http.StatusOK, status(t, c, before, "/v1/users"))
	_, claims = unverified(t, c.token())
	assert.Equal(t, "https://id.example.com", claims["iss"])
	var metadata map[string]any
	fetch(t, c, "", "/.well-known/oauth-authorization-server", &metadata)
	assert.Equal(t, "https://id.example.com", metadata["issuer"])
	assert.Equal(t, "https://id.example.com/v1/oauth2/token", metadata["token_endpoint"])
}

func TestTokenOfAConfiguredAdministrator(t *testing.T) {
	t.Parallel()
	credential := []string{"IDP_BOOTSTRAP_CLIENT_ID=boss", "IDP_BOOTSTRAP_CLIENT_SECRET=a secret of the operator"}
	c := startPlatform(t, t.TempDir(), credential...)
	out, notes, code := runs(t, append(credential, "IDP_DATA_DIR="+c.Dir), "token")
	require.Equal(t, 0, code, notes)
	_, claims := unverified(t, strings.TrimSpace(out))
	assert.Equal(t, "boss", claims["sub"])
	assert.Equal(t, "default", claims["tenant_id"])
	_, notes, code = runs(t, []string{"IDP_DATA_DIR=" + c.Dir}, "token")
	assert.Equal(t, 1, code)
	assert.Contains(t, notes, "set IDP_BOOTSTRAP_CLIENT_ID")
	assert.NoFileExists(t, filepath.Join(c.Dir, "administrator.json"))
}

// Where no platform runs on the folder, token asks the one that the settings name.
func TestTokenOfAPlatformElsewhere(t *testing.T) {
	t.Parallel()
	credential := []string{"IDP_BOOTSTRAP_CLIENT_ID=boss", "IDP_BOOTSTRAP_CLIENT_SECRET=a secret of the operator"}
	c := startPlatform(t, t.TempDir(), credential...)
	out, notes, code := runs(t, append(credential, "IDP_DATA_DIR="+t.TempDir(), "IDP_PUBLIC_URL=http://"+c.Addr),
		"token", "--tenant", "acme")
	require.Equal(t, 0, code, notes)
	_, claims := unverified(t, strings.TrimSpace(out))
	assert.Equal(t, "boss", claims["sub"])
	assert.Equal(t, "acme", claims["tenant_id"])
}

func TestKeysRotate(t *testing.T) {
	t.Parallel()
	c := startPlatform(t, t.TempDir())
	old := c.token("--tenant", "acme")
	var rotated struct {
		Keys []struct{ ID string }
	}
	require.NoError(t, json.Unmarshal([]byte(c.output("keys", "rotate")), &rotated))
	require.Len(t, rotated.Keys, 2)
	assert.Equal(t, http.StatusOK, status(t, c, old, "/v1/users"))
	require.NoError(t, json.Unmarshal([]byte(c.output("keys", "rotate", "--at-once")), &rotated))
	require.Len(t, rotated.Keys, 1)
	assert.Equal(t, http.StatusUnauthorized, status(t, c, old, "/v1/users"), "in every service")
	assert.Equal(t, http.StatusOK, status(t, c, c.token("--tenant", "acme"), "/v1/users"))
}

// form posts a form as the client, by client_secret_basic.
func form(c *child, path, id, secret string, values url.Values) (*http.Response, error) {
	r, err := http.NewRequest(http.MethodPost, "http://"+c.Addr+path, strings.NewReader(values.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(id, secret)
	return http.DefaultClient.Do(r)
}

// TestKillNineAmidRotationAndRefresh kills the platform while its keys are rotated and a client's secret is refreshed.
// Each change was made or was not: tokens are given and good, and the client has one secret, the last that was answered
// or the one whose answer the kill has cut off.
func TestKillNineAmidRotationAndRefresh(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := startPlatform(t, dir)
	token := c.token("--tenant", "acme")
	machine := struct {
		ID           string `json:"id"`
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}{}
	send := func(path, body string, into any) error {
		r, err := http.NewRequest(http.MethodPost, "http://"+c.Addr+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		return json.NewDecoder(response.Body).Decode(into)
	}
	require.NoError(t, send("/v1/applications", `{"name":"Billing","category":"4","scopes":["users:read"]}`, &machine))

	for range 3 {
		enough := make(chan struct{})
		var once sync.Once
		var changing sync.WaitGroup
		changing.Go(func() {
			for n := 0; send("/v1/applications/"+machine.ID+"/secrets", "", &machine) == nil; n++ {
				if n == 2 {
					once.Do(func() { close(enough) })
				}
			}
		})
		changing.Go(func() {
			var keys any
			for send("/v1/oauth2/keys/rotate", "", &keys) == nil {
			}
		})
		<-enough
		c.kill()
		changing.Wait()

		c = startPlatform(t, dir)
		token = c.token("--tenant", "acme")
		require.Equal(t, http.StatusOK, status(t, c, token, "/v1/users"))
		response, err := form(c, "/v1/oauth2/token", machine.ClientID, machine.ClientSecret,
			url.Values{"grant_type": {"client_credentials"}})
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		var application struct {
			Secrets []struct{ Hint string }
		}
		fetch(t, c, token, "/v1/applications/"+machine.ID, &application)
		require.Len(t, application.Secrets, 1)
		known := strings.HasSuffix(machine.ClientSecret, strings.TrimPrefix(application.Secrets[0].Hint, "…"))
		require.Equal(t, known, response.StatusCode == http.StatusOK,
			"the secret that is shown is the one that is good")
	}
}
