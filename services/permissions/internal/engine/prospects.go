package engine

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"
)

// prospect is an object and an action about which decisions can differ.
type prospect struct {
	application string
	resource    *Resource // nil: the use of the application
	action      string    // "" for an application
	aims        []aim
}

// question asks about the prospect.
func (p *prospect) question() Question {
	q := Question{ApplicationID: p.application, ObjectType: App, Action: p.action, resource: p.resource}
	if p.resource != nil {
		q.ObjectType = p.resource.Type
	}
	return q
}

// compareProspects orders prospects by application, type and code of the object, and action.
func compareProspects(a, b prospect) int {
	if c := compareIDs(a.application, b.application); c != 0 || a.resource == b.resource {
		return cmp.Or(c, strings.Compare(a.action, b.action))
	}
	var kinds, codes [2]string
	for i, r := range []*Resource{a.resource, b.resource} {
		kinds[i] = App
		if r != nil {
			kinds[i], codes[i] = r.Type, r.Code
		}
	}
	return cmp.Or(strings.Compare(kinds[0], kinds[1]), strings.Compare(codes[0], codes[1]),
		strings.Compare(a.action, b.action))
}

// prospects finds the prospects of identities. Identities for which the same units differ share them: so those of ten
// thousand people below a moved node are found once.
type prospects struct {
	now     int64
	state   *State
	changed map[Identity][]*Rule
	work    *Work

	known map[string]shared
	held  int // prospects in known
	key   []byte
	rules []*Rule
	reach reach // for aims
}

type shared struct {
	list     []prospect
	complete bool
}

// of are the prospects of an identity that was reached by some steps and would be reached by others. complete is false
// if there are more than MaxProspects.
func (p *prospects) of(ctx context.Context, was, is *reach) (list []prospect, complete bool, err error) {
	p.key = p.key[:0]
	p.differ(was, is, func(s *step, how byte) { p.key = s.appendKey(append(p.key, how)) })
	if found, ok := p.known[string(p.key)]; ok {
		return found.list, found.complete, nil
	}
	p.rules = p.rules[:0]
	p.differ(was, is, func(s *step, how byte) {
		if how == changed {
			p.rules = append(p.rules, p.changed[s.party().Identity]...)
			return
		}
		for _, rules := range s.grants.All() {
			p.rules = append(p.rules, rules...)
		}
	})
	found, err := p.find(ctx)
	if err != nil {
		return nil, false, err
	}
	if p.held += len(found.list); p.known == nil || p.held > MaxProspects {
		p.known, p.held = map[string]shared{}, len(found.list)
	}
	p.known[string(p.key)] = found
	return found.list, found.complete, nil
}

// How a step differs.
const (
	begins  = '+'
	ends    = '-'
	changed = '*' // it has other rules
)

// differ calls fn with the steps that differ.
func (p *prospects) differ(was, is *reach, fn func(s *step, how byte)) {
	for i := range was.steps {
		s := &was.steps[i]
		switch at := is.at(s, i); {
		case at < 0 || is.steps[at].closed && !s.closed:
			fn(s, ends)
		case s.closed && !is.steps[at].closed:
			fn(&is.steps[at], begins)
		case is.steps[at].grants.root != s.grants.root:
			fn(s, changed)
		}
	}
	for i := range is.steps {
		if s := &is.steps[i]; was.at(s, i) < 0 {
			fn(s, begins)
		}
	}
}

// at is where a step is, perhaps at likely; −1 if it is not there.
func (r *reach) at(of *step, likely int) int {
	if likely < len(r.steps) && r.steps[likely].same(of) {
		return likely
	}
	if len(r.steps) > few {
		return int(*r.slot(of)) - 1
	}
	return slices.IndexFunc(r.steps, func(s step) bool { return s.same(of) })
}

// appendKey appends what tells a step from all others.
func (s *step) appendKey(key []byte) []byte {
	key = binary.BigEndian.AppendUint32(key, uint32(s.place)) //nolint:gosec // is not negative
	if s.place > 0 {
		return key
	}
	key = append(append(key, s.Type...), 0)
	return append(append(key, s.ID...), 0)
}

// find finds the objects and actions that the rules are about.
func (p *prospects) find(ctx context.Context) (shared, error) {
	list := smallest[prospect]{limit: MaxProspects, compare: compareProspects}
	about := map[target][]*Rule{}
	for _, rule := range p.rules {
		if rule.current(p.now) {
			about[rule.target()] = append(about[rule.target()], rule)
		}
	}
	for at, rules := range about {
		if at.kind == application {
			list.add(prospect{application: at.id})
			continue
		}
		err := p.state.concerned(at, rules, func(r *Resource) error {
			if r != nil {
				p.add(&list, r, rules)
			}
			return p.work.spend(ctx, len(rules))
		})
		if err != nil {
			return shared{}, err
		}
	}
	list.trim()
	for i := range list.values {
		if one := &list.values[i]; i > 0 && one.resource != nil && one.resource == list.values[i-1].resource {
			one.aims = list.values[i-1].aims
		} else {
			q := one.question()
			one.aims = slices.Clone(p.state.targets(&q, &p.reach))
		}
	}
	return shared{slices.Clip(list.values), !list.more}, nil
}

// add adds the actions of a resource that one of the rules names. The rules have the same target: which of a pattern's
// or a set's actions they reach shows when decisions are compared.
func (p *prospects) add(list *smallest[prospect], r *Resource, rules []*Rule) {
	for _, action := range r.Actions {
		if slices.ContainsFunc(rules, func(rule *Rule) bool { return includes(rule.Actions, action) }) {
			list.add(prospect{application: r.ApplicationID, resource: r, action: action})
		}
	}
}
