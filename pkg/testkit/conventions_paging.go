package testkit

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// paging: pages by number and by token, sorted and counted.
func paging(t *testing.T, s *Service, r Resource) {
	c := r.editor(s, "acme")
	empty := c.Get(r.list("")).Object()
	assert.Equal(t, map[string]any{"items": []any{}, "total": 0.0, "page_num": 1.0, "page_size": 20.0}, empty)
	var ids []string
	for n := range 25 {
		s.Clock.Advance(time.Millisecond)
		ids = append(ids, c.Post(r.Collection, r.Body(n)).ID())
	}
	idsOf := func(page map[string]any) []string {
		var list []string
		for _, item := range page["items"].([]any) {
			list = append(list, item.(map[string]any)["id"].(string))
		}
		return list
	}
	first := c.Get(r.list("")).Object()
	assert.Equal(t, ids[:20], idsOf(first))
	assert.EqualValues(t, 25, first["total"])
	second := c.Get(r.list("page_num=2")).Object()
	assert.Equal(t, ids[20:], idsOf(second))
	assert.NotContains(t, second, "next_page_token")
	beyond := c.Get(r.list("page_num=9")).Object()
	assert.Empty(t, beyond["items"])
	assert.EqualValues(t, 25, beyond["total"])
	assert.NotContains(t, c.Get(r.list("count=false")).Object(), "total")

	for _, size := range []int{1, 7, 25, 200} {
		for _, sort := range []string{"", "&page_sort=time_created[desc]", "&page_sort=time_created"} {
			var walked []string
			path := r.list(fmt.Sprintf("page_size=%d%s", size, sort))
			for token := ""; ; {
				page := c.Get(path + "&page_token=" + token).Object()
				walked = append(walked, idsOf(page)...)
				token, _ = page["next_page_token"].(string)
				if token == "" {
					break
				}
			}
			want := slices.Clone(ids)
			if strings.Contains(sort, "desc") {
				slices.Reverse(want)
			}
			assert.Equal(t, want, walked, "%d %s", size, sort)
		}
	}
	refusedPaging(s, r, c, first["next_page_token"].(string))
	assert.EqualValues(t, 25, c.Get(r.list("unknown_parameter=1")).Object()["total"], "an unknown parameter is ignored")
}

// refusedPaging: pages that cannot exist, and a token of another list.
func refusedPaging(s *Service, r Resource, c *Client, token string) {
	c.Get(r.list("page_sort=time_created[desc]&page_token="+token)).Problem(http.StatusBadRequest, "invalid_parameters",
		"query.page_token")
	s.As("globex", r.Read).Get(r.list("page_token="+token)).Problem(http.StatusBadRequest, "invalid_parameters",
		"query.page_token")
	for query, location := range map[string]string{
		"page_num=0": "query.page_num", "page_num=-1": "query.page_num", "page_num=x": "query.page_num",
		"page_num=9223372036854775807":  "query.page_num",
		"page_num=99999999999999999999": "query.page_num",
		"page_size=0":                   "query.page_size", "page_size=201": "query.page_size",
		"page_size=1.5":       "query.page_size",
		"page_token=nonsense": "query.page_token", "page_sort=no_such_field": "query.page_sort",
		"page_sort=time_created[up]":          "query.page_sort",
		"page_sort=time_created,time_created": "query.page_sort", "page_sort=,": "query.page_sort",
		"count=maybe": "query.count",
	} {
		c.Get(r.list(query)).Problem(http.StatusBadRequest, "invalid_parameters", location)
	}
	unsortable := c.Get(r.list("page_sort=no_such_field")).Problem(http.StatusBadRequest, "invalid_parameters")
	assert.Contains(s.t, unsortable.Detail, "time_created")
	c.Get(r.list("page_num=x&page_size=0")).Problem(http.StatusBadRequest, "invalid_parameters", "query.page_num",
		"query.page_size")
}
