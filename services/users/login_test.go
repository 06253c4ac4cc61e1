package users_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/questions"
)

// login verifies a login.
func login(t testing.TB, c *testkit.Client, name, secret string) object {
	t.Helper()
	return c.Post("/v1/thin/login-verification", object{"login_name": name, "password": secret}).Object()
}

func signsIn(c *testkit.Client, name, secret string) bool {
	return c.Post("/v1/thin/login-verification", object{"login_name": name, "password": secret}).
		Object()["verified"] == true
}

func TestLogin(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "Lǐ.伟", object{"email": "Li.Wei@acme.test", "mobile": "+8613800000000",
		"employee_number": "A-17", "display_name": "李伟", "password": password})
	s.Clock.Advance(time.Second)
	want := object{"verified": true, "user_id": user["id"], "must_change_password": false, "mfa_required": false}
	for _, name := range []string{"Lǐ.伟", "LǏ.伟", "Li\u030c.伟", "li.wei@ACME.test", "+8613800000000",
		"＋８６１３８００００００００", "Lǐ.伟 ", "\tli.wei@acme.test\n"} {
		require.Equal(t, want, login(t, c, name, password), name)
	}
	now := c.Get(path(user)).Object()
	require.Equal(t, s.Clock.Now().String(), now["time_last_login"])
	require.Equal(t, []any{user["version"], user["time_modified"]}, []any{now["version"], now["time_modified"]},
		"a login is no change of the record")
	require.Equal(t, `"1"`, c.Get(path(user)).Header.Get("ETag"), "an administrator's If-Match holds")

	refused := object{"verified": false, "reason": "invalid_credentials"}
	for _, name := range []string{"nobody", "", "A-17", "李伟", "Lǐ", user["id"].(string), "Lǐ. 伟", "%", "\x00"} {
		require.Equal(t, refused, login(t, c, name, password), name)
	}
	for _, secret := range []string{"", "A good Passw0rd", password + " ", strings.Repeat("x", 1024), "\x00"} {
		require.Equal(t, refused, login(t, c, "nobody", secret))
	}
	require.Equal(t, refused, login(t, in(s, "globex"), "Lǐ.伟", password))
	unchanged(t, c, now)

	s.As("acme", auth.UsersRead, auth.UsersWrite, auth.UsersSecrets).
		Post("/v1/thin/login-verification", object{"login_name": "x", "password": "x"}).
		Problem(http.StatusForbidden, "forbidden")
	for body, location := range map[string]string{
		`{"login_name":"x"}`: "body.password", `{"password":"x"}`: "body.login_name",
		`{"login_name":7,"password":"x"}`:                                   "body.login_name",
		`{"login_name":"x","password":"` + strings.Repeat("x", 1025) + `"}`: "body.password",
		`{"login_name":"` + strings.Repeat("x", 257) + `","password":"x"}`:  "body.login_name",
	} {
		c.Post("/v1/thin/login-verification", body).Problem(http.StatusBadRequest, "invalid_parameters", location)
	}
}

// Only callers who know the password get the true reason.
func TestLoginReasons(t *testing.T) {
	t.Parallel()
	for reason, do := range map[string]func(*testkit.Client, object){
		"locked":   func(c *testkit.Client, u object) { c.Post(path(u, "lock"), nil).OK(nil) },
		"disabled": func(c *testkit.Client, u object) { c.Patch(path(u), object{"status": "0"}).OK(nil) },
		"resigned": func(c *testkit.Client, u object) { c.Post(path(u, "resign"), nil).OK(nil) },
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			_, c := acme(t)
			user := addUser(t, c, "li.wei", object{"password": password})
			do(c, user)
			user = c.Get(path(user)).Object()
			require.Equal(t, object{"verified": false, "reason": reason}, login(t, c, "li.wei", password))
			require.Equal(t, object{"verified": false, "reason": "invalid_credentials"}, login(t, c, "li.wei", "wrong"))
			unchanged(t, c, user)
		})
	}
	t.Run("no password", func(t *testing.T) {
		t.Parallel()
		_, c := acme(t)
		addUser(t, c, "li.wei")
		for _, secret := range []string{"", "x"} {
			require.Equal(t, object{"verified": false, "reason": "invalid_credentials"}, login(t, c, "li.wei", secret))
		}
	})
}

