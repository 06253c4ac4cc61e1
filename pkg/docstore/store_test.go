package docstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
)

// What every engine must do is tested in docstoretest. These are tests of the typed layer.

func TestMain(m *testing.M) { leaks.Main(m) }

// ticket is open until a certain time, and then closed.
type ticket struct {
	docstore.Meta
	Title string     `json:"title"`
	Note  string     `json:"note,omitempty"`
	Tags  []string   `json:"tags"`
	Until clock.Time `json:"until"`
	Open  bool       `json:"open"`
}

var tickets = docstore.Define(docstore.Schema[ticket]{
	Name: "tickets", Noun: "ticket",
	Indexes: []docstore.Index[ticket]{
		docstore.ByText("title", func(v *ticket) string { return v.Title }),
		docstore.ByText("open", func(v *ticket) string { return strconv.FormatBool(v.Open) }),
	},
	Due: func(v *ticket) clock.Time {
		if !v.Open {
			return clock.Time{}
		}
		return v.Until
	},
	ApplyDue: func(v *ticket, now clock.Time) { v.Open, v.Note = false, "closed at "+now.String() },
})

// attachment belongs to the ticket with the same id.
type attachment struct {
	docstore.Meta
	Name string `json:"name"`
}

var attachments = docstore.Define(docstore.Schema[attachment]{Name: "attachments", Noun: "attachment", NoIfMatch: true})

// manualClock stands still until a test moves it.
type manualClock struct{ millis atomic.Int64 }

func (c *manualClock) Now() clock.Time { return clock.FromMillis(c.millis.Load()) }

type fixture struct {
	*docstore.Store
	clock  *manualClock
	engine docstore.Engine
}

func open(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{clock: &manualClock{}}
	f.clock.millis.Store(1_769_851_800_000) // 2026-01-31T09:30:00Z
	var err error
	f.engine, err = sqlitestore.Open(t.Context(), sqlitestore.Options{Path: filepath.Join(t.TempDir(), "test.db")})
	require.NoError(t, err)
	f.Store, err = docstore.Open(t.Context(), f.engine, f.clock, tickets.Def(), attachments.Def())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func acme(t *testing.T) context.Context {
	return request.With(t.Context(), request.Info{Tenant: "acme"})
}

func (f *fixture) insert(ctx context.Context, v ticket) (docstore.Doc[ticket], error) {
	return docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (docstore.Doc[ticket], error) {
		v := v
		return tickets.Insert(ctx, tx, &v)
	})
}

func (f *fixture) change(ctx context.Context, id string, change func(*ticket)) (docstore.Doc[ticket], error) {
	return docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (docstore.Doc[ticket], error) {
		v, err := tickets.Load(ctx, tx, id)
		if err != nil {
			return docstore.Doc[ticket]{}, err
		}
		change(v)
		return tickets.Replace(ctx, tx, v)
	})
}

func TestReadsApplyWhatIsDueAndStoreNothing(t *testing.T) {
	t.Parallel()
	f, ctx := open(t), acme(t)
	_, err := f.insert(ctx, ticket{Meta: docstore.Meta{ID: "1"}, Title: "a", Open: true, Until: f.Now().
		Add(time.Second)})
	require.NoError(t, err)
	reads := map[string]func() (docstore.Doc[ticket], error){
		"find": func() (docstore.Doc[ticket], error) { return tickets.Find(ctx, f.Store, "1") },
		"first": func() (docstore.Doc[ticket], error) {
			return tickets.First(ctx, f.Store, docstore.Eq("title", docstore.Text("a")))
		},
		"page": func() (docstore.Doc[ticket], error) {
			page, err := tickets.Page(ctx, f.Store, docstore.Query{Limit: 1})
			return page.Docs[0], err
		},
		"each": func() (found docstore.Doc[ticket], err error) {
			err = tickets.Each(ctx, f.Store, docstore.Filter{}, func(d docstore.Doc[ticket]) error {
				found = d
				return nil
			})
			return found, err
		},
		"in a transaction": func() (docstore.Doc[ticket], error) {
			return docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (docstore.Doc[ticket], error) {
				return tickets.Find(ctx, tx, "1")
			})
		},
	}
	see := func(open bool) {
		t.Helper()
		for name, read := range reads {
			doc, err := read()
			require.NoError(t, err, name)
			body, err := doc.JSON()
			require.NoError(t, err, name)
			v, err := doc.Value()
			require.NoError(t, err, name)
			require.Equal(t, open, v.Open, name)
			require.Contains(t, string(body), `"open":`+strconv.FormatBool(open), name)
			require.EqualValues(t, 1, doc.Version, name)
		}
	}
	f.clock.millis.Add(999)
	see(true)
	f.clock.millis.Add(1)
	see(false)
	n, err := tickets.Count(ctx, f.Store, docstore.Eq("open", docstore.Text("true")))
	require.NoError(t, err)
	require.EqualValues(t, 1, n, "only a write changes what is stored and indexed")

	doc, err := f.change(ctx, "1", func(v *ticket) {
		require.True(t, v.Open, "a load returns the document as stored")
		v.Open = false
	})
	require.NoError(t, err)
	require.EqualValues(t, 2, doc.Version)
	due, err := tickets.Due(ctx, f.Store, 10)
	require.NoError(t, err)
	require.Empty(t, due)
}

