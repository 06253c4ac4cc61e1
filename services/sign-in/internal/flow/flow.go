// Package flow leads a person from an application's request to the answer that the application gets.
//
//	request            a form
//	   │                 │
//	   ▼                 ▼
//	 Show ◀── stored ── Act ── a Method proves who the person is
//	   │
//	   ├── a step is due: its page, whose form leads to Act
//	   └── nothing is: the application's answer, and the flow has ended
//
// Show stores nothing. Which step is due follows from what is known: the proofs, the browser's session, the application
// and its login template. No step is counted, so a page may be opened again, left, or be an old one.
package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// Flow is what is known of one tab that signs in. It is stored at the first form; until then the request travels in the
// page.
type Flow struct {
	docstore.Meta
	AppID    string           `json:"app_id"` // empty for the person's own page
	Protocol string           `json:"protocol"`
	Request  protocol.Request `json:"request"`
	Browser  string           `json:"browser"` // SHA-256 of the browser's cookie
	Progress

	LoginName string `json:"login_name"`
	Named     bool   `json:"named,omitempty"` // the login name has led to no connection, or the person is back
	Another   bool   `json:"another"`         // the browser's session is not to be used
	Denied    bool   `json:"denied"`          // the person gives up
	Finished  bool   `json:"finished"`
	Notice    string `json:"notice"` // what the page says of the last form
	ACR       string `json:"acr"`
	Locale    string `json:"locale"` // if it was chosen on the page
	// Leaving is what is kept while the person is at another provider, and Linking who they are there, until that is
	// linked to who they are here. Both are sealed. Whoever goes on in the flow is asked before the link is made.
	Leaving string `json:"leaving,omitempty"`
	Linking string `json:"linking,omitempty"`
	// Directory is the connection to a directory whose password the person wants to enter.
	Directory   string     `json:"directory,omitempty"`
	TimeExpires clock.Time `json:"time_expires"`
}

// Progress is what a person has shown, begun and chosen in a flow. All of it goes when another person goes on in the
// flow, or the person begins anew: whatever belongs to a person has its place here.
type Progress struct {
	Proofs    []proof.Proof `json:"proofs,omitempty"`
	UserID    string        `json:"user_id"` // once it is proven
	SessionID string        `json:"session_id"`
	// StepUpOf is the session whose proofs the flow has taken over: they count as long as it lasts.
	StepUpOf   string     `json:"step_up_of,omitempty"`
	MustChange bool       `json:"must_change_password"` // before there is a session
	Recovering Recovering `json:"recovering,omitempty"`
	// RecoveredTo is the mail address whose code was right, and RecoverEnds when the new password must be there.
	RecoveredTo string     `json:"recovered_to,omitempty"`
	RecoverEnds clock.Time `json:"recover_ends,omitzero"`
	Invitation  string     `json:"invitation,omitempty"` // the link by which the person was invited
	// TimePasswordChanged says which password was proven.
	TimePasswordChanged clock.Time `json:"time_password_changed"`
	// Setup is what the person is setting up, of a type of method: the key of an authenticator app, or a ceremony of a
	// passkey. Codes are the recovery codes that the person has to keep. Both are sealed.
	Setup      string `json:"setup,omitempty"`
	SetupType  string `json:"setup_type,omitempty"`
	Codes      string `json:"codes,omitempty"`
	TaskDone   bool   `json:"task_done,omitempty"` // of Request.Task
	SubAccount string `json:"sub_account"`         // the id of the chosen one
	Consented  bool   `json:"consented"`
	// OwnProof demands a proof of this platform, beside that of another provider.
	OwnProof bool `json:"own_proof,omitempty"`
	Told     bool `json:"told"` // of a refusal
}

// Recovering is how far a person is who has no password, or has forgotten it.
type Recovering string

// The values of Recovering. Empty: the person signs in.
const (
	RecoverAsk  Recovering = "ask"       // for the login name
	RecoverCode Recovering = "code"      // has perhaps been sent
	Recovered   Recovering = "recovered" // the code was right: a new password is due
	Invited     Recovering = "invited"   // the link was good: a first password is due
)

