package users_test

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
)

var unsteady = regexp.MustCompile(`"(password|id_number|etag|bytes)": "[^"]+"|"\$argon2id[^"]+"`)

// steady replaces what differs from run to run.
func steady(document []byte) []byte {
	return unsteady.ReplaceAllFunc(document, func(b []byte) []byte {
		if member, _, ok := bytes.Cut(b, []byte(": ")); ok {
			return append(member, `: "…"`...)
		}
		return []byte(`"…"`)
	})
}

// Every later version must be able to read what is stored: a change here needs a way to read existing documents.
func TestGoldenDocuments(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	began := s.Clock.Now()
	user := addUser(t, c, "li.wei", object{
		"display_name": "李伟 <&>", "email": "li.wei@acme.test", "mobile": "+8613800000000", "employee_number": "A-17",
		"locale": "zh-CN", "zoneinfo": "Asia/Shanghai",
		"password": password, "sys_ext_props": object{"a": 1}, "free_ext_props": object{"键": []any{"值"}},
	})
	s.Clock.Advance(time.Second)
	putAvatar(t, c, user).OK(nil)
	c.Post(path(user, "change-password"), object{"old_password": password, "new_password": "a new Passw0rd"}).OK(nil)
	require.True(t, signsIn(c, "li.wei", "a new Passw0rd"))
	require.False(t, signsIn(c, "li.wei", "wrong"))
	c.Post(path(user, "real-name-verification"), object{"real_name": "李伟", "id_number": residentID}).OK(nil)
	c.Post(path(user, "resign"), object{"effective_time": s.Clock.Now().Add(time.Hour), "reason": "retired",
		"successor_id": addUser(t, c, "successor")["id"]}).OK(nil)
	c.Post(path(user, "lock"), object{"reason": "on leave", "until": s.Clock.Now().Add(time.Hour)}).OK(nil)
	setting := c.Patch(settings, object{"shared_contacts": true}).ID()
	credential := c.Post(credentials, object{"user_id": number(user), "provider_code": "wechat", "id1": "1", "id2": "2",
		"metadata": "m", "username": "lw", "display_name": "李"}).ID()

	for name, document := range map[string]struct{ collection, id string }{
		"user": {"users", user["id"].(string)}, "account": {"accounts", user["id"].(string)},
		"avatar": {"avatars", user["id"].(string)}, "credential": {"credentials", credential},
		"settings": {"settings", setting},
	} {
		testkit.GoldenDocument(t, s, began, name, document.collection, document.id, steady)
	}
}
