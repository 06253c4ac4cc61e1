package engine

// SweepGrants removes the records of what is granted that do not exist any more, as is says. Entities are named as in
// events.
func (c *Change) SweepGrants(is func(entity, id string) bool) {
	sweep(c.resources, is, "resource", c.DropResource)
	sweep(c.sets, is, "resource_set", c.DropSet)
	sweep(c.memberIn, is, "resource_set_member", c.DropMember)
	sweep(c.units, is, "auth_unit", c.DropUnit)
	sweep(c.rules, is, "auth_rule", c.DropRule)
	sweep(c.grouped, is, "auth_unit_member", c.DropGroupMember)
}

// SweepPeople does the same for who belongs where.
func (c *Change) SweepPeople(is func(entity, id string) bool) {
	sweep(c.people, is, "user", c.DropPerson)
	sweep(c.callers, is, "application", c.DropCaller)
	sweep(c.places.numbers, is, "node", c.DropNode)
	sweep(c.trees, is, "core_object", c.DropTree)
	for node, members := range c.holding.All() {
		sweep(members, is, "membership", func(id string) { c.DropMembership(id, node) })
	}
}

func sweep[V any](all Map[string, V], is func(entity, id string) bool, entity string, drop func(id string)) {
	var gone []string
	for id := range all.All() {
		if !is(entity, id) {
			gone = append(gone, id)
		}
	}
	for _, id := range gone {
		drop(id)
	}
}
