package function

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/automation/internal/sandbox"
)

// event is the event at a place, whose id is the place.
func event(place uint64) *stream.Event {
	return &stream.Event{
		ID: strconv.FormatUint(place, 10), Type: "idp.user.created", Tenant: "acme", JSON: json.RawMessage(`{}`),
		Place: place,
	}
}

// batch is what a Reader reads of the stream s.
func batch(places ...uint64) *stream.Batch {
	b := &stream.Batch{Epoch: "s", UpTo: places[len(places)-1]}
	for _, place := range places {
		b.Events = append(b.Events, event(place))
	}
	return b
}

// However often the batches come again, and however much room there is: each event makes one run, either when its batch
// comes or when the stream is read.
func TestEachEventMakesOneRun(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const all = 60
		made := map[uint64]int{}
		d := &progress{}
		fill := func() {
			room := rapid.IntRange(0, 5).Draw(t, "read")
			for ; d.isBehind() && room > 0; room-- {
				place := uint64(d.Place) + 1
				made[place]++
				d.read(int64(place), clock.Time{})
			}
		}
		for saved, next := uint64(0), uint64(0); saved < all; {
			if rapid.IntRange(0, 3).Draw(t, "death") == 0 {
				next = saved // the reader begins again where its place was saved
			}
			var places []uint64
			for range rapid.IntRange(1, 7).Draw(t, "batch") {
				if next < all {
					next++
					places = append(places, next)
				}
			}
			if len(places) > 0 {
				b := batch(places...)
				for _, e := range d.take(b.Events, rapid.IntRange(0, 4).Draw(t, "room"), clock.Time{}) {
					made[e.Place]++
				}
			}
			if rapid.Bool().Draw(t, "saved") {
				saved = next
			}
			fill()
		}
		for d.isBehind() {
			fill()
		}
		for place := uint64(1); place <= all; place++ {
			if made[place] != 1 {
				t.Fatalf("the event at %d has made %d runs", place, made[place])
			}
		}
	})
}

// inStream returns functions of acme whose progress is d.
func inStream(t *testing.T, from interface {
	Stored(context.Context, stream.Reading) ([]*stream.Event, uint64, error)
}, d progress) (s *Functions, ctx context.Context, f *Function, now func() progress) {
	s = New(Deps{
		Store: basic.Store(t, basic.NewClock(), Collections()...), Log: basic.Log(t), Stream: from, Keys: keys,
	})
	ctx = request.System(t.Context(), "acme")
	d.Meta = docstore.Meta{ID: "f"}
	require.NoError(t, docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		_, err := progresses.Insert(ctx, tx, &d)
		return err
	}))
	return s, ctx, &Function{Meta: docstore.Meta{ID: "f", TenantID: "acme"}}, func() progress {
		doc, err := progresses.Find(ctx, s.Store, "f")
		require.NoError(t, err)
		d, err := doc.Value()
		require.NoError(t, err)
		return *d
	}
}

// waiting returns the ids of the events whose runs wait.
func waiting(t *testing.T, ctx context.Context, s *Functions) (ids []string) {
	t.Helper()
	require.NoError(t, runs.Each(ctx, s.Store, docstore.Filter{}, func(doc docstore.Doc[triggeredRun]) error {
		run, err := doc.Value()
		ids = append(ids, run.EventID)
		return err
	}))
	slices.Sort(ids)
	return ids
}

// A stream that is made anew has other events at its places.
func TestAnotherStream(t *testing.T) {
	t.Parallel()
	s, ctx, f, now := inStream(t, nil, progress{Stream: "before", Place: 910, Event: "910", UpTo: 950})
	b := batch(1)
	require.NoError(t, s.addRuns(ctx, f, b, b.Events, b.Events))
	require.Equal(t, []string{"1"}, waiting(t, ctx, s))
	require.EqualValues(t, 1, now().Place)
}

