package users_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/questions"
)

// ask asks the users service as another service does, for a tenant.
func ask[R any](t testing.TB, s *testkit.Service, tenant, question string, q any) (R, error) {
	t.Helper()
	return testkit.Ask[R](request.System(t.Context(), tenant), s.Deps.Bus, "users", question, q)
}

type recordsAnswer struct {
	Users []object
	Next  *string
}

// walk asks for all records and returns them, with the number in each answer.
func walk(t testing.TB, s *testkit.Service, tenant string, limit int) (records []object, sizes []int) {
	t.Helper()
	for q := (object{"limit": limit}); ; {
		answer, err := ask[recordsAnswer](t, s, tenant, "records", q)
		require.NoError(t, err)
		require.NotNil(t, answer.Users)
		require.NotNil(t, answer.Next)
		records, sizes = append(records, answer.Users...), append(sizes, len(answer.Users))
		if *answer.Next == "" {
			return records, sizes
		}
		require.NotEmpty(t, answer.Users)
		q["after"] = *answer.Next
	}
}

func TestAnswerRecords(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	none, sizes := walk(t, s, "acme", 500)
	require.Empty(t, none)
	require.Equal(t, []int{0}, sizes)

	addUser(t, in(s, "globex"), "foreign")
	addUser(t, c, "active", object{"display_name": "李伟 <&>", "free_ext_props": object{"note": "<b>\u2028"}})
	addUser(t, c, "disabled", object{"status": "0"})
	c.Post(path(addUser(t, c, "resigned"), "resign"), nil).OK(nil)
	c.Post(path(addUser(t, c, "resigns"), "resign"), object{"effective_time": s.Clock.Now().Add(time.Minute)}).OK(nil)
	var file strings.Builder
	for n := range 1100 {
		fmt.Fprintf(&file, "{\"username\":\"user%d\"}\n", n)
	}
	importLines(t, c, "", file.String())
	s.Clock.Advance(time.Minute)

	records, sizes := walk(t, s, "acme", 500)
	require.Equal(t, []int{500, 500, 104}, sizes)
	require.True(t, slices.IsSortedFunc(records, func(a, b object) int {
		return strings.Compare(a["id"].(string), b["id"].(string))
	}))
	byName := map[string]object{}
	for _, r := range records {
		byName[r["username"].(string)] = r
	}
	require.Len(t, byName, 1104)
	require.Equal(t, "resigned", byName["resigns"]["status"], "the scheduled resignation has taken effect")
	for _, name := range []string{"active", "disabled", "resigned", "resigns", "user7"} {
		record := c.Get(path(byName[name])).Object()
		delete(record, "version") // one of them may be settled in between
		delete(byName[name], "version")
		delete(record, "time_modified")
		delete(byName[name], "time_modified")
		require.Equal(t, record, byName[name])
	}
	places, err := ask[questions.Places](t, s, "acme", "places", questions.PartsOf{Parts: 4})
	require.NoError(t, err)
	require.Equal(t, []string{records[499]["id"].(string), records[999]["id"].(string)}, places.IDs)
	part, err := ask[recordsAnswer](t, s, "acme", "records", object{"limit": 120, "after_id": places.IDs[1]})
	require.NoError(t, err)
	require.Equal(t, records[1000:], part.Users)
	part, err = ask[recordsAnswer](t, s, "acme", "records", object{"limit": 120, "after_id": places.IDs[0]})
	require.NoError(t, err)
	require.Equal(t, records[500:620], part.Users)
	part, err = ask[recordsAnswer](t, s, "acme", "records",
		object{"limit": 120, "after_id": places.IDs[0], "after": part.Next})
	require.NoError(t, err)
	require.Equal(t, records[620:740], part.Users)
	for _, parts := range []int{0, 17} {
		_, err = ask[questions.Places](t, s, "acme", "places", questions.PartsOf{Parts: parts})
		require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
	}
	few, sizes := walk(t, s, "acme", 120)
	require.Len(t, few, 1104)
	require.Equal(t, []int{120, 120, 120, 120, 120, 120, 120, 120, 120, 24}, sizes)

	some, err := ask[recordsAnswer](t, s, "acme", "records",
		object{"limit": 2, "members": []string{"id", "username", "free_ext_props", "manager", "unknown"}})
	require.NoError(t, err)
	require.Equal(t, []object{
		{"id": records[0]["id"], "username": "active", "free_ext_props": object{"note": "<b>\u2028"}},
		{"id": records[1]["id"], "username": "disabled", "free_ext_props": object{}},
	}, some.Users)

	for _, bad := range []object{{}, {"limit": 0}, {"limit": -1}, {"limit": 501}, {"limit": 1, "after": "1048577"},
		{"limit": 1, "members": slices.Repeat([]string{"id"}, 65)}} {
		_, err := ask[recordsAnswer](t, s, "acme", "records", bad)
		require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err), "%v", bad)
	}
	_, err = ask[recordsAnswer](t, s, "", "records", object{"limit": 1})
	require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
}

