package users_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestListUsersByKeyword(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	li := addUser(t, c, "Li.Wei", object{"display_name": "李伟 Lee", "email": "LW@acme.test", "mobile": "+8613800000000",
		"employee_number": "Ａ-17"})
	wang := addUser(t, c, "wang", object{"display_name": "王芳", "sys_ext_props": object{"city": "上海市浦东新区",
		"team": []any{"Platform Core", object{"x": "Ünïcode"}}}, "free_ext_props": object{"note": "likes tea"}})
	addUser(t, c, "zhao", object{"display_name": "赵敏"})
	c.Post(path(wang, "real-name-verification"), object{"real_name": "王小芳", "id_number": "11010519491231002X"}).OK(nil)
	addUser(t, in(s, "globex"), "li.wei")

	find := func(query string, usernames ...any) {
		t.Helper()
		if usernames == nil {
			usernames = []any{}
		}
		require.ElementsMatch(t, usernames, c.Items("/v1/users?"+query, "username"), query)
		require.EqualValues(t, len(usernames), c.Get("/v1/users?" + query).Object()["total"], query)
	}
	basic := func(keyword string, usernames ...any) {
		t.Helper()
		find("keyword="+url.QueryEscape(keyword), usernames...)
	}
	for _, keyword := range []string{"li", "LI.WEI", "ｌｉ．", "李", "李伟 l", "lw@ACME", "+86138", "a-1", "Ａ-17",
		li["id"].(string), "  li  "} {
		basic(keyword, "Li.Wei")
	}
	for _, keyword := range []string{"wei", "伟", "17", "acme", "138", li["id"].(string)[:5], "tea", "王小芳", "%", "_",
		"*", ".", "\x00", "li\x00", "李%"} {
		basic(keyword)
	}
	basic("", "Li.Wei", "wang", "zhao")
	basic("   ", "Li.Wei", "wang", "zhao")

	zhou, sun := addUser(t, c, "zhou", object{"email": "zhou@bücher.test"}), addUser(t, c, "sun@例子.测试")
	for keyword, username := range map[string]string{"zhou@bücher.test": "zhou", "ZHOU@b": "zhou", "zhou@xn--b": "zhou",
		"sun@例": "sun@例子.测试"} {
		basic(keyword, username)
		find("page_sort=email&keyword="+url.QueryEscape(keyword), username)
	}
	c.Delete(path(zhou), nil).OK(nil)
	c.Delete(path(sun), nil).OK(nil)

	full := func(keyword string, usernames ...any) {
		t.Helper()
		find("search_type=generic&keyword="+url.QueryEscape(keyword), usernames...)
	}
	for _, keyword := range []string{"lee", "伟", "李伟", "WEI li", "17", "acme test", "ｌｅｅ 李", "8", "8613", "86138",
		"86138000", "861380000", "8613800000000", "138", "13800000000"} {
		full(keyword, "Li.Wei")
	}
	for _, keyword := range []string{"海市", "浦东", "plat", "core platform", "unicode", "ÜNÏ", "tea 王芳", "小芳", "like 新区"} {
		full(keyword, "wang")
	}
	for _, keyword := range []string{"ee", "伟李", "tea lee", "platform xyz", "...", "城", "8614", "86139",
		"86138001", "861380001", "86138000000000", "1390", "3800000000"} {
		full(keyword)
	}
	full("", "Li.Wei", "wang", "zhao")
	c.Get("/v1/users?search_type=basic&keyword=li").Problem(http.StatusBadRequest, "invalid_parameters",
		"query.search_type")
	c.Get("/v1/users?keyword="+strings.Repeat("x", 257)).Problem(http.StatusBadRequest, "invalid_parameters",
		"query.keyword")
	basic(strings.Repeat("字", 256))
}

func TestListUsersByTime(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	var at []string
	for n := range 3 {
		s.Clock.Advance(time.Minute)
		at = append(at, url.QueryEscape(s.Clock.Now().String()))
		addUser(t, c, fmt.Sprint("user", n))
	}
	find := func(query string, usernames ...any) {
		t.Helper()
		require.Equal(t, usernames, c.Items("/v1/users?"+query, "username"), query)
	}
	find("time_modified_from="+at[1], "user1", "user2")
	find("time_modified_to="+at[1], "user0")
	find("time_modified_from="+at[1]+"&time_modified_to="+at[2], "user1")
	require.Empty(t, c.Items("/v1/users?time_modified_from="+at[1]+"&time_modified_to="+at[1], "id"))
	find("time_modified_from=2026-01-31", "user0", "user1", "user2")
	offset := s.Clock.Now().Std().In(time.FixedZone("", 8*60*60)).Format("2006-01-02T15:04:05.000Z07:00")
	find("time_modified_from="+url.QueryEscape(offset), "user2")

	c.Get("/v1/users?time_modified_from="+at[1]+"&time_modified_to="+at[0]).
		Problem(http.StatusBadRequest, "invalid_parameters", "query.time_modified_from")
	c.Get("/v1/users?time_modified_from=yesterday&time_modified_to=2026-13-01").
		Problem(http.StatusBadRequest, "invalid_parameters", "query.time_modified_from", "query.time_modified_to")
}

