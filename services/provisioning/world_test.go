package provisioning_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/questions"
)

// world answers in place of the users, organization and identity-sources services: as they do, in memory.
type world struct {
	mu        sync.Mutex
	last      int64
	tenants   map[string]*tenantWorld
	recipient *secret.Recipient
	passwords map[string]string // by user id
	now       func() string

	// fail, if set, is asked before each change; what it returns is answered instead, or after the change if late.
	fail func(question string) (err error, late bool)

	unready error // what permissions answers instead, if it is set
	sharing bool  // users may share contact values
}

type tenantWorld struct {
	users   map[string]object
	seq     map[string]int64 // sequence by record
	trees   map[string]*questions.Tree
	owners  map[string]*questions.ManagedBy // of trees
	nodes   map[string]object
	members map[string]questions.Membership // by node/user
	done    map[string]string               // the record of a change, by its id; "" if it was given up
	creds   map[string]string               // user by connection/id1
	scopes  map[string][]string             // of the platform's API, by user or node
	now     func() string
}

func newWorld(t testing.TB, s *testkit.Service) *world {
	recipient, err := secret.NewRecipient(make([]byte, 32))
	require.NoError(t, err)
	w := &world{last: 1000, tenants: map[string]*tenantWorld{}, recipient: recipient, passwords: map[string]string{},
		now: func() string { return s.Clock.Now().String() }}
	b := s.Deps.Bus
	for _, err := range []error{
		questions.FindUser.Answer(b, w.findUser), questions.ChangeUser.Answer(b, w.changeUser),
		questions.SettleUserChange.Answer(b, w.settleUser), questions.ExistingUsers.Answer(b, w.existing),
		questions.TransitKeyOfUsers.Answer(b, func(context.Context, questions.Nothing) (secret.TransitKey, error) {
			return recipient.Key(), nil
		}),
		questions.MakeTree.Answer(b, w.makeTree), questions.ChangeNode.Answer(b, w.changeNode),
		questions.ChangeMembers.Answer(b, w.changeMembers), questions.SettleChange.Answer(b, w.settle),
		questions.NodeRecords.Answer(b, w.nodeRecords), questions.MembershipRecords.Answer(b, w.memberRecords),
		questions.ExistingConnections.Answer(b, loginConnections), questions.ScopesOfUser.Answer(b, w.scopesOfUser),
		questions.ScopesOfNodes.Answer(b, w.scopesOfNodes),
		questions.SettingsOfUsers.Answer(b, func(context.Context, questions.Nothing) (questions.UserSettings, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return questions.UserSettings{SharedContacts: w.sharing}, nil
		}),
	} {
		require.NoError(t, err)
	}
	return w
}

func loginConnections(_ context.Context, q questions.ConnectionIDs) (questions.Connections, error) {
	return questions.Connections{Connections: []questions.Connection{{ID: q.IDs[0], ProviderCode: "oidc"}}}, nil
}

func (w *world) of(tenant string) *tenantWorld {
	if w.tenants[tenant] == nil {
		w.tenants[tenant] = &tenantWorld{users: map[string]object{}, seq: map[string]int64{},
			trees: map[string]*questions.Tree{}, owners: map[string]*questions.ManagedBy{}, nodes: map[string]object{},
			members: map[string]questions.Membership{}, done: map[string]string{}, creds: map[string]string{},
			scopes: map[string][]string{}, now: w.now}
	}
	return w.tenants[tenant]
}

func (w *world) enter(ctx context.Context) (*tenantWorld, func()) {
	w.mu.Lock()
	return w.of(request.Tenant(ctx)), w.mu.Unlock
}

func (w *world) id() string { w.last++; return strconv.FormatInt(w.last, 10) }

func jsonOf(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func (t *tenantWorld) touch(record object) {
	record["version"] = record["version"].(int) + 1
	t.seq[record["id"].(string)] += 10
}

func (t *tenantWorld) userState(id string) questions.UserState {
	if t.users[id] == nil {
		return questions.UserState{}
	}
	return questions.UserState{User: jsonOf(t.users[id]), Sequence: t.seq[id]}
}

func (w *world) findUser(ctx context.Context, q questions.UserName) (questions.UserState, error) {
	t, leave := w.enter(ctx)
	defer leave()
	for id, u := range t.users {
		if id == q.ID || q.Username != "" && strings.EqualFold(u["username"].(string), q.Username) ||
			q.Email != "" && strings.EqualFold(u["email"].(string), q.Email) {
			return t.userState(id), nil
		}
	}
	return questions.UserState{}, nil
}

// addUser adds a user as an administrator would.
func (w *world) addUser(tenant, username, email string, verified bool) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, id := w.of(tenant), w.id()
	t.users[id] = newUser(t, tenant, id)
	t.users[id]["username"], t.users[id]["email"], t.users[id]["email_verified"] = username, email, verified
	t.seq[id] = 10
	return id
}

