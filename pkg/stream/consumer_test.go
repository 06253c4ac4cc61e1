package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

var errBusy = errors.New("busy")

// consume starts a consumer that retries without delay.
func consume(t *testing.T, b program, name string, handle func(ctx context.Context, e Event) error) *Consumer {
	t.Helper()
	return b.consume(t, ConsumerConfig{Name: name, Types: Types{"user.*"},
		Handle: handle,
		retry:  func() backoff.BackOff { return &backoff.ZeroBackOff{} }})
}

func (p program) consume(t *testing.T, config ConsumerConfig) *Consumer {
	t.Helper()
	c, err := p.Consume(t.Context(), config, p.store, p.group)
	require.NoError(t, err)
	return c
}

// journal records the versions that were handled, and checks as they come that none was skipped.
type journal struct {
	mu      sync.Mutex
	version map[string]int64
	times   map[string]int // by event id
	wrong   error
	left    int
	all     chan struct{}
}

func newJournal(want int) *journal {
	return &journal{version: map[string]int64{}, times: map[string]int{}, left: want, all: make(chan struct{})}
}

func (j *journal) note(e Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.Sequence > j.version[e.Subject]+1 {
		j.wrong = fmt.Errorf("%s came after version %d", e.ID, j.version[e.Subject])
	}
	j.version[e.Subject] = max(e.Sequence, j.version[e.Subject])
	if j.times[e.ID]++; j.times[e.ID] == 1 {
		if j.left--; j.left == 0 {
			close(j.all)
		}
	}
}

// wait waits for all events and returns how many came more than once.
func (j *journal) wait(t *testing.T) int {
	t.Helper()
	wait.Receive(t, j.all)
	j.mu.Lock()
	defer j.mu.Unlock()
	require.NoError(t, j.wrong)
	repeated := 0
	for _, n := range j.times {
		if n > 1 {
			repeated++
		}
	}
	return repeated
}

// history is several versions of several records, mixed.
func history(records, versions int) []docstore.Message {
	var all []docstore.Message
	for v := 1; v <= versions; v++ {
		for r := 1; r <= records; r++ {
			all = append(all, message(strconv.Itoa(r), v))
		}
	}
	return all
}

func TestRecordsGoSideBySideButEachInOrder(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	all := history(40, 10)
	publish(t, b, all...)
	j := newJournal(len(all))
	var busy sync.Map
	var running, most atomic.Int64
	both := make(chan struct{})
	consume(t, b, "reader", func(ctx context.Context, e Event) error {
		if _, taken := busy.LoadOrStore(e.Subject, true); taken {
			return errors.New("two events of a record at the same time")
		}
		defer busy.Delete(e.Subject)
		if n := running.Add(1); n == 2 && most.Swap(n) != n {
			close(both)
		}
		<-both // would never come if records waited for each other
		j.note(e)
		running.Add(-1)
		return nil
	})
	require.Zero(t, j.wait(t))
}

func TestTheHandlerKnowsWhereTheEventComesFrom(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	publish(t, b, message("1", 1))
	got := make(chan request.Info, 1)
	consume(t, b, "reader", func(ctx context.Context, _ Event) error {
		got <- request.From(ctx)
		return nil
	})
	require.Equal(t, request.Info{ID: "req-1", Tenant: "acme", Actor: "system", PayloadOrigin: "hr"}, wait.Receive(t,
		got))
}

func TestAFailedEventHoldsBackItsRecordOnly(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	others := make(chan struct{})
	var failures atomic.Int64
	order := make(chan int64, 2)
	consume(t, b, "reader", func(_ context.Context, e Event) error {
		if e.Subject == "2" {
			close(others)
			return nil
		}
		if e.Sequence == 1 && failures.Add(1) < 9 {
			<-others // the other record's event comes although this one fails
			if failures.Load()%2 == 0 {
				panic("oops")
			}
			return errBusy
		}
		order <- e.Sequence
		return nil
	})
	publish(t, b, message("1", 1), message("1", 2), message("2", 1))
	require.EqualValues(t, 1, wait.Receive(t, order))
	require.EqualValues(t, 2, wait.Receive(t, order))
	require.Equal(t, 1, testutil.CollectAndCount(b.metrics.parked), "it is there before the first event is parked")
	require.Zero(t, testutil.ToFloat64(b.metrics.parked.WithLabelValues("reader")))
}

