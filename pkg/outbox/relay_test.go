package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const patient = wait.Long // how long a test waits for what must happen

var errAway = errors.New("away")

// memory is a Store in memory, with the behaviour of a database.
type memory struct {
	mu       sync.Mutex
	next     int64
	pending  []docstore.Message
	appended chan struct{}
	marks    int
	reads    int
	failMark int // this many calls of Published fail
	failRead int
	empty    chan struct{} // signalled each time nothing is pending
}

func newMemory() *memory {
	return &memory{appended: make(chan struct{}, 1), empty: make(chan struct{}, 1)}
}

func (s *memory) add(messages ...docstore.Message) {
	s.mu.Lock()
	for _, m := range messages {
		s.next++
		m.Seq = s.next
		s.pending = append(s.pending, m)
	}
	s.mu.Unlock()
	select {
	case s.appended <- struct{}{}:
	default:
	}
}

func (s *memory) Pending(ctx context.Context, after int64, limit int) ([]docstore.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failRead > 0 {
		s.failRead--
		return nil, errAway
	}
	s.reads++
	from, _ := slices.BinarySearchFunc(s.pending, after+1, func(m docstore.Message, seq int64) int {
		return cmp.Compare(m.Seq, seq)
	})
	return slices.Clone(s.pending[from:min(from+limit, len(s.pending))]), ctx.Err()
}

func (s *memory) Published(ctx context.Context, seqs []int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failMark > 0 {
		s.failMark--
		return errAway
	}
	s.marks++
	gone := make(map[int64]bool, len(seqs))
	for _, seq := range seqs {
		gone[seq] = true
	}
	s.pending = slices.DeleteFunc(s.pending, func(m docstore.Message) bool { return gone[m.Seq] })
	if len(s.pending) == 0 {
		select {
		case s.empty <- struct{}{}:
		default:
		}
	}
	return ctx.Err()
}

func (s *memory) Appended() <-chan struct{} { return s.appended }

func (s *memory) Backlog(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.pending)), nil
}

func (s *memory) waitEmpty(t *testing.T) {
	t.Helper()
	for {
		if n, _ := s.Backlog(t.Context()); n == 0 {
			return
		}
		select {
		case <-s.empty:
		case <-time.After(patient):
			require.FailNow(t, "messages are still pending")
		}
	}
}

// jetStream is a Publisher that drops duplicates, as JetStream does, and checks the order.
type jetStream struct {
	mu    sync.Mutex
	got   []string
	seen  map[string]bool
	wrong error
	// lost: it does not arrive; unsure: it arrives, but its acknowledgement is lost
	fail func(m docstore.Message) (lost, unsure bool)

	keep     time.Duration
	syncs    int
	durable  map[string]bool // what has arrived before a sync
	failSync int             // this many calls of Sync fail
}

func (p *jetStream) Keep() time.Duration { return p.keep }

func (p *jetStream) Sync(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failSync > 0 {
		p.failSync--
		return errAway
	}
	p.syncs++
	p.durable = maps.Clone(p.seen)
	return nil
}

func (p *jetStream) Publish(ctx context.Context, messages []docstore.Message) []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	errs := make([]error, len(messages))
	records := map[string]bool{}
	for i, m := range messages {
		if records[m.Record] {
			p.wrong = fmt.Errorf("two messages of %s at the same time", m.Record)
		}
		records[m.Record] = true
		lost, unsure := false, false
		if p.fail != nil {
			lost, unsure = p.fail(m)
		}
		if lost || unsure {
			errs[i] = errAway
		}
		if lost || p.seen[m.ID] {
			continue
		}
		if p.seen == nil {
			p.seen = map[string]bool{}
		}
		p.seen[m.ID] = true
		p.got = append(p.got, m.ID)
	}
	return errs
}

func msg(record string, version int) docstore.Message {
	return docstore.Message{ID: record + "/" + strconv.Itoa(version), Record: record,
		Subject: "idp.events.acme.user.updated"}
}

// inOrder checks that all messages arrived once, and those of each record in order.
func (p *jetStream) inOrder(t require.TestingT, sent []docstore.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	require.NoError(t, p.wrong)
	require.Len(t, p.got, len(sent))
	last := map[string]int{}
	for _, id := range p.got {
		record, version, _ := strings.Cut(id, "/")
		n, err := strconv.Atoi(version)
		require.NoError(t, err)
		require.Equal(t, last[record]+1, n, "of record %s", record)
		last[record] = n
	}
}

