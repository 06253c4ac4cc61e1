package index

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
	"github.com/idplatform/idplatform/services/questions"
)

// changeOf reads an event of this service.
func changeOf(e bus.Event) (grant.Change, error) {
	var data struct {
		Record json.RawMessage `json:"record"`
	}
	entity, action := kindOf(e)
	err := json.Unmarshal(e.Data, &data)
	return grant.Change{Entity: entity, ID: e.Subject, Deleted: action == "deleted", Sequence: e.Sequence,
		Record: data.Record}, err
}

// kindOf takes idp.auth_rule.created apart.
func kindOf(e bus.Event) (entity, action string) {
	entity, action, _ = strings.Cut(strings.TrimPrefix(e.Type, "idp."), ".")
	return entity, action
}

// readGrant makes an update of a record of this service.
func readGrant(c grant.Change) (update, error) {
	u := update{entity: c.Entity, id: c.ID, sequence: c.Sequence, deleted: c.Deleted}
	if c.Deleted {
		u.sequence = math.MaxInt64
	}
	read := map[string]func(grant.Change) (put, drop func(*engine.Change), err error){
		"resource": readResource, "resource_set": readSet, "resource_set_member": readMember,
		"auth_unit": readUnit, "auth_unit_member": readGroupMember, "auth_rule": readRule,
	}[c.Entity]
	if read == nil {
		return u, fmt.Errorf("unknown entity")
	}
	put, drop, err := read(c)
	u.apply = put
	if c.Deleted {
		u.apply = drop
	}
	return u, err
}

func readResource(c grant.Change) (put, drop func(*engine.Change), err error) {
	var r grant.Resource
	err = json.Unmarshal(c.Record, &r)
	resource := &engine.Resource{
		ID: c.ID, ApplicationID: r.ApplicationID, Type: r.Type, Code: r.Code, Name: r.Name, URI: r.URI,
		Global:     r.IsGlobal == grant.On,
		Properties: properties(r.SysExtProps, r.FreeExtProps), Sequence: c.Sequence,
	}
	for _, action := range r.Actions {
		resource.Actions = append(resource.Actions, action.Code)
	}
	return func(to *engine.Change) { to.PutResource(resource) }, func(to *engine.Change) { to.DropResource(c.ID) }, err
}

// properties are what conditions see of a resource: sys_ext_props, with free_ext_props over them; "" for none.
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
			return "" // no JSON object is ever stored that is none
		}
	}
	merged, _ := json.Marshal(all)
	return string(merged)
}

func empty(props json.RawMessage) bool {
	return len(props) == 0 || string(props) == "{}" || string(props) == "null"
}

func readSet(c grant.Change) (put, drop func(*engine.Change), err error) {
	var s grant.Set
	err = json.Unmarshal(c.Record, &s)
	set := &engine.Set{ID: c.ID, ApplicationID: s.ApplicationID, Code: s.Code, Name: s.Name, Sequence: c.Sequence}
	return func(to *engine.Change) { to.PutSet(set) }, func(to *engine.Change) { to.DropSet(c.ID) }, err
}

func readMember(c grant.Change) (put, drop func(*engine.Change), err error) {
	var m grant.Member
	err = json.Unmarshal(c.Record, &m)
	member := &engine.Member{ID: c.ID, SetID: m.SetID, ResourceID: m.ResourceID, Actions: m.Actions,
		Sequence: c.Sequence}
	return func(to *engine.Change) { to.PutMember(member) }, func(to *engine.Change) { to.DropMember(c.ID) }, err
}

func readUnit(c grant.Change) (put, drop func(*engine.Change), err error) {
	var u grant.Unit
	err = json.Unmarshal(c.Record, &u)
	unit := &engine.Unit{ID: c.ID, Identity: engine.Identity{Type: u.Type, ID: u.Identity.ID}, Name: u.Name,
		Sequence: c.Sequence}
	return func(to *engine.Change) { to.PutUnit(unit) }, func(to *engine.Change) { to.DropUnit(c.ID) }, err
}

func readGroupMember(c grant.Change) (put, drop func(*engine.Change), err error) {
	var m grant.GroupMember
	err = json.Unmarshal(c.Record, &m)
	member := &engine.GroupMember{ID: c.ID, UnitID: m.UnitID, UserID: m.UserID, Sequence: c.Sequence}
	return func(to *engine.Change) { to.PutGroupMember(member) }, func(to *engine.Change) { to.DropGroupMember(c.ID) },
		err
}

