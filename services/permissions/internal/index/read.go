package index

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
	"github.com/idplatform/idplatform/services/questions"
)

// changeOf reads the change that an event of this service tells.
func changeOf(e stream.Event) (grant.Change, error) {
	var data struct {
		Record json.RawMessage `json:"record"`
	}
	entity, action := kindOf(e)
	c := grant.Change{Entity: entity, ID: e.Subject, Deleted: action == "deleted", Sequence: e.Sequence}
	if c.Deleted {
		return c, nil
	}
	err := e.Read(&data)
	c.Record = data.Record
	return c, err
}

// kindOf returns the entity and action of an event type such as idp.auth_rule.created.
func kindOf(e stream.Event) (entity, action string) {
	entity, action, _ = strings.Cut(strings.TrimPrefix(e.Type, "idp."), ".")
	return entity, action
}

// deletedSequence is the sequence of a deleted record. It is greater than all others.
const deletedSequence = math.MaxInt64

// readGrant makes an update of a record of this service. Of a deleted record only the id is needed.
func readGrant(c grant.Change) (update, error) {
	u := update{entity: c.Entity, id: c.ID, sequence: c.Sequence, deleted: c.Deleted}
	entity, known := entities[c.Entity]
	switch {
	case !known:
		return u, errUnknown
	case c.Deleted:
		u.sequence = deletedSequence
		u.apply = func(to *engine.Change) { entity.drop(to, c.ID) }
		return u, nil
	}
	var err error
	u.apply, err = entity.read(c)
	return u, err
}

// entities are the kinds of records of this service, as events name them.
var entities = map[string]struct {
	read func(grant.Change) (put func(*engine.Change), err error)
	drop func(*engine.Change, string)
}{
	"resource":            {readResource, (*engine.Change).DropResource},
	"resource_set":        {readSet, (*engine.Change).DropSet},
	"resource_set_member": {readMember, (*engine.Change).DropMember},
	"auth_unit":           {readUnit, (*engine.Change).DropUnit},
	"auth_unit_member":    {readGroupMember, (*engine.Change).DropGroupMember},
	"auth_rule":           {readRule, (*engine.Change).DropRule},
}

var (
	errUnknown = errors.New("the kind of record is unknown")
	errLacking = errors.New("a required member is missing")
)

// whole returns an error if a required member is empty.
func whole(members ...string) error {
	if slices.Contains(members, "") {
		return errLacking
	}
	return nil
}

// recordOf is the record of a change.
func recordOf[T any](c grant.Change) (*T, error) {
	if value, ok := c.Value.(*T); ok {
		return value, nil
	}
	var value T
	return &value, json.Unmarshal(c.Record, &value)
}

func readResource(c grant.Change) (func(*engine.Change), error) {
	r, err := recordOf[grant.Resource](c)
	if err == nil {
		err = whole(r.ApplicationID, r.Type, r.Code)
	}
	if err != nil {
		return nil, err
	}
	resource := &engine.Resource{
		ID: c.ID, ApplicationID: r.ApplicationID, Type: r.Type, Code: r.Code, Name: r.Name, URI: r.URI,
		Global:     r.IsGlobal == grant.On,
		Properties: engine.Properties(properties(r.SysExtProps, r.FreeExtProps)), Sequence: c.Sequence,
	}
	for _, action := range r.Actions {
		resource.Actions = append(resource.Actions, action.Code)
	}
	return func(to *engine.Change) { to.PutResource(resource) }, nil
}

// properties are what conditions see of a resource: sys_ext_props, overridden by free_ext_props; "" if both are empty.
func properties(system, free json.RawMessage) string {
	if empty(system) {
		system, free = free, nil
	}
	if empty(system) {
		return ""
	}
	if empty(free) {
		return string(system)
	}
	all := map[string]json.RawMessage{}
	for _, props := range []json.RawMessage{system, free} {
		if json.Unmarshal(props, &all) != nil {
			return "" // does not happen: only JSON objects are stored
		}
	}
	merged, _ := json.Marshal(all)
	return string(merged)
}

