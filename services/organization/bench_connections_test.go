package organization_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkConnections adds members to nodes of one tree, and nodes to it, by 1, 4 and 16 clients at once. Where
// clients wait for each other shows when each command takes some time: on MongoDB, or on the simulated replica set with
// a delay.
//
//	with-mongo -simulated -delay 4ms go test -run '^$' -bench Connections -benchtime 1x ./services/organization
func BenchmarkConnections(b *testing.B) {
	const most, people = 16, 50_000
	_, c, _ := withPeople(b, people)
	addObject(b, c, "company")
	top := addNode(b, c, "company", "", "top")
	var teams [most]object
	for i := range teams {
		teams[i] = addNode(b, c, "company", id(addNode(b, c, "company", id(top), fmt.Sprint("unit", i))), "team")
	}
	var serial atomic.Int64
	for _, change := range []struct {
		name string
		body func(team object, n int64) (path string, body object)
	}{
		{"members", func(team object, n int64) (string, object) {
			return "/v1/tree-users", object{"node_id": team["id"], "user_id": fmt.Sprint(n)}
		}},
		{"nodes", func(team object, n int64) (string, object) {
			return "/v1/tree-nodes", object{
				"object_code": "company", "parent_id": team["id"], "name": fmt.Sprint("n", n),
			}
		}},
	} {
		for _, clients := range []int{1, 4, most} {
			b.Run(fmt.Sprintf("%s, %d clients", change.name, clients), func(b *testing.B) {
				var done atomic.Int64
				var all sync.WaitGroup
				begin := time.Now()
				for i := range clients {
					all.Go(func() {
						for time.Since(begin) < 2*time.Second {
							n := serial.Add(1)
							path, body := change.body(teams[i], n%people+1)
							if answer := c.Post(path, body); answer.Status == http.StatusOK {
								done.Add(1)
							}
						}
					})
				}
				all.Wait()
				require.Positive(b, done.Load())
				b.ReportMetric(float64(done.Load())/time.Since(begin).Seconds(), "changes/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
