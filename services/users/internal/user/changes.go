package user

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/change"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
)

// userChange is the outcome of a questions.UserChange.
type userChange struct {
	change.Outcome
	UserID string `json:"user_id"`
}

var changes = change.DefineOutcomes(docstore.Schema[userChange]{Name: "user_changes", Noun: "change"},
	func(c *userChange) *change.Outcome { return &c.Outcome })

// DueChanges lists outcomes of changes that are no longer needed.
func DueChanges(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return changes.Due(ctx, s, limit)
}

// ForgetChange deletes an outcome that is no longer needed.
func (s *Users) ForgetChange(ctx context.Context, id string) error {
	return changes.Forget(ctx, s.Store, id)
}

// FindBy returns the user with a name; an empty state if there is none. The error is apperr.InvalidParameters.
func (s *Users) FindBy(ctx context.Context, q questions.UserName) (questions.UserState, error) {
	var doc Doc
	var err error
	switch {
	case q.ID != "":
		doc, err = s.Get(ctx, q.ID)
	case q.Username != "":
		doc, err = s.byMember(ctx, q.Username, func(u *User) string { return u.Username })
	case q.Email != "":
		doc, err = s.byMember(ctx, q.Email, func(u *User) string { return u.Email })
	default:
		return questions.UserState{}, apperr.Invalid("username", "or an email or id must be given")
	}
	if apperr.IsNotFound(err) {
		return questions.UserState{}, nil
	}
	if err != nil {
		return questions.UserState{}, err
	}
	return stateOf(doc)
}

func stateOf(doc Doc) (questions.UserState, error) {
	body, err := doc.JSON()
	return questions.UserState{User: body, Sequence: docstore.FirstSequence(doc.Revision()+1) - 1}, err
}

// ApplyChange makes a change, once. The error is apperr.InvalidParameters or AlreadyExists at members of the profile,
// NotFound, InvalidState, VersionMismatch, or ManagedElsewhere if another connection owns the user.
func (s *Users) ApplyChange(ctx context.Context, c questions.UserChange, password string) (questions.UserState, error) {
	if c.DryRun {
		ctx = docstore.WithDryRun(ctx)
	}
	created, faults := User{}, apperr.Faults{}
	if c.Action == questions.CreateUser {
		if err := merge(&created.Profile, c.Profile); err != nil {
			return questions.UserState{}, err
		}
		created.normalize()
		created.check(&faults)
	}
	if err := faults.Err(); err != nil {
		return questions.UserState{}, err
	}
	hash := ""
	if password != "" {
		var err error
		if hash, err = s.hashOfChange(ctx, c, created.Username, password); err != nil {
			return questions.UserState{}, err
		}
	}
	ids, err := s.Store.NewIDs(ctx, 2) // of a new user, and of a new credential
	if err != nil {
		return questions.UserState{}, err
	}
	id := c.UserID
	if c.Action == questions.CreateUser {
		id = ids[0]
	}
	return writeContacts(ctx, s, func(tx *docstore.Tx, share sharer) (questions.UserState, error) {
		if c.Unique {
			share = unshared
		}
		var made *Doc
		if err := changes.Once(ctx, tx, c.ID, userChange{UserID: id}, func() (err error) {
			made, err = s.apply(ctx, tx, c, id, created, hash, share)
			if err == nil && c.Credential != nil {
				err = s.Bind(ctx, tx, ids[1], id, *c.Credential)
			}
			return err
		}); err != nil {
			return questions.UserState{}, err
		}
		if made != nil {
			return stateOf(*made)
		}
		return s.present(ctx, tx, c.ID)
	})
}

// hashOfChange hashes the password that a change sets; "" if the user has it already: identity systems send it again.
// The error is apperr.InvalidParameters at password.
func (s *Users) hashOfChange(ctx context.Context, c questions.UserChange, username, password string) (string, error) {
	var u *User
	if c.Action != questions.CreateUser {
		doc, err := s.Get(ctx, c.UserID)
		if apperr.IsNotFound(err) { // told by apply, unless the change was made before
			return s.Hasher.Hash(ctx, password)
		}
		if err != nil {
			return "", err
		}
		if u, err = doc.Value(); err != nil {
			return "", err
		}
		proposal := u.Profile
		if err := merge(&proposal, c.Profile); err != nil {
			return "", err
		}
		username = proposal.Username
	}
	var faults apperr.Faults
	checkPassword(&faults, "password", password, username)
	if err := faults.Err(); err != nil {
		return "", err
	}
	if u == nil {
		return s.Hasher.Hash(ctx, password)
	}
	a, err := findAccount(ctx, s.Store, u.ID)
	if err != nil {
		return "", err
	}
	if a.Password != "" {
		if is, _, err := s.Hasher.Verify(ctx, a.Password, password); err != nil || is {
			return "", err
		}
	}
	return s.newHash(ctx, a.OldPasswords, "password", password)
}

// present is the state of the user of a change that was made.
func (s *Users) present(ctx context.Context, tx *docstore.Tx, changeID string) (questions.UserState, error) {
	found, err := changes.LoadMany(ctx, tx, []string{changeID})
	if err != nil || len(found) == 0 {
		return questions.UserState{}, err
	}
	doc, err := users.Find(ctx, tx, found[0].UserID)
	if apperr.IsNotFound(err) {
		return questions.UserState{}, nil // deleted
	}
	if err != nil {
		return questions.UserState{}, err
	}
	return stateOf(doc)
}

