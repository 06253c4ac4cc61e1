package grant

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// MaxListed is how many rules a list without pages has at most.
const MaxListed = 2000

// Listed is a rule in a list of what reaches an identity.
type Listed struct {
	Rule RuleDoc
	Unit *UnitDoc // whose it is, where that is not the unit that the list is about
}

// RulesReaching lists the rules of units, the first of which is the one that the list is about. apperr.NotFound (the
// first unit), InvalidParameters where there are more than MaxListed.
func (s *Grants) RulesReaching(ctx context.Context, unitIDs []string, f RuleFilter) ([]Listed, error) {
	if _, err := units.Find(ctx, s.Store, unitIDs[0]); err != nil {
		return nil, err
	}
	found, err := units.FindMany(ctx, s.Store, unitIDs)
	if err != nil {
		return nil, err
	}
	of := map[string]*UnitDoc{}
	for i := range found {
		of[found[i].ID] = &found[i]
	}
	list := []Listed{}
	for i, id := range unitIDs {
		f.AuthUnitID = id
		page, err := rules.Page(ctx, s.Store, docstore.Query{
			Filter: f.where(), Sort: []docstore.Order{{Index: byTimeCreated}}, Limit: MaxListed + 1 - len(list),
		})
		if err != nil {
			return nil, err
		}
		for _, doc := range page.Docs {
			rule, err := doc.Value()
			if err != nil {
				return nil, err
			}
			if f.AllResources != "" && rule.AllResources != f.AllResources || f.AllActions != "" &&
				rule.AllActions != f.AllActions {
				continue
			}
			item := Listed{Rule: doc}
			if i > 0 {
				item.Unit = of[id]
			}
			list = append(list, item)
		}
		if len(list) > MaxListed {
			return nil, apperr.New(apperr.InvalidParameters,
				"there are more than %d rules: narrow the list by application_id, type and code", MaxListed)
		}
	}
	return list, nil
}
