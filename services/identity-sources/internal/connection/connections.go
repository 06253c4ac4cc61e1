package connection

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/identity-sources/internal/provider"
	"github.com/idplatform/idplatform/services/questions"
)

// Deps are what Connections need. All are required.
type Deps struct {
	Store *docstore.Store
	Bus   *bus.Bus // for questions about what uses a connection
	// InUse counts what uses a connection in this service's own store. It is called inside a Write.
	InUse func(ctx context.Context, tx *docstore.Tx, id string) (what string, n int64, err error)
	// OnDelete is called inside the Write that deletes a connection.
	OnDelete func(ctx context.Context, tx *docstore.Tx, id string) error
}

// Connections are the use cases.
type Connections struct{ Deps }

// New makes the use cases.
func New(d Deps) *Connections { return &Connections{d} }

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{connections.Def()} }

// Doc is a connection as read or written.
type Doc = docstore.Doc[Connection]

// Filter selects connections by equal members, and by a part of a name or of the provider's code; empty members are
// ignored.
type Filter struct {
	Type         string `query:"type" enum:"social,database,mfa,enterprise"`
	ProviderCode string `query:"provider_code" maxLength:"64" example:"wechat_scan_qr"`
	Status       string `query:"status" enum:"1,0"`
	textindex.Search
}

func (f Filter) where() docstore.Filter {
	return docstore.And(docstore.EqOrAll(byType, f.Type), docstore.EqOrAll(byProvider, f.ProviderCode),
		docstore.EqOrAll(byStatus, f.Status), textindex.HavingPart(f.Keyword))
}

// listPage is how many connections a page of List has, since most tenants have no more. MaxListPage is about how many
// bytes they can have.
const (
	listPage    = 20
	MaxListPage = listPage * 768 << 10
)

// List returns a page of the connections of the tenant, the oldest first: the first one, or that after the page whose
// Next is after. The first list of a tenant creates its native database connection, unless it is a dry run.
func (s *Connections) List(ctx context.Context, f Filter, after string) (docstore.Page[Connection], error) {
	page, err := s.list(ctx, f, after)
	if err != nil || len(page.Docs) > 0 || after != "" { // every tenant with a connection has the native one
		return page, err
	}
	if err := s.ensureNative(ctx); err != nil {
		return page, err
	}
	return s.list(ctx, f, after)
}

func (s *Connections) list(ctx context.Context, f Filter, after string) (docstore.Page[Connection], error) {
	return connections.Page(ctx, s.Store, docstore.Query{
		Filter: f.where(), Sort: []docstore.Order{{Index: byCreated}}, Limit: listPage, After: after,
	})
}

// Get returns a connection. The error is apperr.NotFound.
func (s *Connections) Get(ctx context.Context, id string) (Doc, error) {
	return connections.Find(ctx, s.Store, id)
}

// Create adds a connection. The error is apperr.InvalidParameters with every fault, AlreadyExists (a second native
// database) or InvalidState (MaxConnections).
func (s *Connections) Create(ctx context.Context, n NewConnection) (Doc, error) {
	if err := s.ensureNative(ctx); err != nil {
		return Doc{}, err
	}
	p, err := n.check(nil)
	if err != nil {
		return Doc{}, err
	}
	return s.insert(ctx, n.Draft, cmp.Or(n.Status, Enabled), p)
}

func (s *Connections) insert(
	ctx context.Context, d Draft, status string, p *provider.Provider,
) (Doc, error) {
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return Doc{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		err := connections.CheckLimit(ctx, tx, docstore.Filter{}, MaxConnections, "a tenant has at most %d connections")
		if err != nil {
			return Doc{}, err
		}
		c := &Connection{Meta: docstore.Meta{ID: id}, DeveloperID: request.From(ctx).Actor, Status: status}
		c.apply(&d, p)
		return connections.Insert(ctx, tx, c)
	})
}

// ensureNative creates the tenant's native database connection if there is none. It cannot be created earlier, because
// new tenants are not announced.
func (s *Connections) ensureNative(ctx context.Context) error {
	_, err := connections.First(ctx, s.Store, docstore.Eq(byNative, docstore.Text("1")))
	if !apperr.IsNotFound(err) || docstore.IsDryRun(ctx) {
		return apperr.Ignore(err, apperr.NotFound)
	}
	p, ok := provider.Builtin().Find(provider.NativeDatabase)
	if !ok {
		return errors.New("the catalogue has no native database")
	}
	ctx = docstore.WithoutCommitHook(request.System(ctx, request.Tenant(ctx)))
	_, err = s.insert(ctx, Draft{ConfigFields: Fields{}}, Enabled, p)
	return apperr.Ignore(err, apperr.AlreadyExists) // another request was first
}