func quick(store Store, publisher Publisher, log *slog.Logger) *Relay {
	r := newRelay(store, publisher, log)
	r.poll, r.pace, r.backoff = 5*time.Millisecond, 0, &backoff.ZeroBackOff{}
	return r
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func stop(t require.TestingT, r *Relay) {
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	require.NoError(t, r.Stop(ctx))
}

func TestOrderWhateverFails(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var sent []docstore.Message
		versions := map[string]int{}
		for _, r := range rapid.SliceOfN(rapid.IntRange(0, 5), 1, 60).Draw(rt, "records") {
			record := strconv.Itoa(r)
			versions[record]++
			sent = append(sent, msg(record, versions[record]))
		}
		trouble := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		p := &jetStream{fail: func(docstore.Message) (bool, bool) { return trouble.IntN(4) == 0, trouble.IntN(4) == 0 }}
		s := newMemory()
		p.keep = time.Duration(rapid.IntRange(0, 1).Draw(rt, "keep")) * 5 * time.Millisecond
		p.failSync = rapid.IntRange(0, 3).Draw(rt, "syncs")
		s.failMark, s.failRead = rapid.IntRange(0, 3).Draw(rt, "marks"), rapid.IntRange(0, 3).Draw(rt, "reads")
		r := quick(s, p, quiet())
		r.start()
		cut := rapid.IntRange(0, len(sent)).Draw(rt, "cut")
		s.add(sent[:cut]...)
		s.add(sent[cut:]...)
		stop(rt, r)
		p.inOrder(rt, sent)
	})
}

// The process dies with the nth message: before it arrived, or afterwards but before the acknowledgement. The next
// process continues.
func TestDeathAtEveryPosition(t *testing.T) {
	t.Parallel()
	var sent []docstore.Message
	for v := 1; v <= 4; v++ {
		for _, record := range []string{"a", "b", "c"} {
			sent = append(sent, msg(record, v))
		}
	}
	for n := range sent {
		for _, arrived := range []bool{false, true} {
			s := newMemory()
			s.add(sent...)
			count, died := 0, make(chan struct{})
			p := &jetStream{fail: func(docstore.Message) (bool, bool) {
				if count++; count == n+1 {
					close(died)
				}
				return count > n+1 || count == n+1 && !arrived, count == n+1 && arrived
			}}
			s.failMark = 1 << 30 // no publication is noted
			r := quick(s, p, quiet())
			r.start()
			<-died
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			require.Error(t, r.Stop(ctx))

			s.failMark, p.fail = 0, nil
			r = quick(s, p, quiet())
			r.start()
			stop(t, r)
			p.inOrder(t, sent)
		}
	}
}

func TestNothingIsPublishedAgainWhileMarkingFails(t *testing.T) {
	t.Parallel()
	s := newMemory()
	s.failMark = 5
	published := 0
	p := &jetStream{fail: func(docstore.Message) (bool, bool) { published++; return false, false }}
	r := quick(s, p, quiet())
	r.start()
	s.add(msg("a", 1), msg("b", 1))
	s.waitEmpty(t)
	stop(t, r)
	require.Equal(t, 2, published)
}

// Replicas of a service relay the same store.
func TestTwoRelaysKeepTheOrder(t *testing.T) {
	t.Parallel()
	var sent []docstore.Message
	for v := 1; v <= 200; v++ {
		sent = append(sent, msg("a", v), msg("b", v))
	}
	trouble := rand.New(rand.NewPCG(1, 2))
	p := &jetStream{fail: func(docstore.Message) (bool, bool) { return trouble.IntN(8) == 0, trouble.IntN(8) == 0 }}
	s := newMemory()
	odd := func(m docstore.Message) bool { return m.Seq/2%2 == 1 } // each record's messages come from both
	even := func(m docstore.Message) bool { return !odd(m) }
	one, two := quick(replica{s, odd}, p, quiet()), quick(replica{s, even}, p, quiet())
	one.start()
	two.start()
	for _, m := range sent {
		s.add(m)
	}
	stop(t, one)
	stop(t, two)
	p.inOrder(t, sent)
}

func TestABatchIsMarkedAtOnce(t *testing.T) {
	t.Parallel()
	s := newMemory()
	for i := range 3 * batchSize {
		s.add(msg(strconv.Itoa(i), 1))
	}
	r := quick(s, &jetStream{}, quiet())
	r.start()
	stop(t, r)
	require.Equal(t, 3, s.marks)
}

