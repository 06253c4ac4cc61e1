package docstoretest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

var modelCases = []testCase{
	{name: "model/random operations", run: randomOperations},
}

// keyOf and listOf compute the indexes of Things a second time, by name.
func keyOf(v *Thing, index string) docstore.Value {
	switch index {
	case "name":
		return docstore.Text(v.Name)
	case "code":
		return docstore.Text(v.Code)
	case "kind", "group":
		return docstore.Text(v.Kind)
	case "rank":
		return docstore.Number(v.Rank)
	case "seen":
		return docstore.Moment(v.Seen)
	}
	panic("no such index: " + index)
}

func listOf(v *Thing, index string) []string {
	list := map[string][]string{"words": v.Words, "logins": v.Logins}[index]
	list = slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" })
	slices.Sort(list)
	return slices.Compact(list)
}

// matches reports whether a filter selects a document, in the simplest way.
func matches(f docstore.Filter, v *Thing) bool {
	values := func() []docstore.Value {
		if f.Index != "words" && f.Index != "logins" {
			return []docstore.Value{keyOf(v, f.Index)}
		}
		var vs []docstore.Value
		for _, s := range listOf(v, f.Index) {
			vs = append(vs, docstore.Text(s))
		}
		return vs
	}
	switch f.Op {
	case docstore.OpAll:
		return true
	case docstore.OpID:
		return slices.Contains(f.IDs, v.ID)
	case docstore.OpIn:
		return slices.ContainsFunc(values(), func(x docstore.Value) bool { return slices.Contains(f.Values, x) })
	case docstore.OpPrefix:
		return slices.ContainsFunc(values(), func(x docstore.Value) bool {
			return strings.HasPrefix(x.Text, f.Values[0].Text)
		})
	case docstore.OpContains:
		return strings.Contains(values()[0].Text, f.Values[0].Text)
	case docstore.OpRange:
		x := values()[0]
		return (f.From == nil || compareValues(x, *f.From) >= 0) && (f.To == nil || compareValues(x, *f.To) < 0)
	case docstore.OpAnd:
		return !slices.ContainsFunc(f.Sub, func(s docstore.Filter) bool { return !matches(s, v) })
	case docstore.OpOr:
		return slices.ContainsFunc(f.Sub, func(s docstore.Filter) bool { return matches(s, v) })
	}
	panic("no such operation")
}

// Tests that run at the same time share generators. One makes its text when a slice of it is first drawn, and others
// that draw from it read the text without a lock (rapid 1.3.0): so all texts are made before.
func init() {
	for _, shared := range []fmt.Stringer{someText, someTexts, someRank, someID, someThing, someName, someSearch} {
		_ = shared.String()
	}
}

var (
	someText  = rapid.SampledFrom([]string{"", "a", "A", "ab", "abc", "b", "京", "京都", "\U0010FFFF", "%", "a%"})
	someTexts = rapid.SliceOfN(someText, 0, 4)
	someRank  = rapid.Int64Range(-2, 3)
	someID    = rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"1", "2", "3", "10", "11", "100", "02", "-1", "0", "1000000000000000000", "a",
			"京"}).Draw(t, "id")
	})
	someThing = rapid.Custom(func(t *rapid.T) *Thing {
		v := thing("", name(someText.Draw(t, "name")), code(someText.Draw(t, "code")), kind(someText.Draw(t, "kind")),
			rank(someRank.Draw(t, "rank")), words(someTexts.Draw(t, "words")...),
			logins(rapid.SliceOfN(someText, 0, 1).Draw(t, "logins")...))
		if rapid.Bool().Draw(t, "seen") {
			v.Seen = epoch
		}
		return v
	})
)

