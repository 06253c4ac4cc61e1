package organization_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/organization"
	"github.com/idplatform/idplatform/services/organization/internal/link"
	"github.com/idplatform/idplatform/services/organization/internal/member"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

// deepest is the depth of the deepest node of a generated tree.
const deepest = 12

// spot is a node of a generated tree. Its parent is the serial of another; parents come before children.
type spot struct {
	parent, depth, children int
}

// shape generates a tree of n nodes, the same in every run: every node with children has 2…200, with small numbers as
// likely as numbers ten times as large, and every level has about as many nodes. So trees of all sizes differ only in
// size.
func shape(n int) []spot {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	spots := make([]spot, 1, n)
	var open [deepest][]int // by depth
	open[0] = []int{0}
	for len(spots) < n {
		depth := r.IntN(deepest)
		there := open[depth]
		if len(there) == 0 {
			continue
		}
		at := r.IntN(len(there))
		parent := there[at]
		there[at] = there[len(there)-1]
		open[depth] = there[:len(there)-1]
		children := min(int(2*math.Pow(100, r.Float64())), n-len(spots))
		spots[parent].children = children
		for range children {
			if depth+1 < deepest {
				open[depth+1] = append(open[depth+1], len(spots))
			}
			spots = append(spots, spot{parent: parent, depth: depth + 1})
		}
	}
	return spots
}

// nodeName makes names like those of departments, half of them Chinese.
func nodeName(r *rand.Rand, n int) string {
	first := strings.Fields(
		"Customer Product Platform Corporate Regional Digital Supply Quality Data Field Human Public Brand Retail " +
			"Network")
	second := strings.Fields(
		"Success Design Engineering Finance Sales Operations Logistics Assurance Science Services Resources " +
			"Relations Marketing Support Security")
	places, things := []rune("东西南北中沪京粤浙川"), []rune("平台研发销售财务人力运营采购质量法务市场客服安全")
	if n%2 == 0 {
		return fmt.Sprintf("%s %s %d", first[r.IntN(len(first))], second[r.IntN(len(second))], n%100)
	}
	thing := 2 * r.IntN(len(things)/2)
	return fmt.Sprintf("%c%s%d部", places[r.IntN(len(places))], string(things[thing:thing+2]), n%100)
}

// population is a filled file, used first by the domain, to fill it, and then by the service.
type population struct {
	b       testing.TB
	ctx     context.Context
	trees   *tree.Trees
	members *member.Members
	client  *testkit.Client

	spots  []spot   // of the tree "company"
	ids    []string // of its nodes, by serial
	inner  []int    // serials of nodes that have children
	leaves []int
	users  int // their ids are user(0…users-1)

	nodesTook, membersTook time.Duration
	mebibytes              float64
	path                   string // of the service's file
	file                   *os.File
}

// warm reads the file, so that the system has it in memory: the benchmark compares sizes, not what the system happens
// to cache.
func (p *population) warm() {
	_, err := p.file.Seek(0, io.SeekStart)
	require.NoError(p.b, err)
	_, err = io.Copy(io.Discard, struct{ io.Reader }{p.file})
	require.NoError(p.b, err)
}

func user(n int) string { return fmt.Sprint(5_000_000 + n) }

// sinkhole accepts events in place of JetStream.
type sinkhole struct{}

func (sinkhole) Keep() time.Duration { return 0 }

func (sinkhole) Sync(context.Context) error { return nil }

func (sinkhole) Publish(_ context.Context, messages []docstore.Message) []error {
	return make([]error, len(messages))
}

// everyone stands for a users service that knows every user.
func everyone(b testing.TB, to *bus.Bus) {
	b.Helper()
	type ids struct {
		IDs []string `json:"ids"`
	}
	require.NoError(b, testkit.AnswerFor(to, "users", "existing", func(_ context.Context, q ids) (ids, error) {
		return q, nil
	}))
}

