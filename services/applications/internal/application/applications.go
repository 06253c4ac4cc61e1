package application

import (
	"context"
	"errors"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/picture"
	"github.com/idplatform/idplatform/services/applications/internal/protocol"
	"github.com/idplatform/idplatform/services/applications/internal/template"
	"github.com/idplatform/idplatform/services/questions"
)

// Deps are what Applications need. All are required.
type Deps struct {
	Store     *docstore.Store
	Bus       *bus.Bus // for questions about grants and connections
	Rules     Rules
	Templates *template.Catalogue
	Pictures  *picture.Decoder

	// OnEnd is called in the transaction of every change that ends the application's tokens: it is disabled or deleted,
	// its secrets are refreshed, or it loses scopes, keys or its category.
	OnEnd func(ctx context.Context, tx *docstore.Tx, a *Application) error
	// OnDelete deletes what belongs to an application elsewhere in this service, in the transaction that deletes the
	// application.
	OnDelete func(ctx context.Context, tx *docstore.Tx, id string) error
	// HaveSeveral counts the users who have several sub-accounts of an application.
	HaveSeveral func(ctx context.Context, tx *docstore.Tx, id string) (int64, error)
}

// Applications are the use cases.
type Applications struct {
	Deps
	gallery *picture.Gallery
}

// New makes the use cases.
func New(d Deps) *Applications {
	return &Applications{d, picture.NewGallery(logos, d.Store, d.Pictures)}
}

// Collections are the collections that the store must have.
func Collections() []*docstore.Def {
	return append(logos.Defs(), applications.Def(), secretHashes.Def(), protocol.Protocols.Def(),
		administratorLists.Def(), goneConnections.Def())
}

// Edit applies a request to an application: it changes the members that the request names.
type Edit = func(*Application) error

// Shown says whether the caller may see the new secret.
type Shown bool

// Get returns an application. The error is apperr.NotFound.
func (s *Applications) Get(ctx context.Context, id string) (Doc, error) {
	return applications.Find(ctx, s.Store, id)
}

// Update applies edit to an application. The error is apperr.NotFound, InvalidParameters, Forbidden (scopes that the
// caller lacks), AlreadyExists or VersionMismatch.
func (s *Applications) Update(ctx context.Context, id string, edit Edit) (Doc, error) {
	protocolID, err := s.Store.NewID(ctx)
	if err != nil {
		return Doc{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		a, err := load(ctx, tx, id)
		if err != nil {
			return Doc{}, err
		}
		proposal := *a
		if err := edit(&proposal); err != nil {
			return Doc{}, err
		}
		if proposal.ProtocolType != a.ProtocolType && slices.Contains(protocol.Types, proposal.ProtocolType) {
			// The request changes the settings of the other protocol.
			other := *a
			if other.ProtocolProp, err = propOf(ctx, tx, a.ID, proposal.ProtocolType); err != nil {
				return Doc{}, err
			}
			proposal = other
			if err := edit(&proposal); err != nil {
				return Doc{}, err
			}
		}
		return s.propose(ctx, tx, a, &proposal, protocolID)
	})
}

// propose replaces an application by a proposal, if that is valid.
func (s *Applications) propose(
	ctx context.Context, tx *docstore.Tx, a, proposal *Application, protocolID string,
) (Doc, error) {
	var faults apperr.Faults
	// Without a change the template is not needed: it may have left the catalogue.
	if string(proposal.TemplateParams.Params) != string(a.TemplateParams.Params) {
		if t, ok := s.checkParams(&faults, &proposal.Profile); ok {
			proposal.refill(&faults, t, a.TemplateParams.Params)
		}
	}
	proposal.syncSwitches(&faults, a)
	faults.Check(proposal.Status == a.Status, "status", "is changed by enable and disable only")
	faults.Check(proposal.MultiAccountEnabled == a.MultiAccountEnabled, "multi_account_enabled",
		"is changed by its own operations only")
	faults.Check(proposal.TemplateID == a.TemplateID, "template_id", "can't be changed")
	faults.Check(proposal.Type == a.Type, "type", "can't be changed")
	proposal.check(&faults, a.TenantID, s.Rules)
	faults.Check(proposal.TemplateParams.Version == a.TemplateParams.Version, "template_params.version",
		"can't be changed")
	changed, err := s.putMain(ctx, tx, &faults, proposal, protocolID)
	if err != nil {
		return Doc{}, err
	}
	if err := faults.Err(); err != nil {
		return Doc{}, err
	}
	if err := mayHold(ctx, proposal.Scopes); err != nil {
		return Doc{}, err
	}
	if err := noteAdministrator(ctx, tx, a, a.administers(), proposal.administers()); err != nil {
		return Doc{}, err
	}
	if a.Logo != proposal.Logo {
		if err := dropLogo(ctx, tx, a); err != nil {
			return Doc{}, err
		}
	}
	ends := a.narrowed(&proposal.Profile)
	a.Profile, a.SSOEnabled, a.MFAEnabled = proposal.Profile, proposal.SSOEnabled, proposal.MFAEnabled
	store := applications.Replace
	if changed { // which the record does not show
		store = applications.Touch
	}
	doc, err := store(ctx, tx, a)
	if err == nil && ends {
		err = s.OnEnd(ctx, tx, a)
	}
	return doc, err
}

