package application

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Credential is a client id with a secret.
type Credential struct{ ClientID, Secret string }

// EnsureAdministrator creates an application with the scope platform:admin, unless there is one with this client id. It
// reports whether the credential is valid: the secret may have been refreshed since. The context's tenant is the
// application's.
func (s *Applications) EnsureAdministrator(ctx context.Context, c Credential) (valid bool, err error) {
	known, err := s.Client(ctx, c.ClientID)
	if err == nil {
		return slices.ContainsFunc(known.Secrets, func(known ClientSecret) bool { return known.Matches(c.Secret) }), nil
	}
	if !apperr.IsNotFound(err) {
		return false, err
	}
	whole := func(int) string { return "" }
	var faults apperr.Faults
	plans, err := s.plan(ctx, &faults, whole, []Edit{func(a *Application) error {
		a.Name, a.Category = "Platform administrator "+c.ClientID, BackendService
		a.Scopes = []string{string(auth.PlatformAdmin)}
		a.Descr = "Created from the configuration when the platform started"
		return nil
	}})
	if err != nil {
		return false, err
	}
	plans[0].ClientID, plans[0].secret, plans[0].Secrets[0].Hint = c.ClientID, c.Secret, hint(c.Secret)
	err = docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		_, err := add(ctx, tx, false, plans, whole)
		return err
	})
	if apperr.KindOf(err) == apperr.AlreadyExists { // another replica was faster
		if _, err := s.Client(ctx, c.ClientID); err == nil {
			return s.EnsureAdministrator(ctx, c)
		}
	}
	return err == nil, err
}
