package permissions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
	"github.com/idplatform/idplatform/services/permissions/internal/enginetest"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
	"github.com/idplatform/idplatform/services/questions"
)

// life is a company in which users, memberships, nodes and grants are created, changed and deleted.
type life struct {
	*rand.Rand
	t *testing.T
	s *testkit.Service
	c *testkit.Client

	mu       sync.Mutex
	company  company
	sequence int
	ids      int
	past     []func() // earlier events, to be repeated in their order
	repeats  int
}

func newLife(t *testing.T, seed uint64) *life {
	l := &life{
		Rand: rand.New(rand.NewPCG(seed, 1)), //nolint:gosec // a test's
		t:    t, s: testkit.Start(t, spec), sequence: 100, ids: 100,
		company: company{objects: acme.objects, nodes: slices.Clone(acme.nodes),
			memberships: slices.Clone(acme.memberships), page: 100},
	}
	for i := range 12 {
		l.company.users = append(l.company.users, object{"id": strconv.Itoa(20 + i), "username": fmt.Sprint("user", i),
			"status": "1"})
	}
	l.c = in(l.s, "acme")
	answer(t, l.s, func() company {
		l.mu.Lock()
		defer l.mu.Unlock()
		copied := l.company
		copied.users, copied.nodes = slices.Clone(copied.users), slices.Clone(copied.nodes)
		copied.memberships = slices.Clone(copied.memberships)
		return copied
	})
	ready(t, l.s)
	return l
}

func pickOf[T any](l *life, list []T) T { return list[l.IntN(len(list))] }

// tell publishes an event now, and perhaps again later.
func (l *life) tell(kind, id string, data object) {
	l.sequence++
	sequence := strconv.Itoa(l.sequence)
	tell(l.t, l.s, kind, id, sequence, data)
	l.past = append(l.past, func() {
		l.repeats++
		publish(l.t, l.s, kind, id, sequence, fmt.Sprint("again ", l.repeats), data)
	})
}

// person, node and member make a change in another service, and publish its event.
func (l *life) person() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids++
	if len(l.company.users) > 6 && l.IntN(2) == 0 {
		i := l.IntN(len(l.company.users))
		gone := l.company.users[i]
		l.company.users = slices.Delete(l.company.users, i, i+1)
		l.tell("user.deleted", gone["id"].(string), object{"record": gone})
		return
	}
	user := object{"id": strconv.Itoa(l.ids), "username": fmt.Sprint("user", l.ids), "status": "1"}
	l.company.users = append(l.company.users, user)
	l.tell("user.created", user["id"].(string), object{"record": user})
}

func (l *life) node() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids++
	n := questions.Node{ID: strconv.Itoa(l.ids), Name: "Node", ParentID: pickOf(l, l.company.nodes).ID,
		ObjectCode: "company", Status: "1"}
	if l.IntN(8) == 0 {
		n.Status = "0"
	}
	kind := "node.created"
	i := len(l.company.nodes)
	if l.IntN(2) == 0 { // a node moves, with all that is below it, never below itself
		i = 1 + l.IntN(len(l.company.nodes)-1)
		n.ID, kind = l.company.nodes[i].ID, "node.moved"
		for at := n.ParentID; at != ""; {
			if at == n.ID {
				return
			}
			at = l.company.nodes[slices.IndexFunc(l.company.nodes,
				func(other questions.Node) bool { return other.ID == at })].ParentID
		}
	}
	l.tell(kind, n.ID, object{"record": object{"id": n.ID, "name": n.Name, "parent_id": n.ParentID,
		"object_code": n.ObjectCode, "status": n.Status}})
	n.Sequence = int64(l.sequence)
	l.company.nodes = append(l.company.nodes[:i:i], append([]questions.Node{n}, l.company.nodes[min(i+1,
		len(l.company.nodes)):]...)...)
}

