package user

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/picture"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/users/internal/password"
	"github.com/idplatform/idplatform/services/users/internal/realname"
)

// Deps are what Users need. Verifier may be nil; everything else is required.
type Deps struct {
	Store    *docstore.Store
	Bus      *bus.Bus // for questions about organizations
	Hasher   *password.Hasher
	Pictures *picture.Decoder
	Verifier realname.Verifier // decides about real names
	HashKey  []byte            // for keyed hashes of id numbers; must never change
	Lockout  Lockout

	// OnDelete deletes what belongs to users elsewhere in this service, in the transaction that deletes the users.
	OnDelete func(ctx context.Context, tx *docstore.Tx, ids ...string) error

	// Bind stores the credential by which a user signs in at a connection of the identity-sources service, in place of
	// an earlier one of the same connection.
	Bind func(ctx context.Context, tx *docstore.Tx, id, userID string, c questions.UserCredential) error
}

// Lockout says how many wrong passwords within which time lock a user, and for how long. The times of that many are
// stored for each user.
type Lockout struct {
	Failures int
	Within   time.Duration
	For      time.Duration
}

// Users are the use cases.
type Users struct {
	Deps
	gallery *picture.Gallery
}

// New makes the use cases.
func New(d Deps) *Users {
	return &Users{Deps: d, gallery: picture.NewGallery(avatars, d.Store, d.Pictures)}
}

// Collections are the collections that the store must have.
func Collections() []*docstore.Def {
	return append(avatars.Defs(), users.Def(), accounts.Def(), intents.Def(), changes.Def(),
		settings.Def(), secondFactors.Def())
}

// Doc is a user as read or written.
type Doc = docstore.Doc[User]

// Create adds a user. The error is apperr.InvalidParameters with every fault, or apperr.AlreadyExists at the taken
// members. With an empty password the user cannot sign in with one.
func (s *Users) Create(ctx context.Context, draft User, newPassword string) (Doc, error) {
	var faults apperr.Faults
	draft.normalize()
	draft.check(&faults)
	if draft.RealNameStatus == "" {
		draft.RealNameStatus = RealNameNone
	}
	draft.Protected.differs(Protected{RealNameStatus: RealNameNone}, &faults)
	draft.ManagedBy = nil // read-only
	if newPassword != "" {
		checkPassword(&faults, "password", newPassword, draft.Username)
	}
	if err := faults.Err(); err != nil {
		return Doc{}, err
	}
	hash := ""
	if newPassword != "" {
		var err error
		if hash, err = s.Hasher.Hash(ctx, newPassword); err != nil {
			return Doc{}, err
		}
	}
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return Doc{}, err
	}
	return writeContacts(ctx, s, func(tx *docstore.Tx, share sharer) (Doc, error) {
		u := draft
		u.ID, u.SharedContacts, u.FirstContacts = id, nil, nil // read-only
		if err := share(&u); err != nil {
			return Doc{}, err
		}
		return Add(ctx, tx, id, u, hash)
	})
}

// Add inserts a checked draft with a new id, in a transaction that may add others, too. It takes only Profile,
// ManagedBy and SharedContacts from the draft: whoever adds it is not the first with a shared value.
func Add(ctx context.Context, tx *docstore.Tx, id string, draft User, hash string) (Doc, error) {
	return add(ctx, tx, id, draft, hash, nil)
}

// add is Add with more members of the event, from which other services learn what they have to do for the user.
func add(ctx context.Context, tx *docstore.Tx, id string, draft User, hash string, more map[string]any) (Doc, error) {
	u := User{Meta: docstore.Meta{ID: id}, Profile: draft.Profile, Protected: Protected{RealNameStatus: RealNameNone},
		ManagedBy: draft.ManagedBy, SharedContacts: draft.SharedContacts}
	u.unverify()
	if hash != "" {
		u.PasswordSet, u.TimePasswordChanged = true, tx.Now
		if _, err := accounts.Insert(ctx, tx, &account{Meta: docstore.Meta{ID: id}, Password: hash}); err != nil {
			return Doc{}, err
		}
	}
	records := users
	for member, value := range more {
		records = records.With(member, value)
	}
	return records.Insert(ctx, tx, &u)
}

// Get returns a user. The error is apperr.NotFound.
func (s *Users) Get(ctx context.Context, id string) (Doc, error) {
	return users.Find(ctx, s.Store, id)
}

// Update applies edit to the profile. Members that have operations of their own may be present if they are unchanged.
// The error is apperr.NotFound, InvalidParameters, InvalidState (status of a resigned user), AlreadyExists or
// VersionMismatch.
func (s *Users) Update(ctx context.Context, id string, edit func(*User) error) (Doc, error) {
	return writeContacts(ctx, s, func(tx *docstore.Tx, share sharer) (Doc, error) {
		u, err := s.load(ctx, tx, id)
		if err != nil {
			return Doc{}, err
		}
		proposal := *u
		if err := edit(&proposal); err != nil {
			return Doc{}, err
		}
		return replaceProfile(ctx, tx, u, proposal, share)
	})
}

// replaceProfile sets u's profile to the proposal's; see writeContacts for share. The error is apperr.ManagedElsewhere
// if that changes an owned member.
func replaceProfile(ctx context.Context, tx *docstore.Tx, u *User, proposal User, share sharer) (Doc, error) {
	proposal.normalize()
	proposal.ManagedBy = u.ManagedBy // read-only
	if err := checkOwned(u.ManagedBy, &u.Profile, &proposal.Profile); err != nil {
		return Doc{}, err
	}
	return replaceOwned(ctx, tx, u, proposal, share)
}

