package stream

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/testkit/natstest"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// of makes the message another tenant's.
func of(tenant string, m docstore.Message) docstore.Message {
	m.ID = tenant + m.ID
	m.Subject = "idp.events." + tenant + ".user.updated"
	m.Payload = fmt.Appendf(nil, `{"specversion":"1.0","id":%q,"source":"/users","type":"idp.user.updated",`+
		`"subject":"1","tenantid":%q,"sequence":"1","data":{}}`, m.ID, tenant)
	return m
}

// created makes the message one of another type.
func created(m docstore.Message) docstore.Message {
	m.ID = "new-" + m.ID
	m.Subject = strings.Replace(m.Subject, "user.updated", "node.created", 1)
	m.Payload = bytes.Replace(bytes.Replace(m.Payload, []byte("user.updated"), []byte("node.created"), 1),
		[]byte(`"id":"`), []byte(`"id":"new-`), 1)
	return m
}

// small keeps eight events in memory.
const small = 8 * usualSize

// withMemory is open with a Log that keeps few events.
func withMemory(t *testing.T, memory int) (program, *natstest.Server) {
	t.Helper()
	p, x := open(t)
	p.Log.Close()
	l, err := New(Config{Bus: p.Bus, Memory: memory, Log: p.Log.log})
	require.NoError(t, err)
	require.NoError(t, l.Await(t.Context()))
	return program{Log: l, Bus: p.Bus}, x
}

