package oidc

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
)

// Grant is access that a person has given an application and that goes on after the session (offline_access). It has
// the same JSON form in the API, in events and in the store.
type Grant struct {
	docstore.Meta
	UserID      string     `json:"user_id" readOnly:"true" doc:"Who has given it" example:"1048577"`
	AppID       string     `json:"app_id" readOnly:"true" doc:"The application" example:"1048577"`
	ClientID    string     `json:"client_id" readOnly:"true" doc:"The application as a client of OAuth"`
	SessionID   string     `json:"session_id" readOnly:"true" doc:"In which it was given" example:"1048577"`
	FamilyID    string     `json:"family_id" readOnly:"true" doc:"Its access tokens have it as the claim family"`
	Scopes      []string   `json:"scopes" readOnly:"true" doc:"What for" example:"[\"openid\",\"offline_access\"]"`
	Resources   []string   `json:"resources" readOnly:"true" doc:"The APIs that its tokens may be for (RFC 8707); empty: the application itself"`
	TimeUsed    clock.Time `json:"time_used" readOnly:"true" doc:"The last use of its refresh token, to an hour"`
	TimeExpires clock.Time `json:"time_expires" readOnly:"true" doc:"When it ends unless it is used"`
	TimeEnds    clock.Time `json:"time_ends" readOnly:"true" doc:"When it ends at the latest"`
}

// The reasons for which grants end, as events tell.
const (
	grantByAPI       = "api"
	grantByPerson    = "person"      // on the person's own page
	grantUser        = "user"        // the user is disabled, locked by a caller, resigned or deleted
	grantFactor      = "factor"      // it rests on a factor that is deleted
	grantLink        = "link"        // it rests on a link or a connection that is deleted or disabled
	grantPassword    = "password"    // it was given with a former password
	grantConsent     = "consent"     // the consent was withdrawn
	grantApplication = "application" // the application is disabled or deleted
	grantRevoked     = "revoked"     // by the application
	grantReused      = "reused"      // a refresh token or code was used twice
	grantExpired     = "expired"
	grantReplaced    = "replaced" // by newer ones of the person: see Deps.MaxFamilies
)

const byCreated = "time_created"

var grantRecords = outbox.Define("grant", "/grants", docstore.Schema[Grant]{
	Name: "grants", Noun: "grant", Sortable: []string{byCreated},
	Indexes: []docstore.Index[Grant]{
		docstore.ByText(byUser, func(g *Grant) string { return g.UserID }),
		docstore.ByText(byApp, func(g *Grant) string { return g.AppID }),
		docstore.ByNumber(byCreated, func(g *Grant) docstore.Value { return docstore.Moment(g.TimeCreated) }),
	},
})

// insertFamily stores a new family, and its grant if it goes on after the session.
func insertFamily(ctx context.Context, tx *docstore.Tx, f *family) error {
	f.TimeUsed, f.TimeEnd = tx.Now, f.ends(tx.Now)
	if _, err := families.Insert(ctx, tx, f); err != nil || f.GrantID == "" {
		return err
	}
	_, err := grantRecords.Insert(ctx, tx, &Grant{
		Meta: docstore.Meta{ID: f.GrantID}, UserID: f.UserID, AppID: f.AppID, ClientID: f.ClientID,
		SessionID: f.SessionID, FamilyID: f.ID, Scopes: append([]string{}, f.Scope...),
		Resources: append([]string{}, f.Resources...), TimeUsed: tx.Now, TimeExpires: f.due(), TimeEnds: f.TimeEnd,
	})
	return err
}

// noteUse notes in the grant of a family that it is used, once in an hour.
func noteUse(ctx context.Context, tx *docstore.Tx, f *family, before clock.Time) error {
	hour := func(t clock.Time) int64 { return t.Millis() / noted.Milliseconds() }
	if f.GrantID == "" || hour(before) == hour(tx.Now) {
		return nil
	}
	g, err := grantRecords.Load(ctx, tx, f.GrantID)
	if err != nil {
		return apperr.Ignore(err, apperr.NotFound)
	}
	g.TimeUsed, g.TimeExpires = f.TimeUsed, f.due()
	_, err = grantRecords.Collection.Recount(ctx, tx, g)
	return err
}

// endFamilies ends families, and tells which grants end with them. Those that have ended are left out.
func endFamilies(ctx context.Context, s *docstore.Store, ids []string, reason string) error {
	return docstore.Do(ctx, s, func(tx *docstore.Tx) error {
		found, err := families.LoadMany(ctx, tx, ids)
		if err != nil {
			return err
		}
		for _, f := range found {
			if _, err := families.Delete(ctx, tx, f); err != nil {
				return err
			}
		}
		return dropGrants(ctx, tx, found, reason)
	})
}