func TestWhatAWriteChanged(t *testing.T) {
	t.Parallel()
	f, ctx := open(t), acme(t)
	previous := func(d docstore.Doc[ticket]) string {
		members := d.Previous()
		if members == nil {
			return ""
		}
		body, err := json.Marshal(members)
		require.NoError(t, err)
		return string(body)
	}
	inserted, err := f.insert(ctx, ticket{Meta: docstore.Meta{ID: "1"}, Title: "<a&b>"})
	require.NoError(t, err)
	require.True(t, inserted.Changed())
	require.Empty(t, previous(inserted))

	f.clock.millis.Add(1000)
	same, err := f.change(ctx, "1", func(*ticket) {})
	require.NoError(t, err)
	require.False(t, same.Changed())
	require.EqualValues(t, 1, same.Version)
	require.Empty(t, previous(same))
	body, err := same.JSON()
	require.NoError(t, err)
	before, err := inserted.JSON()
	require.NoError(t, err)
	require.Equal(t, string(before), string(body))

	renamed, err := f.change(ctx, "1", func(v *ticket) { v.Title, v.Note = "b", "new" })
	require.NoError(t, err)
	require.True(t, renamed.Changed())
	require.Equal(t, `{"title":"\u003ca\u0026b\u003e"}`, previous(renamed), "the members as they were")
	body, err = renamed.JSON()
	require.NoError(t, err)
	found, err := tickets.Find(ctx, f.Store, "1")
	require.NoError(t, err)
	stored, err := found.JSON()
	require.NoError(t, err)
	require.Equal(t, string(stored), string(body), "what is written is what is read")

	touched, err := docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (docstore.Doc[ticket], error) {
		v, err := tickets.Load(ctx, tx, "1")
		require.NoError(t, err)
		return tickets.Touch(ctx, tx, v)
	})
	require.NoError(t, err)
	require.EqualValues(t, 3, touched.Version)
	require.True(t, touched.Changed())
	require.Equal(t, "{}", previous(touched))

	twice, err := docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (docstore.Doc[ticket], error) {
		v, err := tickets.Load(ctx, tx, "1")
		require.NoError(t, err)
		v.Title = "c"
		_, err = tickets.Replace(ctx, tx, v)
		require.NoError(t, err)
		v.Title = "d"
		return tickets.Replace(ctx, tx, v)
	})
	require.NoError(t, err)
	require.EqualValues(t, 5, twice.Version)
	require.Equal(t, `{"title":"c"}`, previous(twice), "by this write, not by the whole transaction")

	_, err = docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (docstore.Doc[ticket], error) {
		return tickets.Replace(ctx, tx, &ticket{Meta: docstore.Meta{ID: "1", Version: 5}})
	})
	require.ErrorContains(t, err, "was not loaded in this transaction")
}

func TestADeletedDocumentHasItsContent(t *testing.T) {
	t.Parallel()
	f, ctx := open(t), acme(t)
	_, err := f.insert(ctx, ticket{Meta: docstore.Meta{ID: "1"}, Title: "a"})
	require.NoError(t, err)
	doc, err := docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (docstore.Doc[ticket], error) {
		v, err := tickets.Load(ctx, tx, "1")
		require.NoError(t, err)
		return tickets.Delete(ctx, tx, v)
	})
	require.NoError(t, err)
	body, tag, err := doc.Stored()
	require.NoError(t, err)
	require.Contains(t, string(body), `"title":"a"`)
	require.Equal(t, "1", tag)
	require.EqualValues(t, 2, doc.Revision())
	require.True(t, doc.Written())
	require.True(t, doc.Changed())
	require.Nil(t, doc.Previous())
	_, err = tickets.Find(ctx, f.Store, "1")
	require.True(t, apperr.IsNotFound(err))
	require.EqualError(t, err, "not_found: no such ticket")
}

