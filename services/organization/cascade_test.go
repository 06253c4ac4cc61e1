package organization_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/organization"
	"github.com/idplatform/idplatform/services/questions"
)

// guided is a service whose tasks run when the test says so, and that counts the user events that it has handled.
type guided struct {
	*testkit.Service
	*testkit.Client
	*people
	t     testing.TB
	tasks map[string]func(context.Context) (int, error)
	heard chan stream.Event
	told  atomic.Int64 // events
	marks atomic.Int64 // core objects that published made
}

// guide starts a guided service beside a users service that knows users 1…n.
func guide(t testing.TB, n int) *guided {
	t.Helper()
	g := &guided{t: t, heard: make(chan stream.Event, 10_000), people: &people{users: map[string]object{}}}
	g.Service = testkit.Start(t, g.spec())
	(&rules{}).answer(t, g.Deps.Bus)
	g.Client = in(g.Service, "acme")
	for i := 1; i <= n; i++ {
		g.put(fmt.Sprint(i), object{})
	}
	g.answer(t, g.Deps.Bus)
	return g
}

func (g *guided) spec() service.Spec {
	spec := organization.Spec()
	newApp := spec.New
	spec.New = func(ctx context.Context, d service.Deps) (service.App, error) {
		app, err := newApp(ctx, d)
		g.tasks = map[string]func(context.Context) (int, error){}
		for _, task := range app.Tasks {
			g.tasks[task.Name] = task.Do
		}
		app.Tasks = nil
		handle := app.Consumers[0].Handle
		app.Consumers[0].Handle = func(ctx context.Context, e stream.Event) error {
			err := handle(ctx, e)
			if err == nil {
				g.heard <- e
			}
			return err
		}
		return app, err
	}
	return spec
}

// upkeep runs the upkeep until nothing is left.
func (g *guided) upkeep() {
	g.t.Helper()
	for n := 1; n > 0; {
		var err error
		n, err = g.tasks["keep memberships"](g.t.Context())
		require.NoError(g.t, err)
	}
}

// tell publishes an event of a user as the users service would, and returns its id.
func (g *guided) tell(tenant, action string, record object) string {
	g.t.Helper()
	return g.tellData(tenant, action, record, object{"record": record})
}

// tellData is tell with the data of the event.
func (g *guided) tellData(tenant, action string, record, data object) string {
	g.t.Helper()
	eventID := fmt.Sprint("event-", g.told.Add(1))
	sequence := 10 * record["version"].(int)
	if action == "deleted" {
		sequence += 10
	}
	payload, err := json.Marshal(object{
		"specversion": "1.0", "id": eventID, "source": "/users", "type": "idp.user." + action, "subject": record["id"],
		"time":            "2026-01-31T09:30:00.000Z",
		"datacontenttype": "application/json", "tenantid": tenant, "actor": "admin", "sequence": strconv.Itoa(sequence),
		"data": data,
	})
	require.NoError(g.t, err)
	_, err = g.Deps.Bus.JetStream().Publish(g.t.Context(), "idp.events."+tenant+".user."+action, payload,
		jetstream.WithMsgID(eventID))
	require.NoError(g.t, err)
	return eventID
}

// tellAgain publishes all events of users again.
func (g *guided) tellAgain() {
	g.t.Helper()
	js := g.Deps.Bus.JetStream()
	events, err := js.Stream(g.t.Context(), bus.EventStream)
	require.NoError(g.t, err)
	state := events.CachedInfo().State
	for place := state.FirstSeq; place <= state.LastSeq; place++ {
		m, err := events.GetMsg(g.t.Context(), place)
		require.NoError(g.t, err)
		if strings.Contains(m.Subject, ".user.") {
			_, err = js.Publish(g.t.Context(), m.Subject, m.Data)
			require.NoError(g.t, err)
		}
	}
}

// hear waits until events of users have been handled.
func (g *guided) hear(ids ...string) {
	g.t.Helper()
	missing := map[string]bool{}
	for _, id := range ids {
		missing[id] = true
	}
	timeout := time.After(wait.Long)
	for len(missing) > 0 {
		select {
		case e := <-g.heard:
			delete(missing, e.ID)
		case <-timeout:
			require.Fail(g.t, "events were not handled", "%v", missing)
		}
	}
}

// change changes a user's record and waits until its event is handled.
func (g *guided) change(action, id string, record object) {
	g.t.Helper()
	g.hear(g.tell("acme", action, g.put(id, record)))
}

func (g *guided) resign(id string) {
	g.t.Helper()
	g.change("resigned", id, object{"status": "resigned"})
}

// expel deletes a user.
func (g *guided) expel(id string) {
	g.t.Helper()
	g.people.mu.Lock()
	last := g.users[id]
	delete(g.users, id)
	g.people.mu.Unlock()
	g.hear(g.tell("acme", "deleted", last))
}

