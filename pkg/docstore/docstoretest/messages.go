package docstoretest

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
)

var messageCases = []testCase{
	{name: "messages/pending, published, backlog", run: outbox},
	{name: "messages/those of one record are in order", run: messageOrder},
	{name: "messages/a backlog of one record is in order", run: messageBacklog},
	{name: "messages/stores signal them", run: appendedSignal},
}

func outbox(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	pending := func(limit int) []docstore.Message {
		t.Helper()
		list, err := f.Pending(ctx, 0, limit)
		require.NoError(t, err)
		return list
	}
	backlog := func() int64 {
		t.Helper()
		n, err := f.Backlog(ctx)
		require.NoError(t, err)
		return n
	}
	require.Empty(t, pending(10))
	require.Zero(t, backlog())
	for i := range 10 {
		m := docstore.Message{ID: fmt.Sprint("m", i), Subject: "idp.events.t1.thing.created", Record: docID(i % 2),
			Payload: []byte(fmt.Sprintf(`{"n":%d,"t":"京\u0000"}`, i))}
		require.NoError(t, f.append(ctx, m))
	}
	list := pending(4)
	require.Len(t, list, 4)
	for i, m := range list {
		require.Equal(t, fmt.Sprint("m", i), m.ID, "oldest first")
		require.Equal(t, "idp.events.t1.thing.created", m.Subject)
		require.Equal(t, docID(i%2), m.Record)
		require.Equal(t, fmt.Sprintf(`{"n":%d,"t":"京\u0000"}`, i), string(m.Payload))
	}
	after, err := f.Pending(ctx, list[1].Seq, 3)
	require.NoError(t, err)
	require.Len(t, after, 3)
	require.Equal(t, list[2:], after[:2], "those after a number")
	after, err = f.Pending(ctx, math.MaxInt64, 3)
	require.NoError(t, err)
	require.Empty(t, after)
	require.EqualValues(t, 10, backlog())
	require.Len(t, pending(4), 4, "they stay until they are published")

	require.NoError(t, f.Published(ctx, []int64{list[0].Seq, list[2].Seq, 1 << 40}), "an unknown one is no error")
	require.NoError(t, f.Published(ctx, []int64{list[0].Seq}), "nor is one that was published before")
	require.NoError(t, f.Published(ctx, nil))
	require.EqualValues(t, 8, backlog())
	rest := pending(100)
	require.Len(t, rest, 8)
	require.Equal(t, "m1", rest[0].ID)
	require.Equal(t, "m3", rest[1].ID)

	var seqs []int64
	for _, m := range rest {
		seqs = append(seqs, m.Seq)
	}
	require.NoError(t, f.Published(ctx, seqs))
	require.NoError(t, f.append(ctx, docstore.Message{ID: "later", Subject: "s", Record: "r"}))
	later := pending(10)
	require.Len(t, later, 1)
	require.NotContains(t, append(seqs, list[0].Seq, list[2].Seq), later[0].Seq,
		"no number is used again, so a late Published removes no other message")
	require.Empty(t, later[0].Payload)
}

// messageOrder: many callers change few records. Each record's messages come in the order of its versions.
func messageOrder(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	const records, callers, each = 2, 6, 5
	for i := range records {
		f.insert(t, ctx, thing(docID(i)))
	}
	allOf(t, callers, func(caller int) error {
		id := docID(caller % records)
		for done := 0; done < each; {
			err := f.write(ctx, func(tx *docstore.Tx) error {
				v, err := f.things.Load(ctx, tx, id)
				if err != nil {
					return err
				}
				v.Rank++
				d, err := f.things.Replace(ctx, tx, v)
				if err != nil {
					return err
				}
				return tx.Append(ctx, docstore.Message{ID: fmt.Sprint(id, "/", d.Version), Subject: "s", Record: id,
					Payload: fmt.Append(nil, d.Version)})
			})
			if err == nil {
				done++
			}
		}
		return nil
	})
	list, err := f.Pending(ctx, 0, 1000)
	require.NoError(t, err)
	require.Len(t, list, callers*each)
	next := map[string]int{}
	for i, m := range list {
		next[m.Record]++
		require.Equal(t, fmt.Sprint(next[m.Record]+1), string(m.Payload), "message %d of %s", i, m.Record)
	}
}

// messageBacklog: page after page, the messages of a record come in the order of its sequences, even if their numbers
// have another order. An engine may take numbers from the clocks of its processes, one of which may be slow.
func messageBacklog(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	const records, each = 3, 8
	for n := range each {
		for record := range records {
			m := docstore.Message{ID: fmt.Sprint(record, "/", n), Subject: "s", Record: docID(record)}
			m.Sequence = docstore.FirstSequence(int64(n + 1))
			require.NoError(t, f.append(ctx, m))
		}
	}
	sequences := map[string]int{}
	for {
		page, err := f.Pending(ctx, 0, 5)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		var seqs []int64
		for _, m := range page {
			n := 0
			_, err := fmt.Sscanf(m.ID[2:], "%d", &n)
			require.NoError(t, err)
			require.Equal(t, sequences[m.Record], n, m.Record)
			sequences[m.Record]++
			seqs = append(seqs, m.Seq)
		}
		require.NoError(t, f.Published(ctx, seqs))
	}
	require.Len(t, sequences, records)
	for record, n := range sequences {
		require.Equal(t, each, n, record)
	}
}

func appendedSignal(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a"))
	require.Empty(t, f.Appended(), "no message, no signal")
	for i := range 3 {
		require.NoError(t, f.append(ctx, docstore.Message{ID: docID(i), Subject: "s", Record: "r"}))
	}
	<-f.Appended()
	require.Empty(t, f.Appended(), "signals are merged")
}