// A stream that has lost its newest events gives their places to others: those make runs, too. What has not lost any
// makes none again.
func TestEventsAtThePlacesOfLostOnes(t *testing.T) {
	t.Parallel()
	three, all := batch(18, 19, 20), []string{"18", "19", "20"}
	two, both := batch(18, 19), []string{"18", "19"}
	for name, c := range map[string]struct {
		at    progress
		batch *stream.Batch
		runs  []string
		place int64
	}{
		"the same event":          {progress{Place: 19, Event: "19"}, three, []string{"20"}, 20},
		"another":                 {progress{Place: 19, Event: "lost"}, three, all, 20},
		"another, behind":         {progress{Place: 19, Event: "lost", UpTo: 40}, three, nil, 17},
		"after a time behind":     {progress{Place: 19, Event: "lost", UpTo: 19}, three, all, 20},
		"later, the same":         {progress{Place: 30, Event: "30"}, two, nil, 30},
		"later, another":          {progress{Place: 30, Event: "lost"}, two, both, 19},
		"later, not yet there":    {progress{Place: 90, Event: "lost"}, two, both, 19},
		"events that are not its": {progress{Place: 10, Event: "10"}, two, both, 19},
	} {
		c.at.Stream = "s"
		s, ctx, f, now := inStream(t, kept{50, 1, ""}, c.at)
		for range 2 {
			require.NoError(t, s.addRuns(ctx, f, c.batch, c.batch.Events, c.batch.Events), name)
			require.Equal(t, c.runs, waiting(t, ctx, s), name)
			require.Equal(t, c.place, now().Place, name)
		}
	}
}

// The stream has an event twice if it was published again after a long time.
func TestAnEventThatIsTwiceInTheStream(t *testing.T) {
	t.Parallel()
	s, ctx, f, now := inStream(t, nil, progress{Stream: "s", Place: 10})
	b := batch(11, 12, 13)
	b.Events[1].ID = "11" // in one batch
	require.NoError(t, s.addRuns(ctx, f, b, b.Events, b.Events))
	require.Equal(t, []string{"11", "13"}, waiting(t, ctx, s))
	b = batch(14, 15)
	b.Events[0].ID = "13" // while its run waits
	require.NoError(t, s.addRuns(ctx, f, b, b.Events, b.Events))
	require.Equal(t, []string{"11", "13", "15"}, waiting(t, ctx, s))
	require.EqualValues(t, 15, now().Place)
}

// A function whose runs cannot be stored is left behind: it delays no other one.
func TestAFunctionThatFailsIsLeftBehind(t *testing.T) {
	t.Parallel()
	s, ctx, f, now := inStream(t, nil, progress{Stream: "s", Place: 10, Event: "10"})
	b := batch(11, 12)
	require.NoError(t, s.leaveBehind(ctx, f, b, b.Events))
	require.Empty(t, waiting(t, ctx, s))
	require.Equal(t, []int64{10, 12}, []int64{now().Place, now().UpTo})
	due, err := progresses.Due(ctx, s.Store, 10)
	require.NoError(t, err)
	require.Len(t, due, 1)
}

// kept has events at all places up to a number. One of rarity is of a type that functions listen to.
type kept struct {
	upTo, rarity uint64
	origin       string // of all events
}

func (s kept) Stored(_ context.Context, r stream.Reading) (events []*stream.Event, next uint64, _ error) {
	for next = r.After; next < min(r.UpTo, s.upTo) && len(events) < r.Limit; {
		next++
		e := event(next)
		e.PayloadOrigin = s.origin
		if next%s.rarity != 0 {
			e.Type = "idp.user.updated"
		}
		events = append(events, e)
	}
	return events, next, nil
}