func TestIfMatchMeansTheRecordNotItsParts(t *testing.T) {
	t.Parallel()
	f, ctx := open(t), acme(t)
	for _, id := range []string{"1", "2"} {
		_, err := f.insert(ctx, ticket{Meta: docstore.Meta{ID: id}})
		require.NoError(t, err)
	}
	_, err := docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (docstore.Doc[attachment], error) {
		return attachments.Insert(ctx, tx, &attachment{Meta: docstore.Meta{ID: "1"}})
	})
	require.NoError(t, err)
	load := func(id string, version int64) error {
		ctx := docstore.WithExpected(ctx, "1", func(v int64) bool { return v == version })
		err := docstore.Do(ctx, f.Store, func(tx *docstore.Tx) error {
			if _, err := attachments.Load(ctx, tx, "1"); err != nil {
				return err
			}
			_, err := tickets.Load(ctx, tx, id)
			return err
		})
		return err
	}
	require.NoError(t, load("1", 1))
	require.NoError(t, load("2", 7), "it is for another record")
	require.Equal(t, apperr.VersionMismatch, apperr.KindOf(load("1", 7)))
}

// What a request expects of a record under another name holds for the record that the domain says it is.
func TestExpectFor(t *testing.T) {
	t.Parallel()
	f, ctx := open(t), acme(t)
	_, err := f.insert(ctx, ticket{Meta: docstore.Meta{ID: "1"}})
	require.NoError(t, err)
	load := func(version int64) error {
		ctx := docstore.WithExpected(ctx, "name", func(v int64) bool { return v == version })
		require.True(t, docstore.Expects(ctx, "name"))
		require.False(t, docstore.Expects(docstore.ExpectFor(ctx, "other", "1"), "1"))
		return docstore.Do(ctx, f.Store, func(tx *docstore.Tx) error {
			_, err := tickets.Load(docstore.ExpectFor(ctx, "name", "1"), tx, "1")
			return err
		})
	}
	require.NoError(t, load(1))
	require.Equal(t, apperr.VersionMismatch, apperr.KindOf(load(7)))
	require.False(t, docstore.Expects(ctx, "name"))
}

