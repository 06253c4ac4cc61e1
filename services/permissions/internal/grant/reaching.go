package grant

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// MaxListed is how many rules are read for a list without pages.
const MaxListed = 2000

// Listed is a rule in a list of what reaches an identity.
type Listed struct {
	Rule RuleDoc
	Unit *UnitDoc // the unit that has the rule; nil if the list is about this unit
}

// RulesReaching lists the rules of units. The list is about the first of them. apperr.NotFound (the first unit),
// InvalidParameters if more than MaxListed rules must be read: AllResources and AllActions of the filter have no index.
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
	list, read := []Listed{}, 0
	for i, id := range unitIDs {
		f.AuthUnitID = id
		page, err := rules.Page(ctx, s.Store, docstore.Query{
			Filter: f.where(), Sort: []docstore.Order{{Index: byTimeCreated}}, Limit: MaxListed + 1 - read,
		})
		if err != nil {
			return nil, err
		}
		if read += len(page.Docs); read > MaxListed {
			return nil, apperr.New(apperr.InvalidParameters,
				"there are more than %d rules: narrow the list by application_id, type and code", MaxListed)
		}
		for _, doc := range page.Docs {
			rule, err := doc.Value()
			if err != nil {
				return nil, err
			}
			if f.AllResources != "" && rule.AllResources != f.AllResources ||
				f.AllActions != "" && rule.AllActions != f.AllActions {
				continue
			}
			item := Listed{Rule: doc}
			if i > 0 {
				item.Unit = of[id]
			}
			list = append(list, item)
		}
	}
	return list, nil
}
