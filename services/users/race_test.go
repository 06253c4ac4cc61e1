package users_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/stretchr/testify/require"
)

func TestRaceForUsername(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	names := []string{"li.wei", "LI.WEI", "Li.Wei", "ｌｉ.ｗｅｉ"}
	counts := basic.AtOnce(32, func(i int) int {
		return c.Post("/v1/users", object{"username": names[i%len(names)]}).Status
	})
	require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusConflict: 31}, counts)
	require.Equal(t, 1, total(c))
	id := c.Items("/v1/users", "id")[0]
	require.Equal(t, []string{"created", "deleted"}, actions(t, s, c, object{"id": id}))
}

// One text as the username of one user and the email of others, by creating and by changing: one request wins.
func TestRaceForLoginName(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	for round := range 4 {
		email := fmt.Sprintf("shared%d@acme.test", round)
		other := addUser(t, c, fmt.Sprint("other", round))
		counts := basic.AtOnce(12, func(i int) int {
			switch i % 3 {
			case 0:
				return c.Post("/v1/users", object{"username": email}).Status
			case 1:
				return c.Post("/v1/users", object{"username": fmt.Sprint("u", round, "-", i), "email": email}).Status
			}
			return c.Patch(path(other), object{"email": email, "gender": fmt.Sprint(i)}).Status
		})
		require.Equal(t, 1, len(c.Items("/v1/users?keyword="+email, "id")), "one has it")
		if c.Get(path(other)).Object()["email"] == email { // then all its own changes succeeded
			require.Equal(t, map[int]int{http.StatusOK: 4, http.StatusConflict: 8}, counts)
		} else {
			require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusConflict: 11}, counts)
		}
	}
}

func TestRaceOfConditionalChanges(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	user := addUser(t, c, "li.wei")
	counts := basic.AtOnce(16, func(i int) int {
		return c.With("If-Match", `"1"`).Patch(path(user), object{"display_name": fmt.Sprint(i)}).Status
	})
	require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusPreconditionFailed: 15}, counts)
	require.EqualValues(t, 2, c.Get(path(user)).Object()["version"])

	// Without If-Match no change is lost: each changes another member.
	counts = basic.AtOnce(16, func(i int) int {
		return c.Patch(path(user), object{"sys_ext_props": object{fmt.Sprint("m", i): i}}).Status
	})
	require.Equal(t, map[int]int{http.StatusOK: 16}, counts)
	now := c.Get(path(user)).Object()
	require.Len(t, now["sys_ext_props"], 16)
	require.EqualValues(t, 18, now["version"])
}

func TestRaceOfLocks(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	counts := basic.AtOnce(32, func(i int) int {
		return c.Post(path(user, []string{"lock", "unlock"}[i%2]), nil).Status
	})
	require.Equal(t, map[int]int{http.StatusOK: 32}, counts)
	now := c.Get(path(user)).Object()
	told := actions(t, s, c, user)
	require.EqualValues(t, now["version"], len(told)-1, "an event for each version")
	for i, action := range told[1 : len(told)-1] {
		require.Equal(t, []string{"locked", "unlocked"}[i%2], action)
	}
	require.Equal(t, now["locked"], told[len(told)-2] == "locked")
}

func TestRaceOfPasswordChanges(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	user := addUser(t, c, "li.wei", object{"password": password})
	counts := basic.AtOnce(4, func(i int) int { // fewer than lock the user
		return c.Post(path(user, "change-password"),
			object{"old_password": password, "new_password": fmt.Sprint("a new Passw0rd ", i)}).Status
	})
	require.Equal(t, 1, counts[http.StatusOK], "the others came after the password was changed: %v", counts)
	require.Equal(t, 3, counts[http.StatusPreconditionFailed]+counts[http.StatusBadRequest])
}

// Once a password is changed, nobody signs in with the old one, not even in a request that started before.
func TestRaceOfLoginAndReset(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei", object{"password": password})
	basic.AtOnce(9, func(i int) int {
		if i == 4 {
			return c.Post(path(user, "reset-password"), object{"new_password": "a new Passw0rd"}).Status
		}
		for signsIn(c, "li.wei", password) {
		}
		return 0
	})
	told := actions(t, s, c, user)
	require.NotContains(t, told[slices.Index(told, "password_changed"):], "login_verified")
}

// A deleted user has no credentials.
func TestRaceOfDeletionAndCredentials(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	for round := range 5 {
		user := addUser(t, c, fmt.Sprint("user", round))
		counts := basic.AtOnce(9, func(i int) int {
			if i == 4 {
				return c.Delete(path(user), nil).Status + 1
			}
			return c.Post(credentials, credentialOf(user, "wechat", fmt.Sprint(round, "-", i))).Status
		})
		require.Equal(t, 1, counts[http.StatusOK+1])
		require.Equal(t, 8, counts[http.StatusOK]+counts[http.StatusBadRequest], counts)
		require.Empty(t, c.Items(fmt.Sprintf("%s?user_id=%d", credentials, number(user)), "id"))
	}
}

func TestRaceOfDeletions(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	counts := basic.AtOnce(8, func(int) int { return c.Delete(path(user), nil).Status })
	require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusNotFound: 7}, counts)
	last := addUser(t, c, "last")
	require.Equal(t, []string{"created", "deleted"}, actions(t, s, c, last))
}
