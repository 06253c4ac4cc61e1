package testkit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Searched is a list with a keyword, for Searches.
type Searched struct {
	Path string // of the list, with what it requires in the query
	// Make creates a record with a name and a code, and returns its id. What the records do not have is left out.
	Make func(c *Client, name, code string) string
	// NoNames says that keywords find only codes, NoCodes that they find only names.
	NoNames, NoCodes bool
	Array            bool // the answer is an array
}

// Searches checks what the keyword of a list finds, its bounds, and its pages.
func Searches(t *testing.T, c *Client, list Searched) {
	t.Helper()
	ids := []string{
		list.Make(c, "平台研发中心 Café", "alpha-one"), list.Make(c, "财务 Ledger of the Whole Group", "beta-two"),
		list.Make(c, "Weiße Straße", "gamma-three-with-a-long-end"),
	}
	find := func(keyword string) []string { return list.find(t, c, "&keyword="+url.QueryEscape(keyword)) }
	byName := map[string][]string{
		"研发": ids[:1], "台": ids[:1], "CAFE": ids[:1], "ｌｅｄｇｅｒ": ids[1:2], "OF THE WHOLE GROUP": ids[1:2],
		"ledger of the whole groups": nil, "strasse": ids[2:], " weiße ": ids[2:], "发研": nil, "\u0301": nil,
	}
	byCode := map[string][]string{
		"PHA-O": ids[:1], "beta-two": ids[1:2], "three-WITH-a-long": ids[2:], "three-with-the-long": nil, "beta_two": nil,
	}
	for keyword, want := range byName {
		if !list.NoNames {
			require.ElementsMatch(t, want, find(keyword), "%s finds a name by %q", list.Path, keyword)
		}
	}
	for keyword, want := range byCode {
		if !list.NoCodes {
			require.ElementsMatch(t, want, find(keyword), "%s finds a code by %q", list.Path, keyword)
		}
	}
	require.Subset(t, find("  "), ids, "a blank keyword selects all")
	require.Empty(t, find("e\nb"), "a keyword is part of one text")
	require.Empty(t, find(strings.Repeat("研", 256)))
	c.Get(list.with("&keyword="+url.QueryEscape(strings.Repeat("研", 257)))).
		Problem(http.StatusBadRequest, "invalid_parameters", "query.keyword")
	if !list.Array {
		list.pages(t, c)
	}
}

// pages: the pages of what a keyword finds have all of it once, and a token is good for its keyword alone.
func (l Searched) pages(t *testing.T, c *Client) {
	t.Helper()
	var want []string
	for n := range 5 {
		want = append(want, l.Make(c, fmt.Sprintf("Paged-%d", n), fmt.Sprintf("paged-%d", n)))
	}
	var got []string
	for token := ""; ; {
		var page struct {
			Items []struct {
				ID string `json:"id"`
			} `json:"items"`
			Total int    `json:"total"`
			Next  string `json:"next_page_token"`
		}
		c.Get(l.with("&keyword=AGED-&page_size=2" + token)).OK(&page)
		require.Equal(t, 5, page.Total)
		for _, item := range page.Items {
			got = append(got, item.ID)
		}
		if page.Next == "" {
			break
		}
		token = "&page_token=" + url.QueryEscape(page.Next)
		c.Get(l.with("&keyword=paged&page_size=2"+token)).
			Problem(http.StatusBadRequest, "invalid_parameters", "query.page_token")
	}
	require.Equal(t, want, got, "in the default order")
	last := c.Get(l.with("&keyword=aged-4")).Object()["items"].([]any)
	require.Len(t, last, 1)
}

func (l Searched) with(query string) string {
	if strings.Contains(l.Path, "?") {
		return l.Path + query
	}
	return l.Path + "?" + strings.TrimPrefix(query, "&")
}

// find returns the ids of the records that a query finds.
func (l Searched) find(t *testing.T, c *Client, query string) (ids []string) {
	t.Helper()
	type records []struct {
		ID string `json:"id"`
	}
	body := c.Get(l.with(query)).OK(nil).Body
	var found records
	if l.Array {
		require.NoError(t, json.Unmarshal(body, &found))
	} else {
		var page struct{ Items records }
		require.NoError(t, json.Unmarshal(body, &page))
		found = page.Items
	}
	for _, record := range found {
		ids = append(ids, record.ID)
	}
	return ids
}
