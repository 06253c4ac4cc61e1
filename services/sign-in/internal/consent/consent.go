// Package consent is the domain of consents: what a person has agreed that an application may know.
package consent

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
)

// Consent is a person's agreement. It has the same JSON form in the API, in events and in the store.
type Consent struct {
	docstore.Meta
	UserID string   `json:"user_id" readOnly:"true" doc:"Who has agreed" example:"1048577"`
	AppID  string   `json:"app_id" readOnly:"true" doc:"The application" example:"1048577"`
	Scopes []string `json:"scopes" readOnly:"true" doc:"What for" example:"[\"profile\"]"` // in the order of their names
}

const (
	byUser    = "user_id"
	byApp     = "app_id"
	byBoth    = "both"
	byCreated = "time_created"
)

var consents = outbox.Define("consent", "/consents", docstore.Schema[Consent]{
	Name: "consents", Noun: "consent", Sortable: []string{byCreated},
	Indexes: []docstore.Index[Consent]{
		docstore.Unique(docstore.ByText(byBoth, func(c *Consent) string { return c.UserID + "/" + c.AppID }), "app_id"),
		docstore.ByText(byUser, func(c *Consent) string { return c.UserID }),
		docstore.ByText(byApp, func(c *Consent) string { return c.AppID }),
		docstore.ByNumber(byCreated, func(c *Consent) docstore.Value { return docstore.Moment(c.TimeCreated) }),
	},
})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{consents.Def()} }

// Doc is a consent as read or written.
type Doc = docstore.Doc[Consent]

// Consents are the use cases.
type Consents struct {
	Store *docstore.Store
	// Withdrawn ends what the application has got; optional. If it fails, the application's grants are no good all the
	// same, because they name the consent.
	Withdrawn func(ctx context.Context, userID, appID string) error
}

func of(userID, appID string) docstore.Filter {
	return docstore.Eq(byBoth, docstore.Text(userID+"/"+appID))
}

// Covering returns the id of the consent by which a person agrees to all scopes for an application; "" if there is
// none. A consent that is given again after it was withdrawn has another id.
func (s *Consents) Covering(ctx context.Context, userID, appID string, scopes []string) (id string, err error) {
	doc, err := consents.First(ctx, s.Store, of(userID, appID))
	if apperr.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	c, err := doc.Value()
	if err != nil || !c.covers(scopes) {
		return "", err
	}
	return c.ID, nil
}

func (c *Consent) covers(scopes []string) bool {
	return !slices.ContainsFunc(scopes, func(scope string) bool { return !slices.Contains(c.Scopes, scope) })
}

// From is where a person gives or withdraws a consent. It is empty for a caller of the API.
type From struct {
	Address string
	Browser string // its User-Agent
}

func (f From) telling(verb string) *outbox.Records[Consent] {
	return consents.As(verb).With("address", f.Address).With("browser", f.Browser)
}

// Give notes that a person agrees to further scopes for an application.
func (s *Consents) Give(ctx context.Context, userID, appID string, scopes []string, from From) error {
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return err
	}
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		found, err := consents.LoadWhere(ctx, tx, of(userID, appID), "", 1)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			_, err = from.telling("given").Insert(ctx, tx, &Consent{Meta: docstore.Meta{ID: id}, UserID: userID,
				AppID: appID, Scopes: union(nil, scopes)})
		} else {
			found[0].Scopes = union(found[0].Scopes, scopes)
			_, err = from.telling("given").Replace(ctx, tx, found[0])
		}
		return err
	})
}

func union(a, b []string) []string {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	all = slices.Compact(all)
	if all == nil {
		all = []string{}
	}
	return all
}

// Get returns a consent. The error is apperr.NotFound.
func (s *Consents) Get(ctx context.Context, id string) (Doc, error) {
	return consents.Find(ctx, s.Store, id)
}

// Filter selects consents by user and application. An empty member means any.
type Filter struct {
	docstore.Paging
	UserID string `query:"user_id" maxLength:"64" doc:"Those of this user" example:"1048577"`
	AppID  string `query:"app_id" maxLength:"64" doc:"Those for this application" example:"1048577"`
}

// List returns a page of the consents of a user and for an application; empty ids are all.
func (s *Consents) List(ctx context.Context, f Filter) (docstore.Page[Consent], error) {
	return consents.List(ctx, s.Store,
		docstore.And(docstore.EqOrAll(byUser, f.UserID), docstore.EqOrAll(byApp, f.AppID)), f.Paging)
}

// OfUser returns the consents of a user, at most limit.
func (s *Consents) OfUser(ctx context.Context, userID string, limit int) ([]*Consent, error) {
	page, err := consents.Page(ctx, s.Store, docstore.Query{
		Filter: docstore.Eq(byUser, docstore.Text(userID)), Limit: limit,
	})
	if err != nil {
		return nil, err
	}
	all := make([]*Consent, len(page.Docs))
	for i := range page.Docs {
		if all[i], err = page.Docs[i].Value(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Withdraw deletes a consent: the person is asked again. userID, if not empty, is whose it must be. The error is
// apperr.NotFound or VersionMismatch.
func (s *Consents) Withdraw(ctx context.Context, id, userID string, from From) (docstore.Deleted, error) {
	var was Consent
	done, err := from.telling("withdrawn").Remove(ctx, s.Store, id, func(tx *docstore.Tx, c *Consent) error {
		if userID != "" && c.UserID != userID {
			return apperr.Missing("consent")
		}
		was = *c
		return nil
	})
	if err != nil || s.Withdrawn == nil || docstore.IsDryRun(ctx) {
		return done, err
	}
	return done, s.Withdrawn(ctx, was.UserID, was.AppID)
}

// Forget deletes the consents of a user who is deleted, or for an application that is; the other id is empty.
func Forget(ctx context.Context, tx *docstore.Tx, userID, appID string) error {
	where := docstore.Eq(byUser, docstore.Text(userID))
	if appID != "" {
		where = docstore.Eq(byApp, docstore.Text(appID))
	}
	return From{}.telling("withdrawn").DeleteWhere(ctx, tx, where)
}