func someFilter(depth int) *rapid.Generator[docstore.Filter] {
	return rapid.Custom(func(t *rapid.T) docstore.Filter {
		ops := 8
		if depth > 0 {
			ops = 10
		}
		textIndex := rapid.SampledFrom([]string{"name", "code", "kind", "group", "words", "logins"})
		switch rapid.IntRange(0, ops).Draw(t, "op") {
		case 0:
			return docstore.Filter{}
		case 1:
			return docstore.ID(rapid.SliceOfN(someID, 0, 3).Draw(t, "ids")...)
		case 2:
			f := docstore.Filter{Op: docstore.OpIn, Index: textIndex.Draw(t, "index")}
			for _, s := range someTexts.Draw(t, "values") {
				f.Values = append(f.Values, docstore.Text(s))
			}
			return f
		case 3:
			return docstore.Prefix(textIndex.Draw(t, "index"), someText.Draw(t, "prefix"))
		case 4:
			f := docstore.Filter{Op: docstore.OpRange, Index: "rank"}
			if rapid.Bool().Draw(t, "from") {
				v := docstore.Number(someRank.Draw(t, "from"))
				f.From = &v
			}
			if rapid.Bool().Draw(t, "to") {
				v := docstore.Number(someRank.Draw(t, "to"))
				f.To = &v
			}
			return f
		case 5:
			return docstore.From("name", docstore.Text(someText.Draw(t, "from")))
		case 6:
			return docstore.Contains(rapid.SampledFrom([]string{"name", "code", "kind"}).Draw(t, "index"),
				someText.Draw(t, "part"))
		case 7:
			from := someRank.Draw(t, "from")
			return docstore.Outside("rank", docstore.Number(from),
				docstore.Number(from+rapid.Int64Range(0, 2).Draw(t, "width")))
		case 8: // a filter by the facet or by groups
			index := rapid.SampledFrom([]string{"kind", "group"}).Draw(t, "index")
			f := docstore.Filter{Op: docstore.OpIn, Index: index}
			for _, s := range someTexts.Draw(t, "values") {
				f.Values = append(f.Values, docstore.Text(s))
			}
			return f
		case 9:
			return docstore.And(rapid.SliceOfN(someFilter(depth-1), 0, 3).Draw(t, "and")...)
		default:
			return docstore.Or(rapid.SliceOfN(someFilter(depth-1), 0, 3).Draw(t, "or")...)
		}
	})
}

// model holds the documents that a tenant should have.
type model map[string]*Thing

func (m model) clone() model {
	c := model{}
	for id, v := range m {
		c[id] = v.clone()
	}
	return c
}

// put stores v. If a unique value of it is taken, it reports that and stores nothing.
func (m model) put(v *Thing) (taken bool) {
	for id, other := range m {
		if id == v.ID {
			continue
		}
		if v.Code != "" && other.Code == v.Code {
			return true
		}
		for _, s := range listOf(v, "logins") {
			if slices.Contains(other.Logins, s) {
				return true
			}
		}
	}
	m[v.ID] = v.clone()
	return false
}

func (m model) selected(f docstore.Filter) []*Thing {
	var list []*Thing
	for _, v := range m {
		if matches(f, v) {
			list = append(list, v)
		}
	}
	return list
}

// checkTotal returns an error if a Total that is exact up to exactTo does not fit the number of documents.
func checkTotal(total docstore.Total, exactTo, actual int64) error {
	switch {
	case !total.More && total.N != actual:
		return fmt.Errorf("counted %d, there are %d", total.N, actual)
	case total.More && (total.N < exactTo || total.N >= actual):
		return fmt.Errorf("counted more than %d, there are %d; the total must be exact up to %d", total.N, actual,
			exactTo)
	}
	return nil
}

// randomOperations runs random transactions and queries against the engine and the model. Each run of rapid is a
// tenant.
func randomOperations(t *testing.T, s *suite) {
	f := s.open(t)
	var tenants atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		ctx := request.With(t.Context(), request.Info{Tenant: fmt.Sprint("tenant", tenants.Add(1))})
		r := &modelRun{f: f, ctx: ctx, model: model{}}
		rt.Repeat(map[string]func(*rapid.T){
			"write":        r.write,
			"delete where": r.deleteWhere,
			"":             func(rt *rapid.T) { r.query(rt); r.count(rt) },
		})
	})
	f.check(t)
}

// modelRun is one tenant, in the engine and in the model.
type modelRun struct {
	f     *fixture
	ctx   context.Context
	model model
}

// step is a write of one document: "put" inserts or replaces it, "delete" deletes it if it exists.
type step struct {
	op    string
	thing *Thing
}

func someSteps(rt *rapid.T) []step {
	var steps []step
	for range rapid.IntRange(1, 4).Draw(rt, "steps") {
		v := someThing.Draw(rt, "thing")
		v.ID = someID.Draw(rt, "id")
		steps = append(steps, step{rapid.SampledFrom([]string{"put", "put", "delete"}).Draw(rt, "op"), v})
	}
	return steps
}

