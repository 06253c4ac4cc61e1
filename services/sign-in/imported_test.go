package signin_test

import (
	"bytes"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/sign-in/internal/testkit/mailtest"
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

// storedItem is what tests read of stored links, and of imported users who are to be invited.
type storedItem struct {
	docstore.Meta
	Next clock.Time `json:"next"`
}

var (
	storedLinks     = docstore.Define(docstore.Schema[storedItem]{Name: "invitation_links", Noun: "link"})
	storedNewcomers = docstore.Define(docstore.Schema[storedItem]{Name: "invitation_requests", Noun: "request"})
)

func (w *world) stored(of *docstore.Collection[storedItem]) (all []*storedItem) {
	w.t.Helper()
	page, err := of.Page(request.System(w.t.Context(), "acme"), w.Deps.Store, docstore.Query{Limit: 100})
	w.must(err)
	for _, doc := range page.Docs {
		item, err := doc.Value()
		w.must(err)
		all = append(all, item)
	}
	return all
}

// waiting is how many imported users are still to be invited.
func (w *world) waiting() int {
	w.t.Helper()
	return len(w.stored(storedNewcomers))
}

// holds has users imported while no one can be invited, and waits until the service has tried them all.
func (w *world) holds(users ...string) {
	w.t.Helper()
	for _, name := range users {
		w.imports(w.users[name], true)
	}
	const claimed = 30 * time.Second // a lease
	wait.Until(w.t, func() bool {
		resting := 0
		for _, item := range w.stored(storedNewcomers) {
			if item.Next.Sub(w.Clock.Now()) > claimed {
				resting++
			}
		}
		return resting == len(users)
	})
}

// untilWaiting lets time pass until so many imported users are still to be invited.
func (w *world) untilWaiting(n int, step time.Duration) {
	w.t.Helper()
	wait.Until(w.t, func() bool {
		w.Clock.Advance(step)
		w.RunTask("invite imported users")
		return w.waiting() == n
	})
}

// Imported users are invited once, if their import asks for it and they have no password by then.
func TestImportedUsersAreInvited(t *testing.T) {
	t.Parallel()
	w := withNewcomers(t)
	w.users["has"] = newcomer("33", "has")
	w.imports(w.users["eve"], false)
	w.change(func() { w.away["users"] = true })
	w.holds("has", "bob")
	w.change(func() { w.users["has"].password, w.away["users"] = "by an administrator", false })
	w.untilWaiting(0, 10*time.Second)
	require.Equal(t, []any{"31"}, w.inviter().Items("/v1/invitations", "id"))
	require.Equal(t, "client:importer", w.invitation("31")["invited_by"])
	link := w.link(1)

	w.change(func() { w.away["users"] = true })
	w.imports(w.users["bob"], true) // told again
	w.holds("eve")
	w.change(func() { w.away["users"] = false })
	w.untilWaiting(0, 10*time.Second)
	w.link(2)
	require.Len(t, w.mails.Mails(), 2)
	w.browser().follow(link).choose("a new battery staple").shows(200, "bob")
}

// Imported users leave a fifth of the limit to those who are invited by hand, and are not waited for for ever.
func TestImportedUsersLeaveRoom(t *testing.T) {
	t.Parallel()
	w := withNewcomers(t)
	limits := object{"per_hour": 5, "per_hour_of_address": 100}
	w.admin().Patch("/v1/sign-in/settings", object{"messages": limits}).OK(nil)
	w.change(func() { w.away["users"] = true })
	w.holds(w.many(6)...)
	w.change(func() { w.away["users"] = false })
	w.untilWaiting(2, time.Second)
	w.invite("31")
	w.inviter().Post("/v1/users/32/invite", "").Problem(429, "rate_limited")
	w.Clock.Advance(7 * 24 * time.Hour)
	w.untilWaiting(0, time.Hour)
	w.EventsUntil(func(e stream.Event) bool {
		return e.Type == "idp.message.failed" && bytes.Contains(e.Data, []byte(`"invitation"`))
	})
}

// many adds newcomers, and returns their names.
func (w *world) many(n int) (names []string) {
	w.change(func() {
		for i := range n {
			id := strconv.Itoa(100 + i)
			w.users["n"+id] = newcomer(id, "n"+id)
			names = append(names, "n"+id)
		}
	})
	return names
}

// However often there is no room, nobody is lost.
func TestImportedUsersWaitForRoom(t *testing.T) {
	t.Parallel()
	w := withNewcomers(t)
	w.admin().Patch("/v1/sign-in/settings", object{"messages": object{"per_hour": 1}}).OK(nil)
	w.change(func() { w.away["users"] = true })
	w.holds(w.many(13)...)
	w.change(func() { w.away["users"] = false })
	w.untilWaiting(0, 20*time.Minute)
	require.Len(t, w.inviter().Items("/v1/invitations?page_size=50", "id"), 13)
}

// Without a mail server imported users wait for one. Who is invited by hand meanwhile gets one mail, and a revocation
// ends the waiting.
func TestImportedUsersWaitForAServer(t *testing.T) {
	t.Parallel()
	w := withNewcomers(t)
	mails := w.mails
	w.users["last"] = newcomer("33", "last")
	w.change(func() { w.mails = nil })
	w.holds("bob", "eve", "last")
	require.Empty(t, w.inviter().Items("/v1/invitations", "id"))
	w.change(func() { w.mails = mails })
	w.invite("31")
	w.invite("32")
	w.inviter().Delete("/v1/invitations/32", nil).OK(nil)
	require.Equal(t, 2, w.waiting())
	w.untilWaiting(0, time.Hour)
	require.ElementsMatch(t, []any{"31", "33"}, w.inviter().Items("/v1/invitations", "id"))
	w.sendMails()
	wait.Until(t, func() bool {
		return slices.ContainsFunc(mails.Mails(), func(m mailtest.Mail) bool { return m.To == "last@acme.test" })
	})
	to := map[string]int{}
	for _, m := range mails.Mails() {
		to[m.To]++
	}
	require.Equal(t, []int{1, 1}, []int{to["bob@acme.test"], to["last@acme.test"]})
}
