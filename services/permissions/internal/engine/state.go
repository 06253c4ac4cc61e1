package engine

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Engine holds the states of all tenants. The zero Engine is ready for use.
type Engine struct {
	tenants sync.Map // name → *Tenant
}

// Tenant returns a tenant's part of the engine, which is empty at first.
func (e *Engine) Tenant(name string) *Tenant {
	if t, ok := e.tenants.Load(name); ok {
		return t.(*Tenant)
	}
	t, _ := e.tenants.LoadOrStore(name, NewTenant())
	return t.(*Tenant)
}

// Tenants calls fn with every tenant.
func (e *Engine) Tenants(fn func(name string, t *Tenant)) {
	e.tenants.Range(func(name, t any) bool {
		fn(name.(string), t.(*Tenant))
		return true
	})
}

// Tenant holds the present State of one tenant.
type Tenant struct {
	mu    sync.Mutex // held by Change
	state atomic.Pointer[State]
}

// NewTenant makes an empty Tenant.
func NewTenant() *Tenant {
	t := &Tenant{}
	t.state.Store(&State{})
	return t
}

// State returns the present state. A state never changes.
func (t *Tenant) State() *State { return t.state.Load() }

// Change makes the next state. All that fn does becomes visible at once; nothing of it does if fn panics.
func (t *Tenant) Change(fn func(*Change)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := *t.state.Load()
	fn(&Change{State: &next, by: &edit{}})
	t.state.Store(&next)
}

// objectCode is how resources are named in an application.
type objectCode struct{ application, kind, code string }

// Grants are what a unit is granted, by what the rules are about.
type Grants = Map[target, []*Rule]

// grantee is the unit of an identity, with what it is granted.
type grantee struct {
	unit   string
	grants Grants
}

// State is what is known of a tenant at one time.
type State struct {
	// What is granted.
	resources Map[string, *Resource]
	codes     Map[objectCode, string] // → resource
	global    Map[objectCode, Map[string,
		bool]] // global resources of any application, by type and code → resources
	owned    Map[string, Map[string, *Resource]]    // application → its resources
	routes   Map[route, []*Resource]                // api resources by how their URIs begin
	scopes   Map[string, *Resource]                 // those that give scopes of the platform's API: few
	sets     Map[string, *Set]                      //
	memberIn Map[string, *Member]                   // by the member's id
	members  Map[string, Map[string, *Member]]      // set → id
	setsOf   Map[string, []*Member]                 // resource → its memberships
	units    Map[string, *Unit]                     //
	unitOf   Map[Identity, grantee]                 // what is granted to an identity, of the same contents as granted
	rules    Map[string, *Rule]                     //
	granted  Map[string, Grants]                    // unit → what it is granted
	granting Map[target, Rules]                     // the rules about a target
	listed   Map[string, Map[listKey, Rules]]       // application → its rules
	setCodes Map[string, Map[string, bool]]         // code → sets of any application
	grouped  Map[string, *GroupMember]              // by the membership's id
	groupsOf Map[string, []*GroupMember]            // user → the groups
	inGroup  Map[string, Map[string, *GroupMember]] // group's unit → id
	texts    Map[string, usedCondition]             // conditions of rules

	// Who belongs where.
	people    Map[string, *Person]
	callers   Map[string, *Caller]
	usernames Map[string, string] // textindex.Key → user
	places    places
	disabled  int                            // nodes
	pointers  Map[string, Map[string, bool]] // node → those that stand for it
	children  Map[string, Map[string, *TreeNode]]
	roots     Map[string, Map[string, *TreeNode]] // a tree's code → nodes without a parent
	trees     Map[string, *Tree]
	treeCodes Map[string, string]                   // → tree
	belongs   Map[string, []belonging]              // of a user
	holding   Map[string, Map[string, *Membership]] // node → id
}

// TreeOfRoot is the core object of which a node is the root; "" if it is none's.
func (s *State) TreeOfRoot(objectCode, nodeID string) string {
	if s.roots.Get(objectCode).Get(nodeID) == nil {
		return ""
	}
	return s.treeCodes.Get(objectCode)
}

