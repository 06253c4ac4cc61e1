package invitation

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/work"
)

// newcomer is an imported user who is to be invited as soon as the tenant's limits have room. It has the user's id.
type newcomer struct {
	work.Item
	Actor string `json:"actor"` // who has imported the user
}

var newcomers = work.Define(docstore.Schema[newcomer]{Name: "invitation_requests", Noun: "request for an invitation"})

const (
	attempts = 100
	pause    = 5 * time.Second // grows with the attempt
	maxPause = 5 * time.Minute
	// spread is over how long the newcomers wait again who found no room in an hour.
	spread = 30 * time.Minute
)

// New makes the use cases.
func New(c Config) *Invitations {
	s := &Invitations{Config: c}
	s.Queue = work.NewQueue[newcomer](work.Config[newcomer]{
		Name: "invite imported users", Items: newcomers, Store: c.Store, Log: c.Log, Metrics: c.Metrics,
		Places: fair.Limits{Most: 8, OfTenant: 4}, Time: 20 * time.Second,
		Attempts: attempts, Do: s.inviteImported,
		Pause: func(attempt int64) time.Duration { return min(time.Duration(attempt)*pause, maxPause) },
	})
	return s
}

// Await has an imported user invited, once. actor is who has imported the user.
func (s *Invitations) Await(ctx context.Context, userID, actor string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		waiting, err := newcomers.LoadMany(ctx, tx, []string{userID})
		if err != nil || len(waiting) > 0 {
			return err
		}
		invited, err := invitations.LoadMany(ctx, tx, []string{userID})
		if err != nil || len(invited) > 0 {
			return err
		}
		item := &newcomer{Item: work.New(tx.Now), Actor: actor}
		item.ID = userID
		_, err = newcomers.Insert(ctx, tx, item)
		return err
	})
}

// inviteImported invites a user for a week. Without a mail server the mail is lost, and an event says so.
func (s *Invitations) inviteImported(ctx context.Context, n *newcomer) work.Outcome {
	info := request.From(ctx)
	info.Actor = n.Actor
	ctx = request.With(ctx, info)
	user, err := s.find(ctx, n.ID)
	switch apperr.KindOf(err) {
	case apperr.NotFound, apperr.InvalidState: // has gone, or has a password meanwhile
		return work.Done()
	}
	if err != nil {
		return work.Retry(err)
	}
	by, err := s.Messages.Check(ctx)
	if err != nil && apperr.KindOf(err) != apperr.InvalidState {
		return work.Retry(err)
	}
	err = docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		invited, err := invitations.LoadMany(ctx, tx, []string{n.ID})
		if err != nil || len(invited) > 0 { // by an earlier attempt, or by an administrator
			return err
		}
		_, err = s.send(ctx, tx, Terms{ExpiresHours: week}, by, user)
		return err
	})
	if refusal, ok := errors.AsType[*apperr.Error](err); ok && refusal.Kind == apperr.RateLimited {
		return work.NotStarted(nil, refusal.RetryAfter+rand.N(spread))
	}
	return work.DoneOr(err)
}
