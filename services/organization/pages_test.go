package organization_test

import (
	"fmt"
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
