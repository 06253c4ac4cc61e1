package docstoretest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// absenceCases are about write skew by absence: each of two transactions looks for what the other inserts, finds
// nothing, and inserts its own document. They write no document in common, but one of them must see the other's.
var absenceCases = []testCase{
	{name: "absence/of an id", run: absentID},
	{name: "absence/of some of many ids", run: absentIDs},
	{name: "absence/of a part's id", run: absentPart},
	{name: "absence/of a unique value", run: absentUnique},
	{name: "absence/of a unique value in a list", run: absentLogin},
	{name: "absence/of an id or a value, counted", run: absentCounted},
	{name: "absence/with a common document", run: absentWithFence},
	{name: "absence/of what a filter selects", run: absentByFilter},
	{name: "absence/many look at once", run: absentReaders},
}

const rounds = 20

var errFound = errors.New("the other transaction was first")

// skew runs a number of rounds. In each round two transactions run at the same time: each looks, and writes if look
// finds nothing.
func skew(t *testing.T, f *fixture,
	tries func(round, i int) (look func(*docstore.Tx) (bool, error), write func(*docstore.Tx) error)) {
	t.Helper()
	ctx := in(t, "t1")
	for round := range rounds {
		errs := together(2, func(i int) error {
			look, write := tries(round, i)
			return f.write(ctx, func(tx *docstore.Tx) error {
				found, err := look(tx)
				if err != nil {
					return err
				}
				if found {
					return errFound
				}
				return write(tx)
			})
		})
		done := 0
		for _, err := range errs {
			if err == nil {
				done++
				continue
			}
			require.ErrorIs(t, err, errFound, "round %d", round)
		}
		require.Equal(t, 1, done, "round %d: both looked, and neither saw the other", round)
	}
	f.check(t)
}

// skewByFind looks for the document of the other side, and inserts that of its own side.
func (f *fixture) skewByFind(t *testing.T, look func(tx *docstore.Tx, other *Thing) (bool, error)) {
	t.Helper()
	ctx := in(t, "t1")
	skew(t, f, func(round, i int) (func(*docstore.Tx) (bool, error), func(*docstore.Tx) error) {
		made := func(i int) *Thing {
			id := fmt.Sprint(round, "-", i)
			return thing(id, code("code-"+id), logins("a-"+id, "b-"+id), words(fmt.Sprint("round ", round)))
		}
		return func(tx *docstore.Tx) (bool, error) { return look(tx, made(1-i)) },
			func(tx *docstore.Tx) error { _, err := f.things.Insert(ctx, tx, made(i)); return err }
	})
}

func (f *fixture) finds(ctx context.Context, tx *docstore.Tx, id string) (bool, error) {
	_, err := f.things.Find(ctx, tx, id)
	return found(err)
}

// found turns NotFound into false.
func found(err error) (bool, error) {
	if apperr.KindOf(err) == apperr.NotFound {
		return false, nil
	}
	return err == nil, err
}

func absentID(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.skewByFind(t, func(tx *docstore.Tx, other *Thing) (bool, error) {
		_, err := f.things.Find(ctx, tx, other.ID)
		return found(err)
	})
}

func absentIDs(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("there"))
	f.skewByFind(t, func(tx *docstore.Tx, other *Thing) (bool, error) {
		loaded, err := f.things.LoadMany(ctx, tx, []string{"x" + other.ID, other.ID, "nowhere"})
		return len(loaded) > 0, err
	})
}

// absentPart: one side looks for a part and inserts a thing; the other looks for the thing and inserts the part. In
// organization, adding a member and deleting a user meet like this.
func absentPart(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	skew(t, f, func(round, i int) (func(*docstore.Tx) (bool, error), func(*docstore.Tx) error) {
		id := fmt.Sprint(round)
		if i == 0 {
			return func(tx *docstore.Tx) (bool, error) { _, err := Parts.Find(ctx, tx, id); return found(err) },
				func(tx *docstore.Tx) error { _, err := f.things.Insert(ctx, tx, thing(id, words(id))); return err }
		}
		return func(tx *docstore.Tx) (bool, error) {
				n, err := f.things.Count(ctx, tx, docstore.Eq("words", docstore.Text(id)))
				return n > 0, err
			},
			func(tx *docstore.Tx) error {
				_, err := Parts.Insert(ctx, tx, &Part{Meta: docstore.Meta{ID: id}})
				return err
			}
	})
}

