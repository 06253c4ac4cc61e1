package recovery

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/sign-in/internal/message"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
)

// Verifying is a person who is signed in and wants to show that an address is theirs. The ticket belongs to the
// session, and so to one browser.
type Verifying struct {
	SessionID string
	User      *person.User
	Locale    string // of the page
	Browser   string // the hash of its cookie, if the person has signed in with it before
}

func ticketOf(sessionID string) string { return "verify." + sessionID }

// AskToVerify has a code sent to the person's address, and reports whether the tenant's limits have room for it. A code
// that was sent before in the session ends then.
func (r *Recoveries) AskToVerify(ctx context.Context, v Verifying) (bool, error) {
	id, code := ticketOf(v.SessionID), message.NewCode(message.CodeSigns)
	return docstore.Write(ctx, r.Store, func(tx *docstore.Tx) (bool, error) {
		ends := tx.Now.Add(lifetime)
		accepted, err := r.Messages.Submit(ctx, tx, message.Message{
			Kind: message.Verification, UserID: v.User.ID, To: v.User.Email, Name: v.User.Name(), Locale: v.Locale,
			Code: secret.New(code), Ends: ends,
		}, message.Requester{Browser: v.Browser})
		if err != nil || !accepted {
			return false, err
		}
		found, err := tickets.LoadMany(ctx, tx, []string{id})
		if err != nil {
			return false, err
		}
		t := &ticket{Meta: docstore.Meta{ID: id}}
		if len(found) > 0 {
			t = found[0]
		}
		t.UserID, t.To, t.CodeEnds, t.TimeExpires, t.Tries = v.User.ID, v.User.Email, ends, ends, 0
		t.Sealed = r.Keys.Seal([]byte(code), sealedFor(ctx, id))
		if len(found) > 0 {
			_, err = tickets.Replace(ctx, tx, t)
		} else {
			_, err = tickets.Insert(ctx, tx, t)
		}
		return err == nil, err
	})
}

// Verifies reports whether a code for an address was sent in a session that can still be entered.
func (r *Recoveries) Verifies(ctx context.Context, sessionID, email string) (bool, error) {
	doc, err := tickets.Find(ctx, r.Store, ticketOf(sessionID))
	if err != nil {
		return false, apperr.Ignore(err, apperr.NotFound)
	}
	t, err := doc.Value()
	return err == nil && t.To == email && t.Tries < maxTries && r.Store.Now().Before(t.CodeEnds), err
}

// TryToVerify counts a try in a session, and returns the address whose code is right; empty if it is wrong, ended, or
// tried too often. A code that is right stays so until Verified.
func (r *Recoveries) TryToVerify(ctx context.Context, sessionID, code string) (email string, err error) {
	if len(code) > maxCode {
		code = ""
	}
	t, err := r.try(ctx, ticketOf(sessionID), code)
	if err != nil || t == nil {
		return "", err
	}
	return t.To, nil
}

// UntryToVerify takes back a try that came to nothing because a service does not answer.
func (r *Recoveries) UntryToVerify(ctx context.Context, sessionID string) error {
	return r.giveBack(ctx, ticketOf(sessionID))
}

// Verified ends the code of a session, in the transaction that stores what it was good for.
func (r *Recoveries) Verified(ctx context.Context, tx *docstore.Tx, sessionID string) error {
	return apperr.Ignore(r.Spend(ctx, tx, ticketOf(sessionID)), apperr.VersionMismatch)
}