func TestListUsersByState(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	for _, username := range []string{"active", "disabled", "locked", "briefly", "leaving", "gone"} {
		s.Clock.Advance(time.Millisecond)
		user := addUser(t, c, username)
		switch username {
		case "disabled":
			c.Patch(path(user), object{"status": "0"}).OK(nil)
		case "locked":
			c.Post(path(user, "lock"), nil).OK(nil)
		case "briefly":
			c.Post(path(user, "lock"), object{"until": s.Clock.Now().Add(time.Hour)}).OK(nil)
		case "leaving":
			c.Post(path(user, "resign"), object{"effective_time": s.Clock.Now().Add(time.Hour)}).OK(nil)
		case "gone":
			c.Post(path(user, "resign"), nil).OK(nil)
		}
	}
	find := func(query string, usernames ...any) {
		t.Helper()
		require.Equal(t, usernames, c.Items("/v1/users?"+query, "username"), query)
	}
	find("status=1", "active", "locked", "briefly", "leaving")
	find("status=0", "disabled")
	find("status=resigned", "gone")
	find("locked=true", "locked", "briefly")
	find("locked=0", "active", "disabled", "leaving", "gone")
	find("locked=1&status=1&keyword=bri", "briefly")

	first := c.Get("/v1/users?locked=true&page_size=1").Object()
	second := c.Get("/v1/users?status=1&page_size=1").Object()
	s.Clock.Advance(time.Minute)
	find("locked=true&page_size=1&page_token="+first["next_page_token"].(string), "briefly")
	find("status=1&page_size=1&page_token="+second["next_page_token"].(string), "locked")

	// The end of a lock and a resignation are visible from their time on, whether or not they are stored.
	s.Clock.Advance(59 * time.Minute)
	c = in(s, "acme")
	find("locked=true", "locked")
	find("locked=false&keyword=b", "briefly")
	find("status=resigned", "leaving", "gone")
	find("status=1", "active", "locked", "briefly")
	for _, query := range []string{"status=2", "status=active", "locked=yes", "locked=TRUE"} {
		name, _, _ := strings.Cut(query, "=")
		c.Get("/v1/users?"+query).Problem(http.StatusBadRequest, "invalid_parameters", "query."+name)
	}
}

func TestListUsersByID(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	fresh := testkit.Names()
	testkit.SelectsByIDs(t, c, in(s, "globex"), "/v1/users",
		func(c *testkit.Client) string { return addUser(t, c, fresh())["id"].(string) })
}

func TestListUsersSorted(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	for _, row := range [][3]string{{"b", "Ä", ""}, {"C", "z", "y@acme.test"}, {"a", "王", "x@acme.test"},
		{"d", "王", ""}} {
		s.Clock.Advance(time.Millisecond)
		addUser(t, c, row[0], object{"display_name": row[1], "email": row[2]})
	}
	c.Patch("/v1/users/"+c.Items("/v1/users?keyword=b", "id")[0].(string), object{"gender": "x"}).OK(nil)
	for sort, want := range map[string][]any{
		"":                               {"b", "C", "a", "d"},
		"time_created[desc]":             {"d", "a", "C", "b"},
		"username":                       {"a", "b", "C", "d"},
		"username[desc]":                 {"d", "C", "b", "a"},
		"email,username[desc]":           {"d", "b", "a", "C"},
		"display_name[desc],username":    {"a", "d", "b", "C"},
		"display_name[desc],id":          nil,
		"time_modified,username[asc]":    nil,
		"employee_number":                nil,
		"password":                       nil,
		"time_modified[desc],email[asc]": nil,
	} {
		answer := c.Get("/v1/users?page_sort=" + sort)
		switch {
		case want != nil:
			require.Equal(t, want, c.Items("/v1/users?page_sort="+sort, "username"), sort)
		case strings.HasPrefix(sort, "time_modified"):
			answer.OK(nil)
		default:
			doc := answer.Problem(http.StatusBadRequest, "invalid_parameters", "query.page_sort")
			require.Contains(t, doc.Detail, "time_created, username, display_name, email, time_modified")
		}
	}
}
