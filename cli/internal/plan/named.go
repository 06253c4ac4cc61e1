package plan

import (
	"fmt"
	"strings"
)

// stillNamed finds records that are to be deleted although something that stays needs them.
func (p *Plan) stillNamed(desired []*Desired, gone []*Step) error {
	by := map[Ref][]string{}
	for _, s := range gone {
		by[s.Ref] = nil
	}
	note := func(ref Ref, values map[string]any, text string) {
		for _, needed := range needs(ref, values) {
			if list, deleted := by[needed]; deleted {
				by[needed] = append(list, text)
			}
		}
	}
	for _, w := range desired {
		note(w.Ref, w.Values, fmt.Sprintf("%s: %s", w.Place(), w.Ref))
	}
	for _, r := range p.actual.order {
		if _, deleted := by[r.Ref]; r.Kind == node && !deleted && p.desired[r.Ref] == nil {
			note(r.Ref, r.Values, fmt.Sprintf("%s, which is neither the set's nor in the files", r.Ref))
		}
	}
	var faults []string
	for _, s := range gone {
		names := by[s.Ref]
		if len(names) == 0 {
			continue
		}
		if more := len(names) - mostNames; more > 0 {
			names = append(names[:mostNames:mostNames], fmt.Sprintf("%d more", more))
		}
		list := strings.Join(names, "\n    ")
		faults = append(faults, fmt.Sprintf("%s is no longer in them, and would be deleted, but is still named by\n"+
			"    %s", s.Ref, list))
	}
	return unusable(faults)
}

const mostNames = 5 // of what names a record
