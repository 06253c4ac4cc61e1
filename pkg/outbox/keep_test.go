package outbox

import (
	"context"
	"encoding/binary"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// powerCut is the state after a power failure: the store's messages, and the synced part of the stream.
func powerCut(s *memory, p *jetStream) (*memory, *jetStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	after, left := newMemory(), &jetStream{seen: map[string]bool{}}
	after.pending, after.next = append(after.pending, s.pending...), s.next
	for _, id := range p.got {
		if p.durable[id] {
			left.got = append(left.got, id)
			left.seen[id] = true
		}
	}
	return after, left
}

func TestAPowerCutAtAnyTimeLosesNoEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for cut := 0; cut < 3000; cut += 100 { // milliseconds
			s, p := newMemory(), &jetStream{keep: time.Second}
			r := newRelay(s, p, quiet())
			r.start()
			var sent []docstore.Message
			begin := time.Now()
			for v := 1; time.Since(begin) < time.Duration(cut)*time.Millisecond; v++ {
				for i := range 3 {
					m := msg(strconv.Itoa(i), v)
					sent = append(sent, m)
					s.add(m)
				}
				time.Sleep(30 * time.Millisecond)
			}
			after, left := powerCut(s, p)
			stop(t, r)

			r = newRelay(after, left, quiet())
			r.start()
			stop(t, r)
			left.inOrder(t, sent)
			require.Empty(t, after.pending)
		}
	})
}

func TestKeptMessagesAreForgottenTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p := newMemory(), &jetStream{keep: time.Second}
		reg := prometheus.NewRegistry()
		r, err := StartRelay(s, p, quiet(), reg)
		require.NoError(t, err)
		for i := range 150 {
			s.add(msg(strconv.Itoa(i), 1))
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		require.LessOrEqual(t, p.syncs, 2, "within one and a half seconds")
		require.Equal(t, p.syncs, s.marks)
		require.LessOrEqual(t, s.reads, 2*150+10, "kept messages are not read again")

		require.NotEmpty(t, s.pending, "kept")
		families, err := reg.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == "idp_outbox_backlog" || f.GetName() == "idp_outbox_oldest_age_seconds" {
				require.Zero(t, f.GetMetric()[0].GetGauge().GetValue(), f.GetName())
			}
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Empty(t, s.pending)
		stop(t, r)
	})
}

// A record whose message is never accepted does not delay the kept ones, and others are published.
func TestKeptMessagesBehindOneThatIsStuck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bad := msg("bad", 1)
		p := &jetStream{keep: time.Second, fail: func(m docstore.Message) (bool, bool) { return m.ID == bad.ID, false }}
		s := newMemory()
		s.add(bad)
		r := newRelay(s, p, quiet())
		r.start()
		for i := range 3 * batchSize {
			s.add(msg(strconv.Itoa(i), 1))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, s.pending, 1)
		require.Len(t, p.got, 3*batchSize)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.Error(t, r.Stop(ctx))
	})
}

func TestStuck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away := false
		p := &jetStream{keep: time.Second, fail: func(docstore.Message) (bool, bool) { return away, false }}
		s := newMemory()
		r := newRelay(s, p, quiet())
		r.start()
		event := func() {
			var id uuid.UUID // with the bubble's clock; uuid.NewV7 would not go back to it
			binary.BigEndian.PutUint64(id[:], uint64(time.Now().UnixMilli())<<16|7<<12)
			m := msg("a", 0)
			m.ID = id.String()
			s.add(m)
		}
		event()
		time.Sleep(time.Hour)
		require.NoError(t, r.Stuck(t.Context(), 30*time.Second), "nothing waits")

		p.mu.Lock()
		away = true
		p.mu.Unlock()
		event()
		time.Sleep(29 * time.Second)
		require.NoError(t, r.Stuck(t.Context(), 30*time.Second), "not yet")
		time.Sleep(2 * time.Second)
		require.ErrorIs(t, r.Stuck(t.Context(), 30*time.Second), ErrStuck)

		p.mu.Lock()
		away = false
		p.mu.Unlock()
		time.Sleep(10 * time.Second)
		require.NoError(t, r.Stuck(t.Context(), 30*time.Second))
		stop(t, r)
	})
}
