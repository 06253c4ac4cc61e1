package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

// order sorts the steps of a plan. A step comes after its firsts; otherwise the order of the kinds stays.
type order struct {
	*Plan
	firsts  map[*Step][]*Step // the steps that must be done before a step
	made    map[Ref]*Step     // the steps that create
	deleted map[Ref]*Step     // the steps that delete
	altered map[Ref]*Step     // the steps that change
	done    map[*Step]bool
	out     []*Step
}

// sort puts the steps into an order in which the platform takes each of them: a record is deleted after what refers to
// it has gone elsewhere, a resource loses an action after the rules that name it, and a unique value is free before
// another record gets it. Where there is no such order, an interim step comes first.
func (p *Plan) sort() {
	o := &order{
		Plan: p, firsts: map[*Step][]*Step{}, done: map[*Step]bool{},
		made: map[Ref]*Step{}, deleted: map[Ref]*Step{}, altered: map[Ref]*Step{},
	}
	of := map[string]map[Ref]*Step{Create: o.made, Delete: o.deleted, Update: o.altered}
	for _, s := range p.Steps {
		of[s.Action][s.Ref] = s
	}
	o.references()
	o.sources()
	o.moves()
	o.actions()
	for _, u := range uniques {
		o.values(u)
	}
	for _, s := range p.Steps {
		o.add(s)
	}
	p.Steps = o.out
}

// add adds a step after its firsts.
func (o *order) add(s *Step) {
	if o.done[s] {
		return
	}
	o.done[s] = true // a circle, such as two applications whose rules name each other, is as good in any order
	for _, first := range o.firsts[s] {
		o.add(first)
	}
	o.out = append(o.out, s)
}

// host is the step with which another is done; mostly itself.
func (o *order) host(s *Step) *Step {
	for range kinds { // a record goes with one of another kind
		if s.With == nil || o.deleted[*s.With] == nil {
			break
		}
		s = o.deleted[*s.With]
	}
	return s
}

// before notes that a step must be done before another.
func (o *order) before(first, s *Step) {
	if first, s = o.host(first), o.host(s); first != s {
		o.firsts[s] = append(o.firsts[s], first)
		s.after = first
	}
}

// waitsFor reports whether a step comes after another by what is noted.
func (o *order) waitsFor(s, first *Step, seen map[*Step]bool) bool {
	if s == first {
		return true
	}
	if seen[s] {
		return false
	}
	seen[s] = true
	return slices.ContainsFunc(o.firsts[s], func(next *Step) bool { return o.waitsFor(next, first, seen) })
}

// references puts what is made before what refers to it, and what refers to a record before its deletion.
func (o *order) references() {
	for _, s := range o.Steps {
		if s.want != nil {
			for _, ref := range needs(s.Ref, s.want.Values) {
				if first := o.made[ref]; first != nil && first != s {
					o.firsts[s] = append(o.firsts[s], first) // and it is not tried until that is there
				}
			}
		}
		if s.record == nil || s.record.Values == nil {
			continue
		}
		for _, ref := range needs(s.Ref, s.record.Values) {
			if deletion := o.deleted[ref]; deletion != nil {
				o.before(s, deletion)
				deletion.freed++
			}
		}
	}
}

// sources puts applications that are deleted before the connections that they offer.
func (o *order) sources() {
	for _, r := range o.actual.order {
		of, _ := r.Values["application"].(string)
		offered, _ := r.Values["connection"].(string)
		first, deletion := o.deleted[Ref{application, of}], o.deleted[Ref{connection, offered}]
		if r.Kind == source && first != nil && deletion != nil {
			o.before(first, deletion)
			deletion.freed++
		}
	}
}

// moves puts the move of a node out of another before the other's move below it, and pointers before the nodes that
// become pointers, or stop being some.
func (o *order) moves() {
	for _, s := range o.Steps {
		if s.Kind != node || s.want == nil {
			continue
		}
		if s.Action == Update && s.moves() {
			o.movesOut(s)
		}
		pointer, _ := s.want.Values["pointer"].(string)
		if to := o.altered[Ref{node, pointer}]; to != nil && to.changes("is_pointer") && to != s {
			o.before(to, s)
		}
		if s.record == nil || !s.changes("pointer", "is_pointer") {
			continue
		}
		was, _ := s.record.Values["pointer"].(string)
		if to := o.altered[Ref{node, was}]; to != nil && to.changes("is_pointer") && to != s {
			o.before(s, to)
			to.freed++
		}
	}
}

// movesOut looks for the node itself above its new parent. A node in between must move away first.
func (o *order) movesOut(s *Step) {
	var between []*Step
	at, _ := s.want.Values["parent"].(string)
	of, _ := s.want.Values["tree"].(string)
	for r := o.actual.records[Ref{node, of + "/" + at}]; r != nil && r.Kind == node; {
		if r == s.record {
			for _, other := range between {
				o.before(other, s)
			}
			return
		}
		if step := o.altered[r.Ref]; step != nil && step.moves() {
			between = append(between, step)
		}
		parent, _ := r.Values["parent"].(string)
		r = o.actual.records[Ref{node, of + "/" + parent}]
	}
}

