package stream

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/replicas"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// made is what a Reader has made of an event; its id is Batch.ID.
type made struct {
	docstore.Meta
	Event string `json:"event"`
}

var (
	allMade = docstore.Define(docstore.Schema[made]{Name: "made", Noun: "made", NoIfMatch: true})
	places  = DefinePlaces("places", "place")
)

// insertMade stores what is made of events.
func insertMade(ctx context.Context, tx *docstore.Tx, b *Batch) error {
	for _, e := range b.Events {
		if _, err := allMade.Insert(ctx, tx, &made{Meta: docstore.Meta{ID: b.ID(e.Place)}, Event: e.ID}); err != nil {
			return err
		}
	}
	return nil
}

// events returns the ids of the events of which something was made, by the ids of what was made.
func events(t *testing.T, store *docstore.Store) (ids []string) {
	t.Helper()
	ctx := request.System(t.Context(), request.Platform)
	require.NoError(t, allMade.Each(ctx, store, docstore.Filter{}, func(doc docstore.Doc[made]) error {
		m, err := doc.Value()
		ids = append(ids, m.Event)
		return err
	}))
	return ids
}

func newStore(t testing.TB) *docstore.Store {
	return basic.Store(t, basic.NewClock(), slices.Concat(replicas.Collections(), Collections(),
		[]*docstore.Def{allMade.Def(), places.Def()})...)
}

// reading is a replica that reads.
type reading struct {
	*Reader
	stop func() // and waits; twice is once
}

func read(t *testing.T, p program, store *docstore.Store, c ReaderConfig) reading {
	t.Helper()
	group := replicas.New(store, basic.Log(t), false)
	c.Name, c.Places, c.Log, c.DB, c.Group = "reader", places, p.Log, store, group
	c.Behind = prometheus.NewGauge(prometheus.GaugeOpts{Name: "behind"})
	r := NewReader(c)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{group.Run, r.Run} {
		running.Go(func() {
			for ctx.Err() == nil {
				_ = run(ctx) // it is tried again
			}
		})
	}
	stop := func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return reading{r, stop}
}

// Replicas come and go while events come: of each event something is made once, in order.
func TestReadersStoreEachEventOnce(t *testing.T) {
	t.Parallel()
	p, x := open(t)
	store := newStore(t)
	stores := ReaderConfig{Store: insertMade}
	running := []reading{read(t, p, store, stores)}
	var want []string
	for round := range 6 {
		for n := range 40 {
			m := message(strconv.Itoa(round), n+1)
			publish(t, p, m)
			want = append(want, m.ID)
		}
		if round%2 == 0 {
			running = append(running, read(t, connect(t, bus.Config{InProcess: x}), store, stores))
		} else {
			running[0].stop()
			running = running[1:]
		}
	}
	wait.Until(t, func() bool { return len(events(t, store)) >= len(want) })
	require.Equal(t, want, events(t, store))
}

// What Handle could not do comes again. The place that is saved never goes beyond what was done.
func TestAReaderHandlesEachEventAtLeastOnce(t *testing.T) {
	t.Parallel()
	p, _ := open(t)
	store := newStore(t)
	var mu sync.Mutex
	var seen []string
	calls := 0
	r := read(t, p, store, ReaderConfig{Handle: func(_ context.Context, b *Batch) error {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls%3 == 1 {
			return errors.New("the store is away")
		}
		for _, e := range b.Events {
			seen = append(seen, e.ID)
		}
		return nil
	}})
	var want []string
	for n := range 100 {
		m := message("1", n+1)
		publish(t, p, m)
		want = append(want, m.ID)
	}
	wait.Until(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Contains(seen, want[len(want)-1])
	})
	r.stop()
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(seen)
	slices.Sort(want)
	require.Equal(t, want, slices.Compact(seen))
	place, err := places.Of(t.Context(), store, p.Log, "reader")
	require.NoError(t, err)
	require.Equal(t, p.end(), place, "one that stops saves how far it has come")
}

