package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/failure"
)

// What a step does.
const (
	Create = "create"
	Update = "change"
	Delete = "delete"
)

// Step is a record that must be written so that the platform is as the files say.
type Step struct {
	Action string `json:"action"`
	Ref
	Place   string   `json:"place,omitempty"` // in the files
	Changes []Change `json:"changes"`
	// DependsOn is the record that must be made, or deleted, before this step can be tried.
	DependsOn *Ref  `json:"not_tried_before,omitempty"`
	Problem   error `json:"-"` // why the platform refuses it
	// Scope is what the caller lacks: the step was not tried.
	Scope   string `json:"not_tried_without,omitempty"`
	With    *Ref   `json:"goes_with,omitempty"`      // the record with which the platform deletes it by itself
	Foreign bool   `json:"not_of_the_set,omitempty"` // the set has not made it
	// Drift is what somebody else has changed since the set was applied.
	Drift []string `json:"drift,omitempty"`

	// Interim says that the values are for a while: a later step of the plan gives the record those of the files.
	Interim bool `json:"interim,omitempty"`

	want   *Desired
	record *Record
	after  *Step // it comes after this one, without which the platform may refuse it
	later  *Step // it cannot be tried before this one is done
	freed  int   // how many references to the record, or to a part of it, are gone before
}

// Options say how to plan.
type Options struct {
	Rotate bool // send all secrets again
	Getenv func(string) string

	State      *State // of a named set; nil: there is none
	TakeOver   bool   // also what somebody else has changed
	Unmanaged  bool   // list rules that are neither in the files nor of the set
	Cascade    bool   // also what the set did not make, if it goes with a record of the set
	Prune      bool   // delete what the set made and the files no longer have
	MaxDeletes int
}

// Plan is what must be done.
type Plan struct {
	Steps     []*Step
	Unchanged int
	Orphaned  int     // records that the set made, that the files no longer have, and that stay
	Impact    *Impact // who gains and who loses access; nil if no step changes that
	Unmanaged []*Unmanaged
	Notes     []string // what Apply has to say about records that are no steps

	gone  []Ref   // parts that go with a record that is deleted
	begun []begun // remembered in the state, and not sent yet

	sending []batch // all, while they are done
	asked   bool    // the platform has been asked about a step
	standIn string  // the id of records that are not there yet, while a step that refers to them is tried

	platform Platform
	actual   *Actual
	desired  map[Ref]*Desired
	options  Options
	secrets  *secrets
	scopes   scopes
}

// Make compares the files with what runs.
func Make(ctx context.Context, platform Platform, desired []*Desired, options Options) (*Plan, error) {
	if err := checkConnections(ctx, platform, desired); err != nil {
		return nil, err
	}
	scope := scopeOf(desired, options.State)
	scope.naming = namingOf(desired, options.State)
	if options.Unmanaged {
		scope.kinds[rule] = true
	}
	actual, err := Read(ctx, platform, scope)
	if err != nil {
		return nil, err
	}
	p := &Plan{
		platform: platform, actual: actual, desired: map[Ref]*Desired{}, options: options,
		secrets: &secrets{getenv: options.Getenv, fetched: map[string]string{}},
	}
	for _, w := range desired {
		p.desired[w.Ref] = w
	}
	options.State.rename(actual, p.desired)
	if err := unusable(actual.naming.unsureFaults(desired)); err != nil {
		return nil, err
	}
	if err := p.nameReferences(ctx, desired); err != nil {
		return nil, err
	}
	if err := p.checkReferences(desired); err != nil {
		return nil, err
	}
	if err := p.checkContents(desired); err != nil {
		return nil, err
	}
	pairs := actual.pair(desired)
	p.renumber(pairs)
	for _, w := range inOrder(desired) {
		if err := p.plan(w, pairs[w]); err != nil {
			return nil, err
		}
	}
	if err := p.prune(ctx, desired); err != nil {
		return nil, err
	}
	p.sort()
	if options.Unmanaged {
		p.findUnmanaged(pairs)
	}
	return p, nil
}

// plan adds the step of a desired record, if one is needed.
func (p *Plan) plan(w *Desired, r *Record) error {
	s := &Step{Action: Create, Ref: w.Ref, Place: w.Place(), Changes: []Change{}, want: w, record: r}
	if r == nil {
		s.Changes = differences(shown(w), nil)
		s.drift(p.options.State.of(w.Ref))
		p.Steps = append(p.Steps, s)
		return nil
	}
	s.Action, s.Changes = Update, differences(shown(w), r.Values)
	s.drift(p.options.State.of(w.Ref))
	if p.options.Rotate {
		s.Changes = append(s.Changes, rotated("", w.Values)...)
	} else {
		s.Changes = append(s.Changes, otherSources(w.Values, p.options.State.of(w.Ref))...)
	}
	if len(s.Changes) == 0 {
		p.Unchanged++
		return nil
	}
	for _, c := range s.Changes {
		if slices.Contains(kindOf(w.Kind).fixed, c.Member) {
			return failure.Usagef("%s:%d: %s of %s cannot change; delete the record first, or leave %s out",
				w.File, w.line(c.Member), c.Member, w.Ref, c.Member)
		}
	}
	p.Steps = append(p.Steps, s)
	return nil
}

