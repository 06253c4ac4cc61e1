package signin

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/consent"
	"github.com/idplatform/idplatform/services/sign-in/internal/factor"
	"github.com/idplatform/idplatform/services/sign-in/internal/invitation"
	"github.com/idplatform/idplatform/services/sign-in/internal/link"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
	"github.com/idplatform/idplatform/services/sign-in/internal/session"
)

// onUser keeps the copies of users up to date, and ends the sessions of those who may not sign in any more or have a
// new password.
func (a *app) onUser(ctx context.Context, e stream.Event) error {
	switch {
	case strings.HasSuffix(e.Type, ".deleted"):
		return a.forgetUser(ctx, e.Subject)
	case strings.HasSuffix(e.Type, ".created"):
		return a.onCreated(ctx, e) // who has signed in since is known in a newer state
	case strings.HasSuffix(e.Type, ".password_changed"):
		if err := a.invitations.Accept(ctx, e.Subject); err != nil {
			return err
		}
	}
	if _, err := person.Find(ctx, a.Store, e.Subject); err != nil {
		return apperr.Ignore(err, apperr.NotFound) // most users never sign in
	}
	var data struct {
		Record json.RawMessage `json:"record"`
	}
	if err := e.Read(&data); err != nil {
		return err
	}
	kept, err := person.Update(ctx, a.Store, e.Subject, questions.SignedIn{User: data.Record, Sequence: e.Sequence})
	if err != nil || kept == nil {
		return err
	}
	// What ends follows from the newest state, also if a sign-in has brought that before its event.
	user, err := person.Parse(kept.User)
	if err != nil {
		return err
	}
	if user.Gone(a.Store.Now()) {
		return a.endUser(ctx, e.Subject)
	}
	if user.TimePasswordChanged.IsZero() {
		return nil
	}
	set := user.TimePasswordChanged
	if err := a.sessions.EndBefore(ctx, e.Subject, proof.Password, set, session.NewPassword); err != nil {
		return err
	}
	return oidc.EndBefore(ctx, a.Store, e.Subject, proof.Password, set)
}

// onCreated has a user invited whose import asks for it.
func (a *app) onCreated(ctx context.Context, e stream.Event) error {
	if !bytes.Contains(e.Data, []byte(questions.Invite)) { // most events are not decoded
		return nil
	}
	var data struct {
		Invite bool `json:"invite"` // questions.Invite
	}
	if err := e.Read(&data); err != nil || !data.Invite {
		return err
	}
	return a.invitations.Await(ctx, e.Subject, e.Actor)
}

// onFactorDeleted ends what rests on a factor that is deleted.
func (a *app) onFactorDeleted(ctx context.Context, e stream.Event) error {
	var data struct {
		Record struct {
			UserID string `json:"user_id"`
		} `json:"record"`
	}
	if err := e.Read(&data); err != nil {
		return err
	}
	user, gone := data.Record.UserID, proof.OfFactor(e.Subject)
	if err := a.sessions.EndBefore(ctx, user, gone, proof.Whenever, session.FactorGone); err != nil {
		return err
	}
	return oidc.EndBefore(ctx, a.Store, user, gone, proof.Whenever)
}

// onConnection ends what rests on a connection that is disabled or deleted.
func (a *app) onConnection(ctx context.Context, e stream.Event) error {
	if err := link.End(ctx, a.Store, proof.Upstream(e.Subject)); err != nil {
		return err
	}
	if err := a.sessions.EndThrough(ctx, e.Subject); err != nil {
		return err
	}
	return oidc.EndConnection(ctx, a.Store, e.Subject)
}

// onLink ends what rests on a link that is deleted, disabled or of another identity.
func (a *app) onLink(ctx context.Context, e stream.Event) error {
	var data struct {
		Record struct {
			UserID int64  `json:"user_id"`
			Status string `json:"status"`
		} `json:"record"`
		Previous map[string]json.RawMessage `json:"previous"`
	}
	if err := e.Read(&data); err != nil {
		return err
	}
	if strings.HasSuffix(e.Type, ".updated") && !changesWhoSignsIn(data.Previous, data.Record.Status) {
		return nil
	}
	gone, user := proof.OfLink(e.Subject), strconv.FormatInt(data.Record.UserID, 10)
	if err := link.End(ctx, a.Store, gone); err != nil {
		return err
	}
	if err := a.sessions.EndBefore(ctx, user, gone, proof.Whenever, session.LinkGone); err != nil {
		return err
	}
	return oidc.EndBefore(ctx, a.Store, user, gone, proof.Whenever)
}

// changesWhoSignsIn reports whether a change of a stored credential, from some former values, is not only one of names.
// Who signed in by it before cannot do so any more.
func changesWhoSignsIn(previous map[string]json.RawMessage, status string) bool {
	for _, member := range []string{"provider_code", "idp_config_id", "id1"} {
		if _, changed := previous[member]; changed {
			return true
		}
	}
	_, changed := previous["status"]
	return changed && status != "1"
}

// endUser ends the sessions of a user who may not sign in any more, and what applications may do without one.
func (a *app) endUser(ctx context.Context, id string) error {
	if err := a.sessions.EndOfUser(ctx, id); err != nil {
		return err
	}
	return oidc.EndUser(ctx, a.Store, id)
}

// forgetUser ends the sessions of a deleted user, and deletes all that is known of it.
func (a *app) forgetUser(ctx context.Context, id string) error {
	if err := a.endUser(ctx, id); err != nil {
		return err
	}
	return docstore.Do(ctx, a.Store, func(tx *docstore.Tx) error {
		if err := person.Forget(ctx, tx, id); err != nil {
			return err
		}
		if err := session.ForgetUser(ctx, tx, id); err != nil {
			return err
		}
		if err := factor.Forget(ctx, tx, id); err != nil {
			return err
		}
		if err := invitation.Forget(ctx, tx, id); err != nil {
			return err
		}
		return consent.Forget(ctx, tx, id, "")
	})
}

// onApplication ends the tokens of an application that is disabled or deleted, and deletes the consents for one that is
// deleted.
func (a *app) onApplication(ctx context.Context, e stream.Event) error {
	if err := a.provider.EndApplication(ctx, e.Subject); err != nil || !strings.HasSuffix(e.Type, ".deleted") {
		return err
	}
	return docstore.Do(ctx, a.Store, func(tx *docstore.Tx) error { return consent.Forget(ctx, tx, "", e.Subject) })
}
