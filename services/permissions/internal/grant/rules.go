package grant

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// maxRules is how many rules a request can create: each of its rules for each of its identities.
const maxRules = 1000

// Grant creates every rule for every identity, and the units that are missing, all or none. An exact repeat of a rule
// is not created again. apperr.InvalidParameters, InvalidState (see MaxConditions), Forbidden (see mayGrant).
func (s *Grants) Grant(ctx context.Context, identities []Identity, profiles []RuleProfile) error {
	if err := checkGrant(identities, profiles); err != nil {
		return err
	}
	if err := s.checkConditions(ctx, profiles...); err != nil {
		return err
	}
	ids, err := s.Store.NewIDs(ctx, len(identities)*(1+len(profiles)))
	if err != nil {
		return err
	}
	if len(identities) == 1 { // all rules of a unit change its rule_count
		ctx = docstore.InTurn(ctx, "unit "+identities[0].Type+"/"+identities[0].IdentityID)
	}
	_, err = write(ctx, s, func(b *batch) (struct{}, error) {
		next := ids
		resolved := slices.Clone(profiles)
		if err := resolve(ctx, b.Tx, resolved, func(i int) string { return apperr.Item("rules", i) }); err != nil {
			return struct{}{}, err
		}
		if err := mayGrant(ctx, b.Tx, resolved); err != nil {
			return struct{}{}, err
		}
		of, err := unitsFor(ctx, b, identities, next)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, addRules(ctx, b, of, resolved, next[len(identities):])
	})
	return err
}

func checkGrant(identities []Identity, profiles []RuleProfile) error {
	var faults apperr.Faults
	for i := range identities {
		identities[i].check(faults.Within(apperr.Item("identities", i)))
	}
	for i := range profiles {
		profiles[i].check(faults.Within(apperr.Item("rules", i)))
	}
	faults.Check(len(identities)*len(profiles) <= maxRules, "rules", "times identities must be at most %d", maxRules)
	return faults.Err()
}

// MaxConditions is how many different conditions a tenant's rules can have: each stays compiled in memory.
const MaxConditions = 1000

// checkConditions enforces MaxConditions. It counts the conditions that this replica knows, so that concurrent requests
// can exceed the limit by a few.
func (s *Grants) checkConditions(ctx context.Context, profiles ...RuleProfile) error {
	texts := make([]string, len(profiles))
	for i := range profiles {
		texts[i] = profiles[i].Condition
	}
	if !slices.ContainsFunc(texts, func(text string) bool { return text != "" }) {
		return nil
	}
	if n := s.Conditions(ctx, texts...); n > MaxConditions {
		return apperr.New(apperr.InvalidState,
			"the rules of a tenant can have at most %d different conditions: compare context with properties "+
				"instead of writing values into the conditions", MaxConditions)
	}
	return nil
}

// unitsFor loads the units of identities, and creates the missing ones with the ids. The keys are places.
func unitsFor(ctx context.Context, b *batch, identities []Identity, ids []string) (map[string]*Unit, error) {
	wanted := make([]docstore.Value, len(identities))
	for i, who := range identities {
		wanted[i] = docstore.Text(place(who.Type, who.IdentityID))
	}
	existing, err := units.LoadWhere(ctx, b.Tx, docstore.In(byIdentity, wanted...), "", len(wanted))
	if err != nil {
		return nil, err
	}
	of := map[string]*Unit{}
	for _, u := range existing {
		of[place(u.Type, u.IdentityID)] = u
		b.found(unitKind, &u.Meta)
	}
	for i, who := range identities {
		at := place(who.Type, who.IdentityID)
		if of[at] != nil {
			continue
		}
		u := &Unit{Meta: docstore.Meta{ID: ids[i]}, Identity: who}
		if _, err := insert(ctx, b, units, unitKind, u); err != nil {
			return nil, err
		}
		if of[at], err = units.Load(ctx, b.Tx, u.Meta.ID); err != nil {
			return nil, err
		}
	}
	return of, nil
}

