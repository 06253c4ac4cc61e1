package events_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// BenchmarkFeedPages measures the processor time of a page of 100 events: of the newest, which are in memory, and of
// older ones, which nobody has read before (cold) or somebody has just read (again). NATS is in the same process.
func BenchmarkFeedPages(b *testing.B) {
	const many, newest, pageSize = 24_000, 4096, 100
	s := start(b)
	c := in(s, "acme")
	begin := c.Get("/v1/events?after=now").Object()["next"].(string)
	for from := 0; from < many; from += 1000 {
		messages := make([]docstore.Message, 1000)
		for i := range messages {
			messages[i] = event(from + i)
		}
		require.NoError(b, errors.Join(s.Deps.Bus.Publish(b.Context(), messages)...))
	}
	wait.Until(b, func() bool { // the audit log has them too, and rests
		return c.Get("/v1/audit-logs?page_size=1").Object()["total"].(float64) >= many
	})
	next := func(b *testing.B, c *testkit.Client, cursor string) string { // decodes little: it is the client's work
		b.Helper()
		page := c.Get("/v1/events?limit=100&after=" + cursor)
		require.Equal(b, http.StatusOK, page.Status)
		_, after, ok := strings.Cut(string(page.Body[bytes.LastIndexByte(page.Body, ']'):]), `"next":"`)
		require.True(b, ok)
		cursor, _, _ = strings.Cut(after, `"`)
		return cursor
	}
	report := func(b *testing.B, used time.Duration, pages int) {
		b.Helper()
		b.ReportMetric(float64(used.Microseconds())/1000/float64(pages), "cpu-ms/page")
		b.ReportMetric(0, "ns/op")
	}
	b.Run("old", func(b *testing.B) { // one walk after the other: too many for what is kept of events that were read
		before, pages := testkit.ProcessorTime(b), 0
		for cursor := begin; b.Loop(); pages++ {
			if cursor = next(b, c, cursor); pages%((many-newest)/pageSize) == 0 {
				cursor = begin
			}
		}
		report(b, testkit.ProcessorTime(b)-before, pages)
	})
	from := func(b *testing.B, cursor string) {
		b.Helper()
		before, pages := testkit.ProcessorTime(b), 0
		for ; b.Loop(); pages++ {
			next(b, c, cursor)
		}
		report(b, testkit.ProcessorTime(b)-before, pages)
	}
	b.Run("old again", func(b *testing.B) { from(b, begin) })
	recent := begin
	for range (many - newest/2) / pageSize {
		recent = next(b, c, recent)
	}
	b.Run("newest", func(b *testing.B) { from(b, recent) })
}
