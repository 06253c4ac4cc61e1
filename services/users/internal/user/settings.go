package user

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
)

// Settings are a tenant's settings of users. They have the same JSON form in the API, in events and in the store.
type Settings struct {
	docstore.Meta
	SettingsProfile
}

// SettingsProfile holds the members that clients set.
type SettingsProfile struct {
	SharedContacts bool `json:"shared_contacts" doc:"Whether users may have the email or mobile of another user. While several have one, none of them signs in by it, and applications that know people by it take one for the other" example:"false"`
}

const byOne = "one"

var settings = outbox.Define("user_settings", "/users-settings", docstore.Schema[Settings]{
	Name: "settings", Noun: "settings of users",
	Indexes: []docstore.Index[Settings]{
		docstore.Unique(docstore.ByText(byOne, func(*Settings) string { return "1" }), ""),
	},
})

// SettingsDoc is a tenant's settings as read or written.
type SettingsDoc = docstore.Doc[Settings]

func theSettings() docstore.Filter { return docstore.Eq(byOne, docstore.Text("1")) }

// mayShare reports whether the tenant allows users to share contact values.
func mayShare(ctx context.Context, r docstore.Reader) (bool, error) {
	doc, err := settings.First(ctx, r, theSettings())
	if apperr.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	is, err := doc.Value()
	if err != nil {
		return false, err
	}
	return is.SharedContacts, nil
}

// MayShare reports whether the tenant allows users to share contact values.
func (s *Users) MayShare(ctx context.Context) (bool, error) { return mayShare(ctx, s.Store) }

// Settings returns the tenant's settings, and stores the defaults if it has none.
func (s *Users) Settings(ctx context.Context) (SettingsDoc, error) {
	doc, err := settings.First(ctx, s.Store, theSettings())
	if !apperr.IsNotFound(err) {
		return doc, err
	}
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return SettingsDoc{}, err
	}
	aside := docstore.OutsideTheAnswer(request.System(ctx, request.Tenant(ctx)))
	doc, err = docstore.Write(aside, s.Store, func(tx *docstore.Tx) (SettingsDoc, error) {
		return settings.Collection.Insert(aside, tx, &Settings{Meta: docstore.Meta{ID: id}})
	})
	if apperr.KindOf(err) == apperr.AlreadyExists { // another request was first
		return settings.First(ctx, s.Store, theSettings())
	}
	return doc, err
}

// ChangeSettings applies edit to the tenant's settings. The error is edit's, or apperr.VersionMismatch.
func (s *Users) ChangeSettings(ctx context.Context, edit func(*SettingsProfile) error) (SettingsDoc, error) {
	present, err := s.Settings(ctx)
	if err != nil {
		return SettingsDoc{}, err
	}
	ctx = docstore.ExpectFor(ctx, "", present.ID)
	return settings.Edit(ctx, s.Store, present.ID, func(_ *docstore.Tx, v *Settings) error {
		return edit(&v.SettingsProfile)
	})
}