// Many more events than may wait: the others wait in the stream, and each makes a run in the end. The events of a
// function that was disabled meanwhile are dropped.
func TestAFullFunctionIsBehind(t *testing.T) {
	t.Parallel()
	const all = 10 * maxWaiting
	s := New(Deps{
		Store: basic.Store(t, basic.NewClock(), Collections()...), Log: basic.Log(t), Stream: kept{all, 1, ""},
	})
	ctx := request.System(t.Context(), "acme")
	put := func(f Function) *Function {
		require.NoError(t, docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
			_, err := functions.Insert(ctx, tx, &f)
			return err
		}))
		return &f
	}
	profile := Profile{Code: "f", Status: Enabled, Triggers: []Trigger{{[]string{"user.created"}}}}
	f := put(Function{Meta: docstore.Meta{ID: "f"}, Profile: profile})
	profile.Code, profile.Status = "off", Disabled
	off := put(Function{Meta: docstore.Meta{ID: "off"}, Profile: profile})
	for place := uint64(1); place <= all; place++ {
		b := batch(place)
		require.NoError(t, s.addRuns(ctx, f, b, b.Events, b.Events))
		require.NoError(t, s.addRuns(ctx, off, b, b.Events, b.Events))
	}
	ended := map[string]bool{}
	end := func() {
		refs, err := runs.Due(ctx, s.Store, 3*maxWaiting)
		require.NoError(t, err)
		require.LessOrEqual(t, len(refs), 2*maxWaiting)
		for _, ref := range refs {
			require.False(t, ended[ref.ID])
			ended[ref.ID] = true
		}
		require.NoError(t, docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
			return runs.DeleteWhere(ctx, tx, docstore.Filter{}, nil)
		}))
	}
	for {
		behind, err := progresses.Due(ctx, s.Store, 10)
		require.NoError(t, err)
		for _, ref := range behind {
			_, err := s.fill(ctx, ref.ID)
			require.NoError(t, err)
		}
		if end(); len(behind) == 0 {
			break
		}
	}
	require.Len(t, ended, all+maxWaiting)
	again := batch(all / 2)
	require.NoError(t, s.addRuns(ctx, f, again, again.Events, again.Events))
	end()
	require.Len(t, ended, all+maxWaiting, "it is read again after its run is over")
}

// Events of other types take no room, and only some of them are passed over at a time.
func TestAFunctionIsBehindWithRareEvents(t *testing.T) {
	t.Parallel()
	f := &Function{Profile: Profile{Status: Enabled, Triggers: []Trigger{{[]string{"user.created"}}}}}
	for _, c := range []struct {
		rarity, from, upTo uint64
		events             int
		next               uint64
	}{
		{1, 0, 30, 30, 30},
		{1, 7, 1000, fillAtOnce, 7 + fillAtOnce},
		{100, 0, 1000, 10, 1000},
		{10, 0, 9000, fillAtOnce, 10 * fillAtOnce},
		{50_000, 0, 100_000, 0, fillAtOnce + 2*scanAtOnce},
		{50_000, 49_000, 50_000, 1, 50_000},
	} {
		s := New(Deps{Stream: kept{c.upTo, c.rarity, ""}})
		events, next, err := s.following(t.Context(), f,
			&progress{Stream: "s", Place: int64(c.from), UpTo: int64(c.upTo)})
		require.NoError(t, err)
		require.Len(t, events, c.events)
		require.Equal(t, c.next, next)
		for _, e := range events {
			require.Equal(t, "idp.user.created", e.Type)
		}
	}
}

// Events that a function is not run for take room as others do: each makes an entry in its log.
func TestRefusedEventsTakeRoom(t *testing.T) {
	t.Parallel()
	s, ctx := behind(t, kept{1000, 10, New(Deps{Keys: keys}).origin("acme", "f", maxDepth)})
	for turn := range 2 {
		advanced, err := s.fill(ctx, "f")
		require.NoError(t, err)
		require.True(t, advanced)
		doc, err := progresses.Find(ctx, s.Store, "f")
		require.NoError(t, err)
		d, err := doc.Value()
		require.NoError(t, err)
		require.EqualValues(t, (turn+1)*10*fillAtOnce, d.Place)
	}
	refused, err := logs.Count(ctx, s.Store, docstore.Eq(byFunction, docstore.Text("f")))
	require.NoError(t, err)
	require.EqualValues(t, maxEntries, refused)
	waiting, err := runs.Count(ctx, s.Store, docstore.Eq(byFunction, docstore.Text("f")))
	require.NoError(t, err)
	require.Zero(t, waiting)
}