// write runs a transaction of a few steps, which may fail on purpose or because a unique value is taken.
func (r *modelRun) write(rt *rapid.T) {
	next, fail, steps := r.model.clone(), rapid.IntRange(0, 9).Draw(rt, "fail") == 0, someSteps(rt)
	duplicate := false
	for _, st := range steps {
		if st.op == "delete" {
			delete(next, st.thing.ID)
		} else if duplicate = next.put(st.thing); duplicate {
			break
		}
	}
	err := r.f.write(r.ctx, func(tx *docstore.Tx) error {
		for _, st := range steps {
			if err := r.f.step(r.ctx, tx, st); err != nil {
				return err
			}
		}
		if fail {
			return errStop
		}
		return nil
	})
	var dup *docstore.DuplicateError
	switch {
	case duplicate: // an engine that notices it only at the end meets the error on purpose first
		if !errors.As(err, &dup) && (!fail || !errors.Is(err, errStop)) {
			rt.Fatalf("a taken value was accepted: %v", err)
		}
	case fail:
		if !errors.Is(err, errStop) {
			rt.Fatal(err)
		}
	case err != nil:
		rt.Fatal(err)
	default:
		r.model = next
	}
}

// step writes one document of a modelRun.
func (f *fixture) step(ctx context.Context, tx *docstore.Tx, st step) error {
	docs, err := f.things.FindMany(ctx, tx, []string{st.thing.ID})
	if err != nil {
		return err
	}
	v := st.thing.clone()
	if len(docs) == 0 {
		if st.op == "put" {
			_, err = f.things.Insert(ctx, tx, v)
		}
		return err
	}
	old, err := f.things.Load(ctx, tx, v.ID)
	if err != nil {
		return err
	}
	if st.op == "delete" {
		_, err = f.things.Delete(ctx, tx, old)
		return err
	}
	v.Meta = old.Meta
	_, err = f.things.Replace(ctx, tx, v)
	return err
}

func (r *modelRun) deleteWhere(rt *rapid.T) {
	filter := someFilter(1).Draw(rt, "filter")
	if err := r.f.write(r.ctx, func(tx *docstore.Tx) error {
		return r.f.things.DeleteWhere(r.ctx, tx, filter, nil)
	}); err != nil {
		rt.Fatal(err)
	}
	for _, v := range r.model.selected(filter) {
		delete(r.model, v.ID)
	}
}

// query reads a list page by page, by token, and compares it with the model.
func (r *modelRun) query(rt *rapid.T) {
	filter := someFilter(2).Draw(rt, "filter")
	sort := rapid.SampledFrom(mixedOrders).Draw(rt, "sort")
	want := sortedIDs(r.model.selected(filter), sort)
	q := docstore.Query{Filter: filter, Sort: sort, Limit: rapid.IntRange(1, 5).Draw(rt, "limit"), Count: true}
	got := []string{}
	for {
		page, err := r.f.things.Page(r.ctx, r.f.Store, q)
		if err != nil {
			rt.Fatal(err)
		}
		if page.Total != int64(len(want)) {
			rt.Fatalf("total %d, want %d", page.Total, len(want))
		}
		for i := range page.Docs {
			got = append(got, page.Docs[i].ID)
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if !slices.Equal(want, got) {
		rt.Fatalf("got %v, want %v", got, want)
	}
}

// count asks the engine for a page by number and for a bounded total, and compares both with the model.
func (r *modelRun) count(rt *rapid.T) {
	filter := someFilter(2).Draw(rt, "filter")
	sort := rapid.SampledFrom(mixedOrders).Draw(rt, "sort")
	exactTo, skip := rapid.Int64Range(1, 5).Draw(rt, "exact to"), rapid.IntRange(0, 5).Draw(rt, "skip")
	want := sortedIDs(r.model.selected(filter), sort)
	rows, total, err := r.f.engine.Page(r.ctx, r.f.things.Def(), request.Tenant(r.ctx),
		docstore.Find{Filter: filter, Sort: sort, Limit: 3, Offset: skip}, exactTo)
	if err != nil {
		rt.Fatal(err)
	}
	if err := checkTotal(total, exactTo, int64(len(want))); err != nil {
		rt.Fatal(err)
	}
	want = want[min(skip, len(want)):]
	got := []string{}
	for _, row := range rows {
		got = append(got, row.ID)
	}
	if !slices.Equal(want[:min(3, len(want))], got) {
		rt.Fatalf("got %v after %d, want the first of %v", got, skip, want)
	}
}
