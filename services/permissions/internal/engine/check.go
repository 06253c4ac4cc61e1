package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
)

// ErrReach says that an identity belongs to more than MaxReach others, so that no answer about it can be given.
var ErrReach = errors.New("the identity belongs to too many nodes and groups")

// Question asks whether an identity may do something with an object.
type Question struct {
	Identity      Identity
	ApplicationID string
	ObjectType    string // Data, API, UI or App
	ObjectID      string // the object is named by its id, its code or, of an api resource, a URI
	ObjectCode    string
	URI           string
	Action        string // ignored for App
	Now           int64  // milliseconds since 1970

	// For conditions; JSON objects, or empty. Properties override stored ones.
	Context                                                 json.RawMessage
	SubjectProperties, ResourceProperties, ActionProperties json.RawMessage

	Work *Work // the work that the question is part of; nil: it is not part of a larger one

	resource *Resource // the object, once it is found; nil for App
}

// Reason says why something is allowed or not.
type Reason string

// The reasons.
const (
	Granted          Reason = "granted"
	Denied           Reason = "denied"
	NotGranted       Reason = "not_granted"
	UnknownIdentity  Reason = "unknown_identity"
	UnknownObject    Reason = "unknown_object"
	UnknownAction    Reason = "unknown_action"
	IdentityDisabled Reason = "identity_disabled"
	InvalidURI       Reason = "invalid_uri" // it has no normal form, see pathOf
)

// Decision answers a Question.
type Decision struct {
	Allowed bool
	Reason  Reason
	Rule    *Rule   // the rule that decided; nil if none did
	Via     []Party // from the asked identity to the one that has the rule; it must not be changed
}

// Party is an identity with its name; "" if the name is unknown.
type Party struct {
	Identity
	Name string
}

// finding is the rule that decides, and the step that has it.
type finding struct {
	rule *Rule
	at   int // in reach.steps
}

// Check answers a question. An error is ErrReach, ErrSearch, the context's or that of a pause.
func (s *State) Check(ctx context.Context, q *Question) (Decision, error) {
	if q.Work == nil {
		q.Work = NewWork(nil)
		defer q.endWork()
	}
	r, known := q.Work.reached(s, q.Identity)
	if !known {
		return Decision{Reason: UnknownIdentity}, nil
	}
	if r.disabled {
		return Decision{Reason: IdentityDisabled}, nil
	}
	if r.full {
		return Decision{}, ErrReach
	}
	if err := q.Work.spend(ctx, len(r.steps)); err != nil {
		return Decision{}, err
	}
	if reason := s.find(q); reason != "" {
		return Decision{Reason: reason}, nil
	}
	found, denied, err := s.decide(ctx, q, r)
	if err != nil || found.rule == nil {
		return Decision{Reason: NotGranted}, err
	}
	d := Decision{Allowed: !denied, Reason: Granted, Rule: found.rule, Via: r.via(found.at)}
	if denied {
		d.Reason = Denied
	}
	return d, nil
}

// endWork ends the work of a question that is not part of a larger one.
func (q *Question) endWork() {
	q.Work.Done()
	q.Work = nil
}

// find sets the object of a question. It returns the reason if the object or its action does not exist, otherwise "".
func (s *State) find(q *Question) Reason {
	if q.ObjectType == App {
		return ""
	}
	if q.resource = s.Resource(q); q.resource == nil {
		if _, ok := pathOf(q.URI); q.URI != "" && !ok {
			return InvalidURI
		}
		return UnknownObject
	}
	if !q.resource.knows(q.Action) {
		return UnknownAction
	}
	return ""
}

// knows reports whether a resource has an action.
func (r *Resource) knows(action string) bool { return slices.Contains(r.Actions, action) }

