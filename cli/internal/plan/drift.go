package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/failure"
)

// drift finds what somebody else has changed since the set was applied: an actual value that is neither what was
// applied then nor what the files want now.
func (s *Step) drift(last *Applied) {
	if last == nil || last.Begun { // some records are made by several writes, of which the last may be missing
		return
	}
	if s.record == nil {
		s.Drift = append(s.Drift, "it was there")
		return
	}
	for _, c := range s.Changes {
		was, had := at(last.Values, c.Member)
		next, begun := at(last.Next, c.Member)
		if had && !same(was, c.Before) && !(begun && same(next, c.Before)) {
			s.Drift = append(s.Drift, fmt.Sprintf("%s was %s", c.Member, text(was)))
		}
	}
}

// at returns a member such as delivery.url.
func at(values map[string]any, member string) (any, bool) {
	name, rest, deeper := strings.Cut(member, ".")
	value, has := values[name]
	if !deeper || !has {
		return value, has
	}
	inner, isObject := value.(map[string]any)
	if !isObject {
		return nil, false
	}
	return at(inner, rest)
}

// otherSources are secrets that now come from elsewhere than when they were applied.
func otherSources(values map[string]any, last *Applied) []Change {
	if last == nil {
		return nil
	}
	return slices.DeleteFunc(rotated("", values), func(c Change) bool {
		was, had := at(last.Values, c.Member)
		return !had || was == c.After
	})
}

// Drifted is the error of a plan that would undo what somebody else has done; nil if there is nothing such.
func (p *Plan) Drifted() error {
	count := 0
	for _, s := range p.Steps {
		if len(s.Drift) > 0 {
			count++
		}
	}
	if count == 0 || p.options.TakeOver {
		return nil
	}
	return &failure.Error{Code: failure.Changed, Err: fmt.Errorf(
		"somebody else has changed %d records since the last apply: see the lines with drift; "+
			"--take-over makes them as the files say", count)}
}

// prune plans the deletion of what the set made and the files no longer have. It counts what it leaves.
func (p *Plan) prune(ctx context.Context, desired []*Desired) error {
	if p.options.State == nil {
		return nil
	}
	var gone []*Step
	for _, a := range slices.Clone(p.options.State.Records) {
		r := p.actual.records[a.Ref]
		switch {
		case p.desired[a.Ref] != nil:
		case r == nil || !a.Managed || a.ID != "" && r.ID != a.ID:
			p.options.State.forget(a.Ref) // it is not there any more, or never was the set's
		case !p.options.Prune:
			p.Orphaned++
		default:
			s := &Step{Action: Delete, Ref: a.Ref, Changes: []Change{}, record: r}
			s.driftOf(a) // also of one that was begun and never sent: somebody else may have made another of its name
			gone = append(gone, s)
		}
	}
	if err := p.stillNamed(desired, gone); err != nil {
		return err
	}
	gone = p.withoutParts(gone)
	slices.SortStableFunc(gone, func(a, b *Step) int {
		return cmp.Or(cmp.Compare(rank(b.Kind), rank(a.Kind)), cmp.Compare(a.pointsAt(), b.pointsAt()),
			cmp.Compare(b.depth(), a.depth()))
	})
	p.Steps = append(p.Steps, gone...)
	return p.cascade(ctx, gone)
}

// driftOf finds what somebody else has changed in a record that is to be deleted.
func (s *Step) driftOf(a *Applied) {
	for _, c := range differences(shown(&Desired{Ref: a.Ref, Values: a.Values}), s.record.Values) {
		if c.Before == masked {
			continue // a secret that was once in a file; nobody can see whether it is the same
		}
		s.Drift = append(s.Drift, fmt.Sprintf("%s was %s", c.Member, text(c.After)))
	}
}

// pointsAt is 0 for a pointer, which must be deleted before the node at which it points.
func (s *Step) pointsAt() int {
	if pointer, _ := s.record.Values["pointer"].(string); pointer != "" {
		return 0
	}
	return 1
}

func (s *Step) depth() int { return number(s.record.raw["depth"]) }

// withoutParts marks what goes with a record that is deleted, too. Protocols and sources, which are settings of their
// application, it leaves out.
func (p *Plan) withoutParts(gone []*Step) []*Step {
	deleted := map[Ref]bool{}
	for _, s := range gone {
		deleted[s.Ref] = true
	}
	return slices.DeleteFunc(gone, func(s *Step) bool {
		for _, ref := range needs(s.Ref, s.record.Values) {
			if s.Kind == node || s.Kind == rule || !deleted[ref] || s.Kind == source && ref.Kind == connection {
				continue // a connection is deleted only once no application offers it
			}
			if s.Kind == protocol || s.Kind == source {
				p.gone = append(p.gone, s.Ref)
				return true
			}
			if s.With == nil {
				s.With = &ref
			}
		}
		return false
	})
}
