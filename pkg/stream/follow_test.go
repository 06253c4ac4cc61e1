package stream

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/testkit/natstest"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// mirror is the state of a replica that follows: the events it got, in order, since its last snapshot.
type mirror struct {
	mu        sync.Mutex
	snapshots int
	seen      []string
	refuse    func(e Event) error
}

func (m *mirror) config(name string) FollowerConfig {
	return FollowerConfig{
		Name: name, Types: Types{"user.*"},
		Snapshot: func(context.Context) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.snapshots++
			m.seen = nil
			return nil
		},
		Handle: func(_ context.Context, e Event) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.refuse != nil {
				if err := m.refuse(e); err != nil {
					return err
				}
			}
			m.seen = append(m.seen, e.ID)
			return nil
		},
		retry: func() backoff.BackOff { return &backoff.ZeroBackOff{} },
	}
}

func (m *mirror) state() (int, []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.snapshots, append([]string{}, m.seen...)
}

// until waits for a number of snapshots, and for the last event.
func (m *mirror) until(t *testing.T, snapshots int, last string) []string {
	t.Helper()
	wait.Until(t, func() bool {
		n, seen := m.state()
		return n == snapshots && (last == "" || len(seen) > 0 && seen[len(seen)-1] == last)
	})
	_, seen := m.state()
	return seen
}

func follow(t *testing.T, b program, m *mirror) *Follower {
	t.Helper()
	f, err := b.Follow(t.Context(), m.config("mirror"))
	require.NoError(t, err)
	return f
}

func ready(t *testing.T, f *Follower) {
	t.Helper()
	wait.Until(t, func() bool { return f.Ready() == nil })
}

func TestEveryReplicaFollowsAllEventsInOrder(t *testing.T) {
	t.Parallel()
	b, x := open(t)
	all := history(3, 3)
	publish(t, b, all...) // before the snapshot: not delivered
	wait.Until(t, func() bool { return b.hasRead(all[len(all)-1].ID) })
	var first, second mirror
	ready(t, follow(t, b, &first))
	ready(t, follow(t, connect(t, bus.Config{InProcess: x}), &second))
	var want []string
	for version := 4; version < 104; version++ {
		publish(t, b, message("7", version))
		want = append(want, "7-"+strconv.Itoa(version))
	}
	require.Equal(t, want, first.until(t, 1, "7-103"))
	require.Equal(t, want, second.until(t, 1, "7-103"))
}

func TestAFollowerIsReadyOnceItHasCaughtUp(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	publish(t, b, message("1", 1))
	wait.Until(t, func() bool { return b.hasRead("1-1") })
	var m mirror
	c := m.config("mirror")
	taking, told := make(chan struct{}), make(chan struct{})
	tries := 0
	c.Snapshot = func(context.Context) error {
		if tries++; tries < 3 {
			return errors.New("a service is unavailable")
		}
		close(taking)
		<-told
		return nil
	}
	handle, second := c.Handle, make(chan struct{})
	c.Handle = func(ctx context.Context, e Event) error {
		if e.ID == "1-3" {
			<-second
		}
		return handle(ctx, e)
	}
	f, err := b.Follow(t.Context(), c)
	require.NoError(t, err)
	require.Error(t, f.Ready())
	wait.Receive(t, taking)
	publish(t, b, message("1", 2), message("1", 3)) // during the snapshot
	require.ErrorContains(t, f.Ready(), "the snapshot is not complete")
	close(told)
	m.until(t, 0, "1-2")
	require.ErrorContains(t, f.Ready(), "catching up")
	close(second)
	ready(t, f)
	_, seen := m.state()
	require.Equal(t, []string{"1-2", "1-3"}, seen, "ready only with the events that came meanwhile")
}

func TestAFollowerGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	b, x := open(t)
	var m mirror
	f := follow(t, b, &m)
	ready(t, f)
	publish(t, b, message("1", 1))
	m.until(t, 1, "1-1")
	x.Stop()
	wait.Until(t, func() bool { return b.Ready() != nil })
	require.NoError(t, f.Ready(), "its state is as old as the last connection")
	x.Start()
	publish(t, b, message("1", 2))
	require.Equal(t, []string{"1-1", "1-2"}, m.until(t, 1, "1-2"), "without a second snapshot, a gap or a repetition")
}

// A follower knows how long it has heard nothing: with a limit it is not ready from then on, until NATS is back. What
// it is to do meanwhile is done.
func TestAFollowerKnowsItsAge(t *testing.T) {
	t.Parallel()
	b, x := open(t)
	var m mirror
	c := m.config("mirror")
	c.MaxAge = time.Nanosecond
	var started *Follower
	c.Started = func(f *Follower) { started = f }
	meanwhile := make(chan struct{}, 100)
	c.Meanwhile = func(context.Context) error {
		meanwhile <- struct{}{}
		return errors.New("fails")
	}
	f, err := b.Follow(t.Context(), c)
	require.NoError(t, err)
	require.Same(t, f, started)
	ready(t, f)
	require.Zero(t, f.Age())
	x.Stop()
	wait.Until(t, func() bool { return f.Age() > 0 })
	require.ErrorContains(t, f.Ready(), "nothing was heard from NATS")
	wait.Receive(t, meanwhile)
	wait.Receive(t, meanwhile)
	x.Start()
	wait.Until(t, func() bool { return f.Age() == 0 })
	ready(t, f)
}

