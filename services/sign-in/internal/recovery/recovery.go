// Package recovery lets people set a new password who have forgotten theirs: a code that is mailed to them proves who
// they are.
//
//	login name ──▶ Ask ──▶ look up, later ──▶ a mail with a code, or nothing
//	                │
//	                └──▶ the same page, at once, for every name ──▶ Try ──▶ Spend, with the flow's next step
//
// A stranger sees the same page after the same time, whether the login name exists or not. A code belongs to one flow,
// and so to one browser. A newer code of the same flow ends it; a request from another browser does not.
package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/work"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/message"
	"github.com/idplatform/idplatform/services/sign-in/internal/page"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
)

const (
	lifetime = message.Minutes * time.Minute // of a code
	maxTries = 5
	// A look-up that fails is tried again after pause, then after twice as long, and so on up to maxPause.
	pause    = 5 * time.Second
	maxPause = 30 * time.Second
)

// ticket is a flow's request for a code, and has the flow's id. It is stored for every login name, and gets a code only
// if the name is a person's.
type ticket struct {
	docstore.Meta
	Request   string     `json:"request"` // the id of the newest request for a code
	Sealed    string     `json:"sealed"`  // the newest code that was sent; empty: none was
	UserID    string     `json:"user_id"`
	LoginName string     `json:"login_name"`
	To        string     `json:"to"` // the mail address
	CodeEnds  clock.Time `json:"code_ends"`
	Tries     int        `json:"tries"`
	// TimePasswordChanged says which password is forgotten: once there is a newer one, the code is of no use.
	TimePasswordChanged clock.Time `json:"time_password_changed"`
	TimeExpires         clock.Time `json:"time_expires"` // not before the code
}

var tickets = docstore.Define(docstore.Schema[ticket]{
	Name: "recoveries", Noun: "recovery", Due: func(t *ticket) clock.Time { return t.TimeExpires },
})

// pendingRequest is a request for a code whose login name is to be looked up.
type pendingRequest struct {
	work.Item
	Request
	FlowID string     `json:"flow_id"`
	Ends   clock.Time `json:"ends"`
}

// Request is a request for a code, and what is known of its sender.
type Request struct {
	LoginName string   `json:"login_name"`
	Locale    string   `json:"locale"`   // of the page
	Browser   string   `json:"browser"`  // the hash of its cookie
	KnownTo   []string `json:"known_to"` // ids of users who have signed in with the browser
}

var requests = work.Define(docstore.Schema[pendingRequest]{Name: "recovery_requests", Noun: "request for a code"})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{tickets.Def(), requests.Def()} }

// Due lists the tickets to forget.
var Due = tickets.Due

// Config is what Recoveries need. All is required.
type Config struct {
	Store    *docstore.Store
	Bus      *bus.Bus
	Keys     *secret.Keyring
	Messages *message.Sender
	Log      *slog.Logger
	Metrics  prometheus.Registerer
}

// Recoveries are the use cases, and what carries them out in one replica.
type Recoveries struct {
	*work.Queue[pendingRequest, *pendingRequest]
	Config
}

// New makes the use cases.
func New(c Config) *Recoveries {
	r := &Recoveries{Config: c}
	r.Queue = work.NewQueue[pendingRequest](work.Config[pendingRequest]{
		Name: "send recovery codes", Items: requests, Store: c.Store, Log: c.Log, Metrics: c.Metrics,
		Places: fair.Limits{Most: 16, OfTenant: 8}, Time: 10 * time.Second,
		// More than there is time for: a request ends with its Ends.
		Attempts: 100, Pause: func(attempt int64) time.Duration { return min(time.Duration(attempt)*pause, maxPause) },
		Do: r.lookUp,
	})
	return r
}

// Available reports whether the tenant's people can be sent a code, as far as is known.
func (r *Recoveries) Available(ctx context.Context) bool { return r.Messages.Available(ctx) }

// Ask has a code sent to the person with a login name, if there is one who may have it. It is part of the transaction
// that stores the flow. A code that was sent before in the flow ends once there is a newer one.
func (r *Recoveries) Ask(ctx context.Context, tx *docstore.Tx, flowID string, request Request) error {
	q := &pendingRequest{Item: work.New(tx.Now), Request: request, FlowID: flowID, Ends: tx.Now.Add(lifetime)}
	found, err := tickets.LoadMany(ctx, tx, []string{flowID})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		_, err = tickets.Insert(ctx, tx, &ticket{
			Meta: docstore.Meta{ID: flowID}, TimeExpires: q.Ends, Request: q.ID,
		})
	} else {
		found[0].Request, found[0].TimeExpires = q.ID, q.Ends
		_, err = tickets.Replace(ctx, tx, found[0])
	}
	if err != nil {
		return err
	}
	_, err = requests.Insert(ctx, tx, q)
	return err
}

var errLate = errors.New("who has forgotten a password could not be looked up in time")