// nodesOf are the ids of the nodes that a user belongs to; the node of the primary membership has a star.
func (g *guided) nodesOf(user string) []string {
	g.t.Helper()
	var has []storedMember
	g.Get("/v1/tree-users?user_id=" + user).OK(&has)
	ids := []string{}
	for _, m := range has {
		if m.IsPrimary == "1" {
			m.NodeID += "*"
		}
		ids = append(ids, m.NodeID)
	}
	return ids
}

func (g *guided) join(n object, users ...string) {
	g.t.Helper()
	g.Post("/v1/batch/tree-users", object{"node_id": n["id"], "user_ids": users}).OK(nil)
}

func (g *guided) usersOf(n object, query string) []string {
	g.t.Helper()
	ids := []string{}
	for _, m := range everyPage[storedMember](g.t, g.Client, node(n, "users"+query)) {
		ids = append(ids, m.UserID)
	}
	return ids
}

// published are the events of this service so far. There must be n, unless that is negative.
func (g *guided) published(n int) (told []string) {
	g.t.Helper()
	deadline := time.Now().Add(wait.Long)
	// events of different records may come in another order, so the arrival of the last one proves nothing
	for backlog := int64(1); backlog > 0; {
		var err error
		backlog, err = g.Deps.Store.Backlog(g.t.Context())
		require.NoError(g.t, err)
		require.True(g.t, time.Now().Before(deadline), "%d events are not published", backlog)
	}
	last := addObject(g.t, g.Client, fmt.Sprint("last-", g.marks.Add(1)))
	for _, e := range g.EventsUntil(func(e stream.Event) bool { return e.Subject == id(last) }) {
		if e.Source != "/users" && e.Subject != id(last) && !strings.Contains(string(e.Data), `"last-`) {
			told = append(told, strings.TrimPrefix(e.Type, "idp.")+" "+e.Subject)
		}
	}
	if n >= 0 {
		require.Len(g.t, told, n, "%v", told)
	}
	g.Delete("/v1/core-objects/"+id(last), nil).OK(nil)
	return told
}

// Whoever creates a user can name a node: the user becomes its member, once, however often the event comes.
func TestUsersWhoAreCreatedInANode(t *testing.T) {
	t.Parallel()
	g := guide(t, 0)
	addObject(t, g.Client, "company")
	dev := addNode(t, g.Client, "company", "", "dev")
	all := addNode(t, g.Client, "company", "", "all", object{"is_dynamic": "1", "condition": "user.level == 1"})
	g.upkeep()
	create := func(user, node string) {
		record := g.put(user, object{"level": 1})
		g.hear(g.tellData("acme", "created", record, object{"record": record, "node_id": node}))
	}
	create("7", id(dev))
	require.ElementsMatch(t, []string{id(dev) + "*", id(all)}, g.nodesOf("7"))
	for _, of := range g.Get(node(dev, "users")).Object()["items"].([]any) {
		g.Delete("/v1/tree-users/"+id(of.(object)), nil).OK(nil)
	}
	g.tellAgain()
	g.hear(g.tell("acme", "updated", g.put("7", object{"level": 1})))
	require.Equal(t, []string{id(all)}, g.nodesOf("7"), "the membership was ended since")

	create("8", id(all)) // takes no members
	create("9", "77")    // is none
	require.Equal(t, []string{id(all)}, g.nodesOf("8"))
	require.Equal(t, []string{id(all)}, g.nodesOf("9"))

	owner := questions.ManagedBy{ConnectionID: "4001", Members: []string{questions.OwnedMembers}}
	ctx := request.With(t.Context(), request.Info{Tenant: "acme", Actor: "scim:4001"})
	tree, err := questions.MakeTree.Ask(ctx, g.Deps.Bus,
		questions.NewTree{ID: "1", Code: "okta", Name: "Okta", ManagedBy: owner})
	require.NoError(t, err)
	create("10", tree.RootNodeID)
	require.Equal(t, []string{id(all)}, g.nodesOf("10"), "another system manages the members")
}

func TestUsersWhoLeaveLoseAllMemberships(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*guided, string){"resigned": (*guided).resign,
		"deleted": (*guided).expel} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guide(t, 3)
			addObject(t, g.Client, "company")
			addObject(t, g.Client, "projects")
			dev := addNode(t, g.Client, "company", "", "dev")
			ops := addNode(t, g.Client, "company", "", "ops")
			project := addNode(t, g.Client, "projects", "", "project")
			all := addNode(t, g.Client, "company", "", "all", object{"is_dynamic": "1", "condition": "user.id != '0'"})
			g.upkeep()
			for _, n := range []object{dev, ops, project} {
				g.join(n, "1", "2")
			}
			before := g.published(-1)
			require.ElementsMatch(t, []string{id(dev) + "*", id(ops), id(project) + "*", id(all)}, g.nodesOf("1"))
			leave(g, "1")
			require.Empty(t, g.nodesOf("1"))
			require.Equal(t, []string{"2"}, g.usersOf(dev, ""))
			require.Equal(t, []string{"2", "3"}, g.usersOf(all, ""))
			require.Len(t, g.nodesOf("2"), 4)
			ended := 0
			for _, told := range g.published(len(before) + 4)[len(before):] {
				if strings.HasPrefix(told, "membership.deleted ") {
					ended++
				}
			}
			require.Equal(t, 4, ended, "an event each")
			g.Post("/v1/tree-users", object{"node_id": dev["id"], "user_id": "1"}).
				Problem(400, "invalid_parameters", "body.user_id")
			verify(t, g.Service)
		})
	}
}

