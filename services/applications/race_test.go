package applications_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRaceForName(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	names := []string{"Expenses", "EXPENSES", "Ｅｘｐｅｎｓｅｓ"}
	counts := basic.AtOnce(24, func(i int) int {
		return c.Post("/v1/applications", object{"name": names[i%3]}).Status
	})
	assert.Equal(t, map[int]int{http.StatusOK: 1, http.StatusConflict: 23}, counts)
	assert.EqualValues(t, 1, c.Get("/v1/applications").Object()["total"])
}

func TestRaceForAccount(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	app := addApp(t, c, "a")
	counts := basic.AtOnce(16, func(i int) int {
		return c.Post(path(app, "accounts"), object{"user_id": fmt.Sprint(i), "account": "same"}).Status
	})
	assert.Equal(t, map[int]int{http.StatusOK: 1, http.StatusConflict: 15}, counts)
	counts = basic.AtOnce(16, func(i int) int {
		return c.Post(path(app, "accounts"), object{"user_id": "100", "account": fmt.Sprint("another", i)}).Status
	})
	assert.Equal(t, map[int]int{http.StatusOK: 1, http.StatusConflict: 15}, counts, "one for each user")
}

// However sub-accounts are added and deleted, a user with sub-accounts has exactly one default, and the count of
// sub-accounts is right: several can be forbidden when one is left.
func TestRaceForDefault(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	app := multi(t, c, "a")
	for range 3 {
		var mu sync.Mutex
		var made []string
		basic.AtOnce(12, func(i int) int {
			answer := c.Post(path(app, "accounts"), object{"user_id": "7", "account": fmt.Sprint(i), "is_default": "1"})
			mu.Lock()
			made = append(made, answer.ID())
			mu.Unlock()
			return answer.Status
		})
		require.Equal(t, 1, defaults(t, c.Get(path(app, "accounts?user_id=7&page_size=100")).Object()))
		basic.AtOnce(12, func(i int) int {
			if i == 0 {
				return c.Post(path(app, "multi-accounts/disable"), nil).Status
			}
			return c.Delete(path(app, "accounts", made[i]), nil).Status
		})
		left := c.Get(path(app, "accounts?user_id=7&page_size=100")).Object()
		require.Equal(t, 1, defaults(t, left))
		require.Len(t, left["items"], 1)
		c.Post(path(app, "multi-accounts/disable"), nil).OK(nil)
		c.Delete(path(app, "accounts", made[0]), nil).OK(nil)
		c.Post(path(app, "multi-accounts/enable"), nil).OK(nil)
	}
}

// defaults counts the default sub-accounts of a list.
func defaults(t testing.TB, list object) (n int) {
	t.Helper()
	for _, item := range list["items"].([]any) {
		if item.(object)["is_default"] == "1" {
			n++
		}
	}
	return n
}

// Either a second sub-account is added, or several sub-accounts are forbidden.
func TestRaceForbidsSeveral(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	for round := range 8 {
		app := multi(t, c, fmt.Sprint("a", round))
		addAccount(t, c, app, "7", "one")
		basic.AtOnce(2, func(i int) int {
			if i == 0 {
				return c.Post(path(app, "multi-accounts/disable"), nil).Status
			}
			return c.Post(path(app, "accounts"), object{"user_id": "7", "account": "two"}).Status
		})
		allowed := c.Get(path(app)).Object()["multi_account_enabled"] == "1"
		require.Equal(t, allowed, len(c.Get(path(app, "accounts")).Object()["items"].([]any)) == 2)
	}
}

// A sub-account that is added while its application is deleted does not remain.
func TestRaceWithDelete(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	for round := range 8 {
		app := addApp(t, c, fmt.Sprint("a", round))
		basic.AtOnce(4, func(i int) int {
			if i == 0 {
				return c.Delete(path(app), nil).Status
			}
			return c.Post(path(app, "accounts"), object{"user_id": fmt.Sprint(i), "account": fmt.Sprint(i)}).Status
		})
	}
	assert.Empty(t, testkit.Stored(t, s, "acme", "accounts"))
}

// Concurrent refreshes make at most five valid secrets, and only their hashes are stored.
func TestRaceOfRefreshes(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	app := addApp(t, c, "a")
	counts := basic.AtOnce(8, func(int) int { return c.Post(path(app, "secrets?grace_seconds=60"), nil).Status })
	assert.Equal(t, map[int]int{http.StatusOK: 4, http.StatusConflict: 4}, counts, "five may be valid at the same time")
	kept := members(t, []byte(testkit.Stored(t, s, "acme", "secret_hashes")[app["id"].(string)]))["sha256"]
	assert.Len(t, members(t, kept), 5)
}
