package organization_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

// benchSize is the larger of the two sizes in nodes; each has five times as many memberships.
func benchSize(b *testing.B) int {
	b.Helper()
	text := os.Getenv("IDP_BENCH_NODES")
	if text == "" {
		return 100_000
	}
	n, err := strconv.Atoi(text)
	require.NoError(b, err)
	return n
}

// operation returns one of many similar requests, at random.
type operation func(p *population, r *rand.Rand) ask

// BenchmarkSizes compares the times of requests with 10,000 nodes and with many more, in the handler, without sockets.
func BenchmarkSizes(b *testing.B) {
	few, many := populate(b, 10_000, 50_000), populate(b, benchSize(b), 5*benchSize(b))
	for _, p := range []*population{few, many} {
		b.Run(fmt.Sprintf("load of %d", len(p.ids)), func(b *testing.B) {
			b.ReportMetric(float64(len(p.ids))/p.nodesTook.Seconds(), "nodes/s")
			b.ReportMetric(5*float64(len(p.ids))/p.membersTook.Seconds(), "members/s")
			b.ReportMetric(p.mebibytes, "MiB")
			b.ReportMetric(0, "ns/op")
		})
	}
	b.Run("read a page of the file", func(b *testing.B) { compare(b, few, many, readPage) })
	for _, c := range []struct {
		name string
		do   operation
	}{
		{"get", func(p *population, r *rand.Rand) ask { return get("/v1/tree-nodes/" + p.any(r)) }},
		{"children page", func(p *population, r *rand.Rand) ask {
			return get("/v1/tree-nodes/" + p.anyInner(r) + "/children?page_size=50")
		}},
		{"ancestors", func(p *population, r *rand.Rand) ask { return get("/v1/tree-nodes/" + p.any(r) + "/parent") }},
		{"members of a node and below", membersPage((*population).anyInner, "&count=false")},
		{"members of a node and below, with total", membersPage((*population).anyInner, "")},
		{"members of the root and below", membersPage((*population).root, "&count=false")},
		{"members of the root and below, with total", membersPage((*population).root, "")},
		{"members of the root and below, deep", deepMembersPage},
		{"memberships of a user", func(p *population, r *rand.Rand) ask {
			return get("/v1/tree-users?user_id=" + user(r.IntN(p.users)))
		}},
		{"nodes by a part of the name", namePart},
		{"add a node", addNodeAnywhere},
		{"move a leaf", moveLeaf},
		{"add a member", addMember},
	} {
		b.Run(c.name, func(b *testing.B) {
			compare(b, few, many, func(p *population, r *rand.Rand) func() {
				asked := c.do(p, r)
				return func() { asked(p.client).OK(nil) }
			})
		})
	}
	for _, p := range []*population{few, many} {
		b.Run(fmt.Sprintf("batch of 1000 nodes among %d", len(p.ids)), func(b *testing.B) { addThousand(b, p) })
		b.Run(fmt.Sprintf("move of 10000 nodes among %d", len(p.ids)), func(b *testing.B) { moveMany(b, p) })
	}
}

// compare takes samples of both sizes in turn, so that changes in the machine's load affect both.
func compare(b *testing.B, few, many *population, prepare func(*population, *rand.Rand) func()) {
	const least, block, during = 1000, 20, 4 * time.Second
	few.warm()
	many.warm()
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2)) // files may have been used before
	var took [2][]time.Duration
	var read [2]float64
	for begun := time.Now(); time.Since(begun) < during || len(took[0]) < least && time.Since(begun) < 10*during; {
		for i, p := range []*population{few, many} {
			already := fromDisk()
			for range block {
				timed := prepare(p, r)
				before := time.Now()
				timed()
				took[i] = append(took[i], time.Since(before))
			}
			read[i] += fromDisk() - already
		}
	}
	p99 := [2]float64{}
	for i, name := range []string{"few", "many"} {
		all := took[i][block:] // the first samples ran with cold caches
		slices.Sort(all)
		micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
		p99[i] = micros(all[len(all)*99/100])
		b.ReportMetric(micros(all[len(all)/2]), "p50-µs-"+name)
		b.ReportMetric(p99[i], "p99-µs-"+name)
		b.ReportMetric(read[i]/float64(len(took[i])), "disk-B-"+name)
	}
	b.ReportMetric(p99[1]/p99[0], "p99-ratio")
	b.ReportMetric(0, "ns/op")
}

// fromDisk is how many bytes this program has read from a disk so far, where the system reports it: if a sample has
// any, its p99 is that of the disk.
func fromDisk() float64 {
	text, _ := os.ReadFile("/proc/self/io")
	_, after, _ := strings.Cut(string(text), "\nread_bytes: ")
	line, _, _ := strings.Cut(after, "\n")
	n, _ := strconv.ParseFloat(line, 64)
	return n
}

func (p *population) any(r *rand.Rand) string      { return p.ids[r.IntN(len(p.ids))] }
func (p *population) anyInner(r *rand.Rand) string { return p.ids[p.inner[r.IntN(len(p.inner))]] }
func (p *population) root(*rand.Rand) string       { return p.ids[0] }

// readPage reads as many bytes as the store reads at a time, from a random place in its file: it measures how long the
// machine takes for data that have not been read for a while.
func readPage(p *population, r *rand.Rand) func() {
	const size = 4096
	page := make([]byte, size)
	at := r.Int64N(int64(p.mebibytes*(1<<20))/size) * size
	return func() {
		_, err := p.file.ReadAt(page, at)
		require.NoError(p.b, err)
	}
}

