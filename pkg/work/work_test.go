package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
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
	t      *testing.T
	clock  *basic.Clock
	engine *engine
	store  *docstore.Store
}

func open(t *testing.T) *office {
	o := &office{t: t, clock: basic.NewClock(), engine: &engine{Engine: basic.Engine(t, basic.Place{})}}
	var err error
	o.store, err = docstore.Open(t.Context(), o.engine, o.clock, letters.Def(), reads.Def())
	require.NoError(t, err)
	return o
}

// mortal opens the store once more, as a replica has it that dies while its engine is away.
func (o *office) mortal() (*engine, *docstore.Store) {
	o.t.Helper()
	e := &engine{Engine: prepared{o.engine.Engine}}
	store, err := docstore.Open(o.t.Context(), e, o.clock, letters.Def(), reads.Def())
	require.NoError(o.t, err)
	return e, store
}

// prepared is an engine that another store has prepared, and closes.
type prepared struct{ docstore.Engine }

func (prepared) Prepare(context.Context, []*docstore.Def) error { return nil }
func (prepared) Close() error                                   { return nil }

// engine can be away, and can say of a write that it failed although it was committed.
type engine struct {
	docstore.Engine
	away      atomic.Bool
	lists     atomic.Int64                 // how often it listed due documents
	committed atomic.Pointer[func() error] // called after the next write
}

func (e *engine) Write(ctx context.Context, fn func(docstore.EngineTx) error) error {
	if e.away.Load() {
		return errors.New("the store is away")
	}
	err := e.Engine.Write(ctx, fn)
	if committed := e.committed.Load(); committed != nil && err == nil && e.committed.CompareAndSwap(committed, nil) {
		return (*committed)()
	}
	return err
}

