package signin_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// imports tells of a user whom somebody has imported.
func (w *world) imports(u *user, invite bool) {
	w.t.Helper()
	u.sequence += 10
	data := object{"record": u.record}
	if invite {
		data["invite"] = true
	}
	w.tellData("user", "created", u.record["id"].(string), u.sequence, data)
}

// waiting is how many imported users are still to be invited.
func (w *world) waiting() int {
	w.t.Helper()
	return len(testkit.Stored(w.t, w.Service, "acme", "invitation_requests"))
}

// Imported users are invited once, if their import asks for it and they have no password by then.
func TestImportedUsersAreInvited(t *testing.T) {
	t.Parallel()
	w := withNewcomers(t)
	w.users["has"] = newcomer("33", "has")
	w.imports(w.users["has"], true)
	w.imports(w.users["eve"], false)
	w.imports(w.users["bob"], true)
	wait.Until(t, func() bool { return w.waiting() == 2 })
	w.change(func() { w.users["has"].password = "by an administrator" })
	w.RunTask("invite imported users")
	require.Zero(t, w.waiting())
	require.Equal(t, []any{"31"}, w.inviter().Items("/v1/invitations", "id"))
	require.Equal(t, "client:importer", w.invitation("31")["invited_by"])
	link := w.link(1)

	w.imports(w.users["bob"], true) // told again
	w.imports(w.users["eve"], true)
	wait.Until(t, func() bool { return w.waiting() == 1 })
	w.RunTask("invite imported users")
	w.link(2)
	require.Len(t, w.mails.Mails(), 2)
	w.browser().follow(link).choose("a new battery staple").shows(200, "bob")
}

// Beyond the limits imported users wait, and no service that is away loses one.
func TestImportedUsersWait(t *testing.T) {
	t.Parallel()
	w := withNewcomers(t)
	w.admin().Patch("/v1/sign-in/settings", object{"messages": object{"per_hour": 1}}).OK(nil)
	w.change(func() { w.away["users"] = true })
	w.imports(w.users["bob"], true)
	w.imports(w.users["eve"], true)
	wait.Until(t, func() bool { return w.waiting() == 2 })
	w.RunTask("invite imported users")
	require.Equal(t, 2, w.waiting())
	w.change(func() { w.away["users"] = false })
	for range 3 {
		w.Clock.Advance(5 * time.Second)
		w.RunTask("invite imported users")
	}
	require.Equal(t, 1, w.waiting())
	require.Len(t, w.inviter().Items("/v1/invitations", "id"), 1)
	w.Clock.Advance(90 * time.Minute)
	w.RunTask("invite imported users")
	require.Zero(t, w.waiting())
	require.Len(t, w.inviter().Items("/v1/invitations", "id"), 2)
}