func newUser(t *tenantWorld, tenant, id string) object {
	return object{"id": id, "tenant_id": tenant, "version": 1, "time_created": t.now(), "time_modified": t.now(),
		"username": "", "display_name": "", "email": "", "mobile": "", "employee_number": "", "locale": "", "zoneinfo": "",
		"status": "1", "email_verified": false, "sys_ext_props": object{}, "managed_by": nil}
}

// give lets rules give scopes of the platform's API to a user of acme, or to the members of a node.
func (w *world) give(id string, scopes ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of("acme").scopes[id] = scopes
}

// lacksPermissions lets the permissions service be ready or not.
func (w *world) lacksPermissions(unready error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unready = unready
}

// scopesOfNodes knows no node that is called unheard.
func (w *world) scopesOfNodes(ctx context.Context, q questions.NodeIDs) (answer questions.ScopesOfMembers, _ error) {
	t, leave := w.enter(ctx)
	defer leave()
	for _, id := range q.IDs {
		if n := t.nodes[id]; n != nil && n["name"] == "unheard" {
			answer.Unknown = append(answer.Unknown, id)
			continue
		}
		for at := id; at != ""; {
			answer.Scopes.Scopes = append(answer.Scopes.Scopes, t.scopes[at]...)
			at, _ = t.nodes[at]["parent_id"].(string)
		}
	}
	return answer, w.unready
}

func (w *world) scopesOfUser(ctx context.Context, q questions.HolderOfScopes) (questions.Scopes, error) {
	t, leave := w.enter(ctx)
	defer leave()
	return questions.Scopes{Scopes: t.scopes[q.UserID]}, w.unready
}

func (w *world) trouble(question string, late bool) error {
	if w.fail == nil {
		return nil
	}
	err, isLate := w.fail(question)
	if isLate != late {
		return nil
	}
	return err
}

func (w *world) changeUser(ctx context.Context, c questions.UserChange) (questions.UserState, error) {
	t, leave := w.enter(ctx)
	defer leave()
	if err := w.trouble("change", false); err != nil {
		return questions.UserState{}, err
	}
	if id, known := t.done[c.ID]; known {
		if id == "" {
			return questions.UserState{}, apperr.New(apperr.InvalidState, "the change was given up")
		}
		return t.userState(id), nil
	}
	before := maps.Clone(t.users)
	id, err := w.applyUser(t, request.Tenant(ctx), c)
	state := t.userState(id)
	if err != nil || c.DryRun {
		t.users = before
		return state, err
	}
	t.done[c.ID] = id
	if late := w.trouble("change", true); late != nil {
		return questions.UserState{}, late
	}
	return state, nil
}

func (w *world) applyUser(t *tenantWorld, tenant string, c questions.UserChange) (string, error) {
	id, u := c.UserID, object(nil)
	if c.Action == questions.CreateUser {
		id = w.id()
		u = newUser(t, tenant, id)
		u["version"] = 0
	} else if t.users[id] == nil {
		return "", apperr.Missing("user")
	} else {
		u = maps.Clone(t.users[id])
	}
	if c.Version != 0 && int(c.Version) != u["version"].(int) {
		return "", apperr.New(apperr.VersionMismatch, "it has changed")
	}
	switch c.Action {
	case questions.DeleteUser:
		delete(t.users, id)
		t.seq[id] += 10
		return id, nil
	case questions.ResignUser:
		u["status"] = "resigned"
	case questions.ReinstateUser:
		u["status"] = "1"
	}
	var profile object
	if len(c.Profile) > 0 {
		if err := json.Unmarshal(c.Profile, &profile); err != nil {
			return "", err
		}
	}
	for name, v := range profile {
		if name == "sys_ext_props" {
			props := maps.Clone(u[name].(object))
			maps.Copy(props, v.(object))
			v = props
		}
		u[name] = v
	}
	if err := t.checkUser(id, u, w.sharing && !c.Unique); err != nil {
		return "", err
	}
	if m := c.ManagedBy; m != nil {
		u["managed_by"] = any(m)
		if m.Frees() {
			u["managed_by"] = nil
		}
	}
	if l := c.Credential; l != nil {
		t.creds[fmt.Sprint(l.ProviderCode, "/", l.IDPConfigID, "/", l.ID1)] = id
	}
	if c.Password != "" {
		text, err := w.recipient.Open(c.Password, questions.PasswordFor(questions.ToProvision, tenant,
			fmt.Sprint(profile["username"])))
		if err != nil {
			return "", err
		}
		w.passwords[id] = text.Reveal()
	}
	t.users[id] = u
	t.touch(u)
	return id, nil
}

