package outbox

import (
	"context"
	"encoding/binary"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// replica is a store as one of two replicas sees it: the other one has appended some of the messages.
type replica struct {
	*memory
	elsewhere func(docstore.Message) bool
}

func (s replica) Pending(ctx context.Context, after int64, limit int) ([]docstore.Message, error) {
	list, err := s.memory.Pending(ctx, after, limit)
	for i := range list {
		list[i].Elsewhere = s.elsewhere(list[i])
	}
	return list, err
}

func theirs(docstore.Message) bool { return true }

func ours(docstore.Message) bool { return false }

// counting counts what a relay publishes.
type counting struct {
	*jetStream
	sent atomic.Int64
}

func (p *counting) Publish(ctx context.Context, messages []docstore.Message) []error {
	p.sent.Add(int64(len(messages)))
	return p.jetStream.Publish(ctx, messages)
}

// madeAt is a message whose id has a time. The library's ids never go back, as the time of a test may.
func madeAt(at time.Time, record string) docstore.Message {
	id := uuid.New()
	binary.BigEndian.PutUint16(id[:], uint16(at.UnixMilli()>>32))
	binary.BigEndian.PutUint32(id[2:], uint32(at.UnixMilli()))
	id[6] = 7<<4 | id[6]&0x0f
	return docstore.Message{ID: id.String(), Record: record, Subject: "idp.events.acme.user.updated"}
}

func TestAReplicaLeavesTheOthersMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, keep := newMemory(), &jetStream{keep: time.Second}
		one, two := &counting{jetStream: keep}, &counting{jetStream: keep}
		writer := newRelay(replica{s, ours}, one, quiet())
		other := newRelay(replica{s, theirs}, two, quiet())
		writer.start()
		other.start()
		for i := range 10 * batchSize { // half a minute
			s.add(madeAt(time.Now(), strconv.Itoa(i)))
			time.Sleep(6 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Empty(t, s.pending)
		require.EqualValues(t, 10*batchSize, one.sent.Load())
		require.Zero(t, two.sent.Load())
		stop(t, writer)
		stop(t, other)
	})
}

// A message that follows one of another replica arrives after it, also if the other one is slow.
func TestNoMessageOvertakesOneThatWasLeft(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]int{"next page": 0, "pages later": 2*batchSize + 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, p := newMemory(), &counting{jetStream: &jetStream{keep: time.Second}}
				first, second := madeAt(time.Now(), "a"), madeAt(time.Now(), "a")
				r := newRelay(replica{s, func(m docstore.Message) bool { return m.ID != second.ID }}, p, quiet())
				r.start()
				s.add(first)
				for i := range between {
					s.add(madeAt(time.Now(), strconv.Itoa(i)))
				}
				synctest.Wait()
				require.Zero(t, p.sent.Load(), "the other one publishes them")
				s.add(second)
				synctest.Wait()
				require.Equal(t, []string{first.ID, second.ID}, p.got)
				stop(t, r)
			})
		})
	}
}

func TestWhatADeadReplicaLeavesIsPublished(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p := newMemory(), &counting{jetStream: &jetStream{keep: time.Second}}
		r := newRelay(replica{s, theirs}, p, quiet())
		r.start()
		synctest.Wait()
		for i := range 2*batchSize + 3 {
			s.add(madeAt(time.Now(), strconv.Itoa(i)))
		}
		time.Sleep(takeOver - time.Millisecond)
		synctest.Wait()
		require.Zero(t, p.sent.Load(), "the other one may live")
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.EqualValues(t, 2*batchSize+3, p.sent.Load())

		s.add(madeAt(time.Now(), "last"))
		stop(t, r) // publishes all, so that nothing waits for the next start
		require.Empty(t, s.pending)
	})
}

// Clocks that differ by hours cost a second publication, and delay nothing.
func TestOtherClocks(t *testing.T) {
	t.Parallel()
	for name, differ := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now, other := madeAt(time.Now(), "a"), madeAt(time.Now().Add(differ), "b")
			now.Elsewhere, other.Elsewhere = true, true
			r := newRelay(newMemory(), &jetStream{}, quiet())
			require.Equal(t, []docstore.Message{other}, r.leave([]docstore.Message{now, other}))
		})
	}
}
