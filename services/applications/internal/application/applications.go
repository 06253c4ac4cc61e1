package application

import (
	"context"
	"crypto/rand"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
)

// Deps are what Applications work with.
type Deps struct {
	Store *docstore.Store
	Rules Rules
}

// Applications are the use cases.
type Applications struct{ Deps }

// New makes the use cases.
func New(d Deps) *Applications { return &Applications{d} }

// Collections are those that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{applications.Def()} }

// Doc is an application as read or written.
type Doc = docstore.Doc[Application]

// Create adds an application. apperr.InvalidParameters with every fault, AlreadyExists naming the taken member.
func (s *Applications) Create(ctx context.Context, draft Application) (Doc, error) {
	var faults apperr.Faults
	draft.normalize()
	draft.check(&faults, s.Rules)
	if err := faults.Err(); err != nil {
		return Doc{}, err
	}
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return Doc{}, err
	}
	clientID := newClientID()
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		a := Application{
			Meta: docstore.Meta{ID: id}, Profile: draft.Profile, ClientID: clientID, Status: On, MultiAccountEnabled: Off,
			SSOEnabled: draft.ConfigProp.SSOEnabled, MFAEnabled: draft.ConfigProp.MFAEnabled,
			Secrets: []Secret{}, IDPs: []Source{},
		}
		doc, err := applications.Insert(ctx, tx, &a)
		if err != nil {
			return Doc{}, err
		}
		return doc, emit(ctx, tx, "created", &doc)
	})
}

// newClientID makes a client id: 26 letters and digits, 128 random bits, so that it is one of a kind in all tenants.
func newClientID() string { return strings.ToLower(rand.Text()) }

// Get returns an application; apperr.NotFound.
func (s *Applications) Get(ctx context.Context, id string) (Doc, error) {
	return applications.Find(ctx, s.Store, id)
}

// List returns a page of applications. apperr.InvalidParameters (paging).
func (s *Applications) List(ctx context.Context, p docstore.Paging) (docstore.Page[Application], error) {
	return applications.List(ctx, s.Store, docstore.Filter{}, p)
}

// Update changes what edit changes of the profile. apperr.NotFound, InvalidParameters, AlreadyExists, VersionMismatch.
func (s *Applications) Update(ctx context.Context, id string, edit func(*Application) error) (Doc, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		a, err := applications.Load(ctx, tx, id)
		if err != nil {
			return Doc{}, err
		}
		proposal := *a
		if err := edit(&proposal); err != nil {
			return Doc{}, err
		}
		var faults apperr.Faults
		proposal.normalize()
		proposal.check(&faults, s.Rules)
		if err := faults.Err(); err != nil {
			return Doc{}, err
		}
		a.Profile = proposal.Profile
		return replace(ctx, tx, a, "updated")
	})
}

// Delete removes an application with all that belongs to it here. apperr.NotFound, VersionMismatch.
func (s *Applications) Delete(ctx context.Context, id string) (docstore.Deleted, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (docstore.Deleted, error) {
		a, err := applications.Load(ctx, tx, id)
		if err != nil {
			return docstore.Deleted{}, err
		}
		doc, err := applications.Delete(ctx, tx, a)
		if err != nil {
			return docstore.Deleted{}, err
		}
		return docstore.Deleted{ID: id}, emit(ctx, tx, "deleted", &doc)
	})
}

// replace stores a changed application and tells of it; an unchanged one is left alone.
func replace(ctx context.Context, tx *docstore.Tx, a *Application, action string) (Doc, error) {
	doc, err := applications.Replace(ctx, tx, a)
	if err != nil || !doc.Changed() {
		return doc, err
	}
	return doc, emit(ctx, tx, action, &doc)
}

func emit(ctx context.Context, tx *docstore.Tx, action string, doc *Doc) error {
	return outbox.Tell(ctx, tx, outbox.Kind{Entity: "application", Source: "/applications"}, action, doc, nil)
}
