package sqlitestore_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/testkit/rounds"
)

// member has what lists of users have: a state, times at which something falls due, names that several indexes cover,
// and times that grow with the ids.
type member struct {
	docstore.Meta
	State string `json:"state"`
	Name  string `json:"name"`
	Nick  string `json:"nick"`
	Made  int64  `json:"made"`
	Due   int64  `json:"due"` // 0 means never
}

var members = docstore.Define(docstore.Schema[member]{
	Name: "members", Noun: "member", Revision: 1,
	Indexes: []docstore.Index[member]{
		docstore.Spanned(docstore.ByText("name", func(m *member) string { return m.Name }), 2),
		docstore.Spanned(docstore.ByNumber("made", func(m *member) docstore.Value {
			return docstore.Number(m.Made)
		}), 100),
		docstore.ByNumber("due", func(m *member) docstore.Value {
			if m.Due == 0 {
				return docstore.NoNumber
			}
			return docstore.Number(m.Due)
		}),
		docstore.Facet(docstore.ByText("state", func(m *member) string { return m.State }), "name", "made"),
		docstore.ByList("words", func(m *member) []string { return strings.Fields(m.Name + " " + m.Nick + " all") }),
	},
})

type choice struct {
	filter docstore.Filter
	fits   func(*member) bool
}

func both(a, b choice) choice {
	return choice{docstore.And(a.filter, b.filter), func(m *member) bool { return a.fits(m) && b.fits(m) }}
}

// someChoice returns a filter like those of lists of users.
func someChoice(r *rand.Rand, n int) choice {
	number := docstore.Number
	const never = -1 << 62
	kinds := []func() choice{
		func() choice {
			states := []docstore.Value{docstore.Text("x")}
			for _, s := range []string{"a", "b", "c"} {
				if r.IntN(2) == 0 {
					states = append(states, docstore.Text(s))
				}
			}
			in := choice{docstore.In("state", states...),
				func(m *member) bool { return slices.Contains(states, docstore.Text(m.State)) }}
			now := int64(r.IntN(3)) * 500 // none is due, some are, or all are
			switch r.IntN(3) {
			case 0:
				return in
			case 1:
				return both(in, choice{docstore.Outside("due", number(never), number(now)),
					func(m *member) bool { return m.Due == 0 || m.Due >= now }})
			}
			return choice{docstore.Or(in.filter, docstore.Range("due", number(never), number(now))),
				func(m *member) bool { return in.fits(m) || m.Due != 0 && m.Due < now }}
		},
		func() choice {
			from := int64(r.IntN(n))
			to := from + 1 + int64(r.IntN([]int{20, n}[r.IntN(2)]))
			return choice{docstore.Range("made", number(from), number(to)),
				func(m *member) bool { return m.Made >= from && m.Made < to }}
		},
		func() choice {
			key := []string{"a", "n1", "n12", "k", "k3", "none"}[r.IntN(6)]
			fits := func(m *member) bool {
				return slices.ContainsFunc(strings.Fields(m.Name+" "+m.Nick+" all"),
					func(s string) bool { return strings.HasPrefix(s, key) })
			}
			if r.IntN(2) == 0 {
				return choice{docstore.Prefix("words", key), fits}
			}
			return choice{docstore.Or(docstore.Prefix("words", key), docstore.ID("none"),
				docstore.Known(docstore.Prefix("name", key))), fits}
		},
		func() choice {
			return choice{docstore.Eq("words", docstore.Text("all")), func(*member) bool { return true }}
		},
	}
	all := choice{docstore.Filter{}, func(*member) bool { return true }}
	for range r.IntN(4) {
		all = both(all, kinds[r.IntN(len(kinds))]())
	}
	return all
}

var memberOrders = [][]docstore.Order{nil, {{Index: "name"}}, {{Index: "name", Desc: true}}, {{Index: "made"}},
	{{Index: "made", Desc: true}}, {{Index: "name", Desc: true}, {Index: "made"}}}

// waysRun is a store with members, and the members as they should be.
type waysRun struct {
	ctx    context.Context
	r      *rand.Rand
	engine *sqlitestore.Engine
	store  *docstore.Store
	all    []*member
}