// lookUp finds the person, and sends the code.
func (r *Recoveries) lookUp(ctx context.Context, q *pendingRequest) work.Outcome {
	if !r.Store.Now().Before(q.Ends) {
		return work.GiveUp(errLate).With("", func(ctx context.Context, tx *docstore.Tx) error {
			return message.TellNotMade(ctx, tx, q.ID, message.Recovery)
		})
	}
	found, err := questions.RecoverableUser.Ask(ctx, r.Bus, questions.LoginName{LoginName: q.LoginName})
	if err != nil {
		return work.Retry(fmt.Errorf("look up who has forgotten a password: %w", err))
	}
	if !found.Found {
		return work.Done()
	}
	user, err := person.Parse(found.User)
	if err != nil {
		return work.GiveUp(fmt.Errorf("the record of who has forgotten a password: %w", err))
	}
	code := message.NewCode(message.CodeSigns)
	m := message.Message{
		Kind: message.Recovery, UserID: user.ID, To: user.Email, Name: user.Name(),
		Locale: page.Language(user.Locale, q.Locale), Code: secret.New(code), Ends: q.Ends,
	}
	by := message.Requester{}
	if slices.Contains(q.KnownTo, user.ID) {
		by.Browser = q.Browser
	}
	return work.Done().With("", func(ctx context.Context, tx *docstore.Tx) error {
		t, err := tickets.Load(ctx, tx, q.FlowID)
		if apperr.IsNotFound(err) || err == nil && t.Request != q.ID { // spent, or asked for again
			return nil
		}
		if err != nil {
			return err
		}
		accepted, err := r.Messages.Submit(ctx, tx, m, by)
		if err != nil || !accepted {
			return err
		}
		t.UserID, t.To, t.TimePasswordChanged = user.ID, user.Email, user.TimePasswordChanged
		t.LoginName, t.CodeEnds, t.Tries = q.LoginName, q.Ends, 0
		t.Sealed = r.Keys.Seal([]byte(code), sealedFor(ctx, q.FlowID))
		_, err = tickets.Replace(ctx, tx, t)
		return err
	})
}

func sealedFor(ctx context.Context, flowID string) []byte {
	return []byte("recovery " + request.Tenant(ctx) + " " + flowID)
}

// maxCode bounds what may be sent as a code, in bytes.
const maxCode = 64

// Right is whose code was right, and what must stay as it was.
type Right struct {
	UserID, LoginName, To string
	TimePasswordChanged   clock.Time
}

// Try counts a try in a flow, and reports whose code it is; nil if it is wrong, ended, or tried too often, or if Still
// is false. A code that is right stays so until Spend. The error may be apperr.Unavailable: then the try does not
// count.
func (r *Recoveries) Try(ctx context.Context, flowID, code string) (*Right, error) {
	if len(code) > maxCode {
		code = ""
	}
	t, err := r.try(ctx, flowID, code)
	if err != nil || t == nil {
		return nil, err
	}
	right := &Right{t.UserID, t.LoginName, t.To, t.TimePasswordChanged}
	still, err := r.Still(ctx, right.UserID, right.LoginName, right.To)
	if err != nil {
		return nil, cmp.Or(r.giveBack(ctx, flowID), err)
	}
	if !still {
		return nil, nil
	}
	return right, nil
}

// Still reports whether a user has the login name and the mail address that a code was sent to, and may have one. The
// error may be apperr.Unavailable.
func (r *Recoveries) Still(ctx context.Context, userID, loginName, to string) (bool, error) {
	now, err := questions.RecoverableUser.Ask(ctx, r.Bus, questions.LoginName{LoginName: loginName})
	if err != nil || !now.Found {
		return false, err
	}
	user, err := person.Parse(now.User)
	return err == nil && user.ID == userID && user.Email == to, err
}

// giveBack takes back a try that could not be looked at.
func (r *Recoveries) giveBack(ctx context.Context, flowID string) error {
	return docstore.Do(ctx, r.Store, func(tx *docstore.Tx) error {
		found, err := tickets.LoadMany(ctx, tx, []string{flowID})
		if err != nil || len(found) == 0 || found[0].Tries == 0 {
			return err
		}
		found[0].Tries--
		_, err = tickets.Replace(ctx, tx, found[0])
		return err
	})
}

// try returns the ticket of a flow if the code is right.
func (r *Recoveries) try(ctx context.Context, flowID, code string) (*ticket, error) {
	return docstore.Write(ctx, r.Store, func(tx *docstore.Tx) (*ticket, error) {
		found, err := tickets.LoadMany(ctx, tx, []string{flowID})
		if err != nil || len(found) == 0 {
			return nil, err
		}
		t := found[0]
		if t.Tries++; t.Tries > maxTries || !tx.Now.Before(t.TimeExpires) {
			return nil, nil
		}
		if _, err := tickets.Replace(ctx, tx, t); err != nil {
			return nil, err
		}
		if t.Sealed == "" || !tx.Now.Before(t.CodeEnds) {
			return nil, nil
		}
		right, err := r.Keys.Open(t.Sealed, sealedFor(ctx, flowID))
		if err != nil {
			return nil, err
		}
		if !secret.Equal(string(right), message.ReadCode(code)) {
			return nil, nil
		}
		return t, nil
	})
}

// ErrSpent says that another form was faster with the code, or that it has ended.
var ErrSpent = apperr.New(apperr.VersionMismatch, "the code has been used")

// Spend ends the code of a flow, in the transaction that stores what it was good for. The error is ErrSpent.
func (r *Recoveries) Spend(ctx context.Context, tx *docstore.Tx, flowID string) error {
	found, err := tickets.LoadMany(ctx, tx, []string{flowID})
	if err != nil {
		return err
	}
	if len(found) == 0 || found[0].Sealed == "" || !tx.Now.Before(found[0].CodeEnds) {
		return ErrSpent
	}
	_, err = tickets.Delete(ctx, tx, found[0])
	return err
}

// Forget deletes a ticket whose code has ended.
func (r *Recoveries) Forget(ctx context.Context, id string) error {
	return docstore.Do(ctx, r.Store, func(tx *docstore.Tx) error {
		t, err := tickets.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		if tx.Now.Before(t.TimeExpires) { // asked for again
			return nil
		}
		_, err = tickets.Delete(ctx, tx, t)
		return err
	})
}