// Replace replaces provider, display name and fields. A mask in place of a secret keeps the secret. The error is
// apperr.NotFound, InvalidParameters, InvalidState (another provider for the native database), InUse (another provider
// for a connection in use), VersionMismatch or Unavailable.
func (s *Connections) Replace(ctx context.Context, id string, d Draft) (Doc, error) {
	doc, err := s.Get(ctx, id)
	if err != nil {
		return Doc{}, err
	}
	before, err := doc.Value()
	if err != nil {
		return Doc{}, err
	}
	if before.ProviderCode != d.ProviderCode {
		if err := s.unused(ctx, id); err != nil {
			return Doc{}, err
		}
	}
	return connections.Edit(ctx, s.Store, id, func(tx *docstore.Tx, c *Connection) error {
		p, err := d.check(c)
		if err != nil {
			return err
		}
		if c.ProviderCode != p.ProviderCode {
			if err := s.mayBecome(ctx, tx, c, before.ProviderCode); err != nil {
				return err
			}
		}
		c.apply(&d, p)
		return nil
	})
}

// mayBecome refuses another provider for a connection that is native or in use in this service. asked is its provider
// at the time when the other services were asked.
func (s *Connections) mayBecome(ctx context.Context, tx *docstore.Tx, c *Connection, asked string) error {
	if c.native() != "" {
		return apperr.New(apperr.InvalidState, "the provider of the native database connection can't be changed")
	}
	if c.ProviderCode != asked {
		return docstore.Mismatch(c.Version)
	}
	return s.unusedHere(ctx, tx, c.ID)
}

// SetStatus enables or disables a connection. The error is apperr.NotFound or VersionMismatch.
func (s *Connections) SetStatus(ctx context.Context, id, status string) (Doc, error) {
	action := map[string]string{Enabled: "enabled", Disabled: "disabled"}[status]
	return connections.As(action).Edit(ctx, s.Store, id, func(_ *docstore.Tx, c *Connection) error {
		c.Status = status
		return nil
	})
}

// Delete deletes a connection that nothing uses. The error is apperr.NotFound, InvalidState (the native database),
// InUse, VersionMismatch or Unavailable (a service that may use it does not answer).
func (s *Connections) Delete(ctx context.Context, id string) (docstore.Deleted, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return docstore.Deleted{}, err
	}
	if err := s.unused(ctx, id); err != nil {
		return docstore.Deleted{}, err
	}
	return connections.Remove(ctx, s.Store, id, func(tx *docstore.Tx, c *Connection) error {
		if c.native() != "" {
			return apperr.New(apperr.InvalidState, "the native database connection can't be deleted")
		}
		if err := s.unusedHere(ctx, tx, id); err != nil {
			return err
		}
		return s.OnDelete(ctx, tx, id)
	})
}

// unused asks the other services, and returns apperr.InUse if they use a connection.
func (s *Connections) unused(ctx context.Context, id string) error {
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return apperr.Missing("connection")
	}
	credentials, err := questions.CredentialsOfConnection.Ask(ctx, s.Bus, questions.ConnectionNumber{ID: number})
	if err != nil {
		return err
	}
	applications, err := questions.ApplicationsOfConnection.Ask(ctx, s.Bus, questions.ConnectionID{ID: id})
	if err != nil {
		return err
	}
	return inUse(apperr.Use{What: "stored_credentials", Count: credentials.Count},
		apperr.Use{What: "applications", Count: applications.Count})
}

// unusedHere returns apperr.InUse if this service uses a connection.
func (s *Connections) unusedHere(ctx context.Context, tx *docstore.Tx, id string) error {
	what, n, err := s.InUse(ctx, tx, id)
	if err != nil {
		return err
	}
	return inUse(apperr.Use{What: what, Count: n})
}

func inUse(uses ...apperr.Use) error { return apperr.InUseBy("the connection is in use", uses...) }

// Tested emits the event about a test of a connection: who ordered it, and whether it passed. The record stays as it
// is. The error is apperr.NotFound.
func (s *Connections) Tested(ctx context.Context, id string, ok bool) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		c, err := connections.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		_, err = connections.As("tested").With("ok", ok).Revise(ctx, tx, c)
		return err
	})
}

// Existing returns those of the connections that exist, with the codes of their providers.
func (s *Connections) Existing(ctx context.Context, ids []string) ([]questions.Connection, error) {
	docs, err := connections.FindMany(ctx, s.Store, ids)
	if err != nil {
		return nil, err
	}
	found := make([]questions.Connection, 0, len(docs))
	for _, doc := range docs {
		c, err := doc.Value()
		if err != nil {
			return nil, err
		}
		found = append(found, c.named())
	}
	return found, nil
}

