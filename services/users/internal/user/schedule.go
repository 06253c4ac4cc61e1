package user

import (
	"context"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// Due lists users whose stored records are out of date.
func Due(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return users.Due(ctx, s, limit)
}

// ApplyDue stores, with its events, that a user's lock has ended or its resignation has taken effect.
func (s *Users) ApplyDue(ctx context.Context, id string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		_, err := s.load(ctx, tx, id)
		return err
	})
}