// dropGrants deletes the grants of families that have ended.
func dropGrants(ctx context.Context, tx *docstore.Tx, ended []*family, reason string) error {
	var ids []string
	for _, f := range ended {
		if f.GrantID != "" {
			ids = append(ids, f.GrantID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := grantRecords.LoadMany(ctx, tx, ids)
	for _, g := range found {
		if err == nil {
			_, err = grantRecords.As("ended").With("reason", reason).Delete(ctx, tx, g)
		}
	}
	return err
}

// GrantFilter selects grants by user and application. An empty member means any.
type GrantFilter struct {
	docstore.Paging
	UserID string `query:"user_id" maxLength:"64" doc:"Those of this user" example:"1048577"`
	AppID  string `query:"app_id" maxLength:"64" doc:"Those for this application" example:"1048577"`
}

// Grants returns a page of the grants of a user and for an application; empty ids are all.
func (p *Provider) Grants(ctx context.Context, f GrantFilter) (docstore.Page[Grant], error) {
	return grantRecords.List(ctx, p.Store,
		docstore.And(docstore.EqOrAll(byUser, f.UserID), docstore.EqOrAll(byApp, f.AppID)), f.Paging)
}

// GetGrant returns a grant. The error is apperr.NotFound.
func (p *Provider) GetGrant(ctx context.Context, id string) (docstore.Doc[Grant], error) {
	return grantRecords.Find(ctx, p.Store, id)
}

// GrantsOfUser returns the grants of a user, at most limit.
func (p *Provider) GrantsOfUser(ctx context.Context, userID string, limit int) ([]*Grant, error) {
	page, err := grantRecords.Page(ctx, p.Store, docstore.Query{
		Filter: docstore.Eq(byUser, docstore.Text(userID)), Limit: limit,
	})
	all := make([]*Grant, len(page.Docs))
	for i := range page.Docs {
		if err == nil {
			all[i], err = page.Docs[i].Value()
		}
	}
	return all, err
}

// EndGrant ends a grant for a caller of the API: its tokens are good no more. The error is apperr.NotFound or
// VersionMismatch.
func (p *Provider) EndGrant(ctx context.Context, id string) (docstore.Deleted, error) {
	return p.endGrant(ctx, id, "", grantByAPI)
}

// EndOwnGrant ends a grant for the person who has given it. The error is apperr.NotFound.
func (p *Provider) EndOwnGrant(ctx context.Context, id, userID string) error {
	_, err := p.endGrant(ctx, id, userID, grantByPerson)
	return err
}

func (p *Provider) endGrant(ctx context.Context, id, userID, reason string) (docstore.Deleted, error) {
	return grantRecords.As("ended").With("reason", reason).Remove(ctx, p.Store, id,
		func(tx *docstore.Tx, g *Grant) error {
			if userID != "" && g.UserID != userID {
				return apperr.Missing("grant")
			}
			f, err := families.Load(ctx, tx, g.FamilyID)
			if err == nil {
				_, err = families.Delete(ctx, tx, f)
			}
			return apperr.Ignore(err, apperr.NotFound)
		})
}

// EndGrants ends the grants of users or, without any, those for an application, some at a time. It returns how many
// there were. In a dry run it only counts.
func (p *Provider) EndGrants(ctx context.Context, userIDs []string, appID string) (ended int64, err error) {
	where := docstore.Eq(byApp, docstore.Text(appID))
	if len(userIDs) > 0 {
		values := make([]docstore.Value, len(userIDs))
		for i, id := range userIDs {
			values[i] = docstore.Text(id)
		}
		where = docstore.In(byUser, values...)
	}
	if docstore.IsDryRun(ctx) {
		return grantRecords.Count(ctx, p.Store, where)
	}
	for after := ""; ; {
		page, err := grantRecords.Page(ctx, p.Store, docstore.Query{Filter: where, Limit: endAtOnce, After: after})
		if err != nil || len(page.Docs) == 0 {
			return ended, err
		}
		ids := make([]string, len(page.Docs))
		for i := range page.Docs {
			g, err := page.Docs[i].Value()
			if err != nil {
				return ended, err
			}
			ids[i] = g.FamilyID
		}
		slices.Sort(ids)
		if err := endFamilies(ctx, p.Store, ids, grantByAPI); err != nil {
			return ended, err
		}
		ended += int64(len(ids))
		if after = page.Next; after == "" {
			return ended, nil
		}
	}
}
