package organization_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/testkit"
)

// modelNode, modelMember and model are what the service should be, in the simplest form: the model stores nothing that
// it can count or look for.
type modelNode struct {
	id, tree, parent, code, name, status, pointer string
}

type modelMember struct {
	id, node, user string
	primary        bool
}

type model struct {
	objects map[string]string // the root, by code
	nodes   map[string]*modelNode
	members map[string]*modelMember

	c         *testkit.Client
	known     []string // ids of nodes that exist or existed
	joined    []string // ids of memberships
	objectIDs map[string]string
	steps     int
}

const modelUsers = 5 // user 6 does not exist

func (m *model) path(id string) (path []string) {
	for n := m.nodes[id]; n != nil; n = m.nodes[n.parent] {
		path = append(path, n.id)
	}
	slices.Reverse(path)
	return path
}

func (m *model) children(id string) (n int64) {
	for _, other := range m.nodes {
		if other.parent == id {
			n++
		}
	}
	return n
}

func (m *model) population(id string) (n int64) {
	for _, member := range m.members {
		if member.node == id {
			n++
		}
	}
	return n
}

func (m *model) pointed(id string) bool {
	for _, n := range m.nodes {
		if n.pointer == id {
			return true
		}
	}
	return false
}

func (m *model) taken(tree, code, except string) bool {
	for _, n := range m.nodes {
		if n.tree == tree && n.code == code && n.id != except {
			return true
		}
	}
	return false
}

// primary is the primary membership that a user has in a node's tree.
func (m *model) primary(tree, user string) *modelMember {
	for _, member := range m.members {
		if member.primary && member.user == user && m.nodes[member.node].tree == tree {
			return member
		}
	}
	return nil
}

func (m *model) join(id, nodeID, user string, primary bool) {
	before := m.primary(m.nodes[nodeID].tree, user)
	if before != nil && primary {
		before.primary = false
	}
	m.members[id] = &modelMember{id, nodeID, user, primary || before == nil}
	m.joined = append(m.joined, id)
}

// leave ends a membership; the oldest of the others becomes primary in its place.
func (m *model) leave(id string) {
	gone := m.members[id]
	delete(m.members, id)
	if !gone.primary {
		return
	}
	for _, other := range slices.Sorted(maps.Keys(m.members)) {
		if o := m.members[other]; o.user == gone.user && m.nodes[o.node].tree == m.nodes[gone.node].tree {
			o.primary = true
			return
		}
	}
}

func (m *model) remove(id string) {
	for _, member := range slices.Sorted(maps.Keys(m.members)) {
		if m.members[member].node == id {
			m.leave(member)
		}
	}
	delete(m.nodes, id)
}

// modelRequest is a request, with the status that its answer must have and its effect if that is 200.
type modelRequest struct {
	method, url string
	body        any
	status      int
	done        func(a *testkit.Answer)
}

// send sends it, sometimes as a dry run, which has no effect.
func (m *model) send(t *rapid.T, r modelRequest) {
	dry := rapid.IntRange(0, 7).Draw(t, "dry") == 0
	if dry {
		separator := "?"
		if strings.Contains(r.url, "?") {
			separator = "&"
		}
		r.url += separator + "dry_run=true"
	}
	a := m.c.Do(r.method, r.url, r.body)
	require.Equal(t, r.status, a.Status, "%s %s %v: %s", r.method, r.url, r.body, a.Body)
	if a.Status == 200 && !dry {
		r.done(a)
	}
}

// pick returns a random node, sometimes a deleted one.
func (m *model) pick(t *rapid.T, label string) string { return pickOf(t, label, m.nodes, m.known) }

// pickParent returns a random node of a tree, sometimes of any tree, or what means the root.
func (m *model) pickParent(t *rapid.T, tree string) string {
	var ids []string
	for id, n := range m.nodes {
		if n.tree == tree {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return rapid.SampledFrom(append(ids, "", m.pick(t, "any"))).Draw(t, "parent")
}

func (m *model) pickMember(t *rapid.T) string { return pickOf(t, "membership", m.members, m.joined) }

func pickOf[T any](t *rapid.T, label string, there map[string]T, known []string) string {
	if len(there) > 0 && rapid.IntRange(0, 9).Draw(t, "there") > 0 {
		return rapid.SampledFrom(slices.Sorted(maps.Keys(there))).Draw(t, label)
	}
	return rapid.SampledFrom(append([]string{"12345"}, known...)).Draw(t, label)
}

var (
	modelTrees = rapid.SampledFrom([]string{"a", "b", "c"})
	modelCodes = rapid.SampledFrom([]string{"", "x", "y", "z"})
	modelUser  = rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprint(rapid.IntRange(1, modelUsers+1).Draw(t, "n"))
	})
)