func TestHooksAndDryRuns(t *testing.T) {
	t.Parallel()
	f, ctx := open(t), acme(t)
	var results []any
	hooked := docstore.OnCommit(ctx, func(ctx context.Context, tx *docstore.Tx, result any) error {
		results = append(results, result)
		_, err := attachments.Insert(ctx, tx, &attachment{Meta: docstore.Meta{ID: strconv.Itoa(len(results))},
			Name: "by the hook"})
		return err
	})
	_, err := f.insert(hooked, ticket{Meta: docstore.Meta{ID: "1"}})
	require.NoError(t, err)
	require.Len(t, results, 1)
	require.IsType(t, docstore.Doc[ticket]{}, results[0])
	_, err = attachments.Find(ctx, f.Store, "1")
	require.NoError(t, err, "in the same transaction")

	_, err = f.insert(docstore.WithoutCommitHook(hooked), ticket{Meta: docstore.Meta{ID: "2"}})
	require.NoError(t, err)
	_, err = f.insert(hooked, ticket{Meta: docstore.Meta{ID: "2"}})
	require.Error(t, err)
	require.Len(t, results, 1, "not with WithoutCommitHook, and not for failed writes")

	failing := docstore.OnCommit(ctx, func(context.Context, *docstore.Tx, any) error { return errors.New("no") })
	doc, err := f.insert(failing, ticket{Meta: docstore.Meta{ID: "3"}})
	require.EqualError(t, err, "no")
	require.Zero(t, doc, "no result of an undone write")
	_, err = tickets.Find(ctx, f.Store, "3")
	require.True(t, apperr.IsNotFound(err))

	gone, leave := context.WithCancel(hooked)
	leave()
	_, err = f.insert(context.WithoutCancel(gone), ticket{Meta: docstore.Meta{ID: "5"}})
	require.NoError(t, err, "the hook gets the context of the Write")
	require.Len(t, results, 2)

	dry := docstore.WithDryRun(hooked)
	require.True(t, docstore.IsDryRun(dry))
	require.False(t, docstore.IsDryRun(hooked))
	doc, err = f.insert(dry, ticket{Meta: docstore.Meta{ID: "4"}, Title: "would be"})
	require.NoError(t, err)
	require.Equal(t, "4", doc.ID)
	require.Len(t, results, 2, "the hook does not run in a dry run")
	_, err = tickets.Find(ctx, f.Store, "4")
	require.True(t, apperr.IsNotFound(err))
	_, err = f.insert(dry, ticket{Meta: docstore.Meta{ID: "1"}})
	require.Error(t, err, "a dry run refuses what a write would refuse")
	err = docstore.Do(dry, f.Store, func(tx *docstore.Tx) error {
		return tx.Append(dry, docstore.Message{ID: "m", Subject: "s", Record: "r"})
	})
	require.NoError(t, err)
	backlog, err := f.Backlog(ctx)
	require.NoError(t, err)
	require.Zero(t, backlog)
	select {
	case <-f.Appended():
		t.Error("a dry run has nothing to relay")
	default:
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	f := open(t)
	replica, err := docstore.Open(t.Context(), f.engine, f.clock, tickets.Def(), attachments.Def())
	require.NoError(t, err)
	var mu sync.Mutex
	seen := map[string]bool{}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			store := []*docstore.Store{f.Store, replica}[i%2]
			for _, n := range []int{1, 0, 999, 2, 1500} {
				ids, err := store.NewIDs(t.Context(), n)
				if err != nil || len(ids) != n {
					t.Errorf("%d ids, %v", len(ids), err)
				}
				mu.Lock()
				for _, id := range ids {
					if seen[id] {
						t.Errorf("%s twice", id)
					}
					seen[id] = true
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.Len(t, seen, 8*2502)
	for id := range seen {
		n, err := strconv.ParseInt(id, 10, 64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, n, int64(1<<20))
		require.Len(t, id, 7, "so that they sort in the order in which they were made")
	}
	id, err := f.NewID(t.Context())
	require.NoError(t, err)
	require.False(t, seen[id])
}

// reserving is an engine whose sequence a test sets.
type reserving struct {
	docstore.Engine
	first int64
	err   error
}

func (r reserving) Reserve(context.Context, string, int64) (int64, error) { return r.first, r.err }

func TestIDsHaveAnEnd(t *testing.T) {
	t.Parallel()
	f := open(t)
	for name, c := range map[string]struct {
		engine reserving
		want   string
	}{
		"within": {reserving{f.engine, 1<<53 - 1<<20 - 1002, nil}, ""},
		"beyond": {reserving{f.engine, 1<<53 - 1<<20 - 1000, nil}, "no ids left"},
		"away":   {reserving{f.engine, 0, errors.New("away")}, "reserve ids: away"},
	} {
		store, err := docstore.Open(t.Context(), c.engine, f.clock, tickets.Def(), attachments.Def())
		require.NoError(t, err)
		ids, err := store.NewIDs(t.Context(), 1000)
		if c.want != "" {
			require.EqualError(t, err, c.want, name)
			continue
		}
		require.NoError(t, err)
		last, err := strconv.ParseInt(ids[999], 10, 64)
		require.NoError(t, err)
		require.Less(t, last, int64(1<<53))
	}
}

func TestDocumentsMustEmbedMeta(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() { docstore.Define(docstore.Schema[struct{ ID string }]{Name: "bare"}) })
	require.Panics(t, func() {
		docstore.Define(docstore.Schema[struct{ docstore.Meta }]{Name: "sorted", Sortable: []string{"no_index"}})
	})
}

func TestEachStopsAtTheFirstError(t *testing.T) {
	t.Parallel()
	f, ctx := open(t), acme(t)
	for _, id := range []string{"1", "2", "3"} {
		_, err := f.insert(ctx, ticket{Meta: docstore.Meta{ID: id}})
		require.NoError(t, err)
	}
	var seen []string
	enough := errors.New("enough")
	err := tickets.Each(ctx, f.Store, docstore.Filter{}, func(d docstore.Doc[ticket]) error {
		seen = append(seen, d.ID)
		if d.ID == "2" {
			return enough
		}
		return nil
	})
	require.ErrorIs(t, err, enough)
	require.Equal(t, []string{"1", "2"}, seen)
}
