package sqlitestore

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/testkit/rounds"
)

// TestBySpans: a page of a set found by the spans of an order is the same as by sorting the set.
func TestBySpans(t *testing.T) {
	t.Parallel()
	rounds.Alone(t)
	const n = 2000
	seed := rand.Uint64()
	t.Log("seed", seed)
	ctx, r := t.Context(), rand.New(rand.NewPCG(seed, 1))
	def := &docstore.Def{Name: "x", Indexes: []docstore.IndexDef{
		{Name: "name", Span: 2}, {Name: "at", Number: true, Slot: 1, Span: 50}, {Name: "odd", Slot: 2},
	}}
	e, err := Open(ctx, Options{Path: filepath.Join(t.TempDir(), "x.db"), Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.NoError(t, e.Prepare(ctx, []*docstore.Def{def}))
	var keys [n][]docstore.Value
	require.NoError(t, e.Write(ctx, func(tx docstore.EngineTx) error {
		for i := range keys {
			name := []string{"", "a", fmt.Sprint(r.IntN(300)), fmt.Sprintf("ab%d", r.IntN(9))}[r.IntN(4)]
			keys[i] = []docstore.Value{docstore.Text(name), docstore.Number(r.Int64N(1000) - 500), docstore.Text("")}
			entry := docstore.Entry{Tenant: "t", ID: fmt.Sprint(1 + i), Keys: keys[i], JSON: []byte("{}")}
			if err := tx.Insert(ctx, def, &entry); err != nil {
				return err
			}
		}
		return nil
	}))
	orders := [][]docstore.Order{{{Index: "name"}}, {{Index: "name", Desc: true}}, {{Index: "at"}},
		{{Index: "at", Desc: true}}, {{Index: "at"}, {Index: "name", Desc: true}}}
	for range 300 {
		selected := newSet()
		for range 1 + r.IntN([]int{5, 100, 3 * n}[r.IntN(3)]) {
			selected.add(1 + r.Int64N(n))
		}
		find := docstore.Find{Filter: docstore.Eq("odd", docstore.Text("")), Sort: orders[r.IntN(len(orders))],
			Limit: 1 + r.IntN(50)}
		if r.IntN(2) == 0 {
			find.Offset = r.IntN(int(selected.size) + 2)
		} else {
			after := r.IntN(n)
			find.After = &docstore.Position{ID: fmt.Sprint(1 + after)}
			for _, o := range find.Sort {
				find.After.Values = append(find.After.Values, keys[after][def.Index(o.Index).Slot])
			}
		}
		planned, err := e.planQuery(def, "t", find)
		require.NoError(t, err)
		require.NoError(t, e.snapshot(ctx, func(conn Conn) error {
			q := &queries{engine: e, conn: conn}
			want, err := q.sorted(ctx, planned, selected.rids())
			require.NoError(t, err)
			got, err := q.bySpans(ctx, planned, selected)
			require.NoError(t, err)
			require.Equal(t, append([]int64{}, want...), append([]int64{}, got...), "%+v", find)
			return nil
		}))
	}
}
