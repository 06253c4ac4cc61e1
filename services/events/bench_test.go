package events_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// tellMany tells of n records in transactions of 50.
func tellMany(b *testing.B, s *testkit.Service, from, n int) {
	b.Helper()
	ctx := request.With(context.Background(), request.Info{ID: "request-1", Tenant: "acme", Actor: "ann"})
	for i := from; i < from+n; i += 50 {
		require.NoError(b, docstore.Do(ctx, s.Deps.Store, func(tx *docstore.Tx) error {
			for record := i; record < i+50; record++ {
				err := outbox.Append(ctx, tx, outbox.Event{
					Entity: things.Entity, Action: "created", Source: things.Source, Subject: fmt.Sprint(record),
					Revision: 1, Record: json.RawMessage(fmt.Sprintf(`{"id":"%d","name":"a thing","version":1}`, record)),
				})
				if err != nil {
					return err
				}
			}
			return nil
		}))
	}
}

// BenchmarkDeliveries is how many webhooks a second 20 subscriptions with fast receivers get. The receivers are in the
// same process.
func BenchmarkDeliveries(b *testing.B) {
	const subscriptions = 20
	s := start(b)
	c := in(s, "acme")
	var got atomic.Int64
	for n := range subscriptions {
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
		b.Cleanup(server.Close)
		c.Post(subscriptionsPath, hook(fmt.Sprint("s", n), server.URL, onlyThings)).OK(nil)
	}
	told := 0
	b.ResetTimer()
	for b.Loop() {
		tellMany(b, s, told, 1000)
		told += 1000
		for got.Load() < int64(told*subscriptions) {
			time.Sleep(time.Millisecond)
		}
	}
	b.ReportMetric(float64(told*subscriptions)/b.Elapsed().Seconds(), "deliveries/s")
}

// BenchmarkLatency is the time from a commit to the request of its webhook, at 500 changes a second with 10
// subscriptions.
func BenchmarkLatency(b *testing.B) {
	const subscriptions, perSecond = 10, 500
	s := start(b)
	c := in(s, "acme")
	var mu sync.Mutex
	committed, took := map[string]time.Time{}, []time.Duration{}
	arrived := func(_ http.ResponseWriter, r *http.Request) {
		at := time.Now()
		var e struct{ Subject string }
		_ = json.NewDecoder(r.Body).Decode(&e)
		mu.Lock()
		defer mu.Unlock()
		took = append(took, at.Sub(committed[e.Subject]))
	}
	for n := range subscriptions {
		server := httptest.NewServer(http.HandlerFunc(arrived))
		b.Cleanup(server.Close)
		c.Post(subscriptionsPath, hook(fmt.Sprint("s", n), server.URL, onlyThings)).OK(nil)
	}
	n := 0
	for b.Loop() {
		every := time.NewTicker(time.Second / perSecond)
		for range 2 * perSecond {
			<-every.C
			mu.Lock()
			committed[fmt.Sprint(n)] = time.Now() // a little before the commit
			mu.Unlock()
			tell(b, s, "acme", fmt.Sprint(n), 1, "created")
			n++
		}
		every.Stop()
	}
	require.Eventually(b, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(took) >= n*subscriptions
	}, patient, time.Millisecond)
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
