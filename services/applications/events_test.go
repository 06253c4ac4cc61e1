package applications_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/applications"
)

// members are the members of a JSON object.
func members(t testing.TB, data []byte) (m map[string]json.RawMessage) {
	t.Helper()
	require.NoError(t, json.Unmarshal(data, &m))
	return m
}

// life causes every kind of event, and returns the secrets that were used.
func life(t *testing.T, s *testkit.Service, c *testkit.Client) (secrets []string) {
	t.Helper()
	tick := func() { s.Clock.Advance(time.Second) }
	app := c.Post("/v1/applications",
		object{"name": "费用 <&>", "redirect_url": "https://a.test/cb", "sys_ext_props": object{"a": 1}}).Object()
	post := func(operation string, body any) *testkit.Answer {
		t.Helper()
		tick()
		return c.Post(path(app, operation), body).OK(nil)
	}
	tick()
	c.With("X-Payload-Origin", "console").Patch(path(app),
		object{"descr": "claims", "sys_ext_props": object{"b": 2}}).OK(nil)
	for _, operation := range []string{"disable", "enable", "sso/disable", "sso/enable", "mfa/enable", "mfa/disable",
		"multi-accounts/enable"} {
		post(operation, nil)
	}
	tick()
	c.Patch(path(app, "configs"), object{"developer_id": "d"}).OK(nil)
	fresh := post("secrets?grace_seconds=60", nil).Object()["client_secret"].(string)
	post("idp", object{"config_id": "31"})
	tick()
	c.Delete(path(app, "idp/31"), nil).OK(nil)
	tick()
	c.Do(http.MethodPut, path(app, "protocols/saml"),
		object{"protocol_prop": object{"acs_url": "https://a.test/acs", "sp_entity": "sp"}}).OK(nil)
	post("protocols/saml/enable", nil)
	post("protocols/saml/disable", nil)
	reset := post("protocols/saml/secret", nil).Object()["secret"].(string)
	tick()
	account := addAccount(t, c, app, "7", "li.wei", object{"password": "form fill secret"})
	one := "accounts/" + account["id"].(string)
	tick()
	c.Do(http.MethodPut, path(app, one),
		object{"user_id": "7", "account": "liwei", "password": "an0ther secret"}).OK(nil)
	post(one+"/disable", nil)
	post(one+"/enable?id="+account["id"].(string), nil)
	tick()
	c.Delete(path(app, one), nil).OK(nil)
	tick()
	c.Delete(path(app), nil).OK(nil)
	return []string{app["client_secret"].(string), fresh, reset, "form fill secret", "an0ther secret"}
}

// random matches values that differ from run to run.
var random = regexp.MustCompile(`("(?:client_id|hint|secret_hint|etag|bytes)": ?)"[^"]+"|"[0-9a-f]{64}"`)

// steady replaces values that differ from run to run.
func steady(text []byte) []byte { return random.ReplaceAll(text, []byte(`$1"…"`)) }

func TestGoldenEvents(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	began := s.Clock.Now()
	life(t, s, c)
	last := map[string]bool{"idp.application.deleted": true, "idp.account.deleted": true,
		"idp.protocol.secret_reset": true}
	events := s.EventsUntil(func(e stream.Event) bool { // events of different records come in any order
		delete(last, e.Type)
		return len(last) == 0
	})
	// internal/token tests these
	events = slices.DeleteFunc(events, func(e stream.Event) bool { return e.Type == "idp.token.ended" })
	slices.SortStableFunc(events, func(a, b stream.Event) int { return strings.Compare(a.Source, b.Source) })
	for i := range events {
		events[i].Data = steady(events[i].Data)
	}
	testkit.GoldenEvents(t, began, events,
		strings.Fields("account.created account.deleted account.disabled account.enabled "+
			"account.updated application.config_updated application.created application.deleted application.disabled "+
			"application.enabled application.idp_attached application.idp_detached application.mfa_disabled "+
			"application.mfa_enabled application.secret_refreshed application.sso_disabled application.sso_enabled "+
			"application.updated protocol.disabled protocol.enabled protocol.secret_reset protocol.updated")...)
	for kind, file := range map[string]string{ // golden files of the tests of internal/token
		"idp.token.ended": "token_ended", "idp.client.authentication_failed": "authentication_failed",
	} {
		data, err := os.ReadFile("internal/token/testdata/" + file + ".json")
		require.NoError(t, err)
		events = append(events, stream.Event{Type: kind, Data: data})
	}
	testkit.EventTypes(t, s, "applications", began, events, map[string]string{
		"account": "Account", "application": "Application", "protocol": "Protocol",
	})
}

// Neither events nor the log nor the store contain a secret.
func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	log := &basic.LogBuffer{}
	s := testkit.Start(t, applications.Spec(applications.DefaultConfig()),
		testkit.Options{Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	answers(t, s)
	c := in(s, "acme")
	secrets := life(t, s, c)
	kept := c.With("Idempotency-Key", "k1").Post("/v1/applications", object{"name": "kept"}).Object()
	addAccount(t, c, kept, "7", "a", object{"password": "a kept secret"})
	answer := c.Post(path(kept, "accounts"),
		`{"user_id":"8","account":"b","password":"a kept secret","x":"a kept secret"}`)
	require.Equal(t, http.StatusBadRequest, answer.Status)
	require.NotContains(t, string(answer.Body), "a kept secret")
	secrets = append(secrets, kept["client_secret"].(string), "a kept secret")

	texts := map[string]string{}
	for _, e := range s.EventsUntil(func(e stream.Event) bool {
		return e.Type == "idp.account.created" && bytes.Contains(e.Data, []byte(`"account":"a"`))
	}) {
		texts["events"] += string(e.Data)
	}
	for _, collection := range []string{"applications", "secret_hashes", "protocols", "accounts", "sealed_values",
		"idempotency"} {
		for id, doc := range testkit.Stored(t, s, "acme", collection) {
			texts[collection] += id + doc
		}
		require.NotEmpty(t, texts[collection], collection)
	}
	texts["log"] = log.String()
	for place, text := range texts {
		for _, secret := range secrets {
			require.NotContains(t, text, secret, place)
		}
	}
	require.Contains(t, texts["log"], `"msg":"request","status":400`, "requests are logged")
}
