package sqlitestore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// selection is a filter and its meaning.
type selection struct {
	filter  docstore.Filter
	selects func(*note) bool
}

func hasWord(prefix string) func(*note) bool {
	return func(n *note) bool {
		return slices.ContainsFunc(n.Words, func(w string) bool { return strings.HasPrefix(w, prefix) })
	}
}

func all(parts ...selection) selection {
	var filters []docstore.Filter
	for _, p := range parts {
		filters = append(filters, p.filter)
	}
	return selection{docstore.And(filters...), func(n *note) bool {
		return !slices.ContainsFunc(parts, func(p selection) bool { return !p.selects(n) })
	}}
}

func anyOf(parts ...selection) selection {
	var filters []docstore.Filter
	for _, p := range parts {
		filters = append(filters, p.filter)
	}
	return selection{docstore.Or(filters...), func(n *note) bool {
		return slices.ContainsFunc(parts, func(p selection) bool { return p.selects(n) })
	}}
}

func word(prefix string) selection {
	return selection{docstore.Prefix("words", prefix), hasWord(prefix)}
}

func titled(prefix string) selection {
	return selection{docstore.Prefix("title", prefix), func(n *note) bool { return strings.HasPrefix(n.Title, prefix) }}
}

func inTitle(part string) selection {
	return selection{docstore.Contains("title", part), func(n *note) bool { return strings.Contains(n.Title, part) }}
}

func since(at int64) selection {
	return selection{docstore.TimeBound(docstore.From("created", docstore.Number(at))), func(n *note) bool {
		return n.TimeCreated.Millis() >= at
	}}
}

// model is what a tenant's notes should be.
type model map[string]*note

func (m model) page(s selection, sort []docstore.Order) []string {
	var found []*note
	for _, n := range m {
		if s.selects(n) {
			found = append(found, n)
		}
	}
	slices.SortFunc(found, func(a, b *note) int {
		down := false
		for _, o := range sort {
			c := cmp.Compare(a.TimeCreated.Millis(), b.TimeCreated.Millis())
			if o.Index == "title" {
				c = strings.Compare(a.Title, b.Title)
			}
			if down = o.Desc; down {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		c := strings.Compare(a.ID, b.ID)
		if down {
			c = -c
		}
		return c
	})
	ids := make([]string, len(found))
	for i, n := range found {
		ids[i] = n.ID
	}
	return ids
}

func cutOut(ids []string, from, n int) []string {
	ids = ids[min(from, len(ids)):]
	return append([]string{}, ids[:min(n, len(ids))]...)
}

func idsOf(page docstore.Page[note]) []string {
	ids := []string{}
	for _, d := range page.Docs {
		ids = append(ids, d.ID)
	}
	return ids
}

var sorts = [][]docstore.Order{
	nil, {{Index: "title"}}, {{Index: "title", Desc: true}}, {{Index: "created", Desc: true}},
	{{Index: "title", Desc: true}, {Index: "created"}},
}

var selections = []selection{
	word("all"), word("w1"), word("rare1"), word("none"), all(word("all"), word("w")),
	all(word("w3"), word("rare")), all(word("w3"), word("w4")), all(word("w"), titled("title 2")),
	anyOf(word("w7"), titled("title 1"),
		selection{docstore.ID("10002"), func(n *note) bool { return n.ID == "10002" }}),
	all(word("all"), anyOf(titled("title 3"), word("w5"))), titled("title 4"), titled("title"),
	inTitle("e 4"), inTitle("title"), all(word("w3"), inTitle("2")), all(word("all"), inTitle("1"), inTitle("e")),
	anyOf(word("w7"), inTitle("3")), everyNote,
}

var everyNote = selection{docstore.Filter{}, func(*note) bool { return true }}

// searchRun changes documents at random and compares searches with models.
type searchRun struct {
	*fixture
	r      *rand.Rand
	serial int // number of notes made
}

func (s *searchRun) add(ctx context.Context, tx *docstore.Tx, m model) error {
	n := newNote(s.serial)
	n.Words = append(n.Words, fmt.Sprint("w", s.r.IntN(10)))
	s.serial++
	if _, err := notes.Insert(ctx, tx, n); err != nil {
		return err
	}
	m[n.ID] = n
	return nil
}

// search compares a random search, by number and then by token, with the model.
func (s *searchRun) search(t *testing.T, ctx context.Context, in docstore.Reader, m model) {
	t.Helper()
	selected, sort := selections[s.r.IntN(len(selections))], sorts[s.r.IntN(len(sorts))]
	if s.r.IntN(8) == 0 {
		selected = all(selected, since(int64(s.r.IntN(2))<<60))
	}
	want := m.page(selected, sort)
	q := docstore.Query{Filter: selected.filter, Sort: sort, Limit: 1 + s.r.IntN(30), Count: s.r.IntN(4) > 0}
	if s.r.IntN(2) == 0 {
		q.Offset = s.r.IntN(len(want) + 2)
	}
	if s.r.IntN(8) == 0 {
		n, err := notes.Count(ctx, in, selected.filter)
		require.NoError(t, err)
		require.EqualValues(t, len(want), n)
	}
	page, err := notes.Page(ctx, in, q)
	require.NoError(t, err)
	require.Equal(t, cutOut(want, q.Offset, q.Limit), idsOf(page), "%+v", q)
	if q.Count {
		require.EqualValues(t, len(want), page.Total, "%+v", q)
	}
	if from := q.Offset + q.Limit; page.Next != "" {
		q.After, q.Offset = page.Next, 0
		page, err = notes.Page(ctx, in, q)
		require.NoError(t, err)
		require.Equal(t, cutOut(want, from, q.Limit), idsOf(page), "%+v", q)
	}
}

// change adds, deletes or changes one document.
func (s *searchRun) change(ctx context.Context, tx *docstore.Tx, m model) error {
	ids := m.page(everyNote, nil)
	if s.r.IntN(3) == 0 || len(ids) == 0 {
		return s.add(ctx, tx, m)
	}
	n, err := notes.Load(ctx, tx, ids[s.r.IntN(len(ids))])
	if err != nil {
		return err
	}
	switch s.r.IntN(4) {
	case 0:
		delete(m, n.ID)
		_, err = notes.Delete(ctx, tx, n)
		return err
	case 1:
		n.Title = fmt.Sprint("title ", s.r.IntN(7))
	case 2:
		n.Words = []string{"all", fmt.Sprint("w", s.r.IntN(10))}[s.r.IntN(2):]
	case 3:
		n.Code += "x"
	}
	m[n.ID] = n
	_, err = notes.Replace(ctx, tx, n)
	return err
}

// transact changes a few documents and searches among them, in a transaction that may be undone. It returns the model
// of the documents afterwards.
func (s *searchRun) transact(t *testing.T, ctx context.Context, m model) model {
	t.Helper()
	next, keep, undo := maps.Clone(m), s.r.IntN(3) > 0, errors.New("undo")
	err := docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		for range 1 + s.r.IntN(3) {
			if err := s.change(ctx, tx, next); err != nil {
				return err
			}
		}
		s.search(t, ctx, tx, next)
		if !keep {
			return undo
		}
		return nil
	})
	if !keep {
		require.ErrorIs(t, err, undo)
		return m
	}
	require.NoError(t, err)
	return next
}

