package engine

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// size is how many rules and memberships a benchmark has: IDP_BENCH_RULES, or a tenth of a million.
func size() int {
	if n, err := strconv.Atoi(os.Getenv("IDP_BENCH_RULES")); err == nil {
		return n
	}
	return 100_000
}

func number(n int) string { return strconv.Itoa(1_048_576 + n) }

// large makes a tenant with n rules and n memberships: each user has a rule and two memberships, in nodes of chains of
// ten; each node has five rules.
func large(n int) *Tenant {
	t := NewTenant()
	users, resources, nodes := n/2, n/10, n/10
	t.Change(func(c *Change) {
		c.PutTree(&Tree{ID: "1", Code: "company", Name: "Company", Sequence: 1})
		for i := range resources {
			c.PutResource(&Resource{
				ID: "3" + number(i), ApplicationID: "9", Type: Data, Code: fmt.Sprint("record/", i),
				Actions: []string{"read", "write"}, Sequence: 1,
			})
		}
		for i := range nodes {
			node := &TreeNode{ID: "4" + number(i), Name: "Node", ObjectCode: "company", Sequence: 1}
			if i%10 > 0 {
				node.ParentID = "4" + number(i-1)
			}
			c.PutNode(node)
			c.PutUnit(&Unit{ID: "5" + number(i), Identity: Identity{Node, node.ID}, Sequence: 1})
		}
		for i := range users {
			id := "6" + number(i)
			c.PutPerson(&Person{ID: id, Username: "user-" + id, Sequence: 1})
			c.PutUnit(&Unit{ID: "7" + number(i), Identity: Identity{User, id}, Sequence: 1})
			for j := range 2 {
				c.PutMembership(&Membership{ID: "8" + number(2*i+j), NodeID: "4" + number((7*i+j*nodes/2)%nodes),
					UserID: id, Sequence: 1})
			}
		}
	})
	t.Change(func(c *Change) {
		read := []string{"read"}
		for i := range n {
			rule := &Rule{
				ID: "2" + number(i), UnitID: "7" + number(i%users), ApplicationID: "9", Type: Data,
				ResourceID: "3" + number(i%users%resources), Actions: read, Sequence: 1,
			}
			if i >= users {
				rule.UnitID = "5" + number(i%nodes)
			}
			c.PutRule(rule)
		}
	})
	return t
}

func ask(b *testing.B, s *State, q *Question) {
	b.Helper()
	d, err := s.Check(b.Context(), q)
	require.NoError(b, err)
	require.True(b, d.Allowed, "%+v", q)
	b.ReportAllocs()
	for b.Loop() {
		if d, _ := s.Check(b.Context(), q); !d.Allowed {
			b.Fatal("not allowed")
		}
	}
}

// asked is how many different users are asked about: so many that their records are not in the processor's caches.
const asked = 1 << 14