// The notices.
const (
	NoticeWrong    = "wrong"    // the login name or the password, or whatever keeps the person from signing in
	NoticeDiffers  = "differs"  // the two new passwords
	NoticePassword = "password" // a new password is refused
	NoticeCode     = "code"     // is wrong, or has ended
	NoticeSent     = "sent"     // another code, perhaps
	NoticeLink     = "link"     // of an invitation: is to be opened again, or has ended
	NoticeFactor   = "factor"   // the code of an app, or a recovery code, is wrong
	NoticeBlocked  = "blocked"  // too many codes were wrong
	NoticeFull     = "full"     // the person has as many factors as can be
	NoticePasskey  = "passkey"  // is not good here

	NoticeProvider     = "provider"      // another one: cannot be used, or its answer
	NoticeProviderAway = "provider_away" // it does not answer
	NoticeNotThere     = "not_there"     // the person has not signed in there
	NoticeNotLinked    = "not_linked"    // nobody is linked to who the person is there
	NoticeForeign      = "foreign"       // the user may not sign in by it
	NoticeTaken        = "taken"         // another user is linked to it
	NoticeYours        = "yours"         // the person is linked to it already
	NoticeCannotLink   = "cannot_link"
)

const (
	lifetime = time.Hour
	// lifetimeInvited is that of a flow in which a first password is chosen: the invitation lasts for days.
	lifetimeInvited = 24 * time.Hour
	// kept is how long an expired flow is known, so that it can begin again; one in which nobody has proven anything is
	// known for keptUnproven, since a stranger can make many.
	kept         = 24 * time.Hour
	keptUnproven = time.Hour
	// idBytes is the length of a flow's id: it cannot be guessed, though it is no secret.
	idBytes = 16
	// maxLoginName bounds the login name, in bytes.
	maxLoginName = 320
	maxPassword  = 1024
)

var flows = docstore.Define(docstore.Schema[Flow]{
	Name: "flows", Noun: "sign-in",
	Due: func(f *Flow) clock.Time {
		if f.UserID == "" {
			return f.TimeExpires.Add(keptUnproven)
		}
		return f.TimeExpires.Add(kept)
	},
})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{flows.Def()} }

// Due lists the flows to forget.
var Due = flows.Due

// Forget deletes a flow.
func (e *Engine) Forget(ctx context.Context, id string) error {
	return docstore.Do(ctx, e.Store, func(tx *docstore.Tx) error {
		f, err := flows.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		_, err = flows.Delete(ctx, tx, f)
		return err
	})
}

// forgetPerson begins anew with whoever comes.
func (f *Flow) forgetPerson() { f.Progress = Progress{Proofs: []proof.Proof{}} }

// restsOn is the session that the proofs of the flow come from; empty if they were shown in the flow.
func (f *Flow) restsOn() string { return cmp.Or(f.SessionID, f.StepUpOf) }

// mustChoose reports whether the person has to choose a password.
func (f *Flow) mustChoose() bool { return f.MustChange || f.Recovering == Invited }

// signedIn reports whether the person has signed in for this very request.
func (f *Flow) signedIn() bool { return f.SessionID != "" }

// Begin makes a flow that is not stored yet.
func Begin(r protocol.Request) *Flow {
	return &Flow{
		AppID: r.AppID, Protocol: r.Protocol, Request: r, Progress: Progress{Proofs: []proof.Proof{}},
	}
}

// again is a flow that begins anew with the same request, for one that has ended.
func (f *Flow) again() *Flow {
	next := Begin(f.Request)
	next.LoginName, next.Locale = f.LoginName, f.Locale
	if f.Recovering == Invited {
		next.Notice = NoticeLink
	}
	return next
}

// sealedRequest is what travels in the page.
type sealedRequest struct {
	Request   protocol.Request `json:"request"`
	LoginName string           `json:"login_name,omitempty"`
	Locale    string           `json:"locale,omitempty"`
}

func boundTo(ctx context.Context) []byte { return []byte("sign-in request " + request.Tenant(ctx)) }

// Seal is the flow in a form of the page. Nobody but the service can read or change it.
func (e *Engine) Seal(ctx context.Context, f *Flow) (string, error) {
	text, err := json.Marshal(sealedRequest{f.Request, f.LoginName, f.Locale})
	if err != nil {
		return "", err
	}
	return e.Keys.Seal(text, boundTo(ctx)), nil
}

