package users_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
)

// Every POST except a login verification gets its first answer again, and changes nothing, if it is repeated with its
// key; this includes those that generate secrets, ask other services, or write with WithoutCommitHook.
func TestEveryPostIsIdempotent(t *testing.T) {
	t.Parallel()
	for operation, row := range map[string]struct {
		url  string
		body any
		made string // its event, if it has one
	}{
		"create":            {"/v1/users", object{"username": "new", "password": password}, ""},
		"lock":              {"/v1/users/{id}/lock", object{"reason": "x"}, "locked"},
		"lock without body": {"/v1/users/{id}/lock", nil, "locked"},
		"unlock":            {"/v1/users/{id}/unlock", nil, ""},
		"batch lock":        {"/v1/batch/users-lock", `{"ids":["{id}"]}`, "locked"},
		"batch unlock":      {"/v1/batch/users-unlock", `{"ids":["{id}"]}`, ""},
		"reset":             {"/v1/users/{id}/reset-password", nil, "password_changed"},
		"reset to": {"/v1/users/{id}/reset-password", object{"new_password": "a new Passw0rd"},
			"password_changed"},
		"batch reset": {"/v1/batch/users-reset-password", `{"ids":["{id}"]}`, "password_changed"},
		"change": {"/v1/users/{id}/change-password",
			object{"old_password": password, "new_password": "a new Passw0rd"}, "password_changed"},
		"change with wrong": {"/v1/users/{id}/change-password",
			object{"old_password": "wrong", "new_password": "a new Passw0rd"}, "login_failed"},
		"login name check": {"/v1/users-login-name-check", object{"login_name": "x"}, ""},
		"existence check":  {"/v1/users-exist", object{"username": "x"}, ""},
		"real name": {"/v1/users/{id}/real-name-verification",
			object{"real_name": "李", "id_number": residentID}, "updated"},
		"resign":    {"/v1/users/{id}/resign", nil, "resigned"},
		"reinstate": {"/v1/users/{id}/reinstate", nil, ""},
		"organization": {"/v1/users/{id}/change-organization", object{"object_code": "c", "to_node_id": "1"},
			"organization_changed"},
		"credential":         {credentials, `{"user_id":{id},"provider_code":"wechat","id1":"1"}`, ""},
		"credential refused": {credentials, object{"user_id": 1, "provider_code": "wechat", "id1": "1"}, ""},
	} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			s, c := acme(t)
			asked := 0
			require.NoError(t, testkit.AnswerFor(s.Deps.Bus, "organization", "change-membership",
				func(context.Context, object) (object, error) {
					asked++
					return object{"memberships": []any{}}, nil
				}))
			user := addUser(t, c, "li.wei", object{"password": password})
			id := user["id"].(string)
			if text, ok := row.body.(string); ok {
				row.body = strings.ReplaceAll(text, "{id}", id)
			}
			url := strings.ReplaceAll(row.url, "{id}", id)
			keyed := c.With("Idempotency-Key", "key-1")
			first := keyed.Post(url, row.body)
			require.Empty(t, first.Header.Get("Idempotent-Replayed"))
			after := c.Get(path(user)).Object()

			again := keyed.Post(url, row.body)
			require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
			require.Equal(t, first.Status, again.Status)
			require.Equal(t, first.Header.Get("Etag"), again.Header.Get("Etag"))
			if first.Status == 200 {
				require.JSONEq(t, string(first.Body), string(again.Body))
			}
			unchanged(t, c, after)
			require.LessOrEqual(t, asked, 1)
			want := []string{"created"}
			if row.made != "" {
				want = append(want, row.made)
			}
			require.Equal(t, append(want, "deleted"), actions(t, s, c, user))
		})
	}
}

// A login verification holds only at the moment: with the same key it runs again, so that a user who
// has been locked since is not verified.
func TestLoginIsNotKept(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei", object{"password": password})
	keyed := c.With("Idempotency-Key", "key-1")
	require.True(t, signsIn(keyed, "li.wei", password))
	require.True(t, signsIn(keyed, "li.wei", password))
	require.False(t, signsIn(keyed, "li.wei", "wrong"), "the key does not stand for the first request")
	c.Post(path(user, "lock"), nil).OK(nil)
	require.Equal(t, object{"verified": false, "reason": "locked"}, login(t, keyed, "li.wei", password))
	require.Empty(t, testkit.Stored(t, s, "acme", "idempotency"))
	require.Equal(t, []string{"created", "login_verified", "login_verified", "login_failed", "locked", "deleted"},
		actions(t, s, c, user))
}
