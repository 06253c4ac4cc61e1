package user

import (
	"context"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
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

var settings = outbox.DefineSingleton("user_settings", "/users-settings", docstore.Schema[Settings]{
	Name: "settings", Noun: "settings of users",
}, func(id string) *Settings { return &Settings{Meta: docstore.Meta{ID: id}} })

// SettingsDoc is a tenant's settings as read or written.
type SettingsDoc = docstore.Doc[Settings]

// MayShare reports whether the tenant allows users to share contact values.
func MayShare(ctx context.Context, r docstore.Reader) (bool, error) {
	v, err := settings.Value(ctx, r)
	return err == nil && v.SharedContacts, err
}

// Settings returns the tenant's settings, and stores the defaults if it has none.
func (s *Users) Settings(ctx context.Context) (SettingsDoc, error) { return settings.Get(ctx, s.Store) }

// ChangeSettings applies edit to the tenant's settings. The error is edit's, or apperr.VersionMismatch.
func (s *Users) ChangeSettings(ctx context.Context, edit func(*SettingsProfile) error) (SettingsDoc, error) {
	return settings.Edit(ctx, s.Store, func(v *Settings) error { return edit(&v.SettingsProfile) })
}