func empty(props json.RawMessage) bool {
	return len(props) == 0 || string(props) == "{}" || string(props) == "null"
}

func readSet(c grant.Change) (func(*engine.Change), error) {
	s, err := recordOf[grant.Set](c)
	if err == nil {
		err = whole(s.ApplicationID, s.Code)
	}
	if err != nil {
		return nil, err
	}
	set := &engine.Set{ID: c.ID, ApplicationID: s.ApplicationID, Code: s.Code, Name: s.Name, Sequence: c.Sequence}
	return func(to *engine.Change) { to.PutSet(set) }, nil
}

func readMember(c grant.Change) (func(*engine.Change), error) {
	m, err := recordOf[grant.Member](c)
	if err == nil {
		err = whole(m.SetID, m.ResourceID)
	}
	if err != nil {
		return nil, err
	}
	member := &engine.Member{ID: c.ID, SetID: m.SetID, ResourceID: m.ResourceID, Actions: m.Actions,
		Sequence: c.Sequence}
	return func(to *engine.Change) { to.PutMember(member) }, nil
}

func readUnit(c grant.Change) (func(*engine.Change), error) {
	u, err := recordOf[grant.Unit](c)
	if err == nil {
		err = whole(u.Type, u.IdentityID)
	}
	if err != nil {
		return nil, err
	}
	unit := &engine.Unit{ID: c.ID, Identity: engine.Identity{Type: u.Type, ID: u.IdentityID}, Name: u.Name,
		Sequence: c.Sequence}
	return func(to *engine.Change) { to.PutUnit(unit) }, nil
}

func readGroupMember(c grant.Change) (func(*engine.Change), error) {
	m, err := recordOf[grant.GroupMember](c)
	if err == nil {
		err = whole(m.UnitID, m.UserID)
	}
	if err != nil {
		return nil, err
	}
	member := &engine.GroupMember{ID: c.ID, UnitID: m.UnitID, UserID: m.UserID, Sequence: c.Sequence}
	return func(to *engine.Change) { to.PutGroupMember(member) }, nil
}

func readRule(c grant.Change) (func(*engine.Change), error) {
	r, err := recordOf[grant.Rule](c)
	if err == nil {
		err = whole(r.AuthUnitID, r.ApplicationID, r.Type)
	}
	if err != nil {
		return nil, err
	}
	rule := r.Engine()
	rule.Created = r.TimeCreated.Millis()
	rule.ID, rule.UnitID, rule.Sequence = c.ID, r.AuthUnitID, c.Sequence
	return func(to *engine.Change) { to.PutRule(rule) }, nil
}

// readPeople makes the updates of an event of another service.
func readPeople(e stream.Event) ([]update, error) {
	entity, action := kindOf(e)
	if entity == "membership" && action == "deleted" {
		return readEnded(e)
	}
	var data struct {
		Record json.RawMessage `json:"record"`
	}
	if err := e.Read(&data); err != nil && action != "deleted" {
		return nil, err
	}
	u := update{entity: entity, id: e.Subject, deleted: action == "deleted"}
	var err error
	switch {
	case u.deleted:
		u.apply, err = dropped(entity, e.Subject)
	case entity == "user":
		u, err = readUser(data.Record, e.Sequence, u)
	case entity == "application":
		u.apply, err = readCaller(data.Record, e)
	case entity == "node":
		u.apply, err = readNode(data.Record, e)
	case entity == "core_object":
		u.apply, err = readTree(data.Record, e)
	case entity == "membership":
		u.apply, err = readMembership(data.Record, e)
	default:
		err = errUnknown
	}
	return []update{u}, err
}

// dropped deletes a record of another service.
func dropped(entity, id string) (func(*engine.Change), error) {
	drop := map[string]func(*engine.Change, string){
		"user": (*engine.Change).DropPerson, "node": (*engine.Change).DropNode,
		"core_object": (*engine.Change).DropTree, "application": (*engine.Change).DropCaller,
	}[entity]
	if drop == nil {
		return nil, errUnknown
	}
	return func(to *engine.Change) { drop(to, id) }, nil
}

