package component

import (
	"context"
	"strconv"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/textindex"
)

// Components are the use cases.
type Components struct {
	store  *docstore.Store
	checks *fair.Semaphore
}

// New makes the use cases.
func New(store *docstore.Store) *Components {
	return &Components{store, fair.NewSemaphore("checks of components", 2, 64)}
}

// check checks a draft, a few at a time. The error is that of the draft, or apperr.Unavailable.
func (s *Components) check(ctx context.Context, d *Draft) (err error) {
	busy := s.checks.Do(ctx, 1, func() { err = d.check() })
	if busy != nil {
		return busy
	}
	return err
}

// Filter selects components whose members are equal to its own. Empty members select all.
type Filter struct {
	Code   string `query:"code" maxLength:"64"`
	Type   string `query:"type" maxLength:"64"`
	Status string `query:"status" enum:"1,0"`
	textindex.Search
	docstore.Paging
}

// List returns a page of components.
func (s *Components) List(ctx context.Context, f Filter) (docstore.Page[Component], error) {
	where := docstore.And(docstore.EqOrAll(byCode, f.Code), docstore.EqOrAll(byType, f.Type),
		docstore.EqOrAll(byStatus, f.Status), textindex.HavingPart(f.Keyword))
	return components.List(ctx, s.store, where, f.Paging)
}

// Get returns a component. The error is apperr.NotFound.
func (s *Components) Get(ctx context.Context, id string) (Doc, error) {
	return components.Find(ctx, s.store, id)
}

// Create adds a component. The error is apperr.InvalidParameters, AlreadyExists, Unavailable, or InvalidState if the
// tenant has too many components.
func (s *Components) Create(ctx context.Context, d Draft) (Doc, error) {
	if err := s.check(ctx, &d); err != nil {
		return Doc{}, err
	}
	id, err := s.store.NewID(ctx)
	if err != nil {
		return Doc{}, err
	}
	return docstore.Write(ctx, s.store, func(tx *docstore.Tx) (Doc, error) {
		err := components.CheckLimit(ctx, tx, docstore.Filter{}, maxComponents, "a tenant has at most %d components")
		if err != nil {
			return Doc{}, err
		}
		return components.Insert(ctx, tx, &Component{
			Meta: docstore.Meta{ID: id}, Profile: d.Profile, Status: d.Status,
		})
	})
}

// Update applies edit to a component. The error is apperr.NotFound, InvalidParameters, AlreadyExists, VersionMismatch
// or Unavailable, or that of edit. It calls edit twice: the draft is checked before the transaction, because that can
// take a second, and again in it only if the component has changed in between.
func (s *Components) Update(ctx context.Context, id string, edit func(*Draft) error) (Doc, error) {
	doc, err := s.Get(ctx, id)
	if err != nil {
		return Doc{}, err
	}
	before, err := doc.Value()
	if err != nil {
		return Doc{}, err
	}
	checked := Draft{before.Profile, before.Status}
	if err := edit(&checked); err != nil {
		return Doc{}, err
	}
	if err := s.check(ctx, &checked); err != nil {
		return Doc{}, err
	}
	return components.Edit(ctx, s.store, id, func(_ *docstore.Tx, c *Component) error {
		draft := Draft{c.Profile, c.Status}
		if err := edit(&draft); err != nil {
			return err
		}
		draft.complete()
		if !draft.same(&checked.Profile) || draft.Status != checked.Status {
			if err := draft.check(); err != nil {
				return err
			}
		}
		c.Profile, c.Status = draft.Profile, draft.Status
		return nil
	})
}

// Publish makes the next version of a component, unless nothing that is published has changed since the last. The error
// is apperr.NotFound or VersionMismatch.
func (s *Components) Publish(ctx context.Context, id string) (Doc, error) {
	return components.As("published").Edit(ctx, s.store, id, func(tx *docstore.Tx, c *Component) error {
		last, err := versions.LoadMany(ctx, tx, []string{versionID(id, c.ComponentVersion)})
		if err != nil || len(last) > 0 && last[0].same(&c.Profile) {
			return err
		}
		c.ComponentVersion++
		c.TimePublished = tx.Now
		v := &Version{
			Meta: docstore.Meta{ID: versionID(id, c.ComponentVersion)}, ComponentID: id,
			ComponentVersion: c.ComponentVersion, Profile: c.Profile,
		}
		if _, err := versions.Insert(ctx, tx, v); err != nil {
			return err
		}
		outdated := docstore.ID(versionID(id, c.ComponentVersion-maxVersions))
		return versions.DeleteWhere(ctx, tx, outdated, nil)
	})
}

func versionID(component string, version int64) string {
	return component + "." + strconv.FormatInt(version, 10)
}

// Delete deletes a component with its versions. The error is apperr.NotFound or VersionMismatch.
func (s *Components) Delete(ctx context.Context, id string) (docstore.Deleted, error) {
	return components.Remove(ctx, s.store, id, func(tx *docstore.Tx, _ *Component) error {
		return versions.DeleteWhere(ctx, tx, docstore.Eq(byComponent, docstore.Text(id)), nil)
	})
}

// VersionFilter selects the versions of a component.
type VersionFilter struct {
	ComponentID string `path:"id" maxLength:"64" doc:"The record's id" example:"1048577"`
	docstore.Paging
}

// Versions returns a page of a component's versions. The error is apperr.NotFound.
func (s *Components) Versions(ctx context.Context, f VersionFilter) (docstore.Page[Version], error) {
	if _, err := s.Get(ctx, f.ComponentID); err != nil {
		return docstore.Page[Version]{}, err
	}
	return versions.List(ctx, s.store, docstore.Eq(byComponent, docstore.Text(f.ComponentID)), f.Paging)
}

// Version returns a version of a component. The error is apperr.NotFound.
func (s *Components) Version(ctx context.Context, id string, version int64) (docstore.Doc[Version], error) {
	return versions.Find(ctx, s.store, versionID(id, version))
}
