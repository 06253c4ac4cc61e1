// Package invitation lets people choose a first password, or set up a first passkey: an administrator has a link mailed
// to them.
//
//	Invite ──▶ a mail with a link and a code ──▶ the link's page, whose button leads to Open
//	                                              │
//	                                              ▼
//	                      a flow that asks for a password or a passkey, and sets it while Still holds
//	                                              │
//	       the user has a password or a passkey ──▶ Accept, AcceptBy: the invitation and its link have ended
//
// A user has one invitation at most. Sending it again ends its former link. A link serves only while the user has the
// address that it was sent to, may sign in, has no password, and no scope of the platform's API: whoever may change an
// address or a mail server can read the link, and must not become an administrator by it.
package invitation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/work"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/message"
	"github.com/idplatform/idplatform/services/sign-in/internal/page"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/settings"
)

// Invitation is a user's. It has the user's id, and the same JSON form in the API, in events and in the store.
type Invitation struct {
	docstore.Meta
	Email        string     `json:"email" readOnly:"true" doc:"Where the mail goes" example:"li.wei@acme.test"`
	AppID        string     `json:"application_id" readOnly:"true" doc:"The application that opens once the password is chosen; empty: the person's own page" example:"1048577"`
	Status       Status     `json:"status" readOnly:"true" enum:"pending,accepted,expired" doc:"Accepted: the user has a password or a passkey now"`
	InvitedBy    string     `json:"invited_by" readOnly:"true" doc:"The actor who has sent it last" example:"client:console"`
	ExpiresHours int        `json:"expires_hours" readOnly:"true" doc:"How long a link works" example:"168"`
	TimeSent     clock.Time `json:"time_sent" readOnly:"true" doc:"When it was sent last"`
	TimeExpires  clock.Time `json:"time_expires" readOnly:"true" doc:"When its link ends"`
	TimeEnded    clock.Time `json:"time_ended" readOnly:"true" nullable:"true" doc:"When it was accepted or expired; null: it is pending"`
}

// Status is what has become of an invitation.
type Status string

// The values of Status.
const (
	Pending  Status = "pending"
	Accepted Status = "accepted"
	Expired  Status = "expired"
)

// kept is how long an invitation is known after it has ended.
const kept = 30 * 24 * time.Hour

const (
	byStatus = "status"
	bySent   = "time_sent"
)

var invitations = outbox.Define("invitation", "/invitations", docstore.Schema[Invitation]{
	Name: "invitations", Noun: "invitation", Sortable: []string{bySent},
	Indexes: []docstore.Index[Invitation]{
		docstore.ByText(byStatus, func(i *Invitation) string { return string(i.Status) }),
		docstore.ByNumber(bySent, func(i *Invitation) docstore.Value { return docstore.Moment(i.TimeSent) }),
	},
	Due: func(i *Invitation) clock.Time {
		if i.Status == Pending {
			return i.TimeExpires
		}
		return i.TimeEnded.Add(kept)
	},
})

// link is the way in of a pending invitation. Its id is made of the code, which only the mail has.
type link struct {
	docstore.Meta
	UserID string `json:"user_id"`
	MailID string `json:"mail_id"`
}

const byUser = "user_id"

var links = docstore.Define(docstore.Schema[link]{
	Name: "invitation_links", Noun: "link",
	Indexes: []docstore.Index[link]{docstore.ByText(byUser, func(l *link) string { return l.UserID })},
})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def {
	return []*docstore.Def{invitations.Def(), links.Def(), newcomers.Def()}
}

// Due lists the invitations that expire, or are to be forgotten.
var Due = invitations.Due

// Doc is an invitation as read or written.
type Doc = docstore.Doc[Invitation]

// Clients know the applications of the tenant. Errors are apperr.NotFound and Unavailable.
type Clients interface {
	Of(ctx context.Context, name questions.ClientName) (questions.Client, error)
}