// Change makes a State out of another. Put methods ignore records that are not newer than what is there.
type Change struct {
	*State
	by *edit
}

// PutResource adds or replaces a resource.
func (c *Change) PutResource(r *Resource) {
	old := c.resources.Get(r.ID)
	if old != nil && old.Sequence >= r.Sequence {
		return
	}
	if old != nil {
		c.dropResource(old)
	}
	c.resources.put(c.by, r.ID, r)
	code := objectCode{r.ApplicationID, r.Type, r.Code}
	c.codes.put(c.by, code, r.ID)
	if r.Global {
		code.application = ""
		nested(c.by, &c.global, code, r.ID, true)
	}
	nested(c.by, &c.owned, r.ApplicationID, r.ID, r)
	if scopeOf(r) != 0 {
		c.scopes.put(c.by, r.ID, r)
	}
	if r.Type == API {
		r.path, _ = patternOfURI(r.URI)
	}
	if at, ok := routeOf(r); ok {
		list := c.routes.Get(at)
		c.routes.put(c.by, at, append(list[:len(list):len(list)], r))
	}
}

// DropResource removes a resource.
func (c *Change) DropResource(id string) {
	if old := c.resources.Get(id); old != nil {
		c.dropResource(old)
		c.resources.drop(c.by, id)
	}
}

func (c *Change) dropResource(old *Resource) {
	code := objectCode{old.ApplicationID, old.Type, old.Code}
	if c.codes.Get(code) == old.ID {
		c.codes.drop(c.by, code)
	}
	code.application = ""
	without(c.by, &c.global, code, old.ID)
	without(c.by, &c.owned, old.ApplicationID, old.ID)
	c.scopes.drop(c.by, old.ID)
	if at, ok := routeOf(old); ok {
		removed(c.by, &c.routes, at, func(r *Resource) bool { return r.ID == old.ID })
	}
}

// PutSet adds or replaces a resource set.
func (c *Change) PutSet(s *Set) {
	if old := c.sets.Get(s.ID); old == nil || old.Sequence < s.Sequence {
		c.DropSet(s.ID)
		c.sets.put(c.by, s.ID, s)
		nested(c.by, &c.setCodes, s.Code, s.ID, true)
	}
}

// DropSet removes a resource set, not its members.
func (c *Change) DropSet(id string) {
	if old := c.sets.Get(id); old != nil {
		c.sets.drop(c.by, id)
		without(c.by, &c.setCodes, old.Code, id)
	}
}

// PutMember adds or replaces a member of a set.
func (c *Change) PutMember(m *Member) {
	if old := c.memberIn.Get(m.ID); old != nil && old.Sequence >= m.Sequence {
		return
	}
	c.DropMember(m.ID)
	c.memberIn.put(c.by, m.ID, m)
	nested(c.by, &c.members, m.SetID, m.ID, m)
	list := c.setsOf.Get(m.ResourceID)
	c.setsOf.put(c.by, m.ResourceID, append(list[:len(list):len(list)], m))
}

// DropMember removes a member of a set.
func (c *Change) DropMember(id string) {
	old := c.memberIn.Get(id)
	if old == nil {
		return
	}
	c.memberIn.drop(c.by, id)
	without(c.by, &c.members, old.SetID, id)
	removed(c.by, &c.setsOf, old.ResourceID, func(m *Member) bool { return m.ID == id })
}

// PutUnit adds or replaces an authorization unit.
func (c *Change) PutUnit(u *Unit) {
	old := c.units.Get(u.ID)
	if old != nil && old.Sequence >= u.Sequence {
		return
	}
	same := old != nil && old.Identity.Type == u.Identity.Type // their rules are in the same lists
	c.dropUnit(old, same)
	c.units.put(c.by, u.ID, u)
	c.setGrantee(u.Identity, grantee{u.ID, c.granted.Get(u.ID)})
	if !same {
		c.listAll(u, true)
	}
}

// DropUnit removes an authorization unit, not its rules and members.
func (c *Change) DropUnit(id string) { c.dropUnit(c.units.Get(id), false) }

