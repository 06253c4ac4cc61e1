package grant

import (
	"context"
	"strings"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// OnDeleted removes what refers to a record that is gone, of this service or of another. It takes many transactions
// where there is much.
func (s *Grants) OnDeleted(ctx context.Context, e bus.Event) error {
	entity, _, _ := strings.Cut(strings.TrimPrefix(e.Type, "idp."), ".")
	id := docstore.Text(e.Subject)
	switch entity {
	case "user":
		if err := s.removeAll(ctx, removeGroupMembers, docstore.Eq(byUser, id)); err != nil {
			return err
		}
		return s.removeAll(ctx, removeUnits, docstore.Eq(byIdentity, docstore.Text(place("user", e.Subject))))
	case "node", "core_object":
		return s.removeAll(ctx, removeUnits, docstore.Eq(byIdentity, docstore.Text(place(entity, e.Subject))))
	case "application":
		return s.removeApplication(ctx, e.Subject)
	case "resource":
		if err := s.removeAll(ctx, removeMembers, docstore.Eq(byResource, id)); err != nil {
			return err
		}
		return s.removeAll(ctx, removeRules, docstore.Eq(byResource, id))
	case "resource_set":
		if err := s.removeAll(ctx, removeMembers, docstore.Eq(bySet, id)); err != nil {
			return err
		}
		return s.removeAll(ctx, removeRules, docstore.Eq(bySet, id))
	case "auth_unit":
		if err := s.removeAll(ctx, removeGroupMembers, docstore.Eq(byUnit, id)); err != nil {
			return err
		}
		return s.removeAll(ctx, removeRules, docstore.Eq(byUnit, id))
	}
	return nil
}

// removeApplication removes the resources, sets, rules and unit of an application.
func (s *Grants) removeApplication(ctx context.Context, id string) error {
	of := docstore.Eq(byApplication, docstore.Text(id))
	for _, remove := range []func(context.Context, *batch, docstore.Filter) (int, error){removeRules, removeResources,
		removeSets} {
		if err := s.removeAll(ctx, remove, of); err != nil {
			return err
		}
	}
	return s.removeAll(ctx, removeUnits, docstore.Eq(byIdentity, docstore.Text(place("application", id))))
}

// removeAll calls remove, in a transaction each time, until nothing is left.
func (s *Grants) removeAll(
	ctx context.Context, remove func(context.Context, *batch, docstore.Filter) (int, error), where docstore.Filter,
) error {
	for {
		n, err := write(ctx, s, func(b *batch) (int, error) { return remove(ctx, b, where) })
		if err != nil || n == 0 {
			return err
		}
	}
}

// fewAtOnce is how many records are removed in one transaction if other records are removed with each of them.
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

// CountByOthers tells how many rules of other applications grant an application's global resources or sets.
func (s *Grants) CountByOthers(ctx context.Context, applicationID string) (int64, error) {
	var n int64
	global := docstore.And(docstore.Eq(byApplication, docstore.Text(applicationID)),
		docstore.Eq(byGlobal, docstore.Text(On)))
	count := func(index, id string) error {
		all, err := rules.Count(ctx, s.Store, docstore.Eq(index, docstore.Text(id)))
		if err != nil || all == 0 {
			return err
		}
		own, err := rules.Count(ctx, s.Store, docstore.And(docstore.Eq(index, docstore.Text(id)),
			docstore.Eq(byApplication, docstore.Text(applicationID))))
		n += all - own
		return err
	}
	err := resources.Each(ctx, s.Store, global, func(doc ResourceDoc) error { return count(byResource, doc.ID) })
	if err != nil {
		return 0, err
	}
	err = sets.Each(ctx, s.Store, global, func(doc SetDoc) error { return count(bySet, doc.ID) })
	return n, err
}
