package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// manyApplications makes n applications and returns the ids of some of them.
func manyApplications(b testing.TB, c *child, token string, n int) (ids []string) {
	b.Helper()
	type object = map[string]any
	for from := 0; from < n; from += 500 {
		var items []object
		for i := from; i < from+500; i++ {
			items = append(items, object{
				"name": fmt.Sprintf("Application %d 应用", i), "domain_sn": fmt.Sprintf("app-%d", i),
				"category":     fmt.Sprint(1 + i%4),
				"login_url":    fmt.Sprintf("https://app-%d.acme.test/login", i),
				"redirect_url": fmt.Sprintf("https://app-%d.acme.test/callback", i), "descr": "Made for the benchmark",
			})
		}
		var made page
		send(b, c, token, "/v1/batch/applications", object{"items": items}, &made)
		require.Len(b, made.Items, 500)
		for _, item := range made.Items {
			ids = append(ids, item.ID)
		}
	}
	return ids
}

func BenchmarkApplications(b *testing.B) {
	yard := startYardstick(b)
	c := startPlatform(b, b.TempDir())
	token := c.token()
	ids := manyApplications(b, c, token, 20_000)
	for _, read := range []struct {
		name string
		path func(n int) string
	}{
		{"get", func(n int) string { return "/v1/applications/" + ids[n*7919%len(ids)] }},
		{"by domain", func(n int) string {
			return fmt.Sprintf("/v1/application?domain=app-%d.acme.test",
				n*7919%len(ids))
		}},
		{"page of 50", func(int) string { return "/v1/applications?page_size=50" }},
		{"page of 50 of a category",
			func(n int) string { return fmt.Sprintf("/v1/applications?page_size=50&category=%d", 1+n%4) }},
		{"search by a part of the name",
			func(n int) string { return fmt.Sprintf("/v1/applications?name=ion%%20%d%%20", n*7919%len(ids)) }},
	} {
		var answer any
		fetch(b, c, token, read.path(1), &answer)
		b.Run(read.name, func(b *testing.B) {
			share(b, yard, c, func(worker, n int) []byte { return get(read.path(worker*1_000_003+n), token) })
		})
	}
	b.Run("create", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			status, text := exchange(b, c, token, "/v1/applications", map[string]any{"name": fmt.Sprint("created ", i)})
			require.Equal(b, http.StatusOK, status, "%s", text)
		}
	})
}