// shown are the values of a desired record without those that its name says already.
func shown(w *Desired) map[string]any {
	out := maps.Clone(w.Values)
	for _, name := range []string{"application", "tree", "set", "connection", "was"} {
		delete(out, name)
	}
	switch w.Kind {
	case rule:
		for _, name := range []string{"identity", "resource_application", "type", "code"} {
			delete(out, name)
		}
	case member, protocol:
		for _, name := range []string{"resource_application", "type", "code"} {
			delete(out, name)
		}
	}
	return out
}

// rotated are the secrets of a desired record.
func rotated(path string, value any) []Change {
	var out []Change
	switch v := value.(type) {
	case Secret:
		return []Change{{strings.TrimPrefix(path, "."), masked, v}}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = append(out, rotated(path+"."+name, v[name])...)
		}
	}
	return out
}

// scopeOf is what must be read to compare the desired records.
func scopeOf(desired []*Desired, state *State) Scope {
	s := Scope{
		kinds: map[string]bool{}, applications: map[string]bool{}, trees: map[string]bool{}, whole: map[Ref]bool{},
	}
	if state != nil {
		desired = slices.Clone(desired)
		for _, a := range state.Records {
			desired = append(desired, &Desired{Ref: a.Ref, Values: a.Values})
		}
	}
	for _, w := range desired {
		for _, ref := range append(needs(w.Ref, w.Values), w.Ref) {
			switch ref.Kind {
			case application:
				s.applications[ref.Key] = true
			case tree:
				s.trees[ref.Key] = true
			}
		}
		if other, _ := w.Values["resource_application"].(string); other != "" {
			s.applications[other] = true
		}
		kind := w.Kind
		switch kind {
		case protocol:
			s.whole[needs(w.Ref, w.Values)[0]] = true
			kind = application
		case source:
			kind = application
		case node:
			kind = tree
		case member:
			s.whole[needs(w.Ref, w.Values)[0]] = true
			kind = resourceSet
		}
		s.kinds[kind] = true
	}
	return s
}

// nameReferences finds the ids of users and nodes that the files name and that nothing has read.
func (p *Plan) nameReferences(ctx context.Context, desired []*Desired) error {
	names := map[string][]string{}
	for _, w := range desired {
		for _, ref := range needs(w.Ref, w.Values) {
			if _, known := p.actual.ids[ref]; !known {
				names[ref.Kind] = append(names[ref.Kind], ref.Key)
			}
		}
	}
	slices.Sort(names[user])
	if err := p.actual.nameUsers(ctx, slices.Compact(names[user])); err != nil {
		return err
	}
	return p.actual.nameNodes(ctx, "code", names[node])
}

// checkReferences finds names that nothing has, neither the files nor the platform.
func (p *Plan) checkReferences(desired []*Desired) error {
	var faults []string
	for _, w := range desired {
		for _, ref := range needs(w.Ref, w.Values) {
			if _, runs := p.actual.ids[ref]; !runs && p.desired[ref] == nil {
				faults = append(faults, fmt.Sprintf("%s: there is no %s, neither in the files nor on the platform",
					w.Place(), ref))
			}
		}
	}
	return unusable(faults)
}

// pair finds the record of each desired record. Rules have no names of their own: of those about the same, the ones
// that are as wanted come first; then, if one desired record and one record are left, they belong together.
func (l *Actual) pair(desired []*Desired) map[*Desired]*Record {
	out, about := map[*Desired]*Record{}, map[string][]*Desired{}
	for _, w := range desired {
		if w.Kind == rule {
			about[plainKey(w.Key)] = append(about[plainKey(w.Key)], w)
		} else if r := l.records[w.Ref]; r != nil {
			out[w] = r
		}
	}
	records := map[string][]*Record{}
	for _, r := range l.order {
		if r.Kind == rule {
			records[plainKey(r.Key)] = append(records[plainKey(r.Key)], r)
		}
	}
	for key, left := range about {
		has := records[key]
		left = slices.DeleteFunc(left, func(w *Desired) bool {
			at := slices.IndexFunc(has, func(r *Record) bool { return len(differences(shown(w), r.Values)) == 0 })
			if at >= 0 {
				out[w] = has[at]
				has = slices.Delete(has, at, at+1)
			}
			return at >= 0
		})
		if len(left) == 1 && len(has) == 1 {
			out[left[0]] = has[0]
		}
	}
	return out
}

// inOrder sorts desired records by their dependence: kinds by rank, pointers after the nodes to which they may point.
func inOrder(desired []*Desired) []*Desired {
	place := func(w *Desired) int {
		if w.Values["pointer"] != nil {
			return 2*rank(w.Kind) + 1
		}
		return 2 * rank(w.Kind)
	}
	out := slices.Clone(desired)
	slices.SortStableFunc(out, func(a, b *Desired) int { return cmp.Compare(place(a), place(b)) })
	return out
}

// waits returns the first record that a step needs and that is not made yet. together are nodes that are made in the
// same request.
func (p *Plan) waits(s *Step, together map[Ref]bool) *Ref {
	if s.Action == Delete {
		return nil
	}
	for _, ref := range needs(s.Ref, s.want.Values) {
		_, made := p.actual.ids[ref]
		isParent := s.Kind == node && ref.Key != s.want.Values["pointer"]
		if !made && !(isParent && together[ref]) {
			return &ref
		}
	}
	return nil
}
