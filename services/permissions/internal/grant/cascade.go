package grant

import (
	"context"
	"strings"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/stream"
)

// OnDeleted handles the event that a record of this service or another one was deleted, or that a user has resigned. It
// removes all that refers to the record, in as many transactions as that takes.
func (s *Grants) OnDeleted(ctx context.Context, e stream.Event) error {
	entity, _, _ := strings.Cut(strings.TrimPrefix(e.Type, "idp."), ".")
	id := docstore.Text(e.Subject)
	switch entity {
	case "user":
		if err := s.removeAll(ctx, docstore.Eq(byUser, id), removeGroupMembers); err != nil {
			return err
		}
		return s.removeUnit(ctx, entity, e.Subject)
	case "node", "core_object":
		return s.removeUnit(ctx, entity, e.Subject)
	case "application":
		return s.removeApplication(ctx, e.Subject)
	case "resource":
		return s.removeAll(ctx, docstore.Eq(byResource, id), removeMembers, removeRules)
	case "resource_set":
		return s.removeAll(ctx, docstore.Eq(bySet, id), removeMembers, removeRules)
	case "auth_unit":
		return s.removeAll(ctx, docstore.Eq(byUnit, id), removeGroupMembers, removeRules)
	}
	return nil
}

// removeApplication removes the resources, sets, rules and unit of an application.
func (s *Grants) removeApplication(ctx context.Context, id string) error {
	of := docstore.Eq(byApplication, docstore.Text(id))
	if err := s.removeAll(ctx, of, removeRules, removeResources, removeSets); err != nil {
		return err
	}
	return s.removeUnit(ctx, "application", id)
}

// removeUnit removes the unit of an identity.
func (s *Grants) removeUnit(ctx context.Context, identityType, id string) error {
	return s.removeAll(ctx, docstore.Eq(byIdentity, docstore.Text(place(identityType, id))), removeUnits)
}

// removal removes some of the records that a filter selects, and returns how many.
type removal func(context.Context, *batch, docstore.Filter) (int, error)

// removeAll calls each removal in one transaction after the other until no selected records are left.
func (s *Grants) removeAll(ctx context.Context, where docstore.Filter, removals ...removal) error {
	for _, remove := range removals {
		for {
			n, err := write(ctx, s, func(b *batch) (int, error) { return remove(ctx, b, where) })
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
		}
	}
	return nil
}

// fewAtOnce is how many units, resources or sets are removed in one transaction: other records are removed with each of
// them.
const fewAtOnce = 10

func removeUnits(ctx context.Context, b *batch, where docstore.Filter) (int, error) {
	found, err := units.LoadWhere(ctx, b.Tx, where, "", fewAtOnce)
	if err != nil {
		return 0, err
	}
	for _, u := range found {
		if err := deleteUnit(ctx, b, u); err != nil {
			return 0, err
		}
	}
	return len(found), nil
}

func removeResources(ctx context.Context, b *batch, where docstore.Filter) (int, error) {
	found, err := resources.LoadWhere(ctx, b.Tx, where, "", fewAtOnce)
	if err != nil {
		return 0, err
	}
	return len(found), deleteResources(ctx, b, found...)
}

func removeSets(ctx context.Context, b *batch, where docstore.Filter) (int, error) {
	found, err := sets.LoadWhere(ctx, b.Tx, where, "", fewAtOnce)
	if err != nil {
		return 0, err
	}
	for _, set := range found {
		if err := deleteSet(ctx, b, set); err != nil {
			return 0, err
		}
	}
	return len(found), nil
}

// CountOf counts the rules of an identity, without inherited ones.
func (s *Grants) CountOf(ctx context.Context, kind, id string) (int64, error) {
	found, err := units.Page(ctx, s.Store,
		docstore.Query{Filter: docstore.Eq(byIdentity, docstore.Text(place(kind, id))), Limit: 1})
	if err != nil || len(found.Docs) == 0 {
		return 0, err
	}
	u, err := found.Docs[0].Value()
	if err != nil {
		return 0, err
	}
	return u.RuleCount, nil
}
