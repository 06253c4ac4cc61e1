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
	Alter  = "change"
	Delete = "delete"
)

// Step is a record that must be written so that the platform is as the files say.
type Step struct {
	Action string `json:"action"`
	Ref
	Place   string   `json:"place,omitempty"` // in the files
	Changes []Change `json:"changes"`
	// Waits is the record that must be made, or deleted, before this step can be tried.
	Waits   *Ref  `json:"not_tried_before,omitempty"`
	Problem error `json:"-"` // why the platform refuses it
	// Scope is what the caller lacks: the step was not tried.
	Scope   string `json:"not_tried_without,omitempty"`
	With    *Ref   `json:"goes_with,omitempty"`      // the record with which the platform deletes it by itself
	Foreign bool   `json:"not_of_the_set,omitempty"` // the set has not made it
	// Drift is what somebody else has changed since the set was applied.
	Drift []string `json:"drift,omitempty"`

	// Interim says that the values are for a while: a later step of the plan gives the record those of the files.
	Interim bool `json:"interim,omitempty"`

	wish   *Wish
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
	Left      int     // records that the set made, that the files no longer have, and that stay
	Impact    *Impact // who gains and who loses access; nil if no step changes that
	Unmanaged []*Unmanaged
	Notes     []string // what Apply has to say about records that are no steps

	gone  []Ref   // parts that go with a record that is deleted
	begun []begun // remembered in the state, and not sent yet

	sending []batch // all, while they are done
	asked   bool    // the platform has been asked about a step
	standIn string  // the id of records that are not there yet, while a step that refers to them is tried

	platform Platform
	live     *Live
	wishes   map[Ref]*Wish
	options  Options
	secrets  *secrets
	scopes   scopes
}

// Make compares the files with what runs.
func Make(ctx context.Context, platform Platform, wishes []*Wish, options Options) (*Plan, error) {
	if err := checkConnections(ctx, platform, wishes); err != nil {
		return nil, err
	}
	scope := scopeOf(wishes, options.State)
	scope.naming = namingOf(wishes, options.State)
	if options.Unmanaged {
		scope.kinds[rule] = true
	}
	live, err := Read(ctx, platform, scope)
	if err != nil {
		return nil, err
	}
	p := &Plan{
		platform: platform, live: live, wishes: map[Ref]*Wish{}, options: options,
		secrets: &secrets{getenv: options.Getenv, fetched: map[string]string{}},
	}
	for _, w := range wishes {
		p.wishes[w.Ref] = w
	}
	options.State.rename(live, p.wishes)
	if err := unusable(live.naming.unsureFaults(wishes)); err != nil {
		return nil, err
	}
	if err := p.nameReferences(ctx, wishes); err != nil {
		return nil, err
	}
	if err := p.checkReferences(wishes); err != nil {
		return nil, err
	}
	if err := p.checkContents(wishes); err != nil {
		return nil, err
	}
	pairs := live.pair(wishes)
	p.renumber(pairs)
	for _, w := range inOrder(wishes) {
		if err := p.plan(w, pairs[w]); err != nil {
			return nil, err
		}
	}
	if err := p.prune(ctx, wishes); err != nil {
		return nil, err
	}
	p.sort()
	if options.Unmanaged {
		p.findUnmanaged(pairs)
	}
	return p, nil
}

// plan adds the step of a wish, if one is needed.
func (p *Plan) plan(w *Wish, r *Record) error {
	s := &Step{Action: Create, Ref: w.Ref, Place: w.Place(), Changes: []Change{}, wish: w, record: r}
	if r == nil {
		s.Changes = differences(shown(w), nil)
		s.drift(p.options.State.of(w.Ref))
		p.Steps = append(p.Steps, s)
		return nil
	}
	s.Action, s.Changes = Alter, differences(shown(w), r.Values)
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

// shown are the values of a wish without those that its name says already.
func shown(w *Wish) map[string]any {
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

// rotated are the secrets of a wish.
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

// scopeOf is what must be read to compare the wishes.
func scopeOf(wishes []*Wish, state *State) Scope {
	s := Scope{
		kinds: map[string]bool{}, applications: map[string]bool{}, trees: map[string]bool{}, whole: map[Ref]bool{},
	}
	if state != nil {
		wishes = slices.Clone(wishes)
		for _, a := range state.Records {
			wishes = append(wishes, &Wish{Ref: a.Ref, Values: a.Values})
		}
	}
	for _, w := range wishes {
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
func (p *Plan) nameReferences(ctx context.Context, wishes []*Wish) error {
	names := map[string][]string{}
	for _, w := range wishes {
		for _, ref := range needs(w.Ref, w.Values) {
			if _, known := p.live.ids[ref]; !known {
				names[ref.Kind] = append(names[ref.Kind], ref.Key)
			}
		}
	}
	slices.Sort(names[user])
	if err := p.live.nameUsers(ctx, slices.Compact(names[user])); err != nil {
		return err
	}
	return p.live.nameNodes(ctx, "code", names[node])
}

// checkReferences finds names that nothing has, neither the files nor the platform.
func (p *Plan) checkReferences(wishes []*Wish) error {
	var faults []string
	for _, w := range wishes {
		for _, ref := range needs(w.Ref, w.Values) {
			if _, runs := p.live.ids[ref]; !runs && p.wishes[ref] == nil {
				faults = append(faults, fmt.Sprintf("%s: there is no %s, neither in the files nor on the platform",
					w.Place(), ref))
			}
		}
	}
	return unusable(faults)
}

// pair finds the record of each wish. Rules have no names of their own: of those about the same, the ones that are as
// wanted come first; then, if one wish and one record are left, they belong together.
func (l *Live) pair(wishes []*Wish) map[*Wish]*Record {
	out, about := map[*Wish]*Record{}, map[string][]*Wish{}
	for _, w := range wishes {
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
		left = slices.DeleteFunc(left, func(w *Wish) bool {
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

// inOrder sorts wishes by their dependence: kinds by rank, pointers after the nodes to which they may point.
func inOrder(wishes []*Wish) []*Wish {
	place := func(w *Wish) int {
		if w.Values["pointer"] != nil {
			return 2*rank(w.Kind) + 1
		}
		return 2 * rank(w.Kind)
	}
	out := slices.Clone(wishes)
	slices.SortStableFunc(out, func(a, b *Wish) int { return cmp.Compare(place(a), place(b)) })
	return out
}

// waits returns the first record that a step needs and that is not made yet. together are nodes that are made in the
// same request.
func (p *Plan) waits(s *Step, together map[Ref]bool) *Ref {
	if s.Action == Delete {
		return nil
	}
	for _, ref := range needs(s.Ref, s.wish.Values) {
		_, made := p.live.ids[ref]
		isParent := s.Kind == node && ref.Key != s.wish.Values["pointer"]
		if !made && !(isParent && together[ref]) {
			return &ref
		}
	}
	return nil
}