// Settings returns a connection's provider and its config_fields with the secrets in plain text, which must reach no
// log, event or answer. The error is apperr.NotFound.
func (s *Connections) Settings(ctx context.Context, id string) (*provider.Provider, map[string]json.RawMessage, error) {
	doc, err := s.Get(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	c, err := doc.Value()
	if err != nil {
		return nil, nil, err
	}
	if err := docstore.CheckExpected(ctx, id, c.Version); err != nil {
		return nil, nil, err
	}
	p, ok := provider.Builtin().Find(c.ProviderCode)
	if !ok {
		return nil, nil, fmt.Errorf("connection %s is of a provider that is not in the catalogue", id)
	}
	settings := map[string]json.RawMessage{}
	for name, field := range c.ConfigFields {
		settings[name] = field.json
		if !p.IsSecret(name) {
			continue
		}
		value, err := connections.Reveal(ctx, s.Store, id, name)
		if err != nil {
			return nil, nil, err
		}
		if settings[name], err = json.Marshal(value.Reveal()); err != nil {
			return nil, nil, err
		}
	}
	return p, settings, nil
}

// named is what other services are told of a connection.
func (c *Connection) named() questions.Connection {
	return questions.Connection{
		ID: c.ID, ProviderCode: c.ProviderCode, Name: cmp.Or(c.DisplayName, c.Name), Disabled: c.Status != Enabled,
	}
}

// Find returns a connection. The error is apperr.NotFound.
func Find(ctx context.Context, s *docstore.Store, id string) (*Connection, error) {
	doc, err := connections.Find(ctx, s, id)
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

// FindEnabled returns the enabled ones among the connections with some ids, by id.
func FindEnabled(ctx context.Context, s *docstore.Store, ids []string) (map[string]questions.Connection, error) {
	docs, err := connections.FindMany(ctx, s, ids)
	if err != nil {
		return nil, err
	}
	enabled := map[string]questions.Connection{}
	for _, doc := range docs {
		c, err := doc.Value()
		if err != nil {
			return nil, err
		}
		if c.Status == Enabled {
			enabled[c.ID] = c.named()
		}
	}
	return enabled, nil
}

// SealedSettings returns the settings of a connection that is enabled, sealed to the asking service: of the one that is
// named, or of the oldest one to a provider. The error is apperr.NotFound or InvalidParameters.
func (s *Connections) SealedSettings(ctx context.Context, q questions.SettingsQuestion,
) (answer questions.SealedSettings, err error) {
	if answer.ConnectionID, err = s.enabledID(ctx, q); err != nil {
		return answer, err
	}
	p, settings, err := s.Settings(ctx, answer.ConnectionID)
	if err != nil {
		return answer, err
	}
	answer.ProviderCode = p.ProviderCode
	plain, err := json.Marshal(settings)
	if err != nil {
		return answer, err
	}
	if answer.Sealed, err = q.To.Seal(string(plain), questions.ForSettings); err != nil {
		return answer, apperr.Invalid("to", "is not a public key that values can be sealed for")
	}
	return answer, nil
}

// enabledID is the id of the connection that a question is about. The error is apperr.NotFound.
func (s *Connections) enabledID(ctx context.Context, q questions.SettingsQuestion) (string, error) {
	if q.ConnectionID != "" {
		enabled, err := FindEnabled(ctx, s.Store, []string{q.ConnectionID})
		if err == nil && len(enabled) == 0 {
			err = apperr.Missing("connection")
		}
		return q.ConnectionID, err
	}
	page, err := connections.Page(ctx, s.Store, docstore.Query{
		Filter: Filter{ProviderCode: cmp.Or(q.ProviderCode, "-"), Status: Enabled}.where(),
		Sort:   []docstore.Order{{Index: byCreated}}, Limit: 1,
	})
	if err != nil {
		return "", err
	}
	if len(page.Docs) == 0 {
		return "", apperr.Missing("connection")
	}
	return page.Docs[0].ID, nil
}

// Exist reports a fault at each id that is not a connection. It is called inside a Write, which then depends on the
// connections. at returns the location of an id.
func Exist(ctx context.Context, tx *docstore.Tx, ids []string, at func(int) string, faults *apperr.Faults) error {
	found, err := connections.LoadMany(ctx, tx, ids)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, c := range found {
		there[c.ID] = true
	}
	for i, id := range ids {
		faults.Check(there[id], at(i), "must be a connection's id")
	}
	return nil
}