func TestThePollFindsWhatNoSignalTold(t *testing.T) {
	t.Parallel()
	s := newMemory()
	r := quick(s, &jetStream{}, quiet())
	r.start()
	s.mu.Lock()
	s.next++
	m := msg("a", 1)
	m.Seq = s.next
	s.pending = append(s.pending, m) // written by another process
	s.mu.Unlock()
	s.waitEmpty(t)
	stop(t, r)
}

func TestStopAtItsDeadline(t *testing.T) {
	t.Parallel()
	s := newMemory()
	publishing := make(chan struct{})
	var once sync.Once
	r := quick(s, publisherFunc(func(ctx context.Context, messages []docstore.Message) []error {
		once.Do(func() { close(publishing) })
		<-ctx.Done() // NATS hangs
		errs := make([]error, len(messages))
		for i := range errs[1:] {
			errs[i+1] = ctx.Err()
		}
		return errs // but the first has been acknowledged
	}), quiet())
	r.start()
	s.add(msg("a", 1), msg("b", 1))
	<-publishing
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, r.Stop(ctx), "not empty")
	require.ErrorContains(t, r.Stop(ctx), "not empty", "again")
	require.Len(t, s.pending, 1, "known publications are noted even then")
}

type publisherFunc func(ctx context.Context, messages []docstore.Message) []error

func (f publisherFunc) Keep() time.Duration { return 0 }

func (f publisherFunc) Sync(context.Context) error { return nil }

func (f publisherFunc) Publish(ctx context.Context, messages []docstore.Message) []error {
	return f(ctx, messages)
}

func TestTroubleIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	tries := 0
	p := &jetStream{fail: func(docstore.Message) (bool, bool) { tries++; return tries <= 20, false }}
	s := newMemory()
	r := quick(s, p, slog.New(slog.NewTextHandler(&log, nil)))
	r.start()
	s.add(msg("a", 1))
	s.waitEmpty(t)
	stop(t, r)
	require.Equal(t, 1, strings.Count(log.String(), "events are not published"), log.String())
	require.Equal(t, 1, strings.Count(log.String(), "published again"), log.String())
}

func TestWaves(t *testing.T) {
	t.Parallel()
	got := waves([]docstore.Message{msg("a", 1), msg("a", 2), msg("b", 1), msg("a", 3), msg("b", 2), msg("c", 1)})
	require.Equal(t, [][]docstore.Message{
		{msg("a", 1), msg("b", 1), msg("c", 1)},
		{msg("a", 2), msg("b", 2)},
		{msg("a", 3)},
	}, got)
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	s := newMemory()
	gate := make(chan struct{})
	reg := prometheus.NewRegistry()
	r, err := StartRelay(s, publisherFunc(func(_ context.Context, messages []docstore.Message) []error {
		gate <- struct{}{}
		<-gate
		return make([]error, len(messages))
	}), quiet(), reg)
	require.NoError(t, err)
	_, err = StartRelay(s, nil, quiet(), reg)
	require.Error(t, err, "metrics of two relays")
	id, err := uuid.NewV7()
	require.NoError(t, err)
	copy(id[:6], []byte{0, 0, 0, 0, 0, 0}) // made in 1970
	m := msg("a", 1)
	m.ID = id.String()
	s.add(m)
	<-gate
	families, err := reg.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, f := range families {
		values[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
	}
	require.InDelta(t, 1, values["idp_outbox_backlog"], 0)
	require.Greater(t, values["idp_outbox_oldest_age_seconds"], 1e9)
	gate <- struct{}{}
	stop(t, r)
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP idp_outbox_backlog Events that JetStream does not have yet.
# TYPE idp_outbox_backlog gauge
idp_outbox_backlog 0
# HELP idp_outbox_oldest_age_seconds How long the oldest event has waited; 0 without one.
# TYPE idp_outbox_oldest_age_seconds gauge
idp_outbox_oldest_age_seconds 0
# HELP idp_outbox_publish_failures_total Failed attempts to publish an event; each event is tried again.
# TYPE idp_outbox_publish_failures_total counter
idp_outbox_publish_failures_total 0
# HELP idp_outbox_published_total Events that JetStream has acknowledged.
# TYPE idp_outbox_published_total counter
idp_outbox_published_total 1
`)))
}