func TestLockout(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei", object{"email": "li.wei@acme.test", "password": password})
	wrong := func(times int) {
		t.Helper()
		for range times {
			require.Equal(t, "invalid_credentials", login(t, c, "li.wei", "wrong")["reason"])
		}
	}
	wrong(4)
	require.True(t, signsIn(c, "li.wei", password), "four are not enough")
	wrong(4)
	require.True(t, signsIn(c, "li.wei", password), "a success restarts the count")
	wrong(4)
	login(t, c, "LI.WEI@acme.test", "wrong") // another name of the same user
	require.Equal(t, "locked", login(t, c, "li.wei", password)["reason"])
	locked := c.Get(path(user)).Object()
	require.Equal(t, true, locked["locked"])
	require.Equal(t, s.Clock.Now().Add(15*time.Minute).String(), locked["locked_until"])

	s.Clock.Advance(10 * time.Minute)
	wrong(10) // nobody can lock a user out permanently
	unchanged(t, c, locked)
	s.Clock.Advance(5*time.Minute - time.Millisecond)
	require.Equal(t, "invalid_credentials", login(t, c, "li.wei", password)["reason"],
		"someone who kept guessing does not learn the password")
	s.Clock.Advance(time.Millisecond)
	require.True(t, signsIn(c, "li.wei", password))

	wrong(4)
	c.Post(path(user, "reset-password"), object{"new_password": "a new Passw0rd"}).OK(nil)
	wrong(4)
	require.True(t, signsIn(c, "li.wei", "a new Passw0rd"), "a new password restarts the count")
	wrong(5)
	c.Post(path(user, "unlock"), nil).OK(nil)
	wrong(4)
	require.True(t, signsIn(c, "li.wei", "a new Passw0rd"), "unlocking restarts the count")
}

// While a user is locked, the right password is recognized only until as many wrong ones came as lock a user. So
// guessing on reveals nothing.
func TestGuessingOnWhileLocked(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]func(*testkit.Client, object){
		"by failures": func(c *testkit.Client, u object) {
			for range 5 {
				login(t, c, "li.wei", "wrong")
			}
		},
		"by an operation": func(c *testkit.Client, u object) { c.Post(path(u, "lock"), nil).OK(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := acme(t)
			user := addUser(t, c, "li.wei", object{"password": password})
			lock(c, user)
			for range 4 {
				login(t, c, "li.wei", "wrong")
			}
			require.Equal(t, "locked", login(t, c, "li.wei", password)["reason"])
			login(t, c, "li.wei", "wrong")
			require.Equal(t, "invalid_credentials", login(t, c, "li.wei", password)["reason"])
			s.Clock.Advance(15 * time.Minute)
			if name == "by failures" {
				require.Equal(t, "invalid_credentials", login(t, c, "li.wei", "wrong")["reason"])
				require.True(t, signsIn(c, "li.wei", password), "the count restarts when the lock ends")
				return
			}
			require.Equal(t, "locked", login(t, c, "li.wei", password)["reason"],
				"once the wrong passwords no longer count")
		})
	}
}

// Wrong passwords within any 15 minutes count.
func TestLockoutWindow(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	addUser(t, c, "li.wei", object{"password": password})
	wrongAfter := func(pauses ...time.Duration) {
		t.Helper()
		for _, pause := range pauses {
			s.Clock.Advance(pause)
			require.Equal(t, "invalid_credentials", login(t, c, "li.wei", "wrong")["reason"])
		}
	}
	isLocked := func() bool { return c.Get("/v1/users?locked=true").Object()["total"] == 1.0 }
	wrongAfter(0, 4*time.Minute, 4*time.Minute, 4*time.Minute, 3*time.Minute) // the first was 15 minutes ago
	require.False(t, isLocked())
	wrongAfter(59 * time.Second) // five within 11 min 59 s, without the very first
	require.True(t, isLocked())
}

func TestLockoutAtOnce(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei", object{"password": password})
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() { login(t, c, "li.wei", "wrong") })
	}
	all.Wait()
	require.False(t, signsIn(c, "li.wei", password))
	counts := map[string]int{}
	for _, action := range actions(t, s, c, user) {
		counts[action]++
	}
	require.Equal(t, map[string]int{"created": 1, "login_failed": 17, "locked": 1, "deleted": 1}, counts)
}

func TestLockoutIsConfigurable(t *testing.T) {
	t.Parallel()
	config := cheap()
	config.LockoutFailures, config.LockoutWithin, config.LockoutFor = 2, time.Minute, time.Hour
	s := startWith(t, config, nil)
	c := in(s, "acme")
	user := addUser(t, c, "li.wei", object{"password": password})
	login(t, c, "li.wei", "wrong")
	s.Clock.Advance(time.Minute)
	login(t, c, "li.wei", "wrong")
	require.Equal(t, false, c.Get(path(user)).Object()["locked"])
	login(t, c, "li.wei", "wrong")
	require.Equal(t, s.Clock.Now().Add(time.Hour).String(), c.Get(path(user)).Object()["locked_until"])
}