// An answer must fit into a NATS message of 1 MiB, whatever the records contain: in JSON a < is written as six
// characters.
func TestAnswerLargeRecords(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	for n := range 30 {
		size := 60_000
		if n%3 == 0 {
			size = 10
		}
		letter := "x"
		if n >= 20 {
			letter = "<"
		}
		props := fmt.Sprintf(`{"p":%q}`, strings.Repeat(letter, size)) // written by hand, so that < is not escaped
		c.Post("/v1/users", fmt.Sprintf(`{"username":"user%d","sys_ext_props":%s,"free_ext_props":%s}`, n, props,
			props)).OK(nil)
	}
	var names []string
	answers, most := 0, 0
	for q := (object{"limit": 500}); ; answers++ {
		answer, err := ask[json.RawMessage](t, s, "acme", "records", q)
		require.NoError(t, err)
		require.Less(t, len(answer), 1<<20)
		var decoded recordsAnswer
		require.NoError(t, json.Unmarshal(answer, &decoded))
		require.NotEmpty(t, decoded.Users)
		most = max(most, len(decoded.Users))
		for _, u := range decoded.Users {
			names = append(names, u["username"].(string))
		}
		if *decoded.Next == "" {
			break
		}
		q["after"] = *decoded.Next
	}
	require.Len(t, names, 30)
	require.Equal(t, slices.Compact(slices.Sorted(slices.Values(names))), slices.Sorted(slices.Values(names)),
		"no user is in two answers")
	require.Greater(t, answers, 7)
	require.Greater(t, most, 4)
}

func TestAnswerMatching(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	li := addUser(t, c, "li.wei", object{"display_name": "李伟",
		"sys_ext_props": object{"city": "上海市浦东新区"}})["id"].(string)
	wang := addUser(t, c, "wang", object{"display_name": "王伟 Lee"})["id"].(string)
	zhao := addUser(t, c, "zhao", object{"status": "0"})["id"].(string)
	foreign := addUser(t, in(s, "globex"), "li.wei", object{"display_name": "李伟"})["id"].(string)
	var file strings.Builder
	for n := range 1100 {
		fmt.Fprintf(&file, "{\"username\":\"crowd%d\"}\n", n)
	}
	crowd := make([]string, 0, 1100)
	for _, line := range importLines(t, c, "", file.String()) {
		crowd = append(crowd, line.ID)
	}

	type answer struct {
		IDs  []string
		More bool
	}
	find := func(q object) answer {
		t.Helper()
		a, err := ask[answer](t, s, "acme", "matching", q)
		require.NoError(t, err)
		require.NotNil(t, a.IDs)
		return a
	}
	for _, row := range []struct {
		q    object
		ids  []string
		more bool
	}{
		{object{"keyword": "伟", "limit": 10}, []string{li, wang}, false},
		{object{"keyword": " 伟 ", "limit": 1}, []string{li}, true},
		{object{"keyword": "伟", "limit": 2}, []string{li, wang}, false},
		{object{"keyword": "LEE 伟", "limit": 10}, []string{wang}, false},
		{object{"keyword": "浦东", "limit": 10}, []string{li}, false},
		{object{"keyword": "nobody", "limit": 10}, []string{}, false},
		{object{"keyword": "...", "limit": 10}, []string{}, false},
		{object{"keyword": "伟", "limit": 10, "ids": []string{zhao, wang, foreign, "nobody"}}, []string{wang}, false},
		{object{"keyword": "伟", "limit": 10, "ids": []string{}}, []string{}, false},
		{object{"keyword": "伟", "limit": 10, "ids": nil}, []string{li, wang}, false},
		{object{"keyword": "", "limit": 10, "ids": []string{zhao, li}}, []string{li, zhao}, false},
		{object{"keyword": "crowd", "limit": 10, "ids": []string{zhao}}, []string{}, false},
	} {
		require.Equal(t, answer{row.ids, row.more}, find(row.q), "%v", row.q)
	}
	all := find(object{"keyword": "crowd", "limit": 1000})
	require.Len(t, all.IDs, 1000)
	require.True(t, all.More)
	require.Subset(t, crowd, all.IDs)
	some := find(object{"keyword": "crowd", "limit": 1000, "ids": crowd[100:]})
	require.ElementsMatch(t, crowd[100:], some.IDs)
	require.False(t, some.More)

	for _, bad := range []object{
		{"keyword": "x"}, {"keyword": "x", "limit": 0}, {"keyword": "x", "limit": 1001},
		{"keyword": "x", "limit": 1, "ids": crowd[:1001]},
		{"keyword": strings.Repeat("字", 257), "limit": 1}, {"keyword": 7, "limit": 1},
	} {
		_, err := ask[answer](t, s, "acme", "matching", bad)
		require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
	}
}
