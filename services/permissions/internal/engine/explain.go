package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Explanation says how a decision came about.
type Explanation struct {
	Decision
	Considered []Considered
	Nearest    *Miss // why it is not allowed, and what would change that; nil if it is allowed
}

// Considered is a rule about the object that reaches the identity.
type Considered struct {
	Rule    *Rule
	Via     []Party
	Applies bool
	Why     string // why it does not apply; for a deny also that its condition cannot be decided

	undecided bool // its condition cannot be decided
}

// The kinds of Miss.
const (
	MissDeny       = "deny"       // a rule forbids it
	MissContext    = "context"    // the condition of a rule that would allow it lacks a value
	MissMembership = "membership" // a node or group is granted it that the identity does not belong to
	MissGrant      = "grant"      // no single membership would allow it: a grant is missing
)

// Miss is the smallest single change that would allow what a question asks about, or the rule that forbids it.
type Miss struct {
	Kind string
	Text string // a sentence for an administrator
	Rule *Rule  // nil for MissGrant
	// Identity is the node or group to become a member of for MissMembership, the one that has the rule for MissDeny,
	// otherwise the one that the question asks about.
	Identity Identity
}

// MaxConsidered is how many rules an explanation lists. If there are more, Explain returns ErrSearch.
const MaxConsidered = 10_000

// maxNearest is how many grants to others are examined for a membership that would help.
const maxNearest = 100

// Explain answers a question and says why. An error is one of Check's.
func (s *State) Explain(ctx context.Context, q *Question) (Explanation, error) {
	var e Explanation
	var err error
	if q.Work == nil {
		q.Work = NewWork(nil)
		defer q.endWork()
	}
	if e.Decision, err = s.Check(ctx, q); err != nil {
		return e, err
	}
	if e.Rule == nil && e.Reason != NotGranted {
		return e, nil
	}
	r, _ := q.Work.reached(s, q.Identity)
	if e.Considered, err = s.consider(ctx, q, r); err != nil || e.Allowed {
		return e, err
	}
	e.Nearest, err = s.nearest(ctx, q, r, &e)
	return e, err
}

// consider examines every rule about the object that reaches the identity.
func (s *State) consider(ctx context.Context, q *Question, r *reach) ([]Considered, error) {
	var all []Considered
	var in input
	for at := range r.steps {
		grants := r.steps[at].grants
		for _, aim := range s.targets(q, r) {
			if err := q.Work.spend(ctx, 1); err != nil {
				return nil, err
			}
			for _, rule := range grants.Get(aim.target) {
				if rule.Type == Wildcard && rule.Code != "" && !Match(rule.Code, q.resource.Code) {
					continue
				}
				if len(all) == MaxConsidered {
					return nil, ErrSearch
				}
				if err := q.Work.spend(ctx, 1); err != nil {
					return nil, err
				}
				c := Considered{Rule: rule, Via: r.via(at)}
				if err := s.judge(ctx, q, &in, aim.actions, &c); err != nil {
					return nil, err
				}
				all = append(all, c)
			}
		}
	}
	return all, nil
}

// judge says whether a rule applies, and why not.
func (s *State) judge(ctx context.Context, q *Question, in *input, actions []string, c *Considered) error {
	rule := c.Rule
	switch {
	case !rule.covers(q, nil):
		c.Why = "it is about other actions: " + strings.Join(rule.Actions, ", ")
		return nil
	case !rule.covers(q, actions):
		c.Why = "its resource set is about other actions of this resource: " + strings.Join(actions, ", ")
		return nil
	case q.Now < rule.From:
		c.Why = "it is valid only from " + moment(rule.From) + " on"
		return nil
	case !rule.current(q.Now):
		c.Why = "it was valid only until " + moment(rule.To)
		return nil
	case rule.Condition == nil:
		c.Applies = true
		return nil
	}
	holds, undecided, err := s.holds(ctx, q, in, rule.Condition)
	c.Applies = holds
	if undecided != nil {
		c.Applies, c.undecided = rule.Deny, true
		c.Why = undecided.Error()
	} else if !holds {
		c.Why = "its condition is not met"
	}
	return err
}

func moment(millis int64) string { return time.UnixMilli(millis).UTC().Format(time.RFC3339) }

