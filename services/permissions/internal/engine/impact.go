package engine

import (
	"context"
	"errors"
	"slices"
)

// Bounds of what Impact looks at. What lies beyond is left out, and the answer is not Complete.
const (
	MaxAffected  = 200_000   // identities of a type, those with the lowest ids
	MaxProspects = 100_000   // pairs of an object and an action for one identity, the first in the order of items
	MaxCompared  = 1_000_000 // decisions of all identities
)

// IdentityTypes are the types of identities, in the order of Impact's items.
var IdentityTypes = []string{User, Node, CoreObject, Application, Group, Everyone}

// ImpactQuestion asks what a hypothesis would change.
type ImpactQuestion struct {
	Types []string // of the identities whose decisions are compared
	Limit int      // of items
	Now   int64    // milliseconds since 1970
	Work  *Work    // the work that the question is part of; nil: it is not part of a larger one
}

// Impact is what changes that are not made would change. A decision is that of a check without a context.
type Impact struct {
	Gained, Lost    int // decisions
	Gaining, Losing int // identities that gain or lose something
	ByType          map[string]Reached
	// Open are further decisions that do not change without a context, but depend on changed rules whose conditions
	// cannot be decided without it.
	Open     int
	Items    []ImpactItem // the first of all decisions that change: by type and id of identities, then by objects
	Complete bool         // false: there may be more, see MaxAffected, MaxReach and the other bounds
}

// Reached are the identities of a type that gain or lose something.
type Reached struct{ Gaining, Losing int }

// ImpactItem is a decision that changes.
type ImpactItem struct {
	Identity
	Name          string
	ApplicationID string
	Resource      *Resource // nil: the use of the application
	Action        string    // "" for an application
	Gained        bool      // otherwise lost
	Conditional   bool      // a rule with a condition takes part in the decision before or after
}

// Impact compares the decisions that can differ. An error is that of a pause or of the context.
func (h *Hypothesis) Impact(ctx context.Context, q ImpactQuestion) (Impact, error) {
	if q.Work == nil {
		q.Work = NewWork(nil)
		defer q.Work.Done()
	}
	c := &comparison{
		Hypothesis: h, ImpactQuestion: q, found: Impact{Complete: true, ByType: map[string]Reached{}},
		prospects: prospects{now: q.Now, state: h.before, changed: h.changed, work: q.Work},
	}
	for _, kind := range IdentityTypes {
		if !slices.Contains(q.Types, kind) {
			continue
		}
		switch err := c.compareAll(ctx, kind); {
		case errors.Is(err, errEnough):
			return c.found, nil
		case err != nil:
			return c.found, err
		}
	}
	return c.found, nil
}

// compareAll compares the decisions about all identities of a type that the changes can concern.
func (c *comparison) compareAll(ctx context.Context, kind string) error {
	ids, err := c.affected(ctx, kind)
	if err != nil {
		return err
	}
	gaining, losing := c.found.Gaining, c.found.Losing
	for _, id := range ids {
		if err = c.compare(ctx, Identity{kind, id}); err != nil {
			break
		}
	}
	c.found.ByType[kind] = Reached{Gaining: c.found.Gaining - gaining, Losing: c.found.Losing - losing}
	return err
}

// comparison is the work of Impact.
type comparison struct {
	*Hypothesis
	ImpactQuestion

	prospects prospects
	old, new  reach // of the identity that is compared
	asked     Question
	seen      input // of the conditions of asked
	compared  int   // decisions
	found     Impact
}

// errEnough says that a bound is reached that ends the comparison.
var errEnough = errors.New("enough is compared")

// affected are the identities of a type that the changes can concern, in the order of ids.
func (c *comparison) affected(ctx context.Context, kind string) ([]string, error) {
	ids := smallest[string]{limit: MaxAffected, compare: compareIDs}
	look := func() error { return c.Work.spend(ctx, 1) }
	add := func(id string) error { ids.add(id); return look() }
	for who := range c.changed {
		if err := c.after.expand(who, kind, look, add); err != nil {
			return nil, err
		}
		if len(c.nodes) == 0 { // it reaches the same identities before
			continue
		}
		if err := c.before.expand(who, kind, look, add); err != nil {
			return nil, err
		}
	}
	if kind == User || kind == Node {
		// A node that has other ancestors, or is enabled or disabled with one of them, is below one of these before.
		for _, id := range c.nodes {
			if err := c.before.below(id, kind, look, add); err != nil {
				return nil, err
			}
		}
	}
	ids.trim()
	c.found.Complete = c.found.Complete && !ids.more
	return ids.values, nil
}

// compare compares the decisions about one identity.
func (c *comparison) compare(ctx context.Context, who Identity) error {
	c.before.reach(&c.old, who) // without steps if it is not known: then it may do nothing
	known := c.after.reach(&c.new, who)
	if !known || c.new.disabled {
		return nil
	}
	if c.old.full || c.new.full {
		c.found.Complete = false
		return nil
	}
	if err := c.Work.spend(ctx, len(c.old.steps)+len(c.new.steps)); err != nil {
		return err
	}
	list, complete, err := c.prospects.of(ctx, &c.old, &c.new)
	if err != nil {
		return err
	}
	c.found.Complete = c.found.Complete && complete
	gained, lost := c.found.Gained, c.found.Lost
	for i := range list {
		if c.compared++; c.compared > MaxCompared {
			c.found.Complete = false
			err = errEnough
			break
		}
		if err = c.decide(ctx, who, &list[i]); err != nil {
			break
		}
	}
	if c.found.Gained > gained {
		c.found.Gaining++
	}
	if c.found.Lost > lost {
		c.found.Losing++
	}
	return err
}

// decide compares two decisions.
func (c *comparison) decide(ctx context.Context, who Identity, p *prospect) error {
	c.asked = p.question()
	c.asked.Identity, c.asked.Now, c.asked.Work = who, c.Now, c.Work
	c.seen = input{}
	was, err := c.before.weigh(ctx, &c.asked, &c.old, p.aims, &c.seen)
	var is weight
	if err == nil {
		c.seen.cost = 0 // what conditions see is the same
		is, err = c.after.weigh(ctx, &c.asked, &c.new, p.aims, &c.seen)
	}
	switch {
	case errors.Is(err, ErrSearch):
		c.found.Complete = false
		return nil
	case err != nil:
		return err
	}
	c.note(who, p, &was, &is)
	return nil
}

// note counts and lists a decision that changes.
func (c *comparison) note(who Identity, p *prospect, was, is *weight) {
	gained := is.allowed()
	switch {
	case gained == was.allowed():
		if was.open() != is.open() || was.open() && !was.sameOpen(is) {
			c.found.Open++
		}
		return
	case gained:
		c.found.Gained++
	default:
		c.found.Lost++
	}
	if len(c.found.Items) < c.Limit {
		c.found.Items = append(c.found.Items, ImpactItem{
			Identity: who, Name: c.after.Label(who), ApplicationID: p.application, Resource: p.resource,
			Action: p.action, Gained: gained, Conditional: !was.certain() || !is.certain(),
		})
	}
}
