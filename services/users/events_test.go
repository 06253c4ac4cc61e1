package users_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

// actions deletes a user and returns the actions of all its events, in order.
func actions(t testing.TB, s *testkit.Service, c *testkit.Client, user object) (list []string) {
	t.Helper()
	c.With("If-Match", "").Delete(path(user), nil).OK(nil)
	for _, e := range s.EventsUntil(func(e stream.Event) bool {
		return e.Subject == user["id"] && e.Type == "idp.user.deleted"
	}) {
		if e.Source == "/users" && e.Subject == user["id"] {
			list = append(list, strings.TrimPrefix(e.Type, "idp.user."))
		}
	}
	return list
}

func members(t testing.TB, data []byte) (m map[string]json.RawMessage) {
	t.Helper()
	require.NoError(t, json.Unmarshal(data, &m))
	return m
}

// life makes every kind of event, and returns the secrets that it used.
func life(t *testing.T, s *testkit.Service, c *testkit.Client) (secrets []string) {
	require.NoError(t, testkit.AnswerFor(s.Deps.Bus, "organization", "change-membership",
		func(context.Context, object) (object, error) {
			return object{"memberships": []any{}}, nil
		}))
	tick := func() { s.Clock.Advance(time.Second) }
	c.Patch(settings, object{"shared_contacts": true}).OK(nil)
	user := addUser(t, c, "li.wei", object{"email": "li.wei@acme.test", "display_name": "李伟 <&>", "password": password,
		"sys_ext_props": object{"a": 1}})
	post := func(operation string, body any) *testkit.Answer {
		t.Helper()
		tick()
		return c.Post(path(user, operation), body).OK(nil)
	}
	tick()
	c.With("X-Payload-Origin", "hr-sync").Patch(path(user), object{"display_name": "王伟", "email": nil,
		"sys_ext_props": object{"b": 2}}).OK(nil)
	tick()
	putAvatar(t, c, user).OK(nil)
	tick()
	require.False(t, signsIn(c, "li.wei", "not the passw0rd"))
	tick()
	require.True(t, signsIn(c, "li.wei", password))
	post("lock", object{"reason": "on leave", "until": s.Clock.Now().Add(time.Hour)})
	post("unlock", nil)
	post("change-password", object{"old_password": password, "new_password": "a new Passw0rd"})
	made := post("reset-password", nil).Object()["password"].(string)
	post("real-name-verification", object{"real_name": "李伟", "id_number": residentID})
	post("change-organization", object{"object_code": "company", "from_node_id": "31", "to_node_id": "32"})
	post("resign", object{"reason": "retired"})
	post("reinstate", nil)
	tick()
	credential := credentials + "/" + c.Post(credentials, credentialOf(user, "wechat", "1")).ID()
	tick()
	c.Patch(credential, object{"id2": "two"}).OK(nil)
	tick()
	c.Delete(credential, nil).OK(nil)
	tick()
	c.Delete(path(user), nil).OK(nil)
	tick()
	send(c, ndjson, "?invite=true", `{"username":"invited","email":"invited@acme.test"}`)
	return []string{password, "a new Passw0rd", "not the passw0rd", made, residentID, residentID[1:17]}
}

func TestGoldenEvents(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	began := s.Clock.Now()
	life(t, s, c)
	last := 0 // events of different records come in any order
	events := s.EventsUntil(func(e stream.Event) bool {
		if strings.HasSuffix(e.Type, ".deleted") || bytes.Contains(e.Data, []byte(`"invite":true`)) {
			last++
		}
		return last == 3
	})
	slices.SortStableFunc(events, func(a, b stream.Event) int {
		return cmp.Or(strings.Compare(a.Source, b.Source), strings.Compare(a.Subject, b.Subject))
	})
	testkit.GoldenEvents(t, began, events, "credential.created", "credential.deleted", "credential.updated",
		"user.created",
		"user.deleted", "user.locked", "user.login_failed", "user.login_verified", "user.organization_changed",
		"user.password_changed", "user.reinstated", "user.resigned", "user.unlocked", "user.updated",
		"user_settings.updated")
	testkit.EventTypes(t, s, "users", began, events, map[string]string{"user": "User", "credential": "Credential",
		"user_settings": "UserSettings"})
}

// No secret is where it must not be: hashes are only in accounts; passwords and id numbers are nowhere.
func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	log := &basic.LogBuffer{}
	s := startWith(t, cheap(), nil,
		testkit.Options{Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	c := in(s, "acme")
	kept := addUser(t, c, "kept", object{"password": "another good Passw0rd"})
	c.Post(path(kept, "real-name-verification"), object{"real_name": "李", "id_number": womansID}).OK(nil)
	secrets := append(life(t, s, c), "another good Passw0rd", womansID[1:17])

	// Failing requests contain no secrets either, nor do answers that are stored for repetitions.
	for _, body := range []string{`{"old_password":"wr0ng secret","new_password":"wr0ng secret"`,
		`{"old_password":"wr0ng secret","new_password":"wr0ng secret"}`} {
		answer := c.Post(path(kept, "change-password"), body)
		require.Equal(t, http.StatusBadRequest, answer.Status)
		require.NotContains(t, string(answer.Body), "wr0ng")
	}
	send(c.With("Idempotency-Key", "import"), ndjson, "", `{"username":"x","password":"imp0rted secret"}`+"\n"+
		`{"username":"y ","password":"imp0rted secret"}`)
	made := c.With("Idempotency-Key", "reset").Post(path(kept, "reset-password"), nil).Object()["password"].(string)
	secrets = append(secrets, "wr0ng secret", "imp0rted secret", made)
	c.Delete(path(kept), nil).OK(nil)

	texts := map[string]string{}
	for _, e := range s.EventsUntil(func(e stream.Event) bool {
		return e.Type == "idp.user.deleted" && e.Subject == kept["id"]
	}) {
		texts["events"] += string(e.Data)
	}
	for _, collection := range []string{"users", "accounts", "avatars", "credentials", "imports", "idempotency"} {
		for id, doc := range testkit.Stored(t, s, "acme", collection) {
			texts[collection] += id + doc
		}
	}
	texts["log"] = log.String()
	for place, text := range texts {
		for _, secret := range secrets {
			require.NotContains(t, text, secret, place)
		}
		require.Equal(t, place == "accounts", strings.Contains(text, "argon2id$"), place)
	}
	require.Contains(t, texts["log"], `"msg":"request","status":400`, "requests are logged")
	require.NotEmpty(t, texts["imports"])
	require.Regexp(t, `"print":\s*""`, texts["idempotency"], "a password could be guessed by it")
}
