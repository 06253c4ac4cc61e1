package engine

// usedCondition is a condition that some rules have.
type usedCondition struct {
	condition *Condition
	rules     int
}

// Conditions counts the different conditions of rules, and those of some texts that no rule has.
func (s *State) Conditions(texts ...string) (n int) {
	n = s.texts.Len()
	fresh := map[string]bool{}
	for _, text := range texts {
		if _, known := s.texts.Lookup(text); !known && text != "" && !fresh[text] {
			fresh[text] = true
			n++
		}
	}
	return n
}

// PutRule adds or replaces a rule. Its condition is replaced by an equal one of another rule, if there is one.
func (c *Change) PutRule(r *Rule) {
	if old := c.rules.Get(r.ID); old != nil && old.Sequence >= r.Sequence {
		return
	}
	c.DropRule(r.ID)
	if r.Condition != nil {
		use := c.texts.Get(r.Condition.Text)
		if use.condition != nil {
			r.Condition = use.condition
		}
		c.texts.put(c.by, r.Condition.Text, usedCondition{r.Condition, use.rules + 1})
	}
	c.rules.put(c.by, r.ID, r)
	about := r.target()
	grants := c.granted.Get(r.UnitID)
	list := grants.Get(about)
	grants.put(c.by, about, append(list[:len(list):len(list)], r))
	c.setGrants(r.UnitID, grants)
	c.about(r, true)
	c.list(r, c.units.Get(r.UnitID), true)
}

// DropRule removes a rule.
func (c *Change) DropRule(id string) {
	old := c.rules.Get(id)
	if old == nil {
		return
	}
	c.rules.drop(c.by, id)
	if old.Condition != nil {
		if use := c.texts.Get(old.Condition.Text); use.rules > 1 {
			c.texts.put(c.by, old.Condition.Text, usedCondition{use.condition, use.rules - 1})
		} else {
			c.texts.drop(c.by, old.Condition.Text)
		}
	}
	about, grants := old.target(), c.granted.Get(old.UnitID)
	removed(c.by, &grants, about, func(r *Rule) bool { return r.ID == id })
	c.setGrants(old.UnitID, grants)
	c.about(old, false)
	c.list(old, c.units.Get(old.UnitID), false)
}

// listKey says what all rules of one list of an application have in common: so a list of privileges is made of whole
// lists, whatever it is filtered by.
type listKey struct {
	kind    string // the rules' type
	grantee string // the type of identity of their units
	deny    bool
	bounded bool // they are not always valid
}

// list adds a rule to the lists of its application, or takes it out. A rule whose unit is not known is in none.
func (c *Change) list(r *Rule, unit *Unit, in bool) {
	if unit == nil {
		return
	}
	key := listKey{r.Type, unit.Identity.Type, r.Deny, r.From != 0 || r.To != 0}
	lists := c.listed.Get(r.ApplicationID)
	rules := lists.Get(key)
	if in {
		rules.put(c.by, r)
	} else {
		rules.drop(c.by, r.ID)
	}
	if rules.Len() > 0 {
		lists.put(c.by, key, rules)
	} else {
		lists.drop(c.by, key)
	}
	if lists.Len() > 0 {
		c.listed.put(c.by, r.ApplicationID, lists)
	} else {
		c.listed.drop(c.by, r.ApplicationID)
	}
}

// listAll does this for all rules of a unit.
func (c *Change) listAll(unit *Unit, in bool) {
	for _, rules := range c.granted.Get(unit.ID).All() {
		for _, r := range rules {
			c.list(r, unit, in)
		}
	}
}

// about adds a rule to those about its target, or takes it out.
func (c *Change) about(r *Rule, in bool) {
	at := r.target()
	rules := c.granting.Get(at)
	if in {
		rules.put(c.by, r)
	} else {
		rules.drop(c.by, r.ID)
	}
	if rules.Len() > 0 {
		c.granting.put(c.by, at, rules)
	} else {
		c.granting.drop(c.by, at)
	}
}
