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
	"github.com/idplatform/idplatform/services/sign-in/internal/message"
)

// newcomer is an imported user who is to be invited as soon as the tenant's limits have room. It has the user's id.
type newcomer struct {
	work.Item
	Actor string `json:"actor"` // who has imported the user
}

var newcomers = work.Define(docstore.Schema[newcomer]{Name: "invitation_requests", Noun: "request for an invitation"})

const (
	attempts = 10 // that have failed for no known reason
	pause    = 5 * time.Second
	// A newcomer waits so long for a service that is away, and for a mail server that the tenant does not have.
	awayPause     = time.Minute
	noServerPause = time.Hour
	// spread is over how long the newcomers wait again who found no room in an hour.
	spread = 30 * time.Minute
	// patience is how long a newcomer waits at all. A tenant with the default limits invites 130,000 in this time.
	patience = 7 * 24 * time.Hour
)

var errLate = errors.New("an imported user could not be invited in time")

// New makes the use cases.
func New(c Config) *Invitations {
	s := &Invitations{Config: c}
	s.Queue = work.NewQueue[newcomer](work.Config[newcomer]{
		Name: "invite imported users", Items: newcomers, Store: c.Store, Log: c.Log, Metrics: c.Metrics,
		Places: fair.Limits{Most: 8, OfTenant: 4}, Time: 20 * time.Second,
		Attempts: attempts, Pause: func(attempt int64) time.Duration { return time.Duration(attempt) * pause },
		Do: s.inviteImported,
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

// inviteImported invites a user for a week, as soon as there is room, and a mail server. Who cannot sign in by then, or
// has a password, is not invited.
func (s *Invitations) inviteImported(ctx context.Context, n *newcomer) work.Outcome {
	if s.Store.Now().Sub(n.TimeCreated) > patience {
		return work.GiveUp(errLate).With("", func(ctx context.Context, tx *docstore.Tx) error {
			return message.TellNotMade(ctx, tx, n.ID, message.Invitation)
		})
	}
	by, err := s.Messages.Check(ctx)
	if apperr.KindOf(err) == apperr.InvalidState && err != nil {
		return work.NotStarted(nil, noServerPause)
	}
	if err != nil {
		return retryLater(err)
	}
	how := message.Inviting{By: by, Imported: true}
	if wait, err := s.Messages.UntilRoom(ctx, how); err != nil || wait > 0 {
		return later(err, wait)
	}
	info := request.From(ctx)
	info.Actor = n.Actor
	ctx = request.With(ctx, info)
	user, err := s.find(ctx, n.ID)
	switch apperr.KindOf(err) {
	case apperr.NotFound, apperr.InvalidState:
		return work.Done()
	}
	if err != nil {
		return retryLater(err)
	}
	err = docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		if _, err := newcomers.Load(ctx, tx, n.ID); err != nil { // somebody has revoked an invitation meanwhile
			return apperr.Ignore(err, apperr.NotFound)
		}
		invited, err := invitations.LoadMany(ctx, tx, []string{n.ID})
		if err != nil || len(invited) > 0 { // by an earlier attempt, or by an administrator
			return err
		}
		_, err = s.send(ctx, tx, Terms{ExpiresHours: week}, how, user)
		return err
	})
	if refusal, ok := errors.AsType[*apperr.Error](err); ok && refusal.Kind == apperr.RateLimited {
		return later(nil, refusal.RetryAfter)
	}
	return work.DoneOr(err)
}

// later is another look after a time without room.
func later(err error, wait time.Duration) work.Outcome {
	if err != nil {
		return work.Retry(err)
	}
	return work.NotStarted(nil, wait+rand.N(spread))
}

// retryLater is another look after an error. A service that is away costs no attempt.
func retryLater(err error) work.Outcome {
	if apperr.KindOf(err) == apperr.Unavailable {
		return work.NotStarted(err, awayPause)
	}
	return work.Retry(err)
}
