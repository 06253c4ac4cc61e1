package engine

import "github.com/idplatform/idplatform/pkg/textindex"

// PutPerson adds or replaces a user.
func (c *Change) PutPerson(p *Person) {
	old := c.people.Get(p.ID)
	if old != nil && old.Sequence >= p.Sequence {
		return
	}
	if old != nil && c.usernames.Get(textindex.Key(old.Username)) == p.ID {
		c.usernames.drop(c.by, textindex.Key(old.Username))
	}
	c.people.put(c.by, p.ID, p)
	c.usernames.put(c.by, textindex.Key(p.Username), p.ID)
}

// DropPerson removes a user, but not the user's memberships.
func (c *Change) DropPerson(id string) {
	old := c.people.Get(id)
	if old == nil {
		return
	}
	c.people.drop(c.by, id)
	if name := textindex.Key(old.Username); c.usernames.Get(name) == id {
		c.usernames.drop(c.by, name)
	}
}

// PutCaller adds or replaces an application.
func (c *Change) PutCaller(a *Caller) {
	if old := c.callers.Get(a.ID); old == nil || old.Sequence < a.Sequence {
		c.callers.put(c.by, a.ID, a)
	}
}

// DropCaller removes an application.
func (c *Change) DropCaller(id string) { c.callers.drop(c.by, id) }

// PutNode adds or replaces a node, and moves it if its parent has changed.
func (c *Change) PutNode(n *TreeNode) {
	old := c.node(n.ID)
	if old != nil && old.Sequence >= n.Sequence {
		return
	}
	if old != nil {
		c.unlink(old)
	}
	if parent := c.node(n.ParentID); parent != nil {
		n.ParentID = parent.ID // one text in memory, not one for each child
	}
	parent := c.places.number(c.by, n.ParentID)
	c.places.at.set(c.by, c.places.number(c.by, n.ID), place{n, c.unitOf.Get(Identity{Node, n.ID}).grants, parent})
	if n.Disabled {
		c.disabled++
	}
	if n.PointerID != "" {
		nested(c.by, &c.pointers, n.PointerID, n.ID, true)
	}
	if n.ParentID != "" {
		nested(c.by, &c.children, n.ParentID, n.ID, n)
	} else {
		nested(c.by, &c.roots, n.ObjectCode, n.ID, n)
	}
}

// DropNode removes a node, but not its memberships.
func (c *Change) DropNode(id string) {
	if old := c.node(id); old != nil {
		c.places.at.set(c.by, c.places.numbers.Get(id), place{})
		c.unlink(old)
		c.leave(id)
	}
}

// leave frees the place of a node that is not known, if no node below and no membership refers to it.
func (c *Change) leave(id string) {
	at := c.places.numbers.Get(id)
	if at > 0 && c.places.at.At(at).TreeNode == nil && c.children.Get(id).Len()+c.holding.Get(id).Len() == 0 {
		c.places.release(c.by, id, at)
	}
}

// unlink takes a node away from its parent or from the roots.
func (c *Change) unlink(n *TreeNode) {
	if n.Disabled {
		c.disabled--
	}
	if n.PointerID != "" {
		without(c.by, &c.pointers, n.PointerID, n.ID)
	}
	if n.ParentID != "" {
		without(c.by, &c.children, n.ParentID, n.ID)
		c.leave(n.ParentID)
	} else {
		without(c.by, &c.roots, n.ObjectCode, n.ID)
	}
}

// PutTree adds or replaces a core object.
func (c *Change) PutTree(t *Tree) {
	if old := c.trees.Get(t.ID); old == nil || old.Sequence < t.Sequence {
		c.trees.put(c.by, t.ID, t)
		c.treeCodes.put(c.by, t.Code, t.ID)
	}
}

// DropTree removes a core object, but not its nodes.
func (c *Change) DropTree(id string) {
	old := c.trees.Get(id)
	if old == nil {
		return
	}
	c.trees.drop(c.by, id)
	if c.treeCodes.Get(old.Code) == id {
		c.treeCodes.drop(c.by, old.Code)
	}
}

// PutMembership adds a user to a node.
func (c *Change) PutMembership(m *Membership) {
	if old := c.holding.Get(m.NodeID).Get(m.ID); old != nil && old.Sequence >= m.Sequence {
		return
	}
	c.DropMembership(m.ID, m.NodeID)
	if node := c.node(m.NodeID); node != nil {
		m.NodeID = node.ID // one text in memory, not one for each member
	}
	if person := c.people.Get(m.UserID); person != nil {
		m.UserID = person.ID
	}
	nested(c.by, &c.holding, m.NodeID, m.ID, m)
	list := c.belongs.Get(m.UserID)
	c.belongs.put(c.by, m.UserID, append(list[:len(list):len(list)], belonging{m, c.places.number(c.by, m.NodeID)}))
}

// DropMembership removes a user's membership of a node.
func (c *Change) DropMembership(id, nodeID string) {
	old := c.holding.Get(nodeID).Get(id)
	if old == nil {
		return
	}
	without(c.by, &c.holding, nodeID, id)
	c.leave(nodeID)
	removed(c.by, &c.belongs, old.UserID, func(m belonging) bool { return m.ID == id })
}