func readRule(c grant.Change) (put, drop func(*engine.Change), err error) {
	var r grant.Rule
	err = json.Unmarshal(c.Record, &r)
	rule := &engine.Rule{
		ID: c.ID, UnitID: r.AuthUnitID, ApplicationID: r.ApplicationID, Type: r.Type, ResourceID: r.ResourceID,
		SetID:   r.ResourceSetID,
		Actions: r.Actions, Deny: r.Affect == grant.Deny, Sequence: c.Sequence,
	}
	if r.Type == engine.Wildcard {
		rule.Code = r.Code
	}
	if r.Condition != "" {
		rule.Condition = &engine.Condition{Text: r.Condition}
	}
	if !r.ValidFrom.IsZero() {
		rule.From = r.ValidFrom.Millis()
	}
	if !r.ValidTo.IsZero() {
		rule.To = r.ValidTo.Millis()
	}
	return func(to *engine.Change) { to.PutRule(rule) }, func(to *engine.Change) { to.DropRule(c.ID) }, err
}

// readPeople makes updates of an event of the users or the organization service.
func readPeople(e bus.Event) ([]update, error) {
	entity, action := kindOf(e)
	if entity == "membership" && action == "deleted" {
		return readEnded(e)
	}
	var data struct {
		Record json.RawMessage `json:"record"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return nil, err
	}
	u := update{entity: entity, id: e.Subject, deleted: action == "deleted"}
	var err error
	switch entity {
	case "user":
		u, err = readUser(data.Record, e.Sequence, u)
	case "node":
		u.apply, err = readNode(data.Record, e, u.deleted)
	case "core_object":
		u.apply, err = readTree(data.Record, e, u.deleted)
	case "membership":
		u.apply, err = readMembership(data.Record, e)
	default:
		err = fmt.Errorf("unknown entity")
	}
	return []update{u}, err
}

func readNode(raw json.RawMessage, e bus.Event, deleted bool) (func(*engine.Change), error) {
	if deleted {
		return func(to *engine.Change) { to.DropNode(e.Subject) }, nil
	}
	var n questions.Node
	err := json.Unmarshal(raw, &n)
	n.ID, n.Sequence = e.Subject, e.Sequence
	return putNode(n), err
}

func putNode(n questions.Node) func(*engine.Change) {
	node := engine.TreeNode(n)
	return func(to *engine.Change) { to.PutNode(&node) }
}

func readTree(raw json.RawMessage, e bus.Event, deleted bool) (func(*engine.Change), error) {
	if deleted {
		return func(to *engine.Change) { to.DropTree(e.Subject) }, nil
	}
	var o questions.CoreObject
	err := json.Unmarshal(raw, &o)
	o.ID, o.Sequence = e.Subject, e.Sequence
	return putTree(o), err
}

func putTree(o questions.CoreObject) func(*engine.Change) {
	tree := engine.Tree(o)
	return func(to *engine.Change) { to.PutTree(&tree) }
}

func readMembership(raw json.RawMessage, e bus.Event) (func(*engine.Change), error) {
	var m questions.Membership
	err := json.Unmarshal(raw, &m)
	m.ID, m.Sequence = e.Subject, e.Sequence
	return putMembership(m), err
}

func putMembership(m questions.Membership) func(*engine.Change) {
	return func(to *engine.Change) {
		to.PutMembership(&engine.Membership{ID: m.ID, NodeID: m.NodeID, UserID: m.UserID, Sequence: m.Sequence})
	}
}

// readUser makes an update of a user record; one who has resigned is no user any more.
func readUser(raw json.RawMessage, sequence int64, u update) (update, error) {
	var user struct {
		ID           string          `json:"id"`
		Username     string          `json:"username"`
		Status       string          `json:"status"`
		FreeExtProps json.RawMessage `json:"free_ext_props"`
	}
	err := json.Unmarshal(raw, &user)
	u.id, u.deleted = user.ID, u.deleted || user.Status == "resigned"
	person := &engine.Person{ID: user.ID, Username: user.Username, Properties: properties(nil, user.FreeExtProps),
		Sequence: sequence}
	u.apply = func(to *engine.Change) { to.PutPerson(person) }
	if u.deleted {
		u.apply = func(to *engine.Change) { to.DropPerson(person.ID) }
	}
	return u, err
}

// readEnded reads the one form of membership.deleted: a list.
func readEnded(e bus.Event) ([]update, error) {
	var data struct {
		Memberships []struct {
			ID       string `json:"id"`
			NodeID   string `json:"node_id"`
			Sequence string `json:"sequence"`
		} `json:"memberships"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return nil, err
	}
	var updates []update
	for _, m := range data.Memberships {
		if _, err := strconv.ParseInt(m.Sequence, 10, 64); err != nil {
			return nil, err
		}
		updates = append(updates, update{entity: "membership", id: m.ID, deleted: true, apply: func(to *engine.Change) {
			to.DropMembership(m.ID, m.NodeID)
		}})
	}
	return updates, nil
}