// behind returns functions of which f is behind with the first thousand places of a stream, and cannot be called.
func behind(t *testing.T, from interface {
	Stored(context.Context, stream.Reading) ([]*stream.Event, uint64, error)
}) (s *Functions, ctx context.Context) {
	pool := sandbox.NewPool(sandbox.Config{Workers: 1, Metrics: prometheus.NewRegistry()})
	pool.Close()
	s = New(Deps{
		Store: basic.Store(t, basic.NewClock(), Collections()...), Log: basic.Log(t), Stream: from, Pool: pool,
		Keys: keys,
	})
	ctx = request.System(t.Context(), "acme")
	require.NoError(t, docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		_, err := functions.Insert(ctx, tx, &Function{
			Meta: docstore.Meta{ID: "f"}, Revision: 1, Revisions: []Revision{{Revision: 1}},
			Profile: Profile{Code: "f", Status: Enabled, Triggers: []Trigger{{[]string{"user.created"}}}},
		})
		if err != nil {
			return err
		}
		d := progress{Meta: docstore.Meta{ID: "f"}, Stream: "s", UpTo: 1000, Next: tx.Now}
		_, err = progresses.Insert(ctx, tx, &d)
		return err
	}))
	return s, ctx
}

// hanging is a stream that does not answer. It is closed when it is asked.
type hanging chan struct{}

func (h hanging) Stored(ctx context.Context, _ stream.Reading) ([]*stream.Event, uint64, error) {
	close(h)
	<-ctx.Done()
	return nil, 0, ctx.Err()
}

func TestNoRunWaitsForTheStream(t *testing.T) {
	t.Parallel()
	asked := make(hanging)
	s, ctx := behind(t, asked)
	running, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { _ = NewRunner(s, 1, prometheus.NewRegistry()).Run(running) })
	t.Cleanup(ended.Wait)
	defer stop()
	wait.Receive(t, asked)
	require.NoError(t, docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		return insertRun(ctx, tx, "f", event(2000), false)
	}))
	wait.Until(t, func() bool {
		attempts, err := logs.Count(ctx, s.Store, docstore.Eq(byFunction, docstore.Text("f")))
		require.NoError(t, err)
		return attempts > 0
	})
}

// losing is a stream that drops all events as soon as the first have been read.
type losing struct {
	kept
	from uint64
}

func (l losing) Stored(ctx context.Context, r stream.Reading) (events []*stream.Event, next uint64, _ error) {
	if r.After > l.from {
		return nil, 0, &stream.GoneError{First: r.UpTo + 1}
	}
	return l.kept.Stored(ctx, r)
}

func TestWhatWasReadBeforeAFailureRuns(t *testing.T) {
	t.Parallel()
	f := &Function{Profile: Profile{Status: Enabled, Triggers: []Trigger{{[]string{"user.created"}}}}}
	s := New(Deps{Stream: losing{kept{1000, 10, ""}, 0}})
	d := &progress{Stream: "s", UpTo: 1000}
	events, next, err := s.following(t.Context(), f, d)
	require.NoError(t, err)
	require.Len(t, events, fillAtOnce/10)
	require.EqualValues(t, fillAtOnce, next)
	d.Place = int64(next)
	_, _, err = s.following(t.Context(), f, d)
	var gone *stream.GoneError
	require.ErrorAs(t, err, &gone)
}
