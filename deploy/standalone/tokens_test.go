package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// Tokens that were issued before the public URL was set, or at another address, stay valid.
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

// chosenSecret is an administrator's.
const chosenSecret = "operator-8Qx2vT5mZr7Lk1pWcN4sYb3"

func TestTokenOfAConfiguredAdministrator(t *testing.T) {
	t.Parallel()
	credential := []string{"IDP_BOOTSTRAP_CLIENT_ID=boss", "IDP_BOOTSTRAP_CLIENT_SECRET=" + chosenSecret}
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

// If no platform runs on the folder, token asks the one that the settings name.
func TestTokenOfAPlatformElsewhere(t *testing.T) {
	t.Parallel()
	credential := []string{"IDP_BOOTSTRAP_CLIENT_ID=boss", "IDP_BOOTSTRAP_CLIENT_SECRET=" + chosenSecret}
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

// client is a machine client of a platform.
type client struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"`
}

// token gets a token by client_secret_basic.
func (m client) token(c *child) (token string, status int, err error) {
	response, err := form(c, "/v1/oauth2/token", m.ID, m.Secret, url.Values{"grant_type": {"client_credentials"}})
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close()
	var given struct {
		AccessToken string `json:"access_token"`
	}
	err = json.NewDecoder(response.Body).Decode(&given)
	return given.AccessToken, response.StatusCode, err
}

// post sends a request with a new token. It tries again if a rotation has ended the token before the request arrived.
func (m client) post(c *child, path, body string, into any) error {
	for {
		token, status, err := m.token(c)
		if err != nil || status != http.StatusOK {
			return errors.Join(err, fmt.Errorf("the token endpoint answers %d", status))
		}
		r, err := http.NewRequest(http.MethodPost, "http://"+c.Addr+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		r.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"},
			"X-Tenant-Id": {"acme"}}
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return json.NewDecoder(response.Body).Decode(into)
		}
		if response.StatusCode != http.StatusUnauthorized {
			return fmt.Errorf("%s answers %d", path, response.StatusCode)
		}
	}
}

// TestKillNineAmidRotationAndRefresh kills the platform while its keys are rotated at once and a client's secret is
// refreshed. Each change is made completely or not at all: one key is published, only its tokens are valid, and the
// client has one secret: the last one that was answered, or the one whose answer was lost in the kill.
func TestKillNineAmidRotationAndRefresh(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	boss := client{"boss", chosenSecret}
	settings := []string{"IDP_BOOTSTRAP_CLIENT_ID=" + boss.ID, "IDP_BOOTSTRAP_CLIENT_SECRET=" + boss.Secret}
	c := startPlatform(t, dir, settings...)
	machine := struct {
		AppID string `json:"id"`
		client
	}{}
	require.NoError(t, boss.post(c, "/v1/applications",
		`{"name":"Billing","category":"4","scopes":["users:read"]}`, &machine))

	for range 3 {
		before, _, err := boss.token(c)
		require.NoError(t, err)
		var keys []string // the only key after each rotation that was answered
		untilKilled(t, c, func() error {
			return boss.post(c, "/v1/applications/"+machine.AppID+"/secrets", "", &machine)
		}, func() error {
			var left struct{ Keys []struct{ ID string } }
			if err := boss.post(c, "/v1/oauth2/keys/rotate?at_once=true", "", &left); err != nil {
				return err
			}
			keys = append(keys, left.Keys[0].ID)
			return nil
		})
		c = startPlatform(t, dir, settings...)

		var published struct{ Keys []struct{ Kid string } }
		fetch(t, c, "", "/v1/oauth2/jwks", &published)
		require.Len(t, published.Keys, 1)
		require.NotContains(t, keys[:len(keys)-1], published.Keys[0].Kid, "a later rotation was answered")
		require.Equal(t, http.StatusUnauthorized, status(t, c, before, "/v1/users"))
		token, _, err := boss.token(c)
		require.NoError(t, err)
		header, _ := unverified(t, token)
		require.Equal(t, published.Keys[0].Kid, header["kid"])
		require.Equal(t, http.StatusOK, status(t, c, token, "/v1/users"))

		requireOneSecret(t, c, boss, machine.AppID, machine.client)
	}
}

// untilKilled repeats each of the changes, and kills the platform after it has answered three of each.
func untilKilled(t *testing.T, c *child, changes ...func() error) {
	t.Helper()
	var answered, all sync.WaitGroup
	for _, change := range changes {
		answered.Add(1)
		all.Go(func() {
			thrice := sync.OnceFunc(answered.Done)
			defer thrice()
			n := 0
			for ; change() == nil; n++ {
				if n == 2 {
					thrice()
				}
			}
			assert.GreaterOrEqual(t, n, 3)
		})
	}
	answered.Wait()
	c.kill()
	all.Wait()
}

// requireOneSecret requires that a client has one secret, and that the secret known is good if it is the one shown.
func requireOneSecret(t *testing.T, c *child, boss client, appID string, known client) {
	t.Helper()
	token, _, err := boss.token(c)
	require.NoError(t, err)
	r, err := http.NewRequest(http.MethodGet, "http://"+c.Addr+"/v1/applications/"+appID, nil)
	require.NoError(t, err)
	r.Header = http.Header{"Authorization": {"Bearer " + token}, "X-Tenant-Id": {"acme"}}
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	var application struct{ Secrets []struct{ Hint string } }
	require.NoError(t, json.NewDecoder(response.Body).Decode(&application))
	require.Len(t, application.Secrets, 1)
	shown := strings.HasSuffix(known.Secret, strings.TrimPrefix(application.Secrets[0].Hint, "…"))
	_, status, err := known.token(c)
	require.NoError(t, err)
	require.Equal(t, shown, status == http.StatusOK, "the secret that is shown is the one that is good")
}
