// Package drive has what the tests of the platform, as one program and as many, do to it from outside: change records,
// receive webhooks, and read events and the audit log. It is for tests only.
package drive

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// Client sends requests of one caller. It is safe for concurrent use.
type Client struct {
	URL    string // without a path
	Token  string
	Tenant string // for X-Tenant-Id; empty: the token's
	HTTP   *http.Client
}

// Do sends a request. An answer other than 200 is an error.
func (c *Client) Do(method, path, body string) ([]byte, error) {
	r, err := http.NewRequest(method, c.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	c.identify(r)
	r.Header.Set("Content-Type", "application/json")
	resp, err := c.HTTP.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %d: %s", method, path, resp.StatusCode, answer)
	}
	return answer, err
}

func (c *Client) identify(r *http.Request) {
	r.Header.Set("Authorization", "Bearer "+c.Token)
	if c.Tenant != "" {
		r.Header.Set("X-Tenant-Id", c.Tenant)
	}
}

// ChangeUsers creates users and changes each four times, until so many changes are acknowledged, and returns their
// number. Then it calls enough, while other writers' requests still run. It goes on where requests fail.
func (c *Client) ChangeUsers(prefix string, changes int, enough func()) int {
	const writers = 4
	var done atomic.Int64
	var once sync.Once
	var all sync.WaitGroup
	for n := range writers {
		all.Go(func() {
			for user := 0; int(done.Load()) < changes; user++ {
				body := fmt.Sprintf(`{"username":"%s-%d-%d"}`, prefix, n, user)
				answer, err := c.Do(http.MethodPost, "/v1/users", body)
				if err != nil {
					return
				}
				done.Add(1)
				var made struct{ ID string }
				_ = json.Unmarshal(answer, &made)
				for change := range 4 {
					body := fmt.Sprintf(`{"display_name":"%d"}`, change)
					if _, err := c.Do(http.MethodPatch, "/v1/users/"+made.ID, body); err == nil {
						done.Add(1)
					}
				}
			}
			once.Do(enough)
		})
	}
	all.Wait()
	return int(done.Load())
}

// Told reads the ids of all events about users from the feed. It waits until there are as many as changes, and a little
// longer, for those that should not be there.
func (c *Client) Told(t testing.TB, changes int) map[string]bool {
	t.Helper()
	told := map[string]bool{}
	after := ""
	for quiet, since := 0, time.Now(); quiet < 3; { // an empty page may only mean that the relay has not come so far
		answer, err := c.Do(http.MethodGet, "/v1/events?types=user.*&limit=1000&after="+after, "")
		require.NoError(t, err)
		var page struct {
			Items []struct{ ID string }
			Next  string
			More  bool
		}
		require.NoError(t, json.Unmarshal(answer, &page))
		for _, e := range page.Items {
			told[e.ID] = true
		}
		if after = page.Next; len(page.Items) > 0 || page.More {
			quiet, since = 0, time.Now()
			continue
		}
		if len(told) >= changes || time.Since(since) > wait.Long {
			quiet++
		}
		time.Sleep(200 * time.Millisecond)
	}
	return told
}

// RequireAudited waits until each event about a user has one entry in the audit log.
func (c *Client) RequireAudited(t testing.TB, told map[string]bool) {
	t.Helper()
	var entries map[string]int
	wait.Until(t, func() bool {
		text, err := c.Do(http.MethodGet, "/v1/audit-logs/export?entity=user", "")
		if err != nil {
			return false
		}
		entries = map[string]int{}
		for line := range strings.Lines(string(text)) {
			var entry struct {
				EventID string `json:"event_id"`
			}
			if json.Unmarshal([]byte(line), &entry) != nil {
				return false
			}
			entries[entry.EventID]++
		}
		return len(entries) >= len(told)
	})
	for id := range told {
		assert.Equal(t, 1, entries[id], "the audit log has %s once", id)
	}
	assert.Len(t, entries, len(told))
}

// Changes is how many changes a crash test makes: IDP_TEST_CRASH_CHANGES, or 600.
func Changes(t testing.TB) int {
	t.Helper()
	text := os.Getenv("IDP_TEST_CRASH_CHANGES")
	if text == "" {
		return 600
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}
