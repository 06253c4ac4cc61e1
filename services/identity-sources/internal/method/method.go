// Package method is the domain of authentication methods, the ways in which people prove who they are, and of
// authentication templates, the steps of a login with these methods.
package method

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/identity-sources/internal/connection"
)

// The values of on/off members.
const (
	On  = "1"
	Off = "0"
)

// Types are the kinds of authentication method.
var Types = []string{"password", "sms", "mail", "otp", "webauthn", "social", "enterprise"}

const (
	maxName        = 128 // characters
	maxConnections = 50
	maxPolicy      = 16 << 10 // bytes
)

// Method is an authentication method record. It has the same JSON form in the API, in events and in the store.
type Method struct {
	docstore.Meta
	Profile
	Status string `json:"status" readOnly:"true" enum:"1,0" doc:"Changed by enable and disable"`
}

// Profile holds the members that clients can set.
type Profile struct {
	Code          string          `json:"code" required:"true" doc:"1…64 letters, digits or . _ -; unique" example:"pwd"`
	Name          string          `json:"name" required:"true" doc:"1…128 characters" example:"Password"`
	Type          string          `json:"type" required:"true" enum:"password,sms,mail,otp,webauthn,social,enterprise" doc:"What people do"`
	ConnectionIDs []string        `json:"connection_ids" doc:"The connections that it uses"`
	Factor        string          `json:"factor" enum:"1,2" doc:"1: may begin a login, 2: begins none, such as a passkey that is only asked for after a password"`
	Policy        json.RawMessage `json:"policy" doc:"As the schema of the type says (GET /v1/auth-methods/schemas); up to 16 KiB"`
}

const (
	byCode         = "code"
	byName         = "name"
	byType         = "type"
	byStatus       = "status"
	byConnection   = "connection"
	byMethod       = "method"
	byDefault      = "default"
	byTimeCreated  = "time_created"
	byTimeModified = "time_modified"
)

var methods = outbox.Define("auth_method", "/auth-methods", docstore.Schema[Method]{
	Name: "auth_methods", Noun: "authentication method",
	Sortable: []string{byTimeCreated, byCode, byName, byTimeModified},
	Indexes: slices.Concat([]docstore.Index[Method]{
		docstore.Unique(docstore.ByText(byCode, func(m *Method) string { return m.Code }), "code"),
		docstore.ByText(byName, func(m *Method) string { return textindex.Key(m.Name) }),
		docstore.ByText(byType, func(m *Method) string { return m.Type }),
		docstore.ByText(byStatus, func(m *Method) string { return m.Status }),
		docstore.ByList(byConnection, func(m *Method) []string { return m.ConnectionIDs }),
		docstore.ByNumber(byTimeCreated, func(m *Method) docstore.Value { return docstore.Moment(m.TimeCreated) }),
		docstore.ByNumber(byTimeModified, func(m *Method) docstore.Value { return docstore.Moment(m.TimeModified) }),
	}, textindex.KeywordIndexes(func(m *Method) []string { return []string{m.Name, m.Code} })),
})

// check sets defaults and reports every fault.
func (p *Profile) check(faults *apperr.Faults) {
	faults.Code("code", p.Code)
	faults.Name("name", p.Name, maxName)
	faults.Check(slices.Contains(Types, p.Type), "type", "must be a type of authentication method")
	if p.Factor == "" {
		p.Factor = "1"
	}
	faults.Check(p.Factor == "1" || p.Factor == "2", "factor", `must be "1" or "2"`)
	if p.ConnectionIDs == nil {
		p.ConnectionIDs = []string{}
	}
	faults.Check(len(p.ConnectionIDs) <= maxConnections, "connection_ids", "must have at most %d items", maxConnections)
	distinct(faults, "connection_ids", p.ConnectionIDs, maxConnections)
	p.checkPolicy(faults)
}

// distinct reports a fault at each repeated entry of a list that is not too long.
func distinct(faults *apperr.Faults, list string, entries []string, most int) {
	if len(entries) > most {
		return
	}
	for i, entry := range entries {
		faults.Check(!slices.Contains(entries[:i], entry), apperr.Item(list, i), "is given twice")
	}
}

// Methods are the use cases of authentication methods.
type Methods struct {
	store *docstore.Store
	bus   *bus.Bus
}

// New makes the use cases of methods and of templates.
func New(store *docstore.Store, b *bus.Bus) (*Methods, *Templates) {
	return &Methods{store, b}, &Templates{store}
}

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{methods.Def(), templates.Def()} }

// Doc is a method as read or written.
type Doc = docstore.Doc[Method]

// Filter selects methods by equal members; empty members are ignored.
type Filter struct {
	Code   string `query:"code" maxLength:"64"`
	Type   string `query:"type" enum:"password,sms,mail,otp,webauthn,social,enterprise"`
	Status string `query:"status" enum:"1,0"`
	textindex.Search
	docstore.Paging
}

