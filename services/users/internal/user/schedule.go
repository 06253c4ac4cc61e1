package user

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// Settle stores, with its events, what has come true of users by itself: locks that have ended, resignations whose time has come. To
// be called every second or so; any number of replicas may. It returns how many users it looked at.
func (s *Users) Settle(ctx context.Context) (int, error) {
	due, err := users.Due(ctx, s.Store, 500)
	if err != nil {
		return 0, err
	}
	for _, ref := range due {
		ctx := request.System(ctx, ref.Tenant)
		_, err := docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (struct{}, error) {
			_, err := s.load(ctx, tx, ref.ID)
			return struct{}{}, err
		})
		// Another replica may have been first, or the user is gone.
		if kind := apperr.KindOf(err); err != nil && kind != apperr.NotFound && kind != apperr.VersionMismatch {
			return 0, err
		}
	}
	return len(due), nil
}