// replaceOwned is replaceProfile for the owner of the members.
func replaceOwned(ctx context.Context, tx *docstore.Tx, u *User, proposal User, share sharer) (Doc, error) {
	var faults apperr.Faults
	proposal.normalize()
	proposal.Protected.differs(u.Protected, &faults)
	if u.Status == Resigned && proposal.Status == Resigned {
		proposal.Status = Active // unchanged; nothing to check
		proposal.check(&faults)
		proposal.Status = Resigned
	} else {
		proposal.check(&faults)
	}
	if err := faults.Err(); err != nil {
		return Doc{}, err
	}
	if u.Status == Resigned && proposal.Status != Resigned {
		return Doc{}, errResigned
	}
	// A new address is not yet verified. A flag in the same request does not count: it may be what the client read
	// before.
	if proposal.Email != u.Email && u.EmailVerified {
		proposal.EmailVerified = false
	}
	if proposal.Mobile != u.Mobile && u.MobileVerified {
		proposal.MobileVerified = false
	}
	was := *u
	proposal.keepShared(&was)
	if err := share(&proposal); err != nil {
		return Doc{}, err
	}
	proposal.unverify()
	u.Profile, u.ManagedBy = proposal.Profile, proposal.ManagedBy
	u.SharedContacts, u.FirstContacts = proposal.SharedContacts, proposal.FirstContacts
	doc, err := users.Replace(ctx, tx, u)
	if err != nil {
		return Doc{}, err
	}
	return doc, leave(ctx, tx, &was, u)
}

var errResigned = apperr.New(apperr.InvalidState, "the user has resigned")

// Delete deletes a user and everything that belongs to it in this service; user.deleted ends it in other services. The
// error is apperr.NotFound or VersionMismatch.
func (s *Users) Delete(ctx context.Context, id string) (docstore.Deleted, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (docstore.Deleted, error) {
		if err := s.OnDelete(ctx, tx, id); err != nil {
			return docstore.Deleted{}, err
		}
		return docstore.Deleted{ID: id}, remove(ctx, tx, id)
	})
}

// DeleteMany deletes those of the users that exist, all or nothing.
func (s *Users) DeleteMany(ctx context.Context, ids []string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		if err := s.OnDelete(ctx, tx, ids...); err != nil {
			return err
		}
		if err := readAhead(ctx, tx, ids); err != nil {
			return err
		}
		for _, id := range ids {
			if err := remove(ctx, tx, id); err != nil && !apperr.IsNotFound(err) {
				return err
			}
		}
		return nil
	})
}

// readAhead reads users that a transaction changes one by one, with their accounts.
func readAhead(ctx context.Context, tx *docstore.Tx, ids []string) error {
	if err := users.ReadAhead(ctx, tx, ids...); err != nil {
		return err
	}
	return accounts.ReadAhead(ctx, tx, ids...)
}

func remove(ctx context.Context, tx *docstore.Tx, id string) error {
	u, err := users.Load(ctx, tx, id)
	if err != nil {
		return err
	}
	if _, err := users.Delete(ctx, tx, u); err != nil {
		return err
	}
	if err := leave(ctx, tx, u, nil); err != nil {
		return err
	}
	had, err := accounts.LoadMany(ctx, tx, []string{id})
	if err != nil {
		return err
	}
	for _, a := range had {
		if _, err := accounts.Delete(ctx, tx, a); err != nil {
			return err
		}
	}
	return dropAvatar(ctx, tx, u)
}

// load returns a user to be changed. It first stores an ended lock and a resignation whose time has come.
func (s *Users) load(ctx context.Context, tx *docstore.Tx, id string) (*User, error) {
	u, err := users.Load(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	return u, applyDueTo(ctx, tx, u)
}

// applyDueTo stores, with its events, that the lock of a loaded user has ended or its resignation has taken effect.
func applyDueTo(ctx context.Context, tx *docstore.Tx, u *User) error {
	unlocked, resigned := u.applyDue(tx.Now)
	if !unlocked && !resigned {
		return nil
	}
	doc, err := users.Collection.Replace(ctx, tx, u)
	if err != nil {
		return err
	}
	if unlocked {
		if err := clearFailures(ctx, tx, u.ID); err != nil {
			return err
		}
		if err := users.With("reason", "expired").Tell(ctx, tx, "unlocked", &doc); err != nil {
			return err
		}
	}
	if resigned {
		return tellResigned(ctx, tx, &doc)
	}
	return nil
}

// byMember finds the user of whom a member, which is a login name, has a value. The error is apperr.NotFound.
func (s *Users) byMember(ctx context.Context, value string, member func(*User) string) (Doc, error) {
	doc, err := s.byLogin(ctx, s.Store, value)
	if err != nil {
		return Doc{}, err
	}
	u, err := doc.Value()
	if err == nil && loginKey(member(u)) != loginKey(value) {
		err = apperr.Missing("user")
	}
	return doc, err
}

// byLogin finds the user with a login name. Blanks around it, as the keyboards of phones add, do not count: no login
// name has any. Nobody has a contact value that several users share. The error is apperr.NotFound.
func (s *Users) byLogin(ctx context.Context, r docstore.Reader, name string) (Doc, error) {
	key := loginKey(strings.TrimSpace(name))
	doc, err := users.First(ctx, r, docstore.Eq(byLogin, docstore.Text(key)))
	if err != nil {
		return Doc{}, err
	}
	u, err := doc.Value()
	if err == nil && key != loginKey(u.Username) && slices.Contains(u.sharedKeys(), key) {
		err = apperr.Missing("user")
	}
	return doc, err
}
