package plan

import "slices"

// renumber gives rules about the same the keys of the desired records with which they are paired, and other rules other
// numbers: the numbers come from the places in the files, where one rule less would give the next one its key. What a
// state has of a rule follows the rule.
func (p *Plan) renumber(pairs map[*Desired]*Record) {
	taken, wanted := map[string]bool{}, map[*Record]string{}
	var unpaired []*Desired
	for ref, w := range p.desired {
		if ref.Kind != rule {
			continue
		}
		taken[ref.Key] = true
		if r := pairs[w]; r != nil {
			wanted[r] = ref.Key
		} else {
			unpaired = append(unpaired, w)
		}
	}
	free := func(key string) string {
		key = plainKey(key)
		for n := 2; taken[key]; n++ {
			key = numbered(key, n)
		}
		taken[key] = true
		return key
	}
	var rules []*Record
	for _, r := range p.actual.order {
		if r.Kind == rule {
			rules = append(rules, r)
			delete(p.actual.records, r.Ref)
			delete(p.actual.ids, r.Ref)
		}
	}
	for _, r := range rules {
		key, is := wanted[r]
		if !is {
			key = free(r.Key)
		}
		r.Key = key
		p.actual.records[r.Ref] = r
		p.actual.name(r.Ref, r.ID)
	}
	p.options.State.follow(rules, unpaired, free)
}

// follow gives what a state has of rules the keys of these rules: of the one with the same id or, without an id, with
// the same content, or of a desired record that is still to be made.
func (s *State) follow(rules []*Record, unpaired []*Desired, free func(string) string) {
	if s == nil {
		return
	}
	about, byID := map[string][]*Record{}, map[string]*Record{}
	for _, r := range rules {
		about[plainKey(r.Key)] = append(about[plainKey(r.Key)], r)
		byID[r.ID] = r
	}
	var own, left []*Applied
	for _, a := range s.Records {
		if a.Kind == rule {
			own = append(own, a)
			delete(s.byRef, a.Ref)
		}
	}
	for _, a := range own {
		if r := byID[a.ID]; r != nil {
			a.Key = r.Key
			s.byRef[a.Ref] = a
		} else {
			left = append(left, a)
		}
	}
	match := func(is func(a *Applied, r *Record) bool) {
		left = slices.DeleteFunc(left, func(a *Applied) bool {
			for _, r := range about[plainKey(a.Key)] {
				if s.byRef[r.Ref] == nil && is(a, r) {
					a.Key = r.Key
					s.byRef[a.Ref] = a
					return true
				}
			}
			return false
		})
	}
	match(func(a *Applied, r *Record) bool {
		return a.ID == "" && len(differences(shown(&Desired{Ref: a.Ref, Values: a.Values}), r.Values)) == 0
	})
	match(func(a *Applied, _ *Record) bool { return a.ID == "" && !a.Begun })
	for _, a := range left {
		at := slices.IndexFunc(unpaired, func(w *Desired) bool {
			return s.byRef[w.Ref] == nil && plainKey(w.Key) == plainKey(a.Key) && sameJSON(w.Values, a.Values)
		})
		if at >= 0 {
			a.Key = unpaired[at].Key
		} else {
			a.Key = free(a.Key)
		}
		s.byRef[a.Ref] = a
	}
}
