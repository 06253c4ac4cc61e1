package engine

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
)

var (
	codes   = []string{"a", "b", "ab", "team/a", "team/b", "x.y"}
	actions = []string{"read", "write", "admin"}
	apps    = []string{"app1", "app2"}
)

// simulation changes a world and a tenant alike.
type simulation struct {
	*rand.Rand
	world    *world
	tenant   *Tenant
	sequence int64
	ids      int
	old      []func(*Change) // puts that have been made before
	gone     map[string]bool
}

func newSimulation(seed uint64) *simulation {
	return &simulation{
		Rand: rand.New(rand.NewPCG(seed, 0)), tenant: NewTenant(), gone: map[string]bool{}, //nolint:gosec // a test's
		world: &world{
			map[string]*Resource{}, map[string]*Set{}, map[string]*Member{}, map[string]*Unit{},
			map[string]*GroupMember{},
			map[string]*Rule{}, map[string]*Person{}, map[string]*TreeNode{}, map[string]*Tree{},
			map[string]*Membership{},
		},
	}
}

// id is a new one, or, now and then, that of a record that is there.
func id[V any](s *simulation, there map[string]V) (id string, exists bool) {
	if len(there) > 3 && s.IntN(4) == 0 {
		return pick(s, there), true
	}
	s.ids++
	return strconv.Itoa(s.ids), false
}

// pick is any key of a map; one that is nowhere if it is empty.
func pick[V any](s *simulation, m map[string]V) string {
	if len(m) == 0 {
		return "0"
	}
	keys := slices.Sorted(maps.Keys(m))
	return keys[s.IntN(len(keys))]
}

func one[V any](s *simulation, values []V) V { return values[s.IntN(len(values))] }

func (s *simulation) some() []string {
	if s.IntN(4) == 0 {
		return []string{Any}
	}
	return []string{one(s, actions)}
}

// put makes a record in both; apply must be right at any later time, too.
func put[V any](s *simulation, there map[string]V, id string, v V, apply func(*Change, V)) {
	there[id] = v
	replay := func(c *Change) { apply(c, v) }
	s.tenant.Change(replay)
	s.old = append(s.old, func(c *Change) {
		if !s.gone[id] { // ids are never given out again, and events of one record come in order
			replay(c)
		}
	})
}

func drop[V any](s *simulation, there map[string]V, apply func(*Change, V)) {
	if len(there) < 3 {
		return
	}
	id := pick(s, there)
	v := there[id]
	delete(there, id)
	s.gone[id] = true
	s.tenant.Change(func(c *Change) { apply(c, v) })
}

func (s *simulation) identity() Identity {
	switch s.IntN(8) {
	case 0, 1, 2:
		return Identity{User, pick(s, s.world.people)}
	case 3, 4:
		return Identity{Node, pick(s, s.world.nodes)}
	case 5:
		return Identity{CoreObject, pick(s, s.world.trees)}
	case 6:
		return one(s, []Identity{{Group, "g1"}, {Group, "g2"}, {Application, "7001"}})
	}
	return Identity{Everyone, Any}
}

// step makes one random change.
func (s *simulation) step() {
	s.sequence++
	w, seq := s.world, s.sequence
	switch s.IntN(14) {
	case 0:
		s.resource(seq)
	case 1:
		id, _ := id(s, w.members)
		if old := w.members[id]; old != nil {
			put(s, w.members, id, &Member{id, old.SetID, old.ResourceID, s.some(), seq}, (*Change).PutMember)
		} else {
			put(s, w.members, id, &Member{id, one(s, []string{"s1", "s2", "s3"}), pick(s, w.resources), s.some(), seq},
				(*Change).PutMember)
		}
	case 2, 3, 4:
		s.rule(seq)
	case 5:
		who := s.identity()
		for _, u := range w.units {
			if u.Identity == who {
				return
			}
		}
		id, _ := id(s, map[string]int{})
		put(s, w.units, id, &Unit{id, who, "Unit " + id, seq}, (*Change).PutUnit)
	case 6:
		id, there := id(s, w.people)
		put(s, w.people, id, &Person{ID: id, Username: fmt.Sprint("user", id, there), Sequence: seq},
			(*Change).PutPerson)
	case 7:
		s.node(seq)
	case 8, 9:
		id, _ := id(s, map[string]int{})
		put(s, w.memberships, id, &Membership{id, pick(s, w.nodes), pick(s, w.people), seq}, (*Change).PutMembership)
	case 10:
		id, _ := id(s, map[string]int{})
		put(s, w.groups, id, &GroupMember{id, pick(s, w.units), pick(s, w.people), seq}, (*Change).PutGroupMember)
	case 11, 12:
		s.drop()
	case 13:
		if len(s.old) > 0 { // an event comes again
			s.tenant.Change(one(s, s.old))
		}
	}
}

func (s *simulation) resource(seq int64) {
	w := s.world
	id, there := id(s, w.resources)
	r := &Resource{ID: id, ApplicationID: one(s, apps), Type: one(s, []string{Data, UI}), Code: one(s, codes),
		Global: s.IntN(3) == 0, Sequence: seq}
	if there {
		old := w.resources[id]
		r.ApplicationID, r.Type, r.Code, r.Global = old.ApplicationID, old.Type, old.Code, old.Global
	}
	if s.IntN(2) == 0 {
		r.Actions = actions[:1+s.IntN(3)]
	}
	for _, other := range w.resources {
		if other.ID != id && other.ApplicationID == r.ApplicationID && other.Type == r.Type && other.Code == r.Code {
			return // taken
		}
	}
	put(s, w.resources, id, r, (*Change).PutResource)
}