// Resource finds the resource that a question names: one of its application, or a global one of the tenant. nil if
// there is none.
func (s *State) Resource(q *Question) *Resource {
	switch {
	case q.ObjectID != "":
		r := s.resources.Get(q.ObjectID)
		if r == nil || r.Type != q.ObjectType || r.ApplicationID != q.ApplicationID && !r.Global {
			return nil
		}
		return r
	case q.ObjectCode != "":
		if id := s.codes.Get(objectCode{q.ApplicationID, q.ObjectType, q.ObjectCode}); id != "" {
			return s.resources.Get(id)
		}
		if all := s.global.Get(objectCode{"", q.ObjectType, q.ObjectCode}); all.Len() == 1 {
			for id := range all.All() {
				return s.resources.Get(id)
			}
		}
	case q.URI != "" && q.ObjectType == API:
		if path, ok := pathOf(q.URI); ok {
			return s.byURI(q.ApplicationID, path)
		}
	}
	return nil
}

// decide examines the rules that reach the identity and are about the object. A deny decides, otherwise the first rule
// that allows.
func (s *State) decide(ctx context.Context, q *Question, r *reach) (found finding, denied bool, err error) {
	var in input
	looked := 0
	aims := s.targets(q, r)
	for at := range r.steps {
		grants := r.steps[at].grants
		if grants.Len() == 0 {
			continue
		}
		for _, aim := range aims {
			rules, _ := grants.lookup(aim.hash, aim.target)
			if looked += len(rules); looked > MaxSearch {
				return finding{}, false, ErrSearch
			}
			if err := q.Work.spend(ctx, 1+len(rules)); err != nil { // a look-up costs about as much as a rule
				return finding{}, false, err
			}
			for _, rule := range rules {
				if !rule.Deny && found.rule != nil || !rule.covers(q, aim.actions) || !rule.current(q.Now) {
					continue
				}
				applies, err := s.applies(ctx, q, &in, rule)
				if err != nil {
					return finding{}, false, err
				}
				if applies && rule.Deny {
					return finding{rule, at}, true, nil
				}
				if applies {
					found = finding{rule, at}
				}
			}
		}
	}
	return found, false, nil
}

// aim is a target whose rules are about the asked object, with the actions to which a resource set limits them; nil: no
// limit.
type aim struct {
	target
	hash    uint64 // of the target
	actions []string
}

func aimAt(at target, actions []string) aim { return aim{at, hashOf(at), actions} }

// targets are the aims of all rules about a question's object. They are kept in r until the next call.
func (s *State) targets(q *Question, r *reach) []aim {
	if q.ObjectType == App {
		r.aims = append(r.aims[:0], aimAt(target{application, q.ApplicationID}, nil))
		return r.aims
	}
	owner := q.resource.ApplicationID
	r.aims = append(r.aims[:0], aimAt(target{oneResource, q.resource.ID}, nil), aimAt(target{allResources, owner}, nil),
		aimAt(target{patternOf, owner}, nil))
	for _, m := range s.setsOf.Get(q.resource.ID) {
		r.aims = append(r.aims, aimAt(target{setOf, m.SetID}, m.Actions))
	}
	return r.aims
}

// covers reports whether a rule that was found by its target is about the question's object and action.
func (r *Rule) covers(q *Question, actions []string) bool {
	if r.Type == App {
		return true
	}
	return r.matches(q.resource) && includes(r.Actions, q.Action) && (actions == nil || includes(actions, q.Action))
}

// matches reports whether a rule that was found by its target is about a resource.
func (r *Rule) matches(resource *Resource) bool {
	return r.Type != Wildcard || r.Code == "" || Match(r.Code, resource.Code)
}

// applies evaluates a rule's condition. If the condition cannot be decided, a rule that allows does not apply and a
// rule that denies does.
func (s *State) applies(ctx context.Context, q *Question, in *input, rule *Rule) (bool, error) {
	if rule.Condition == nil {
		return true, nil
	}
	holds, undecided, err := s.holds(ctx, q, in, rule.Condition)
	if undecided != nil {
		return rule.Deny, nil
	}
	return holds, err
}