// A password is the same however a keyboard composes it. A hash of the typed bytes, made earlier or by another system,
// is replaced at the first success.
func TestPasswordsAreNormalised(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	const typed, composed = "Ame\u0301lie ﬁ ＡＢＣ", "Am\u00e9lie fi ABC"
	user := addUser(t, c, "amy", object{"password": typed})
	require.True(t, signsIn(c, "amy", composed))
	require.True(t, signsIn(c, "amy", typed))
	c.Post(path(user, "reset-password"), object{"new_password": composed}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.new_password")
	c.Post(path(user, "change-password"), object{"old_password": composed, "new_password": "ａ new Passw0rd"}).OK(nil)
	require.True(t, signsIn(c, "amy", "a new Passw0rd"))

	before, err := bcrypt.GenerateFromPassword([]byte(typed), bcrypt.MinCost)
	require.NoError(t, err)
	line := importLines(t, c, "", fmt.Sprintf(`{"username":"old","password_hash":%q}`, before))[0]
	require.False(t, signsIn(c, "old", composed), "not before the password was typed as it was hashed")
	require.True(t, signsIn(c, "old", typed))
	require.True(t, signsIn(c, "old", composed))
	require.NotContains(t, testkit.Stored(t, s, "acme", "accounts")[line.ID], string(before))
}

// An unknown name, and a user without a password, cost a hash, too: the test compares the memory that is used.
func TestUnknownNamesCostAHash(t *testing.T) {
	config := cheap() // not parallel: it counts allocations
	config.PasswordMemory = 16 << 10
	s := startWith(t, config, nil)
	c := in(s, "acme")
	addUser(t, c, "known", object{"password": password})
	addUser(t, c, "without")
	for _, name := range []string{"known", "unknown", "without"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.False(t, signsIn(c, name, "wrong"))
		runtime.ReadMemStats(&after)
		require.Greater(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20), name)
	}
	require.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(testkit.Stored(t, s, "acme", "accounts"))),
		func(id string) bool {
			return strings.HasPrefix(id, "nobody-")
		}), "an unknown name costs a transaction, too, as a wrong password does")
}

// Hashes of other systems are replaced at the first success, and only then.
func TestImportedHashes(t *testing.T) {
	t.Parallel()
	ours, err := bcrypt.GenerateFromPassword([]byte("密码🔑pass"), bcrypt.MinCost)
	require.NoError(t, err)
	for scheme, hash := range map[string]string{
		"bcrypt":          string(ours),
		"pbkdf2":          "$pbkdf2-sha256$i=1000,l=32$8PHy8/T19vf4+fr7/P3+/w$KsPhSj2U8lAmhBtOPmykJT0WrbME0zvRr1XJnoXgesY",
		"pbkdf2, passlib": "$pbkdf2-sha512$1000$8PHy8/T19vf4.fr7/P3./w$70LIJXq5n/NQRsJStg7DfernE7xFGAi1llV/.Zf0bLPVYbhl3kJu3XEPuZvR7Z/25GMU3Rp3NHj3E5mkb8G5sQ",
		"scrypt":          "$scrypt$ln=10,r=8,p=2$8PHy8/T19vf4+fr7/P3+/w$yW1nts6ppi23f/z9NRh9oLQZh0nud/Na9WTrgcb18Ec",
	} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			s, c := acme(t)
			line := importLines(t, c, "", fmt.Sprintf(`{"username":"li.wei","password_hash":%q}`, hash))[0]
			require.Equal(t, "created", line.Status)
			require.False(t, signsIn(c, "li.wei", "wrong"))
			require.Contains(t, testkit.Stored(t, s, "acme", "accounts")[line.ID], hash)
			before := c.Get("/v1/users/" + line.ID).Object()
			require.Equal(t, true, before["password_set"])

			require.True(t, signsIn(c, "li.wei", "密码🔑pass"))
			account := testkit.Stored(t, s, "acme", "accounts")[line.ID]
			require.NotContains(t, account, hash)
			require.Contains(t, account, `"password":"$argon2id$`)
			require.True(t, signsIn(c, "li.wei", "密码🔑pass"))
			require.Equal(t, account, testkit.Stored(t, s, "acme", "accounts")[line.ID], "once is enough")
			require.Equal(t, before["time_password_changed"], c.Get("/v1/users/" + line.ID).
				Object()["time_password_changed"])
			c.Post("/v1/users/"+line.ID+"/reset-password", object{"new_password": "密码🔑pass"}).
				Problem(http.StatusBadRequest, "invalid_parameters", "body.new_password")
		})
	}
}

