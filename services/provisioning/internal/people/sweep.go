package people

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/provisioning/internal/directory"
	"github.com/idplatform/idplatform/services/questions"
)

// sweptAtOnce is how many users one call of Sweep works on.
const sweptAtOnce = 100

// Sweep tells the users service what a connection now owns of the users after an id, or, if it owns nothing because it
// is deleted, frees them and forgets the links. It returns the last id; "" if there are no more.
func (s *Users) Sweep(ctx context.Context, c *connection.Connection, after string) (string, error) {
	ids, err := directory.IDsOf(ctx, s.Store, c.ID, after, sweptAtOnce)
	if err != nil || len(ids) == 0 {
		return "", err
	}
	frees := c.Name == "" // see connection.Sweep
	owner := &questions.ManagedBy{ConnectionID: c.ID, Members: []string{}}
	if !frees {
		owner = c.ManagedBy()
	}
	for _, id := range ids {
		change, err := s.Store.NewID(ctx)
		if err != nil {
			return "", err
		}
		_, err = questions.ChangeUser.Ask(ctx, s.Bus, questions.UserChange{
			ID: change, UserID: id, Action: questions.UpdateUser, ManagedBy: owner,
		})
		if k := apperr.KindOf(err); err != nil && k != apperr.NotFound && k != apperr.ManagedElsewhere {
			return "", err
		}
		if !frees {
			continue
		}
		if err := docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
			return directory.Forget(ctx, tx, id)
		}); err != nil {
			return "", err
		}
	}
	return ids[len(ids)-1], nil
}
