package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// tellMany emits events of n records, in transactions of 50.
func tellMany(b *testing.B, s *testkit.Service, from, n int) {
	b.Helper()
	ctx := request.With(context.Background(), request.Info{ID: "request-1", Tenant: "acme", Actor: "ann"})
	for i := from; i < from+n; i += 50 {
		require.NoError(b, docstore.Do(ctx, s.Deps.Store, func(tx *docstore.Tx) error {
			for record := i; record < i+50; record++ {
				err := outbox.Append(ctx, tx, outbox.Event{
					Entity: things.Entity, Action: "created", Source: things.Source, Subject: fmt.Sprint(record),
					Revision: 1,
					Record:   json.RawMessage(fmt.Sprintf(`{"id":"%d","name":"a thing","version":1}`, record)),
				})
				if err != nil {
					return err
				}
			}
			return nil
		}))
	}
}

// BenchmarkDeliveries measures how many webhooks a second are delivered to 20 subscriptions with fast receivers, which
// are in the same process.
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

// BenchmarkLatency measures the time from a commit to the request of its webhook, at 500 changes a second with 10
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
	wait.Until(b, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(took) >= n*subscriptions
	})
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// event is the message of the n-th creation of a user, as the users service emits it.
func event(n int) docstore.Message { return change(1<<20+n, 1) }

// change is the message of a user's n-th change.
func change(user, n int) docstore.Message {
	record := strconv.Itoa(user)
	subject, id := "idp.events.acme.user.created", uuid.Must(uuid.NewV7()).String()
	return docstore.Message{ID: id, Subject: subject, Payload: fmt.Appendf(nil, `{"specversion":"1.0","id":%q,`+
		`"source":"/users","type":"idp.user.created","subject":%q,"time":%q,"datacontenttype":"application/json",`+
		`"tenantid":"acme","actor":"administrator","requestid":"4mrhvkqtwz5c2d7ba3gxyun6ep","sequence":"%d","data":`+
		`{"record":{"id":%q,"tenant_id":"acme","version":1,"time_created":"2026-01-31T09:30:00.000Z","time_modified":`+
		`"2026-01-31T09:30:00.000Z","username":"new1.w3.%[1]s","display_name":"李 new1.w3.%[1]s","email":`+
		`"new1.w3.%[1]s@corp.test","mobile":"","employee_number":"N-%[1]s","gender":"","avatar_url":"","status":"1",`+
		`"locked":false,"locked_until":null,"email_verified":false,"mobile_verified":false,"mfa_enabled":"0",`+
		`"password_set":false,"time_last_login":null,"hire_date":null,"resign_time":null,"id_number_masked":"",`+
		`"sys_ext_props":{},"free_ext_props":{}}}}`, id, record,
		clock.Of(time.Now()).String(), n*10, record)}
}

// BenchmarkUndelivered measures the memory for many events that no receiver accepts: the receivers of 15 subscriptions
// refuse everything, those of 5 do not answer. Then one receiver returns and gets all. IDP_BENCH_EVENTS is the number
// of events. Events are published as fast as NATS takes them, which is in the same process.
func BenchmarkUndelivered(b *testing.B) {
	const subscriptions, slow, records = 20, 5, 1000
	many := 20_000
	if text := os.Getenv("IDP_BENCH_EVENTS"); text != "" {
		var err error
		many, err = strconv.Atoi(text)
		require.NoError(b, err)
	}
	s := start(b)
	c := in(s, "acme")
	var back atomic.Bool
	var got, outOfOrder atomic.Int64
	last := [records]atomic.Int64{}
	refuse := func(w http.ResponseWriter, r *http.Request) {
		if !back.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var e struct{ Subject, Sequence string }
		_ = json.NewDecoder(r.Body).Decode(&e)
		record, _ := strconv.Atoi(e.Subject)
		sequence, _ := strconv.ParseInt(e.Sequence, 10, 64)
		if last[record%records].Swap(sequence) > sequence {
			outOfOrder.Add(1)
		}
		got.Add(1)
	}
	ended := make(chan struct{})
	wait := func(http.ResponseWriter, *http.Request) { <-ended }
	var first string
	for n := range subscriptions {
		receive := refuse
		if n < slow {
			receive = wait
		} else if n > slow {
			receive = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
		}
		server := httptest.NewServer(http.HandlerFunc(receive))
		b.Cleanup(server.Close)
		made := c.Post(subscriptionsPath, hook(fmt.Sprint("s", n), server.URL, object{"event_types": []any{"user.*"}}))
		if n == slow {
			first = one(made.Object())
		}
	}
	before, most := resident(b), 0.0
	for from := 0; from < many; from += 1000 {
		messages := make([]docstore.Message, 1000)
		for i := range messages {
			messages[i] = change(1<<20+i, (from+i)/1000+1)
		}
		require.NoError(b, errors.Join(s.Deps.Bus.Publish(b.Context(), messages)...))
		most = max(most, resident(b))
	}
	began := time.Now()
	back.Store(true)
	c.Post(first+"/resume", nil).OK(nil)
	for tick := 0; got.Load() < int64(many); tick++ {
		if tick%10 == 0 {
			s.Clock.Advance(10 * time.Minute) // to the next tries
		}
		time.Sleep(100 * time.Millisecond)
		most = max(most, resident(b))
	}
	b.ReportMetric(before, "MiB-before")
	b.ReportMetric(most-before, "MiB-more")
	b.ReportMetric(float64(many)/time.Since(began).Seconds(), "events/s-when-back")
	b.ReportMetric(0, "ns/op")
	require.Zero(b, outOfOrder.Load())
	close(ended)
}

// resident is the memory of this process, in MiB.
func resident(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	require.NoError(b, err)
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
	require.NoError(b, err)
	return kib / 1024
}

// BenchmarkNoSubscription measures the processor time of an event without a subscription: NATS stores it, and the
// service reads it and writes it to the audit log.
func BenchmarkNoSubscription(b *testing.B) {
	const each = 20_000
	publish := func(s *testkit.Service) {
		for from := 0; from < each; from += 200 {
			messages := make([]docstore.Message, 200)
			for i := range messages {
				messages[i] = event(from + i)
			}
			require.NoError(b, errors.Join(s.Deps.Bus.Publish(b.Context(), messages)...))
			time.Sleep(50 * time.Millisecond) // 4,000/s
		}
	}
	bare := testkit.Start(b, service.Spec{Name: "bare", New: func(context.Context, service.Deps) (service.App, error) {
		return service.App{}, nil
	}})
	s := start(b)
	c := in(s, "acme")
	var taken, written time.Duration
	told := 0
	for b.Loop() {
		before := testkit.ProcessorTime(b)
		publish(bare)
		middle := testkit.ProcessorTime(b)
		publish(s)
		told += each
		wait.Until(b, func() bool {
			return c.Get(auditPath + "?page_size=1").Object()["total"].(float64) >= float64(told)
		})
		taken += middle - before
		written += testkit.ProcessorTime(b) - middle
	}
	b.ReportMetric(float64(taken.Microseconds())/float64(told), "µs/event-taken")
	b.ReportMetric(float64((written-taken).Microseconds())/float64(told), "µs/event-more")
	b.ReportMetric(0, "ns/op")
}