// addRules adds the rules that units do not have yet.
func addRules(ctx context.Context, b *batch, of map[string]*Unit, profiles []RuleProfile, ids []string) error {
	fresh := map[string]*Rule{}
	var contents []docstore.Value
	for _, at := range slices.Sorted(maps.Keys(of)) {
		for _, p := range profiles {
			rule := &Rule{Meta: docstore.Meta{ID: ids[0]}, AuthUnitID: of[at].Meta.ID, RuleProfile: p}
			content := rule.content()
			if fresh[content] == nil {
				fresh[content], ids = rule, ids[1:]
				contents = append(contents, docstore.Text(content))
			}
		}
	}
	existing, err := rules.LoadWhere(ctx, b.Tx, docstore.In("content", contents...), "", len(contents))
	if err != nil {
		return err
	}
	for _, rule := range existing {
		delete(fresh, rule.content())
		b.found(ruleKind, &rule.Meta)
	}
	more := map[string]int64{}
	for _, content := range contents {
		if rule := fresh[content.Text]; rule != nil {
			if _, err := insert(ctx, b, rules, ruleKind, rule); err != nil {
				return err
			}
			more[rule.AuthUnitID]++
		}
	}
	for _, u := range of {
		u.RuleCount += more[u.Meta.ID]
		if _, err := units.Replace(ctx, b.Tx, u); err != nil {
			return err
		}
	}
	return nil
}

// Rule returns a rule of a unit; apperr.NotFound.
func (s *Grants) Rule(ctx context.Context, unitID, id string) (RuleDoc, error) {
	doc, err := rules.Find(ctx, s.Store, id)
	if err != nil {
		return doc, err
	}
	if r, err := doc.Value(); err != nil || r.AuthUnitID != unitID {
		return RuleDoc{}, errOrMissing(err, "authorization rule")
	}
	return doc, nil
}

// ReplaceRule replaces the profile of a unit's rule. apperr.NotFound, InvalidParameters, InvalidState (see
// MaxConditions), AlreadyExists for a repeat of another rule, VersionMismatch, Forbidden (see mayGrant).
func (s *Grants) ReplaceRule(ctx context.Context, unitID, id string, profile RuleProfile) (RuleDoc, error) {
	var faults apperr.Faults
	profile.check(&faults)
	if err := faults.Err(); err != nil {
		return RuleDoc{}, err
	}
	if err := s.checkConditions(ctx, profile); err != nil {
		return RuleDoc{}, err
	}
	return write(ctx, s, func(b *batch) (RuleDoc, error) {
		r, err := rules.Load(ctx, b.Tx, id)
		if err != nil || r.AuthUnitID != unitID {
			return RuleDoc{}, errOrMissing(err, "authorization rule")
		}
		resolved := []RuleProfile{profile}
		if err := resolve(ctx, b.Tx, resolved, func(int) string { return "" }); err != nil {
			return RuleDoc{}, err
		}
		if err := mayGrant(ctx, b.Tx, resolved); err != nil {
			return RuleDoc{}, err
		}
		r.RuleProfile = resolved[0]
		return replace(ctx, b, rules, ruleKind, r)
	})
}

// RuleFilter selects rules. An empty member means any.
type RuleFilter struct {
	ApplicationID, Type, Code, Affect     string
	AuthUnitID, ResourceID, ResourceSetID string

	AllResources, AllActions string         // only for RulesReaching
	Identity                 IdentityFilter // only for Rules
}

func (f RuleFilter) where() docstore.Filter {
	return docstore.And(
		docstore.EqOrAll(byUnit, f.AuthUnitID), docstore.EqOrAll(byApplication, f.ApplicationID),
		docstore.EqOrAll(byType, f.Type), docstore.EqOrAll(byCode, f.Code), docstore.EqOrAll(byAffect, f.Affect),
		docstore.EqOrAll(byResource, f.ResourceID), docstore.EqOrAll(bySet, f.ResourceSetID),
	)
}

// maxUnits is how many units Identity of a RuleFilter can select.
const maxUnits = 1000

// Rules returns a page of rules of all units. apperr.InvalidParameters (paging, more than maxUnits identities).
func (s *Grants) Rules(ctx context.Context, f RuleFilter, p docstore.Paging) (docstore.Page[Rule], error) {
	where := f.where()
	if f.Identity != (IdentityFilter{}) {
		page, err := units.Page(ctx, s.Store, docstore.Query{Filter: f.Identity.where(), Limit: maxUnits + 1})
		if err != nil {
			return docstore.Page[Rule]{}, err
		}
		if len(page.Docs) > maxUnits {
			return docstore.Page[Rule]{}, apperr.Invalid("identity_type",
				"selects more than %d identities: narrow it by identity_id or identity_name", maxUnits)
		}
		of := make([]docstore.Value, len(page.Docs))
		for i := range page.Docs {
			of[i] = docstore.Text(page.Docs[i].ID)
		}
		where = docstore.And(docstore.In(byUnit, of...), where)
	}
	return rules.List(ctx, s.Store, where, p)
}

