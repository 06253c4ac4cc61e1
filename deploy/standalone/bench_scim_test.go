package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkSCIM measures what a directory does at a connection, over HTTP, with all services behind it.
func BenchmarkSCIM(b *testing.B) {
	yard := startYardstick(b)
	c := startPlatform(b, b.TempDir())
	// The gate passes all removals that the benchmark makes.
	s := connectSCIM(b, c, c.token("--tenant", "acme"),
		`{"name":"Okta","object_code":"okta","gate":{"percent":100,"min":100000,"hours":1}}`)
	ids := manySCIM(b, s, 5000)
	for name, path := range map[string]string{
		"user by id":  "/scim/v2/Users/" + ids[77],
		"userName eq": "/scim/v2/Users?filter=" + url.QueryEscape(`userName eq "many002500"`),
		"page of 100": "/scim/v2/Users?count=100",
	} {
		request := get(path, s.token)
		b.Run(name, func(b *testing.B) { share(b, yard, c, func(int, int) []byte { return request }) })
	}
	var serial atomic.Int64
	b.Run("create", func(b *testing.B) {
		share(b, yard, c, func(int, int) []byte {
			return post("/scim/v2/Users", s.token, fmt.Sprintf(
				`{"userName":"new%d","externalId":"new%[1]d","displayName":"New %[1]d"}`, serial.Add(1)))
		})
	})
	becomeCalm(c)
	b.Run("PATCH", func(b *testing.B) {
		share(b, yard, c, func(int, int) []byte {
			n := int(serial.Add(1))
			return patch("/scim/v2/Users/"+ids[n%len(ids)], s.token,
				fmt.Sprintf(`{"Operations":[{"op":"replace","path":"title","value":"Title %d"}]}`, n))
		})
	})
	becomeCalm(c)
	extra := ids[len(ids)-1]
	for _, size := range []int{10, 100, 4900} {
		var members []string
		for _, id := range ids[:size] {
			members = append(members, `{"value":"`+id+`"}`)
		}
		status, made, err := s.do("POST", "/Groups", fmt.Sprintf(`{"displayName":"of %d","members":[%s]}`, size,
			strings.Join(members, ",")))
		require.NoError(b, err)
		require.Equal(b, http.StatusCreated, status, made)
		path := "/scim/v2/Groups/" + made["id"].(string)
		becomeCalm(c)
		b.Run(fmt.Sprint("group of ", size), func(b *testing.B) {
			request := get(path, s.token)
			share(b, yard, c, func(int, int) []byte { return request })
		})
		b.Run(fmt.Sprintf("member in or out of a group of %d, 1 connection", size), func(b *testing.B) {
			ops := [2][]byte{}
			for i, op := range []string{"add", "remove"} {
				ops[i] = patch(path, s.token, fmt.Sprintf(
					`{"Operations":[{"op":%q,"path":"members","value":[{"value":%q}]}]}`, op, extra))
			}
			before := c.cpu()
			ours, err := generate(c.Addr, 1, oneRun*repeats, func(_, n int) []byte { return ops[n%2] })
			require.NoError(b, err)
			b.ReportMetric(ours.perSecond, "req/s")
			b.ReportMetric(float64((c.cpu()-before).Microseconds())/float64(ours.requests), "cpu-µs/req")
			b.ReportMetric(float64(ours.p50.Microseconds()), "p50-µs")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// manySCIM adds n users by Bulk and returns their ids.
func manySCIM(b *testing.B, s scimClient, n int) []string {
	b.Helper()
	ids := make([]string, 0, n)
	for from := 0; from < n; from += 500 {
		var operations []string
		for i := from; i < from+500; i++ {
			operations = append(operations, fmt.Sprintf(`{"method":"POST","path":"/Users","bulkId":"b%d",`+
				`"data":{"userName":"many%06[1]d","externalId":"%[1]d","displayName":"Many %[1]d"}}`, i))
		}
		status, answer, err := s.do("POST", "/Bulk", `{"Operations":[`+strings.Join(operations, ",")+`]}`)
		require.NoError(b, err)
		require.Equal(b, http.StatusOK, status, answer)
		var made struct{ Operations []struct{ Location string } }
		text, err := json.Marshal(answer)
		require.NoError(b, err)
		require.NoError(b, json.Unmarshal(text, &made))
		for _, o := range made.Operations {
			ids = append(ids, o.Location[strings.LastIndexByte(o.Location, '/')+1:])
		}
	}
	return ids
}
