package provisioning_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// many adds n users by Bulk and returns their ids.
func (c *client) many(n int) []string {
	c.t.Helper()
	ids := make([]string, 0, n)
	for from := 0; from < n; from += 500 {
		var operations []object
		for i := from; i < min(from+500, n); i++ {
			name := fmt.Sprintf("many%06d", i)
			operations = append(operations, object{"method": "POST", "path": "/Users", "bulkId": name,
				"data": person(name, object{"displayName": "User " + name})})
		}
		answer := c.want(http.StatusOK, http.MethodPost, "/scim/v2/Bulk", object{"Operations": operations})
		for _, result := range answer["Operations"].([]any) {
			location := result.(object)["location"].(string)
			ids = append(ids, location[strings.LastIndexByte(location, '/')+1:])
		}
	}
	return ids
}

func BenchmarkReads(b *testing.B) {
	c := connect(b, nil)
	c.many(5000)
	one := usersPath + "/" + c.addUser("one", nil)
	for name, path := range map[string]string{
		"user by id":  one,
		"userName eq": usersPath + "?filter=" + url.QueryEscape(`userName eq "many002500"`),
		"page of 100": usersPath + "?count=100",
	} {
		b.Run(name, func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					require.Equal(b, http.StatusOK, c.Get(path).Status)
				}
			})
		})
	}
}

func BenchmarkWrites(b *testing.B) {
	c := connect(b, nil)
	var n atomic.Int64
	b.Run("create", func(b *testing.B) {
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				a := c.Post(usersPath, person(fmt.Sprint("new", n.Add(1)), nil))
				require.Equal(b, http.StatusCreated, a.Status, "%s", a.Body)
			}
		})
	})
	ids := c.people(64)
	b.Run("PATCH", func(b *testing.B) {
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			path := usersPath + "/" + ids[int(n.Add(1))%len(ids)]
			for pb.Next() {
				a := c.Patch(path, patchOf(object{"op": "replace", "path": "title", "value": fmt.Sprint(n.Add(1))}))
				require.Equal(b, http.StatusOK, a.Status, "%s", a.Body)
			}
		})
	})
}

// BenchmarkMember adds a member to groups of two sizes: the cost must not depend on them.
func BenchmarkMember(b *testing.B) {
	c := connect(b, object{"gate": object{"percent": 100, "min": 100_000, "hours": 1}}) // so many removals pass
	ids := c.many(5000)
	extra := c.addUser("extra", nil)
	for _, size := range []int{10, 5000} {
		group := groupsPath + "/" + c.addGroup(fmt.Sprint("of ", size), ids[:size]...)
		b.Run(fmt.Sprint("into ", size), func(b *testing.B) {
			for i := range b.N {
				op := []string{"add", "remove"}[i%2]
				a := c.Patch(group, patchOf(object{"op": op, "path": "members", "value": valued([]string{extra})}))
				require.Equal(b, http.StatusNoContent, a.Status, "%s", a.Body)
			}
		})
	}
}
