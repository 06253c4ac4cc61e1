// Package docstoretest is the conformance suite of docstore engines: tests of what every docstore.Engine must do. The
// tests of an engine call Run. The package is for tests only.
package docstoretest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// Options say how a suite is run on an engine.
type Options struct {
	// SkipPhantoms is why a transaction of the engine does not notice documents that others add and that its queries
	// would have found. It is empty if one does.
	SkipPhantoms string

	// Reopen opens the data of a closed engine again.
	Reopen func(t *testing.T, closed docstore.Engine) docstore.Engine
}

// Factory makes an engine with new, empty data. The suite prepares and closes it.
type Factory func(t *testing.T) docstore.Engine

type testCase struct {
	name string
	run  func(*testing.T, *suite)
}

// Run runs every case as a parallel subtest, each with an engine of its own.
func Run(t *testing.T, factory Factory, opts Options) {
	t.Helper()
	s := &suite{factory: factory, Options: opts}
	for _, theme := range [][]testCase{
		keyCases, orderCases, pagingCases, filterCases, countCases, uniqueCases, writeCases, revisionCases, insideCases,
		transactionCases, concurrencyCases, assumeCases, absenceCases, messageCases, tenantCases, globalCases,
		contentCases, sealedCases, contextCases, reopenCases, modelCases, searchCases,
	} {
		for _, c := range theme {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, s)
			})
		}
	}
}

type suite struct {
	Options
	factory Factory
}

// fixture is a new store with the collection of Things.
type fixture struct {
	*docstore.Store
	engine docstore.Engine
	clock  *manualClock
	things *docstore.Collection[Thing]
}

func (s *suite) open(t *testing.T) *fixture {
	t.Helper()
	return openOn(t, s.factory(t), Things)
}

func openOn(t *testing.T, engine docstore.Engine, things *docstore.Collection[Thing]) *fixture {
	t.Helper()
	clk := &manualClock{now: epoch}
	store, err := docstore.Open(t.Context(), engine, clk, things.Def(), Parts.Def(), Safes.Def(), Clients.Def())
	require.NoError(t, err)
	require.NoError(t, store.SealWith(t.Context(), keyring))
	f := &fixture{Store: store, engine: engine, clock: clk, things: things}
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return f
}

// in returns a context of a tenant.
func in(t *testing.T, tenant string) context.Context {
	return request.With(t.Context(), request.Info{Tenant: tenant, Actor: "docstoretest"})
}

// insert adds documents in one transaction.
func (f *fixture) insert(t *testing.T, ctx context.Context, things ...*Thing) {
	t.Helper()
	require.NoError(t, f.tryInsert(ctx, things...))
}

func (f *fixture) tryInsert(ctx context.Context, things ...*Thing) error {
	return f.write(ctx, func(tx *docstore.Tx) error {
		for _, v := range things {
			// fn may run again, so it changes a copy.
			if _, err := f.things.Insert(ctx, tx, v.clone()); err != nil {
				return err
			}
		}
		return nil
	})
}

// change loads, changes and replaces one document.
func (f *fixture) change(ctx context.Context, id string, change func(*Thing)) error {
	return f.write(ctx, func(tx *docstore.Tx) error {
		v, err := f.things.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		change(v)
		_, err = f.things.Replace(ctx, tx, v)
		return err
	})
}

func (f *fixture) delete(ctx context.Context, id string) error {
	return f.write(ctx, func(tx *docstore.Tx) error {
		v, err := f.things.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		_, err = f.things.Delete(ctx, tx, v)
		return err
	})
}

func (f *fixture) write(ctx context.Context, fn func(*docstore.Tx) error) error {
	return docstore.Do(ctx, f.Store, fn)
}

func (f *fixture) append(ctx context.Context, messages ...docstore.Message) error {
	return f.write(ctx, func(tx *docstore.Tx) error {
		for _, m := range messages {
			if err := tx.Append(ctx, m); err != nil {
				return err
			}
		}
		return nil
	})
}

// page reads one page and returns the ids.
func (f *fixture) page(t *testing.T, ctx context.Context, q docstore.Query) ([]string, docstore.Page[Thing]) {
	t.Helper()
	page, err := f.things.Page(ctx, f.Store, q)
	require.NoError(t, err)
	ids := make([]string, len(page.Docs))
	for i := range page.Docs {
		ids[i] = page.Docs[i].ID
	}
	return ids, page
}

// ids lists the ids of all documents that a filter selects, in an order, and checks that Count agrees.
func (f *fixture) ids(t *testing.T, ctx context.Context, filter docstore.Filter, sort ...docstore.Order) []string {
	t.Helper()
	ids, page := f.page(t, ctx, docstore.Query{Filter: filter, Sort: sort, Limit: 1000, Count: true})
	require.EqualValues(t, len(ids), page.Total, "Count and Find disagree")
	return ids
}

func (f *fixture) get(t *testing.T, ctx context.Context, id string) *Thing {
	t.Helper()
	d, err := f.things.Find(ctx, f.Store, id)
	require.NoError(t, err)
	v, err := d.Value()
	require.NoError(t, err)
	return v
}

func (f *fixture) check(t *testing.T) {
	t.Helper()
	require.NoError(t, f.Check(t.Context()))
}

func asc(index string) docstore.Order  { return docstore.Order{Index: index} }
func desc(index string) docstore.Order { return docstore.Order{Index: index, Desc: true} }

var epoch = mustParse("2026-01-31T09:30:00.123Z")

func mustParse(s string) clock.Time {
	t, err := clock.Parse(s)
	if err != nil {
		panic(err)
	}
	return t
}
