package application

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/picture"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/applications/internal/protocol"
	"github.com/idplatform/idplatform/services/applications/internal/template"
	"github.com/idplatform/idplatform/services/applications/internal/toggle"
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

// Created is a new application with its client secret. The secret is shown only in the answer to this request, and only
// to callers that may see it.
type Created struct {
	Doc
	secret string
}

// Stored is the record with the member client_secret added at its end.
func (c Created) Stored() (body []byte, tag string, err error) {
	body, tag, err = c.Doc.Stored()
	if err != nil || c.secret == "" {
		return body, tag, err
	}
	member := strconv.Quote(c.secret) // its characters need no escapes
	return slices.Concat(body[:len(body)-1], []byte(`,"client_secret":`+member+"}")), tag, nil
}

// plan is an application to be created, with everything that is slow or random done before the transaction.
type plan struct {
	Application
	protocolID, secret string
}

// Create adds an application, with its protocol enabled and a client secret. Members that the request does not name
// come from the template, if there is one. The error is apperr.InvalidParameters with every fault, Forbidden (scopes
// that the caller lacks) or AlreadyExists.
func (s *Applications) Create(ctx context.Context, shown Shown, edit Edit) (Created, error) {
	var faults apperr.Faults
	plans, err := s.plan(ctx, &faults, func(int) string { return "" }, []Edit{edit})
	if err != nil {
		return Created{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Created, error) {
		all, err := add(ctx, tx, shown, plans, func(int) string { return "" })
		if err != nil {
			return Created{}, err
		}
		return all[0], nil
	})
}