// populate fills a file and starts the service on a copy of it.
func populate(b testing.TB, nodes, memberships int) *population {
	b.Helper()
	p := &population{b: b, ctx: asBench(), spots: shape(nodes), users: memberships / 5}
	for n, s := range p.spots {
		if s.children > 0 {
			p.inner = append(p.inner, n)
		} else {
			p.leaves = append(p.leaves, n)
		}
	}
	p.open(fmt.Sprintf("%d-%d.db", nodes, memberships), func() {
		start := time.Now()
		p.addNodes()
		p.nodesTook = time.Since(start)
		start = time.Now()
		p.addMembers(memberships)
		p.membersTook = time.Since(start)
	})
	return p
}

// open starts the service on a copy of the file with a name, which fill makes. If IDP_BENCH_DIR names a folder, filled
// files stay there for the next run.
func (p *population) open(name string, fill func()) {
	b := p.b
	b.Helper()
	folder := os.Getenv("IDP_BENCH_DIR")
	if folder == "" {
		folder = b.TempDir()
	}
	filled := filepath.Join(folder, name)
	if _, err := os.Stat(filled); err == nil {
		p.find(filled)
	} else {
		p.fill(filled, fill)
	}
	p.path = filepath.Join(b.TempDir(), "organization.db")
	from, err := os.Open(filled)
	require.NoError(b, err)
	defer from.Close()
	p.file, err = os.Create(p.path)
	require.NoError(b, err)
	_, err = io.Copy(p.file, from)
	require.NoError(b, err)
	b.Cleanup(func() { _ = p.file.Close() })
	info, err := p.file.Stat()
	require.NoError(b, err)
	p.mebibytes = float64(info.Size()) / (1 << 20)

	s := testkit.Start(b, organization.Spec(), testkit.Options{File: p.path, Log: slog.New(slog.DiscardHandler)})
	(&rules{}).answer(b, s.Deps.Bus)
	everyone(b, s.Deps.Bus)
	p.client = in(s, "acme")
	p.use(s.Deps.Store, s.Deps.Bus)
}

func asBench() context.Context {
	return request.With(context.Background(), request.Info{Tenant: "acme", Actor: "bench"})
}

// use puts the domain on a store.
func (p *population) use(store *docstore.Store, users *bus.Bus) {
	p.members = member.New(member.Deps{Store: store, Bus: users, Log: slog.New(slog.DiscardHandler)})
	p.trees = tree.New(tree.Deps{
		Store: store, Bus: users, OnCondition: p.members.OnCondition,
		OnRemove: func(ctx context.Context, tx *docstore.Tx, n *tree.Node) error {
			return errors.Join(p.members.OnRemove(ctx, tx, n), link.OnRemove(ctx, tx, n))
		},
	})
}

// find reads what an earlier run has filled.
func (p *population) find(path string) {
	db, err := sqlitestore.Default(p.ctx, path)
	require.NoError(p.b, err)
	require.NoError(p.b, db.Query(p.ctx, "SELECT id FROM c_tree_nodes ORDER BY rid", nil,
		func(c sqlitestore.Columns) error {
			p.ids = append(p.ids, string(c.Bytes(0)))
			return nil
		}))
	require.NoError(p.b, db.Close())
}

// fill fills a file through the domain, a thousand records in a transaction like clients of the batch operations,
// beside a relay that empties the outbox. Progress goes to standard error.
func (p *population) fill(path string, fill func()) {
	users := start(p.b).Deps.Bus
	everyone(p.b, users)
	unfinished := path + ".part"
	engine, err := sqlitestore.Open(p.ctx, sqlitestore.Options{Path: unfinished, Log: slog.New(slog.DiscardHandler)})
	require.NoError(p.b, err)
	store, err := docstore.Open(p.ctx, engine, clock.System, organization.Spec().Defs()...)
	require.NoError(p.b, err)
	relay, err := outbox.StartRelay(store, sinkhole{}, slog.New(slog.DiscardHandler), nil)
	require.NoError(p.b, err)
	p.use(store, users)

	fill()
	for left := int64(1); left > 0; {
		left, err = store.Backlog(p.ctx)
		require.NoError(p.b, err)
	}
	require.NoError(p.b, relay.Stop(p.ctx))
	require.NoError(p.b, store.Close())
	require.NoError(p.b, os.Rename(unfinished, path))
}

