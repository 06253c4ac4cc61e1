package job

import (
	"context"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

const (
	holdFor     = 24 * time.Hour
	maxReserved = 10_000 // ids of a tenant
)

// reservation is an id for a job that does not exist yet.
type reservation struct {
	docstore.Meta            // the id
	Until         clock.Time `json:"until"`
}

var reserved = docstore.Define(docstore.Schema[reservation]{
	Name: "job_reservations", Noun: "id", Part: true,
	Due: func(r *reservation) clock.Time { return r.Until },
})

// Reserve returns an id that a job can be created with in the next 24 hours. The error is apperr.InvalidState if too
// many are reserved.
func (s *Jobs) Reserve(ctx context.Context) (docstore.Deleted, error) {
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return docstore.Deleted{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (docstore.Deleted, error) {
		n, err := reserved.Count(ctx, tx, docstore.Filter{})
		if err != nil {
			return docstore.Deleted{}, err
		}
		if n >= maxReserved {
			return docstore.Deleted{}, apperr.New(apperr.InvalidState, "%d ids are reserved and not used", maxReserved)
		}
		_, err = reserved.Insert(ctx, tx, &reservation{Meta: docstore.Meta{ID: id}, Until: tx.Now.Add(holdFor)})
		return docstore.Deleted{ID: id}, err
	})
}

// redeem uses up a reserved id. The error is apperr.InvalidParameters.
func redeem(ctx context.Context, tx *docstore.Tx, id string) error {
	r, err := reserved.Load(ctx, tx, id)
	if apperr.IsNotFound(err) || err == nil && !r.Until.After(tx.Now) {
		return apperr.Invalid("id", "is not a pre-created id, or was used, or its 24 hours are over")
	}
	if err != nil {
		return err
	}
	_, err = reserved.Delete(ctx, tx, r)
	return err
}

// DueReservations lists reserved ids whose time is over.
func DueReservations(ctx context.Context, store *docstore.Store, limit int) ([]docstore.Ref, error) {
	return reserved.Due(ctx, store, limit)
}

// Release forgets a reserved id. The error is apperr.NotFound or VersionMismatch.
func (s *Jobs) Release(ctx context.Context, id string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		r, err := reserved.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		_, err = reserved.Delete(ctx, tx, r)
		return err
	})
}