func TestParkingAndReplay(t *testing.T) {
	t.Parallel()
	b, x := open(t)
	var broken atomic.Bool
	broken.Store(true)
	var tries atomic.Int64
	handled := make(chan Event, 8)
	consume(t, b, "reader", func(_ context.Context, e Event) error {
		if broken.Load() && e.Sequence <= 2 {
			tries.Add(1)
			return fmt.Errorf("%w:\r\nX-Evil: 山田", errBusy)
		}
		handled <- e
		return nil
	})
	other := make(chan Event, 8)
	consume(t, b, "other", func(_ context.Context, e Event) error { other <- e; return nil })

	publish(t, b, message("1", 1), message("1", 2), message("1", 3))
	require.EqualValues(t, 3, wait.Receive(t, handled).Sequence, "events after parked ones are handled")
	require.EqualValues(t, 20, tries.Load())
	require.EqualValues(t, 2, testutil.ToFloat64(b.metrics.parked.WithLabelValues("reader")))
	for range 3 {
		wait.Receive(t, other)
	}

	stream, err := b.js.Stream(t.Context(), bus.DeadLetterStream)
	require.NoError(t, err)
	parked, err := stream.GetMsg(t.Context(), 1, jetstream.WithGetMsgSubject("idp.deadletters.parked.reader"+".>"))
	require.NoError(t, err)
	require.Equal(t, "idp.deadletters.parked.reader.acme", parked.Subject)
	require.Equal(t, message("1", 1).Payload, parked.Data)
	require.Equal(t, "idp.events.acme.user.updated", parked.Header.Get("Idp-Original-Subject"))
	require.Equal(t, "10", parked.Header.Get("Idp-Tries"))
	require.Equal(t, "busy:  X-Evil: 山田", parked.Header.Get("Idp-Reason"))
	require.Empty(t, parked.Header.Get("X-Evil"))

	n, err := b.Replay(t.Context(), "other")
	require.NoError(t, err)
	require.Zero(t, n)

	// Replayed while the fault remains: parked again, and not dropped as a duplicate.
	n, err = b.Replay(t.Context(), "reader")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	wait.Until(t, func() bool {
		return testutil.ToFloat64(b.metrics.parked.WithLabelValues("reader")) == 4
	})

	broken.Store(false)
	n, err = connect(t, bus.Config{InProcess: x}).Replay(t.Context(), "reader") // from any process
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.EqualValues(t, 1, wait.Receive(t, handled).Sequence)
	require.EqualValues(t, 2, wait.Receive(t, handled).Sequence)
	n, err = b.Replay(t.Context(), "reader")
	require.NoError(t, err)
	require.Zero(t, n)
	require.Empty(t, other, "a replay is for one consumer")
	wait.Until(t, func() bool { return stored(t, stream) == 0 }, "what was replayed is removed")
	_, err = b.Replay(t.Context(), "*")
	require.Error(t, err)
}

// stored is how many messages a stream has.
func stored(t *testing.T, stream jetstream.Stream) uint64 {
	t.Helper()
	info, err := stream.Info(t.Context())
	require.NoError(t, err)
	return info.State.Msgs
}

func TestWhatIsNotAnEventIsLeftOut(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	handled := make(chan Event, 1)
	consume(t, b, "reader", func(_ context.Context, e Event) error { handled <- e; return nil })
	bad := []docstore.Message{message("1", 1), message("2", 1), message("3", 1)}
	bad[0].Payload = []byte("\x00")
	bad[1].Payload = nil
	bad[2].Subject = "idp.events.globex.user.updated" // a subject of another tenant
	publish(t, b, append(bad, message("4", 1))...)
	require.Equal(t, "4-1", wait.Receive(t, handled).ID)
	require.EqualValues(t, 3, testutil.ToFloat64(b.metrics.skipped.WithLabelValues("log")))

	// One that is replayed is parked again, without a try.
	require.NoError(t, b.Park(t.Context(), "reader", message("1", 1).Subject, bad[0].Payload, errBusy, 0))
	_, err := b.Replay(t.Context(), "reader")
	require.NoError(t, err)
	wait.Until(t, func() bool { return testutil.ToFloat64(b.metrics.parked.WithLabelValues("reader")) == 1 })
	require.Zero(t, testutil.ToFloat64(b.metrics.failed.WithLabelValues("reader")))
}