// actions puts rules and members of sets that stop naming an action before the change of their resource that drops it.
// Those that begin to name a new one come after it. Where one does both, the resource has all actions for a while.
func (o *order) actions() {
	for _, s := range slices.Clone(o.Steps) {
		if s.Kind != rule && s.Kind != member {
			continue
		}
		values := map[string]any(nil)
		switch {
		case s.want != nil:
			values = s.want.Values
		case s.record != nil:
			values = s.record.Values
		}
		for _, ref := range needs(s.Ref, values) {
			if of := o.altered[ref]; of != nil && of.Kind == resource && of.changes("actions") {
				o.actionsOf(of, s)
			}
		}
	}
}

func (o *order) actionsOf(of, s *Step) {
	has, will := codes(of.record.Values["actions"]), codes(of.want.Values["actions"])
	leaves, begins := false, false
	if s.record != nil {
		for action := range codes(s.record.Values["actions"]) {
			leaves = leaves || has[action] && !will[action]
		}
	}
	if s.want != nil {
		for action := range codes(s.want.Values["actions"]) {
			begins = begins || will[action] && !has[action]
		}
	}
	if leaves {
		o.before(s, of)
		of.freed++
	}
	switch {
	case leaves && begins:
		s.later = o.interim(of, "actions", union(of.want.Values["actions"], of.record.Values["actions"]))
		o.firsts[s] = append(o.firsts[s], s.later)
	case begins:
		s.later = of
		o.firsts[s] = append(o.firsts[s], of)
	}
}

// codes are the actions of a resource, a rule or a member of a set.
func codes(actions any) map[string]bool {
	out := map[string]bool{}
	list, _ := actions.([]any)
	for _, item := range list {
		if action, is := item.(map[string]any); is {
			item = action["code"]
		}
		if code, is := item.(string); is {
			out[code] = true
		}
	}
	return out
}

// union are the actions of two lists.
func union(first, second any) []any {
	one, _ := first.([]any)
	other, _ := second.([]any)
	out, has := slices.Clone(one), codes(one)
	for _, item := range other {
		action, _ := item.(map[string]any)
		if code, _ := action["code"].(string); !has[code] {
			out = append(out, item)
		}
	}
	return out
}

// unique is a member that can change and has another value in each record.
type unique struct {
	kind, member string
	meanwhile    func(s *Step) string // a value that is free
}

var uniques = []unique{
	{application, "name", func(s *Step) string { return temporary(s.Ref) }},
	{application, "domain_sn", func(*Step) string { return "" }},
	{node, "code", func(s *Step) string { return temporary(s.Ref) }},
}

// temporary is a name that a record has until its own one is free. It is the same each time, so that an apply that was
// stopped goes on.
func temporary(ref Ref) string {
	sum := sha256.Sum256([]byte(ref.String()))
	return "idp-apply-" + hex.EncodeToString(sum[:8])
}

// values puts who gives up a unique value before who gets it. Where each waits for the other, one gets a value for a
// while.
func (o *order) values(u unique) {
	same := func(values map[string]any) string {
		value, _ := values[u.member].(string)
		switch {
		case value == "":
			return ""
		case u.kind == node:
			of, _ := values["tree"].(string)
			return of + "/" + value
		}
		return fold(value)
	}
	from := map[string]*Step{}
	for _, s := range o.Steps {
		if s.Kind == u.kind && s.record != nil && !s.Interim && (s.Action == Delete || s.changes(u.member)) {
			if value := same(s.record.Values); value != "" {
				from[value] = s
			}
		}
	}
	if len(from) == 0 {
		return
	}
	for _, s := range slices.Clone(o.Steps) {
		if s.Kind != u.kind || s.want == nil || s.Interim || s.record != nil && !s.changes(u.member) {
			continue
		}
		holder := from[same(s.want.Values)]
		if holder == nil || holder == s {
			continue
		}
		if holder.Action == Update && o.waitsFor(holder, s, map[*Step]bool{}) {
			holder = o.interim(holder, u.member, u.meanwhile(holder))
		}
		o.before(holder, s)
	}
}

// interim returns a step that gives a member of a record another value until its own step is done.
func (o *order) interim(s *Step, member string, value any) *Step {
	for _, first := range o.firsts[s] {
		if first.Interim && first.Ref == s.Ref && first.changes(member) {
			return first
		}
	}
	w := *s.want
	w.Values = maps.Clone(s.want.Values)
	w.Values[member] = value
	between := &Step{
		Action: Update, Ref: s.Ref, Place: s.Place, Interim: true, want: &w, record: s.record,
		Changes: []Change{{member, s.record.Values[member], value}},
	}
	for i, c := range s.Changes {
		if c.Member == member {
			s.Changes[i].Before = value
		}
	}
	o.firsts[s] = append(o.firsts[s], between)
	at := slices.Index(o.Steps, s)
	o.Steps = slices.Insert(o.Steps, at, between)
	return between
}

// waiting says why a step was not tried.
func (s *Step) waiting() string {
	why := "is not there yet"
	for _, first := range []*Step{s.after, s.later} {
		if first == nil || first.Ref != *s.DependsOn {
			continue
		}
		if why = "changes first"; first.Action == Delete {
			why = "goes first"
		}
	}
	if s.Action == Delete && !strings.HasSuffix(why, "first") {
		why = "goes first"
	}
	return s.DependsOn.String() + " " + why
}