// apply makes a change that was not made yet, and returns the user; nil if it is deleted.
func (s *Users) apply(
	ctx context.Context, tx *docstore.Tx, c questions.UserChange, id string, created User, hash string,
	share sharer,
) (*Doc, error) {
	if c.Action == questions.CreateUser {
		created.ID, created.ManagedBy = id, ownership(c.ManagedBy, nil)
		if err := share(&created); err != nil {
			return nil, err
		}
		in := map[string]any{}
		if c.NodeID != "" {
			in[questions.NodeOfUser] = c.NodeID
		}
		doc, err := add(ctx, tx, id, created, hash, in)
		return &doc, err
	}
	u, err := s.load(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	if c.Version != 0 && c.Version != u.Version {
		return nil, apperr.New(apperr.VersionMismatch, "the user has changed; its version is now %d", u.Version)
	}
	if m := u.ManagedBy; m != nil && c.ManagedBy != nil && m.ConnectionID != c.ManagedBy.ConnectionID {
		return nil, apperr.Managed("managed_by")
	}
	switch c.Action {
	case questions.UpdateUser, questions.ReinstateUser:
		return s.applyProfile(ctx, tx, c, u, hash, share)
	case questions.ResignUser:
		return s.applyResignation(ctx, tx, u)
	case questions.DeleteUser:
		if err := s.OnDelete(ctx, tx, id); err != nil {
			return nil, err
		}
		return nil, remove(ctx, tx, id)
	}
	return nil, apperr.Invalid("action", "must be create, update, resign, reinstate or delete")
}

// applyProfile changes the profile and the owner, and takes back a resignation first if the change says so.
func (s *Users) applyProfile(
	ctx context.Context, tx *docstore.Tx, c questions.UserChange, u *User, hash string, share sharer,
) (*Doc, error) {
	var doc Doc
	if c.Action == questions.ReinstateUser && !u.TimeResigned.IsZero() {
		if u.Status == Resigned {
			u.Status = Active
		}
		u.TimeResigned = clock.Time{}
		var err error
		if doc, err = users.As("reinstated").Replace(ctx, tx, u); err != nil {
			return nil, err
		}
	}
	proposal := *u
	if err := merge(&proposal.Profile, c.Profile); err != nil {
		return nil, err
	}
	proposal.ManagedBy = ownership(c.ManagedBy, u.ManagedBy)
	doc, err := replaceOwned(ctx, tx, u, proposal, share)
	if err != nil || hash == "" {
		return &doc, err
	}
	if err := s.setPassword(ctx, tx, u, hash, u.MustChangePassword); err != nil {
		return nil, err
	}
	doc, err = users.Find(ctx, tx, u.ID)
	return &doc, err
}

func (s *Users) applyResignation(ctx context.Context, tx *docstore.Tx, u *User) (*Doc, error) {
	if u.Status == Resigned {
		doc, err := users.Find(ctx, tx, u.ID)
		return &doc, err
	}
	u.Status, u.TimeResigned = Resigned, tx.Now
	doc, err := users.Collection.Replace(ctx, tx, u)
	if err != nil {
		return nil, err
	}
	// the reason and the successor in the account are those of a former resignation
	return &doc, users.With("reason", "").With("successor_id", "").Tell(ctx, tx, "resigned", &doc)
}

// ownership is who owns members of a user after a change: asked is the change's wish, nil to keep what is.
func ownership(asked, is *ManagedBy) *ManagedBy {
	switch {
	case asked == nil:
		return is
	case asked.Frees():
		return nil
	}
	return asked
}

// SettleChange reports whether a change was made. If it was not, it is refused from then on.
func (s *Users) SettleChange(ctx context.Context, id string) (questions.UserOutcome, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (questions.UserOutcome, error) {
		done, err := changes.Settle(ctx, tx, id)
		if err != nil || done == nil {
			return questions.UserOutcome{}, err
		}
		state, err := s.present(ctx, tx, id)
		return questions.UserOutcome{Applied: true, UserState: state}, err
	})
}

// merge sets the members of a profile that a change names. Of sys_ext_props it changes only the members that the change
// has.
func merge(p *Profile, change json.RawMessage) error {
	if len(change) == 0 {
		return nil
	}
	var props struct {
		SysExtProps map[string]json.RawMessage `json:"sys_ext_props"`
	}
	is := p.SysExtProps
	p.SysExtProps, p.FreeExtProps = nil, slices.Clone(p.FreeExtProps) // else it would write into those of the record
	err := json.Unmarshal(change, p)
	if err == nil {
		err = json.Unmarshal(change, &props)
	}
	if err != nil {
		return apperr.Invalid("profile", "has a member of the wrong type").Because(err)
	}
	p.SysExtProps = is
	if len(props.SysExtProps) == 0 {
		return nil
	}
	members := map[string]json.RawMessage{}
	if len(is) > 0 {
		if err := json.Unmarshal(is, &members); err != nil {
			return err
		}
	}
	for name, value := range props.SysExtProps {
		if string(value) == "null" {
			delete(members, name)
			continue
		}
		members[name] = value
	}
	p.SysExtProps, err = json.Marshal(members)
	return err
}
