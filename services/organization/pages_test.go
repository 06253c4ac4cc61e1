package organization_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
)

// walk reads a list by page tokens. between, which may be left out, is called before every page but the first.
func walk(t testing.TB, c *testkit.Client, url string, size int, between ...func()) (all []object) {
	t.Helper()
	token := ""
	for {
		var page struct {
			Items []object
			Next  string `json:"next_page_token"`
		}
		c.Get(fmt.Sprintf("%s&page_size=%d%s", url, size, token)).OK(&page)
		require.LessOrEqual(t, len(page.Items), size)
		all = append(all, page.Items...)
		if page.Next == "" {
			return all
		}
		require.Len(t, page.Items, size, "more follows, so the page is full")
		token = "&page_token=" + page.Next
		for _, f := range between {
			f()
		}
	}
}

// A list goes on where it was if its node is moved between two pages.
func TestAListOfUsersGoesOnWhileItsNodeMoves(t *testing.T) {
	t.Parallel()
	_, c, p := withPeople(t, 30)
	for i := range 30 {
		p.put(fmt.Sprint(1+i), object{"display_name": fmt.Sprint("user ", 1+i)})
	}
	addObject(t, c, "company")
	left, right := addNode(t, c, "company", "", "left"), addNode(t, c, "company", "", "right")
	top := addNode(t, c, "company", id(left), "top")
	below := addNode(t, c, "company", id(top), "below")
	want := make([]any, 30)
	addMany(t, c, membersBatch, 30, func(i int) object {
		want[i] = fmt.Sprint(1 + i)
		return object{"node_id": []any{top["id"], below["id"]}[i/15], "user_id": want[i]}
	})
	for query, n := range map[string]int{"?": 15, "?recursive=true": 30, "?recursive=true&keyword=user": 30} {
		to := []object{left, right}
		var listed []any
		for _, u := range walk(t, c, node(top, "users"+query+"&count=false"), 4, func() {
			slices.Reverse(to)
			c.Patch(node(top), object{"parent_id": to[0]["id"]}).OK(nil)
		}) {
			listed = append(listed, u["user_id"])
		}
		require.Equal(t, want[:n], listed, query)
	}
}