func (c *Change) dropUnit(old *Unit, keepListed bool) {
	if old == nil {
		return
	}
	if !keepListed {
		c.listAll(old, false)
	}
	c.units.drop(c.by, old.ID)
	if c.unitOf.Get(old.Identity).unit == old.ID {
		c.unitOf.drop(c.by, old.Identity)
		c.setPlace(old.Identity, Grants{})
	}
}

// setGrantee notes the unit of an identity, and what it is granted, where a check looks for it.
func (c *Change) setGrantee(who Identity, g grantee) {
	c.unitOf.put(c.by, who, g)
	c.setPlace(who, g.grants)
}

func (c *Change) setPlace(who Identity, grants Grants) {
	if who.Type != Node {
		return
	}
	if at := c.places.numbers.Get(who.ID); at > 0 {
		its := *c.places.at.At(at)
		its.grants = grants
		c.places.at.set(c.by, at, its)
	}
}

// setGrants notes what a unit is granted, also where identities are looked up: a check finds it there at once.
func (c *Change) setGrants(unitID string, grants Grants) {
	if grants.Len() > 0 {
		c.granted.put(c.by, unitID, grants)
	} else {
		c.granted.drop(c.by, unitID)
	}
	if unit := c.units.Get(unitID); unit != nil && c.unitOf.Get(unit.Identity).unit == unitID {
		c.setGrantee(unit.Identity, grantee{unitID, grants})
	}
}

// PutGroupMember adds a user to a group.
func (c *Change) PutGroupMember(m *GroupMember) {
	if old := c.grouped.Get(m.ID); old != nil && old.Sequence >= m.Sequence {
		return
	}
	c.DropGroupMember(m.ID)
	c.grouped.put(c.by, m.ID, m)
	nested(c.by, &c.inGroup, m.UnitID, m.ID, m)
	list := c.groupsOf.Get(m.UserID)
	c.groupsOf.put(c.by, m.UserID, append(list[:len(list):len(list)], m))
}

// DropGroupMember removes a user from a group.
func (c *Change) DropGroupMember(id string) {
	old := c.grouped.Get(id)
	if old == nil {
		return
	}
	c.grouped.drop(c.by, id)
	without(c.by, &c.inGroup, old.UnitID, id)
	removed(c.by, &c.groupsOf, old.UserID, func(m *GroupMember) bool { return m.ID == id })
}

// Sequence is that of a record of what is granted; 0 if there is none. Entities are called as events call them.
func (s *State) Sequence(entity, id string) int64 {
	switch entity {
	case "resource":
		if r := s.resources.Get(id); r != nil {
			return r.Sequence
		}
	case "resource_set":
		if set := s.sets.Get(id); set != nil {
			return set.Sequence
		}
	case "resource_set_member":
		if m := s.memberIn.Get(id); m != nil {
			return m.Sequence
		}
	case "auth_unit":
		if u := s.units.Get(id); u != nil {
			return u.Sequence
		}
	case "auth_unit_member":
		if m := s.grouped.Get(id); m != nil {
			return m.Sequence
		}
	case "auth_rule":
		if r := s.rules.Get(id); r != nil {
			return r.Sequence
		}
	}
	return 0
}

// nested puts an entry into a map of maps.
func nested[K1, K2 comparable, V any](by *edit, m *Map[K1, Map[K2, V]], outer K1, inner K2, value V) {
	within := m.Get(outer)
	within.put(by, inner, value)
	m.put(by, outer, within)
}

// without takes an entry out of a map of maps.
func without[K1, K2 comparable, V any](by *edit, m *Map[K1, Map[K2, V]], outer K1, inner K2) {
	within := m.Get(outer)
	within.drop(by, inner)
	if within.Len() > 0 {
		m.put(by, outer, within)
	} else {
		m.drop(by, outer)
	}
}

// removed takes values out of a list of a map.
func removed[K comparable, V any](by *edit, m *Map[K, []V], key K, is func(V) bool) {
	list := m.Get(key)
	if !slices.ContainsFunc(list, is) {
		return
	}
	if list = slices.DeleteFunc(slices.Clone(list), is); len(list) > 0 {
		m.put(by, key, list)
	} else {
		m.drop(by, key)
	}
}
