// Package person keeps a copy of each user who has signed in, so that applications can be told about them at any time
// without asking the users service.
package person

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/dnsname"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/questions"
)

// Person is the copy of a user. It has the user's id.
type Person struct {
	docstore.Meta
	User     json.RawMessage `json:"user"` // in the form that events carry
	Sequence int64           `json:"sequence"`
}

// User are the members of a user that sign-in itself reads.
type User struct {
	ID                  string     `json:"id"`
	Username            string     `json:"username"`
	DisplayName         string     `json:"display_name"`
	Email               string     `json:"email"`
	EmailVerified       bool       `json:"email_verified"`
	SharedContacts      []string   `json:"shared_contacts"` // members whose value other users have, too
	FirstContacts       []string   `json:"first_contacts"`  // those of them that the user had first
	Mobile              string     `json:"mobile"`
	Locale              string     `json:"locale"`
	Status              string     `json:"status"`
	Locked              bool       `json:"locked"`
	LockReason          string     `json:"lock_reason"`
	LockedUntil         clock.Time `json:"locked_until"`
	TimePasswordChanged clock.Time `json:"time_password_changed"`
	MustChangePassword  bool       `json:"must_change_password"`
	PasswordSet         *bool      `json:"password_set"`

	Record json.RawMessage `json:"-"` // what it was read from
}

// Parse reads a user's record.
func Parse(record json.RawMessage) (*User, error) {
	u := &User{Record: record}
	return u, json.Unmarshal(record, u)
}

// active is the status of users who may sign in.
const active = "1"

// Gone reports whether the user's sessions and tokens end: it is disabled, resigned, or locked by a caller. A lock
// because of wrong passwords ends none, because others can cause it.
func (u *User) Gone(now clock.Time) bool {
	return u.Status != active || u.locked(now) && u.LockReason != questions.LockedByFailures
}

func (u *User) locked(now clock.Time) bool {
	return u.Locked && (u.LockedUntil.IsZero() || now.Before(u.LockedUntil))
}

// HasPassword reports whether the user has a password. A record without the member is of one who has.
func (u *User) HasPassword() bool { return u.PasswordSet == nil || *u.PasswordSet }

// Name is what pages call the person.
func (u *User) Name() string {
	if u.DisplayName != "" {
		return u.DisplayName
	}
	return u.Username
}

// VerifiableEmail reports whether the user has an email address that is not verified and can be.
func (u *User) VerifiableEmail() bool {
	const member = "email"
	return u.Email != "" && !u.EmailVerified &&
		(!slices.Contains(u.SharedContacts, member) || slices.Contains(u.FirstContacts, member))
}

// Answers reports whether the user signs in with a login name.
func (u *User) Answers(loginName string) bool {
	key := func(name string) string { return dnsname.EmailKey(textindex.Key(name)) }
	asked := key(loginName)
	return asked != "" && (asked == key(u.Username) || asked == key(u.Email) || asked == key(u.Mobile))
}

var people = docstore.Define(docstore.Schema[Person]{Name: "people", Noun: "user"})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{people.Def()} }

// Find returns the copy of a user. The error is apperr.NotFound.
func Find(ctx context.Context, r docstore.Reader, id string) (*Person, error) {
	doc, err := people.Find(ctx, r, id)
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

// Keep stores a copy that the users service has answered with, unless there is a newer one, and returns the newest. in
// is empty for a user whose copy must be there; then the error is apperr.NotFound.
func Keep(ctx context.Context, tx *docstore.Tx, id string, in questions.SignedIn) (*Person, error) {
	found, err := people.LoadMany(ctx, tx, []string{id})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 && in.User == nil {
		return nil, apperr.Missing("user")
	}
	if len(found) == 0 {
		p := &Person{Meta: docstore.Meta{ID: id}, User: in.User, Sequence: in.Sequence}
		_, err = people.Insert(ctx, tx, p)
		return p, err
	}
	return found[0], found[0].renew(ctx, tx, in)
}

func (p *Person) renew(ctx context.Context, tx *docstore.Tx, in questions.SignedIn) error {
	if in.Sequence <= p.Sequence {
		return nil
	}
	p.User, p.Sequence = in.User, in.Sequence
	_, err := people.Replace(ctx, tx, p)
	return err
}

// Update stores the state that an event carries, if there is a copy and none that is newer. It returns the copy as it
// is then; nil if there is none.
func Update(ctx context.Context, s *docstore.Store, id string, in questions.SignedIn) (*Person, error) {
	return docstore.Write(ctx, s, func(tx *docstore.Tx) (*Person, error) {
		found, err := people.LoadMany(ctx, tx, []string{id})
		if err != nil || len(found) == 0 {
			return nil, err
		}
		return found[0], found[0].renew(ctx, tx, in)
	})
}

// Forget deletes the copy.
func Forget(ctx context.Context, tx *docstore.Tx, id string) error {
	found, err := people.LoadMany(ctx, tx, []string{id})
	if err != nil || len(found) == 0 {
		return err
	}
	_, err = people.Delete(ctx, tx, found[0])
	return err
}
