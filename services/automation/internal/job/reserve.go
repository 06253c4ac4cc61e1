package job

import (
	"context"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

const (
	reservedFor = 24 * time.Hour
	maxReserved = 10_000 // ids of a tenant
)

// reservation is a pre-created id: one for a job that does not exist yet.
type reservation struct {
	docstore.Meta            // with the pre-created id
	Until         clock.Time `json:"until"`
}

var reserved = docstore.Define(docstore.Schema[reservation]{
	Name: "job_reservations", Noun: "id", NoIfMatch: true,
	Due: func(r *reservation) clock.Time { return r.Until },
})

// Reserve returns an id that a job can be created with in the next 24 hours. The error is apperr.InvalidState if the
// tenant has too many unused ones.
func (s *Jobs) Reserve(ctx context.Context) (docstore.Deleted, error) {
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return docstore.Deleted{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (docstore.Deleted, error) {
		err := reserved.CheckLimit(ctx, tx, docstore.Filter{}, maxReserved,
			"a tenant has at most %d unused pre-created ids")
		if err != nil {
			return docstore.Deleted{}, err
		}
		_, err = reserved.Insert(ctx, tx, &reservation{Meta: docstore.Meta{ID: id}, Until: tx.Now.Add(reservedFor)})
		return docstore.Deleted{ID: id}, err
	})
}

// redeem ends the reservation of an id whose job is created. The error is apperr.InvalidParameters.
func redeem(ctx context.Context, tx *docstore.Tx, id string) error {
	r, err := reserved.Load(ctx, tx, id)
	if apperr.IsNotFound(err) || err == nil && !r.Until.After(tx.Now) {
		return apperr.Invalid("id", "is not a pre-created id, or has been used, or is older than 24 hours")
	}
	if err != nil {
		return err
	}
	_, err = reserved.Delete(ctx, tx, r)
	return err
}

// DueReservations lists pre-created ids that were not used within 24 hours.
func DueReservations(ctx context.Context, store *docstore.Store, limit int) ([]docstore.Ref, error) {
	return reserved.Due(ctx, store, limit)
}

// Release ends the reservation of an id that was not used. The error is apperr.NotFound or VersionMismatch.
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
