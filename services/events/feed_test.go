package events_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/schema"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/questions"
)

func TestFeed(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	now := c.Get("/v1/events?after=now").Object()
	require.Equal(t, []any{[]any{}, false}, []any{now["items"], now["more"]})
	for n := range 5 {
		tell(t, s, "acme", fmt.Sprint(n), 1, "created")
		tell(t, s, "globex", fmt.Sprint(n), 1, "created")
	}
	tell(t, s, "acme", "0", 2, "deleted")
	awaitFeed(t, c, 6)

	all := c.Get("/v1/events").Object()
	require.Len(t, all["items"], 6)
	require.Equal(t, false, all["more"])
	for _, item := range all["items"].([]any) {
		require.Equal(t, "acme", item.(object)["tenantid"])
	}
	var walked []any
	cursor := now["next"].(string)
	for more := true; more; {
		page := c.Get("/v1/events?limit=2&after=" + cursor).Object()
		walked = append(walked, page["items"].([]any)...)
		cursor, more = page["next"].(string), page["more"].(bool)
	}
	require.Equal(t, all["items"], walked)
	require.Len(t, c.Get("/v1/events?types=component.deleted,user.*").Object()["items"], 1)
	require.Len(t, c.Get("/v1/events?types=*.created").Object()["items"], 5)
	require.Empty(t, c.Get("/v1/events?types=user.*").Object()["items"])

	for query, location := range map[string]string{
		"after=x": "query.after", "types=a": "query.types", "types=user.*,user.crated": "query.types",
		"limit=0": "query.limit", "limit=1001": "query.limit",
	} {
		c.Get("/v1/events?"+query).Problem(http.StatusBadRequest, "invalid_parameters", location)
	}
	lost := c.Get("/v1/events?after=abc.1").Problem(http.StatusConflict, "invalid_state")
	require.Contains(t, lost.Detail, "can continue with after="+lost.Next)
	require.Equal(t, all["items"], c.Get("/v1/events?after=" + lost.Next).Object()["items"])
}

// The feed can begin at a time.
func TestFeedSince(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	tell(t, s, "acme", "0", 1, "created")
	awaitFeed(t, c, 1)
	before := time.Now()
	wait.Until(t, func() bool { return time.Since(before) > time.Millisecond })
	between := url.QueryEscape(time.Now().Format(time.RFC3339Nano))
	tell(t, s, "acme", "1", 1, "created")
	awaitFeed(t, c, 2)
	for after, want := range map[string]int{"2026-01-31": 2, "0001-01-01": 2, between: 1, "9999-01-01T00:00:00Z": 0} {
		require.Len(t, c.Get("/v1/events?after=" + after).Object()["items"], want, after)
	}
	require.Contains(t, string(c.Events("/v1/events?after="+between).Next().Data), `"subject":"1"`)
}

// A cursor whose next events are no longer kept is refused: no event is skipped silently.
func TestFeedOfDroppedEvents(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	first := c.Get("/v1/events?after=now").Object()["next"].(string)
	for n := range 3 {
		tell(t, s, "acme", fmt.Sprint(n), 1, "created")
	}
	awaitFeed(t, c, 3)
	stream, err := s.Deps.Bus.JetStream().Stream(t.Context(), "IDP_EVENTS")
	require.NoError(t, err)
	require.NoError(t, stream.Purge(t.Context()))
	tell(t, s, "acme", "9", 1, "created")
	fresh := replica(t, s)
	awaitFeed(t, in(fresh, "acme"), 1)
	require.Len(t, in(fresh, "acme").Get("/v1/events").Object()["items"], 1)
	for _, after := range []string{first, "2026-01-31"} {
		lost := in(fresh, "acme").Get("/v1/events?after="+after).Problem(http.StatusConflict, "invalid_state")
		stream := in(fresh, "acme").With("Accept", "text/event-stream")
		again := stream.Get("/v1/events?after="+after).Problem(http.StatusConflict, "invalid_state")
		require.Equal(t, lost.Next, again.Next)
		require.Len(t, in(fresh, "acme").Get("/v1/events?after=" + lost.Next).Object()["items"], 1)
	}
}