func (l *life) member() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.company.memberships); n > 3 && l.IntN(3) == 0 {
		i := l.IntN(n)
		m := l.company.memberships[i]
		l.company.memberships = slices.Delete(l.company.memberships, i, i+1)
		l.tell("membership.deleted", m.ID, object{"record": object{"id": m.ID}, "memberships": []object{{
			"id": m.ID, "node_id": m.NodeID, "user_id": m.UserID, "sequence": strconv.Itoa(l.sequence + 1),
		}}})
		return
	}
	l.ids++
	m := questions.Membership{ID: strconv.Itoa(l.ids), NodeID: pickOf(l, l.company.nodes).ID,
		UserID: pickOf(l, l.company.users)["id"].(string)}
	l.tell("membership.created", m.ID, object{"record": object{"id": m.ID, "node_id": m.NodeID, "user_id": m.UserID}})
	m.Sequence = int64(l.sequence)
	l.company.memberships = append(l.company.memberships, m)
}

func (l *life) identity() object {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.IntN(6) {
	case 0, 1:
		return object{"identity_type": "user", "identity_id": pickOf(l, l.company.users)["id"]}
	case 2, 3:
		return object{"identity_type": "node", "identity_id": pickOf(l, l.company.nodes).ID}
	case 4:
		return object{"identity_type": "group", "identity_id": pickOf(l, []string{"g1", "g2"})}
	}
	return pickOf(l, []object{{"identity_type": "everyone", "identity_id": "*"},
		{"identity_type": "core_object", "identity_id": "1"}, {"identity_type": "application", "identity_id": "7001"}})
}

var (
	someApps    = []string{"8", "9"}
	someCodes   = []string{"a", "b", "ab", "team/a", "team/b"}
	someActions = []string{"read", "write"}
)

// rule is a random rule. If it names something that does not exist, it is refused.
func (l *life) rule() object {
	r := object{"application_id": pickOf(l, someApps), "type": "data", "code": pickOf(l, someCodes),
		"actions": []string{pickOf(l, []string{"read", "write", "*"})}}
	switch l.IntN(6) {
	case 0:
		r["type"], r["code"] = "res", pickOf(l, []string{"a*", "*b", "team/?"})
	case 1:
		r["type"], r["code"] = "res_set", pickOf(l, []string{"s1", "s2"})
	case 2:
		r["type"] = "app"
		delete(r, "code")
		delete(r, "actions")
	}
	if l.IntN(4) == 0 {
		r["affect"] = "deny"
	}
	if l.IntN(4) == 0 {
		r["condition"] = pickOf(l, []string{"resource.code != 'a'", "context.level > 5", "context.level == 3"})
	}
	return r
}

// any is the id of a random record of a list; "0", which no record has, if the list is empty.
func (l *life) any(path string) string {
	items := l.c.Get(path).Object()["items"].([]any)
	if len(items) == 0 {
		return "0"
	}
	return pickOf(l, items).(object)["id"].(string)
}

// step makes one random change. One that conflicts with the records is refused, and changes nothing.
func (l *life) step() {
	app, code := pickOf(l, someApps), pickOf(l, someCodes)
	switch l.IntN(16) {
	case 0, 1:
		l.c.Post("/v1/resources", object{"application_id": app, "type": "data", "code": code,
			"is_global": pickOf(l, []string{"0", "0", "1"}), "actions": []object{{"code": "read"}, {"code": "write"}}})
	case 2:
		l.c.Post("/v1/resource-sets", object{"application_id": app, "code": pickOf(l, []string{"s1", "s2"})})
	case 3:
		l.c.Post("/v1/resource-sets/"+l.any("/v1/resource-sets?application_id="+app)+"/members",
			object{"resource_code": code, "resource_type": "data", "actions": []string{pickOf(l, someActions)}})
	case 4, 5, 6, 7:
		l.c.Post("/v1/batch/auth-unit-rules", object{"identities": []object{l.identity()}, "rules": []object{l.rule()}})
	case 8:
		l.c.Post("/v1/auth-units/"+l.any("/v1/auth-units?identity_type=group")+"/members",
			object{"user_ids": []any{pickOf(l, l.company.users)["id"]}})
	case 9:
		l.c.Delete("/v1/batch/auth-unit-rules", object{"rule_ids": []string{l.any("/v1/auth-rules")}})
	case 10:
		l.remove(app)
	case 11:
		l.person()
	case 12:
		l.node()
	case 13, 14:
		l.member()
	default:
		for _, again := range l.past[max(0, len(l.past)-1-l.IntN(8)):] {
			again()
		}
	}
}