// TestSearchesAreExact changes documents at random and compares searches with the simplest search in memory: by number
// and by token, at the beginning and far into the list, inside transactions and outside, for two tenants.
func TestSearchesAreExact(t *testing.T) {
	t.Parallel()
	for _, size := range []int{60, 2200} { // the first is sorted as a whole; the second is too large for that
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			s := &searchRun{fixture: open(t), r: rand.New(rand.NewPCG(uint64(size), 7))}
			tenants := []context.Context{tenant(t), request.With(t.Context(), request.Info{Tenant: "t2"})}
			models := []model{{}, {}}
			for i := range models {
				require.NoError(t, docstore.Do(tenants[i], s.Store, func(tx *docstore.Tx) error {
					for range size / (1 + 2*i) {
						if err := s.add(tenants[i], tx, models[i]); err != nil {
							return err
						}
					}
					return nil
				}))
			}
			for range 20 {
				i := s.r.IntN(2)
				models[i] = s.transact(t, tenants[i], models[i])
				for range 10 {
					i := s.r.IntN(2)
					s.search(t, tenants[i], s.Store, models[i])
				}
			}
			require.NoError(t, s.Check(t.Context()))
		})
	}
}

// TestSearchesAmongWriters: every transaction deletes a note of its writer and adds another, so that the totals never
// change. Each writer finds at once what it wrote.
func TestSearchesAmongWriters(t *testing.T) {
	t.Parallel()
	f, ctx := open(t), tenant(t)
	const writers, each, rounds = 4, 15, 40
	made := func(writer, n int) *note {
		return &note{
			Meta: docstore.Meta{ID: fmt.Sprintf("%d-%04d", writer, n)}, Title: fmt.Sprint(n % 5),
			Code:  fmt.Sprint(writer, "-", n),
			Words: []string{"all", fmt.Sprint("of", writer)},
		}
	}
	for w := range writers {
		for n := range each {
			require.NoError(t, f.insert(ctx, made(w, n)))
		}
	}
	search := func(s selection, q docstore.Query) (docstore.Page[note], error) {
		q.Filter, q.Limit, q.Count = s.filter, 7, true
		return notes.Page(ctx, f.Store, q)
	}
	var writing, reading sync.WaitGroup
	var done atomic.Bool
	for w := range writers {
		writing.Go(func() {
			for n := each; n < each+rounds; n++ {
				_, err := docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (int, error) {
					old, err := notes.Load(ctx, tx, made(w, n-each).ID)
					if err != nil {
						return 0, err
					}
					if _, err := notes.Delete(ctx, tx, old); err != nil {
						return 0, err
					}
					_, err = notes.Insert(ctx, tx, made(w, n))
					return 0, err
				})
				if err != nil {
					t.Error(err)
					return
				}
				for range 2 {
					page, err := search(word(fmt.Sprint("of", w)), docstore.Query{})
					if err != nil || page.Total != each || len(page.Docs) != 7 ||
						page.Docs[0].ID != made(w, n-each+1).ID {
						t.Error(n, err, page.Total, idsOf(page))
						return
					}
				}
			}
		})
	}
	for i := range 2 {
		reading.Go(func() { // makes commits in between that change no notes
			for !done.Load() {
				if _, err := f.engine.Reserve(ctx, "s", 1); err != nil {
					t.Error(err)
					return
				}
			}
		})
		reading.Go(func() {
			for r := rand.New(rand.NewPCG(1, uint64(i))); !done.Load(); {
				s, offset := word("all"), r.IntN(writers*each)
				if i == 1 {
					s = all(s, word("of"))
				}
				page, err := search(s, docstore.Query{Sort: sorts[r.IntN(len(sorts))], Offset: offset})
				if err != nil || page.Total != writers*each || len(page.Docs) != min(7, writers*each-offset) {
					t.Error(offset, err, page.Total, idsOf(page))
					return
				}
			}
		})
	}
	writing.Wait()
	done.Store(true)
	reading.Wait()
}
