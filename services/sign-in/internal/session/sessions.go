package session

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// The reasons for which sessions end, as events tell.
const (
	LoggedOut   = "logout"
	ByAPI       = "api"
	Expired     = "expired"
	Replaced    = "replaced" // another person has signed in with the browser
	UserGone    = "user"     // the user is disabled, locked by a caller, resigned or deleted
	NewPassword = "password"
	FactorGone  = "factor" // one that it rests on is deleted, or recovery codes are renewed
	// LinkGone is the link to another provider, or the connection to it: deleted, disabled or changed.
	LinkGone = "link"
	// LoggedOutElsewhere is a sign-out at the other provider by which the person has signed in.
	LoggedOutElsewhere = "upstream_logout"
)

// Deps are what Sessions need.
type Deps struct {
	Store *docstore.Store
	// Idle is how long a session lasts without use, Max how long at all.
	Idle, Max time.Duration
	// Ended is told of each session that ends, in the same transaction: the protocols, which end what they have given
	// and tell the applications. Optional.
	Ended func(ctx context.Context, tx *docstore.Tx, s *Session) error
}

// Sessions are the use cases.
type Sessions struct{ Deps }

// New makes the use cases.
func New(d Deps) *Sessions { return &Sessions{d} }

// ErrEnded says that a session does not go on, because it has ended.
var ErrEnded = apperr.Missing("session")

// Doc is a session as read or written.
type Doc = docstore.Doc[Session]

// SignIn is a person who has just proven who it is.
type SignIn struct {
	UserID string
	Proofs []proof.Proof
	// GoesOn is the session that some of the proofs come from; empty for none. If the browser does not have it any
	// more, nothing begins.
	GoesOn           string
	Address, Browser string
	BrowserHash      string // of the cookie by which the browser is known again
}

// Cookies are the values of the cookies that a browser gets at a sign-in. Trust is empty unless that was by two
// factors.
type Cookies struct{ Session, Trust string }

// Begin makes a session, or continues that of the browser's present cookie if it is the same person's. Either has a new
// cookie: what somebody knew of the browser before is of no use. Another person's session ends. keep, if not nil, is
// part of the transaction.
func (s *Sessions) Begin(ctx context.Context, in SignIn, present string, keep func(context.Context, *docstore.Tx) error,
) (*Session, Cookies, error) {
	id := rand.Text() // applications are told it (sid, SessionIndex): they must not learn how many others have
	cookies := Cookies{Trust: newTrust(in.Proofs)}
	begun, err := docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (*Session, error) {
		old, err := s.load(ctx, tx, present)
		if err != nil {
			return nil, err
		}
		if in.GoesOn != "" && (old == nil || old.ID != in.GoesOn) {
			return nil, ErrEnded
		}
		known, err := remember(ctx, tx, in, cookies.Trust)
		if err != nil {
			return nil, err
		}
		var next *Session
		if old != nil && old.UserID == in.UserID {
			next, cookies.Session, err = s.stepUp(ctx, tx, old, in, known)
		} else {
			if old != nil {
				err = s.end(ctx, tx, old, Replaced)
			}
			if err == nil {
				next, cookies.Session, err = s.insert(ctx, tx, id, in, known)
			}
		}
		if err == nil && keep != nil {
			err = keep(ctx, tx)
		}
		return next, err
	})
	return begun, cookies, err
}

func (s *Sessions) insert(ctx context.Context, tx *docstore.Tx, id string, in SignIn, known bool) (
	*Session, string, error,
) {
	session := &Session{Meta: docstore.Meta{ID: id}, Applications: []Application{}, TimeEnds: tx.Now.Add(s.Max)}
	s.apply(session, tx.Now, in)
	cookie, hash := newCookie(id)
	if _, err := keys.Insert(ctx, tx, &key{Meta: docstore.Meta{ID: id}, Hash: hash}); err != nil {
		return nil, "", err
	}
	_, err := sessions.With(knownBrowser, known).Insert(ctx, tx, session)
	return session, cookie, err
}

// stepUp notes a new sign-in in a session that goes on.
func (s *Sessions) stepUp(ctx context.Context, tx *docstore.Tx, session *Session, in SignIn, known bool) (
	*Session, string, error,
) {
	s.apply(session, tx.Now, in)
	k, err := keys.Load(ctx, tx, session.ID)
	if err != nil {
		return nil, "", err
	}
	var cookie string
	cookie, k.Hash = newCookie(session.ID)
	if _, err := keys.Replace(ctx, tx, k); err != nil {
		return nil, "", err
	}
	_, err = sessions.As("stepped_up").With(knownBrowser, known).Touch(ctx, tx, session)
	return session, cookie, err
}

// apply notes a sign-in. It takes the place of an earlier one, even if the person has shown less: the time of the
// sign-in is that of the oldest proof that counts, where a session goes on with further ones.
func (s *Sessions) apply(to *Session, now clock.Time, in SignIn) {
	to.UserID, to.Proofs, to.Address = in.UserID, in.Proofs, in.Address
	to.ACR, to.AMR = proof.Class(in.Proofs), append([]string{}, proof.AMR(in.Proofs)...)
	to.Browser = in.Browser
	if len(to.Browser) > maxAgent {
		to.Browser = to.Browser[:maxAgent]
	}
	to.Browser = strings.ToValidUTF8(to.Browser, "")
	to.TimeSignedIn = now
	if in.GoesOn != "" {
		to.TimeSignedIn = proof.Since(in.Proofs)
	}
	to.TimePasswordChanged = proof.TimeSet(in.Proofs, proof.Password)
	s.use(to, now)
}

