package user

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/services/questions"
)

// MayTakeOver refuses a caller who would get a way to sign in as a user who has scopes of this API that the caller
// lacks. Work without a request may do so. The error is apperr.Forbidden, or Unavailable if the permissions service
// does not answer.
func MayTakeOver(ctx context.Context, b *bus.Bus, userID string) error {
	caller := auth.PrincipalFrom(ctx)
	if caller == nil || caller.Has(auth.PlatformAdmin) {
		return nil
	}
	has, err := questions.ScopesOfUser.Ask(ctx, b, questions.HolderOfScopes{UserID: userID})
	if err != nil {
		return err
	}
	if scope := has.Set().Beyond(caller.Scopes); scope != "" {
		return apperr.New(apperr.Forbidden, "the user has the scope %s, which the caller lacks", scope)
	}
	return nil
}

// mayTakeOver is MayTakeOver for many users. It returns the error of each; nil if there is none.
func (s *Users) mayTakeOver(ctx context.Context, userIDs []string) ([]error, error) {
	refusals := make([]error, len(userIDs))
	var group errgroup.Group
	group.SetLimit(askedAtOnce)
	for i, id := range userIDs {
		group.Go(func() error {
			err := MayTakeOver(ctx, s.Bus, id)
			if apperr.KindOf(err) == apperr.Forbidden {
				refusals[i], err = err, nil
			}
			return err
		})
	}
	return refusals, group.Wait()
}

const askedAtOnce = 8
