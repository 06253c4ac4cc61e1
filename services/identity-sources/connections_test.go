package identitysources_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/questions"
)

// others answers for the services that can refer to connections, with how many credentials and applications do.
func others(s *testkit.Service, credentials, applications int) {
	count := func(n int) func(context.Context, object) (object, error) {
		return func(context.Context, object) (object, error) { return object{"count": n}, nil }
	}
	if err := testkit.AnswerFor(s.Deps.Bus, "users", "credentials-of-connection", count(credentials)); err != nil {
		panic(err)
	}
	if err := testkit.AnswerFor(s.Deps.Bus, "applications", "of-connection", count(applications)); err != nil {
		panic(err)
	}
}

func TestConnections(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	made := c.Post(connectionsPath, wechat(object{"display_name": "微信"})).Object()
	for member, want := range map[string]any{
		"provider_id": "1", "provider_code": "wechat_scan_qr", "display_name": "微信", "name": "WeChat", "type": "social",
		"logo": "", "status": "1", "tenant_id": "acme", "version": 1.0,
		"config_fields": object{"AppId": "wx8f3a2b1c0d9e7f65", "AppSecret": "******"},
	} {
		require.Equal(t, want, made[member], member)
	}
	require.NotEmpty(t, made["developer_id"])
	require.Equal(t, made, c.Get(one(made)).Object())

	other := c.Post(connectionsPath,
		object{"provider_code": "mfa_otp", "config_fields": object{"displayName": "App"}}).Object()
	require.Equal(t, "App", other["display_name"])
	for query, want := range map[string]int{
		"": 3, "?type=social": 1, "?type=mfa": 1, "?provider_code=mfa_otp": 1, "?provider_code=oidc": 0, "?status=1": 3,
		"?status=0": 0, "?type=social&provider_code=mfa_otp": 0,
	} {
		var list []object
		c.Get(connectionsPath + query).OK(&list)
		require.Len(t, list, want, query)
	}
	in(s, "globex").Get(one(made)).Problem(http.StatusNotFound, "not_found")

	require.Equal(t, "0", c.Post(one(made)+"/disable", nil).Object()["status"])
	require.Equal(t, "1", c.Post(one(made)+"/enable", nil).Object()["status"])

	others(s, 0, 0)
	c.Delete(one(made), nil).OK(nil)
	c.Get(one(made)).Problem(http.StatusNotFound, "not_found")
}

// A connection that starts disabled can be tested before anybody signs in through it.
func TestAConnectionStartsDisabled(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	made := c.Post(connectionsPath, wechat(object{"status": "0"})).Object()
	require.Equal(t, "0", made["status"])
	require.Equal(t, made, c.Get(one(made)).Object())
	created := s.EventsUntil(func(e stream.Event) bool { return e.Subject == made["id"] })
	require.Contains(t, string(created[len(created)-1].Data), `"status":"0"`)
	var list []object
	c.Get(connectionsPath + "?status=0").OK(&list)
	require.Equal(t, []object{made}, list)
	c.Post(one(made)+"/test?dry_run=true", nil).OK(nil)
	c.Do(http.MethodPut, one(made), wechat(object{"status": "1"})).OK(&list)
	require.Equal(t, "0", list[0]["status"], "only enable changes it")
	require.Equal(t, "1", c.Post(one(made)+"/enable", nil).Object()["status"])
	require.Equal(t, "1", c.Post(connectionsPath, wechat(object{"status": "1"})).Object()["status"])
	for _, status := range []any{"2", "", 1, true} {
		c.Post(connectionsPath, wechat(object{"status": status})).
			Problem(http.StatusBadRequest, "invalid_parameters", "body.status")
	}
}

// The catalogue tells how people sign in at a provider, and where they come back to.
func TestHowPeopleSignIn(t *testing.T) {
	t.Parallel()
	var all []object
	in(start(t), "acme").Get("/v1/idp/providers").OK(&all)
	signsIn := 0
	for _, p := range all {
		if p["sign_in"] == nil {
			require.NotContains(t, p, "callback_url")
			continue
		}
		signsIn++
		require.Contains(t, questions.SignInProviders, p["provider_code"])
		if p["sign_in"] == "password" {
			require.NotContains(t, p, "callback_url")
			continue
		}
		require.Equal(t, "https://idp.test/sign-in/acme/callback/{connection_id}", p["callback_url"])
		if p["provider_code"] == "oidc" {
			require.Equal(t, "https://idp.test/sign-in/acme/backchannel/{connection_id}", p["logout_url"])
		} else {
			require.NotContains(t, p, "logout_url")
		}
	}
	require.Len(t, questions.SignInProviders, signsIn)
}

func TestConnectionsAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	for name, row := range map[string]struct {
		body      object
		locations []string
	}{
		"an empty body":    {object{}, []string{"body.provider_code", "body.config_fields"}},
		"unknown provider": {wechat(object{"provider_code": "nobody"}), []string{"body.provider_code"}},
		"missing fields": {wechat(object{"config_fields": object{}}),
			[]string{"body.config_fields.AppId", "body.config_fields.AppSecret"}},
		"malformed fields": {
			wechat(object{"config_fields": object{"AppId": "a b", "AppSecret": 17, "Corp": "x"}}),
			[]string{"body.config_fields.AppId", "body.config_fields.AppSecret", "body.config_fields.Corp"},
		},
		"a mask without a secret": {
			wechat(object{"config_fields": object{"AppId": "wx8f3a2b1c0d9e7f65", "AppSecret": "******"}}),
			[]string{"body.config_fields.AppSecret"},
		},
		"long name":  {wechat(object{"display_name": strings.Repeat("长", 129)}), []string{"body.display_name"}},
		"not fields": {wechat(object{"config_fields": "x"}), []string{"body.config_fields"}},
		"neither metadata nor its URL": {
			object{"provider_code": "saml", "config_fields": object{}}, []string{"body.config_fields"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer := c.Post(connectionsPath, row.body)
			answer.Problem(http.StatusBadRequest, "invalid_parameters", row.locations...)
		})
	}
}

