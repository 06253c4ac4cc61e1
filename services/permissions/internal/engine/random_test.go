package engine_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/permissions/internal/engine"
	"github.com/idplatform/idplatform/services/permissions/internal/enginetest"
)

var (
	codes   = []string{"a", "b", "ab", "team/a", "team/b", "x.y"}
	actions = []string{"read", "write", "admin"}
	apps    = []string{"app1", "app2"}
)

// simulation makes the same changes in a world and in a tenant.
type simulation struct {
	*rand.Rand
	world    *enginetest.World
	tenant   *engine.Tenant
	sequence int64
	ids      int
	old      []func(*engine.Change) // earlier puts, to be repeated
	gone     map[string]bool        // ids of dropped records
}

func newSimulation(seed uint64) *simulation {
	return &simulation{
		Rand:   rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // a test's
		tenant: engine.NewTenant(), gone: map[string]bool{},
		world: enginetest.NewWorld(),
	}
}

// id returns a new id or, in one of four cases, that of an existing record.
func id[V any](s *simulation, there map[string]V) (id string, exists bool) {
	if len(there) > 3 && s.IntN(4) == 0 {
		return pick(s, there), true
	}
	s.ids++
	return strconv.Itoa(s.ids), false
}

// pick is a random key of a map; "0", which no record has, if the map is empty.
func pick[V any](s *simulation, m map[string]V) string {
	if len(m) == 0 {
		return "0"
	}
	keys := slices.Sorted(maps.Keys(m))
	return keys[s.IntN(len(keys))]
}

func one[V any](s *simulation, values []V) V { return values[s.IntN(len(values))] }

// some are random actions of a rule or a member.
func (s *simulation) some() []string {
	if s.IntN(4) == 0 {
		return []string{engine.Any}
	}
	return []string{one(s, actions)}
}

// put puts a record into the world and the tenant. The same put may be repeated later.
func put[V any](s *simulation, there map[string]V, id string, v V, apply func(*engine.Change, V)) {
	there[id] = v
	replay := func(c *engine.Change) { apply(c, v) }
	s.tenant.Change(replay)
	s.old = append(s.old, func(c *engine.Change) {
		if !s.gone[id] { // ids are not reused, and the events of a record come in order
			replay(c)
		}
	})
}

func drop[V any](s *simulation, there map[string]V, apply func(*engine.Change, V)) {
	if len(there) < 3 {
		return
	}
	id := pick(s, there)
	v := there[id]
	delete(there, id)
	s.gone[id] = true
	s.tenant.Change(func(c *engine.Change) { apply(c, v) })
}

func (s *simulation) identity() engine.Identity {
	switch s.IntN(8) {
	case 0, 1, 2:
		return engine.Identity{engine.User, pick(s, s.world.People)}
	case 3, 4:
		return engine.Identity{engine.Node, pick(s, s.world.Nodes)}
	case 5:
		return engine.Identity{engine.CoreObject, pick(s, s.world.Trees)}
	case 6:
		return one(s, []engine.Identity{{engine.Group, "g1"}, {engine.Group, "g2"}, {engine.Application, "7001"},
			{engine.Application, "7002"}})
	}
	return engine.Identity{engine.Everyone, engine.Any}
}

// step makes one random change.
func (s *simulation) step() {
	s.sequence++
	w, seq := s.world, s.sequence
	switch s.IntN(15) {
	case 0:
		s.resource(seq)
	case 1:
		id, _ := id(s, w.Members)
		if old := w.Members[id]; old != nil {
			put(s, w.Members, id, &engine.Member{id, old.SetID, old.ResourceID, s.some(), seq},
				(*engine.Change).PutMember)
		} else {
			m := &engine.Member{id, one(s, []string{"s1", "s2", "s3"}), pick(s, w.Resources), s.some(), seq}
			for _, other := range w.Members {
				if other.SetID == m.SetID && other.ResourceID == m.ResourceID {
					return // taken
				}
			}
			put(s, w.Members, id, m, (*engine.Change).PutMember)
		}
	case 2, 3, 4:
		s.rule(seq)
	case 5:
		who := s.identity()
		for _, u := range w.Units {
			if u.Identity == who {
				return
			}
		}
		id, _ := id(s, map[string]int{})
		put(s, w.Units, id, &engine.Unit{id, who, "Unit " + id, seq}, (*engine.Change).PutUnit)
	case 6:
		id, there := id(s, w.People)
		put(s, w.People, id, &engine.Person{ID: id, Username: fmt.Sprint("user", id, there), Disabled: s.IntN(8) == 0,
			Sequence: seq}, (*engine.Change).PutPerson)
	case 7:
		s.node(seq)
	case 8, 9:
		id, _ := id(s, map[string]int{})
		put(s, w.Memberships, id, &engine.Membership{id, pick(s, w.Nodes), pick(s, w.People), seq},
			(*engine.Change).PutMembership)
	case 10:
		id, _ := id(s, map[string]int{})
		put(s, w.Groups, id, &engine.GroupMember{id, pick(s, w.Units), pick(s, w.People), seq},
			(*engine.Change).PutGroupMember)
	case 11, 12:
		s.drop()
	case 14:
		id := one(s, []string{"7001", "7002"})
		put(s, w.Callers, id, &engine.Caller{id, "Shop", seq}, (*engine.Change).PutCaller)
	case 13:
		if len(s.old) > 0 { // an event comes again
			s.tenant.Change(one(s, s.old))
		}
	}
}