func absentUnique(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.skewByFind(t, func(tx *docstore.Tx, other *Thing) (bool, error) {
		page, err := f.things.Page(ctx, tx,
			docstore.Query{Filter: docstore.Eq("code", docstore.Text(other.Code)), Limit: 1})
		return len(page.Docs) > 0, err
	})
}

// absentLogin: one of two values exists, in a document that the other side does not read; the other value does not.
func absentLogin(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	for round := range rounds {
		f.insert(t, ctx, thing(fmt.Sprint("there-", round, "-0"), logins(fmt.Sprint("there-", round, "-0"))))
		f.insert(t, ctx, thing(fmt.Sprint("there-", round, "-1"), logins(fmt.Sprint("there-", round, "-1"))))
	}
	f.skewByFind(t, func(tx *docstore.Tx, other *Thing) (bool, error) {
		loaded, err := f.things.LoadWhere(ctx, tx,
			docstore.In("logins", docstore.Text("there-"+other.ID), docstore.Text(other.Logins[1])), "", 10)
		return len(loaded) > 1, err
	})
}

func absentCounted(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.skewByFind(t, func(tx *docstore.Tx, other *Thing) (bool, error) {
		n, err := f.things.Count(ctx, tx,
			docstore.Or(docstore.ID(other.ID), docstore.Eq("code", docstore.Text(other.Code))))
		return n > 0, err
	})
}

// absentWithFence: conflicts that an engine need not notice by itself are noticed if both sides change a common
// document.
func absentWithFence(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("fence"))
	f.skewByFind(t, func(tx *docstore.Tx, other *Thing) (bool, error) {
		fence, err := f.things.Load(ctx, tx, "fence")
		if err != nil {
			return false, err
		}
		n, err := f.things.Count(ctx, tx, docstore.Eq("words", docstore.Text(other.Words[0])))
		if err != nil || n > 0 {
			return true, err
		}
		_, err = f.things.Touch(ctx, tx, fence)
		return false, err
	})
}

func absentByFilter(t *testing.T, s *suite) {
	if s.SkipPhantoms != "" {
		t.Skip(s.SkipPhantoms)
	}
	f, ctx := s.open(t), in(t, "t1")
	f.skewByFind(t, func(tx *docstore.Tx, other *Thing) (bool, error) {
		n, err := f.things.Count(ctx, tx, docstore.Eq("words", docstore.Text(other.Words[0])))
		return n > 0, err
	})
}

// absentReaders: many transactions that find the same document missing, and write something else, all succeed. A
// document that they looked for can be inserted afterwards, and so can the values.
func absentReaders(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	allOf(t, 8, func(i int) error {
		return f.write(ctx, func(tx *docstore.Tx) error {
			if found, err := f.finds(ctx, tx, "missing"); found || err != nil {
				return errors.Join(err, errFound)
			}
			if _, err := f.things.LoadWhere(ctx, tx, docstore.Eq("logins", docstore.Text("missing")), "",
				1); err != nil {
				return err
			}
			_, err := f.things.Insert(ctx, tx, thing(docID(i)))
			return err
		})
	})
	// A transaction can insert what it has found missing; that is no conflict.
	require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
		if found, err := f.finds(ctx, tx, "missing"); found || err != nil {
			return errors.Join(err, errFound)
		}
		if _, err := f.things.LoadWhere(ctx, tx, docstore.In("logins", docstore.Text("missing"), docstore.Text("")), "",
			1); err != nil {
			return err
		}
		_, err := f.things.Insert(ctx, tx, thing("missing", logins("missing")))
		return err
	}))
	require.Len(t, f.ids(t, ctx, docstore.Filter{}), 9, "no trace of the look-ups")
	f.check(t)
}
