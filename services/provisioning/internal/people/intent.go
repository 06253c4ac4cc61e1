package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/change"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/provisioning/internal/directory"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/mapping"
	"github.com/idplatform/idplatform/services/questions"
)

// intent is a link as it will be once the users service has made a change.
type intent struct {
	change.Intent
	ConnectionID string  `json:"connection_id"`
	UserID       string  `json:"user_id"`  // "" of a user that is being made
	Claim        string  `json:"claim"`    // see claimOf
	Replaces     string  `json:"replaces"` // the user whose link ends
	ExternalID   *string `json:"external_id"`
	Gone         *bool   `json:"gone"`
	Deleted      bool    `json:"deleted"`
	Event        string  `json:"event"`
}

var intents = change.Define(docstore.Schema[intent]{
	Name: "user_intents", Noun: "intent",
	Indexes: []docstore.Index[intent]{
		docstore.Unique(docstore.ByText("claim", func(i *intent) string { return i.Claim }), "externalId"),
	},
}, 10*time.Second, func(i *intent) *change.Intent { return &i.Intent })

// update is a change of a user together with that of its link.
type update struct {
	call     Call
	change   questions.UserChange
	link     directory.Link
	claim    string
	replaces *directory.User
	stored   bool // the link changes, so the intent is stored first
}

// execute lets the users service make a change, and stores the link and the copy. What that service does not take of
// the members that a user can do without is left out and noted as ignored. The error is a refusal, Unavailable if
// nothing was changed, or OutcomeUnknown: then Finish stores the link later.
func (s *Users) execute(ctx context.Context, j update) (*directory.User, error) {
	u, err := s.executeAll(ctx, j)
	if left, is := j.without(err); is {
		return s.executeAll(ctx, left)
	}
	return u, err
}

// dispensable are members that a user can do without: a bad one must not keep the rest from being carried out.
var dispensable = []string{"email", "locale", "zoneinfo"}

// without returns the update without the members that err refuses, unless it refuses others, too.
func (j update) without(err error) (update, bool) {
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

func (s *Users) executeAll(ctx context.Context, j update) (*directory.User, error) {
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
	steps := change.Steps[intent, questions.UserState, *directory.User]{
		ID: j.change.ID,
		Check: func(ctx context.Context, tx *docstore.Tx) error {
			if j.replaces != nil {
				if err := directory.Forget(ctx, tx, j.replaces.ID); err != nil {
					return err
				}
			}
			return directory.CheckExternal(ctx, tx, j.link, j.change.UserID)
		},
		Ask: func(ctx context.Context) (questions.UserState, error) {
			return questions.ChangeUser.Ask(ctx, s.Bus, j.change)
		},
		Refusal: toSCIMError,
		Settle:  s.settle,
		Complete: func(ctx context.Context, id string, state questions.UserState) (*directory.User, error) {
			return s.complete(ctx, id, j.change.UserID, state, j.link, j.stored)
		},
	}
	if j.stored {
		steps.Intent = j.intent()
	}
	return change.Run(ctx, s.Store, intents, steps)
}

func (s *Users) settle(ctx context.Context, id string) (questions.UserState, bool, error) {
	outcome, err := questions.SettleUserChange.Ask(ctx, s.Bus, questions.ChangeID{ID: id})
	return outcome.UserState, outcome.Applied, err
}

// tryOut answers a dry run.
func (s *Users) tryOut(ctx context.Context, j update) (*directory.User, error) {
	j.change.DryRun = true
	state, err := questions.ChangeUser.Ask(ctx, s.Bus, j.change)
	if err != nil {
		return nil, toSCIMError(err)
	}
	return s.put(ctx, j.change.UserID, state, j.link)
}

func (j *update) intent() *intent {
	i := intent{
		ConnectionID: j.link.ConnectionID, UserID: j.change.UserID, Claim: j.claim,
		ExternalID: j.link.ExternalID, Gone: j.link.Gone, Deleted: j.link.Deleted, Event: j.link.Event,
	}
	if j.replaces != nil {
		i.Replaces = j.replaces.ID
	}
	return &i
}

// complete stores the link and the copy of a change that was made. It ends the intent; if another replica has done so,
// it returns what that has stored.
func (s *Users) complete(
	ctx context.Context, id, userID string, state questions.UserState, link directory.Link, stored bool,
) (*directory.User, error) {
	userID, err := idOf(userID, state)
	if err != nil {
		return nil, err
	}
	return docstore.Write(docstore.WithoutCommitHook(ctx), s.Store, func(tx *docstore.Tx) (*directory.User, error) {
		if stored {
			i, err := intents.End(ctx, tx, id)
			if err != nil {
				return nil, err
			}
			if i == nil {
				link = directory.Link{ConnectionID: link.ConnectionID} // the link is stored already
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

// DueIntents lists intents that requests have left open because a service died or did not answer.
func DueIntents(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return intents.Due(ctx, s, limit)
}

// Finish ends an intent that a request has left open.
func (s *Users) Finish(ctx context.Context, id string) error {
	ctx, i, err := intents.Resume(ctx, s.Store, id)
	if err != nil {
		return err
	}
	state, made, err := s.settle(ctx, id)
	if err != nil {
		return err
	}
	deletedSince := len(state.User) == 0 && i.UserID == ""
	if !made || deletedSince {
		return intents.Drop(ctx, s.Store, id)
	}
	_, err = s.complete(ctx, id, i.UserID, state, directory.Link{
		ConnectionID: i.ConnectionID, ExternalID: i.ExternalID, Gone: i.Gone, Deleted: i.Deleted, Event: i.Event,
	}, true)
	if err != nil {
		return err
	}
	return connection.FreeLate(ctx, s.Store, i.ConnectionID)
}

func asError(err error) (*apperr.Error, bool) {
	if _, typed := errors.AsType[*scim.Error](err); typed {
		return nil, false
	}
	return errors.AsType[*apperr.Error](err)
}
