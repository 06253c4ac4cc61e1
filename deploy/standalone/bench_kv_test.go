package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkObjects compares reads and writes of key-value objects with those of users, each in turn with the other.
func BenchmarkObjects(b *testing.B) {
	const records = 2000
	c := startPlatform(b, b.TempDir())
	token := c.token()
	importUsers(b, c, token, people(0, records))
	var users page
	fetch(b, c, token, "/v1/users?page_size=200", &users)
	const objects = "/v1/kv/buckets/bench/objects"
	for i := range records {
		send(b, c, token, objects, map[string]any{
			"key": fmt.Sprintf("person/%04d", i), "value": map[string]any{
				"display_name": "Anna Schmidt", "theme": "dark", "columns": []string{"username", "email", "mobile"},
				"page_size": 50,
			},
		}, &struct{}{})
	}
	user := func(w, n int) string { return "/v1/users/" + users.Items[(w*31+n)%len(users.Items)].ID }
	object := func(w, n int) string { return fmt.Sprintf("%s/person/%04d", objects, (w*131+n)%records) }
	b.Run("get", func(b *testing.B) {
		compare(b, c,
			func(w, n int) []byte { return get(user(w, n), token) },
			func(w, n int) []byte { return get(object(w, n), token) })
	})
	b.Run("write", func(b *testing.B) {
		compare(b, c,
			func(w, n int) []byte {
				return patch(user(w, n), token, fmt.Sprintf(`{"display_name":"Anna %d.%d"}`, w, n))
			},
			func(w, n int) []byte {
				body := fmt.Sprintf(`{"value":{"theme":"dark","turn":"%d.%d"}}`, w, n)
				return withBody("PUT", object(w, n), token, body)
			})
	})
	page := get(objects+"?prefix=person/1&page_size=50", token)
	b.Run("page of 50 keys", func(b *testing.B) {
		compare(b, c, func(int, int) []byte { return get("/v1/users?page_size=50", token) },
			func(int, int) []byte { return page })
	})
}

// compare loads the platform with two kinds of request in turn, and reports how many of the second it answers for each
// of the first.
func compare(b *testing.B, c *child, base, ours func(worker, n int) []byte) {
	b.Helper()
	var ratios, rates, cpus []float64
	for range repeats {
		var spent [2]float64
		var ran [2]measured
		for i, next := range []func(int, int) []byte{base, ours} {
			before := c.cpu()
			var err error
			ran[i], err = generate(c.Addr, workers, oneRun, next)
			require.NoError(b, err)
			spent[i] = float64((c.cpu() - before).Microseconds()) / float64(ran[i].requests)
		}
		ratios, rates = append(ratios, ran[1].perSecond/ran[0].perSecond), append(rates, ran[1].perSecond)
		cpus = append(cpus, spent[1]/spent[0])
	}
	b.ReportMetric(median(ratios), "rate-ratio")
	b.ReportMetric(median(cpus), "cpu-ratio")
	b.ReportMetric(median(rates), "req/s")
	b.ReportMetric(0, "ns/op")
}
