package docstoretest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

var revisionCases = []testCase{
	{name: "revisions/counts make no version", run: counts},
	{name: "revisions/counts do not change what If-Match expects", run: countsAndIfMatch},
	{name: "revisions/a recount is written without a comparison", run: recount},
	{name: "revisions/counts by many callers", run: countsTogether},
	{name: "revisions/a write without a change", run: revise},
	{name: "revisions/a stale stamp", run: staleStamp},
	{name: "revisions/kept when opened again", run: countsKept},
	{name: "revisions/a type with other members than before", run: otherMembers},
	{name: "revisions/a clock is set back", run: clockSetBack},
}

// edit loads, changes and stores one document, and returns the result.
func (f *fixture) edit(t *testing.T, id string, change func(*Thing)) docstore.Doc[Thing] {
	t.Helper()
	ctx := in(t, "t1")
	d, err := docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (docstore.Doc[Thing], error) {
		v, err := f.things.Load(ctx, tx, id)
		if err != nil {
			return docstore.Doc[Thing]{}, err
		}
		change(v)
		return f.things.Replace(ctx, tx, v)
	})
	require.NoError(t, err)
	return d
}

// requireStamp checks what every kind of read returns for document a.
func (f *fixture) requireStamp(t *testing.T, version, counts int64, tag string) {
	t.Helper()
	ctx := in(t, "t1")
	found, err := f.things.Find(ctx, f.Store, "a")
	require.NoError(t, err)
	_, page := f.page(t, ctx, docstore.Query{Filter: docstore.Eq("words", docstore.Text("w")), Limit: 1})
	for _, d := range []docstore.Doc[Thing]{found, page.Docs[0]} {
		require.Equal(t, docstore.Stamp{Version: version, Counts: counts}, d.Stamp)
		require.Equal(t, version+counts, d.Revision())
		body, stored, err := d.Stored()
		require.NoError(t, err)
		require.Equal(t, tag, stored)
		var members map[string]any
		require.NoError(t, json.Unmarshal(body, &members))
		require.EqualValues(t, version, members["version"])
		require.NotContains(t, members, "counts")
	}
}

func counts(t *testing.T, s *suite) {
	f := s.open(t)
	f.insert(t, in(t, "t1"), thing("a", words("w")))
	f.requireStamp(t, 1, 0, "1-0")

	f.clock.advance(time.Minute)
	d := f.edit(t, "a", func(v *Thing) { v.Count++ })
	require.True(t, d.Changed())
	require.True(t, d.Written())
	f.requireStamp(t, 1, 1, "1-1")
	require.Equal(t, epoch, f.get(t, in(t, "t1"), "a").TimeModified)

	d = f.edit(t, "a", func(v *Thing) { v.Name = "n" })
	require.Equal(t, docstore.Stamp{Version: 2, Counts: 1}, d.Stamp)
	f.requireStamp(t, 2, 1, "2-1")
	require.Equal(t, f.Now(), f.get(t, in(t, "t1"), "a").TimeModified)

	f.edit(t, "a", func(v *Thing) { v.Count, v.Name = v.Count+1, "m" })
	f.requireStamp(t, 3, 1, "3-1")
	require.EqualValues(t, 2, f.get(t, in(t, "t1"), "a").Count)

	twice, err := docstore.Write(in(t, "t1"), f.Store, func(tx *docstore.Tx) (docstore.Doc[Thing], error) {
		v, err := f.things.Load(in(t, "t1"), tx, "a")
		if err != nil {
			return docstore.Doc[Thing]{}, err
		}
		v.Name = "o"
		if _, err := f.things.Replace(in(t, "t1"), tx, v); err != nil {
			return docstore.Doc[Thing]{}, err
		}
		v.Count--
		return f.things.Replace(in(t, "t1"), tx, v)
	})
	require.NoError(t, err)
	require.Equal(t, docstore.Stamp{Version: 4, Counts: 2}, twice.Stamp)
	f.requireStamp(t, 4, 2, "4-2")
	f.check(t)
}

// recount writes at the same version whatever has changed, without looking.
func recount(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", words("w")))
	f.clock.advance(time.Minute)
	d, err := docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (docstore.Doc[Thing], error) {
		v, err := f.things.Load(ctx, tx, "a")
		if err != nil {
			return docstore.Doc[Thing]{}, err
		}
		v.Count = 7
		return f.things.Recount(ctx, tx, v)
	})
	require.NoError(t, err)
	require.True(t, d.Changed())
	require.True(t, d.Written())
	require.Nil(t, d.Previous())
	f.requireStamp(t, 1, 1, "1-1")
	require.EqualValues(t, 7, f.get(t, ctx, "a").Count)
	require.Equal(t, epoch, f.get(t, ctx, "a").TimeModified)
	f.check(t)
}

func countsAndIfMatch(t *testing.T, s *suite) {
	f := s.open(t)
	f.insert(t, in(t, "t1"), thing("a", words("w")))
	f.edit(t, "a", func(v *Thing) { v.Count++ })
	ctx := docstore.WithExpected(in(t, "t1"), "a", func(version int64) bool { return version == 1 })
	require.NoError(t, f.change(ctx, "a", func(v *Thing) { v.Name = "n" }))
	require.Equal(t, apperr.VersionMismatch, apperr.KindOf(f.change(ctx, "a", func(v *Thing) { v.Name = "m" })))
}

func countsTogether(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", words("w")))
	const callers, each = 6, 5
	allOf(t, callers, func(int) error {
		for done := 0; done < each; {
			switch err := f.change(ctx, "a", func(v *Thing) { v.Count++ }); {
			case err == nil:
				done++
			case apperr.KindOf(err) != apperr.VersionMismatch:
				return err
			}
		}
		return nil
	})
	require.EqualValues(t, callers*each, f.get(t, ctx, "a").Count)
	f.requireStamp(t, 1, callers*each, "1-30")
}