func unknownUser(user string) bool { return user == fmt.Sprint(modelUsers+1) }

func (m *model) createObject(t *rapid.T) {
	code := modelTrees.Draw(t, "code")
	r := modelRequest{"POST", "/v1/core-objects", object{"code": code, "name": code}, 200, func(a *testkit.Answer) {
		m.addObject(code, a)
	}}
	if m.objects[code] != "" {
		r.status = 409
	}
	m.send(t, r)
}

func (m *model) addObject(code string, a *testkit.Answer) {
	var o struct {
		ID   string `json:"id"`
		Root string `json:"root_node_id"`
	}
	a.OK(&o)
	m.objects[code], m.objectIDs[code] = o.Root, o.ID
	m.add(&modelNode{id: o.Root, tree: code, code: code, name: code})
}

func (m *model) deleteObject(t *rapid.T) {
	code := modelTrees.Draw(t, "code")
	root := m.objects[code]
	r := modelRequest{"DELETE", "/v1/core-objects/" + m.objectIDs[code] + "0", nil, 404, nil}
	if root != "" {
		r = modelRequest{"DELETE", "/v1/core-objects/" + m.objectIDs[code], nil, 200, func(*testkit.Answer) {
			m.remove(root)
			delete(m.objects, code)
		}}
		if m.children(root) > 0 || m.pointed(root) {
			r.status = 409
		}
	}
	m.send(t, r)
}

// add adds a node that was created.
func (m *model) add(n *modelNode) {
	n.status = "1"
	if n.code == "" {
		n.code = "node-" + n.id
	}
	m.nodes[n.id] = n
	m.known = append(m.known, n.id)
}

// inTree returns the node of a tree that id means, "" if none.
func (m *model) inTree(tree, parent string) string {
	if parent == "" {
		return m.objects[tree]
	}
	if n := m.nodes[parent]; n != nil && n.tree == tree {
		return parent
	}
	return ""
}

func (m *model) create(t *rapid.T) {
	tree, code := modelTrees.Draw(t, "tree"), modelCodes.Draw(t, "code")
	given := m.pickParent(t, tree)
	body := object{"object_code": tree, "name": "n", "parent_id": given, "code": code}
	parent, pointer := m.inTree(tree, given), ""
	if rapid.IntRange(0, 3).Draw(t, "pointer") == 0 {
		pointer = m.pick(t, "target")
		body["is_pointer"], body["pointer_id"] = "1", pointer
	}
	status := 200
	switch {
	case parent == "", pointer != "" && (m.nodes[pointer] == nil || m.nodes[pointer].pointer != "" ||
		slices.Contains(m.path(parent), pointer)):
		status = 400
	case code != "" && m.taken(tree, code, ""):
		status = 409
	}
	m.send(t, modelRequest{"POST", "/v1/tree-nodes", body, status, func(a *testkit.Answer) {
		m.add(&modelNode{id: a.ID(), tree: tree, parent: parent, code: code, name: "n", pointer: pointer})
	}})
}