func (t *tenantWorld) checkUser(id string, u object, sharing bool) error {
	if name := u["username"].(string); name == "" || strings.TrimSpace(name) != name {
		return apperr.Invalid("username", "must have blanks only between others")
	}
	var faults apperr.Faults
	faults.Check(u["email"] == "" || strings.Contains(u["email"].(string), "@"), "email", "must be an email address")
	faults.Check(!strings.Contains(u["locale"].(string), " "), "locale", "must be a language tag")
	_, err := time.LoadLocation(u["zoneinfo"].(string))
	faults.Check(err == nil, "zoneinfo", "must be a time zone")
	if err := faults.Err(); err != nil {
		return err
	}
	for other, o := range t.users {
		for _, m := range []string{"username", "email", "mobile"} {
			if sharing && m != "username" || other == id || u[m] == "" {
				continue
			}
			if strings.EqualFold(o[m].(string), u[m].(string)) {
				return apperr.Taken(m)
			}
		}
	}
	return nil
}

func (w *world) settleUser(ctx context.Context, q questions.ChangeID) (questions.UserOutcome, error) {
	t, leave := w.enter(ctx)
	defer leave()
	if err := w.trouble("settle", false); err != nil {
		return questions.UserOutcome{}, err
	}
	id, known := t.done[q.ID]
	if !known {
		t.done[q.ID] = ""
	}
	return questions.UserOutcome{Applied: id != "", UserState: t.userState(id)}, nil
}

func (w *world) existing(ctx context.Context, q questions.UserIDs) (questions.UserIDs, error) {
	t, leave := w.enter(ctx)
	defer leave()
	return questions.UserIDs{IDs: slices.DeleteFunc(q.IDs, func(id string) bool { return t.users[id] == nil })}, nil
}

func (w *world) makeTree(ctx context.Context, q questions.NewTree) (questions.Tree, error) {
	t, leave := w.enter(ctx)
	defer leave()
	if err := w.trouble("make-tree", false); err != nil {
		return questions.Tree{}, err
	}
	owner := t.owners[q.Code]
	if owner != nil && owner.ConnectionID != q.ManagedBy.ConnectionID && !q.ManagedBy.Frees() {
		return questions.Tree{}, apperr.Managed("object_code")
	}
	tree := t.trees[q.Code]
	made := tree == nil
	if made {
		root := w.id()
		tree = &questions.Tree{ID: w.id(), Code: q.Code, RootNodeID: root, Sequence: 10}
	}
	if !q.DryRun {
		t.trees[q.Code] = tree
		t.owners[q.Code] = &q.ManagedBy
		if q.ManagedBy.Frees() {
			delete(t.owners, q.Code)
		}
	}
	answer := *tree
	answer.Made = made
	return answer, nil
}

// addTree adds a core object as an administrator would.
func (w *world) addTree(tenant, code string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(tenant).trees[code] = &questions.Tree{ID: w.id(), Code: code, RootNodeID: w.id(), Sequence: 10}
}

// ownerOf is what a connection owns of a tree; nil if none does.
func (w *world) ownerOf(tenant, code string) *questions.ManagedBy {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of(tenant).owners[code]
}

func (t *tenantWorld) nodeState(id string) questions.NodeState {
	if t.nodes[id] == nil {
		return questions.NodeState{}
	}
	return questions.NodeState{Node: jsonOf(t.nodes[id]), Sequence: t.seq[id]}
}

// addNode adds a node as an administrator would.
func (w *world) addNode(tenant, tree, name string, more object) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, id := w.of(tenant), w.id()
	t.nodes[id] = newNode(t, tenant, tree, id)
	t.nodes[id]["name"] = name
	maps.Copy(t.nodes[id], more)
	t.seq[id] = 10
	return id
}

func newNode(t *tenantWorld, tenant, tree, id string) object {
	root := ""
	if at := t.trees[tree]; at != nil {
		root = at.RootNodeID
	}
	return object{"id": id, "tenant_id": tenant, "version": 1, "time_created": t.now(), "time_modified": t.now(),
		"object_code": tree, "code": "node-" + id, "name": "", "status": "1", "parent_id": root, "path": []string{root, id},
		"is_pointer": "0", "is_dynamic": "0"}
}