func (s *simulation) resource(seq int64) {
	w := s.world
	id, there := id(s, w.Resources)
	kind := one(s, []string{engine.Data, engine.UI})
	r := &engine.Resource{ID: id, ApplicationID: one(s, apps), Type: kind, Code: one(s, codes),
		Global: s.IntN(3) == 0, Sequence: seq}
	if there {
		old := w.Resources[id]
		r.ApplicationID, r.Type, r.Code, r.Global = old.ApplicationID, old.Type, old.Code, old.Global
	}
	if s.IntN(8) > 0 {
		r.Actions = actions[:1+s.IntN(3)]
	}
	for _, other := range w.Resources {
		if other.ID != id && other.ApplicationID == r.ApplicationID && other.Type == r.Type && other.Code == r.Code {
			return // taken
		}
	}
	put(s, w.Resources, id, r, (*engine.Change).PutResource)
}

func (s *simulation) rule(seq int64) {
	id, _ := id(s, s.world.Rules)
	r := s.anyRule()
	r.ID, r.UnitID, r.Sequence, r.Created = id, pick(s, s.world.Units), seq, seq%97
	put(s, s.world.Rules, id, r, (*engine.Change).PutRule)
}

// anyRule is a rule of no unit.
func (s *simulation) anyRule() *engine.Rule {
	w := s.world
	r := &engine.Rule{ApplicationID: one(s, apps),
		Type:    one(s, []string{engine.Data, engine.Data, engine.Wildcard, engine.ResourceSet, engine.App}),
		Actions: s.some(), Deny: s.IntN(4) == 0}
	switch r.Type {
	case engine.Data:
		r.ResourceID = pick(s, w.Resources)
		if about := w.Resources[r.ResourceID]; about != nil && !about.Global {
			r.ApplicationID = about.ApplicationID
		}
	case engine.Wildcard:
		r.Code = one(s, []string{"", "a*", "*b", "team/?", "*.*"})
	case engine.ResourceSet:
		r.SetID = one(s, []string{"s1", "s2", "s3"})
	}
	if s.IntN(5) == 0 {
		r.Condition = &engine.Condition{Text: one(s, []string{"resource.code != 'a'", "context.level > 5",
			"context.level == 3"})}
	}
	if s.IntN(5) == 0 {
		r.From = int64(s.IntN(100))
		r.To = r.From + int64(s.IntN(50))
	}
	return r
}

// node adds a node, or moves one, but never below itself.
func (s *simulation) node(seq int64) {
	w := s.world
	if len(w.Trees) < 2 {
		s.ids++
		id := strconv.Itoa(s.ids)
		put(s, w.Trees, id, &engine.Tree{id, "tree" + id, "Tree", seq}, (*engine.Change).PutTree)
		return
	}
	id, there := id(s, w.Nodes)
	n := &engine.TreeNode{ID: id, Name: "Node", ObjectCode: w.Trees[pick(s, w.Trees)].Code, Sequence: seq,
		Disabled: s.IntN(6) == 0}
	if target := pick(s, w.Nodes); target != "" && target != id && s.IntN(6) == 0 {
		n.PointerID = target
	}
	if parent := w.Nodes[pick(s, w.Nodes)]; parent != nil && s.IntN(4) > 0 {
		n.ParentID, n.ObjectCode = parent.ID, parent.ObjectCode
		for at := parent; at != nil; at = w.Nodes[at.ParentID] {
			if at.ID == id {
				return
			}
		}
	}
	if there && n.ObjectCode != w.Nodes[id].ObjectCode {
		return
	}
	put(s, w.Nodes, id, n, (*engine.Change).PutNode)
}