// askMany asks about asked users and their resources, which who returns.
func askMany(b *testing.B, s *State, who func(i int) (user string, resource int)) {
	b.Helper()
	many := make([]Question, asked)
	for i := range many {
		user, resource := who(i)
		many[i] = Question{
			Identity: Identity{User, user}, ApplicationID: "9", ObjectType: Data,
			ObjectID: "3" + number(resource%(size()/10)), Action: "read",
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if d, _ := s.Check(b.Context(), &many[i%len(many)]); !d.Allowed {
			b.Fatal("not allowed")
		}
	}
}

// grantFarAbove adds a user to the lowest of ten nodes, and grants the highest node a resource, a set, and a resource
// with a condition.
func grantFarAbove(t *Tenant) {
	t.Change(func(c *Change) {
		for i := range 10 {
			node := &TreeNode{ID: fmt.Sprint("deep", i), Name: "Deep", ObjectCode: "company", Sequence: 1}
			if i > 0 {
				node.ParentID = fmt.Sprint("deep", i-1)
			}
			c.PutNode(node)
		}
		c.PutPerson(&Person{ID: "below", Username: "below", Sequence: 1})
		c.PutMembership(&Membership{ID: "m", NodeID: "deep9", UserID: "below", Sequence: 1})
		c.PutUnit(&Unit{ID: "u", Identity: Identity{Node, "deep0"}, Sequence: 1})
		c.PutSet(&Set{ID: "set", ApplicationID: "9", Code: "set", Sequence: 1})
		c.PutMember(&Member{ID: "sm", SetID: "set", ResourceID: "3" + number(1), Actions: []string{Any}, Sequence: 1})
		c.PutRule(&Rule{ID: "r1", UnitID: "u", ApplicationID: "9", Type: Data, ResourceID: "3" + number(0),
			Actions: []string{"read"}, Sequence: 1})
		c.PutRule(&Rule{ID: "r2", UnitID: "u", ApplicationID: "9", Type: ResourceSet, SetID: "set",
			Actions: []string{"read"}, Sequence: 1})
		c.PutRule(&Rule{ID: "r3", UnitID: "u", ApplicationID: "9", Type: Data, ResourceID: "3" + number(2),
			Actions:   []string{"read"},
			Condition: &Condition{Text: `context.ip.startsWith("10.")`}, Sequence: 1})
	})
}

// growTree adds a tree of ten levels, whose nodes have three children each, a user in one of the lowest nodes for each
// that is asked about, and a grant to the root.
func growTree(t *Tenant) {
	const nodes = 29_524 // 3^0 + 3^1 + … + 3^9
	const lowest = 19_683
	t.Change(func(c *Change) {
		for i := range nodes {
			node := &TreeNode{ID: "tree" + number(i), Name: "Node", ObjectCode: "company", Sequence: 1}
			if i > 0 {
				node.ParentID = "tree" + number((i-1)/3)
			}
			c.PutNode(node)
		}
		for i := range asked {
			id := "leaf" + number(i)
			c.PutPerson(&Person{ID: id, Username: id, Sequence: 1})
			c.PutMembership(&Membership{
				ID: "m" + id, NodeID: "tree" + number(nodes-1-i*7919%lowest), UserID: id, Sequence: 1,
			})
		}
		c.PutUnit(&Unit{ID: "root", Identity: Identity{Node, "tree" + number(0)}, Sequence: 1})
		c.PutRule(&Rule{ID: "of root", UnitID: "root", ApplicationID: "9", Type: Data, ResourceID: "3" + number(3),
			Actions: []string{"read"}, Sequence: 1})
	})
}

func BenchmarkCheck(b *testing.B) {
	t := large(size())
	t.Change(func(c *Change) { // users who belong to nothing
		for i := range asked {
			id := "1" + number(i)
			c.PutPerson(&Person{ID: id, Username: "lone-" + id, Sequence: 1})
			c.PutUnit(&Unit{ID: "2" + id, Identity: Identity{User, id}, Sequence: 1})
			c.PutRule(&Rule{
				ID: "3" + id, UnitID: "2" + id, ApplicationID: "9", Type: Data, ResourceID: "3" + number(i%(size()/10)),
				Actions: []string{"read"}, Sequence: 1,
			})
		}
	})
	b.Run("direct, other users each time", func(b *testing.B) {
		askMany(b, t.State(), func(i int) (string, int) { return "1" + number(i), i })
	})
	b.Run("direct, other users of two nodes each time", func(b *testing.B) {
		askMany(b, t.State(), func(i int) (string, int) {
			user := i * 7919 % (size() / 2)
			return "6" + number(user), user
		})
	})
	growTree(t)
	b.Run("depth 10, other users each time", func(b *testing.B) {
		askMany(b, t.State(), func(i int) (string, int) { return "leaf" + number(i), 3 })
	})
	grantFarAbove(t)
	below := Question{Identity: Identity{User, "below"}, ApplicationID: "9", ObjectType: Data, Action: "read"}
	for i, name := range []string{"depth 10", "depth 10 and a set", "depth 10 and a condition"} {
		b.Run(name, func(b *testing.B) {
			q := below
			q.ObjectCode, q.Context = fmt.Sprint("record/", i), []byte(`{"ip":"10.0.0.1"}`)
			ask(b, t.State(), &q)
		})
	}
	b.Run("one write", func(b *testing.B) {
		b.ReportAllocs()
		for i := int64(2); b.Loop(); i++ {
			t.Change(func(c *Change) {
				c.PutRule(&Rule{
					ID: "2" + number(int(i)%size()), UnitID: "u", ApplicationID: "9", Type: Data,
					ResourceID: "3" + number(int(i)%(size()/10)), Actions: []string{"read"}, Sequence: i,
				})
			})
		}
	})
}

// BenchmarkCheckBesideWrites measures checks of users of two nodes, first alone, then beside 500 changes a second.
// BenchmarkPrivileges reads pages of 20 of all that is granted in an application.
func BenchmarkPrivileges(b *testing.B) {
	s := large(size()).State()
	f := PrivilegeFilter{ApplicationID: "9", Now: 1000}
	for name, page := range map[string]PrivilegePage{
		"first page":        {Limit: 20, Count: true},
		"page 400":          {Limit: 20, Offset: 8000, Count: true},
		"last, descending":  {Limit: 20, Sort: []By{{"rule_id", true}}, Count: true},
		"sorted by a name":  {Limit: 20, Sort: []By{{"identity_name", false}}, Count: true},
		"what is of a user": {Limit: 20, Count: true},
	} {
		b.Run(name, func(b *testing.B) {
			f := f
			if name == "what is of a user" {
				f.Identity.ID = "6" + number(1)
			}
			b.ReportAllocs()
			for b.Loop() {
				list, err := s.Privileges(b.Context(), f, page)
				require.NoError(b, err)
				require.NotEmpty(b, list.Lines)
			}
		})
	}
}

func BenchmarkCheckBesideWrites(b *testing.B) {
	t := large(size())
	latency := func() (p50, p99 time.Duration) {
		took := make([]time.Duration, 100_000)
		for i := range took {
			user := i * 7919 % (size() / 2)
			q := Question{
				Identity: Identity{User, "6" + number(user)}, ApplicationID: "9", ObjectType: Data,
				ObjectID: "3" + number(user%(size()/10)), Action: "read",
			}
			began := time.Now()
			d, err := t.State().Check(b.Context(), &q)
			took[i] = time.Since(began)
			if err != nil || !d.Allowed {
				b.Fatal("not allowed")
			}
		}
		slices.Sort(took)
		return took[len(took)/2], took[len(took)*99/100]
	}
	sequence := int64(1)
	write := func() {
		sequence++
		n := int(sequence) % size()
		t.Change(func(c *Change) {
			c.PutRule(&Rule{
				ID: "2" + number(n), UnitID: "7" + number(n%(size()/2)), ApplicationID: "9", Type: Data,
				ResourceID: "3" + number(n%(size()/2)%(size()/10)), Actions: []string{"read"}, Sequence: sequence,
			})
		})
	}
	var ratios, alone, beside []float64
	for range 5 {
		_, quiet := latency()
		ctx, stop := context.WithCancel(b.Context())
		var writer sync.WaitGroup
		writer.Go(func() {
			for tick := time.NewTicker(2 * time.Millisecond); ctx.Err() == nil; <-tick.C {
				write()
			}
		})
		_, busy := latency()
		stop()
		writer.Wait()
		alone, beside = append(alone, float64(quiet.Nanoseconds())), append(beside, float64(busy.Nanoseconds()))
		ratios = append(ratios, float64(busy)/float64(quiet))
	}
	for _, list := range [][]float64{alone, beside, ratios} {
		slices.Sort(list)
	}
	b.ReportMetric(alone[2], "p99-ns-alone")
	b.ReportMetric(beside[2], "p99-ns-beside-writes")
	b.ReportMetric(ratios[2], "p99-of-alone")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMemory measures the memory for a rule and a membership, including their shares of units, users and nodes.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		before := heapInUse()
		t := large(size())
		b.ReportMetric(float64(heapInUse()-before)/float64(size()), "B/rule+membership")
		runtime.KeepAlive(t)
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
