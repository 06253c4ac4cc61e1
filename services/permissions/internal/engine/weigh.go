package engine

import (
	"context"
	"slices"
)

// weight is what the rules about a question say together, also where their conditions cannot be decided.
type weight struct {
	allow, deny         bool // a rule applies
	sureAllow, sureDeny bool // such a rule has no condition
	mayAllow, mayDeny   bool // there are rules with conditions

	openAllow, openDeny []string // the conditions that cannot be decided
}

// allowed is what Check answers.
func (w *weight) allowed() bool { return w.allow && !w.deny && len(w.openDeny) == 0 }

// certain reports whether the decision is the same whatever conditions say.
func (w *weight) certain() bool {
	return w.sureDeny || w.sureAllow && !w.mayDeny || !w.sureAllow && !w.mayAllow
}

// open reports whether the decision depends on conditions that cannot be decided.
func (w *weight) open() bool {
	return !w.deny && (len(w.openDeny) > 0 && (w.allow || len(w.openAllow) > 0) || !w.allow && len(w.openAllow) > 0)
}

// sameOpen reports whether two open decisions depend on the same conditions in the same way.
func (w *weight) sameOpen(as *weight) bool {
	return w.allow == as.allow && sameTexts(w.openDeny, as.openDeny) &&
		(w.allow || sameTexts(w.openAllow, as.openAllow))
}

// sameTexts compares sets.
func sameTexts(a, b []string) bool {
	within := func(a, b []string) bool {
		return !slices.ContainsFunc(a, func(text string) bool { return !slices.Contains(b, text) })
	}
	return within(a, b) && within(b, a)
}

// weigh examines the rules as decide does, in the same order, and goes on where decide has found enough. A condition
// that decide evaluates is evaluated with the same costs before it.
func (s *State) weigh(ctx context.Context, q *Question, r *reach, aims []aim, in *input) (w weight, err error) {
	looked := 0
	for at := range r.steps {
		grants := r.steps[at].grants
		if grants.Len() == 0 {
			continue
		}
		for _, aim := range aims {
			rules, _ := grants.lookup(aim.hash, aim.target)
			if looked += len(rules); looked > MaxSearch {
				return w, ErrSearch
			}
			if err := q.Work.spend(ctx, 1+len(rules)); err != nil {
				return w, err
			}
			for _, rule := range rules {
				if !rule.covers(q, aim.actions) || !rule.current(q.Now) {
					continue
				}
				if err := s.add(ctx, &w, q, in, rule); err != nil || w.sureDeny {
					return w, err
				}
			}
		}
	}
	return w, nil
}

// add adds a rule that covers the question and is valid.
func (s *State) add(ctx context.Context, w *weight, q *Question, in *input, rule *Rule) error {
	switch {
	case rule.Condition == nil && rule.Deny:
		w.deny, w.sureDeny = true, true
		return nil
	case rule.Condition == nil:
		w.allow, w.sureAllow = true, true
		return nil
	case rule.Deny:
		w.mayDeny = true
	default:
		w.mayAllow = true
	}
	if w.deny || w.allow && !rule.Deny {
		return nil
	}
	holds, undecided, err := s.holds(ctx, q, in, rule.Condition)
	switch {
	case err != nil:
		return err
	case undecided != nil && rule.Deny:
		w.openDeny = append(w.openDeny, rule.Condition.Text)
	case undecided != nil:
		w.openAllow = append(w.openAllow, rule.Condition.Text)
	case holds && rule.Deny:
		w.deny = true
	case holds:
		w.allow = true
	}
	return nil
}