// Config is what Invitations need. All is required.
type Config struct {
	Store    *docstore.Store
	Bus      *bus.Bus
	Messages *message.Sender
	Clients  Clients
	Log      *slog.Logger
	Metrics  prometheus.Registerer
}

// Invitations are the use cases, and what invites imported users in one replica.
type Invitations struct {
	*work.Queue[newcomer, *newcomer]
	Config
}

// Terms are what whoever invites decides.
type Terms struct {
	ExpiresHours int    `json:"expires_hours,omitempty" minimum:"1" maximum:"720" doc:"How long the link works; the default is 168, a week" example:"168"`
	AppID        string `json:"application_id,omitempty" maxLength:"64" doc:"An application that opens once the password is chosen; the default is the person's own page" example:"1048577"`
}

const (
	week    = 168
	maxAsks = 8 // at once
)

// check completes the terms of a request.
func (s *Invitations) check(ctx context.Context, t *Terms) error {
	if t.ExpiresHours == 0 {
		t.ExpiresHours = week
	}
	ok, err := s.isEnabled(ctx, t.AppID)
	if err == nil && !ok {
		err = apperr.Invalid("application_id", "is not an enabled application")
	}
	return err
}

// isEnabled reports whether an application is enabled; true without one.
func (s *Invitations) isEnabled(ctx context.Context, appID string) (bool, error) {
	if appID == "" {
		return true, nil
	}
	app, err := s.Clients.Of(ctx, questions.ClientName{AppID: appID})
	return err == nil && app.Enabled, apperr.Ignore(err, apperr.NotFound)
}

// refusals say why a user cannot be invited.
var refusals = map[string]string{
	questions.HasPassword: "has a password already", questions.HasNoEmail: "has no email address",
	questions.HasScopes: "has a scope of the platform's API: give them a password instead",
}

// find returns the user with an id, if they can be invited. The error is apperr.NotFound, InvalidState or Unavailable.
func (s *Invitations) find(ctx context.Context, id string) (*person.User, error) {
	may, err := questions.InvitableUser.Ask(ctx, s.Bus, questions.UserToInvite{UserID: id})
	if err != nil {
		return nil, err
	}
	if may.Reason != "" {
		why, ok := refusals[may.Reason]
		if !ok {
			why = "is " + may.Reason
		}
		return nil, apperr.New(apperr.InvalidState, "the user %s", why)
	}
	return person.Parse(may.User)
}

// Invite sends an invitation to a user, or sends it again with other terms. The error is apperr.NotFound,
// InvalidParameters (application_id), InvalidState (the user has a password, no address, or a scope, or may not sign
// in; or there is no mail server), RateLimited or Unavailable.
func (s *Invitations) Invite(ctx context.Context, userID string, terms Terms) (Doc, error) {
	if err := s.check(ctx, &terms); err != nil {
		return Doc{}, err
	}
	return s.invite(ctx, userID, terms, func(*docstore.Tx) error { return nil })
}

// invite is Invite with terms that are checked. may is part of the transaction, before anything else.
func (s *Invitations) invite(ctx context.Context, userID string, terms Terms, may func(*docstore.Tx) error) (Doc,
	error,
) {
	by, err := s.Messages.Check(ctx)
	if err != nil {
		return Doc{}, err
	}
	user, err := s.find(ctx, userID)
	if err != nil {
		return Doc{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		if err := may(tx); err != nil {
			return Doc{}, err
		}
		docs, err := s.send(ctx, tx, terms, message.Inviting{By: by}, user)
		if err != nil {
			return Doc{}, err
		}
		return docs[0], nil
	})
}