// After NATS was away the state is as old as before, until the events since then are handled.
func TestAFollowerIsOldUntilItHasCaughtUp(t *testing.T) {
	t.Parallel()
	b, x := open(t)
	g := &gate{Server: x}
	away := connect(t, bus.Config{InProcess: g})
	var m mirror
	c := m.config("mirror")
	handle, goOn := c.Handle, make(chan struct{})
	c.Handle = func(ctx context.Context, e Event) error {
		if e.ID == "1-3" {
			<-goOn
		}
		return handle(ctx, e)
	}
	c.MaxAge = time.Nanosecond
	f, err := away.Follow(t.Context(), c)
	require.NoError(t, err)
	ready(t, f)
	g.shut.Store(true)
	x.Stop()
	wait.Until(t, func() bool { return f.Age() > 0 })
	x.Start()
	publish(t, b, message("1", 1), message("1", 2), message("1", 3))
	g.shut.Store(false)
	m.until(t, 1, "1-2")
	require.Positive(t, f.Age())
	require.Error(t, f.Ready())
	close(goOn)
	wait.Until(t, func() bool { return f.Age() == 0 })
	ready(t, f)
}

// A follower that has missed events takes a snapshot; it never skips events.
func TestAFollowerThatMissedEventsBeginsAnew(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, x *natstest.Server){
		"the stream dropped them": func(t *testing.T, x *natstest.Server) {
			defer x.Start()
			apart := natstest.New(t, x.Dir(), slog.New(slog.DiscardHandler)) // so that the follower does not notice
			defer apart.Stop()
			other := connect(t, bus.Config{InProcess: apart})
			publish(t, other, message("1", 2), message("1", 3))
			stream, err := other.js.Stream(t.Context(), bus.EventStream)
			require.NoError(t, err)
			require.NoError(t, stream.Purge(t.Context()))
			publish(t, other, message("1", 4))
		},
		"the stream was created again": func(t *testing.T, x *natstest.Server) {
			require.NoError(t, os.RemoveAll(x.Dir()))
			x.Start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, x := open(t)
			var m mirror
			ready(t, follow(t, b, &m))
			publish(t, b, message("1", 1))
			m.until(t, 1, "1-1")
			x.Stop()
			wait.Until(t, func() bool { return b.Ready() != nil })
			lose(t, x)
			m.until(t, 2, "")
			wait.Until(t, func() bool { return b.Ready() == nil })
			publish(t, b, message("1", 5))
			m.until(t, 2, "1-5")
		})
	}
}

func TestAnEventThatCannotBeFollowedIsSkipped(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	tries := 0
	m := mirror{refuse: func(e Event) error {
		if e.ID != "1-1" {
			return nil
		}
		if tries++; tries == 1 {
			panic("poison")
		}
		return errors.New("poison")
	}}
	ready(t, follow(t, b, &m))
	require.Equal(t, 2, testutil.CollectAndCount(b.metrics.skipped),
		"the Log's and the follower's are there before the first event is skipped")
	publish(t, b, message("1", 1), message("1", 2), message("2", 1))
	require.Equal(t, []string{"1-2", "2-1"}, m.until(t, 1, "2-1"))
	require.Equal(t, followTries, tries)
	require.EqualValues(t, 1, testutil.ToFloat64(b.metrics.skipped.WithLabelValues("mirror")))
}

func TestAFollowerStopsAmidItsWork(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	var m mirror
	c := m.config("mirror")
	begun := make(chan struct{})
	c.Snapshot = func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}
	f, err := b.Follow(t.Context(), c)
	require.NoError(t, err)
	wait.Receive(t, begun)
	f.Stop()
	require.ErrorContains(t, f.Ready(), "stopped")
	require.Positive(t, f.Age(), "its state gets old")
}

// A follower takes its snapshot when NATS is there: only then can it know which events came meanwhile.
func TestNoSnapshotWithoutNATS(t *testing.T) {
	t.Parallel()
	b, x := open(t)
	require.NoError(t, b.Await(t.Context()))
	x.Stop()
	wait.Until(t, func() bool { return !b.lostAt().IsZero() && b.Ready() != nil })
	var m mirror
	f := follow(t, b, &m)
	x.Start()
	ready(t, f)
	n, _ := m.state()
	require.Equal(t, 1, n)
}