// CreateMany is Create for several applications, all or none. Faults are located at items[n].
func (s *Applications) CreateMany(ctx context.Context, shown Shown, edits []Edit) (docstore.Batch, error) {
	at := func(i int) string { return apperr.Item("items", i) }
	var faults apperr.Faults
	plans, err := s.plan(ctx, &faults, at, edits)
	if err != nil {
		return docstore.Batch{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (docstore.Batch, error) {
		all, err := add(ctx, tx, shown, plans, at)
		if err != nil {
			return docstore.Batch{}, err
		}
		return docstore.BatchOf(all)
	})
}

// Shown says whether the caller may see the new secret.
type Shown bool

// plan checks new applications, and does what is slow or random.
func (s *Applications) plan(
	ctx context.Context, faults *apperr.Faults, at func(int) string, edits []Edit,
) ([]*plan, error) {
	const idsEach = 3 // for the application, its protocol and its secret
	ids, err := s.Store.NewIDs(ctx, idsEach*len(edits))
	if err != nil {
		return nil, err
	}
	var plans []*plan
	var scopes []string
	for i, edit := range edits {
		a := s.draft(ctx, faults.Within(at(i)), edit)
		value, shown := newSecret(ids[idsEach*i+2])
		plans = append(plans, &plan{protocolID: ids[idsEach*i+1], secret: value, Application: Application{
			Meta: docstore.Meta{ID: ids[idsEach*i]}, Profile: a.Profile, ClientID: newClientID(), Status: toggle.On,
			SSOEnabled: a.SSOEnabled, MFAEnabled: a.MFAEnabled, MultiAccountEnabled: toggle.Off,
			Secrets: []Secret{shown}, IDPs: []Source{},
		}})
		scopes = append(scopes, a.Scopes...)
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return plans, mayHold(ctx, scopes)
}

// draft returns the application that a request describes, and reports every fault.
func (s *Applications) draft(ctx context.Context, faults *apperr.Faults, edit Edit) Application {
	var a Application
	if err := edit(&a); err != nil {
		faults.Add("", "has a member of the wrong type")
		return a
	}
	if a.TemplateID != "" {
		if base, ok := s.fromTemplate(faults, &a); ok {
			a = Application{Profile: base}
			_ = edit(&a) // succeeded above
			a.TemplateParams.Version = base.TemplateParams.Version
		}
	}
	faults.Check(a.TemplateID != "" || a.TemplateParams.IsZero(), "template_params", "needs a template")
	faults.Check(a.Type != FromTemplate || a.TemplateID != "", "template_id", "is needed for type 2")
	faults.Check(a.Type != SelfBuilt || a.TemplateID == "", "type", "must be 2 for an application made from a template")
	faults.Check(a.Status == "" || a.Status == toggle.On, "status", "is changed by enable and disable only")
	faults.Check(a.MultiAccountEnabled == "" || a.MultiAccountEnabled == toggle.Off, "multi_account_enabled",
		"is changed by its own operations only")
	a.syncSwitches(faults, &Application{})
	a.check(faults, request.Tenant(ctx), s.Rules)
	if a.ProtocolProp.IsZero() {
		a.ProtocolProp = protocol.Default(a.ProtocolType)
	}
	a.ProtocolProp.Check(faults.Within("protocol_prop"), a.ProtocolType, s.Rules.protocol(), protocol.Prop{}, noSecret)
	return a
}

// add stores new applications with their secrets' hashes and protocols, and emits the events.
func add(ctx context.Context, tx *docstore.Tx, shown Shown, plans []*plan, at func(int) string) ([]Created, error) {
	apps := make([]*Application, len(plans))
	for i, p := range plans {
		a := p.Application
		a.Secrets = slices.Clone(a.Secrets)
		a.Secrets[0].TimeCreated = tx.Now
		apps[i] = &a
	}
	docs, err := applications.InsertMany(ctx, tx, at, apps...)
	if err != nil {
		return nil, err
	}
	all := make([]Created, len(plans))
	for i, p := range plans {
		a := apps[i]
		if err := keepHashes(ctx, tx, a, map[string]string{a.Secrets[0].ID: HashSecret(p.secret)}); err != nil {
			return nil, err
		}
		if _, err := protocol.Protocols.Insert(ctx, tx, &protocol.Protocol{
			Meta: docstore.Meta{ID: p.protocolID}, AppID: a.ID, Type: a.ProtocolType, Status: toggle.On,
			Prop: a.ProtocolProp,
		}); err != nil {
			return nil, err
		}
		if err := noteAdministrator(ctx, tx, a, false, a.administers()); err != nil {
			return nil, err
		}
		if err := emit(ctx, tx, "created", &docs[i]); err != nil {
			return nil, err
		}
		if all[i] = (Created{Doc: docs[i]}); shown {
			all[i].secret = p.secret
		}
	}
	return all, nil
}

// newClientID makes a client id of 26 letters and digits: 130 random bits, so that it is unique over all tenants.
func newClientID() string { return strings.ToLower(rand.Text()) }

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
	store := change
	if changed {
		store = touch
	}
	doc, err := store(ctx, tx, a, "updated")
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
	if err := docstore.Do(docstore.WithDryRun(docstore.Aside(ctx)), s.Store, func(tx *docstore.Tx) error {
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
		doc, err := applications.Delete(ctx, tx, a)
		if err != nil {
			return docstore.Deleted{}, err
		}
		a.Version++ // stands for the deletion: OnEnd ends the tokens of earlier versions
		return docstore.Deleted{ID: id}, errors.Join(
			noteAdministrator(ctx, tx, a, a.administers(), false),
			secretHashes.DeleteWhere(ctx, tx, docstore.ID(id), nil),
			protocol.Protocols.DeleteWhere(ctx, tx, protocol.OfApplication(id), nil),
			dropLogo(ctx, tx, a), emit(ctx, tx, "deleted", &doc),
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
	if !a.settle(tx.Now) {
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

// change stores a changed application and emits the event; an unchanged one is left alone.
func change(ctx context.Context, tx *docstore.Tx, a *Application, action string) (Doc, error) {
	doc, err := applications.Replace(ctx, tx, a)
	if err != nil || !doc.Changed() {
		return doc, err
	}
	return doc, emit(ctx, tx, action, &doc)
}

// touch is change for a change that the record does not show: of a secret or a picture.
func touch(ctx context.Context, tx *docstore.Tx, a *Application, action string) (Doc, error) {
	doc, err := applications.Touch(ctx, tx, a)
	if err != nil {
		return Doc{}, err
	}
	return doc, emit(ctx, tx, action, &doc)
}

func emit(ctx context.Context, tx *docstore.Tx, action string, doc *Doc) error {
	return outbox.Tell(ctx, tx, outbox.Kind{Entity: "application", Source: "/applications"}, action, doc, nil)
}
