package users_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
)

// changes are those of many administrators: each connection makes, changes and deletes users.
func changes(t testing.TB, _ *testkit.Service, c *testkit.Client) []testkit.Change {
	stock := &imported{t: t, c: c}
	changed := make([]string, 16)
	for i := range changed {
		changed[i] = stock.take()
	}
	return []testkit.Change{
		{Name: "creates", Do: func(c *testkit.Client, _, n int) *testkit.Answer {
			name := fmt.Sprint("new-", n)
			return c.Post("/v1/users", object{"username": name, "email": name + "@acme.test"})
		}},
		{Name: "patches", Do: func(c *testkit.Client, connection, n int) *testkit.Answer {
			return c.Patch(changed[connection], object{"display_name": fmt.Sprint("Name ", n)})
		}},
		{Name: "deletes", Do: func(c *testkit.Client, _, _ int) *testkit.Answer { return c.Delete(stock.take(), nil) }},
	}
}

// imported are users to be deleted. An import makes some thousand at a time, so that it hardly counts.
type imported struct {
	t     testing.TB
	c     *testkit.Client
	mu    sync.Mutex
	n     int
	paths []string
}

func (u *imported) take() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.paths) == 0 {
		var records strings.Builder
		for range 2000 {
			u.n++
			fmt.Fprintf(&records, `{"username":"imported-%d"}`+"\n", u.n)
		}
		for _, line := range importLines(u.t, u.c, "", records.String()) {
			u.paths = append(u.paths, "/v1/users/"+line.ID)
		}
		require.NotEmpty(u.t, u.paths)
	}
	path := u.paths[0]
	u.paths = u.paths[1:]
	return path
}