// A follower reaches the end of the stream, also if the last events are of types that it does not want.
func TestAFollowerCatchesUpWithOthersEvents(t *testing.T) {
	t.Parallel()
	l := &Log{last: 6}
	f := &Follower{log: l, config: FollowerConfig{Types: Types{"user.*"}}, wake: make(chan struct{}, 1), begun: true,
		place: 5, upTo: 6, stale: errCatchingUp, lost: time.Now()}
	f.hear(&entry{place: 6, kind: "node.created"}, 5)
	require.NoError(t, f.Ready())
	require.Zero(t, f.Age())
}

func TestFollowersThatCannotBe(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	for name, change := range map[string]func(*FollowerConfig){
		"name":        func(c *FollowerConfig) { c.Name = "no name" },
		"no type":     func(c *FollowerConfig) { c.Types = nil },
		"no pattern":  func(c *FollowerConfig) { c.Types = Types{"User.created"} },
		"no handler":  func(c *FollowerConfig) { c.Handle = nil },
		"no snapshot": func(c *FollowerConfig) { c.Snapshot = nil },
	} {
		c := (&mirror{}).config("mirror")
		change(&c)
		_, err := b.Follow(t.Context(), c)
		require.Error(t, err, name)
	}
}

// gate lets a client reach the server only while it is open.
type gate struct {
	*natstest.Server
	shut atomic.Bool
}

func (g *gate) InProcessConn() (net.Conn, error) {
	if g.shut.Load() {
		return nil, errors.New("away")
	}
	return g.Server.InProcessConn()
}

// A follower whose newest event was lost in a power cut, and its place given to another, begins again with a snapshot.
func TestAFollowerNoticesAnotherEventAtItsPlace(t *testing.T) {
	t.Parallel()
	b, x := open(t)
	g := &gate{Server: x}
	away := connect(t, bus.Config{InProcess: g})
	var m mirror
	ready(t, follow(t, away, &m))
	publish(t, b, message("1", 1))
	m.until(t, 1, "1-1")
	before := x.Copy()
	publish(t, b, message("1", 2))
	m.until(t, 1, "1-2")

	g.shut.Store(true)
	x.Restore(before)
	publish(t, b, message("2", 1), message("2", 2))
	g.shut.Store(false)
	m.until(t, 2, "")
}

// A follower that was away while events were dropped which it had not seen begins again with a snapshot.
func TestAFollowerMissesNothingThatIsDropped(t *testing.T) {
	t.Parallel()
	other, x := open(t)
	g := &gate{Server: x}
	away := connect(t, bus.Config{InProcess: g})
	var m mirror
	f := follow(t, away, &m)
	ready(t, f)
	publish(t, other, message("1", 1))
	m.until(t, 1, "1-1")
	g.shut.Store(true)
	x.Stop()
	wait.Until(t, func() bool { return f.Age() > 0 })
	x.Start()
	publish(t, other, message("1", 2), message("1", 3))
	stream, err := other.js.Stream(t.Context(), bus.EventStream)
	require.NoError(t, err)
	require.NoError(t, other.DropEvents(t.Context(), "acme", stream.CachedInfo().State.LastSeq))
	g.shut.Store(false)
	m.until(t, 2, "")
}

// What the stream drops that a follower has seen is no reason for a snapshot.
func TestAFollowerNeedsNoEventThatItHasSeen(t *testing.T) {
	t.Parallel()
	b, x := open(t)
	var m mirror
	f := follow(t, b, &m)
	ready(t, f)
	publish(t, b, message("1", 1))
	m.until(t, 1, "1-1")
	stream, err := b.js.Stream(t.Context(), bus.EventStream)
	require.NoError(t, err)
	require.NoError(t, stream.Purge(t.Context()))
	x.Stop()
	wait.Until(t, func() bool { return f.Age() > 0 })
	x.Start()
	publish(t, b, message("1", 2))
	require.Equal(t, []string{"1-1", "1-2"}, m.until(t, 1, "1-2"))
	ready(t, f)
}

// A follower that must take another snapshot is not ready, and old, until it has it.
func TestAFollowerThatHasMissedEventsIsOld(t *testing.T) {
	t.Parallel()
	b, x := open(t)
	var m mirror
	c := m.config("mirror")
	var away atomic.Bool
	snapshot := c.Snapshot
	c.Snapshot = func(ctx context.Context) error {
		if away.Load() {
			return errors.New("a service is unavailable")
		}
		return snapshot(ctx)
	}
	f, err := b.Follow(t.Context(), c)
	require.NoError(t, err)
	ready(t, f)
	before := x.Copy()
	publish(t, b, message("1", 1))
	m.until(t, 1, "1-1")
	wait.Until(t, func() bool { return f.Age() == 0 })
	away.Store(true)
	x.Restore(before) // without an event after those that are lost
	wait.Until(t, func() bool { return f.Ready() != nil })
	wait.Until(t, func() bool { return b.Ready() == nil && b.lostAt().IsZero() })
	require.ErrorContains(t, f.Ready(), "the snapshot is not complete")
	require.Positive(t, f.Age())
	away.Store(false)
	ready(t, f)
	require.Zero(t, f.Age())
}
