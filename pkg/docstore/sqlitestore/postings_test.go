package sqlitestore

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/docstore"
)

func TestPostingsSurvivePacking(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.SliceOfDistinct(rapid.Int64(), func(n int64) int64 { return n }).Draw(rt, "rids")
		for range rapid.IntRange(0, 2000).Draw(rt, "neighbours") {
			want = append(want, int64(len(want)))
		}
		slices.Sort(want)
		want = slices.Compact(want)
		got, some, added := []int64{}, newSet(), newSet()
		each := rapid.Int64Range(1, 5).Draw(rt, "one in the set of")
		for _, rid := range want {
			if rid%each == 0 {
				some.add(rid)
			}
		}
		both := []int64{}
		pack(want, func(first int64, more []byte) {
			require.LessOrEqual(rt, len(more), maxMore)
			before := len(got)
			unpack(first, more, func(rid int64) { got = append(got, rid) })
			require.Equal(rt, len(got)-before, some.common(first, more, func(rid int64) { both = append(both, rid) }))
			added.addPostings(first, more)
		})
		require.Equal(rt, append([]int64{}, want...), got)
		require.EqualValues(rt, len(want), added.size)
		require.ElementsMatch(rt, some.rids(), both)
		require.ElementsMatch(rt, want, added.rids())
	})
}

// FuzzUnpack: reading a damaged row of postings neither panics nor runs forever.
func FuzzUnpack(f *testing.F) {
	f.Add(int64(1), []byte{1, 0x80, 2})
	f.Add(int64(math.MaxInt64), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, first int64, more []byte) {
		n := 0
		unpack(first, more, func(int64) { n++ })
		if n > 1+len(more) {
			t.Fatalf("%d ids in %d bytes", n, len(more))
		}
	})
}

// TestPostingsAreMerged: in whatever order documents come, a value has few rows, which name each document once.
func TestPostingsAreMerged(t *testing.T) {
	t.Parallel()
	const n = 8000
	orders := map[string]func(i int) int64{
		"ascending":  func(i int) int64 { return int64(i) },
		"descending": func(i int) int64 { return -int64(i) },
		"by sixteen": func(i int) int64 { return int64(i) << 4 },
	}
	least := map[string]int{"ascending": 50, "descending": 50, "by sixteen": 50, "in no order": 9} // documents in a row
	shuffled := rand.New(rand.NewPCG(1, 2)).Perm(n)
	orders["in no order"] = func(i int) int64 { return int64(shuffled[i]) }
	for name, rid := range orders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := Default(t.Context(), t.TempDir()+"/x.db")
			require.NoError(t, err)
			defer func() { require.NoError(t, conn.Close()) }()
			table, err := newTable(&docstore.Def{Name: "x", Indexes: []docstore.IndexDef{{Name: "words", Many: true}}})
			require.NoError(t, err)
			require.NoError(t, run(conn, append(table.ddl(), "BEGIN")...))
			c, word := table.lists[0], docstore.Text("word")
			for i := range n {
				var entries late
				entries.add(c, "t", rid(i), word)
				require.NoError(t, entries.flush(conn))
			}
			rows, err := number(t.Context(), conn, "SELECT count(*) FROM "+c.postings)
			require.NoError(t, err)
			require.Less(t, rows, int64(n/least[name]))
			for i := range n {
				first, named, err := c.findPosting(conn, "t", word, rid(i))
				require.NoError(t, err)
				require.Contains(t, named, rid(i))
				require.Contains(t, named, first)
				require.NoError(t, c.removePosting(conn, "t", word, rid(i)))
				_, named, err = c.findPosting(conn, "t", word, rid(i))
				require.NoError(t, err)
				require.Nil(t, named)
			}
			rows, err = number(t.Context(), conn, "SELECT count(*) FROM "+c.postings)
			require.NoError(t, err)
			require.Zero(t, rows)
		})
	}
}

// TestInside: a value of a range is either in a span inside the range or at one of its ends; any other value is in
// neither.
func TestInside(t *testing.T) {
	t.Parallel()
	numbers := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-50, 50),
		rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64 - 1, math.MaxInt64}))
	texts := rapid.Custom(func(rt *rapid.T) string {
		return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 'b', 0xff}), 0, 5).Draw(rt, "bytes"))
	})
	rapid.Check(t, func(rt *rapid.T) {
		c := &column{number: rapid.Bool().Draw(rt, "number"), span: rapid.Int64Range(1, 9).Draw(rt, "span")}
		value := func(name string) docstore.Value {
			if c.number {
				return docstore.Number(numbers.Draw(rt, name))
			}
			return docstore.Text(texts.Draw(rt, name))
		}
		bound := func(name string) *docstore.Value {
			if rapid.IntRange(0, 4).Draw(rt, "open") == 0 {
				return nil
			}
			v := value(name)
			return &v
		}
		n := between(c, bound("low"), bound("high"))
		if n.op != isBetween {
			return
		}
		v := value("value")
		within := func(n *node, v docstore.Value) bool { return n.accepts([]byte(v.Text), v.Num) }
		inside, ends := n.inside()
		found := 0
		if inside != nil && within(inside, c.posting(v)) {
			found++
		}
		for i := range ends {
			if within(&ends[i], v) {
				found++
			}
		}
		require.Equal(rt, map[bool]int{true: 1, false: 0}[within(&n, v)], found,
			fmt.Sprintf("%v in %v…%v, inside %+v, ends %+v", v, n.low, n.high, inside, ends))
	})
}