// Wherever readers begin and however much they read at a time, from memory or from the stream, they see each event of
// theirs once, in order.
func TestReadersSeeEachEventOnce(t *testing.T) {
	t.Parallel()
	p, _ := withMemory(t, small)
	began, _, err := p.End()
	require.NoError(t, err)
	tenants := []string{"acme", "globex", "initech"}
	var all []*Event // the naive model
	rapid.Check(t, func(rt *rapid.T) {
		for range rapid.IntRange(1, 12).Draw(rt, "events") {
			tenant := rapid.SampledFrom(tenants).Draw(rt, "tenant")
			m := of(tenant, message("1", len(all)))
			publish(t, p, m)
			all = append(all, &Event{ID: m.ID, Tenant: tenant, Place: began + 1 + uint64(len(all))})
		}
		last := all[len(all)-1].Place
		wait.Until(t, func() bool { end, _, _ := p.End(); return end == last })
		tenant := rapid.SampledFrom(append(tenants, "")).Draw(rt, "of")
		after := began + uint64(max(0, len(all)-rapid.IntRange(0, 40).Draw(rt, "back")))
		var want, got []string
		for _, e := range all {
			if e.Place > after && (tenant == "" || tenant == e.Tenant) {
				want = append(want, fmt.Sprint(e.ID, " at ", e.Place))
			}
		}
		for after < last {
			events, next, err := p.Read(t.Context(), tenant, after, rapid.IntRange(1, 20).Draw(rt, "limit"))
			require.NoError(t, err)
			require.Greater(t, next, after)
			for _, e := range events {
				require.LessOrEqual(t, e.Place, next)
				got = append(got, fmt.Sprint(e.ID, " at ", e.Place))
			}
			after = next
		}
		require.Equal(t, want, got)
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	require.LessOrEqual(t, len(p.recent), small/usualSize)
	require.LessOrEqual(t, p.bytes, small)
}

// What is large takes the place of more than one event.
func TestMemoryIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	p, _ := withMemory(t, small)
	large := message("1", 1)
	large.Payload = bytes.Replace(large.Payload, []byte(`"record":{}`),
		fmt.Appendf(nil, `"record":{"a":%q}`, strings.Repeat("x", small/2)), 1)
	publish(t, p, message("2", 1), large, message("1", 2))
	events := func() (ids []string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, e := range p.recent {
			ids = append(ids, p.decode(e).ID)
		}
		return ids
	}
	wait.Until(t, func() bool { return slices.Equal(events(), []string{"2-1", "1-1", "1-2"}) })
	large.ID = "again"
	publish(t, p, large)
	wait.Until(t, func() bool { return slices.Equal(events(), []string{"1-2", "1-1"}) })
}

// Only those wake up whose tenant has another event.
func TestChanged(t *testing.T) {
	t.Parallel()
	p, _ := open(t)
	require.NoError(t, p.Await(t.Context()))
	all, acme, globex := p.Changed(""), p.Changed("acme"), p.Changed("globex")
	publish(t, p, of("acme", message("1", 1)))
	wait.Receive(t, all)
	wait.Receive(t, acme)
	select {
	case <-globex:
		require.Fail(t, "it has no event")
	default:
	}
	publish(t, p, of("globex", message("1", 1)))
	wait.Receive(t, globex)
}

// held is a mirror that stops at its first event until goOn is closed.
func held(m *mirror) (c FollowerConfig, holds, goOn chan struct{}) {
	c, holds, goOn = m.config("mirror"), make(chan struct{}, 1), make(chan struct{})
	handle := c.Handle
	c.Handle = func(ctx context.Context, e Event) error {
		tell(holds)
		<-goOn
		return handle(ctx, e)
	}
	return c, holds, goOn
}

// A follower that is slower than its events continues in the stream, when memory no longer has them.
func TestASlowFollowerSeesEachEventOnce(t *testing.T) {
	t.Parallel()
	p, _ := withMemory(t, small)
	var m mirror
	c, holds, goOn := held(&m)
	f, err := p.Follow(t.Context(), c)
	require.NoError(t, err)
	ready(t, f)
	var want []string
	for n := 1; n <= 700; n++ {
		publish(t, p, message("1", n), created(message("1", n)))
		want = append(want, fmt.Sprint("1-", n))
	}
	wait.Receive(t, holds)
	require.Less(t, f.placeNow(), p.end(), "it is behind")
	close(goOn)
	require.Equal(t, want, m.until(t, 1, want[len(want)-1]))
	ready(t, f)
}

func (f *Follower) placeNow() uint64 {
	place, _ := f.at()
	return place
}

// What the stream dropped before a slow follower came there is in another snapshot, whichever tenant it was of.
func TestASlowFollowerMissesNothingThatIsDropped(t *testing.T) {
	t.Parallel()
	p, _ := withMemory(t, small)
	var m mirror
	c, holds, goOn := held(&m)
	f, err := p.Follow(t.Context(), c)
	require.NoError(t, err)
	ready(t, f)
	for n := range 50 {
		publish(t, p, of("acme", message("1", n)), of("globex", message("1", n)))
	}
	wait.Receive(t, holds)
	stream, err := p.js.Stream(t.Context(), bus.EventStream) // the log may not have read all of it
	require.NoError(t, err)
	require.NoError(t, p.DropEvents(t.Context(), "acme", stream.CachedInfo().State.LastSeq-10))
	close(goOn)
	m.until(t, 2, "")
	ready(t, f)
	publish(t, p, of("acme", message("1", 50)))
	m.until(t, 2, "acme1-50")
}

// A follower of rare events does not look for them again and again: it knows that there were none.
func TestAFollowerMovesOnWithoutEvents(t *testing.T) {
	t.Parallel()
	p, _ := withMemory(t, small)
	var m mirror
	f, err := p.Follow(t.Context(), m.config("mirror"))
	require.NoError(t, err)
	ready(t, f)
	asked := counting(t, p, "$JS.API.DIRECT.GET."+bus.EventStream)
	for n := range 50 {
		publish(t, p, created(message("1", n+1)))
	}
	publish(t, p, message("1", 1))
	require.Equal(t, []string{"1-1"}, m.until(t, 1, "1-1"))
	require.Zero(t, asked.Load())
	wait.Until(t, func() bool { return f.placeNow() == p.end() })
}

// A message that is no event is left out, and hides none.
func TestAMessageThatIsNoEvent(t *testing.T) {
	t.Parallel()
	p, _ := open(t)
	var m mirror
	ready(t, follow(t, p, &m))
	wrong := message("1", 1)
	wrong.ID, wrong.Payload = "wrong", []byte("{}")
	publish(t, p, wrong, message("1", 2))
	require.Equal(t, []string{"1-2"}, m.until(t, 1, "1-2"))
}

// A power cut may take the newest event that there was when the program started, and give its place to another.
func TestALostEventThatWasThereAtTheStart(t *testing.T) {
	t.Parallel()
	other, x := open(t)
	before := x.Copy()
	publish(t, other, message("1", 1))
	g := &gate{Server: x}
	away := connect(t, bus.Config{InProcess: g})
	var m mirror
	ready(t, follow(t, away, &m))
	g.shut.Store(true)
	x.Restore(before)
	publish(t, other, message("2", 1), message("2", 2))
	g.shut.Store(false)
	m.until(t, 2, "")
}

// What has lost its newest events is read again from where they may begin, and not from the oldest event.
func TestBackAfterALostEnd(t *testing.T) {
	t.Parallel()
	p, _ := open(t)
	require.NoError(t, p.Await(t.Context()))
	publish(t, p, message("1", 1), message("1", 2))
	wait.Until(t, func() bool { return p.hasRead("1-2") })
	end, epoch, err := p.End()
	require.NoError(t, err)
	now := time.Now()
	for at, want := range map[time.Time]uint64{now: end - 2, now.Add(2 * unsure): end} {
		place, err := p.Back(t.Context(), Mark{Epoch: epoch, Place: end + 5, Event: "lost", At: at})
		require.NoError(t, err)
		require.Equal(t, want, place)
	}
	place, err := p.Back(t.Context(), Mark{Epoch: "another", Place: end + 5, Event: "lost", At: now})
	require.NoError(t, err)
	require.Equal(t, end-2, place, "the oldest")
	_, next, err := p.Stored(t.Context(), Reading{After: end - 1, UpTo: end + 5, Limit: 10})
	require.NoError(t, err)
	require.Equal(t, end, next, "the stream has yet to give the places after its end")
	_, next, err = p.Stored(t.Context(), Reading{After: end + 2, UpTo: end + 5, Limit: 10})
	require.NoError(t, err)
	require.Equal(t, end+2, next)
}
