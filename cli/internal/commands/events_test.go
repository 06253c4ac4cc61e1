package commands

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// feed is a platform whose streams have one event each, and at last are refused, which ends watching.
func feed(answers ...string) func(http.ResponseWriter, *http.Request) {
	count := 0
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != "text/event-stream" {
			_, _ = io.WriteString(w, `{"items":[{"id":"a1","entity":"user"}],"next":"c0"}`)
			return
		}
		count++
		if count > len(answers) {
			refuse(w, http.StatusForbidden, "forbidden")
			return
		}
		answer := answers[count-1]
		if strings.HasPrefix(answer, "{") {
			w.WriteHeader(http.StatusConflict)
		} else {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		_, _ = io.WriteString(w, answer)
	}
}

func streamed(cursor, id, at string) string {
	event := fmt.Sprintf(`{"id":%q,"time":%q,"type":"idp.user.created"}`, id, at)
	return "id: " + cursor + "\nevent: idp.user.created\ndata: " + event + "\n\n"
}

const gap = `{"code":"invalid_state","status":409,"detail":"events are no longer kept","next":"c8"}`

func TestWatch(t *testing.T) {
	t.Parallel()
	p := newPlay(t, feed(streamed("c1", "e1", "2026-01-31T09:30:00.000Z"), gap,
		streamed("c9", "e9", "2026-01-31T09:31:00.000Z")))
	got := p.run("events", "watch", "--type", "user.*,node.moved", "--jq", ".id")
	assert.Equal(t, 4, got.code, got.err)
	assert.Equal(t, "e1\ne9\n", got.out)
	assert.Contains(t, got.err, "the stream broke and is opened again: the platform ended it")
	assert.Contains(t, got.err, "gap: events after c1 are no longer kept; going on with those after c8")
	assert.Contains(t, got.err, "idp events watch --after c9 goes on here")
	assert.Contains(t, got.err, "events:read")
	var after []string
	for _, one := range p.asked()[1:] {
		assert.Equal(t, "/v1/events?types=user.%2A%2Cnode.moved", one.target)
		after = append(after, one.header.Get("Last-Event-Id"))
	}
	assert.Equal(t, []string{"c0", "c1", "c8", "c9"}, after, "it begins at now, and loses nothing")
}

// TestWatchBroken cuts the stream within an event, and begins where nothing is kept.
func TestWatchBroken(t *testing.T) {
	t.Parallel()
	whole := streamed("c2", "e2", "2026-01-31T09:30:00.000Z")
	p := newPlay(t, feed(gap, streamed("c1", "e1", "2026-01-31T09:30:00.000Z")+whole[:len(whole)/2], whole))
	got := p.run("events", "watch", "--since", "2026-01-31", "--count", "2", "-o", "name")
	assert.Equal(t, 0, got.code, got.err)
	assert.Equal(t, "e1\ne2\n", got.out, "half an event is none, and comes again")
	assert.Contains(t, got.err, "gap: events after 2026-01-31 are no longer kept; going on with those after c8")
	assert.Contains(t, got.err, "the stream broke and is opened again")
	assert.Equal(t, "c1", p.last().header.Get("Last-Event-Id"))
	assert.Equal(t, 2, p.run("events", "watch", "--count", "-1").code)
}

func TestWatchEarlier(t *testing.T) {
	t.Parallel()
	p := newPlay(t, feed(streamed("c1", "e1", "2026-01-31T09:31:00.000Z")))
	got := p.run("events", "watch", "--since", "2026-01-31T10:30:00+01:00", "-o", "name")
	assert.Equal(t, "e1\n", got.out)
	assert.Equal(t, "/v1/events?after=2026-01-31T09%3A30%3A00Z", p.asked()[0].target)
	assert.Equal(t, "c1", p.last().header.Get("Last-Event-Id"), "after a break, the cursor says where to go on")

	p = newPlay(t, feed(streamed("c6", "e6", "2026-01-31T09:31:00.000Z")))
	got = p.run("events", "watch", "--after", "c5")
	assert.Contains(t, got.out, "TIME")
	assert.Contains(t, got.out, "idp.user.created")
	assert.Equal(t, "c5", p.asked()[0].header.Get("Last-Event-Id"))
}

func TestSince(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC)
	at, err := sinceOf("1h30m", now)
	require.NoError(t, err)
	assert.Equal(t, now.Add(-90*time.Minute), at)
	for _, bad := range []string{"-1h", "yesterday", "0s"} {
		_, err := sinceOf(bad, now)
		assert.Error(t, err, bad)
	}
}

func TestWatchAudit(t *testing.T) {
	t.Parallel()
	p := newPlay(t, feed(streamed("a2", "a2", "2026-01-31T09:31:00.000Z")))
	got := p.run("events", "watch", "--audit", "--entity", "user", "--since", "2026-01-31", "-o", "name")
	assert.Equal(t, "a1\na2\n", got.out)
	assert.Equal(t, "/v1/audit-logs?entity=user&page_size=200&page_sort=time%5Basc%5D&time_from=2026-01-31T00%3A00%3A00Z",
		p.asked()[1].target)
	assert.Equal(t, "/v1/audit-logs?entity=user", p.asked()[2].target)
	assert.Equal(t, "a1", p.asked()[2].header.Get("Last-Event-Id"))

	p = newPlay(t, feed(streamed("a2", "a2", "2026-01-31T09:31:00.000Z")))
	got = p.run("events", "watch", "--audit", "--actor", "user:7", "--outcome", "denied", "--count", "1", "-o", "name")
	assert.Equal(t, "a2\n", got.out)
	assert.Equal(t, "/v1/audit-logs?actor=user%3A7&outcome=denied", p.asked()[1].target)
	assert.Equal(t, "a1", p.asked()[1].header.Get("Last-Event-Id"), "what comes before the stream is not lost")
	assert.Equal(t, 2, p.run("events", "watch", "--audit", "--type", "user.*").code)
}

func TestWatchExec(t *testing.T) {
	t.Parallel()
	two := streamed("c1", "e1", "2026-01-31T09:30:00.000Z") + streamed("c2", "e2", "2026-01-31T09:30:00.000Z")
	p := newPlay(t, feed(two))
	got := p.run("events", "watch", "--exec", "cut -c1-10")
	assert.Equal(t, "{\"id\":\"e1\"\n{\"id\":\"e2\"\n", got.out)
	p = newPlay(t, feed(two))
	got = p.run("events", "watch", "--exec", "exit 3")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "--after c0 goes on here", "what failed is not passed over")
}
