package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/provisioning/internal/directory"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/mapping"
	"github.com/idplatform/idplatform/services/questions"
)

// intent is a link as it will be once the users service has made a change. It exists until the link is stored; its id
// is the change's.
type intent struct {
	docstore.Meta
	ConnectionID string  `json:"connection_id"`
	UserID       string  `json:"user_id"`  // "" of a user that is being made
	Claim        string  `json:"claim"`    // see claimOf
	Replaces     string  `json:"replaces"` // the user whose link ends
	ExternalID   *string `json:"external_id"`
	Gone         *bool   `json:"gone"`
	Deleted      bool    `json:"deleted"`
	Event        string  `json:"event"`

	// From the request, for the events.
	RequestID     string `json:"request_id"`
	Actor         string `json:"actor"`
	PayloadOrigin string `json:"payload_origin"`

	TimeDue clock.Time `json:"time_due"` // when Finish may take over
}

var intents = docstore.Define(docstore.Schema[intent]{
	Name: "user_intents", Noun: "intent", Part: true, Due: func(i *intent) clock.Time { return i.TimeDue },
	Indexes: []docstore.Index[intent]{
		docstore.Unique(docstore.ByText("claim", func(i *intent) string { return i.Claim }), "externalId"),
	},
})

// changeTakes is how long a request with an intent is left alone.
const changeTakes = 10 * time.Second

// job is a change of a user together with that of its link.
type job struct {
	call     Call
	change   questions.UserChange
	link     directory.Link
	claim    string
	replaces *directory.User
	stored   bool // the link changes, so the intent is stored first
}

// carry lets the users service make a change, and stores the link and the copy. What that service does not take of the
// members that a user can do without is left out and noted as ignored. The error is a refusal, Unavailable if nothing
// was changed, or OutcomeUnknown: then Finish stores the link later.
func (s *Users) carry(ctx context.Context, j job) (*directory.User, error) {
	u, err := s.carryAll(ctx, j)
	if left, is := j.without(err); is {
		return s.carryAll(ctx, left)
	}
	return u, err
}

// dispensable are members that a user can do without: a bad one must not keep the rest from being carried out.
var dispensable = []string{"email", "locale", "zoneinfo"}