func TestStopWaitsForHandlers(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	started, finish := make(chan struct{}), make(chan struct{})
	var done atomic.Bool
	c := consume(t, b, "reader", func(ctx context.Context, _ Event) error {
		close(started)
		<-finish
		done.Store(ctx.Err() == nil)
		return nil
	})
	publish(t, b, message("1", 1), message("1", 2))
	wait.Receive(t, started)
	c.stop() // the first step of Stop: from now on the handler gets nothing new
	stopped := make(chan error, 1)
	go func() { stopped <- c.Stop(t.Context()) }()
	close(finish)
	require.NoError(t, wait.Receive(t, stopped))
	require.True(t, done.Load())
	require.NoError(t, c.Stop(t.Context()), "again")

	// What was not handled goes to the next consumer at once.
	handled := make(chan Event, 2)
	consume(t, b, "reader", func(_ context.Context, e Event) error { handled <- e; return nil })
	for wait.Receive(t, handled).Sequence != 2 {
	}
}

func TestStopCancelsHandlersAtItsDeadline(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	started := make(chan struct{}, maxTries)
	c := consume(t, b, "reader", func(ctx context.Context, _ Event) error {
		started <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	publish(t, b, message("1", 1))
	wait.Receive(t, started)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.Stop(ctx), context.Canceled)
	require.Empty(t, started, "a cancelled handler is not called again")
}

// Two replicas share a consumer: one works, the other continues when it stops.
func TestReplicasTakeTurns(t *testing.T) {
	t.Parallel()
	b, x := open(t)
	all := history(20, 30)
	j := newJournal(len(all))
	var active [2]atomic.Int64
	var consumers []*Consumer
	programs := []program{b, b.replica(t, x)}
	wait.Until(t, func() bool {
		return b.group.Lives(programs[1].group.ID) && programs[1].group.Lives(b.group.ID)
	})
	for i, p := range programs {
		consumers = append(consumers, consume(t, p, "reader",
			func(_ context.Context, e Event) error {
				active[i].Add(1)
				j.note(e)
				return nil
			}))
	}
	publish(t, b, all[:300]...)
	wait.Until(t, func() bool { return active[0].Load()+active[1].Load() >= 300 })
	first := 0
	if active[1].Load() > 0 {
		first = 1
	}
	require.Zero(t, active[1-first].Load())
	go func() {
		assertNoError(t, consumers[first].Stop(context.Background()))
		programs[first].leave()
	}()
	publish(t, b, all[300:]...)
	j.wait(t)
}

func assertNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// A replica dies with unfinished events. The next one continues with them, in order.
func TestAfterADeathAllComesInOrder(t *testing.T) {
	t.Parallel()
	b, x := open(t)
	all := history(10, 30)
	j := newJournal(len(all))
	dying := connect(t, bus.Config{InProcess: x})
	dying.store = b.store
	dying.group, _ = runGroup(t, b.store, true) // it writes no heartbeat
	var alive atomic.Int64
	dead := make(chan struct{})
	consume(t, dying, "reader", func(ctx context.Context, e Event) error {
		if alive.Add(1) > 50 {
			if alive.Load() == 51 {
				close(dead)
			}
			<-ctx.Done()
			return ctx.Err()
		}
		j.note(e)
		return nil
	})
	publish(t, b, all...)
	wait.Receive(t, dead)
	consume(t, b, "reader", func(_ context.Context, e Event) error { j.note(e); return nil })
	j.wait(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.Error(t, dying.Bus.Close(ctx))
}

func TestConsumersSurviveNATS(t *testing.T) {
	t.Parallel()
	b, x := open(t)
	all := history(10, 30)
	j := newJournal(len(all))
	publish(t, b, all...) // before the consumer makes NATS stop
	var restart sync.Once
	consume(t, b, "reader", func(_ context.Context, e Event) error {
		if e.Sequence == 5 {
			restart.Do(func() { x.Stop(); x.Start() })
		}
		j.note(e)
		return nil
	})
	j.wait(t)
}

// JetStream only knows the place; the store decides.
func TestAConsumerThatIsDeletedIsMadeAgain(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	handled := make(chan Event, 8)
	consume(t, b, "reader", func(_ context.Context, e Event) error { handled <- e; return nil })
	publish(t, b, message("1", 1))
	wait.Receive(t, handled)
	require.NoError(t, b.js.DeleteConsumer(t.Context(), bus.EventStream, "reader"))
	publish(t, b, message("1", 2))
	require.Equal(t, "1-2", wait.Receive(t, handled).ID)
	wait.Until(t, func() bool {
		_, err := b.js.Consumer(t.Context(), bus.EventStream, "reader")
		return err == nil
	})
}

func TestConsumeRefusesABadConfig(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	handle := func(context.Context, Event) error { return nil }
	for name, c := range map[string]ConsumerConfig{
		"name":            {Name: "a.b", Types: Types{"*"}, Handle: handle},
		"no subject":      {Name: "reader", Handle: handle},
		"foreign subject": {Name: "reader", Types: Types{"*", "idp.check.>"}, Handle: handle},
		"no handler":      {Name: "reader", Types: Types{"*"}},
	} {
		_, err := b.Consume(t.Context(), c, b.store, b.group)
		require.Error(t, err, name)
	}
}

func TestHeldEventsAreBounded(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	all := history(50, 1)
	publish(t, b, all...)
	turns := make(chan *fair.Semaphore, 1)
	var most atomic.Int64
	started, goOn := make(chan struct{}, len(all)), make(chan struct{})
	b.consume(t, ConsumerConfig{Name: "reader", Types: Types{"*"}, enough: 7,
		opened: func(of *fair.Semaphore) { turns <- of },
		Handle: func(context.Context, Event) error {
			started <- struct{}{}
			<-goOn
			of := <-turns
			most.Store(max(most.Load(), int64(of.Callers("acme"))))
			turns <- of
			return nil
		}})
	for range 7 {
		wait.Receive(t, started)
	}
	close(goOn)
	for range len(all) - 7 {
		wait.Receive(t, started)
	}
	require.Less(t, most.Load(), int64(2*7), "one less than enough, and then as many again")
}

func TestRetriesSpanMinutes(t *testing.T) {
	t.Parallel()
	var sum time.Duration
	wait := retryDelays()
	for range maxTries - 1 {
		sum += wait.NextBackOff()
	}
	require.InDelta(t, 7*time.Minute, sum, float64(2*time.Minute))
}

// One tenant has 150 events, another a single one that came after them: that one is handled as soon as a turn is free.
func TestTenantsHaveTurns(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	const many = 150
	for i := range many {
		publish(t, b, message(strconv.Itoa(i), 1))
	}
	other := message("1", 1)
	other.ID, other.Subject = "other", "idp.events.globex.user.updated"
	other.Payload = bytes.ReplaceAll(bytes.ReplaceAll(other.Payload, []byte(`"1-1"`), []byte(`"other"`)),
		[]byte("acme"), []byte("globex"))
	publish(t, b, other)
	handled, over, gates := make(chan string), make(chan struct{}), make(chan *fair.Semaphore, 10)
	defer close(over)
	b.consume(t, ConsumerConfig{Name: "reader", Types: Types{"user.*"},
		atOnce: 1, opened: func(turns *fair.Semaphore) { gates <- turns },
		Handle: func(_ context.Context, e Event) error {
			select {
			case handled <- e.Tenant:
			case <-over:
			}
			return nil
		}})
	var open []*fair.Semaphore
	wait.Until(t, func() bool {
		for len(gates) > 0 {
			open = append(open, <-gates)
		}
		return slices.ContainsFunc(open, func(g *fair.Semaphore) bool {
			return g.Callers("acme") == many && g.Callers("globex") == 1
		})
	})
	first := []string{wait.Receive(t, handled), wait.Receive(t, handled), wait.Receive(t, handled)}
	require.Contains(t, first, "globex", "of all that wait")
}

// An event that is being retried takes no turn between its attempts.
func TestRetriesTakeNoTurn(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	publish(t, b, message("1", 1), message("2", 1))
	handled := make(chan struct{})
	b.consume(t, ConsumerConfig{Name: "reader", Types: Types{"user.*"},
		atOnce: 1,
		retry:  func() backoff.BackOff { return backoff.NewConstantBackOff(time.Hour) },
		Handle: func(_ context.Context, e Event) error {
			if e.Subject == "1" {
				return errBusy
			}
			close(handled)
			return nil
		}})
	wait.Receive(t, handled)
}

// The place of the consumer that is the last to handle events bounds what is dropped; a reader's does not.
func TestConsumersThatAreBehindAreFound(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	_, _, ok, err := b.Handled(t.Context())
	require.NoError(t, err)
	require.False(t, ok)
	blocked, goOn := make(chan struct{}, 1), make(chan struct{})
	b.consume(t, ConsumerConfig{Name: "slow", Types: Types{"*"},
		Handle: func(context.Context, Event) error { blocked <- struct{}{}; <-goOn; return nil }})
	publish(t, b, message("1", 1))
	wait.Receive(t, blocked)
	place, name, ok, err := b.Handled(t.Context())
	require.NoError(t, err)
	stream, err := b.js.Stream(t.Context(), bus.EventStream)
	require.NoError(t, err)
	require.Equal(t, []any{true, "slow"}, []any{ok, name})
	require.Less(t, place, stream.CachedInfo().State.LastSeq)
	close(goOn)
	wait.Until(t, func() bool { _, _, ok, err = b.Handled(t.Context()); return err == nil && !ok })
}

// A server that has lost its newest events gives their places to others. Those are handled, too, also if the place that
// was saved is no longer among the events in memory.
func TestAConsumerReadsTheEventsAtThePlacesOfLostOnes(t *testing.T) {
	t.Parallel()
	b, x := open(t)
	var mu sync.Mutex
	seen := map[string]bool{}
	note := func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		seen[e.ID] = true
	}
	has := func(id string) bool {
		mu.Lock()
		defer mu.Unlock()
		return seen[id]
	}
	release := make(chan struct{})
	c := consume(t, b, "reader", func(_ context.Context, e Event) error {
		if e.Subject == "12" {
			<-release
			return errBusy
		}
		note(e)
		return nil
	})
	publish(t, b, message("1", 1))
	wait.Until(t, func() bool { return has("1-1") })
	first := b.end()
	before := x.Copy()
	const many = 400 // more than the Log has in memory
	for i := 2; i <= many; i++ {
		publish(t, b, message(strconv.Itoa(i), 1))
	}
	wait.Until(t, func() bool { return has(strconv.Itoa(many) + "-1") })
	wait.Until(t, func() bool {
		at, err := consumerPlaces.Of(t.Context(), b.store, b.Log, "reader")
		return err == nil && at == first+10
	})
	close(release)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.Stop(ended)
	b.leave()
	b.Log.Close()
	x.Restore(before)
	next := b.replica(t, x)
	for i := 1; i <= 15; i++ {
		publish(t, next, message("new"+strconv.Itoa(i), 1))
	}
	consume(t, next, "reader", func(_ context.Context, e Event) error { note(e); return nil })
	for i := 1; i <= 15; i++ {
		wait.Until(t, func() bool { return has(fmt.Sprintf("new%d-1", i)) }, "new%d", i)
	}
}

// A replica that could not write its heartbeat handles nothing more, because another one may do so.
func TestNothingIsHandledWithoutOwning(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	owns, handled := true, 0
	c := &Consumer{
		log: b.Log, handling: t.Context(), owns: func() bool { return owns },
		config: ConsumerConfig{
			Name: "reader", atOnce: 1, retry: retryDelays,
			Handle: func(context.Context, Event) error {
				handled++
				owns = false
				return nil
			},
		},
	}
	d := c.newDispatcher(t.Context())
	for version := 1; version <= 3; version++ {
		m := message("1", version)
		e, err := Decode(m.Subject, m.Payload)
		require.NoError(t, err)
		e.Place = uint64(version)
		d.add(&delivery{event: e, before: mark{uint64(version - 1), "before"}})
	}
	d.group.Wait()
	require.Equal(t, 1, handled)
	before, holds := d.done()
	require.Equal(t, []any{mark{1, "before"}, true}, []any{before, holds})
}

// An event that is replayed and handled while its replica stops is not handled again.
func TestAReplayAtTheEndIsRemoved(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	started, finish := make(chan struct{}), make(chan struct{})
	c := consume(t, b, "reader", func(context.Context, Event) error {
		close(started)
		<-finish
		return nil
	})
	m := message("1", 1)
	require.NoError(t, b.Park(t.Context(), "reader", m.Subject, m.Payload, errBusy, 1))
	_, err := b.Replay(t.Context(), "reader")
	require.NoError(t, err)
	wait.Receive(t, started)
	c.stop()
	close(finish)
	require.NoError(t, c.Stop(t.Context()))
	stream, err := b.js.Stream(t.Context(), bus.DeadLetterStream)
	require.NoError(t, err)
	require.Zero(t, stored(t, stream))
}

// The stream of dead letters may lose its newest messages, and give their places to others.
func TestReplaysAfterALossOfDeadLetters(t *testing.T) {
	t.Parallel()
	b, x := open(t)
	handled := make(chan string, 8)
	consume(t, b, "reader", func(_ context.Context, e Event) error { handled <- e.ID; return nil })
	publish(t, b, message("9", 1))
	require.Equal(t, "9-1", wait.Receive(t, handled))
	before := x.Copy()
	replay := func(m docstore.Message) {
		wait.Until(t, func() bool { return b.Park(t.Context(), "reader", m.Subject, m.Payload, errBusy, 1) == nil })
		wait.Until(t, func() bool { _, err := b.Replay(t.Context(), "reader"); return err == nil })
	}
	replay(message("1", 1))
	require.Equal(t, "1-1", wait.Receive(t, handled))
	stream, err := b.js.Stream(t.Context(), bus.DeadLetterStream)
	require.NoError(t, err)
	wait.Until(t, func() bool { return stored(t, stream) == 0 })
	x.Restore(before)
	replay(message("2", 1))
	for wait.Receive(t, handled) != "2-1" {
	}
}

// What a version before has replayed stays handled.
func TestReplaysOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	replay := func(m docstore.Message) {
		require.NoError(t, b.Park(t.Context(), "reader", m.Subject, m.Payload, errBusy, 1))
		_, err := b.Replay(t.Context(), "reader")
		require.NoError(t, err)
	}
	replay(message("1", 1))
	durable, err := b.js.CreateConsumer(t.Context(), bus.DeadLetterStream, jetstream.ConsumerConfig{
		Durable: "reader", AckPolicy: jetstream.AckExplicitPolicy,
		FilterSubjects: []string{"idp.deadletters.replay.reader.*"}})
	require.NoError(t, err)
	m, err := durable.Next()
	require.NoError(t, err)
	require.NoError(t, m.DoubleAck(t.Context()))
	replay(message("2", 1))
	handled := make(chan string, 8)
	consume(t, b, "reader", func(_ context.Context, e Event) error { handled <- e.ID; return nil })
	require.Equal(t, "2-1", wait.Receive(t, handled))
	_, err = b.js.Consumer(t.Context(), bus.DeadLetterStream, "reader")
	require.ErrorIs(t, err, jetstream.ErrConsumerNotFound)
}

// Events of other types hold up nothing, and a consumer that had nothing to do since it began is not behind.
func TestAConsumerWithoutEventsIsNotBehind(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	handled := make(chan string, 8)
	handle := func(_ context.Context, e Event) error { handled <- e.ID; return nil }
	c := consume(t, b, "reader", handle)
	publish(t, b, message("1", 1))
	require.Equal(t, "1-1", wait.Receive(t, handled))
	require.NoError(t, c.Stop(t.Context()))
	require.NoError(t, b.js.DeleteConsumer(t.Context(), bus.EventStream, "reader"))
	consume(t, b, "reader", handle)
	isBehind := func() bool {
		_, _, behind, err := b.Handled(t.Context())
		require.NoError(t, err)
		return behind
	}
	wait.Until(t, func() bool {
		_, err := b.js.Consumer(t.Context(), bus.EventStream, "reader")
		return err == nil && !isBehind()
	})
	other := message("2", 1)
	other.Subject = "idp.events.acme.thing.updated"
	publish(t, b, other)
	wait.Until(t, func() bool { return !isBehind() }) // NATS may count the event before it looks at its subject
	require.Empty(t, handled)
}