// RuleSelection names rules by their ids, or as the rules of a unit that match: an empty member means any.
type RuleSelection struct {
	IDs                             []string
	AuthUnitID, ApplicationID, Type string
	Codes                           []string
}

// Revoke removes rules, all or none. Missing rules are not an error. apperr.InvalidState if a selection has more than
// atOnce rules.
func (s *Grants) Revoke(ctx context.Context, sel RuleSelection) error {
	_, err := write(ctx, s, func(b *batch) (struct{}, error) {
		found, err := rules.LoadMany(ctx, b.Tx, sel.IDs)
		if err != nil {
			return struct{}{}, err
		}
		b.missing(ruleKind, missing(sel.IDs, found, func(r *Rule) string { return r.Meta.ID }))
		if sel.AuthUnitID != "" {
			where := docstore.And(docstore.EqOrAll(byUnit, sel.AuthUnitID),
				docstore.EqOrAll(byApplication, sel.ApplicationID), docstore.EqOrAll(byType, sel.Type))
			if len(sel.Codes) > 0 {
				codes := make([]docstore.Value, len(sel.Codes))
				for i, code := range sel.Codes {
					codes[i] = docstore.Text(code)
				}
				where = docstore.And(where, docstore.In(byCode, codes...))
			}
			if found, err = selectRules(ctx, b, where); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, deleteRules(ctx, b, found...)
	})
	return err
}

// removeRules removes the rules that a filter selects, at most atOnce, and returns how many.
func removeRules(ctx context.Context, b *batch, where docstore.Filter) (int, error) {
	found, err := rules.LoadWhere(ctx, b.Tx, where, "", atOnce)
	if err != nil {
		return 0, err
	}
	return len(found), deleteRules(ctx, b, found...)
}

// deleteRules deletes rules and lowers the counts of their units, unless these are deleted already.
func deleteRules(ctx context.Context, b *batch, list ...*Rule) error {
	fewer := map[string]int64{}
	for _, r := range list {
		if err := remove(ctx, b, rules, ruleKind, r); err != nil {
			return err
		}
		fewer[r.AuthUnitID]++
	}
	of, err := units.LoadMany(ctx, b.Tx, slices.Sorted(maps.Keys(fewer)))
	if err != nil {
		return err
	}
	for _, u := range of {
		u.RuleCount -= fewer[u.Meta.ID]
		if _, err := units.Replace(ctx, b.Tx, u); err != nil {
			return err
		}
	}
	return nil
}

// Withdraw removes the identities' rules of type app about the applications that have the given affect (empty: Allow),
// whatever their condition and time, all or none. Missing rules are not an error. apperr.InvalidParameters,
// InvalidState if there are more than atOnce.
func (s *Grants) Withdraw(ctx context.Context, identities []Identity, applications []string, affect string) error {
	profiles := make([]RuleProfile, len(applications))
	of := make([]docstore.Value, len(applications))
	for i, id := range applications {
		profiles[i] = RuleProfile{ApplicationID: id, Type: typeApp, Affect: affect}
		of[i] = docstore.Text(id)
	}
	if err := checkGrant(identities, profiles); err != nil {
		return err
	}
	wanted := make([]docstore.Value, len(identities))
	for i, who := range identities {
		wanted[i] = docstore.Text(place(who.Type, who.IdentityID))
	}
	_, err := write(ctx, s, func(b *batch) (struct{}, error) {
		found, err := units.LoadWhere(ctx, b.Tx, docstore.In(byIdentity, wanted...), "", len(wanted))
		if err != nil || len(found) == 0 {
			return struct{}{}, err
		}
		in := make([]docstore.Value, len(found))
		for i, u := range found {
			in[i] = docstore.Text(u.Meta.ID)
		}
		selected, err := selectRules(ctx, b, docstore.And(docstore.In(byUnit, in...), docstore.In(byApplication, of...),
			docstore.Eq(byType, docstore.Text(typeApp)), docstore.Eq(byAffect, docstore.Text(cmp.Or(affect, Allow)))))
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, deleteRules(ctx, b, selected...)
	})
	return err
}

// selectRules loads the rules that a filter selects. The error is apperr.InvalidState if there are more than atOnce.
func selectRules(ctx context.Context, b *batch, where docstore.Filter) ([]*Rule, error) {
	found, err := rules.LoadWhere(ctx, b.Tx, where, "", atOnce+1)
	if err == nil && len(found) > atOnce {
		err = apperr.New(apperr.InvalidState,
			"the selection has more than %d rules: narrow it, or delete the unit", atOnce)
	}
	return found, err
}