func (l *life) remove(app string) {
	switch l.IntN(3) {
	case 0:
		l.c.Delete("/v1/resources/"+l.any("/v1/resources?application_id="+app), nil)
	case 1:
		l.c.Delete("/v1/resource-sets/"+l.any("/v1/resource-sets?application_id="+app), nil)
	default:
		l.c.Delete("/v1/auth-units/"+l.any("/v1/auth-units"), nil)
	}
}

// world has the stored records and those of the other services.
func (l *life) world() *enginetest.World {
	w := enginetest.NewWorld()
	err := grant.Each(l.t.Context(), l.s.Deps.Store, func(_ string, c grant.Change) error {
		return addStored(w, c)
	}, func() {})
	require.NoError(l.t, err)
	l.mu.Lock()
	defer l.mu.Unlock()
	w.Trees["1"] = &engine.Tree{ID: "1", Code: "company"}
	for _, u := range l.company.users {
		w.People[u["id"].(string)] = &engine.Person{ID: u["id"].(string)}
	}
	for _, n := range l.company.nodes {
		node := engine.TreeNode{
			ID: n.ID, Name: n.Name, ParentID: n.ParentID, ObjectCode: n.ObjectCode, Sequence: n.Sequence,
			Disabled: n.Status == "0",
		}
		w.Nodes[n.ID] = &node
	}
	for _, m := range l.company.memberships {
		w.Memberships[m.ID] = &engine.Membership{ID: m.ID, NodeID: m.NodeID, UserID: m.UserID}
	}
	return w
}

// addStored adds a stored record to a world.
func addStored(w *enginetest.World, c grant.Change) error {
	var r struct {
		ID            string          `json:"id"`
		ApplicationID string          `json:"application_id"`
		Type          string          `json:"type"`
		Code          string          `json:"code"`
		IsGlobal      string          `json:"is_global"`
		Actions       json.RawMessage `json:"actions"`
		SetID         string          `json:"set_id"`
		ResourceID    string          `json:"resource_id"`
		IdentityType  string          `json:"identity_type"`
		IdentityID    string          `json:"identity_id"`
		UnitID        string          `json:"auth_unit_id"`
		UserID        string          `json:"user_id"`
		ResourceSetID string          `json:"resource_set_id"`
		Affect        string          `json:"affect"`
		Condition     string          `json:"condition"`
	}
	text, err := json.Marshal(c.Value)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	var codes []string
	_ = json.Unmarshal(r.Actions, &codes) // the actions of a resource are objects, here always the same
	switch c.Entity {
	case "resource":
		w.Resources[r.ID] = &engine.Resource{ID: r.ID, ApplicationID: r.ApplicationID, Type: r.Type, Code: r.Code,
			Global: r.IsGlobal == "1", Actions: someActions}
	case "resource_set_member":
		w.Members[r.ID] = &engine.Member{ID: r.ID, SetID: r.SetID, ResourceID: r.ResourceID, Actions: codes}
	case "auth_unit":
		w.Units[r.ID] = &engine.Unit{ID: r.ID, Identity: engine.Identity{Type: r.IdentityType, ID: r.IdentityID}}
	case "auth_unit_member":
		w.Groups[r.ID] = &engine.GroupMember{ID: r.ID, UnitID: r.UnitID, UserID: r.UserID}
	case "auth_rule":
		rule := &engine.Rule{ID: r.ID, UnitID: r.UnitID, ApplicationID: r.ApplicationID, Type: r.Type, Code: r.Code,
			ResourceID: r.ResourceID, SetID: r.ResourceSetID, Actions: codes, Deny: r.Affect == "deny"}
		if r.Condition != "" {
			rule.Condition = &engine.Condition{Text: r.Condition}
		}
		w.Rules[r.ID] = rule
	}
	return nil
}