// A page has at most 4 MiB of events, and says that there are more. Nothing is skipped or repeated, whether the events
// are in memory, were read before or are read from JetStream.
func TestFeedOfLargeEvents(t *testing.T) {
	t.Parallel()
	const many, size = 400, 60_000
	s := start(t)
	c := in(s, "acme")
	for from := 0; from < many; from += 50 {
		messages := make([]docstore.Message, 50)
		for i := range messages {
			messages[i] = event(from + i)
			messages[i].Payload = bytes.Replace(messages[i].Payload, []byte(`"avatar_url":""`),
				fmt.Appendf(nil, `"avatar_url":%q`, strings.Repeat("x", size)), 1)
		}
		require.NoError(t, errors.Join(s.Deps.Bus.Publish(t.Context(), messages)...))
	}
	wait.Until(t, func() bool { // all are there; only the newest are in memory
		return len(c.Get("/v1/events?limit=1&after=now").Object()["items"].([]any)) == 0 &&
			c.Get("/v1/audit-logs?page_size=1").Object()["total"].(float64) == many
	})
	for range 2 {
		var walked []any
		for path, more := "/v1/events?limit=1000", true; more; {
			answer := c.Get(path)
			require.Less(t, len(answer.Body), 4<<20+1000)
			page := answer.Object()
			require.NotEmpty(t, page["items"])
			for _, item := range page["items"].([]any) {
				walked = append(walked, item.(object)["subject"])
			}
			path, more = "/v1/events?limit=1000&after="+page["next"].(string), page["more"].(bool)
		}
		require.Len(t, walked, many)
		for n, subject := range walked {
			require.Equal(t, strconv.Itoa(1<<20+n), subject)
		}
	}
	live := c.Events("/v1/events")
	for n := range many {
		require.Contains(t, string(live.Next().Data), fmt.Sprintf(`"subject":"%d"`, 1<<20+n))
	}
	live.Leave()
}

func TestFeedAsEventStream(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	live := c.Events("/v1/events?after=now&types=component.*")
	tell(t, s, "acme", "1", 1, "created")
	tell(t, s, "globex", "2", 1, "created")
	tell(t, s, "acme", "3", 1, "created")
	one, three := live.Next(), live.Next()
	require.Equal(t, "idp.component.created", one.Name)
	require.Contains(t, string(three.Data), `"subject":"3"`)
	require.Empty(t, live.Drain())

	resumed := c.With("Last-Event-ID", one.ID).Events("/v1/events")
	require.Equal(t, three, resumed.Next())
	resumed.Leave()
}

// replica starts another replica of a service, and waits until it is ready.
func replica(t testing.TB, s *testkit.Service) *testkit.Service {
	t.Helper()
	r := s.Replica(spec())
	r.Ready()
	return r
}

// The catalogue has the event types of all services, each with a schema and an example that is valid.
func TestEventTypes(t *testing.T) {
	t.Parallel()
	var types []struct {
		Type, Description string
		Schema, Example   json.RawMessage
	}
	in(start(t), "acme").Get("/v1/event-types").OK(&types)
	names := map[string]bool{}
	for _, one := range types {
		names[one.Type] = true
		compiled, err := schema.Compile(one.Schema)
		require.NoError(t, err, one.Type)
		var faults apperr.Faults
		require.True(t, compiled.Check(&faults, one.Example), "%s: %v", one.Type, faults.Err())
		require.NotEmpty(t, one.Description)
	}
	for _, name := range []string{"user.created", "application.created", "node.moved", "auth_rule.created",
		"connection.created", "event_subscription.created", "access.denied"} {
		require.True(t, names[name], name)
	}
}

// Other services ask which types of events there are.
func TestUnknownEventTypes(t *testing.T) {
	t.Parallel()
	s := start(t)
	answer, err := questions.UnknownEventTypes.Ask(request.System(t.Context(), "acme"), s.Deps.Bus,
		questions.EventTypes{Types: []string{"user.created", "user.crated", "user.*", "usr.*", "*.deleted", "*"}})
	require.NoError(t, err)
	require.Equal(t, []string{"user.crated", "usr.*"}, answer.Types)
}