// narrowed reports whether a change takes from the application scopes, keys or the category that its tokens depend on.
func (a *Application) narrowed(to *Profile) bool {
	lost := func(scope string) bool { return !slices.Contains(to.Scopes, scope) }
	return slices.ContainsFunc(a.Scopes, lost) || string(a.JWKS) != string(to.JWKS) || a.JWKSURI != to.JWKSURI ||
		a.Category == BackendService && to.Category != BackendService
}

// Delete deletes an application with everything that belongs to it in this service; other services delete theirs on
// application.deleted. It asks the permissions service. The error is apperr.NotFound, VersionMismatch, Forbidden
// (scopes that the caller lacks), InUse (other applications' rules grant its resources or sets, or nobody else
// administers the platform) or Unavailable.
func (s *Applications) Delete(ctx context.Context, id string) (docstore.Deleted, error) {
	// Everything that can be refused here is refused before the other service is asked.
	if err := docstore.Do(docstore.WithDryRun(docstore.WithoutCommitHook(ctx)), s.Store, func(tx *docstore.Tx) error {
		a, err := load(ctx, tx, id)
		if err != nil {
			return err
		}
		return noteAdministrator(ctx, tx, a, a.administers(), false)
	}); err != nil {
		return docstore.Deleted{}, err
	}
	grants, err := questions.GrantsOfApplication.Ask(ctx, s.Bus, questions.ApplicationID{ID: id})
	if err != nil {
		return docstore.Deleted{}, err
	}
	if err := apperr.InUseBy("other applications grant its resources or resource sets",
		apperr.Use{What: "auth_rules", Count: grants.Count}); err != nil {
		return docstore.Deleted{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (docstore.Deleted, error) {
		a, err := load(ctx, tx, id)
		if err != nil {
			return docstore.Deleted{}, err
		}
		if _, err := applications.Delete(ctx, tx, a); err != nil {
			return docstore.Deleted{}, err
		}
		a.Version++ // stands for the deletion: OnEnd ends the tokens of earlier versions
		return docstore.Deleted{ID: id}, errors.Join(
			noteAdministrator(ctx, tx, a, a.administers(), false),
			secretHashes.DeleteWhere(ctx, tx, docstore.ID(id), nil),
			protocol.Protocols.Collection.DeleteWhere(ctx, tx, protocol.OfApplication(id), nil),
			dropLogo(ctx, tx, a),
			s.OnEnd(ctx, tx, a), s.OnDelete(ctx, tx, id),
		)
	})
}

// load returns an application to be changed, without expired secrets. The error is apperr.NotFound, VersionMismatch or
// Forbidden (it has scopes that the caller lacks): nobody changes, disables or deletes what he could not have made.
func load(ctx context.Context, tx *docstore.Tx, id string) (*Application, error) {
	a, err := applications.Load(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	if err := mayHold(ctx, a.Scopes); err != nil {
		return nil, err
	}
	if !a.removeExpiredSecrets(tx.Now) {
		return a, nil
	}
	return a, keepHashes(ctx, tx, a, nil)
}

// Find returns an application for another package of this service; the transaction depends on it. The error is
// apperr.NotFound.
func Find(ctx context.Context, r docstore.Reader, id string) (*Application, error) {
	doc, err := applications.Find(ctx, r, id)
	if err != nil {
		return nil, err
	}
	return doc.Value()
}
