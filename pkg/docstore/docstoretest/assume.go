package docstoretest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
)

var assumeCases = []testCase{
	{name: "assume/another version is refused", run: assumeOtherVersion},
	{name: "assume/nothing is added after the change", run: assumeRace},
}

// insertAssuming inserts a thing in a transaction that assumes another to be at a version.
func (f *fixture) insertAssuming(t *testing.T, of string, version int64, v *Thing) error {
	ctx := in(t, "t1")
	return f.write(ctx, func(tx *docstore.Tx) error {
		if err := f.things.ExpectVersion(ctx, tx, of, version); err != nil {
			return err
		}
		_, err := f.things.Insert(ctx, tx, v)
		return err
	})
}

func assumeOtherVersion(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("gate"))
	f.insert(t, in(t, "t2"), thing("other"))
	require.NoError(t, f.insertAssuming(t, "gate", 1, thing("a")))
	require.EqualValues(t, 1, f.get(t, ctx, "gate").Version, "it does not change")
	require.ErrorIs(t, f.insertAssuming(t, "gate", 2, thing("b")), docstore.ErrStale)
	require.ErrorIs(t, f.insertAssuming(t, "none", 1, thing("b")), docstore.ErrStale)
	require.ErrorIs(t, f.insertAssuming(t, "other", 1, thing("b")), docstore.ErrStale, "another tenant's")
	require.NoError(t, f.change(ctx, "gate", func(v *Thing) { v.Name = "x" }))
	require.ErrorIs(t, f.insertAssuming(t, "gate", 1, thing("b")), docstore.ErrStale)
	require.NoError(t, f.insertAssuming(t, "gate", 2, thing("b")))
	require.ErrorIs(t, f.write(ctx, func(tx *docstore.Tx) error { return f.things.ExpectVersion(ctx, tx, "gate", 1) }),
		docstore.ErrStale, "also if the transaction writes nothing")
	require.Equal(t, []string{"a", "b", "gate"}, f.ids(t, ctx, docstore.Filter{}))
	f.check(t)
}

// assumeRace: a change of the gate sees all things that were inserted by its former version.
func assumeRace(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("gate"))
	for version := int64(1); version <= 5; version++ {
		by := docstore.Eq("words", docstore.Text(fmt.Sprint("version ", version)))
		var begun, inserting sync.WaitGroup
		const inserters, each = 4, 20
		begun.Add(inserters)
		for i := range inserters {
			inserting.Go(func() {
				first := sync.OnceFunc(begun.Done)
				defer first()
				for n := range each {
					v := thing(fmt.Sprint(version, " ", i, " ", n), words(by.Values[0].Text))
					err := f.insertAssuming(t, "gate", version, v)
					if first(); err != nil {
						if !errors.Is(err, docstore.ErrStale) {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		begun.Wait()
		var seen []string
		require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
			gate, err := f.things.Load(ctx, tx, "gate")
			if err != nil {
				return err
			}
			found, err := f.things.LoadWhere(ctx, tx, by, "", 100_000)
			if err != nil {
				return err
			}
			seen = nil
			for _, v := range found {
				seen = append(seen, v.ID)
			}
			_, err = f.things.Touch(ctx, tx, gate)
			return err
		}))
		inserting.Wait()
		require.Equal(t, f.ids(t, ctx, by), seen)
		require.NotEmpty(t, seen)
	}
}