const batchSize = 1000

func (p *population) addNodes() {
	report := progress("nodes", len(p.spots))
	p.ids = append(make([]string, 0, len(p.spots)), p.addTree("company"))
	r := rand.New(rand.NewPCG(uint64(len(p.spots)), 2))
	for from := 1; from < len(p.spots); from = len(p.ids) {
		to := min(from+batchSize, len(p.spots))
		drafts := make([]tree.Draft, 0, to-from)
		for n := from; n < to; n++ {
			d := tree.Draft{Ref: fmt.Sprint(n), Profile: tree.Profile{Name: nodeName(r, n), Seq: int64(r.IntN(100))}}
			if parent := p.spots[n].parent; parent < from {
				d.ParentID = p.ids[parent]
			} else {
				d.Parent = fmt.Sprint(parent)
			}
			drafts = append(drafts, d)
		}
		p.ids = append(p.ids, p.addBatch("company", drafts)...)
		report(len(p.ids))
	}
}

// addTree makes a core object and returns its root's id.
func (p *population) addTree(code string) string {
	doc, err := p.trees.CreateObject(p.ctx, tree.Object{Code: code, ObjectProfile: tree.ObjectProfile{Name: code}},
		tree.Draft{})
	require.NoError(p.b, err)
	object, err := doc.Value()
	require.NoError(p.b, err)
	return object.RootNodeID
}

// addBatch adds nodes and returns their ids.
func (p *population) addBatch(code string, drafts []tree.Draft) []string {
	added, err := p.trees.CreateMany(p.ctx, code, drafts)
	require.NoError(p.b, err)
	ids := make([]string, len(drafts))
	for i, record := range added.Items {
		ids[i], _, _ = strings.Cut(strings.TrimPrefix(string(record), `{"id":"`), `"`)
	}
	return ids
}

// addMembers gives nodes 0…10 members each, five on average, and users accordingly.
func (p *population) addMembers(n int) {
	report := progress("memberships", n)
	r := rand.New(rand.NewPCG(uint64(n), 3))
	drafts := make([]member.Draft, 0, batchSize)
	flush := func() {
		if len(drafts) == 0 {
			return
		}
		_, err := p.members.AddMany(p.ctx, drafts)
		require.NoError(p.b, err)
		drafts = drafts[:0]
	}
	added := 0
	for node := range p.spots {
		left := len(p.spots) - 1 - node
		size := min(max(r.IntN(11), n-added-10*left), n-added)
		here := map[int]bool{}
		for len(here) < size {
			u := r.IntN(p.users)
			if here[u] {
				continue
			}
			here[u] = true
			drafts = append(drafts, member.Draft{NodeID: p.ids[node], UserID: user(u),
				Profile: member.Profile{Seq: int64(r.IntN(10)), Title: []string{"", "架构师", "Analyst"}[r.IntN(3)]}})
			added++
			if len(drafts) == batchSize {
				flush()
				report(added)
			}
		}
	}
	flush()
	require.Equal(p.b, n, added)
}

// progress writes a line every few seconds.
func progress(what string, all int) func(done int) {
	start := time.Now()
	last, before := start, 0
	return func(done int) {
		if since := time.Since(last); since > 5*time.Second {
			fmt.Fprintf(os.Stderr, "%d of %d %s, %.0f/s now, %.0f/s in all\n", done, all, what,
				float64(done-before)/since.Seconds(), float64(done)/time.Since(start).Seconds())
			last, before = time.Now(), done
		}
	}
}
