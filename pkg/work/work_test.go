package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

func TestMain(m *testing.M) { leaks.Main(m) }

type letter struct {
	Item
	To string `json:"to"`
}

type read struct {
	docstore.Meta
	Times int `json:"times"`
}

var (
	letters = Define(docstore.Schema[letter]{Name: "letters", Noun: "letter", NoIfMatch: true})
	reads   = docstore.Define(docstore.Schema[read]{Name: "reads", Noun: "read", NoIfMatch: true})
)

// office is a store of letters.
type office struct {
	t     *testing.T
	clock *basic.Clock
	store *docstore.Store
}

func open(t *testing.T) *office {
	clock := basic.NewClock()
	return &office{t, clock, basic.Store(t, clock, letters.Def(), reads.Def())}
}

// write stores letters that are due.
func (o *office) write(tenant string, ids ...string) {
	o.t.Helper()
	ctx := request.System(o.t.Context(), tenant)
	require.NoError(o.t, docstore.Do(ctx, o.store, func(tx *docstore.Tx) error {
		for _, id := range ids {
			item := New(tx.Now)
			item.ID = id
			if _, err := letters.Insert(ctx, tx, &letter{Item: item, To: id}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// find returns a tenant's letter; nil if it is gone.
func (o *office) find(tenant, id string) *letter {
	o.t.Helper()
	page, err := letters.Page(request.System(o.t.Context(), tenant), o.store, docstore.Query{
		Filter: docstore.ID(id), Limit: 1,
	})
	require.NoError(o.t, err)
	if len(page.Docs) == 0 {
		return nil
	}
	found, err := page.Docs[0].Value()
	require.NoError(o.t, err)
	return found
}

func (o *office) isGone(tenant, id string) func() bool {
	return func() bool { return o.find(tenant, id) == nil }
}

// replica runs a queue until stop, which waits; twice is once.
func (o *office) replica(c Config[letter]) (q *Queue[letter, *letter], stop func()) {
	o.t.Helper()
	q = NewQueue[letter](o.complete(c))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = q.Run(ctx) })
	stop = func() { cancel(); running.Wait() }
	o.t.Cleanup(stop)
	return q, stop
}

// complete fills in what a test leaves out.
func (o *office) complete(c Config[letter]) Config[letter] {
	c.Name, c.Items, c.Store, c.Metrics = "send letters", letters, o.store, prometheus.NewRegistry()
	if c.Log == nil {
		c.Log = basic.Log(o.t)
	}
	if c.Do == nil {
		c.Do = func(context.Context, *letter) Outcome { return Done() }
	}
	if c.Places == (fair.Limits{}) {
		c.Places = fair.Limits{Most: 8, OfTenant: 4}
	}
	if c.Time == 0 {
		c.Time = time.Minute
	}
	if c.Attempts == 0 {
		c.Attempts = 3
	}
	c.Pause = func(attempt int64) time.Duration { return time.Duration(attempt) * time.Minute }
	return c
}

// Replicas share the items: each is carried out once, at its tenant, and is gone.
func TestEachItemIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	o := open(t)
	var mu sync.Mutex
	times := map[string]int{}
	do := func(ctx context.Context, l *letter) Outcome {
		mu.Lock()
		defer mu.Unlock()
		times[request.Tenant(ctx)+"/"+l.To]++
		return Done()
	}
	for range 2 {
		o.replica(Config[letter]{Do: do})
	}
	var all []string
	for _, tenant := range []string{"acme", "globex"} {
		for i := range 40 {
			o.write(tenant, fmt.Sprint(tenant, i))
			all = append(all, fmt.Sprint(tenant, i))
		}
	}
	for _, id := range all {
		wait.Until(t, o.isGone(strings.TrimRight(id, "0123456789"), id))
	}
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, times, len(all))
	for id, n := range times {
		require.Equal(t, 1, n, id)
	}
}

// An attempt that fails is followed by others after pauses, until none is left. A panic is a failure.
func TestAttemptsThatFail(t *testing.T) {
	t.Parallel()
	o := open(t)
	attempts := make(chan int64, 10)
	log := &bytes.Buffer{}
	_, stop := o.replica(Config[letter]{
		Log: slog.New(slog.NewTextHandler(log, nil)),
		Do: func(_ context.Context, l *letter) Outcome {
			attempts <- l.Attempt
			if l.Attempt == 2 {
				panic("oops")
			}
			return Retry(errors.New("nobody is at home"))
		},
	})
	o.write("acme", "1")
	for attempt := int64(1); attempt <= 3; attempt++ {
		require.Equal(t, attempt, wait.Receive(t, attempts))
		if attempt < 3 {
			due := o.clock.Now().Add(time.Duration(attempt) * time.Minute)
			wait.Until(t, func() bool { return o.find("acme", "1").Next == due })
			o.clock.Advance(time.Duration(attempt) * time.Minute)
		}
	}
	wait.Until(t, o.isGone("acme", "1"))
	stop()
	require.Empty(t, attempts)
	require.Equal(t, 2, strings.Count(log.String(), "nobody is at home"))
	require.Equal(t, 1, strings.Count(log.String(), "fault=oops"))
}

// An attempt that the platform could not begin does not count. One that can never succeed is the last.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	o := open(t)
	attempts := make(chan int64, 10)
	outcomes := make(chan Outcome, 1)
	o.replica(Config[letter]{Do: func(_ context.Context, l *letter) Outcome {
		attempts <- l.Attempt
		return <-outcomes
	}})
	o.write("acme", "1")
	for range 5 { // more than there are attempts
		require.EqualValues(t, 1, wait.Receive(t, attempts))
		outcomes <- NotStarted(nil, time.Second)
		due := o.clock.Now().Add(time.Second)
		wait.Until(t, func() bool { return o.find("acme", "1").Next == due })
		o.clock.Advance(time.Second)
	}
	require.EqualValues(t, 1, wait.Receive(t, attempts))
	outcomes <- GiveUp(errors.New("moved away"))
	wait.Until(t, o.isGone("acme", "1"))
	require.Empty(t, attempts)
}

// What belongs to an outcome is stored with it.
func TestAnOutcomeIsStoredWithWhatBelongsToIt(t *testing.T) {
	t.Parallel()
	o := open(t)
	var fail sync.Once
	o.replica(Config[letter]{Do: func(_ context.Context, l *letter) Outcome {
		return Done().With("reads", func(ctx context.Context, tx *docstore.Tx) error {
			_, err := reads.Insert(ctx, tx, &read{Meta: docstore.Meta{ID: l.ID}, Times: int(l.Attempt)})
			fail.Do(func() { err = errors.New("the store is full") })
			return err
		})
	}})
	o.write("acme", "1")
	wait.Until(t, func() bool { return o.find("acme", "1").Attempt == 1 })
	_, err := reads.Find(request.System(t.Context(), "acme"), o.store, "1")
	require.Error(t, err)
	wait.Until(t, func() bool { // the outcome is lost, and the lease ends
		o.clock.Advance(time.Minute)
		return o.find("acme", "1") == nil
	})
	doc, err := reads.Find(request.System(t.Context(), "acme"), o.store, "1")
	require.NoError(t, err)
	found, err := doc.Value()
	require.NoError(t, err)
	require.Equal(t, 2, found.Times)
}

// A replica that died holds an item until its lease ends. What it stores afterwards is too late.
func TestAnItemOfADeadReplicaIsCarriedOutByAnother(t *testing.T) {
	t.Parallel()
	o := open(t)
	claimed, late := make(chan int64, 1), make(chan struct{})
	_, stopFirst := o.replica(Config[letter]{Do: func(_ context.Context, l *letter) Outcome {
		claimed <- l.Attempt
		<-late
		return Retry(nil)
	}})
	o.write("acme", "1")
	require.EqualValues(t, 1, wait.Receive(t, claimed))
	attempts := make(chan int64, 1)
	end := make(chan struct{})
	o.replica(Config[letter]{Do: func(_ context.Context, l *letter) Outcome {
		attempts <- l.Attempt
		<-end
		return Done()
	}})
	o.clock.Advance(time.Minute)
	require.EqualValues(t, 1, o.find("acme", "1").Attempt, "the lease outlasts the time of the attempt")
	o.clock.Advance(spare)
	require.EqualValues(t, 2, wait.Receive(t, attempts))
	before := o.find("acme", "1")
	close(late)
	stopFirst()
	require.Equal(t, before, o.find("acme", "1"))
	close(end)
	wait.Until(t, o.isGone("acme", "1"))
}

// An item that each time ends the process is given up.
func TestAnItemThatIsLostAgainAndAgain(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.write("acme", "1")
	var lost []int64
	q := NewQueue[letter](o.complete(Config[letter]{
		Do: func(context.Context, *letter) Outcome { t.Error("there is no attempt left"); return Done() },
		Lost: func(_ context.Context, l *letter) Outcome {
			lost = append(lost, l.Attempt)
			return GiveUp(nil)
		},
	}))
	ctx := request.System(t.Context(), "acme")
	for range 3 {
		item, err := q.claim(ctx, "1")
		require.NoError(t, err)
		require.NotNil(t, item)
		again, err := q.claim(ctx, "1")
		require.NoError(t, err)
		require.Nil(t, again, "it is not due")
		o.clock.Advance(time.Hour)
	}
	n, err := q.Once(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, []int64{4}, lost)
	require.Nil(t, o.find("acme", "1"))
}

// An item that cannot be claimed is tried again after longer and longer pauses, and delays no others.
func TestAnItemThatCannotBeClaimed(t *testing.T) {
	t.Parallel()
	o := open(t)
	log := &bytes.Buffer{}
	q := NewQueue[letter](o.complete(Config[letter]{Log: slog.New(slog.NewTextHandler(log, nil))}))
	ref := docstore.Ref{Tenant: "acme", ID: "1"}
	for _, took := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		q.postpone(t.Context(), ref, errors.New("it cannot be read"))
		o.clock.Advance(took - time.Millisecond)
		require.True(t, q.isPaused(ref))
		o.clock.Advance(time.Millisecond)
		require.False(t, q.isPaused(ref))
	}
	require.Equal(t, 1, strings.Count(log.String(), "it cannot be read"))
	for i := range 3 * maxPaused {
		q.postpone(t.Context(), docstore.Ref{Tenant: "acme", ID: fmt.Sprint(i)}, errors.New("it cannot be read"))
		o.clock.Advance(2 * time.Millisecond)
	}
	require.LessOrEqual(t, len(q.paused), maxPaused)
}

