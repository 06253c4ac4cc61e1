package engine

import "context"

// GrantedByOthers counts the rules of other applications that grant or deny resources of an application: its global
// resources and sets, and sets of others that have its resources. An error is that of a pause.
func (s *State) GrantedByOthers(ctx context.Context, applicationID string, work *Work) (int64, error) {
	var n int64
	count := func(at target) error {
		rules := s.granting.Get(at)
		if err := work.spend(ctx, 1+rules.Len()); err != nil {
			return err
		}
		for rule := range rules.All() {
			if rule.ApplicationID != applicationID {
				n++
			}
		}
		return nil
	}
	sets := map[string]bool{}
	for _, r := range s.owned.Get(applicationID).All() {
		if err := count(target{oneResource, r.ID}); err != nil {
			return 0, err
		}
		for _, m := range s.setsOf.Get(r.ID) {
			sets[m.SetID] = true
		}
	}
	for id, set := range s.sets.All() {
		if err := work.spend(ctx, 1); err != nil {
			return 0, err
		}
		if set.ApplicationID == applicationID {
			sets[id] = true
		}
	}
	for id := range sets {
		if err := count(target{setOf, id}); err != nil {
			return 0, err
		}
	}
	return n, nil
}
