package docstore

import (
	"encoding/base64"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// A token leads back to exactly the place that it was made for: texts with any characters, and numbers of 64 bits.
func TestTokensLeadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := Query{Filter: Eq("kind", Text(rapid.String().Draw(t, "kind")))}
		p := Position{ID: rapid.StringN(1, -1, -1).Draw(t, "id")}
		for range rapid.IntRange(0, 3).Draw(t, "keys") {
			q.Sort = append(q.Sort, Order{Index: rapid.String().Draw(t, "index"), Desc: rapid.Bool().Draw(t, "desc")})
			p.Values = append(p.Values, Value{Text: rapid.String().Draw(t, "text"), Num: rapid.Int64().Draw(t, "num")})
		}
		q.After = writeToken("things", "acme", q, p)
		require.Regexp(t, `^[A-Za-z0-9_-]+$`, q.After, "it needs no escapes in a URL or in JSON")
		got, err := readToken("things", "acme", q)
		require.NoError(t, err)
		require.Equal(t, p, *got)
	})
}

func TestTokensBelongToTheirQuery(t *testing.T) {
	t.Parallel()
	from, to := Number(math.MinInt64), Number(7)
	base := Query{Filter: And(Eq("a", Text("x")), Filter{Op: OpRange, Index: "b", From: &from, To: &to}),
		Sort: []Order{{Index: "a"}}}
	token := writeToken("things", "acme", base, Position{Values: []Value{Text("x")}, ID: "1"})
	read := func(change func(*Query)) error {
		q := base
		change(&q)
		q.After = token
		_, err := readToken("things", "acme", q)
		return err
	}
	require.NoError(t, read(func(q *Query) {
		q.Limit, q.Offset, q.Count = 9, 9, true
	}), "the page size may change on the way")
	for name, change := range map[string]func(*Query){
		"filter":    func(q *Query) { q.Filter = Eq("a", Text("x")) },
		"value":     func(q *Query) { q.Filter = And(Eq("a", Text("y")), base.Filter.Sub[1]) },
		"bound":     func(q *Query) { q.Filter = And(base.Filter.Sub[0], From("b", from)) },
		"sort":      func(q *Query) { q.Sort = []Order{{Index: "c"}} },
		"direction": func(q *Query) { q.Sort = []Order{{Index: "a", Desc: true}} },
		"keys":      func(q *Query) { q.Sort = nil },
	} {
		require.Equal(t, apperr.InvalidParameters, apperr.KindOf(read(change)), name)
	}
	base.After = token
	for _, list := range [][2]string{{"things", "globex"}, {"others", "acme"}} {
		_, err := readToken(list[0], list[1], base)
		require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err), list)
	}
}

// The values of a filter that follow from something else may change from page to page.
func TestTokensOfFiltersWithChangingValues(t *testing.T) {
	t.Parallel()
	query := func(what string, values ...Value) Query {
		return Query{Filter: And(Eq("a", Text("x")), FollowingFrom(what, In("kind", values...)))}
	}
	token := writeToken("things", "acme", query("user.*", Text("user.created")), Position{ID: "1"})
	same := query("user.*", Text("user.created"), Text("user.deleted"))
	same.After = token
	_, err := readToken("things", "acme", same)
	require.NoError(t, err)
	other := query("*.created", Text("user.created"))
	other.After = token
	_, err = readToken("things", "acme", other)
	require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
}

// A forged token may name another place, but only one that an engine can look for.
func TestTokensHaveAValueForEachKey(t *testing.T) {
	t.Parallel()
	q := Query{Sort: []Order{{Index: "a"}, {Index: "b"}}}
	for _, p := range []Position{{ID: "1"}, {Values: make([]Value, 1), ID: "1"}, {Values: make([]Value, 3), ID: "1"},
		{Values: make([]Value, 2)}} {
		q.After = writeToken("things", "acme", q, p)
		_, err := readToken("things", "acme", q)
		require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err), "%+v", p)
	}
}

// FuzzReadToken: any input is either a place, or refused without being repeated in the error.
func FuzzReadToken(f *testing.F) {
	q := Query{Sort: []Order{{Index: "a"}}}
	good := writeToken("things", "acme", q, Position{Values: []Value{Text("李")}, ID: "1"})
	for _, seed := range []string{"", good, good + "=", good[1:], "e30",
		base64.RawURLEncoding.EncodeToString([]byte(`{"q":1,"v":[{}],"i":"1"}`)), "AAAA", "bnVsbA"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		q := q
		q.After = token
		p, err := readToken("things", "acme", q)
		if err != nil {
			require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
			return
		}
		require.NotEmpty(t, p.ID)
		require.Len(t, p.Values, 1)
		again, err := readToken("things", "acme", Query{Sort: q.Sort, After: writeToken("things", "acme", q, *p)})
		require.NoError(t, err)
		require.Equal(t, p, again)
	})
}
