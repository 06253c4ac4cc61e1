package organization_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/organization/internal/member"
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

// operation prepares one of many like it, at random, and returns what is to be timed.
type operation func(p *population, r *rand.Rand) func() error

// BenchmarkSizes compares what operations of the domain take with 10,000 nodes and with many more.
func BenchmarkSizes(b *testing.B) {
	s := start(b)
	everyone(b, s.Deps.Bus)
	few, many := populate(b, s.Deps.Bus, 10_000, 50_000), populate(b, s.Deps.Bus, benchSize(b), 5*benchSize(b))
	for _, p := range []*population{few, many} {
		b.Run(fmt.Sprintf("load of %d", len(p.ids)), func(b *testing.B) {
			b.ReportMetric(float64(len(p.ids))/p.nodesTook.Seconds(), "nodes/s")
			b.ReportMetric(5*float64(len(p.ids))/p.membersTook.Seconds(), "members/s")
			b.ReportMetric(p.mebibytes, "MiB")
			b.ReportMetric(0, "ns/op")
		})
	}
	for _, c := range []struct {
		name string
		do   operation
	}{
		{"get", getNode},
		{"children page", childrenPage},
		{"ancestors", ancestors},
		{"members of a node and below", membersPage((*population).anyInner, false)},
		{"members of a node and below, with total", membersPage((*population).anyInner, true)},
		{"members of the root and below", membersPage((*population).root, false)},
		{"members of the root and below, with total", membersPage((*population).root, true)},
		{"members of the root and below, deep", deepMembersPage},
		{"memberships of a user", membershipsOfUser},
		{"add a node", addOne},
		{"move a leaf", moveLeaf},
		{"add a member", addMember},
	} {
		b.Run(c.name, func(b *testing.B) { compare(b, few, many, c.do) })
	}
	for _, p := range []*population{few, many} {
		b.Run(fmt.Sprintf("batch of 1000 nodes among %d", len(p.ids)), func(b *testing.B) { addThousand(b, p) })
		b.Run(fmt.Sprintf("move of 10000 nodes among %d", len(p.ids)), func(b *testing.B) { moveMany(b, p) })
	}
}