func (s *Sessions) use(session *Session, now clock.Time) {
	session.TimeUsed, session.TimeExpires = now, now.Add(s.Idle)
	if session.TimeEnds.Before(session.TimeExpires) {
		session.TimeExpires = session.TimeEnds
	}
}

// load returns the session of a cookie to be changed, nil if there is none.
func (s *Sessions) load(ctx context.Context, tx *docstore.Tx, cookie string) (*Session, error) {
	id, text, ok := split(cookie)
	if !ok {
		return nil, nil
	}
	k, err := keys.Load(ctx, tx, id)
	if err != nil || !secret.Equal(k.Hash, Hash(text)) {
		return nil, apperr.Ignore(err, apperr.NotFound)
	}
	session, err := sessions.Load(ctx, tx, id)
	if err != nil || !tx.Now.Before(session.TimeExpires) {
		return nil, apperr.Ignore(err, apperr.NotFound)
	}
	return session, nil
}

// Of returns the session of a browser's cookie, nil if it has none.
func (s *Sessions) Of(ctx context.Context, cookie string) (*Session, error) {
	id, text, ok := split(cookie)
	if !ok {
		return nil, nil
	}
	doc, err := keys.Find(ctx, s.Store, id)
	if err != nil {
		return nil, apperr.Ignore(err, apperr.NotFound)
	}
	if k, err := doc.Value(); err != nil || !secret.Equal(k.Hash, Hash(text)) {
		return nil, err
	}
	session, err := s.Find(ctx, id)
	return session, apperr.Ignore(err, apperr.NotFound)
}

// Find returns a session that has not ended. The error is apperr.NotFound.
func (s *Sessions) Find(ctx context.Context, id string) (*Session, error) {
	doc, err := sessions.Find(ctx, s.Store, id)
	if err != nil {
		return nil, err
	}
	session, err := doc.Value()
	if err == nil && !s.Store.Now().Before(session.TimeExpires) {
		return nil, apperr.Missing("session")
	}
	return session, err
}

// Enter notes that a session is used, and for which application, if any. It tells of an application when the session
// enters it for the first time, or anyway if the person has just signed in for it.
func (s *Sessions) Enter(ctx context.Context, session *Session, app Application, e Entry) error {
	known := app.AppID == "" || session.Has(app.AppID, app.Protocol)
	if known && !e.Fresh && s.Store.Now().Sub(session.TimeUsed) < usedEvery {
		return nil
	}
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		now, err := sessions.Load(ctx, tx, session.ID)
		if err != nil {
			return err
		}
		if app.AppID != "" && !now.Has(app.AppID, app.Protocol) && len(now.Applications) < maxApplications {
			app.TimeEntered = tx.Now
			now.Applications = append(now.Applications, app)
		}
		s.use(now, tx.Now)
		doc, err := sessions.Collection.Revise(ctx, tx, now)
		if err != nil || known && !e.Fresh {
			return err
		}
		return e.tell(ctx, tx, "completed", now.UserID, &doc)
	})
}

// Refuse tells that a person may not enter an application.
func (s *Sessions) Refuse(ctx context.Context, session *Session, e Entry) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		now, err := sessions.Load(ctx, tx, session.ID)
		if err != nil {
			return err
		}
		doc, err := sessions.Collection.Revise(ctx, tx, now)
		if err != nil {
			return err
		}
		return e.tell(ctx, tx, "refused", now.UserID, &doc)
	})
}

// Get returns a session for the API. The error is apperr.NotFound.
func (s *Sessions) Get(ctx context.Context, id string) (Doc, error) {
	return sessions.Find(ctx, s.Store, id)
}

// Filter selects sessions by user and application. An empty member means any.
type Filter struct {
	docstore.Paging
	UserID string `query:"user_id" maxLength:"64" doc:"Those of this user" example:"1048577"`
	AppID  string `query:"app_id" maxLength:"64" doc:"Those for this application" example:"1048577"`
}

// List returns a page of the sessions of a user and of those in an application; empty ids are all.
func (s *Sessions) List(ctx context.Context, f Filter) (docstore.Page[Session], error) {
	where := docstore.And(docstore.EqOrAll(byUser, f.UserID), docstore.EqOrAll(byApp, f.AppID))
	return sessions.List(ctx, s.Store, where, f.Paging)
}

// OfUser returns the newest sessions of a user, at most limit.
func (s *Sessions) OfUser(ctx context.Context, userID string, limit int) ([]*Session, error) {
	page, err := sessions.Page(ctx, s.Store, docstore.Query{
		Filter: docstore.Eq(byUser, docstore.Text(userID)), Sort: []docstore.Order{{Index: byCreated, Desc: true}},
		Limit: limit,
	})
	if err != nil {
		return nil, err
	}
	all := make([]*Session, 0, len(page.Docs))
	for i := range page.Docs {
		session, err := page.Docs[i].Value()
		if err != nil {
			return nil, err
		}
		if s.Store.Now().Before(session.TimeExpires) {
			all = append(all, session)
		}
	}
	return all, nil
}

// without returns the ids that are not empty.
func without(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "" })
}
