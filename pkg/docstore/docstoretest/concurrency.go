package docstoretest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

var concurrencyCases = []testCase{
	{name: "concurrency/no update is lost", run: lostUpdates},
	{name: "concurrency/what is read ahead is depended on when it is loaded", run: readAhead},
	{name: "concurrency/no write skew", run: writeSkew},
	{name: "concurrency/transfers keep the sum", run: transfers},
	{name: "concurrency/one of two deletes succeeds", run: deleteRace},
	{name: "concurrency/counts", run: countsUnderConcurrency},
}

// lostUpdates checks that every acknowledged increment counts. A caller that is told of a conflict tries again.
func lostUpdates(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a"))
	const callers, each = 8, 10
	allOf(t, callers, func(int) error {
		for done := 0; done < each; {
			err := f.change(ctx, "a", func(v *Thing) { v.Rank++ })
			switch {
			case err == nil:
				done++
			case apperr.KindOf(err) != apperr.VersionMismatch:
				return err
			}
		}
		return nil
	})
	a := f.get(t, ctx, "a")
	require.EqualValues(t, callers*each, a.Rank)
	require.EqualValues(t, callers*each+1, a.Version)
}

// readAhead: no update is lost of documents that were read ahead, and they are as the transaction itself wrote them.
func readAhead(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a"), thing("b"))
	f.insert(t, in(t, "t2"), thing("other"))
	const callers, each = 4, 10
	allOf(t, callers, func(int) error {
		for done := 0; done < each; {
			err := f.write(ctx, func(tx *docstore.Tx) error {
				for _, id := range []string{"a", "b", "a"} {
					if err := f.things.ReadAhead(ctx, tx, "a", "b", "none", "other"); err != nil {
						return err
					}
					v, err := f.things.Load(ctx, tx, id)
					if err != nil {
						return err
					}
					v.Rank++
					if _, err := f.things.Replace(ctx, tx, v); err != nil {
						return err
					}
				}
				found, err := f.things.LoadMany(ctx, tx, []string{"none", "other"})
				if err == nil && len(found) > 0 {
					err = errStop
				}
				return err
			})
			switch {
			case err == nil:
				done++
			case apperr.KindOf(err) != apperr.VersionMismatch:
				return err
			}
		}
		return nil
	})
	require.EqualValues(t, 2*callers*each, f.get(t, ctx, "a").Rank)
	require.EqualValues(t, callers*each, f.get(t, ctx, "b").Rank)
}

// writeSkew: two doctors each go off call if the other is on call; one must stay.
func writeSkew(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	for round := range 20 {
		a, b := fmt.Sprint("a", round), fmt.Sprint("b", round)
		onCall := docstore.Eq("words", docstore.Text(fmt.Sprint("on call", round)))
		f.insert(t, ctx, thing(a, words(onCall.Values[0].Text)), thing(b, words(onCall.Values[0].Text)))
		errs := together(2, func(i int) error {
			return f.write(ctx, func(tx *docstore.Tx) error {
				n, err := f.things.Count(ctx, tx, onCall)
				if err != nil {
					return err
				}
				if n < 2 {
					return errStop
				}
				v, err := f.things.Load(ctx, tx, []string{a, b}[i])
				if err != nil {
					return err
				}
				v.Words = nil
				_, err = f.things.Replace(ctx, tx, v)
				return err
			})
		})
		for _, err := range errs {
			if err != nil && !errors.Is(err, errStop) {
				require.Equal(t, apperr.VersionMismatch, apperr.KindOf(err), "%v", err)
			}
		}
		require.NotEmpty(t, f.ids(t, ctx, onCall), "round %d", round)
	}
}

func transfers(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	const accounts, each = 4, 8
	for i := range accounts {
		f.insert(t, ctx, thing(docID(i), rank(100)))
	}
	allOf(t, accounts, func(i int) error {
		for n := range each {
			from, to := docID(i), docID((i+1+n%(accounts-1))%accounts)
			for {
				err := f.write(ctx, func(tx *docstore.Tx) error {
					a, err := f.things.Load(ctx, tx, from)
					if err != nil {
						return err
					}
					b, err := f.things.Load(ctx, tx, to)
					if err != nil {
						return err
					}
					a.Rank, b.Rank = a.Rank-1, b.Rank+1
					if _, err := f.things.Replace(ctx, tx, a); err != nil {
						return err
					}
					_, err = f.things.Replace(ctx, tx, b)
					return err
				})
				if err == nil {
					break
				}
				if apperr.KindOf(err) != apperr.VersionMismatch {
					return err
				}
			}
		}
		return nil
	})
	var sum, versions int64
	for i := range accounts {
		v := f.get(t, ctx, docID(i))
		sum, versions = sum+v.Rank, versions+v.Version-1
	}
	require.EqualValues(t, accounts*100, sum)
	require.EqualValues(t, accounts*each*2, versions)
}

func deleteRace(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	for round := range 5 {
		id := docID(round)
		f.insert(t, ctx, thing(id))
		won := 0
		for _, err := range together(8, func(int) error { return f.delete(ctx, id) }) {
			if err == nil {
				won++
				continue
			}
			require.Contains(t, []apperr.Kind{apperr.NotFound, apperr.VersionMismatch}, apperr.KindOf(err), "%v", err)
		}
		require.Equal(t, 1, won)
	}
	require.Empty(t, f.ids(t, ctx, docstore.Filter{}))
}

func countsUnderConcurrency(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	const callers, each = 8, 10
	allOf(t, callers, func(i int) error {
		for n := range each {
			id := docID(i*each + n)
			if err := f.tryInsert(ctx, thing(id, words("w"))); err != nil {
				return err
			}
			if n%2 == 1 {
				if err := f.delete(ctx, id); err != nil {
					return err
				}
			}
		}
		return nil
	})
	require.Len(t, f.ids(t, ctx, docstore.Filter{}), callers*each/2)
	require.Len(t, f.ids(t, ctx, docstore.Eq("words", docstore.Text("w"))), callers*each/2)
	f.check(t)
}