func readCaller(raw json.RawMessage, e stream.Event) (func(*engine.Change), error) {
	var a questions.Application
	err := stream.ReadJSON(raw, &a)
	a.ID, a.Sequence = e.Subject, e.Sequence
	return putCaller(a), err
}

func putCaller(a questions.Application) func(*engine.Change) {
	caller := engine.Caller(a)
	return func(to *engine.Change) { to.PutCaller(&caller) }
}

func readNode(raw json.RawMessage, e stream.Event) (func(*engine.Change), error) {
	var n questions.Node
	err := stream.ReadJSON(raw, &n)
	if err == nil {
		err = whole(n.ObjectCode)
	}
	n.ID, n.Sequence = e.Subject, e.Sequence
	return putNode(n), err
}

// disabledNode is the status of nodes that grant nothing.
const disabledNode = "0"

func putNode(n questions.Node) func(*engine.Change) {
	node := engine.TreeNode{
		ID: n.ID, Name: n.Name, ParentID: n.ParentID, ObjectCode: n.ObjectCode, Sequence: n.Sequence,
		PointerID: n.PointerID, Disabled: n.Status == disabledNode,
	}
	return func(to *engine.Change) { to.PutNode(&node) }
}

func readTree(raw json.RawMessage, e stream.Event) (func(*engine.Change), error) {
	var o questions.CoreObject
	err := stream.ReadJSON(raw, &o)
	if err == nil {
		err = whole(o.Code)
	}
	o.ID, o.Sequence = e.Subject, e.Sequence
	return putTree(o), err
}

func putTree(o questions.CoreObject) func(*engine.Change) {
	tree := engine.Tree(o)
	return func(to *engine.Change) { to.PutTree(&tree) }
}

func readMembership(raw json.RawMessage, e stream.Event) (func(*engine.Change), error) {
	var m questions.Membership
	err := stream.ReadJSON(raw, &m)
	if err == nil {
		err = whole(m.NodeID, m.UserID)
	}
	m.ID, m.Sequence = e.Subject, e.Sequence
	return putMembership(m), err
}

func putMembership(m questions.Membership) func(*engine.Change) {
	return func(to *engine.Change) {
		to.PutMembership(&engine.Membership{ID: m.ID, NodeID: m.NodeID, UserID: m.UserID, Sequence: m.Sequence})
	}
}

// userMembers are the members that readUser reads.
var userMembers = []string{"id", "username", "status", "free_ext_props"}

// readUser completes u from a user record. A user who has resigned stays, and may do nothing.
func readUser(raw json.RawMessage, sequence int64, u update) (update, error) {
	var user struct {
		ID           string          `json:"id"`
		Username     string          `json:"username"`
		Status       string          `json:"status"`
		FreeExtProps json.RawMessage `json:"free_ext_props"`
	}
	err := stream.ReadJSON(raw, &user)
	if err == nil {
		err = whole(user.ID, user.Username)
	}
	u.id = user.ID
	person := &engine.Person{ID: user.ID, Username: user.Username,
		Disabled:   user.Status == "0" || user.Status == "resigned",
		Properties: engine.Properties(properties(nil, user.FreeExtProps)), Sequence: sequence}
	u.apply = func(to *engine.Change) { to.PutPerson(person) }
	return u, err
}

// readEnded makes the updates of membership.deleted, which lists all memberships that ended together.
func readEnded(e stream.Event) ([]update, error) {
	var data struct {
		Memberships []struct {
			ID     string `json:"id"`
			NodeID string `json:"node_id"`
		} `json:"memberships"`
	}
	if err := e.Read(&data); err != nil {
		return nil, err
	}
	var updates []update
	for _, m := range data.Memberships {
		if err := whole(m.ID, m.NodeID); err != nil {
			return nil, err
		}
		updates = append(updates, update{
			entity: "membership", id: m.ID, deleted: true, final: true,
			apply: func(to *engine.Change) { to.DropMembership(m.ID, m.NodeID) },
		})
	}
	return updates, nil
}
