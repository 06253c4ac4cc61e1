package users_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/questions"
)

// A lock by wrong passwords ends no sessions, as strangers can cause it. No caller's lock passes for one.
func TestLockWithTheReasonOfFailures(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	user := addUser(t, c, "li.wei")
	c.Post(path(user, "lock"), object{"reason": questions.LockedByFailures}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.reason")
	c.Post("/v1/batch/users-lock", object{"ids": []any{user["id"]}, "reason": questions.LockedByFailures}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.reason")
}

func TestLock(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei", object{"password": password})

	locked := c.Post(path(user, "lock"), nil).Object()
	require.Equal(t, []any{true, "", nil}, []any{locked["locked"], locked["lock_reason"], locked["locked_until"]})
	require.Equal(t, "1", locked["status"])
	require.Equal(t, "locked", login(t, c, "li.wei", password)["reason"])

	until := s.Clock.Now().Add(time.Hour)
	answer := c.Post(path(user, "lock"), object{"reason": "休假 <leave>", "until": until})
	locked = answer.Object()
	require.Equal(t, []any{true, "休假 <leave>", until.String()}, []any{locked["locked"], locked["lock_reason"],
		locked["locked_until"]})
	require.Equal(t, `"3"`, answer.Header.Get("ETag"))
	unchanged(t, c, locked)

	for body, location := range map[string]string{
		`{"until":"` + s.Clock.Now().String() + `"}`:       "body.until",
		`{"until":"2020-01-01T00:00:00Z"}`:                 "body.until",
		`{"until":"tomorrow"}`:                             "body.until",
		`{"until":7}`:                                      "body.until",
		`{"reason":"` + strings.Repeat("字", 257) + `"}`:    "body.reason",
		`{"reason":"\u0007"}`:                              "body.reason",
		`{"why":"?"}`:                                      "body.why",
		`{"reason":"fine","until":"2020-01-01T00:00:00Z"}`: "body.until",
	} {
		c.Post(path(user, "lock"), body).Problem(http.StatusBadRequest, "invalid_parameters", location)
	}
	unchanged(t, c, locked)
	forever := c.Post(path(user, "lock"), object{"reason": strings.Repeat("字", 256), "until": nil}).Object()
	require.Nil(t, forever["locked_until"])

	open := c.Post(path(user, "unlock"), nil).Object()
	require.Equal(t, []any{false, "", nil}, []any{open["locked"], open["lock_reason"], open["locked_until"]})
	require.True(t, signsIn(c, "li.wei", password))
	open = c.Get(path(user)).Object()
	require.Equal(t, open, c.Post(path(user, "unlock"), nil).Object(), "unlocking an unlocked user changes nothing")

	c.Post("/v1/users/1/lock", nil).Problem(http.StatusNotFound, "not_found")
	c.Post("/v1/users/1/unlock", nil).Problem(http.StatusNotFound, "not_found")
	in(s, "globex").Post(path(user, "lock"), nil).Problem(http.StatusNotFound, "not_found")
	unchanged(t, c, open)
	require.Equal(t, []string{"created", "locked", "locked", "locked", "unlocked", "login_verified", "deleted"},
		actions(t, s, c, user))
}

func TestLockIsConditional(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	user := addUser(t, c, "li.wei")
	for _, operation := range []string{"lock", "unlock", "resign", "reinstate", "reset-password"} {
		c.With("If-Match", `"7"`).Post(path(user, operation), nil).Problem(http.StatusPreconditionFailed,
			"version_mismatch")
	}
	unchanged(t, c, user)
	c.With("If-Match", `"1"`).Post(path(user, "lock"), nil).OK(nil)
}

// An operation with an optional body accepts what clients send for an empty form, but nothing else that is not JSON.
func TestBodilessOperations(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	user := addUser(t, c, "li.wei")
	for _, contentType := range []string{"", "application/json", "application/x-www-form-urlencoded",
		"multipart/form-data; boundary=x", "text/plain"} {
		c := c.With("Content-Type", contentType)
		c.Post(path(user, "unlock"), "").OK(nil)
		if contentType != "text/plain" {
			c.Post(path(user, "lock"), "").OK(nil)
		}
	}
	c.With("Content-Type", "text/plain").Post(path(user, "lock"), `{"reason":"x"}`).
		Problem(http.StatusUnsupportedMediaType, "unsupported_media_type")
	c.Post(path(user, "lock"), `{"reason":`).Problem(http.StatusBadRequest, "invalid_parameters")
	c.Post(path(user, "lock"), `[]`).Problem(http.StatusBadRequest, "invalid_parameters")
}

// When a lock's end comes, everybody sees that it is over, and its event follows soon.
func TestLockEndsByItself(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei", object{"password": password})
	c.Post(path(user, "lock"), object{"reason": "x", "until": s.Clock.Now().Add(time.Minute)}).OK(nil)
	s.Clock.Advance(time.Minute - time.Millisecond)
	require.Equal(t, true, c.Get(path(user)).Object()["locked"])
	require.Equal(t, "locked", login(t, c, "li.wei", password)["reason"])
	s.Clock.Advance(time.Millisecond)
	open := c.Get(path(user)).Object()
	require.Equal(t, []any{false, "", nil}, []any{open["locked"], open["lock_reason"], open["locked_until"]})

	last := untilAction(s, user, "unlocked")
	require.JSONEq(t, `"expired"`, string(members(t, last.Data)["reason"]))
	require.EqualValues(t, 30, last.Sequence)
	require.EqualValues(t, 3, c.Get(path(user)).Object()["version"])
	require.True(t, signsIn(c, "li.wei", password))
}

// A request that changes a user whose lock is over sees the user unlocked, whether or not that was stored before.
func TestLockAfterLockEnded(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	c.Post(path(user, "lock"), object{"until": s.Clock.Now().Add(time.Minute)}).OK(nil)
	s.Clock.Advance(time.Minute)
	locked := c.Post(path(user, "lock"), object{"reason": "again"}).Object()
	require.EqualValues(t, 4, locked["version"])
	require.Equal(t, []string{"created", "locked", "unlocked", "locked", "deleted"}, actions(t, s, c, user))
}

func TestBatchLock(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	var users []object
	for n := range 4 {
		users = append(users, addUser(t, c, fmt.Sprint("user", n)))
	}
	a, b, gone := users[0], users[1], c.Post(path(users[2], "resign"), nil).Object()
	foreign := addUser(t, in(s, "globex"), "foreign")
	until := s.Clock.Now().Add(time.Hour)

	for _, operation := range []string{"lock", "unlock"} {
		url := "/v1/batch/users-" + operation
		c.Post(url, object{"ids": []any{a["id"], "nobody", b["id"], foreign["id"]}}).
			Problem(http.StatusBadRequest, "invalid_parameters", "body.ids[1]", "body.ids[3]")
		for _, bad := range []any{object{}, object{"ids": []any{}}, object{"ids": nil},
			object{"ids": make([]string, 1001)}, object{"ids": []any{a["id"]}, "id": "x"}} {
			c.Post(url, bad).Problem(http.StatusBadRequest, "invalid_parameters")
		}
	}
	c.Post("/v1/batch/users-lock", object{"ids": []any{a["id"], gone["id"]}}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.ids[1]")
	c.Post("/v1/batch/users-lock", object{"ids": []any{a["id"]}, "until": "2020-01-01T00:00:00Z"}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.until")
	unchanged(t, c, a)
	unchanged(t, c, b)
	unchanged(t, c, gone)
	unchanged(t, in(s, "globex"), foreign)

	ids := object{"ids": []any{a["id"], b["id"], a["id"]}, "reason": "audit", "until": until}
	require.Equal(t, object{"ids": ids["ids"]}, c.Post("/v1/batch/users-lock", ids).Object())
	for _, user := range []object{a, b} {
		user = c.Get(path(user)).Object()
		require.Equal(t, []any{true, "audit", until.String(), 2.0}, []any{user["locked"], user["lock_reason"],
			user["locked_until"], user["version"]})
	}
	require.Equal(t, object{"ids": []any{b["id"]}}, c.Post("/v1/batch/users-unlock", object{"ids": []any{b["id"]}}).
		Object())
	require.Equal(t, true, c.Get(path(a)).Object()["locked"])
	require.Equal(t, false, c.Get(path(b)).Object()["locked"])
	require.Equal(t, []string{"created", "deleted"}, actions(t, s, c, users[3]))
	require.Equal(t, []string{"created", "locked", "deleted"}, actions(t, s, c, a))
}

func TestBatchLockOfTheMost(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	var file strings.Builder
	for n := range 1000 {
		fmt.Fprintf(&file, "{\"username\":\"user%d\"}\n", n)
	}
	var ids []string
	for _, line := range importLines(t, c, "", file.String()) {
		ids = append(ids, line.ID)
	}
	c.Post("/v1/batch/users-lock", object{"ids": ids}).OK(nil)
	require.EqualValues(t, 1000, c.Get("/v1/users?locked=true").Object()["total"])
	c.Delete("/v1/batch/users", object{"ids": ids}).OK(nil)
	require.EqualValues(t, 0, c.Get("/v1/users").Object()["total"])
}

func TestResign(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user, successor := addUser(t, c, "li.wei", object{"password": password}), addUser(t, c, "wang.fang")
	foreign := addUser(t, in(s, "globex"), "foreign")
	for body, location := range map[string]string{
		fmt.Sprintf(`{"successor_id":%q}`, user["id"]):     "body.successor_id",
		fmt.Sprintf(`{"successor_id":%q}`, foreign["id"]):  "body.successor_id",
		`{"successor_id":"nobody"}`:                        "body.successor_id",
		`{"effective_time":"soon"}`:                        "body.effective_time",
		`{"reason":"` + strings.Repeat("x", 257) + `"}`:    "body.reason",
		`{"reason":"x","successor_id":"","status":"1"}`:    "body.status",
		`{"effective_time":"2026-01-31","reason":"a day"}`: "body.effective_time",
	} {
		c.Post(path(user, "resign"), body).Problem(http.StatusBadRequest, "invalid_parameters", location)
	}
	c.Post(path(user, "reinstate"), nil).Problem(http.StatusConflict, "invalid_state")
	unchanged(t, c, user)

	resigned := c.Post(path(user, "resign"), object{"reason": "退休", "successor_id": successor["id"]}).Object()
	require.Equal(t, []any{"resigned", s.Clock.Now().String(), 2.0},
		[]any{resigned["status"], resigned["time_resigned"], resigned["version"]})
	require.Equal(t, "resigned", login(t, c, "li.wei", password)["reason"])
	for _, operation := range []string{"resign", "lock"} {
		c.Post(path(user, operation), nil).Problem(http.StatusConflict, "invalid_state")
	}
	c.Post(path(successor, "resign"), object{"successor_id": user["id"]}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.successor_id")
	unchanged(t, c, resigned)
	unchanged(t, c, successor)

	last := untilAction(s, user, "resigned")
	data := members(t, last.Data)
	require.JSONEq(t, `"退休"`, string(data["reason"]))
	require.JSONEq(t, fmt.Sprintf("%q", successor["id"]), string(data["successor_id"]))

	back := c.Post(path(user, "reinstate"), nil).Object()
	require.Equal(t, []any{"1", nil, 3.0}, []any{back["status"], back["time_resigned"], back["version"]})
	require.True(t, signsIn(c, "li.wei", password))
	c.Post(path(user, "reinstate"), nil).Problem(http.StatusConflict, "invalid_state")

	past := c.Post(path(user, "resign"), object{"effective_time": "2026-01-31T00:00:00+08:00"}).Object()
	require.Equal(t, []any{"resigned", "2026-01-30T16:00:00.000Z"}, []any{past["status"], past["time_resigned"]})
	c.Post("/v1/users/1/resign", nil).Problem(http.StatusNotFound, "not_found")
}

func TestResignationComesByItself(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user, successor := addUser(t, c, "li.wei", object{"password": password}), addUser(t, c, "wang.fang")
	at := s.Clock.Now().Add(time.Hour)
	planned := c.Post(path(user, "resign"), object{"effective_time": at, "reason": "first"}).Object()
	require.Equal(t, []any{"1", at.String(), 2.0}, []any{planned["status"], planned["time_resigned"],
		planned["version"]})
	require.True(t, signsIn(c, "li.wei", password))

	at = s.Clock.Now().Add(time.Minute)
	c.Post(path(user, "resign"), object{"effective_time": at, "reason": "second", "successor_id": successor["id"]}).
		OK(nil)
	s.Clock.Advance(time.Minute - time.Millisecond)
	require.Equal(t, "1", c.Get(path(user)).Object()["status"])
	s.Clock.Advance(time.Millisecond)
	require.Equal(t, "resigned", c.Get(path(user)).Object()["status"])
	require.Equal(t, "resigned", login(t, c, "li.wei", password)["reason"])

	last := untilAction(s, user, "resigned")
	require.JSONEq(t, `"second"`, string(members(t, last.Data)["reason"]))
	require.JSONEq(t, fmt.Sprintf("%q", successor["id"]), string(members(t, last.Data)["successor_id"]))
	require.Equal(t, []string{"created", "updated", "login_verified", "updated", "resigned", "deleted"},
		actions(t, s, c, user))
}

func TestReinstateBeforeResigning(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	c.Post(path(user, "resign"), object{"effective_time": s.Clock.Now().Add(time.Minute)}).OK(nil)
	back := c.Post(path(user, "reinstate"), nil).Object()
	require.Equal(t, []any{"1", nil}, []any{back["status"], back["time_resigned"]})
	s.Clock.Advance(time.Hour)
	unchanged(t, in(s, "acme"), back)
}

// untilAction waits for the first event with that action about a user.
func untilAction(s interface {
	EventsUntil(func(stream.Event) bool) []stream.Event
}, user object, action string) stream.Event {
	events := s.EventsUntil(func(e stream.Event) bool {
		return e.Subject == user["id"] && e.Type == "idp.user."+action
	})
	return events[len(events)-1]
}

// A lock ends and a resignation takes effect before anybody reads the user: one change of the record, and events for
// both, in order.
func TestLockEndsAndResignationComesAtOnce(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	c.Post(path(user, "lock"), object{"until": s.Clock.Now().Add(time.Second)}).OK(nil)
	c.Post(path(user, "resign"), object{"effective_time": s.Clock.Now().Add(2 * time.Second), "reason": "retired"}).
		OK(nil)
	// Nothing may read the user between the two times, so the clock is moved in one step.
	s.Clock.Advance(3 * time.Second)
	resigned := untilAction(s, user, "resigned")
	require.JSONEq(t, `"retired"`, string(members(t, resigned.Data)["reason"]))
	require.EqualValues(t, 41, resigned.Sequence)
	require.Equal(t, []string{"created", "locked", "updated", "unlocked", "resigned", "deleted"},
		actions(t, s, c, user))
}