func TestUsersWhoReturnCanBeMembersAgain(t *testing.T) {
	t.Parallel()
	g := guide(t, 1)
	addObject(t, g.Client, "company")
	dev := addNode(t, g.Client, "company", "", "dev")
	active := addNode(t, g.Client, "company", "", "active",
		object{"is_dynamic": "1", "condition": "user.status == '1'"})
	g.upkeep()
	g.join(dev, "1")
	g.resign("1")
	require.Empty(t, g.nodesOf("1"))
	g.change("reinstated", "1", object{})
	require.Equal(t, []string{id(active)}, g.nodesOf("1"), "by condition at once; memberships by hand do not return")
	g.join(dev, "1")
	require.ElementsMatch(t, []string{id(active), id(dev) + "*"}, g.nodesOf("1"))
	verify(t, g.Service)
}

// A user who leaves while being added never stays, even if the event comes after the question to the users service.
func TestRaceOfAddAndDeparture(t *testing.T) {
	t.Parallel()
	const rounds = 20
	g := guide(t, 2*rounds)
	addObject(t, g.Client, "company")
	dev := addNode(t, g.Client, "company", "", "dev")
	for round := range rounds {
		user, other := fmt.Sprint(1+round), fmt.Sprint(1+rounds+round)
		atOnce(
			func() *testkit.Answer { g.expel(user); return &testkit.Answer{} },
			func() *testkit.Answer {
				return g.Post("/v1/batch/tree-users", object{"node_id": dev["id"], "user_ids": []string{user, other}})
			},
		)
		require.Empty(t, g.nodesOf(user))
	}
	verify(t, g.Service)
}

// The event is handled between the question to the users service and the transaction.
func TestDepartureAfterTheQuestion(t *testing.T) {
	t.Parallel()
	g := guide(t, 2)
	addObject(t, g.Client, "company")
	dev := addNode(t, g.Client, "company", "", "dev")
	g.interfere(func(context.Context, string) error { g.expel("1"); return nil })
	g.Post("/v1/batch/tree-users", object{"node_id": dev["id"], "user_ids": []string{"2", "1"}}).
		Problem(400, "invalid_parameters", "body.user_ids[1]")
	require.Empty(t, g.usersOf(dev, ""))
	verify(t, g.Service)
}

// everything is all that is stored for acme, in the stored form.
func (g *guided) everything() map[string]string {
	g.t.Helper()
	type anything struct{ docstore.Meta }
	all := map[string]string{}
	for _, name := range []string{"core_objects", "tree_nodes", "tree_users", "people", "upkeeps",
		"membership_changes"} {
		c := docstore.Define(docstore.Schema[anything]{Name: name})
		require.NoError(g.t, c.Each(request.System(g.t.Context(), "acme"), g.Deps.Store, docstore.Filter{},
			func(d docstore.Doc[anything]) error {
				body, err := d.JSON()
				all[name+" "+d.ID] = string(body)
				return err
			}))
	}
	return all
}

// If all events of users are delivered again from the first one, nothing changes.
func TestReplay(t *testing.T) {
	t.Parallel()
	g := guide(t, 6)
	addObject(t, g.Client, "company")
	dev := addNode(t, g.Client, "company", "", "dev")
	ops := addNode(t, g.Client, "company", "", "ops")
	seniors := addNode(t, g.Client, "company", "", "seniors", object{"is_dynamic": "1", "condition": "user.level > 5"})
	g.upkeep()
	g.join(dev, "1", "2", "3", "4")
	g.join(ops, "1", "2", "3", "4")
	for _, level := range []int{1, 9, 2, 8} { // in, out, in
		g.change("updated", "1", object{"level": level})
		g.change("updated", "5", object{"level": 10 - level})
	}
	g.resign("2")
	g.change("reinstated", "2", object{"level": 7})
	g.join(dev, "2")
	g.resign("3")
	g.change("updated", "4", object{"level": 9})
	g.expel("4")
	g.change("created", "7", object{"level": 6})
	juniors := addNode(t, g.Client, "company", "", "juniors", object{"is_dynamic": "1", "condition": "user.level < 5"})
	g.upkeep()
	require.Equal(t, []string{"1", "2", "7"}, g.usersOf(seniors, ""))
	require.Equal(t, []string{"5"}, g.usersOf(juniors, ""))
	g.Patch(node(juniors), object{"is_dynamic": "0"}).OK(nil)

	before, events := g.everything(), g.published(-1)
	verify(t, g.Service)
	var all []string
	for i := range g.told.Load() {
		all = append(all, fmt.Sprint("event-", i+1))
	}
	g.tellAgain()
	g.hear(all...)
	require.Equal(t, before, g.everything())
	require.Equal(t, events, g.published(-1))
	verify(t, g.Service)
}