func TestAnIncompleteConfiguration(t *testing.T) {
	t.Parallel()
	o := open(t)
	c := o.complete(Config[letter]{})
	c.Attempts = 0
	require.Panics(t, func() { NewQueue[letter](c) })
}

// When the process ends, attempts get some more time. One that is cut short does not count.
func TestAttemptsAtTheEndOfTheProcess(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		grace time.Duration
		after *letter
	}{
		"in time":   {time.Hour, nil},
		"cut short": {0, &letter{Item: Item{Attempt: 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := open(t)
			begun, end := make(chan struct{}), make(chan struct{})
			_, stop := o.replica(Config[letter]{Grace: row.grace, Do: func(ctx context.Context, _ *letter) Outcome {
				close(begun)
				if row.grace > 0 {
					<-end
				} else {
					<-ctx.Done()
				}
				return DoneOr(ctx.Err())
			}})
			o.write("acme", "1")
			wait.Receive(t, begun)
			ended := make(chan struct{})
			go func() { stop(); close(ended) }()
			if row.grace > 0 {
				close(end)
			}
			wait.Receive(t, ended)
			after := o.find("acme", "1")
			if row.after == nil {
				require.Nil(t, after)
				return
			}
			require.Zero(t, after.Attempt)
			require.Equal(t, o.clock.Now(), after.Next, "it is due")
		})
	}
}

