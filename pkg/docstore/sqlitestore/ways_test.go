package sqlitestore_test

import (
	"cmp"
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

// TestEveryWay: pages and totals of filters like those of lists of users equal those of the simplest search in memory,
// at the beginning and far into the list, while documents change, at sizes at which queries use each of their ways.
func TestEveryWay(t *testing.T) {
	t.Parallel()
	const n, rounds = 6000, 400
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	engine, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: filepath.Join(t.TempDir(), "members.db"),
		Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	store, err := docstore.Open(t.Context(), engine, clock.System, members.Def())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	ctx := tenant(t)
	var all []*member
	write := func(fn func(tx *docstore.Tx) error) {
		t.Helper()
		_, err := docstore.Write(ctx, store, func(tx *docstore.Tx) (int, error) { return 0, fn(tx) })
		require.NoError(t, err)
	}
	write(func(tx *docstore.Tx) error {
		for i := range n {
			m := &member{Meta: docstore.Meta{ID: fmt.Sprint(10_000 + i)}, State: "b", Made: int64(i)}
			m.Name, m.Nick = fmt.Sprintf("n%02d", r.IntN(40)), fmt.Sprintf("k%d", r.IntN(400))
			switch {
			case i < n/3:
				m.State = "a"
			case r.IntN(50) == 0:
				m.State, m.Due = "c", 1+int64(r.IntN(900))
			}
			all = append(all, m)
			c := *m
			if _, err := members.Insert(ctx, tx, &c); err != nil {
				return err
			}
		}
		return nil
	})
	orders := [][]docstore.Order{nil, {{Index: "name"}}, {{Index: "name", Desc: true}}, {{Index: "made"}},
		{{Index: "made", Desc: true}}, {{Index: "name", Desc: true}, {Index: "made"}}}
	for range rounds {
		chosen, order := someChoice(r, n), orders[r.IntN(len(orders))]
		var want []*member
		for _, m := range all {
			if chosen.fits(m) {
				want = append(want, m)
			}
		}
		slices.SortFunc(want, func(a, b *member) int {
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
		q := docstore.Query{Filter: chosen.filter, Sort: order, Limit: 1 + r.IntN(40), Count: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			q.Offset = r.IntN(len(want) + 2)
		}
		look := func(in docstore.Reader) {
			q, from := q, q.Offset
			for range 3 { // pages, the later ones by token
				page, err := members.Page(ctx, in, q)
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
		look(store)
		exactTo := int64(1 + r.IntN(2*len(want)+2))
		total, err := engine.Count(ctx, members.Def(), "t1", chosen.filter, exactTo)
		require.NoError(t, err)
		if total.More {
			require.True(t, exactTo <= total.N && total.N < int64(len(want)), "more than %d of %d, exact up to %d: %+v",
				total.N, len(want), exactTo, q)
		} else {
			require.EqualValues(t, len(want), total.N, "%+v", q)
		}
		if r.IntN(4) == 0 {
			write(func(tx *docstore.Tx) error {
				m := all[r.IntN(n)]
				loaded, err := members.Load(ctx, tx, m.ID)
				if err != nil {
					return err
				}
				m.State, m.Name = []string{"a", "b", "c"}[r.IntN(3)], fmt.Sprintf("n%02d", r.IntN(40))
				loaded.State, loaded.Name = m.State, m.Name
				if _, err = members.Replace(ctx, tx, loaded); err != nil {
					return err
				}
				if chosen.fits(m) == slices.Contains(want, m) && len(order) > 0 && order[0].Index == "made" &&
					len(order) == 1 {
					look(tx)
				}
				return nil
			})
		}
	}
	require.NoError(t, engine.Check(t.Context()))
}
