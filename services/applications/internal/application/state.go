package application

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/applications/internal/toggle"
)

// Each of these states has two operations. If the application is in the state already, nothing changes and no event is
// emitted. All return apperr.NotFound, VersionMismatch and Forbidden (the application has scopes that the caller
// lacks).

// Enable enables the application.
func (s *Applications) Enable(ctx context.Context, id string) (Doc, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		return s.set(ctx, tx, id, "enabled", func(a *Application) { a.Status = toggle.On })
	})
}

// Disable disables the application, and ends its tokens. Its errors include apperr.InUse for the last application that
// administers the platform.
func (s *Applications) Disable(ctx context.Context, id string) (Doc, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		doc, err := s.set(ctx, tx, id, "disabled", func(a *Application) { a.Status = toggle.Off })
		if err != nil || !doc.Changed() {
			return doc, err
		}
		a, err := doc.Value()
		if err != nil {
			return Doc{}, err
		}
		return doc, s.OnEnd(ctx, tx, a)
	})
}

// SetSSO switches single sign-on on or off.
func (s *Applications) SetSSO(ctx context.Context, id string, on bool) error {
	value, action := toggle.Off, "sso_disabled"
	if on {
		value, action = toggle.On, "sso_enabled"
	}
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		_, err := s.set(ctx, tx, id, action, func(a *Application) {
			a.SSOEnabled, a.ConfigProp.SSOEnabled = value, value
		})
		return err
	})
}

// SetMFA switches the second factor on or off.
func (s *Applications) SetMFA(ctx context.Context, id string, on bool) error {
	value, action := toggle.Off, "mfa_disabled"
	if on {
		value, action = toggle.On, "mfa_enabled"
	}
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		_, err := s.set(ctx, tx, id, action, func(a *Application) {
			a.MFAEnabled, a.ConfigProp.MFAEnabled = value, value
		})
		return err
	})
}

// AllowMultiAccounts allows several sub-accounts for each user.
func (s *Applications) AllowMultiAccounts(ctx context.Context, id string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		_, err := s.set(ctx, tx, id, "updated", func(a *Application) { a.MultiAccountEnabled = toggle.On })
		return err
	})
}

// ForbidMultiAccounts allows one sub-account for each user. The error is apperr.InUse while a user has several.
func (s *Applications) ForbidMultiAccounts(ctx context.Context, id string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		_, err := s.set(ctx, tx, id, "updated", func(a *Application) { a.MultiAccountEnabled = toggle.Off })
		if err != nil {
			return err
		}
		several, err := s.HaveSeveral(ctx, tx, id)
		if err != nil {
			return err
		}
		return apperr.InUseBy("a user has several sub-accounts of the application",
			apperr.Use{What: "users", Count: several})
	})
}

func (s *Applications) set(
	ctx context.Context, tx *docstore.Tx, id, action string, do func(*Application),
) (Doc, error) {
	a, err := load(ctx, tx, id)
	if err != nil {
		return Doc{}, err
	}
	was := a.administers()
	do(a)
	if err := noteAdministrator(ctx, tx, a, was, a.administers()); err != nil {
		return Doc{}, err
	}
	return applications.As(action).Replace(ctx, tx, a)
}

// UpdateConfig applies edit to the configuration. Its errors include apperr.InvalidParameters.
func (s *Applications) UpdateConfig(ctx context.Context, id string, edit func(*ConfigProp) error) (Doc, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		a, err := load(ctx, tx, id)
		if err != nil {
			return Doc{}, err
		}
		proposal := a.ConfigProp
		if err := edit(&proposal); err != nil {
			return Doc{}, err
		}
		var faults apperr.Faults
		proposal.check(&faults, a.TenantID)
		if err := faults.Err(); err != nil {
			return Doc{}, err
		}
		a.ConfigProp, a.SSOEnabled, a.MFAEnabled = proposal, proposal.SSOEnabled, proposal.MFAEnabled
		return applications.As("config_updated").Replace(ctx, tx, a)
	})
}
