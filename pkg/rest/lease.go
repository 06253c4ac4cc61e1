package rest

import (
	"context"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// A request holds its Idempotency-Key by a lease that it renews while it runs. If its process dies, a repeated request
// takes the key over when the lease is over. If the process was only slow, the transaction that keeps the answer finds
// that, and changes nothing.
const (
	lease      = 8 * time.Second
	renewEvery = 2 * time.Second
)

// leaseOf is the id of the record of a run's renewed lease. It is not that of the key's record: the request's
// transaction changes that one, and would conflict with each renewal.
func leaseOf(a *savedAnswer) string { return a.ID + "." + a.Run }

// renewLease renews the lease of a claim until release is called.
func (s *Server) renewLease(ctx context.Context, claim savedAnswer) (release func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var renewing sync.WaitGroup
	renewing.Go(func() {
		ticker := time.NewTicker(renewEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				_ = s.renew(ctx, claim) // the next may succeed
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		renewing.Wait()
	}
}

func (s *Server) renew(ctx context.Context, claim savedAnswer) error {
	ctx, cancel := context.WithTimeout(ctx, lease)
	defer cancel()
	return docstore.Do(ctx, s.cfg.Store, func(tx *docstore.Tx) error {
		held, err := savedAnswers.Load(ctx, tx, leaseOf(&claim))
		if apperr.IsNotFound(err) {
			held = &savedAnswer{Run: claim.Run, Until: tx.Now.Add(lease)}
			held.ID = leaseOf(&claim)
			_, err = savedAnswers.Insert(ctx, tx, held)
			return err
		}
		if err != nil {
			return err
		}
		held.Until = tx.Now.Add(lease)
		_, err = savedAnswers.Replace(ctx, tx, held)
		return err
	})
}

// isFree reports whether a record holds its key no more: neither as an answer nor for a request that runs.
func isFree(ctx context.Context, tx *docstore.Tx, old *savedAnswer) (bool, error) {
	if !old.Until.After(tx.Now) {
		return true, nil
	}
	if old.Sealed != "" || old.Lease.After(tx.Now) {
		return false, nil
	}
	renewed, err := savedAnswers.Load(ctx, tx, leaseOf(old))
	if apperr.IsNotFound(err) {
		return true, nil
	}
	return err == nil && !renewed.Until.After(tx.Now), err
}