func (m *model) createMany(t *rapid.T) {
	tree := modelTrees.Draw(t, "tree")
	n := rapid.IntRange(1, 5).Draw(t, "n")
	refs := make([]int, n) // the index of the item that is the parent, or −1
	parents, codes := make([]string, n), make([]string, n)
	items := make([]object, n)
	status := 200
	if m.objects[tree] == "" {
		status = 400
	}
	seen := map[string]bool{}
	for i := range n {
		codes[i] = modelCodes.Draw(t, "code")
		items[i] = object{"name": "n", "ref": fmt.Sprint(i), "code": codes[i]}
		if refs[i] = max(-1, rapid.IntRange(-n, n-1).Draw(t, "ref")); refs[i] >= 0 {
			items[i]["parent_ref"] = fmt.Sprint(refs[i])
			continue
		}
		given := m.pickParent(t, tree)
		items[i]["parent_id"] = given
		if parents[i] = m.inTree(tree, given); parents[i] == "" {
			status = 400
		}
	}
	for i := range n {
		at := i
		for range n {
			if at >= 0 {
				at = refs[at]
			}
		}
		if at >= 0 {
			status = 400 // still within the batch after n steps up
		}
	}
	for _, code := range codes {
		if status == 200 && code != "" && (seen[code] || m.taken(tree, code, "")) {
			status = 409
		}
		seen[code] = true
	}
	m.send(t, modelRequest{"POST", "/v1/batch/tree-nodes", object{"object_code": tree, "items": items}, status,
		func(a *testkit.Answer) {
			ids := idsOf(a)
			for i, id := range ids {
				if refs[i] >= 0 {
					parents[i] = ids[refs[i]]
				}
				m.add(&modelNode{id: id, tree: tree, parent: parents[i], code: codes[i], name: "n"})
			}
		}})
}

// patch changes a node. status is the expected one if the node exists.
func (m *model) patch(t *rapid.T, id string, body object, status int, done func(*modelNode)) {
	n := m.nodes[id]
	if n == nil {
		status = 404
	}
	m.send(t, modelRequest{"PATCH", "/v1/tree-nodes/" + id, body, status, func(*testkit.Answer) { done(n) }})
}

func (m *model) rename(t *rapid.T) {
	name := rapid.SampledFrom([]string{"n", "m"}).Draw(t, "name")
	m.patch(t, m.pick(t, "node"), object{"name": name}, 200, func(n *modelNode) { n.name = name })
}

func (m *model) recode(t *rapid.T) {
	id, code := m.pick(t, "node"), modelCodes.Draw(t, "code")
	status := 200
	switch n := m.nodes[id]; {
	case code == "":
		status = 400
	case n != nil && m.taken(n.tree, code, id):
		status = 409
	}
	m.patch(t, id, object{"code": code}, status, func(n *modelNode) { n.code = code })
}

func (m *model) move(t *rapid.T) {
	id := m.pick(t, "node")
	m.moveTo(t, id, m.pickParent(t, modelTrees.Draw(t, "tree")))
}

// moveToTarget moves a pointer, or a node above it, to its target.
func (m *model) moveToTarget(t *rapid.T) {
	var pointers []string
	for id, n := range m.nodes {
		if n.pointer != "" {
			pointers = append(pointers, id)
		}
	}
	if len(pointers) == 0 {
		t.Skip("no pointers")
	}
	slices.Sort(pointers)
	id := rapid.SampledFrom(pointers).Draw(t, "pointer")
	m.moveTo(t, rapid.SampledFrom(m.path(id)).Draw(t, "node"), m.nodes[id].pointer)
}

func (m *model) moveTo(t *rapid.T, id, given string) {
	n, to, status := m.nodes[id], "", 200
	switch {
	case n == nil:
	case n.parent == "":
		if given != "" {
			status = 400
		}
	default:
		to = m.inTree(n.tree, given)
		path := m.path(to)
		if to == "" || slices.Contains(path, id) {
			status = 400
		} else if to != n.parent {
			for _, p := range m.nodes { // would a pointer be below its target?
				if p.pointer != "" && slices.Contains(m.path(p.id), id) && slices.Contains(path, p.pointer) {
					status = 400
				}
			}
		}
	}
	m.patch(t, id, object{"parent_id": given}, status, func(n *modelNode) { n.parent = to })
}

func (m *model) point(t *rapid.T) {
	id, target := m.pick(t, "node"), m.pick(t, "target")
	status := 200
	switch n := m.nodes[id]; {
	case n != nil && n.pointer == target:
	case m.nodes[target] == nil, m.nodes[target].pointer != "", slices.Contains(m.path(id), target):
		status = 400
	case m.pointed(id), n != nil && n.pointer == "" && m.population(id) > 0:
		status = 409
	}
	m.patch(t, id, object{"is_pointer": "1", "pointer_id": target}, status, func(n *modelNode) { n.pointer = target })
}

func (m *model) pointNoMore(t *rapid.T) {
	m.patch(t, m.pick(t, "node"), object{"is_pointer": "0", "pointer_id": nil}, 200, func(n *modelNode) {
		n.pointer = ""
	})
}