func newWaysRun(t *testing.T, n int) *waysRun {
	t.Helper()
	seed := rand.Uint64()
	t.Log("seed", seed)
	w := &waysRun{ctx: tenant(t), r: rand.New(rand.NewPCG(seed, 1))}
	var err error
	w.engine, err = sqlitestore.Open(t.Context(), sqlitestore.Options{
		Path: filepath.Join(t.TempDir(), "members.db"), Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	w.store, err = docstore.Open(t.Context(), w.engine, clock.System, members.Def())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.store.Close()) })
	for i := range n {
		m := &member{Meta: docstore.Meta{ID: fmt.Sprint(10_000 + i)}, State: "b", Made: int64(i)}
		m.Name, m.Nick = fmt.Sprintf("n%02d", w.r.IntN(40)), fmt.Sprintf("k%d", w.r.IntN(400))
		switch {
		case i < n/3:
			m.State = "a"
		case w.r.IntN(50) == 0:
			m.State, m.Due = "c", 1+int64(w.r.IntN(900))
		}
		w.all = append(w.all, m)
	}
	require.NoError(t, docstore.Do(w.ctx, w.store, func(tx *docstore.Tx) error {
		for _, m := range w.all {
			c := *m
			if _, err := members.Insert(w.ctx, tx, &c); err != nil {
				return err
			}
		}
		return nil
	}))
	return w
}

// selected lists the members that a choice selects, in an order.
func (w *waysRun) selected(chosen choice, order []docstore.Order) []*member {
	list := slices.DeleteFunc(slices.Clone(w.all), func(m *member) bool { return !chosen.fits(m) })
	slices.SortFunc(list, func(a, b *member) int {
		for _, o := range order {
			c := strings.Compare(a.Name, b.Name)
			if o.Index == "made" {
				c = cmp.Compare(a.Made, b.Made)
			}
			if o.Desc {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		if len(order) > 0 && order[len(order)-1].Desc {
			return strings.Compare(b.ID, a.ID)
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list
}

// read reads three pages of a query, the later ones by token, and compares them with the wanted members.
func (w *waysRun) read(t *testing.T, in docstore.Reader, q docstore.Query, want []*member) {
	t.Helper()
	from := q.Offset
	for range 3 {
		page, err := members.Page(w.ctx, in, q)
		require.NoError(t, err)
		var got, ids []string
		for i := range page.Docs {
			got = append(got, page.Docs[i].ID)
		}
		for _, m := range want[min(from, len(want)):min(from+q.Limit, len(want))] {
			ids = append(ids, m.ID)
		}
		require.Equal(t, ids, got, "%+v", q)
		if q.Count {
			require.EqualValues(t, len(want), page.Total, "%+v", q)
		}
		if from += q.Limit; page.Next == "" {
			return
		}
		q.After, q.Offset = page.Next, 0
	}
}

// count compares a bounded total with the actual one.
func (w *waysRun) count(t *testing.T, filter docstore.Filter, actual int) {
	t.Helper()
	exactTo := int64(1 + w.r.IntN(2*actual+2))
	total, err := w.engine.Count(w.ctx, members.Def(), "t1", filter, exactTo)
	require.NoError(t, err)
	if total.More {
		require.True(t, exactTo <= total.N && total.N < int64(actual), "more than %d of %d, exact up to %d: %+v",
			total.N, actual, exactTo, filter)
	} else {
		require.EqualValues(t, actual, total.N, "%+v", filter)
	}
}

// change changes one member, and then calls look in the transaction.
func (w *waysRun) change(t *testing.T, look func(tx *docstore.Tx)) {
	t.Helper()
	require.NoError(t, docstore.Do(w.ctx, w.store, func(tx *docstore.Tx) error {
		m := w.all[w.r.IntN(len(w.all))]
		loaded, err := members.Load(w.ctx, tx, m.ID)
		if err != nil {
			return err
		}
		m.State, m.Name = []string{"a", "b", "c"}[w.r.IntN(3)], fmt.Sprintf("n%02d", w.r.IntN(40))
		loaded.State, loaded.Name = m.State, m.Name
		if _, err = members.Replace(w.ctx, tx, loaded); err != nil {
			return err
		}
		look(tx)
		return nil
	}))
}

// TestEveryWay: pages and totals of filters like those of lists of users equal those of the simplest search in memory,
// at the beginning and far into the list, while documents change, at sizes at which queries use each of their ways.
func TestEveryWay(t *testing.T) {
	t.Parallel()
	rounds.Alone(t)
	const n = 6000
	w := newWaysRun(t, n)
	for range rounds.Of(100, 400) {
		chosen, order := someChoice(w.r, n), memberOrders[w.r.IntN(len(memberOrders))]
		want := w.selected(chosen, order)
		q := docstore.Query{Filter: chosen.filter, Sort: order, Limit: 1 + w.r.IntN(40), Count: w.r.IntN(2) == 0}
		if w.r.IntN(2) == 0 {
			q.Offset = w.r.IntN(len(want) + 2)
		}
		w.read(t, w.store, q, want)
		w.count(t, chosen.filter, len(want))
		if w.r.IntN(4) == 0 {
			w.change(t, func(tx *docstore.Tx) {
				w.read(t, tx, q, w.selected(chosen, order))
			})
		}
	}
	require.NoError(t, w.engine.Check(t.Context()))
}