// nearest finds the nearest miss of a question that is not allowed.
func (s *State) nearest(ctx context.Context, q *Question, r *reach, e *Explanation) (*Miss, error) {
	asked := s.describe(q)
	if e.Reason == Denied {
		who := e.Via[len(e.Via)-1].Identity
		return &Miss{MissDeny, fmt.Sprintf("Rule %s denies %s to %s; a deny goes before every grant.", e.Rule.ID, asked,
			s.Name(who)), e.Rule, who}, nil
	}
	for _, c := range e.Considered {
		if c.undecided && !c.Rule.Deny {
			return &Miss{MissContext,
				fmt.Sprintf("Rule %s would allow %s, but %s.", c.Rule.ID, asked, c.Why), c.Rule, q.Identity}, nil
		}
	}
	if q.Identity.Type == User {
		if miss, err := s.membership(ctx, q, r, asked); err != nil || miss != nil {
			return miss, err
		}
	}
	return &Miss{MissGrant,
		fmt.Sprintf("No rule that applies grants %s to %s or to anything that it belongs to.", asked,
			s.Name(q.Identity)), nil, q.Identity}, nil
}

// membership finds a node or group that is granted what is asked for, and that would allow it to the user as a member:
// another rule may deny it.
func (s *State) membership(ctx context.Context, q *Question, r *reach, asked string) (*Miss, error) {
	var rules []*Rule
	for _, aim := range s.targets(q, r) {
		for rule := range s.granting.Get(aim.target).All() {
			if err := q.Work.spend(ctx, 1); err != nil {
				return nil, err
			}
			if !rule.Deny && rule.covers(q, aim.actions) && rule.current(q.Now) {
				rules = append(rules, rule)
			}
			if len(rules) > 10*maxNearest {
				break
			}
		}
	}
	slices.SortFunc(rules, func(a, b *Rule) int { return compareIDs(a.ID, b.ID) })
	for _, rule := range rules[:min(len(rules), maxNearest)] {
		unit := s.units.Get(rule.UnitID)
		if unit == nil || unit.Identity.Type != Node && unit.Identity.Type != Group {
			continue
		}
		if err := q.Work.spend(ctx, len(r.steps)); err != nil {
			return nil, err
		}
		joined := &reach{steps: slices.Clone(r.steps)}
		if unit.Identity.Type == Node {
			s.climb(joined, s.places.numbers.Get(unit.Identity.ID), 0)
		} else {
			joined.add(step{Party: Party{unit.Identity, unit.Name}, grants: s.unitOf.Get(unit.Identity).grants})
		}
		found, denied, err := s.decide(ctx, q, joined)
		if err != nil {
			return nil, err
		}
		if found.rule != nil && !denied {
			return &Miss{MissMembership, fmt.Sprintf("%s is not a member of %s, to which rule %s grants %s.",
				s.Name(q.Identity), s.Name(unit.Identity), found.rule.ID, asked), found.rule, unit.Identity}, nil
		}
	}
	return nil, nil
}

// describe names what a question asks about: "read" of data orders.
func (s *State) describe(q *Question) string {
	if q.ObjectType == App {
		return "the use of application " + q.ApplicationID
	}
	return fmt.Sprintf("%q of %s %s", q.Action, q.ObjectType, q.resource.Code)
}

// Name describes an identity for people, such as: node "Payroll" (1048579).
func (s *State) Name(who Identity) string {
	if who.Type == Everyone {
		return "everyone"
	}
	if name := s.Label(who); name != "" {
		return fmt.Sprintf("%s %q (%s)", strings.ReplaceAll(who.Type, "_", " "), name, who.ID)
	}
	return fmt.Sprintf("%s %s", strings.ReplaceAll(who.Type, "_", " "), who.ID)
}

// Label is the name of an identity; "" if it is unknown.
func (s *State) Label(who Identity) string {
	if person := s.people.Get(who.ID); person != nil && who.Type == User {
		return person.Username
	}
	if node := s.node(who.ID); node != nil && who.Type == Node {
		return node.Name
	}
	if tree := s.trees.Get(who.ID); tree != nil && who.Type == CoreObject {
		return tree.Name
	}
	if caller := s.callers.Get(who.ID); caller != nil && who.Type == Application {
		return caller.Name
	}
	if unit := s.units.Get(s.unitOf.Get(who).unit); unit != nil {
		return unit.Name
	}
	return ""
}