// Whether a user has a second factor follows from what the sign-in service tells, however often it does.
func TestLoginOfAUserWithFactors(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei", object{"password": password})
	s.TestTells("factor")
	sequence := 0
	tell := func(action, id, owner, kind string) {
		sequence++
		number := strconv.Itoa(sequence)
		event, err := json.Marshal(object{
			"specversion": "1.0", "id": "factor/" + id + "/" + number, "source": "/factors", "type": "idp.factor." + action,
			"subject": id, "time": s.Clock.Now(), "tenantid": "acme", "sequence": number, "actor": "sign-in",
			"data": object{"record": object{"id": id, "user_id": owner, "type": kind}},
		})
		require.NoError(t, err)
		m := nats.NewMsg("idp.events.acme.factor." + action)
		m.Data = event
		wait.Until(t, func() bool {
			_, err := s.Deps.Bus.JetStream().PublishMsg(context.Background(), m)
			return err == nil
		})
	}
	until := func(required bool, methods ...any) {
		t.Helper()
		wait.Until(t, func() bool {
			told := login(t, c, "li.wei", password)
			list, _ := told["methods"].([]any)
			return told["mfa_required"] == required && len(list) == len(methods) && slices.Equal(list, methods)
		})
	}
	until(false)
	id := user["id"].(string)
	tell("created", "91", id, "otp")
	tell("created", "92", id, "recovery_code")
	until(true, "otp")
	tell("created", "91", id, "otp")
	tell("created", "93", id, "webauthn")
	tell("created", "94", "another", "webauthn")
	until(true, "otp", "webauthn")
	require.NotContains(t, login(t, c, "li.wei", "a wrong password"), "methods")
	tell("deleted", "91", id, "otp")
	tell("deleted", "92", id, "recovery_code")
	until(true, "webauthn")
	tell("deleted", "93", id, "webauthn")
	tell("deleted", "93", id, "webauthn")
	until(false)
	tell("deleted", "95", id, "otp")
	tell("created", "95", id, "otp") // late
	tell("created", "96", id, "webauthn")
	until(true, "webauthn")
	s.Clock.Advance(31 * 24 * time.Hour)
	s.RunTask("forget second factors")
	c = in(s, "acme")
	until(true, "webauthn")
}

// What an application demands after the password is asked of sign-in, which also looks at the code.
func TestSecondStepOfALogin(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei", object{"password": password})
	verify := func(more object) *testkit.Answer {
		body := object{"login_name": "li.wei", "password": password}
		maps.Copy(body, more)
		return c.Post("/v1/thin/login-verification", body)
	}
	verify(object{"app_id": "9"}).Problem(http.StatusServiceUnavailable, "unavailable")
	asked := make(chan questions.SecondStep, 1)
	require.NoError(t, questions.WhatIsDue.Answer(s.Deps.Bus,
		func(_ context.Context, q questions.SecondStep) (questions.Due, error) {
			asked <- q
			switch {
			case q.AppID == "404":
				return questions.Due{}, apperr.Missing("application")
			case q.Code == "000000":
				return questions.Due{Refused: questions.InvalidCode}, nil
			case q.Code != "":
				return questions.Due{}, nil
			}
			return questions.Due{Required: true, Methods: []string{"otp"}}, nil
		}))
	right := object{"verified": true, "user_id": user["id"], "must_change_password": false}
	with := func(more object) object {
		all := maps.Clone(right)
		maps.Copy(all, more)
		return all
	}
	require.Equal(t, with(object{"mfa_required": true, "methods": []any{"otp"}}),
		verify(object{"app_id": "9"}).Object())
	q := <-asked
	require.Equal(t, []string{user["id"].(string), "9", ""}, []string{q.UserID, q.AppID, q.Code})
	require.Contains(t, string(q.User), `"username":"li.wei"`)
	require.Equal(t, with(object{"mfa_required": false}), verify(object{"app_id": "9", "otp": "123456"}).Object())
	require.Equal(t, "123456", (<-asked).Code)
	require.Equal(t, object{"verified": false, "reason": "invalid_otp"}, verify(object{"otp": "000000"}).Object())
	<-asked
	verify(object{"app_id": "404"}).Problem(http.StatusBadRequest, "invalid_parameters", "body.app_id")
	<-asked
	require.Equal(t, object{"verified": false, "reason": "invalid_credentials"},
		verify(object{"password": "another", "otp": "123456"}).Object())
	require.Empty(t, asked, "a code is not looked at before the password is right")
	require.Equal(t, with(object{"mfa_required": false}), verify(nil).Object())
	require.Empty(t, asked)
}