func (m *model) delete(t *rapid.T) {
	id, tree := m.pick(t, "node"), modelTrees.Draw(t, "tree")
	n := m.nodes[id]
	if n != nil && rapid.IntRange(0, 9).Draw(t, "own tree") > 0 {
		tree = n.tree
	}
	status := 200
	switch {
	case n == nil || n.tree != tree:
		status = 404
	case m.children(id) > 0 || n.parent == "" || m.pointed(id):
		status = 409
	}
	m.send(t, modelRequest{"DELETE", "/v1/tree-nodes/" + id + "?object_code=" + tree, nil, status,
		func(*testkit.Answer) {
			m.remove(id)
		}})
}

func (m *model) switchStatus(t *rapid.T) {
	id, on, recursive := m.pick(t, "node"), rapid.Bool().Draw(t, "on"), rapid.Bool().Draw(t, "recursive")
	word, to, status := "disable", "0", 200
	if on {
		word, to = "enable", "1"
	}
	if m.nodes[id] == nil {
		status = 404
	}
	m.send(t, modelRequest{"POST", fmt.Sprint("/v1/tree-nodes/", id, "/", word, "?recursive=", recursive), nil, status,
		func(*testkit.Answer) {
			for other, n := range m.nodes {
				if other == id || recursive && slices.Contains(m.path(other), id) {
					n.status = to
				}
			}
		}})
}

func (m *model) belongs(nodeID, user string) string {
	for id, member := range m.members {
		if member.node == nodeID && member.user == user {
			return id
		}
	}
	return ""
}

func (m *model) addMember(t *rapid.T) {
	id, user, primary := m.pick(t, "node"), modelUser.Draw(t, "user"), rapid.IntRange(0, 1).Draw(t, "primary")
	status := 200
	switch {
	case unknownUser(user), m.nodes[id] == nil:
		status = 400
	case m.belongs(id, user) != "", m.nodes[id].pointer != "":
		status = 409
	}
	m.send(t, modelRequest{"POST", "/v1/tree-users",
		object{"node_id": id, "user_id": user, "is_primary": fmt.Sprint(primary)}, status, func(a *testkit.Answer) {
			m.join(a.ID(), id, user, primary == 1)
		}})
}

func (m *model) addMembers(t *rapid.T) {
	n := rapid.IntRange(1, 4).Draw(t, "n")
	items, status := make([]object, n), 200
	seen := map[string]bool{}
	for i := range n {
		node, user := m.pick(t, "node"), modelUser.Draw(t, "user")
		items[i] = object{"node_id": node, "user_id": user,
			"is_primary": fmt.Sprint(rapid.IntRange(0, 1).Draw(t, "primary"))}
		switch {
		case unknownUser(user), m.nodes[node] == nil, seen[node+"/"+user]:
			status = 400
		case (m.belongs(node, user) != "" || m.nodes[node].pointer != "") && status == 200:
			status = 409
		}
		seen[node+"/"+user] = true
	}
	m.send(t, modelRequest{"POST", "/v1/batch/tree-users", object{"items": items}, status, func(a *testkit.Answer) {
		for i, id := range idsOf(a) {
			m.join(id, items[i]["node_id"].(string), items[i]["user_id"].(string), items[i]["is_primary"] == "1")
		}
	}})
}

func (m *model) makePrimary(t *rapid.T) {
	id, primary := m.pickMember(t), rapid.IntRange(0, 1).Draw(t, "primary")
	member, status := m.members[id], 200
	switch {
	case member == nil:
		status = 404
	case primary == 0 && member.primary:
		status = 400
	}
	m.send(t, modelRequest{"PATCH", "/v1/tree-users/" + id, object{"is_primary": fmt.Sprint(primary)}, status,
		func(*testkit.Answer) {
			if primary == 1 {
				m.primary(m.nodes[member.node].tree, member.user).primary = false
				member.primary = true
			}
		}})
}

func (m *model) removeMember(t *rapid.T) {
	id, status := m.pickMember(t), 200
	if m.members[id] == nil {
		status = 404
	}
	m.send(t, modelRequest{"DELETE", "/v1/tree-users/" + id, nil, status, func(*testkit.Answer) { m.leave(id) }})
}