func (w *world) changeNode(ctx context.Context, c questions.NodeChange) (questions.NodeState, error) {
	t, leave := w.enter(ctx)
	defer leave()
	if err := w.trouble("change-node", false); err != nil {
		return questions.NodeState{}, err
	}
	if id, known := t.done[c.ID]; known {
		return t.nodeState(id), nil
	}
	id, n := c.NodeID, object(nil)
	if c.Action == questions.CreateNode {
		id = w.id()
		n = newNode(t, request.Tenant(ctx), c.ObjectCode, id)
		n["version"] = 0
	} else if t.nodes[id] == nil {
		return questions.NodeState{}, apperr.Missing("tree node")
	} else {
		n = maps.Clone(t.nodes[id])
	}
	switch c.Action {
	case questions.DisableNode:
		for _, other := range t.nodes {
			if other["parent_id"] == id {
				return questions.NodeState{}, apperr.New(apperr.HasChildren, "the node has child nodes: 1")
			}
		}
		n["status"] = "0"
	case questions.EnableNode:
		n["status"] = "1"
	}
	if len(c.Node) > 0 {
		if err := json.Unmarshal(c.Node, &n); err != nil {
			return questions.NodeState{}, err
		}
	}
	if c.DryRun {
		return questions.NodeState{Node: jsonOf(n), Sequence: 10}, nil
	}
	n["version"] = n["version"].(int)
	t.nodes[id] = n
	t.touch(n)
	t.done[c.ID] = id
	if late := w.trouble("change-node", true); late != nil {
		return questions.NodeState{}, late
	}
	return t.nodeState(id), nil
}

func (w *world) changeMembers(ctx context.Context, c questions.MembersChange) (questions.MembersChanged, error) {
	t, leave := w.enter(ctx)
	defer leave()
	if err := w.trouble("change-members", false); err != nil {
		return questions.MembersChanged{}, err
	}
	if t.nodes[c.NodeID] == nil {
		return questions.MembersChanged{}, apperr.Missing("tree node")
	}
	out := questions.MembersChanged{Unknown: []string{}, Memberships: []questions.Membership{},
		Ended: []questions.Membership{}}
	for _, id := range c.Add {
		if t.users[id] == nil {
			out.Unknown = append(out.Unknown, id)
		}
	}
	if len(out.Unknown) > 0 || c.DryRun {
		return out, nil
	}
	for _, id := range c.Add {
		place := c.NodeID + "/" + id
		if _, has := t.members[place]; !has {
			t.members[place] = questions.Membership{ID: w.id(), NodeID: c.NodeID, UserID: id, Sequence: 10}
		}
		out.Memberships = append(out.Memberships, t.members[place])
	}
	for _, id := range c.Remove {
		if m, has := t.members[c.NodeID+"/"+id]; has {
			delete(t.members, c.NodeID+"/"+id)
			m.Sequence += 10
			out.Ended = append(out.Ended, m)
		}
	}
	t.done[c.ID] = c.NodeID
	if late := w.trouble("change-members", true); late != nil {
		return questions.MembersChanged{}, late
	}
	return out, nil
}

func (w *world) settle(ctx context.Context, q questions.ChangeID) (questions.ChangeOutcome, error) {
	t, leave := w.enter(ctx)
	defer leave()
	if err := w.trouble("settle", false); err != nil {
		return questions.ChangeOutcome{}, err
	}
	id, known := t.done[q.ID]
	if !known {
		t.done[q.ID] = ""
	}
	return questions.ChangeOutcome{Applied: id != "", NodeState: t.nodeState(id)}, nil
}

func (w *world) nodeRecords(ctx context.Context, _ questions.RecordsPage) (questions.Nodes, error) {
	t, leave := w.enter(ctx)
	defer leave()
	page := questions.Nodes{Nodes: []questions.Node{}}
	for id, n := range t.nodes {
		var node questions.Node
		if err := json.Unmarshal(jsonOf(n), &node); err != nil {
			return page, err
		}
		node.Sequence = t.seq[id]
		page.Nodes = append(page.Nodes, node)
	}
	return page, nil
}

func (w *world) memberRecords(ctx context.Context, _ questions.MembershipsPage) (questions.MembershipPage, error) {
	t, leave := w.enter(ctx)
	defer leave()
	return questions.MembershipPage{Memberships: slices.Collect(maps.Values(t.members))}, nil
}

// user is a copy of a user of a tenant.
func (w *world) user(tenant, id string) object {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.of(tenant).users[id])
}

// usersOf counts the users of a tenant.
func (w *world) usersOf(tenant string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.of(tenant).users)
}

// membersOf are the ids of the members of a node, sorted.
func (w *world) membersOf(tenant, node string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := []string{}
	for _, m := range w.of(tenant).members {
		if m.NodeID == node {
			ids = append(ids, m.UserID)
		}
	}
	slices.Sort(ids)
	return ids
}