// A tenant with much work leaves places to others, and within a tenant those that have waited longer come first.
func TestTurns(t *testing.T) {
	t.Parallel()
	o := open(t)
	goOn := make(chan struct{})
	begun := make(chan string, 100)
	q, _ := o.replica(Config[letter]{
		Places: fair.Limits{Most: 3, OfTenant: 2},
		Turn:   func(id string) string { return id[:1] },
		Do: func(ctx context.Context, l *letter) Outcome {
			begun <- request.Tenant(ctx) + "/" + l.To[:1]
			<-goOn
			return Done()
		},
	})
	defer close(goOn)
	o.write("acme", "a1", "a2", "a3", "a4", "a5", "b1")
	first := []string{wait.Receive(t, begun), wait.Receive(t, begun)}
	require.ElementsMatch(t, []string{"acme/a", "acme/b"}, first, "both turns, not twice the first")
	o.write("globex", "c1", "c2")
	require.Equal(t, "globex/c", wait.Receive(t, begun))
	require.True(t, q.attempts.Full())
	goOn <- struct{}{}
	wait.Receive(t, begun)
}

// What is in turn depends on who had the last one, also in earlier lists. Tenants may have the same names for turns.
func TestTurnsGoOn(t *testing.T) {
	t.Parallel()
	o := open(t)
	q := NewQueue[letter](o.complete(Config[letter]{
		Turn: func(id string) string { return strings.TrimRight(id, "0123456789") },
	}))
	q.rounds, q.round = map[turn]int{{"acme", "b"}: 7}, 7
	of := func(tenant, id string) docstore.Ref { return docstore.Ref{Tenant: tenant, ID: id} }
	got := q.inTurn([]docstore.Ref{of("acme", "b1"), of("acme", "b2"), of("globex", "b9"), of("acme", "b3"),
		of("acme", "q1"), of("acme", "1"), of("globex", "a1")})
	require.Equal(t, []docstore.Ref{of("acme", "1"), of("acme", "q1"), of("globex", "a1"), of("acme", "b1"),
		of("acme", "b2"), of("acme", "b3"), of("globex", "b9")}, got)
}