func (m *model) removeMembers(t *rapid.T) {
	id := m.pick(t, "node")
	users := rapid.SliceOfNDistinct(modelUser, 1, 3, rapid.ID[string]).Draw(t, "users")
	var gone []string
	for _, user := range users {
		if member := m.belongs(id, user); member != "" {
			gone = append(gone, member)
		}
	}
	m.send(t, modelRequest{"DELETE", "/v1/tree-users", object{"node_id": id, "user_ids": users}, 200,
		func(a *testkit.Answer) {
			require.EqualValues(t, len(gone), a.Object()["removed"])
			for _, member := range slices.Sorted(slices.Values(gone)) {
				m.leave(member)
			}
		}})
}

func (m *model) read(t *rapid.T, url string, into any) {
	a := m.c.Get(url)
	require.Equal(t, 200, a.Status, "%s: %s", url, a.Body)
	require.NoError(t, json.Unmarshal(a.Body, into))
}

// check reads the trees and one user's memberships, and compares them with the model.
func (m *model) check(t *rapid.T) {
	var objects []struct {
		Code  string `json:"code"`
		Root  string `json:"root_node_id"`
		Count int    `json:"node_count"`
	}
	m.read(t, "/v1/core-objects", &objects)
	require.Len(t, objects, len(m.objects))
	want, got := map[string]treeNode{}, map[string]treeNode{}
	for id, n := range m.nodes {
		path, pointer := m.path(id), "0"
		if n.pointer != "" {
			pointer = "1"
		}
		want[id] = treeNode{
			ID: id, ObjectCode: n.tree, Code: n.code, Name: n.name, Status: n.status, ParentID: n.parent, Path: path,
			Depth:      len(path) - 1,
			ChildCount: m.children(id), MemberCount: m.population(id), IsPointer: pointer, PointerID: n.pointer,
			IsDynamic: "0",
		}
	}
	for _, o := range objects {
		var page struct{ Items []treeNode }
		m.read(t, "/v1/tree-nodes?page_size=200&object_code="+o.Code, &page)
		require.Equal(t, m.objects[o.Code], o.Root)
		require.Len(t, page.Items, o.Count)
		for _, n := range page.Items {
			got[n.ID] = n
		}
	}
	require.Equal(t, want, got)
	m.steps++
	m.checkUser(t, fmt.Sprint(1+m.steps%modelUsers))
}

func (m *model) checkUser(t *rapid.T, user string) {
	want, got := map[string]string{}, map[string]string{}
	for id, member := range m.members {
		if member.user == user {
			want[id] = fmt.Sprint(member.node, " ", member.primary)
		}
	}
	var has []storedMember
	m.read(t, "/v1/tree-users?user_id="+user, &has)
	for _, member := range has {
		got[member.ID] = fmt.Sprint(member.NodeID, " ", member.IsPrimary == "1")
	}
	require.Equal(t, want, got, "memberships of %s", user)
}

// After any sequence of requests, the answers and the data are those of a simple model.
func TestModel(t *testing.T) {
	t.Parallel()
	s, _, _ := withPeople(t, modelUsers)
	tenants := 0
	rapid.Check(t, func(t *rapid.T) {
		tenants++
		m := &model{
			objects: map[string]string{}, nodes: map[string]*modelNode{}, members: map[string]*modelMember{},
			objectIDs: map[string]string{},
			c:         in(s, fmt.Sprint("tenant-", tenants)),
		}
		for _, code := range []string{"a", "b"} { // otherwise most requests would be refused
			m.addObject(code, m.c.Post("/v1/core-objects", object{"code": code, "name": code}))
		}
		t.Repeat(map[string]func(*rapid.T){
			"": m.check, "create object": m.createObject, "delete object": m.deleteObject, "create": m.create,
			"create again": m.create,
			"create many":  m.createMany, "rename": m.rename, "recode": m.recode, "move": m.move, "move again": m.move,
			"move to target": m.moveToTarget, "point": m.point,
			"point no more": m.pointNoMore, "delete": m.delete, "switch": m.switchStatus, "add member": m.addMember,
			"add members":  m.addMembers,
			"make primary": m.makePrimary, "remove member": m.removeMember, "remove members": m.removeMembers,
		})
		for user := range modelUsers {
			m.checkUser(t, fmt.Sprint(1+user))
		}
	})
}