func (s *simulation) drop() {
	w := s.world
	switch s.IntN(10) {
	case 0:
		drop(s, w.Resources, func(c *engine.Change, v *engine.Resource) { c.DropResource(v.ID) })
	case 1:
		drop(s, w.Members, func(c *engine.Change, v *engine.Member) { c.DropMember(v.ID) })
	case 2:
		drop(s, w.Units, func(c *engine.Change, v *engine.Unit) { c.DropUnit(v.ID) })
	case 3, 4:
		drop(s, w.Rules, func(c *engine.Change, v *engine.Rule) { c.DropRule(v.ID) })
	case 5:
		drop(s, w.People, func(c *engine.Change, v *engine.Person) { c.DropPerson(v.ID) })
	case 6:
		drop(s, w.Groups, func(c *engine.Change, v *engine.GroupMember) { c.DropGroupMember(v.ID) })
	case 7:
		if id := pick(s, w.Nodes); len(w.Nodes) > 5 && !slices.ContainsFunc(slices.Collect(maps.Values(w.Nodes)),
			func(n *engine.TreeNode) bool { return n.ParentID == id }) {
			delete(w.Nodes, id)
			s.gone[id] = true
			s.tenant.Change(func(c *engine.Change) { c.DropNode(id) })
		}
	default:
		drop(s, w.Memberships, func(c *engine.Change, v *engine.Membership) { c.DropMembership(v.ID, v.NodeID) })
	}
}

func (s *simulation) question() *engine.Question {
	q := &engine.Question{Identity: s.identity(), ApplicationID: one(s, apps),
		ObjectType: one(s, []string{engine.Data, engine.Data, engine.Data, engine.UI, engine.App}),
		Now:        int64(s.IntN(120))}
	if s.IntN(2) == 0 {
		q.Identity = engine.Identity{engine.User, pick(s, s.world.People)}
	}
	if q.ObjectType != engine.App {
		q.ObjectCode, q.Action = one(s, codes), one(s, actions)
	}
	if s.IntN(2) == 0 {
		q.Context = fmt.Appendf(nil, `{"level":%d}`, s.IntN(9))
	}
	return q
}

// ask compares one answer and, in one of eight cases, the explanation and the searches with the same result.
func (s *simulation) ask(t *testing.T, state *engine.State) {
	q := s.question()
	want := s.world.Check(q)
	got, err := state.Check(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, want, got.Allowed, "%+v\n%+v", q, got)
	if s.IntN(8) > 0 {
		return
	}
	explained, err := state.Explain(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, got, explained.Decision)
	who, err := state.Identities(t.Context(), q, q.Identity.Type)
	require.NoError(t, err)
	require.Equal(t, want, slices.Contains(who, q.Identity), "who can: %+v", q)
	objects, err := state.Objects(t.Context(), q)
	require.NoError(t, err)
	may := slices.ContainsFunc(objects, func(o engine.Object) bool {
		return o.Resource == nil && o.ApplicationID == q.ApplicationID ||
			o.Resource != nil && o.Resource == state.Resource(q)
	})
	require.Equal(t, want, may, "what can: %+v", q)
}

// questions is how many questions a run asks: IDP_SOAK_QUESTIONS, or a few thousand.
func questions() int {
	if n, err := strconv.Atoi(os.Getenv("IDP_SOAK_QUESTIONS")); err == nil {
		return n
	}
	return 4000
}

// The engine has the answers of the naive evaluator, after changes of all kinds, deletions, and repeated events.
func TestAnswersAreThoseOfTheNaiveEvaluator(t *testing.T) {
	t.Parallel()
	allowed := 0
	for asked, seed := 0, uint64(1); asked < questions(); seed++ {
		s := newSimulation(seed)
		for range 60 {
			for range 5 {
				s.step()
			}
			for range 5 {
				s.ask(t, s.tenant.State())
				asked++
			}
		}
		for range 100 {
			if s.world.Check(s.question()) {
				allowed++
			}
		}
	}
	require.Positive(t, allowed)
}

// A state does not change while new ones are made.
func TestStatesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	s := newSimulation(99)
	for range 400 {
		s.step()
	}
	state := s.tenant.State()
	type asked struct {
		q    *engine.Question
		want bool
	}
	var all []asked
	for range 200 {
		q := s.question()
		all = append(all, asked{q, s.world.Check(q)})
	}
	var writer sync.WaitGroup
	writer.Go(func() {
		for range 1000 {
			s.step()
		}
	})
	for range 20 {
		for _, a := range all {
			q := *a.q
			got, err := state.Check(t.Context(), &q)
			require.NoError(t, err)
			require.Equal(t, a.want, got.Allowed)
		}
	}
	writer.Wait()
}