// A secret is stored encrypted and shown as a mask. The mask keeps it, and it is deleted with its field.
func TestSecretsOfConnections(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	const second = "fedcba9876543210fedcba9876543210"
	made := c.Post(connectionsPath, wechat()).Object()
	require.NotContains(t, stored(t, s), appSecret)

	replace := func(body object) object {
		t.Helper()
		return put(t, c, made, body)
	}
	kept := replace(wechat(object{"display_name": "x",
		"config_fields": object{"AppId": "wx0000000000000000", "AppSecret": "******"}}))
	require.Equal(t, "******", kept["config_fields"].(object)["AppSecret"])
	require.Equal(t, 2.0, kept["version"])
	require.Equal(t, 2.0, replace(kept)["version"], "a record may be sent back as it is")

	changed := replace(wechat(object{"config_fields": object{"AppId": "wx0000000000000000", "AppSecret": second}}))
	require.Equal(t, 3.0, changed["version"])
	require.NotContains(t, stored(t, s), second)

	others(s, 0, 0)
	oidc := object{"provider_code": "oidc", "config_fields": object{
		"Issuer": "https://login.acme.test", "ClientId": "x", "ClientSecret": "******",
	}}
	c.Do(http.MethodPut, one(made), oidc).Problem(http.StatusBadRequest, "invalid_parameters",
		"body.config_fields.ClientSecret")
	oidc["config_fields"].(object)["ClientSecret"] = "another"
	replace(oidc)
	for _, e := range s.Events(5) {
		text, err := json.Marshal(e)
		require.NoError(t, err)
		for _, secret := range []string{appSecret, second, "another"} {
			require.NotContains(t, string(text), secret)
		}
	}
}

func TestConnectionsInUse(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	made := c.Post(connectionsPath, wechat()).Object()
	oidc := object{"provider_code": "oidc",
		"config_fields": object{"Issuer": "https://login.acme.test", "ClientId": "x"}}
	c.Delete(one(made), nil).Problem(http.StatusServiceUnavailable, "unavailable")
	c.Do(http.MethodPut, one(made), oidc).Problem(http.StatusServiceUnavailable, "unavailable")
	others(s, 3, 2)
	c.Delete(one(made), nil).Problem(http.StatusConflict, "in_use", "stored_credentials", "applications")
	c.Do(http.MethodPut, one(made), oidc).Problem(http.StatusConflict, "in_use", "stored_credentials", "applications")
	c.Do(http.MethodPut, one(made), wechat(object{"display_name": "the same provider"})).OK(nil)
}

func TestConnectionsOfMethodsInUse(t *testing.T) {
	t.Parallel()
	s := start(t)
	others(s, 0, 0)
	c := in(s, "acme")
	made := c.Post(connectionsPath, wechat()).Object()
	method := c.Post(methodsPath, object{"code": "wechat", "name": "WeChat", "type": "social",
		"connection_ids": []any{made["id"]}}).Object()
	c.Delete(one(made), nil).Problem(http.StatusConflict, "in_use", "auth_methods")
	c.Delete(methodsPath+"/"+id(method), nil).OK(nil)
	c.Delete(one(made), nil).OK(nil)
}

func TestMaxConnections(t *testing.T) {
	t.Parallel()
	c := in(start(t), "acme")
	body := object{"provider_code": "mfa_webauthn", "config_fields": object{}}
	for range 199 {
		c.Post(connectionsPath, body).OK(nil)
	}
	c.Post(connectionsPath, body).Problem(http.StatusConflict, "invalid_state")
	var list []object
	c.Get(connectionsPath).OK(&list)
	require.Len(t, list, 200)
	seen := map[string]bool{}
	for i := range list {
		seen[id(list[i])] = true
		require.True(t, i == 0 || list[i]["time_created"].(string) >= list[i-1]["time_created"].(string))
	}
	require.Len(t, seen, 200)
}

// Many concurrent first requests of a tenant create one native database connection.
func TestRaceOfFirstRequests(t *testing.T) {
	t.Parallel()
	c := in(start(t), "acme")
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() { c.Get(connectionsPath).OK(nil) })
	}
	all.Wait()
	var list []object
	c.Get(connectionsPath + "?type=database").OK(&list)
	require.Len(t, list, 1)
}

func TestAnswersAboutConnections(t *testing.T) {
	t.Parallel()
	s := start(t)
	made := in(s, "acme").Post(connectionsPath, wechat()).Object()
	ask := func(tenant string, ids ...string) (found []string) {
		answer, err := testkit.Ask[struct {
			Connections []struct {
				ID           string `json:"id"`
				ProviderCode string `json:"provider_code"`
			} `json:"connections"`
		}](system(t, tenant), s.Deps.Bus, "identity-sources", "existing", object{"ids": ids})
		require.NoError(t, err)
		for _, c := range answer.Connections {
			found = append(found, fmt.Sprint(c.ID, " ", c.ProviderCode))
		}
		slices.Sort(found)
		return found
	}
	require.Equal(t, []string{id(made) + " wechat_scan_qr"}, ask("acme", id(made), "404"))
	require.Empty(t, ask("globex", id(made)))
	exists, err := testkit.Ask[object](system(t, "acme"), s.Deps.Bus, "identity-sources", "connection-exists",
		object{"id": id(made)})
	require.NoError(t, err)
	require.Equal(t, object{"exists": true}, exists)
}