// JetStream knows how far a reader is: events that it has not handled are not dropped. A reader whose store knows no
// place begins there.
func TestJetStreamKnowsTheReadersPlace(t *testing.T) {
	t.Parallel()
	p, _ := open(t)
	handled, goOn := make(chan string, 10), make(chan struct{})
	c := ReaderConfig{Consumer: "reader", Handle: func(ctx context.Context, b *Batch) error {
		for _, e := range b.Events {
			handled <- e.ID
		}
		if b.Events[0].ID == "1-2" {
			select {
			case <-goOn:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}}
	first := read(t, p, newStore(t), c)
	publish(t, p, message("1", 1))
	require.Equal(t, "1-1", wait.Receive(t, handled))
	isAnnounced := func(place uint64) bool {
		known, _, err := p.announced(t.Context(), "reader", nil)
		require.NoError(t, err)
		return known == place
	}
	wait.Until(t, func() bool { return isAnnounced(p.end()) })
	before := p.end()
	publish(t, p, message("1", 2))
	require.Equal(t, "1-2", wait.Receive(t, handled))
	place, name, ok, err := p.Handled(t.Context())
	require.NoError(t, err)
	require.Equal(t, []any{before, "reader", true}, []any{place, name, ok})
	close(goOn)
	wait.Until(t, func() bool { return isAnnounced(p.end()) })
	first.stop()
	publish(t, p, message("1", 3))
	read(t, p, newStore(t), c)
	require.Equal(t, "1-3", wait.Receive(t, handled))
}

// A server that has lost its newest events gives their places to others: those are read, too, and have greater ids.
func TestAReaderReadsTheEventsAtThePlacesOfLostOnes(t *testing.T) {
	t.Parallel()
	p, x := open(t)
	store := newStore(t)
	read(t, p, store, ReaderConfig{Store: insertMade})
	publish(t, p, message("1", 1))
	wait.Until(t, func() bool { return slices.Equal(events(t, store), []string{"1-1"}) })
	before := x.Copy()
	publish(t, p, message("1", 2))
	wait.Until(t, func() bool { return len(events(t, store)) >= 2 })
	x.Restore(before)
	publish(t, p, message("2", 1), message("2", 2))
	wait.Until(t, func() bool {
		found := events(t, store)
		return slices.Contains(found, "2-1") && found[len(found)-1] == "2-2"
	})
}

// A replica that could not give up the place tries again, also if it does not know how its last transaction ended.
func TestAReaderReleasesWhatItHolds(t *testing.T) {
	t.Parallel()
	p, _ := open(t)
	store := newStore(t)
	require.NoError(t, p.Await(t.Context()))
	ctx, cancel := context.WithCancel(request.System(t.Context(), request.Platform))
	var beating sync.WaitGroup
	t.Cleanup(beating.Wait)
	defer cancel()
	newReader := func() *Reader {
		group := replicas.New(store, basic.Log(t), false)
		beating.Go(func() { _ = group.Run(ctx) })
		wait.Until(t, group.Alive)
		return NewReader(ReaderConfig{Name: "reader", Places: places, Log: p.Log, DB: store, Group: group,
			Handle: func(context.Context, *Batch) error { return nil }})
	}
	first, second := newReader(), newReader()
	wait.Until(t, func() bool { return second.Group.Lives(first.Group.ID) })
	require.NoError(t, first.take(ctx))
	require.ErrorIs(t, second.take(ctx), errTaken)
	second.release(ctx) // it does not own it
	require.ErrorIs(t, second.take(ctx), errTaken)

	publish(t, p, message("1", 1))
	wait.Until(t, func() bool { return p.hasRead("1-1") })
	require.NoError(t, docstore.Do(ctx, store, func(tx *docstore.Tx) error {
		_, err := first.move(ctx, tx, mark{first.saved.Place + 1, "1-1"}) // a commit whose result it does not hear of
		return err
	}))
	first.place++
	ended, end := context.WithCancel(ctx)
	end()
	first.DB = newStore(t)
	first.release(ended) // fails: this store has no place
	require.True(t, first.holds)
	first.DB = store
	first.release(ended)
	require.False(t, first.holds)
	require.NoError(t, second.take(ctx))
	require.Equal(t, first.saved.Place+1, second.saved.Place)
}

// owner makes a Reader that reads for a program without Run.
func (p program) owner(t *testing.T, ctx context.Context) *Reader {
	t.Helper()
	require.NoError(t, p.Await(ctx))
	wait.Until(t, p.group.Alive)
	r := NewReader(ReaderConfig{Name: "reader", Places: places, Log: p.Log, DB: p.store, Group: p.group,
		Handle: func(context.Context, *Batch) error { return nil }})
	require.NoError(t, r.take(ctx))
	return r
}

// A replica that could neither save nor take its place when the server lost its newest events does not take the new
// ones there for those that it has read.
func TestNoPlaceOfLostEventsIsSaved(t *testing.T) {
	t.Parallel()
	p, x := open(t)
	ctx := request.System(t.Context(), request.Platform)
	r := p.owner(t, ctx)
	first := r.place
	before := x.Copy()
	for i := 1; i <= 10; i++ {
		publish(t, p, message(strconv.Itoa(i), 1))
	}
	wait.Until(t, func() bool { return p.hasRead("10-1") })
	require.NoError(t, r.readOnce(ctx))
	require.Equal(t, first+10, r.place)
	resets := p.Resets()
	x.Restore(before)
	for i := 1; i <= 12; i++ {
		publish(t, p, message("new"+strconv.Itoa(i), 1))
	}
	wait.Until(t, func() bool { return p.Resets() > resets && p.hasRead("new12-1") })
	require.ErrorIs(t, r.save(ctx, r.done(), nil), errTaken)
	right := r.DB
	r.DB = newStore(t) // has no place, so the release fails
	r.release(ctx)
	require.True(t, r.holds)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.Error(t, r.take(ended))
	r.DB = right
	r.release(ctx)
	at, err := places.find(ctx, p.store, "reader")
	require.NoError(t, err)
	require.Equal(t, first, at.Place)
}

// The stream may have dropped events that nobody has read.
func TestAReaderGoesOnAfterDroppedEvents(t *testing.T) {
	t.Parallel()
	p, _ := open(t)
	ctx := request.System(t.Context(), request.Platform)
	r := p.owner(t, ctx)
	publish(t, p, message("1", 1))
	wait.Until(t, func() bool { return p.hasRead("1-1") })
	require.NoError(t, r.readOnce(ctx))
	require.NoError(t, r.save(ctx, r.done(), nil))
	require.Equal(t, "1-1", r.saved.Event)
	publish(t, p, message("1", 2), message("1", 3))
	wait.Until(t, func() bool { return p.hasRead("1-3") })
	require.NoError(t, p.DropEvents(ctx, "acme", p.end()))
	require.NoError(t, r.take(ctx))
	require.Equal(t, p.end(), r.place)
	require.Empty(t, r.saved.Event, "it was at the place before")
}

// A replica of the version before, which still gets events, is waited for.
func TestAReaderWaitsForAnEarlierVersion(t *testing.T) {
	t.Parallel()
	p, _ := open(t)
	ctx := request.System(t.Context(), request.Platform)
	require.NoError(t, p.Await(ctx))
	publish(t, p, message("1", 1))
	_, _, err := p.announced(ctx, "reader", nil)
	require.NoError(t, err)
	durable, err := p.js.Consumer(ctx, bus.EventStream, "reader")
	require.NoError(t, err)
	batch, err := durable.Fetch(1, jetstream.FetchPriorityGroup("active"))
	require.NoError(t, err)
	for m := range batch.Messages() {
		require.NoError(t, m.DoubleAck(ctx))
	}
	wait.Until(t, p.group.Alive)
	r := NewReader(ReaderConfig{Name: "reader", Places: places, Log: p.Log, DB: p.store, Group: p.group,
		Handle: func(context.Context, *Batch) error { return nil }, Consumer: "reader"})
	require.ErrorIs(t, r.take(ctx), errTaken)
	stream, err := p.js.Stream(ctx, bus.EventStream)
	require.NoError(t, err)
	require.NoError(t, stream.UnpinConsumer(ctx, "reader", "active"))
	require.NoError(t, r.take(ctx))
	require.Equal(t, p.end(), r.place, "where that one was")
}

// Later versions must be able to read the stored form.
func TestStoredPlace(t *testing.T) {
	t.Parallel()
	at, err := json.Marshal(readerPlace{Owner: "o", Epoch: "e", Place: 7, Event: "i", Base: FirstID})
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"","tenant_id":"","version":0,"time_created":null,"time_modified":null,"owner":"o",
		"epoch":"e","place":7,"event":"i","base":1099511627776}`, string(at))
}