// without returns the job without the members that err refuses, unless it refuses others, too.
func (j job) without(err error) (job, bool) {
	refused, is := errors.AsType[*apperr.Error](err)
	if !is || refused.Kind != apperr.InvalidParameters || len(refused.Faults) == 0 {
		return j, false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(j.change.Profile, &members) != nil {
		return j, false
	}
	for _, f := range refused.Faults {
		i := slices.IndexFunc(dispensable, func(m string) bool { return mapping.AttributeOf(m) == f.Location })
		if i < 0 || members[dispensable[i]] == nil {
			return j, false
		}
		delete(members, dispensable[i])
		j.call.Ignored.Add(f.Location)
	}
	var failed error
	j.change.Profile, failed = json.Marshal(members)
	return j, failed == nil
}

func (s *Users) carryAll(ctx context.Context, j job) (*directory.User, error) {
	err := s.guardPassword(ctx, &j)
	if err != nil {
		return nil, err
	}
	if j.change.ID, err = s.Store.NewID(ctx); err != nil {
		return nil, err
	}
	if docstore.IsDryRun(ctx) {
		return s.tryOut(ctx, j)
	}
	if j.stored {
		if err := s.intend(ctx, j); err != nil {
			return nil, err
		}
	}
	// From here on the work continues even if the client gives up, because the users service may have made the change.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTakes)
	defer cancel()
	state, err := questions.ChangeUser.Ask(ctx, s.Bus, j.change)
	if unclear(err) && !bus.Unheard(err) {
		outcome, unsettled := questions.SettleUserChange.Ask(ctx, s.Bus, questions.ChangeID{ID: j.change.ID})
		if unsettled != nil {
			return nil, apperr.Unknown(errors.Join(err, unsettled)) // the intent stays
		}
		if outcome.Applied {
			state, err = outcome.UserState, nil
		}
	}
	if err != nil {
		return nil, errors.Join(told(err), s.drop(ctx, j))
	}
	u, err := s.fulfil(ctx, j.change.ID, j.change.UserID, state, j.link, j.stored)
	if unclear(err) {
		err = apperr.Unknown(err)
	}
	return u, err
}

// tryOut answers a dry run.
func (s *Users) tryOut(ctx context.Context, j job) (*directory.User, error) {
	j.change.DryRun = true
	state, err := questions.ChangeUser.Ask(ctx, s.Bus, j.change)
	if err != nil {
		return nil, told(err)
	}
	return s.put(ctx, j.change.UserID, state, j.link)
}

func (s *Users) intend(ctx context.Context, j job) error {
	asked := request.From(ctx)
	i := intent{
		Meta: docstore.Meta{ID: j.change.ID}, ConnectionID: j.link.ConnectionID, UserID: j.change.UserID,
		Claim:      j.claim,
		ExternalID: j.link.ExternalID, Gone: j.link.Gone, Deleted: j.link.Deleted, Event: j.link.Event,
		RequestID: asked.ID, Actor: asked.Actor, PayloadOrigin: asked.PayloadOrigin,
	}
	if j.replaces != nil {
		i.Replaces = j.replaces.ID
	}
	err := docstore.Do(docstore.OutsideTheAnswer(ctx), s.Store, func(tx *docstore.Tx) error {
		one := i
		one.TimeDue = tx.Now.Add(changeTakes)
		if i.Replaces != "" {
			if err := directory.Forget(ctx, tx, i.Replaces); err != nil {
				return err
			}
		}
		if err := directory.CheckExternal(ctx, tx, j.link, j.change.UserID); err != nil {
			return err
		}
		_, err := intents.Insert(ctx, tx, &one)
		return err
	})
	return told(err)
}

// fulfil stores the link and the copy of a change that was made. It ends the intent; if another replica has done so, it
// returns what that has stored.
func (s *Users) fulfil(
	ctx context.Context, id, userID string, state questions.UserState, link directory.Link, stored bool,
) (*directory.User, error) {
	userID, err := idOf(userID, state)
	if err != nil {
		return nil, err
	}
	return docstore.Write(docstore.OutsideTheAnswer(ctx), s.Store, func(tx *docstore.Tx) (*directory.User, error) {
		if stored {
			found, err := intents.LoadMany(ctx, tx, []string{id})
			if err != nil {
				return nil, err
			}
			if len(found) == 0 {
				link = directory.Link{ConnectionID: link.ConnectionID} // the link is stored already
			} else if _, err := intents.Delete(ctx, tx, found[0]); err != nil {
				return nil, err
			}
		}
		return directory.PutUser(ctx, tx, userID, state, link)
	})
}

func (s *Users) put(
	ctx context.Context, userID string, state questions.UserState, link directory.Link,
) (*directory.User, error) {
	userID, err := idOf(userID, state)
	if err != nil {
		return nil, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (*directory.User, error) {
		return directory.PutUser(ctx, tx, userID, state, link)
	})
}

// idOf is the id of a user that may have been made just now.
func idOf(userID string, state questions.UserState) (string, error) {
	if userID != "" {
		return userID, nil
	}
	var record struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(state.User, &record); err != nil || record.ID == "" {
		return "", fmt.Errorf("the users service has answered with no user: %w", err)
	}
	return record.ID, nil
}

// drop deletes the intent of a change that was not made.
func (s *Users) drop(ctx context.Context, j job) error {
	if !j.stored {
		return nil
	}
	return docstore.Do(docstore.OutsideTheAnswer(ctx), s.Store, func(tx *docstore.Tx) error {
		return intents.DeleteWhere(ctx, tx, docstore.ID(j.change.ID), nil)
	})
}

// DueIntents lists intents that requests have left open because a service died or did not answer.
func DueIntents(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return intents.Due(ctx, s, limit)
}

// Finish ends an intent that a request has left open.
func (s *Users) Finish(ctx context.Context, id string) error {
	doc, err := intents.Find(ctx, s.Store, id)
	if err != nil {
		return err
	}
	i, err := doc.Value()
	if err != nil {
		return err
	}
	ctx = request.With(ctx, request.Info{ID: i.RequestID, Tenant: i.TenantID, Actor: i.Actor,
		PayloadOrigin: i.PayloadOrigin})
	outcome, err := questions.SettleUserChange.Ask(ctx, s.Bus, questions.ChangeID{ID: id})
	if err != nil {
		return err
	}
	if !outcome.Applied {
		return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
			return intents.DeleteWhere(ctx, tx, docstore.ID(id), nil)
		})
	}
	if len(outcome.User) == 0 && i.UserID == "" { // made, and deleted since
		return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
			return intents.DeleteWhere(ctx, tx, docstore.ID(id), nil)
		})
	}
	_, err = s.fulfil(ctx, id, i.UserID, outcome.UserState, directory.Link{
		ConnectionID: i.ConnectionID, ExternalID: i.ExternalID, Gone: i.Gone, Deleted: i.Deleted, Event: i.Event,
	}, true)
	if err != nil {
		return err
	}
	return connection.FreeLate(ctx, s.Store, i.ConnectionID)
}

// unclear reports whether it is unknown, after err, if the change was made. Every other error is a refusal.
func unclear(err error) bool {
	switch apperr.KindOf(err) {
	case apperr.Unavailable, apperr.OutcomeUnknown, apperr.Internal:
		return true
	}
	return false
}

func asError(err error) (*apperr.Error, bool) {
	if _, typed := errors.AsType[*scim.Error](err); typed {
		return nil, false
	}
	return errors.AsType[*apperr.Error](err)
}