// InviteMany sends invitations to all users or to none. A user who cannot be invited, or is given twice, is a fault at
// ids[i]; other errors are those of Invite.
func (s *Invitations) InviteMany(ctx context.Context, ids []string, terms Terms) (docstore.Batch, error) {
	if err := s.check(ctx, &terms); err != nil {
		return docstore.Batch{}, err
	}
	by, err := s.Messages.Check(ctx)
	if err != nil {
		return docstore.Batch{}, err
	}
	users, err := s.findMany(ctx, ids)
	if err != nil {
		return docstore.Batch{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (docstore.Batch, error) {
		docs, err := s.send(ctx, tx, terms, message.Inviting{By: by}, users...)
		if err != nil {
			return docstore.Batch{}, err
		}
		return docstore.BatchOf(docs)
	})
}

func (s *Invitations) findMany(ctx context.Context, ids []string) ([]*person.User, error) {
	users, errs := make([]*person.User, len(ids)), make([]error, len(ids))
	var group errgroup.Group
	group.SetLimit(maxAsks)
	for i, id := range ids {
		group.Go(func() (err error) {
			users[i], errs[i] = s.find(ctx, id)
			if apperr.KindOf(errs[i]) == apperr.Unavailable && errs[i] != nil {
				return errs[i]
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var faults apperr.Faults
	for i, err := range errs {
		at := apperr.Item("ids", i)
		faults.Check(!slices.Contains(ids[:i], ids[i]), at, "is given twice")
		switch kind := apperr.KindOf(err); {
		case err == nil:
		case kind == apperr.NotFound:
			faults.Add(at, "is not a user")
		case kind == apperr.InvalidState:
			faults.Add(at, "cannot be invited: %s", err)
		default:
			return nil, err
		}
	}
	return users, faults.Err()
}

// send makes invitations pending, and has them mailed.
func (s *Invitations) send(ctx context.Context, tx *docstore.Tx, terms Terms, how message.Inviting,
	users ...*person.User) ([]Doc, error) {
	of, err := settings.In(ctx, tx)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(users))
	for i, u := range users {
		ids[i] = u.ID
	}
	found, err := invitations.LoadMany(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	known := map[string]*Invitation{}
	for _, i := range found {
		known[i.ID] = i
	}
	if err := endLinks(ctx, tx, found...); err != nil {
		return nil, err
	}
	mails, ways, docs := make([]message.Message, len(users)), make([]*link, len(users)), make([]Doc, len(users))
	for i, u := range users {
		v := known[u.ID]
		if v == nil {
			v = &Invitation{Meta: docstore.Meta{ID: u.ID}}
		}
		v.Email, v.AppID, v.Status, v.TimeEnded = u.Email, terms.AppID, Pending, clock.Time{}
		v.InvitedBy, v.ExpiresHours = request.From(ctx).Actor, terms.ExpiresHours
		v.TimeSent, v.TimeExpires = tx.Now, tx.Now.Add(time.Duration(terms.ExpiresHours)*time.Hour)
		if known[u.ID] == nil {
			docs[i], err = invitations.Insert(ctx, tx, v)
		} else {
			docs[i], err = invitations.As("resent").Revise(ctx, tx, v)
		}
		if err != nil {
			return nil, err
		}
		code := message.NewCode(message.LinkSigns)
		ways[i] = &link{Meta: docstore.Meta{ID: linkID(code)}, UserID: u.ID}
		mails[i] = message.Message{
			Kind: message.Invitation, UserID: u.ID, To: u.Email, Name: u.Name(), LoginName: u.Username,
			Locale: page.Language(u.Locale, of.Locale), Code: secret.New(code), Ends: v.TimeExpires,
		}
	}
	sent, err := s.Messages.SubmitInvitations(ctx, tx, how, mails)
	if err != nil {
		return nil, err
	}
	for i, id := range sent {
		ways[i].MailID = id
	}
	_, err = links.InsertMany(ctx, tx, func(int) string { return "" }, ways...)
	return docs, err
}

// linkID is the id of the link with a code. Who reads the store does not learn the code from it.
func linkID(code string) string {
	sum := sha256.Sum256([]byte("invitation " + code))
	return hex.EncodeToString(sum[:])
}

// endLinks deletes the links of invitations, and their mails where these have not been sent yet.
func endLinks(ctx context.Context, tx *docstore.Tx, of ...*Invitation) error {
	if len(of) == 0 {
		return nil
	}
	users := make([]docstore.Value, len(of))
	for i, v := range of {
		users[i] = docstore.Text(v.ID)
	}
	found, err := links.LoadWhere(ctx, tx, docstore.In(byUser, users...), "", len(of))
	if err != nil {
		return err
	}
	mails := make([]string, len(found))
	for i, way := range found {
		mails[i] = way.MailID
		if _, err := links.Delete(ctx, tx, way); err != nil {
			return err
		}
	}
	return message.Withdraw(ctx, tx, mails)
}

// Resend sends an invitation again: with a new link, for as long as before, without its application if that is not
// enabled any more. The former link ends. The errors are VersionMismatch and those of Invite.
func (s *Invitations) Resend(ctx context.Context, id string) (Doc, error) {
	doc, err := invitations.Find(ctx, s.Store, id)
	if err != nil {
		return Doc{}, err
	}
	was, err := doc.Value()
	if err != nil {
		return Doc{}, err
	}
	terms := Terms{was.ExpiresHours, was.AppID}
	enabled, err := s.isEnabled(ctx, terms.AppID)
	if err != nil {
		return Doc{}, err
	}
	if !enabled {
		terms.AppID = ""
	}
	return s.invite(ctx, id, terms, func(tx *docstore.Tx) error {
		_, err := invitations.Load(ctx, tx, id) // revoked meanwhile, or another version than the caller knows
		return err
	})
}

// Revoke deletes an invitation: its link ends. The error is apperr.NotFound or VersionMismatch.
func (s *Invitations) Revoke(ctx context.Context, id string) (docstore.Deleted, error) {
	return invitations.Remove(ctx, s.Store, id, func(tx *docstore.Tx, i *Invitation) error {
		if err := newcomers.DeleteWhere(ctx, tx, docstore.ID(id), nil); err != nil { // else it would come back
			return err
		}
		return endLinks(ctx, tx, i)
	})
}

// Get returns an invitation. The error is apperr.NotFound.
func (s *Invitations) Get(ctx context.Context, id string) (Doc, error) {
	return invitations.Find(ctx, s.Store, id)
}

// Filter selects invitations. An empty member means any.
type Filter struct {
	docstore.Paging
	Status string `query:"status" enum:"pending,accepted,expired" doc:"Those with this status" example:"pending"`
}

// List returns a page of invitations.
func (s *Invitations) List(ctx context.Context, f Filter) (docstore.Page[Invitation], error) {
	return invitations.List(ctx, s.Store, docstore.EqOrAll(byStatus, f.Status), f.Paging)
}

// Opened is an invitation whose link is good.
type Opened struct {
	LinkID, AppID string
	Email         string
	User          *person.User
	SignedIn      questions.SignedIn // the user's record
}

// maxCode bounds what may be sent as a code, in bytes.
const maxCode = 128

// Open returns the invitation with a code; nil if there is none that is good. Nothing is used up: the link ends once
// the user has a password. The error may be apperr.Unavailable.
func (s *Invitations) Open(ctx context.Context, code string) (*Opened, error) {
	if len(code) > maxCode {
		return nil, nil
	}
	return s.Still(ctx, linkID(message.ReadCode(code)))
}

// Still returns the invitation with a link; nil if the link is not good any more. The error may be apperr.Unavailable.
func (s *Invitations) Still(ctx context.Context, linkID string) (*Opened, error) {
	way, i, err := s.pending(ctx, linkID)
	if err != nil {
		return nil, apperr.Ignore(err, apperr.NotFound)
	}
	may, err := questions.InvitableUser.Ask(ctx, s.Bus, questions.UserToInvite{UserID: way.UserID})
	if err != nil {
		return nil, apperr.Ignore(err, apperr.NotFound)
	}
	if may.Reason != "" {
		return nil, nil
	}
	user, err := person.Parse(may.User)
	if err != nil || user.Email != i.Email {
		return nil, err
	}
	return &Opened{LinkID: linkID, AppID: i.AppID, Email: i.Email, User: user, SignedIn: may.SignedIn}, nil
}

// Pending reports whether a link has not ended. It asks no other service, as Still does.
func (s *Invitations) Pending(ctx context.Context, linkID string) (bool, error) {
	_, _, err := s.pending(ctx, linkID)
	return err == nil, apperr.Ignore(err, apperr.NotFound)
}

// pending returns a link and its invitation. The error is apperr.NotFound if the link has ended.
func (s *Invitations) pending(ctx context.Context, linkID string) (*link, *Invitation, error) {
	doc, err := links.Find(ctx, s.Store, linkID)
	if err != nil {
		return nil, nil, err
	}
	way, err := doc.Value()
	if err != nil {
		return nil, nil, err
	}
	of, err := invitations.Find(ctx, s.Store, way.UserID)
	if err != nil {
		return nil, nil, err
	}
	i, err := of.Value()
	if err == nil && (i.Status != Pending || !s.Store.Now().Before(i.TimeExpires)) {
		err = apperr.Missing("invitation")
	}
	return way, i, err
}

// Accept ends the pending invitation of a user who has a password now, if there is one.
func (s *Invitations) Accept(ctx context.Context, userID string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		found, err := invitations.LoadMany(ctx, tx, []string{userID})
		if err != nil || len(found) == 0 || found[0].Status != Pending {
			return err
		}
		return end(ctx, tx, found[0], Accepted)
	})
}

// ErrEnded says that an invitation, or a link of it, has ended.
var ErrEnded = apperr.New(apperr.InvalidState, "the invitation has ended")

// AcceptBy ends the pending invitation of a user by a link, in the transaction in which the user gets what the link is
// for. The error is ErrEnded.
func AcceptBy(ctx context.Context, tx *docstore.Tx, userID, linkID string) error {
	way, err := links.LoadMany(ctx, tx, []string{linkID})
	if err != nil {
		return err
	}
	found, err := invitations.LoadMany(ctx, tx, []string{userID})
	if err != nil {
		return err
	}
	if len(way) == 0 || way[0].UserID != userID || len(found) == 0 || found[0].Status != Pending ||
		!tx.Now.Before(found[0].TimeExpires) {
		return ErrEnded
	}
	return end(ctx, tx, found[0], Accepted)
}

func end(ctx context.Context, tx *docstore.Tx, i *Invitation, status Status) error {
	if err := endLinks(ctx, tx, i); err != nil {
		return err
	}
	i.Status, i.TimeEnded = status, tx.Now
	_, err := invitations.As(string(status)).Replace(ctx, tx, i)
	return err
}

// Apply ends an invitation that has expired, and deletes one that has ended long ago.
func (s *Invitations) Apply(ctx context.Context, id string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		i, err := invitations.Load(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case i.Status == Pending && tx.Now.Before(i.TimeExpires): // sent again meanwhile
			return nil
		case i.Status == Pending:
			return end(ctx, tx, i, Expired)
		case tx.Now.Before(i.TimeEnded.Add(kept)):
			return nil
		}
		_, err = invitations.Collection.Delete(ctx, tx, i) // no event: it has ended
		return err
	})
}

// Forget deletes the invitation of a user who is deleted.
func Forget(ctx context.Context, tx *docstore.Tx, userID string) error {
	found, err := invitations.LoadMany(ctx, tx, []string{userID})
	if err != nil || len(found) == 0 {
		return err
	}
	if err := endLinks(ctx, tx, found...); err != nil {
		return err
	}
	_, err = invitations.Delete(ctx, tx, found[0])
	return err
}