func revise(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", words("w")))
	f.clock.advance(time.Minute)
	var revised, deleted docstore.Doc[Thing]
	require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
		v, err := f.things.Load(ctx, tx, "a")
		if err != nil {
			return err
		}
		revised, err = f.things.Revise(ctx, tx, v)
		return err
	}))
	require.False(t, revised.Changed())
	require.True(t, revised.Written())
	require.Nil(t, revised.Previous())
	require.EqualValues(t, 2, revised.Revision())
	f.requireStamp(t, 1, 1, "1-1")
	require.Equal(t, epoch, f.get(t, ctx, "a").TimeModified)

	require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
		v, err := f.things.Load(ctx, tx, "a")
		if err != nil {
			return err
		}
		deleted, err = f.things.Delete(ctx, tx, v)
		return err
	}))
	require.EqualValues(t, 3, deleted.Revision(), "the removal is a revision")
	require.EqualValues(t, 1, deleted.Version)
	require.True(t, deleted.Written())

	f.insert(t, ctx, thing("b"))
	require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
		return f.things.DeleteWhere(ctx, tx, docstore.ID("b"), func(d docstore.Doc[Thing]) error {
			deleted = d
			return nil
		})
	}))
	require.EqualValues(t, 2, deleted.Revision())
	require.True(t, deleted.Written())
}

func staleStamp(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", words("w")))
	f.edit(t, "a", func(v *Thing) { v.Count++ })
	for _, counts := range []int64{0, 2} {
		err := f.engine.Write(ctx, func(tx docstore.EngineTx) error {
			return tx.Delete(ctx, f.things.Def(), "t1", "a", docstore.Stamp{Version: 1, Counts: counts})
		})
		var stale *docstore.VersionError
		require.ErrorAs(t, err, &stale)
		require.EqualValues(t, 1, stale.Current)
	}
	err := f.write(ctx, func(tx *docstore.Tx) error {
		one, err := f.things.Load(ctx, tx, "a")
		if err != nil {
			return err
		}
		two, err := f.things.Load(ctx, tx, "a")
		if err != nil {
			return err
		}
		one.Count, two.Name = 7, "n"
		if _, err := f.things.Replace(ctx, tx, one); err != nil {
			return err
		}
		_, err = f.things.Replace(ctx, tx, two)
		return err
	})
	require.Equal(t, apperr.VersionMismatch, apperr.KindOf(err), "it would undo the count")
}

func countsKept(t *testing.T, s *suite) {
	f := s.first(t)
	f.insert(t, in(t, "t1"), thing("a", words("w"), name("N")))
	f.edit(t, "a", func(v *Thing) { v.Count = 3 })
	f.edit(t, "a", func(v *Thing) { v.Name = "M" })
	f = s.again(t, f, Things)
	f.requireStamp(t, 2, 1, "2-1")
	require.NoError(t, f.Close())
	// this makes all entries again
	f = openOn(t, s.Reopen(t, f.engine), docstore.Define(thingSchema(2, thingIndexes...)))
	f.requireStamp(t, 2, 1, "2-1")
	f.edit(t, "a", func(v *Thing) { v.Count++ })
	f.requireStamp(t, 2, 2, "2-2")
	f.check(t)
}

// otherMembers: a document was stored when its type had one member less, and one that it no longer has.
func otherMembers(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	then := struct {
		docstore.Meta
		Former string   `json:"former"`
		Name   string   `json:"name"`
		Words  []string `json:"words"`
	}{docstore.Meta{ID: "a", TenantID: "t1", Version: 1, TimeCreated: epoch, TimeModified: epoch}, "f", "n",
		[]string{"w"}}
	e := entryOf(t, f, thing("a", name("n"), words("w")))
	e.Tenant, e.Version, e.Doc = "t1", 1, &then
	var err error
	e.JSON, err = json.Marshal(&then)
	require.NoError(t, err)
	require.NoError(t, f.engine.Write(ctx, func(tx docstore.EngineTx) error {
		return tx.Insert(ctx, f.things.Def(), e)
	}))

	same := f.edit(t, "a", func(*Thing) {})
	require.False(t, same.Changed())
	require.False(t, same.Written())
	require.Nil(t, same.Previous())
	f.requireStamp(t, 1, 0, "1-0")

	f.edit(t, "a", func(v *Thing) { v.Count++ })
	f.requireStamp(t, 1, 1, "1-1")

	changed := f.edit(t, "a", func(v *Thing) { v.Name = "m" })
	f.requireStamp(t, 2, 1, "2-1")
	require.Equal(t, map[string]json.RawMessage{"name": json.RawMessage(`"n"`)}, changed.Previous())
}

func clockSetBack(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", words("w")))
	f.clock.advance(-time.Hour)
	f.edit(t, "a", func(v *Thing) { v.Name = "1" })
	a := f.get(t, ctx, "a")
	require.Equal(t, epoch, a.TimeModified, "not before it was created")
	f.clock.advance(3 * time.Hour)
	f.edit(t, "a", func(v *Thing) { v.Name = "2" })
	latest := f.get(t, ctx, "a").TimeModified
	require.Equal(t, epoch.Add(2*time.Hour), latest)
	f.clock.advance(-time.Hour)
	f.edit(t, "a", func(v *Thing) { v.Name = "3" })
	require.Equal(t, latest, f.get(t, ctx, "a").TimeModified, "nor before the previous version")
}