// compare takes samples in turn, so that both sizes see the same moods of the machine.
func compare(b *testing.B, few, many *population, do operation) {
	const least, block, during = 1000, 20, 4 * time.Second
	few.warm()
	many.warm()
	r := rand.New(rand.NewPCG(1, 2))
	var took [2][]time.Duration
	var read [2]float64
	for begun := time.Now(); time.Since(begun) < during || len(took[0]) < least && time.Since(begun) < 10*during; {
		for i, p := range []*population{few, many} {
			already := fromDisk()
			for range block {
				timed := do(p, r)
				before := time.Now()
				err := timed()
				took[i] = append(took[i], time.Since(before))
				require.NoError(b, err)
			}
			read[i] += fromDisk() - already
		}
	}
	p99 := [2]float64{}
	for i, name := range []string{"few", "many"} {
		all := took[i][block:] // the first ones found nothing warm
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

// fromDisk is how many bytes this program has made a disk read so far, where the system tells: a p99 with some of them is the disk's.
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

func getNode(p *population, r *rand.Rand) func() error {
	id := p.any(r)
	return func() error {
		doc, err := p.trees.Get(p.ctx, id)
		if err == nil {
			_, err = doc.JSON()
		}
		return err
	}
}

func childrenPage(p *population, r *rand.Rand) func() error {
	id := p.anyInner(r)
	return func() error {
		selected, err := p.trees.Children(p.ctx, id, 1)
		if err != nil {
			return err
		}
		_, err = p.trees.List(p.ctx, selected, docstore.Query{Filter: selected.Filter, Sort: []docstore.Order{{Index: "seq"}}, Limit: 50, Count: true})
		return err
	}
}

func ancestors(p *population, r *rand.Rand) func() error {
	id := p.any(r)
	return func() error {
		_, err := p.trees.Ancestors(p.ctx, id)
		return err
	}
}

func membersPage(of func(*population, *rand.Rand) string, count bool) operation {
	return func(p *population, r *rand.Rand) func() error {
		q := member.Query{NodeID: of(p, r), Recursive: true, Limit: 50, Count: count}
		return func() error {
			_, err := p.members.Users(p.ctx, q)
			return err
		}
	}
}

// deepMembersPage asks for the page behind a user, any of them, as a page token would that ends with the user.
func deepMembersPage(p *population, r *rand.Rand) func() error {
	first, err := p.members.Users(p.ctx, member.Query{NodeID: p.ids[0], Recursive: true, Limit: 1})
	require.NoError(p.b, err)
	text, err := base64.RawURLEncoding.DecodeString(first.Next)
	require.NoError(p.b, err)
	var token struct {
		Query uint64 `json:"q"`
		Path  string `json:"p"`
		Order string `json:"o"`
	}
	require.NoError(p.b, json.Unmarshal(text, &token))
	token.Path = ""
	for token.Path == "" { // a few users have no memberships
		has, err := p.members.OfUser(p.ctx, user(r.IntN(p.users)))
		require.NoError(p.b, err)
		for _, shown := range has {
			var m struct {
				ID     string `json:"id"`
				NodeID string `json:"node_id"`
				Seq    int64  `json:"seq"`
			}
			require.NoError(p.b, json.Unmarshal(shown.JSON, &m))
			nodes, err := tree.Find(p.ctx, p.store, m.NodeID)
			require.NoError(p.b, err)
			if path := nodes[m.NodeID].PathText(); token.Path == "" || path < token.Path {
				token.Path, token.Order = path, m.NodeID+"/"+tree.OrderText(m.Seq)+"/"+m.ID
			}
		}
	}
	text, err = json.Marshal(token)
	require.NoError(p.b, err)
	q := member.Query{NodeID: p.ids[0], Recursive: true, Limit: 50, After: base64.RawURLEncoding.EncodeToString(text)}
	return func() error {
		_, err := p.members.Users(p.ctx, q)
		return err
	}
}

func membershipsOfUser(p *population, r *rand.Rand) func() error {
	id := user(r.IntN(p.users))
	return func() error {
		_, err := p.members.OfUser(p.ctx, id)
		return err
	}
}

// parent is any node that can have one more child.
func (p *population) parent(r *rand.Rand) string {
	for {
		if n := p.inner[r.IntN(len(p.inner))]; p.spots[n].depth < deepest {
			return p.ids[n]
		}
	}
}

func addOne(p *population, r *rand.Rand) func() error {
	draft := tree.Draft{ParentID: p.parent(r), Profile: tree.Profile{Name: nodeName(r, r.IntN(1000))}}
	return func() error {
		_, err := p.trees.Create(p.ctx, "company", draft)
		return err
	}
}

func moveLeaf(p *population, r *rand.Rand) func() error {
	leaf, to := p.ids[p.leaves[r.IntN(len(p.leaves))]], p.parent(r)
	return func() error {
		_, err := p.trees.Update(p.ctx, leaf, func(n *tree.Node) error { n.ParentID = to; return nil })
		return err
	}
}

func addMember(p *population, r *rand.Rand) func() error {
	draft := member.Draft{NodeID: p.any(r), UserID: user(p.users + r.IntN(1<<40))}
	return func() error {
		_, err := p.members.Add(p.ctx, draft)
		return err
	}
}

func addThousand(b *testing.B, p *population) {
	r := rand.New(rand.NewPCG(1, 3))
	var worst time.Duration
	for b.Loop() {
		drafts := make([]tree.Draft, 1000)
		for i := range drafts {
			drafts[i] = tree.Draft{ParentID: p.parent(r), Profile: tree.Profile{Name: nodeName(r, i)}}
		}
		before := time.Now()
		p.addBatch("company", drafts)
		worst = max(worst, time.Since(before))
	}
	b.ReportMetric(worst.Seconds()*1000, "worst-ms")
}

// moveMany moves a branch to and fro, in a tree of its own: a tree of 10,000 nodes has none that large.
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
	var worst time.Duration
	for to := 1; b.Loop(); to = 1 - to {
		before := time.Now()
		_, err := p.trees.Update(p.ctx, branch[0], func(n *tree.Node) error { n.ParentID = ends[to]; return nil })
		require.NoError(b, err)
		worst = max(worst, time.Since(before))
	}
	b.ReportMetric(worst.Seconds()*1000, "worst-ms")
}