// An attempt has its time.
func TestTheTimeOfAnAttempt(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.write("acme", "1")
	ended := 0
	q := NewQueue[letter](o.complete(Config[letter]{
		Time:  time.Millisecond,
		Do:    func(ctx context.Context, _ *letter) Outcome { <-ctx.Done(); return Retry(ctx.Err()) },
		Ended: func() { ended++ },
	}))
	n, err := q.Once(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, 1, ended)
	require.EqualValues(t, 1, o.find("acme", "1").Attempt, "it counts")
	require.EqualValues(t, 1, testutil.ToFloat64(q.outcomes.WithLabelValues("send letters", "retry")))
}

// An item may be deleted while it is carried out.
func TestAnItemThatIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.write("acme", "1")
	log := &bytes.Buffer{}
	q := NewQueue[letter](o.complete(Config[letter]{
		Log: slog.New(slog.NewTextHandler(log, nil)),
		Do: func(ctx context.Context, l *letter) Outcome {
			err := docstore.Do(ctx, o.store, func(tx *docstore.Tx) error {
				return letters.DeleteWhere(ctx, tx, docstore.ID(l.ID), nil)
			})
			return DoneOr(err).With("", func(context.Context, *docstore.Tx) error { return errors.New("too late") })
		},
	}))
	_, err := q.Once(t.Context())
	require.NoError(t, err)
	require.Empty(t, log.String())
}