// List returns a page of methods. The error is apperr.InvalidParameters (paging).
func (s *Methods) List(ctx context.Context, f Filter) (docstore.Page[Method], error) {
	where := docstore.And(docstore.EqOrAll(byCode, f.Code), docstore.EqOrAll(byType, f.Type),
		docstore.EqOrAll(byStatus, f.Status), textindex.HavingPart(f.Keyword))
	return methods.List(ctx, s.store, where, f.Paging)
}

// Get returns a method. The error is apperr.NotFound.
func (s *Methods) Get(ctx context.Context, id string) (Doc, error) {
	return methods.Find(ctx, s.store, id)
}

// Create adds a method, enabled. The error is apperr.InvalidParameters, AlreadyExists or Unavailable.
func (s *Methods) Create(ctx context.Context, draft Profile) (Doc, error) {
	var faults apperr.Faults
	draft.check(&faults)
	if err := faults.Err(); err != nil {
		return Doc{}, err
	}
	if node := draft.federated().NodeID; node != "" {
		if err := checkNode(ctx, s.bus, node); err != nil {
			return Doc{}, err
		}
	}
	id, err := s.store.NewID(ctx)
	if err != nil {
		return Doc{}, err
	}
	return docstore.Write(ctx, s.store, func(tx *docstore.Tx) (Doc, error) {
		if err := draft.checkConnections(ctx, tx); err != nil {
			return Doc{}, err
		}
		return methods.Insert(ctx, tx, &Method{Meta: docstore.Meta{ID: id}, Profile: draft, Status: On})
	})
}

func (p *Profile) checkConnections(ctx context.Context, tx *docstore.Tx) error {
	var faults apperr.Faults
	at := func(i int) string { return apperr.Item("connection_ids", i) }
	if err := connection.Exist(ctx, tx, p.ConnectionIDs, at, &faults); err != nil {
		return err
	}
	return faults.Err()
}

// Update applies edit to a method. The error is apperr.NotFound, InvalidParameters, AlreadyExists, InUse (another code
// while templates name the method), VersionMismatch or Unavailable.
func (s *Methods) Update(ctx context.Context, id string, edit func(*Profile) error) (Doc, error) {
	checked := ""
	for {
		doc, err := s.update(ctx, id, checked, edit)
		unchecked, ok := errors.AsType[*uncheckedNode](err)
		if !ok {
			return doc, err
		}
		if err := checkNode(ctx, s.bus, unchecked.id); err != nil {
			return Doc{}, err
		}
		checked = unchecked.id
	}
}

// uncheckedNode says that the organization service must be asked about a node, outside of the transaction.
type uncheckedNode struct{ id string }

func (*uncheckedNode) Error() string { return "it is not known whether the node takes members" }

// update is Update after a node was checked. The error may be an *uncheckedNode.
func (s *Methods) update(ctx context.Context, id, checked string, edit func(*Profile) error) (Doc, error) {
	return methods.Edit(ctx, s.store, id, func(tx *docstore.Tx, m *Method) error {
		before, nodeBefore := m.Code, m.federated().NodeID
		if err := edit(&m.Profile); err != nil {
			return err
		}
		var faults apperr.Faults
		m.Profile.check(&faults)
		if err := faults.Err(); err != nil {
			return err
		}
		if m.Code != before {
			if err := unnamed(ctx, tx, before); err != nil {
				return err
			}
		}
		if node := m.federated().NodeID; node != "" && node != nodeBefore && node != checked {
			return &uncheckedNode{node}
		}
		return m.checkConnections(ctx, tx)
	})
}

// SetStatus enables or disables a method. The error is apperr.NotFound or VersionMismatch.
func (s *Methods) SetStatus(ctx context.Context, id, status string) (Doc, error) {
	action := map[string]string{On: "enabled", Off: "disabled"}[status]
	return methods.As(action).Edit(ctx, s.store, id, func(_ *docstore.Tx, m *Method) error {
		m.Status = status
		return nil
	})
}

// Delete deletes a method that no template names. The error is apperr.NotFound, InUse or VersionMismatch.
func (s *Methods) Delete(ctx context.Context, id string) (docstore.Deleted, error) {
	return methods.Remove(ctx, s.store, id, func(tx *docstore.Tx, m *Method) error {
		return unnamed(ctx, tx, m.Code)
	})
}

// unnamed returns apperr.InUse if templates name the method with this code.
func unnamed(ctx context.Context, tx *docstore.Tx, code string) error {
	n, err := templates.Count(ctx, tx, docstore.Eq(byMethod, docstore.Text(code)))
	if err != nil {
		return err
	}
	return apperr.InUseBy("templates name the method", apperr.Use{What: "auth_templates", Count: n})
}

// OfConnection counts the methods that use a connection: for connection.Deps.
func OfConnection(ctx context.Context, tx *docstore.Tx, id string) (what string, n int64, err error) {
	n, err = methods.Count(ctx, tx, docstore.Eq(byConnection, docstore.Text(id)))
	return "auth_methods", n, err
}
