package delivery

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/events/internal/subscription"
)

// script plays steps with a queue. An event is named by its record and a number: a2 is the second one of record a.
type script struct {
	t     *testing.T
	queue *queue
	items map[string]*item
	now   clock.Time
}

func newScript(t *testing.T) *script {
	q := newQueue([]time.Duration{time.Minute, time.Hour})
	q.vary = func(d time.Duration) time.Duration { return d }
	return &script{t, q, map[string]*item{}, clock.FromMillis(1_000_000)}
}

// step does one thing:
//
//	add a1 a2      these events come from the stream
//	load a1        it is loaded as a row that waits for its second try, which is due
//	start a1 b1    these are tried now, and no others
//	ok, fail, gone, away, skip, lost a1
//	after 1m       this time passes
//	save a1 a2     all is saved, and these have rows
//	next 1m        something is due after this time; without one: nothing is
//	unsaved true   there is something to save
//	rowless a1     the rows of these are to be deleted
//	starts 2       so many are tried now
//	place 3        the place that is saved
//	room 128       so many events may be read
func (s *script) step(line string) {
	s.t.Helper()
	words := strings.Fields(line)
	what, events := words[0], words[1:]
	results := map[string]Result{
		"ok": {Delivered: true}, "fail": {}, "gone": {Gone: true}, "away": {Away: true}, "skip": {Skipped: true},
		"lost": {Lost: true},
	}
	duration := func() time.Duration {
		d, err := time.ParseDuration(events[0])
		require.NoError(s.t, err)
		return d
	}
	switch what {
	case "add", "load":
		for _, name := range events {
			s.items[name] = &item{
				Delivery: Delivery{EventID: name, Place: uint64(len(s.items) + 1)},
				record:   name[:1], row: "row " + name,
			}
			if what == "load" {
				s.items[name].Status, s.items[name].Tries, s.items[name].stored = Retrying, 1, true
				s.items[name].due = s.now
			}
			s.queue.add(s.items[name], s.now)
		}
	case "start":
		var started []string
		for _, it := range s.queue.start(s.now) {
			started = append(started, it.EventID)
		}
		require.ElementsMatch(s.t, events, started, line)
	case "after":
		s.now = s.now.Add(duration())
	case "save":
		s.queue.hold()
		s.queue.saved()
		var stored []string
		for name := range s.queue.waiting {
			stored = append(stored, name)
		}
		require.ElementsMatch(s.t, events, stored, line)
	case "unsaved":
		require.Equal(s.t, events[0], fmt.Sprint(s.queue.unsaved()), line)
	case "rowless":
		var rows []string
		for row := range s.queue.deleted {
			rows = append(rows, strings.TrimPrefix(row, "row "))
		}
		require.ElementsMatch(s.t, events, rows, line)
	case "starts":
		require.Equal(s.t, events[0], fmt.Sprint(len(s.queue.start(s.now))), line)
	case "next":
		if len(events) == 0 {
			require.Zero(s.t, s.queue.next(), line)
			return
		}
		require.Equal(s.t, s.now.Add(duration()), s.queue.next(), line)
	case "place":
		require.Equal(s.t, events[0], fmt.Sprint(s.queue.place(uint64(len(s.items)))), line)
	case "room":
		require.Equal(s.t, events[0], fmt.Sprint(s.queue.room(s.now)), line)
	default:
		r, known := results[what]
		require.True(s.t, known, line)
		counts := s.queue.record(s.items[events[0]], r, s.now)
		require.Equal(s.t, slices.Contains([]string{"ok", "fail", "gone"}, what), counts, line)
	}
}

