package users_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

// guess sends a password to each operation that tells whether it is right. It returns what the answer tells: "right",
// "wrong", or "refused" if the answer is the same for both.
var guess = map[string]func(c *testkit.Client, user object, query, secret string) string{
	"login verification": func(c *testkit.Client, user object, query, secret string) string {
		body := object{"login_name": user["username"], "password": secret}
		answer := c.Post("/v1/thin/login-verification"+query, body).Object()
		if answer["verified"] == true || answer["reason"] != "invalid_credentials" {
			return "right"
		}
		return "wrong"
	},
	"change password": func(c *testkit.Client, user object, query, secret string) string {
		body := object{"old_password": secret, "new_password": "a new Passw0rd"}
		switch answer := c.Post(path(user, "change-password")+query, body); answer.Status {
		case http.StatusOK, http.StatusPreconditionFailed:
			return "right"
		case http.StatusConflict:
			return "refused"
		default:
			answer.Problem(http.StatusBadRequest, "invalid_parameters", "body.old_password")
			return "wrong"
		}
	},
	"change password to a bad one": func(c *testkit.Client, user object, query, secret string) string {
		body := object{"old_password": secret, "new_password": "bad"}
		switch doc := c.Post(path(user, "change-password")+query, body); {
		case doc.Status == http.StatusConflict:
			return "refused"
		case doc.Problem(http.StatusBadRequest, "invalid_parameters").Errors[0].Location == "body.new_password":
			return "right"
		default:
			return "wrong"
		}
	},
}

// A wrong password counts however it is sent: in a dry run, or with an If-Match that fails.
func TestDryRunsDoNotGuess(t *testing.T) {
	t.Parallel()
	for operation, try := range guess {
		for _, with := range []string{"", "?dry_run=true", "If-Match"} {
			t.Run(operation+" "+with, func(t *testing.T) {
				t.Parallel()
				s, c := acme(t)
				user := addUser(t, c, "li.wei", object{"password": password})
				attacker, query := c, with
				if with == "If-Match" {
					attacker, query = c.With("If-Match", `"777"`), ""
				}
				for range 4 {
					require.Equal(t, "wrong", try(attacker, user, query, "wrong"))
				}
				if with == "?dry_run=true" {
					before := c.Get(path(user)).Object()
					require.Equal(t, "right", try(attacker, user, query, password))
					unchanged(t, c, before)
				}
				require.Equal(t, "wrong", try(attacker, user, query, "wrong"),
					"a success in a dry run does not restart the count")
				now := c.Get(path(user)).Object()
				require.Equal(t, true, now["locked"])
				want := []string{"created", "login_failed", "login_failed", "login_failed", "login_failed",
					"login_failed", "locked", "deleted"}
				require.Equal(t, want, actions(t, s, c, user))
			})
		}
	}
}

// Guesses at the same time learn no more than guesses one after the other.
func TestGuessesAtOnce(t *testing.T) {
	t.Parallel()
	const limit, guesses = 5, 64
	for operation, try := range guess {
		for _, query := range []string{"", "?dry_run=true"} {
			t.Run(operation+query, func(t *testing.T) {
				t.Parallel()
				_, c := acme(t)
				user := addUser(t, c, "li.wei", object{"password": password})
				told := make([]string, guesses)
				basic.AtOnce(guesses, func(i int) int {
					told[i] = try(c, user, query, fmt.Sprint("wrong ", i))
					return 0
				})
				counts := map[string]int{}
				for _, answer := range told {
					counts[answer]++
				}
				require.Equal(t, true, c.Get(path(user)).Object()["locked"])
				if operation == "login verification" {
					require.Equal(t, map[string]int{"wrong": guesses}, counts)
					require.Equal(t, "wrong", try(c, user, query, password), "whatever the password")
				} else {
					require.Equal(t, map[string]int{"wrong": limit, "refused": guesses - limit}, counts)
					require.Equal(t, "refused", try(c, user, query, password), "whatever the password")
				}
			})
		}
	}
}

// A reset that changes nothing tells whether a password is one of the user's last five. So these resets are limited
// like wrong passwords: after five, more are refused until the window is over.
func TestResetsThatChangeNothingAreLimited(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei", object{"password": password})
	reset := path(user, "reset-password")
	try := func(c *testkit.Client, query, secret string) int {
		return c.Post(reset+query, object{"new_password": secret}).Status
	}
	require.Equal(t, map[int]int{http.StatusOK: 5, http.StatusTooManyRequests: 27}, basic.AtOnce(32, func(i int) int {
		return try(c, "?dry_run=true", fmt.Sprint("a new Passw0rd ", i))
	}))
	unchanged(t, c, user)
	require.Equal(t, http.StatusTooManyRequests, try(c, "?dry_run=true", password), "whatever the password")
	require.Equal(t, http.StatusTooManyRequests, try(c.With("If-Match", `"7"`), "", password))
	answer := c.Post(reset, object{"new_password": password})
	answer.Problem(http.StatusTooManyRequests, "rate_limited")
	require.Equal(t, "900", answer.Header.Get("Retry-After"))
	c.Post(reset, object{"new_password": "short"}).Problem(http.StatusBadRequest, "invalid_parameters",
		"body.new_password")
	c.Post(reset, nil).OK(nil) // a generated password reveals nothing, and restarts the count

	require.Equal(t, http.StatusBadRequest, try(c.With("If-Match", `"7"`), "", password))
	for i := range 4 {
		require.Equal(t, http.StatusPreconditionFailed,
			try(c.With("If-Match", `"7"`), "", fmt.Sprint("a newer Passw0rd ", i)))
	}
	require.Equal(t, http.StatusTooManyRequests, try(c.With("If-Match", `"7"`), "", password))
	s.Clock.Advance(15 * time.Minute)
	for i := range 7 { // resets that change something are not limited
		require.Equal(t, http.StatusOK, try(c, "", fmt.Sprint("the newest Passw0rd ", i)))
	}
}

// A dry run with an unknown name costs what a wrong password costs: a transaction that is stored.
func TestDryRunsWithUnknownNames(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	c.Post("/v1/thin/login-verification?dry_run=true", object{"login_name": "nobody", "password": "wrong"}).OK(nil)
	require.Len(t, testkit.Stored(t, s, "acme", "accounts"), 3)
}

// An unknown name is refused with the reads and writes of a wrong password, in the same order, however often it is
// tried and whether or not the user is locked by then.
func TestUnknownNamesAreRefusedLikeUsers(t *testing.T) {
	t.Parallel()
	ledger := &testkit.Ledger{}
	s := startWith(t, cheap(), nil, testkit.Options{Engine: ledger.Over})
	c := in(s, "acme")
	addUser(t, c, "li.wei", object{"password": password})
	addUser(t, c, "without")
	addUser(t, c, "disabled", object{"password": password, "status": "0"})
	recorded := c.With("X-Request-Id", testkit.LedgerID)
	steps := func(name string) string {
		ledger.Start()
		require.False(t, signsIn(recorded, name, "wrong"))
		return ledger.Steps()
	}
	const want = "read read begin read read write write write"
	for range 4 {
		for _, name := range []string{"li.wei", "without", "disabled", "nobody"} {
			require.Equal(t, want, steps(name), name)
		}
	}
	steps("li.wei") // this locks the user
	for range 3 {
		require.Equal(t, want, steps("li.wei"))
	}
	for range 200 { // enough to use each account for unknown names
		require.Equal(t, want, steps("nobody"))
	}
}