// questions are random questions, in the form of the API and in that of the engine.
func (l *life) questions(n int) (checks []object, all []engine.Question) {
	for range n {
		check := l.identity()
		if l.IntN(2) == 0 {
			check = object{"identity_type": "user", "identity_id": pickOf(l, l.company.users)["id"]}
		}
		q := engine.Question{
			Identity:      engine.Identity{Type: check["identity_type"].(string), ID: check["identity_id"].(string)},
			ApplicationID: pickOf(l, someApps), ObjectType: "data", ObjectCode: pickOf(l, someCodes),
			Action: pickOf(l, someActions), Now: l.s.Clock.Now().Millis(),
		}
		check["application_id"], check["object_type"] = q.ApplicationID, q.ObjectType
		if l.IntN(8) == 0 {
			q.ObjectType, q.ObjectCode, q.Action = "app", "", ""
			check["object_type"] = "app"
		} else {
			check["object_code"], check["action"] = q.ObjectCode, q.Action
		}
		if l.IntN(2) == 0 {
			level := l.IntN(9)
			check["context"], q.Context = object{"level": level}, fmt.Appendf(nil, `{"level":%d}`, level)
		}
		checks, all = append(checks, check), append(all, q)
	}
	return checks, all
}

// agree compares a replica's answers with those of the naive evaluator, and returns how many allow. It waits while they
// differ, because cascades and events take a moment.
func (l *life) agree(s *testkit.Service, n int) (allowed int) {
	l.t.Helper()
	checks, all := l.questions(n)
	differs := ""
	agrees := func() bool {
		w := l.world()
		var got struct{ Results []struct{ Allowed bool } }
		in(s, "acme").Post("/v1/batch/auth-check", object{"checks": checks}).OK(&got)
		allowed, differs = 0, ""
		for i := range all {
			want := w.Check(&all[i])
			if want != got.Results[i].Allowed {
				differs = fmt.Sprintf("%v must not be %v", checks[i], got.Results[i].Allowed)
			} else if want {
				allowed++
			}
		}
		return differs == ""
	}
	wait.Until(l.t, agrees, "%s", &differs)
	return allowed
}

// storedQuestions is how many questions each run asks: IDP_SOAK_QUESTIONS, or a few thousand.
func storedQuestions() int {
	if n, err := strconv.Atoi(os.Getenv("IDP_SOAK_QUESTIONS")); err == nil {
		return n
	}
	return 2000
}

// The index has the answers of the naive evaluator for the stored records: after changes of all kinds during checks,
// after repeated events, and after a restart.
func TestTheIndexIsWhatIsStored(t *testing.T) {
	t.Parallel()
	const aRound = 500
	allowed := 0
	for asked, seed := 0, uint64(1); asked < storedQuestions(); seed++ {
		l := newLife(t, seed)
		for range 2 {
			checks, _ := l.questions(50)
			ctx, stop := context.WithCancel(t.Context())
			var reader sync.WaitGroup
			reader.Go(func() {
				for ctx.Err() == nil {
					answer := in(l.s, "acme").Post("/v1/batch/auth-check", object{"checks": checks})
					if answer.Status != http.StatusOK {
						t.Errorf("%d %s", answer.Status, answer.Body)
						return
					}
				}
			})
			for range 120 {
				l.step()
			}
			stop()
			reader.Wait()
			allowed += l.agree(l.s, aRound)
			again := l.s.Replica(spec)
			ready(t, again)
			allowed += l.agree(again, aRound)
			asked += 2 * aRound
		}
	}
	require.Greater(t, allowed, 20)
}