func TestQueue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps  string
		ended  string // events with their statuses, in order
		stopAs string
	}{
		"records do not wait for one another, and the events of one do": {
			steps: `add a1 a2 b1; start a1 b1; ok b1; start; ok a1; start a2; ok a2; place 3`,
			ended: "b1 delivered, a1 delivered, a2 delivered",
		},
		"a failure is tried again after the pauses, and then the subscription stops": {
			steps: `add a1; start a1; fail a1; next 1m; start; after 1m; start a1; next; fail a1; next 1h; after 1h; start a1;
				fail a1`,
			stopAs: subscription.Failing,
		},
		"a receiver that is gone stops the subscription": {
			steps:  `add a1; start a1; gone a1`,
			stopAs: subscription.Disabled,
		},
		"events behind a failure get rows with it, and the place goes on": {
			steps: `add a1 a2 b1; start a1 b1; place 0; fail a1; place 0; ok b1; save a1 a2; place 3;
				unsaved false; add a3; unsaved true; place 3; save a1 a2 a3; place 4; after 1m; start a1; add a4; unsaved
				false; save a1 a2 a3; ok a1; rowless a1; start a2; ok a2; save a3; rowless; start a3; ok a3; save; start a4;
				ok a4; place 5`,
			ended: "b1 delivered, a1 delivered, a2 delivered, a3 delivered, a4 delivered",
		},
		"an event that is being tried has no row": {
			steps: `add a1 a2; start a1; save; place 0; ok a1; start a2; save; place 1`,
		},
		"a receiver that is down gets two events at a time": {
			steps: `add a1 b1 c1 d1 e1 f1 g1 h1 i1 j1; start a1 b1 c1 d1 e1 f1 g1 h1 i1 j1; fail a1; fail b1; fail c1;
				fail d1; fail e1; fail f1; fail g1; fail h1; fail i1; fail j1; after 1m; starts 2`,
		},
		"rows are tried when they are due, before later events of their record": {
			steps: `load a1; add a2; start a1; ok a1; start a2; ok a2; save; place 2`,
		},
		"what the platform could not try is no failure, and is tried a second later": {
			steps: `add a1; start a1; away a1; next 1s; save; place 0; start; after 1s; start a1; ok a1`,
			ended: "a1 delivered",
		},
		"an event that is no longer selected is not told": {
			steps: `load a1; start a1; skip a1; save; place 1`,
		},
		"an event that is no longer kept has failed, and the next of its record is tried": {
			steps: `add a1 a2; start a1; lost a1; start a2; ok a2`,
			ended: "a1 failed, a2 delivered",
		},
		"after ten failures in a row one event is tried from time to time": {
			steps: `add a1 b1 c1 d1 e1 f1 g1 h1 i1 j1; start a1 b1 c1 d1 e1 f1 g1 h1 i1 j1; room 128; fail a1; fail b1;
				fail c1; fail d1; fail e1; fail f1; fail g1; fail h1; fail i1; room 128; fail j1; room 0; next 5s;
				save a1 b1 c1 d1 e1 f1 g1 h1 i1 j1; room 0; after 5s; room 1; add k1; room 0; start k1; fail k1; save a1 b1 c1 d1
				e1 f1 g1 h1 i1 j1 k1; room 0; next 10s; after 10s; room 1; add l1; start l1; ok l1; room 128; next 45s`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t)
			var ended []string
			for line := range strings.SplitSeq(c.steps, ";") {
				s.step(strings.TrimSpace(line))
				for _, d := range s.queue.ended {
					ended = append(ended, d.EventID+" "+d.Status)
				}
				s.queue.ended = nil
			}
			if c.ended != "" {
				require.Equal(t, c.ended, strings.Join(ended, ", "))
			}
			require.Equal(t, c.stopAs, s.queue.stopAs)
		})
	}
}

// A slow receiver gets fewer events at the same time, and no receiver more than 16.
func TestQueueOfASlowReceiver(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	for _, record := range "abcdefghijklmnopqrst" {
		s.step("add " + string(record) + "1")
	}
	started := s.queue.start(s.now)
	require.Len(t, started, maxAtOnce)
	require.Empty(t, s.queue.start(s.now))
	for _, it := range started {
		s.queue.record(it, Result{Delivered: true, Took: 10 * slow}, s.now)
	}
	require.Len(t, s.queue.start(s.now), slowAtOnce)
}

// Reading stops when too much is on its way: many events, large ones, or many that wait.
func TestRoomOfAQueue(t *testing.T) {
	t.Parallel()
	for name, fill := range map[string]func(s *script){
		"many": func(s *script) {
			for i := range maxOpen {
				s.queue.add(&item{Delivery: Delivery{EventID: fmt.Sprint(i)}, record: "a"}, s.now)
			}
		},
		"large": func(s *script) {
			large := &stream.Event{JSON: make([]byte, maxHeld)}
			s.queue.add(&item{Delivery: Delivery{EventID: "1"}, record: "a", event: large}, s.now)
		},
		"waiting": func(s *script) {
			for i := range maxRows {
				s.queue.add(&item{Delivery: Delivery{EventID: fmt.Sprint(i)}, record: "a", stored: true}, s.now)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t)
			s.step("room 128")
			fill(s)
			s.step("room 0")
		})
	}
}

// An event that the stream has again, at another place, keeps its row, which gets the place.
func TestAnEventThatComesAgain(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.step("add a1 b1")
	s.step("start a1 b1")
	s.step("fail a1")
	s.step("save a1")
	require.True(t, s.queue.has("b1", 7, "x.7"))
	require.False(t, s.queue.unsaved())
	require.True(t, s.queue.has("a1", 7, "x.7"))
	require.True(t, s.queue.unsaved())
	require.EqualValues(t, 7, s.items["a1"].Place)
	require.True(t, s.items["a1"].dirty)
	require.False(t, s.queue.has("c1", 8, "x.8"))
}

// A receiver can ask for a longer pause.
func TestAPauseThatTheReceiverAsksFor(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	for pause, want := range map[time.Duration]time.Duration{0: time.Minute, 2 * time.Minute: 2 * time.Minute} {
		s.step("add a1")
		s.step("start a1")
		s.queue.record(s.items["a1"], Result{RetryAfter: pause}, s.now)
		require.Equal(t, s.now.Add(want), s.queue.next())
		s.step("after 2m")
		s.step("start a1")
		s.step("ok a1")
	}
}