func (e *engine) Due(ctx context.Context, def *docstore.Def, before int64, limit int) ([]docstore.Ref, error) {
	e.lists.Add(1)
	return e.Engine.Due(ctx, def, before, limit)
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
	c.Name, c.Items, c.Metrics = "send letters", letters, prometheus.NewRegistry()
	if c.Store == nil {
		c.Store = o.store
	}
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
	if c.Attempts == 0 && c.States == nil {
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
	require.Equal(t, 1, strings.Count(log.String(), "an attempt has failed"))
	require.Equal(t, 1, strings.Count(log.String(), "an item is given up"))
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
	failed := make(chan struct{}, 1)
	o.replica(Config[letter]{Do: func(_ context.Context, l *letter) Outcome {
		return Done().With("reads", func(ctx context.Context, tx *docstore.Tx) error {
			_, err := reads.Insert(ctx, tx, &read{Meta: docstore.Meta{ID: l.ID}, Times: int(l.Attempt)})
			fail.Do(func() {
				err = errors.New("the store is full")
				failed <- struct{}{}
			})
			return err
		})
	}})
	o.write("acme", "1")
	wait.Receive(t, failed) // a clock that goes on earlier would end the lease before the attempt begins
	_, err := reads.Find(request.System(t.Context(), "acme"), o.store, "1")
	require.Error(t, err)
	o.clock.Advance(lease) // the outcome is lost, and the lease ends
	wait.Until(t, o.isGone("acme", "1"))
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
	first, store := o.mortal()
	_, stopFirst := o.replica(Config[letter]{Store: store, Do: func(_ context.Context, l *letter) Outcome {
		first.away.Store(true) // before the lease is renewed
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
	o.clock.Advance(lease - time.Millisecond)
	require.EqualValues(t, 1, o.find("acme", "1").Attempt)
	o.clock.Advance(time.Millisecond)
	require.EqualValues(t, 2, wait.Receive(t, attempts))
	before := o.find("acme", "1")
	first.away.Store(false)
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
		items, err := q.claim(ctx, "1")
		require.NoError(t, err)
		require.Len(t, items, 1)
		again, err := q.claim(ctx, "1")
		require.NoError(t, err)
		require.Empty(t, again, "it is not due")
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

// When very many items cannot be claimed, the queue rests.
func TestVeryManyItemsThatCannotBeClaimed(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.write("acme", "1")
	q := NewQueue[letter](o.complete(Config[letter]{}))
	for i := range maxPaused + 1 {
		q.postpone(t.Context(), docstore.Ref{Tenant: "globex", ID: fmt.Sprint(i)}, errors.New("it cannot be read"))
	}
	n, err := q.Once(t.Context())
	require.NoError(t, err)
	require.Zero(t, n)
	o.clock.Advance(firstPause)
	n, err = q.Once(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestAnIncompleteConfiguration(t *testing.T) {
	t.Parallel()
	o := open(t)
	for _, spoil := range []func(*Config[letter]){
		func(c *Config[letter]) { c.Attempts = 0 },
		func(c *Config[letter]) { c.Places.OfTenant = 0 },
		func(c *Config[letter]) { c.States = &States[letter]{} },
	} {
		c := o.complete(Config[letter]{})
		require.NotPanics(t, func() { NewQueue[letter](c) })
		spoil(&c)
		require.Panics(t, func() { NewQueue[letter](c) })
	}
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
		Time: time.Millisecond,
		Do:   func(ctx context.Context, _ *letter) Outcome { <-ctx.Done(); return Retry(ctx.Err()) },
		Ended: func(_ *letter, stored error) {
			require.NoError(t, stored)
			ended++
		},
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
	require.Zero(t, testutil.ToFloat64(q.outcomes.WithLabelValues("send letters", "done")))
	require.EqualValues(t, 1, testutil.ToFloat64(q.outcomes.WithLabelValues("send letters", "over")))
}

// The lease of an attempt that goes on is renewed, so that no other replica claims the item.
func TestLeasesAreRenewed(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.write("acme", "1")
	q := NewQueue[letter](o.complete(Config[letter]{Do: func(ctx context.Context, l *letter) Outcome {
		for range 3 {
			before := o.find("acme", "1").Next
			o.clock.Advance(time.Millisecond)
			wait.Until(t, func() bool { return o.find("acme", "1").Next.After(before) })
		}
		return DoneOr(ctx.Err())
	}}))
	q.lease = 150 * time.Millisecond // it is renewed by the real clock
	claimed, err := q.claim(request.System(t.Context(), "acme"), "1")
	require.NoError(t, err)
	q.run(request.System(t.Context(), "acme"), claimed[0])
	require.Nil(t, o.find("acme", "1"))
}

// An attempt is broken off when another replica has the item, or could have it: the lease has ended, and the store does
// not answer.
func TestAnAttemptWithoutItsLeaseIsBrokenOff(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, o *office){
		"claimed by another": func(t *testing.T, o *office) {
			other := NewQueue[letter](o.complete(Config[letter]{}))
			wait.Until(t, func() bool { // the lease may be renewed in between
				o.clock.Advance(time.Minute)
				claimed, err := other.claim(request.System(t.Context(), "acme"), "1")
				require.NoError(t, err)
				return len(claimed) > 0
			})
		},
		"deleted": func(t *testing.T, o *office) {
			ctx := request.System(t.Context(), "acme")
			require.NoError(t, docstore.Do(ctx, o.store, func(tx *docstore.Tx) error {
				return letters.DeleteWhere(ctx, tx, docstore.ID("1"), nil)
			}))
		},
		"the store is away": func(t *testing.T, o *office) {
			o.engine.away.Store(true)
			t.Cleanup(func() { o.engine.away.Store(false) })
			o.clock.Advance(time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := open(t)
			o.write("acme", "1")
			var stored error
			q := NewQueue[letter](o.complete(Config[letter]{
				Do: func(ctx context.Context, _ *letter) Outcome {
					lose(t, o)
					<-ctx.Done()
					o.engine.away.Store(false)
					return Done()
				},
				Ended: func(_ *letter, err error) { stored = err },
			}))
			ctx := request.System(t.Context(), "acme")
			q.lease = 150 * time.Millisecond
			claimed, err := q.claim(ctx, "1")
			require.NoError(t, err)
			q.run(ctx, claimed[0])
			if name != "the store is away" { // then nobody else has it
				require.ErrorIs(t, stored, ErrOver)
			}
		})
	}
}

// A process that stands still between a claim and the attempt does not make it once the lease has ended.
func TestAnAttemptIsNotBegunAfterItsLease(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.write("acme", "1")
	var stored error
	q := NewQueue[letter](o.complete(Config[letter]{
		Do:    func(context.Context, *letter) Outcome { t.Error("it was begun"); return Done() },
		Ended: func(_ *letter, err error) { stored = err },
	}))
	ctx := request.System(t.Context(), "acme")
	claimed, err := q.claim(ctx, "1")
	require.NoError(t, err)
	o.clock.Advance(lease)
	q.run(ctx, claimed[0])
	require.ErrorIs(t, stored, ErrOver)
	require.NotNil(t, o.find("acme", "1"))
}

// Items are claimed together and their outcomes stored together. One that cannot be, or that is over, keeps no other
// from it.
func TestItemsTogether(t *testing.T) {
	t.Parallel()
	o := open(t)
	const over, unstorable, unclaimable = "2", "4", "6"
	ids := []string{"0", "1", over, "3", unstorable, "5", unclaimable, "7"}
	o.write("acme", ids...)
	o.write("globex", "8", "9")
	ctx := request.System(t.Context(), "acme")
	var claims atomic.Int64
	var begun sync.WaitGroup
	begun.Add(len(ids) + 1)
	stored := &sync.Map{}
	q := NewQueue[letter](o.complete(Config[letter]{
		Together: len(ids), Places: fair.Limits{Most: 100, OfTenant: 100},
		States: &States[letter]{
			Begin: func(ctx context.Context, tx *docstore.Tx, due []*letter) ([]*letter, error) {
				claims.Add(1)
				for _, l := range due {
					if l.ID == unclaimable {
						return nil, errors.New("it cannot be read")
					}
				}
				return due, nil
			},
			Running: func(*letter) bool { return true },
			End: func(ctx context.Context, tx *docstore.Tx, l, attempted *letter) error {
				if l.ID != attempted.ID {
					t.Error("it is the end of another attempt")
				}
				switch l.ID {
				case over:
					return ErrOver
				case unstorable:
					return errors.New("the store is full")
				}
				_, err := letters.Delete(ctx, tx, l)
				return err
			},
		},
		Do: func(context.Context, *letter) Outcome {
			begun.Done()
			begun.Wait()
			return Done()
		},
		Ended: func(l *letter, err error) { stored.Store(l.ID, err) },
	}))
	n, err := q.Once(ctx)
	require.NoError(t, err)
	require.Equal(t, len(ids)+2, n)
	require.EqualValues(t, 2+len(ids), claims.Load(), "one of each tenant, and then each of one alone")
	for _, id := range append(ids, "8", "9") {
		err, _ := stored.Load(id)
		switch id {
		case over:
			require.ErrorIs(t, err.(error), ErrOver)
		case unstorable:
			require.ErrorContains(t, err.(error), "the store is full")
		case unclaimable:
			require.Nil(t, err)
			require.True(t, q.isPaused(docstore.Ref{Tenant: "acme", ID: id}))
		default:
			require.Nil(t, err)
			require.Nil(t, o.find("acme", id))
			require.Nil(t, o.find("globex", id))
		}
	}
	require.Empty(t, q.reports.waiting)
}

// An outcome does not wait for others when the process stops.
func TestAnOutcomeAtTheEndOfTheProcess(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.write("acme", "1")
	ctx, stop := context.WithCancel(request.System(t.Context(), "acme"))
	q := NewQueue[letter](o.complete(Config[letter]{
		Together: 8, Do: func(context.Context, *letter) Outcome { stop(); return Done() },
	}))
	for _, id := range []string{"1", "2"} {
		require.True(t, q.attempts.Add(docstore.Ref{Tenant: "acme", ID: id}, func() {}))
	}
	claimed, err := q.claim(ctx, "1")
	require.NoError(t, err)
	q.run(ctx, claimed[0])
	require.Nil(t, o.find("acme", "1"))
}

// An attempt that only waits takes no place from others. It can be broken off.
func TestAttemptsThatWait(t *testing.T) {
	t.Parallel()
	o := open(t)
	begun := make(chan string, 10)
	var q *Queue[letter, *letter]
	c := Config[letter]{
		Places: fair.Limits{Most: 1, OfTenant: 1}, InProgress: fair.Limits{Most: 2, OfTenant: 2},
		Do: func(ctx context.Context, l *letter) Outcome {
			begun <- l.ID
			<-ctx.Done()
			return Done()
		},
	}
	q, _ = o.replica(c)
	o.write("acme", "1")
	first := docstore.Ref{Tenant: "acme", ID: wait.Receive(t, begun)}
	o.write("acme", "2", "3")
	require.True(t, q.attempts.Full())
	q.LeavePlace(first)
	require.Equal(t, "2", wait.Receive(t, begun))
	require.Equal(t, 2, q.Count())
	q.LeavePlace(docstore.Ref{Tenant: "acme", ID: "2"})
	require.True(t, q.attempts.Full())
	q.BreakOff(first)
	wait.Until(t, o.isGone("acme", "1"))
	require.Equal(t, "3", wait.Receive(t, begun))
}

// A batch is stored by one of its reports. What comes later is in another one.
func TestBatches(t *testing.T) {
	t.Parallel()
	c := reports[letter]{waiting: map[batchKey]*batch[letter]{}}
	acme, globex := batchKey{"acme", "k"}, batchKey{"globex", "k"}
	join := func(of batchKey, wantFirst bool) *batch[letter] {
		b, first := c.join(of, &report[letter]{}, 3)
		require.Equal(t, wantFirst, first)
		return b
	}
	full := func(b *batch[letter]) bool {
		select {
		case <-b.full:
			return true
		default:
			return false
		}
	}
	one := join(acme, true)
	join(globex, true)
	join(batchKey{"acme", "other"}, true)
	join(acme, false)
	require.False(t, full(one))
	require.Equal(t, one, join(acme, false))
	require.True(t, full(one))
	two := join(acme, true)
	c.close(acme, one) // it was taken already
	require.Equal(t, two, join(acme, false))
	c.close(acme, two)
	join(acme, true)
}

// Where nobody knows whether outcomes are stored, each is stored again, but for those that undo a claim: they could
// undo that of another replica.
func TestOutcomesOfACommitThatFails(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]Outcome{"undone": NotStarted(nil, 0), "retried": Retry(nil)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := open(t)
			o.write("acme", "1", "2")
			ctx := request.System(t.Context(), "acme")
			stored := &sync.Map{}
			c := o.complete(Config[letter]{
				Together: 2, Do: func(context.Context, *letter) Outcome { return outcome },
				Ended: func(l *letter, err error) { stored.Store(l.ID, err) },
			})
			q, other := NewQueue[letter](c), NewQueue[letter](o.complete(Config[letter]{}))
			claimed, err := q.claim(ctx, "1", "2")
			require.NoError(t, err)
			for _, l := range claimed {
				require.True(t, q.attempts.Add(docstore.Ref{Tenant: "acme", ID: l.ID}, func() {}))
			}
			fails := func() error {
				if name == "undone" {
					again, err := other.claim(ctx, "1", "2")
					if err != nil || len(again) != 2 {
						t.Error("the other replica cannot claim the items", err)
					}
				}
				return errors.New("the store does not answer")
			}
			o.engine.committed.Store(&fails)
			var running sync.WaitGroup
			for _, l := range claimed {
				running.Go(func() { q.run(ctx, l) })
			}
			running.Wait()
			for _, id := range []string{"1", "2"} {
				require.EqualValues(t, 1, o.find("acme", id).Attempt)
				err, _ := stored.Load(id)
				if name == "undone" {
					require.ErrorContains(t, err.(error), "does not answer")
				} else {
					require.Nil(t, err)
				}
			}
		})
	}
}

// With States, what becomes of an attempt is what Do says, also at the end of the process.
func TestOutcomesWithStates(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.write("acme", "1")
	begun := make(chan struct{})
	q, stop := o.replica(Config[letter]{
		States: &States[letter]{
			Begin:   func(_ context.Context, _ *docstore.Tx, due []*letter) ([]*letter, error) { return due, nil },
			Running: func(*letter) bool { return true },
			End: func(ctx context.Context, tx *docstore.Tx, l, _ *letter) error {
				_, err := letters.Delete(ctx, tx, l)
				return err
			},
		},
		Do: func(ctx context.Context, _ *letter) Outcome { close(begun); <-ctx.Done(); return Retry(nil) },
	})
	wait.Receive(t, begun)
	stop()
	require.Nil(t, o.find("acme", "1"))
	require.EqualValues(t, 1, testutil.ToFloat64(q.outcomes.WithLabelValues("send letters", "retry")))
}

// What is not due is not claimed, and a claim that another replica was quicker with is no fault.
func TestClaimsThatAreNone(t *testing.T) {
	t.Parallel()
	o := open(t)
	ctx := request.System(t.Context(), "acme")
	require.NoError(t, docstore.Do(ctx, o.store, func(tx *docstore.Tx) error {
		item := New(clock.Time{})
		item.ID = "never"
		_, err := letters.Insert(ctx, tx, &letter{Item: item})
		return err
	}))
	q := NewQueue[letter](o.complete(Config[letter]{States: &States[letter]{
		Begin: func(context.Context, *docstore.Tx, []*letter) ([]*letter, error) {
			return nil, apperr.New(apperr.VersionMismatch, "another was quicker")
		},
		Running: func(*letter) bool { return true },
		End:     func(context.Context, *docstore.Tx, *letter, *letter) error { return nil },
	}}))
	claimed, err := q.claim(ctx, "never")
	require.NoError(t, err)
	require.Empty(t, claimed)
	o.write("acme", "1")
	_, err = q.Once(t.Context())
	require.NoError(t, err)
	require.Zero(t, q.pausedItems())
}

// Items of one tenant are claimed together, not those of two.
func TestTogether(t *testing.T) {
	t.Parallel()
	o := open(t)
	q := NewQueue[letter](o.complete(Config[letter]{Together: 2}))
	of := func(tenant, id string) docstore.Ref { return docstore.Ref{Tenant: tenant, ID: id} }
	got := slices.Collect(q.together([]docstore.Ref{
		of("acme", "1"), of("globex", "2"), of("globex", "3"), of("globex", "4"), of("acme", "5"),
	}))
	require.Equal(t, [][]docstore.Ref{
		{of("acme", "1")}, {of("globex", "2"), of("globex", "3")}, {of("globex", "4")}, {of("acme", "5")},
	}, got)
}

// Attempts start at a pace, and items are claimed only when theirs start.
func TestThePaceOfStarts(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.write("acme", "1", "2")
	begun := make(chan string, 2)
	_, stop := o.replica(Config[letter]{
		Starts: rate.NewLimiter(rate.Every(time.Hour), 1),
		Do:     func(_ context.Context, l *letter) Outcome { begun <- l.ID; return Done() },
	})
	require.Equal(t, "1", wait.Receive(t, begun))
	wait.Until(t, o.isGone("acme", "1"))
	require.Zero(t, o.find("acme", "2").Attempt)
	stop()
}

// While all places are taken, nothing is listed. An attempt that ends, and Wake, have the next one begin.
func TestAFullQueueListsNothing(t *testing.T) {
	t.Parallel()
	o := open(t)
	begun, goOn := make(chan string), make(chan struct{})
	q, _ := o.replica(Config[letter]{
		Places: fair.Limits{Most: 1, OfTenant: 1},
		Do:     func(_ context.Context, l *letter) Outcome { begun <- l.ID; <-goOn; return Done() },
	})
	defer close(goOn)
	o.write("acme", "1", "2")
	require.Equal(t, "1", wait.Receive(t, begun))
	before := o.engine.lists.Load()
	for range 3 {
		n, err := q.begin(t.Context(), t.Context())
		require.NoError(t, err)
		require.Zero(t, n)
	}
	require.LessOrEqual(t, o.engine.lists.Load(), before+1, "at most the one that was under way")
	goOn <- struct{}{}
	require.Equal(t, "2", wait.Receive(t, begun))
}

// Once counts an attempt that Run has begun: its item may be due again when it ends.
func TestOnceBesideRun(t *testing.T) {
	t.Parallel()
	o := open(t)
	q := NewQueue[letter](o.complete(Config[letter]{}))
	ref := docstore.Ref{Tenant: "acme", ID: "1"}
	require.True(t, q.attempts.Add(ref, func() {}))
	for _, want := range []int{1, 0} {
		n, err := q.Once(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, n)
		if want > 0 {
			q.attempts.End(ref)
		}
	}
}