func (s *simulation) rule(seq int64) {
	w := s.world
	id, _ := id(s, w.rules)
	r := &Rule{ID: id, UnitID: pick(s, w.units), ApplicationID: one(s, apps),
		Type:    one(s, []string{Data, Data, Wildcard, ResourceSet, App}),
		Actions: s.some(), Deny: s.IntN(4) == 0, Sequence: seq}
	switch r.Type {
	case Data:
		r.ResourceID = pick(s, w.resources)
	case Wildcard:
		r.Code = one(s, []string{"", "a*", "*b", "team/?", "*.*"})
	case ResourceSet:
		r.SetID = one(s, []string{"s1", "s2", "s3"})
	}
	if s.IntN(5) == 0 {
		r.Condition = &Condition{Text: one(s, []string{"resource.code != 'a'", "context.level > 5",
			"context.level == 3"})}
	}
	if s.IntN(5) == 0 {
		r.From = int64(s.IntN(100))
		r.To = r.From + int64(s.IntN(50))
	}
	put(s, w.rules, id, r, (*Change).PutRule)
}

// node adds a node, or moves one, never below itself.
func (s *simulation) node(seq int64) {
	w := s.world
	if len(w.trees) < 2 {
		s.ids++
		id := strconv.Itoa(s.ids)
		put(s, w.trees, id, &Tree{id, "tree" + id, "Tree", seq}, (*Change).PutTree)
		return
	}
	id, there := id(s, w.nodes)
	n := &TreeNode{ID: id, Name: "Node", ObjectCode: w.trees[pick(s, w.trees)].Code, Sequence: seq}
	if parent := w.nodes[pick(s, w.nodes)]; parent != nil && s.IntN(4) > 0 {
		n.ParentID, n.ObjectCode = parent.ID, parent.ObjectCode
		for at := parent; at != nil; at = w.nodes[at.ParentID] {
			if at.ID == id {
				return
			}
		}
	}
	if there && n.ObjectCode != w.nodes[id].ObjectCode {
		return
	}
	put(s, w.nodes, id, n, (*Change).PutNode)
}

func (s *simulation) drop() {
	w := s.world
	switch s.IntN(10) {
	case 0:
		drop(s, w.resources, func(c *Change, v *Resource) { c.DropResource(v.ID) })
	case 1:
		drop(s, w.members, func(c *Change, v *Member) { c.DropMember(v.ID) })
	case 2:
		drop(s, w.units, func(c *Change, v *Unit) { c.DropUnit(v.ID) })
	case 3, 4:
		drop(s, w.rules, func(c *Change, v *Rule) { c.DropRule(v.ID) })
	case 5:
		drop(s, w.people, func(c *Change, v *Person) { c.DropPerson(v.ID) })
	case 6:
		drop(s, w.groups, func(c *Change, v *GroupMember) { c.DropGroupMember(v.ID) })
	case 7:
		if id := pick(s, w.nodes); len(w.nodes) > 5 && !slices.ContainsFunc(slices.Collect(maps.Values(w.nodes)),
			func(n *TreeNode) bool { return n.ParentID == id }) {
			delete(w.nodes, id)
			s.gone[id] = true
			s.tenant.Change(func(c *Change) { c.DropNode(id) })
		}
	default:
		drop(s, w.memberships, func(c *Change, v *Membership) { c.DropMembership(v.ID, v.NodeID) })
	}
}

func (s *simulation) question() *Question {
	q := &Question{Identity: s.identity(), ApplicationID: one(s, apps),
		ObjectType: one(s, []string{Data, Data, Data, UI, App}), Now: int64(s.IntN(120))}
	if s.IntN(2) == 0 {
		q.Identity = Identity{User, pick(s, s.world.people)}
	}
	if q.ObjectType != App {
		q.ObjectCode, q.Action = one(s, codes), one(s, actions)
	}
	if s.IntN(2) == 0 {
		q.Context = fmt.Appendf(nil, `{"level":%d}`, s.IntN(9))
	}
	return q
}

// ask compares one answer, and now and then the searches that lead to it.
func (s *simulation) ask(t *testing.T, state *State) {
	q := s.question()
	want := s.world.check(q)
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
	may := slices.ContainsFunc(objects, func(o Object) bool {
		return o.Resource == nil && o.ApplicationID == q.ApplicationID || o.Resource != nil && o.Resource == q.resource
	})
	require.Equal(t, want, may, "what can: %+v", q)
}

// questions is how many a run asks: IDP_SOAK_QUESTIONS, or a few thousand.
func questions() int {
	if n, err := strconv.Atoi(os.Getenv("IDP_SOAK_QUESTIONS")); err == nil {
		return n
	}
	return 4000
}

// The engine answers as an evaluator does that looks at everything, after changes of all kinds, deletions, and events
// that come again.
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
			if s.world.check(s.question()) {
				allowed++
			}
		}
	}
	require.Positive(t, allowed)
}

// A state that somebody reads does not change while others make new ones.
func TestStatesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	s := newSimulation(99)
	for range 400 {
		s.step()
	}
	state := s.tenant.State()
	type asked struct {
		q    *Question
		want bool
	}
	var all []asked
	for range 200 {
		q := s.question()
		all = append(all, asked{q, s.world.check(q)})
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