func membersPage(of func(*population, *rand.Rand) string, more string) operation {
	return func(p *population, r *rand.Rand) ask {
		return get("/v1/tree-nodes/" + of(p, r) + "/users?recursive=true&page_size=50" + more)
	}
}

// deepMembersPage requests the page after any user, with the token that a page ending with the user would have.
func deepMembersPage(p *population, r *rand.Rand) ask {
	path := "/v1/tree-nodes/" + p.ids[0] + "/users?recursive=true&count=false"
	first, _ := p.client.Get(path + "&page_size=1").Object()["next_page_token"].(string)
	text, err := base64.RawURLEncoding.DecodeString(first)
	require.NoError(p.b, err)
	var token struct {
		Query uint64 `json:"q"`
		After []byte `json:"a"`
	}
	require.NoError(p.b, json.Unmarshal(text, &token))
	var place struct {
		Path  string `json:"p"`
		Order string `json:"o"`
	}
	for place.Path == "" { // a few users have no memberships
		var has []struct {
			ID     string `json:"id"`
			NodeID string `json:"node_id"`
			UserID string `json:"user_id"`
			Seq    int64  `json:"seq"`
		}
		p.client.Get("/v1/tree-users?user_id=" + user(r.IntN(p.users))).OK(&has)
		for _, m := range has {
			var n struct {
				Path []string `json:"path"`
			}
			p.client.Get("/v1/tree-nodes/" + m.NodeID).OK(&n)
			if path := strings.Join(n.Path, "/") + "/"; place.Path == "" || path < place.Path {
				place.Path, place.Order = path, tree.OrderText(m.Seq)+"/"+m.ID+"/"+m.UserID
			}
		}
	}
	token.After, err = json.Marshal(place)
	require.NoError(p.b, err)
	text, err = json.Marshal(token)
	require.NoError(p.b, err)
	return get(path + "&page_size=50&page_token=" + base64.RawURLEncoding.EncodeToString(text))
}

// namePart searches a node that it has added, by a part of its name that no other node has. Searches with more matches
// cost more for each match.
func namePart(p *population, r *rand.Rand) ask {
	part := fmt.Sprint("ustomer Success ", r.Int64())
	added := object{"object_code": "company", "parent_id": p.parent(r), "name": "C" + part}
	p.client.Post("/v1/tree-nodes", added).OK(nil)
	return get("/v1/tree-nodes?object_code=company&page_size=50&name=" + url.QueryEscape(part))
}

// parent is any node that can have one more child.
func (p *population) parent(r *rand.Rand) string {
	for {
		if n := p.inner[r.IntN(len(p.inner))]; p.spots[n].depth < deepest {
			return p.ids[n]
		}
	}
}

func addNodeAnywhere(p *population, r *rand.Rand) ask {
	return post("/v1/tree-nodes", object{"object_code": "company", "parent_id": p.parent(r),
		"name": nodeName(r, r.IntN(1000))})
}

func moveLeaf(p *population, r *rand.Rand) ask {
	return patch("/v1/tree-nodes/"+p.ids[p.leaves[r.IntN(len(p.leaves))]], object{"parent_id": p.parent(r)})
}

func addMember(p *population, r *rand.Rand) ask {
	return post("/v1/tree-users", object{"node_id": p.any(r), "user_id": user(p.users + r.IntN(1<<40))})
}

func addThousand(b *testing.B, p *population) {
	r := rand.New(rand.NewPCG(1, 3))
	worst(b, func() func() {
		items := make([]object, 1000)
		for i := range items {
			items[i] = object{"parent_id": p.parent(r), "name": nodeName(r, i)}
		}
		return func() {
			p.client.Post("/v1/batch/tree-nodes", object{"object_code": "company", "items": items}).OK(nil)
		}
	})
}

// moveMany moves a branch back and forth, in a tree of its own: a tree of 10,000 nodes has none that large.
func moveMany(b *testing.B, p *population) {
	code := fmt.Sprint("matrix", time.Now().UnixNano())
	p.addTree(code)
	ends := p.addBatch(code, []tree.Draft{{Profile: tree.Profile{Name: "east"}}, {Profile: tree.Profile{Name: "west"}}})
	r := rand.New(rand.NewPCG(1, 4))
	spots := shape(10_000)
	branch := p.addBatch(code, []tree.Draft{{ParentID: ends[0], Profile: tree.Profile{Name: "branch"}}})
	for len(branch) < len(spots) {
		drafts := make([]tree.Draft, min(batchSize, len(spots)-len(branch)))
		for i := range drafts {
			n := len(branch) + i
			drafts[i] = tree.Draft{Ref: fmt.Sprint(n), Profile: tree.Profile{Name: nodeName(r, n)}}
			if parent := spots[n].parent; parent < len(branch) {
				drafts[i].ParentID = branch[parent]
			} else {
				drafts[i].Parent = fmt.Sprint(parent)
			}
		}
		branch = append(branch, p.addBatch(code, drafts)...)
	}
	to := 0
	worst(b, func() func() {
		to = 1 - to
		return func() { p.client.Patch("/v1/tree-nodes/"+branch[0], object{"parent_id": ends[to]}).OK(nil) }
	})
}

// worst reports the slowest of some requests beside their mean.
func worst(b *testing.B, prepare func() func()) {
	b.Helper()
	var slowest time.Duration
	for b.Loop() {
		b.StopTimer()
		do := prepare()
		b.StartTimer()
		before := time.Now()
		do()
		slowest = max(slowest, time.Since(before))
	}
	b.ReportMetric(slowest.Seconds()*1000, "worst-ms")
}