// Unseal returns the flow that a page's form begins. The error is apperr.InvalidParameters.
func (e *Engine) Unseal(ctx context.Context, sealed string) (*Flow, error) {
	invalid := apperr.Invalid("request", "is not of a page of this service")
	text, err := e.Keys.Open(sealed, boundTo(ctx))
	if err != nil {
		return nil, invalid.Because(err)
	}
	var s sealedRequest
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, invalid.Because(err)
	}
	f := Begin(s.Request)
	f.LoginName, f.Locale = s.LoginName, s.Locale
	return f, nil
}

// Find returns the flow with an id, for a browser. One that has expired or finished, or is another browser's, is
// returned as it begins again, without an id, unless its request is bound to the browser that made it. The error is
// apperr.NotFound.
func (e *Engine) Find(ctx context.Context, id, browser string) (*Flow, error) {
	doc, err := flows.Find(ctx, e.Store, id)
	if err != nil {
		return nil, err
	}
	f, err := doc.Value()
	if err != nil {
		return nil, err
	}
	another := !secret.Equal(f.Browser, browser)
	switch over := f.Finished || !e.Store.Now().Before(f.TimeExpires); {
	case f.Request.Bound && (another || over):
		return nil, apperr.Missing("sign-in")
	case another:
		next := f.again()
		next.LoginName = "" // it is somebody else's
		return next, nil
	case over:
		return f.again(), nil
	}
	return f, nil
}

// StoreRequest stores a flow that begins in a browser, which has sent a good code of a device.
func (e *Engine) StoreRequest(ctx context.Context, r protocol.Request, browser string) (*Flow, error) {
	f := Begin(r)
	return f, e.save(ctx, f, browser, nil)
}

// save stores a flow; a new one gets its id. also is part of the transaction.
func (e *Engine) save(ctx context.Context, f *Flow, browser string, also func(context.Context, *docstore.Tx,
	*docstore.Doc[Flow]) error) error {
	return e.saveAfter(ctx, f, browser, nil, also)
}

// saveAfter is save with what comes first in the transaction, if it is not nil. It gets the flow as it is stored, and
// may change the one that is to be stored.
func (e *Engine) saveAfter(ctx context.Context, f *Flow, browser string,
	first func(_ context.Context, _ *docstore.Tx, stored *Flow) error,
	also func(context.Context, *docstore.Tx, *docstore.Doc[Flow]) error,
) error {
	version := f.Version // not asked in the transaction: that may run again after it has set the version
	return e.store(ctx, f, browser, func(ctx context.Context, tx *docstore.Tx, stored *Flow) error {
		if stored.Version != version {
			return errFaster
		}
		if first == nil {
			return nil
		}
		return first(ctx, tx, stored)
	}, also)
}

// store stores a flow, whatever other forms of it have stored meanwhile, unless it has ended.
func (e *Engine) store(ctx context.Context, f *Flow, browser string,
	first func(_ context.Context, _ *docstore.Tx, stored *Flow) error,
	also func(context.Context, *docstore.Tx, *docstore.Doc[Flow]) error,
) error {
	id, isNew := f.ID, f.Version == 0 // not asked in the transaction, as above
	if id == "" {
		id = secret.Token(idBytes)
	}
	return docstore.Do(ctx, e.Store, func(tx *docstore.Tx) error {
		stored := &Flow{}
		if !isNew {
			var err error
			if stored, err = flows.Load(ctx, tx, f.ID); err != nil {
				return err
			}
			if stored.Finished { // another form of the tab was faster
				return errFaster
			}
		}
		if first != nil {
			if err := first(ctx, tx, stored); err != nil {
				return err
			}
		}
		doc, err := e.write(ctx, tx, f, stored.Meta, isNew, id, browser)
		if err != nil || also == nil {
			return err
		}
		return also(ctx, tx, &doc)
	})
}

func (e *Engine) write(ctx context.Context, tx *docstore.Tx, f *Flow, stored docstore.Meta, isNew bool,
	id, browser string,
) (docstore.Doc[Flow], error) {
	if !isNew {
		f.Meta = stored
		return flows.Revise(ctx, tx, f)
	}
	f.Meta = docstore.Meta{ID: id}
	f.Browser, f.TimeExpires = browser, tx.Now.Add(lifetime)
	if f.Recovering == Invited {
		f.TimeExpires = tx.Now.Add(lifetimeInvited)
	}
	doc, err := flows.Insert(ctx, tx, f)
	if err != nil {
		f.Meta = docstore.Meta{}
	}
	return doc, err
}
