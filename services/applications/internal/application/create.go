package application

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/applications/internal/protocol"
	"github.com/idplatform/idplatform/services/applications/internal/toggle"
)

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
	protocolID string
	secret     string // empty for an application that has none
}

// Create adds an application, with its protocol enabled and, if it can keep one, a client secret. Members that the
// request does not name come from the template, if there is one. The error is apperr.InvalidParameters with every
// fault, Forbidden (scopes that the caller lacks) or AlreadyExists.
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
		one := &plan{protocolID: ids[idsEach*i+1], Application: Application{
			Meta: docstore.Meta{ID: ids[idsEach*i]}, Profile: a.Profile, ClientID: newClientID(), Status: toggle.On,
			SSOEnabled: a.SSOEnabled, MFAEnabled: a.MFAEnabled, MultiAccountEnabled: toggle.Off,
			Secrets: []Secret{}, IDPs: []Source{},
		}}
		if a.keepsSecrets() {
			value, shown := newSecret(ids[idsEach*i+2])
			one.secret, one.Secrets = value, []Secret{shown}
		}
		plans = append(plans, one)
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

// add stores new applications with their secrets' hashes and protocols, and tells the events.
func add(ctx context.Context, tx *docstore.Tx, shown Shown, plans []*plan, at func(int) string) ([]Created, error) {
	apps, protocols := make([]*Application, len(plans)), make([]*protocol.Protocol, len(plans))
	ids := make([]string, len(plans))
	for i, p := range plans {
		a := p.Application
		a.Secrets = slices.Clone(a.Secrets)
		for j := range a.Secrets {
			a.Secrets[j].TimeCreated = tx.Now
		}
		apps[i], ids[i] = &a, a.ID
		protocols[i] = &protocol.Protocol{
			Meta: docstore.Meta{ID: p.protocolID}, AppID: a.ID, Type: a.ProtocolType, Status: toggle.On,
			Prop: a.ProtocolProp,
		}
	}
	docs, err := applications.InsertMany(ctx, tx, at, apps...)
	if err != nil {
		return nil, err
	}
	if err := secretHashes.ReadAhead(ctx, tx, ids...); err != nil {
		return nil, err
	}
	if _, err := protocol.Protocols.Collection.InsertMany(ctx, tx, at, protocols...); err != nil {
		return nil, err
	}
	all := make([]Created, len(plans))
	for i, p := range plans {
		a := apps[i]
		fresh := map[string]string{}
		for _, secret := range a.Secrets {
			fresh[secret.ID] = HashSecret(p.secret)
		}
		if err := keepHashes(ctx, tx, a, fresh); err != nil {
			return nil, err
		}
		if err := noteAdministrator(ctx, tx, a, false, a.administers()); err != nil {
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
