package user

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/mergepatch"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/users/internal/password"
)

// Import is a record to import: a user, whose read-only members are ignored, with a password or its hash. It is a merge
// patch (RFC 7396) of the user whom it updates.
type Import struct {
	User
	Password     string `json:"password"`
	PasswordHash string `json:"password_hash"` // a PHC or modular crypt string; hashed again at the first login

	faults apperr.Faults
	hash   string
	edit   func(*User) error
}

// Imported is the result of a record.
type Imported struct {
	Status string         `json:"status"`
	ID     string         `json:"id,omitempty"`
	Errors []apperr.Fault `json:"errors,omitempty"`
}

// The statuses of imported records.
const (
	Created = "created"
	Updated = "updated"
	Skipped = "skipped"
	Failed  = "failed"
)

// OnConflict says what happens to a record whose username, email or mobile belongs to a user.
type OnConflict string

// The ways to handle a conflict. An update requires that the user with the taken names has the record's username.
const (
	ConflictFails   OnConflict = "fail"
	ConflictSkips   OnConflict = "skip"
	ConflictUpdates OnConflict = "update"
)

// ParseImport parses a record, a JSON object, and checks it. The record's faults are kept in it and become its result.
// Without secrets it must have no password. The error is apperr.Unavailable if the password cannot be hashed now.
// ParseImport is safe for concurrent use.
func (s *Users) ParseImport(ctx context.Context, raw []byte, secrets bool) (*Import, error) {
	r := &Import{}
	if !r.decode(raw) {
		return r, nil
	}
	r.edit = func(u *User) error {
		after := &Import{User: *u}
		changes, err := changesOf(after, raw)
		if err != nil {
			return err
		}
		if err := mergepatch.Into(after, changes); err != nil {
			return err
		}
		u.Profile = after.Profile
		return nil
	}
	r.normalize()
	if r.Status == Resigned { // exports contain such records, but only Resign makes a user resign
		r.Status = Disabled
	}
	r.check(&r.faults)
	switch {
	case !secrets && r.Password+r.PasswordHash != "":
		r.faults.Check(r.Password == "", "password", "needs the scope users:secrets")
		r.faults.Check(r.PasswordHash == "", "password_hash", "needs the scope users:secrets")
	case r.Password != "" && r.PasswordHash != "":
		r.faults.Add("password_hash", "must not come with password")
	case r.PasswordHash != "":
		if err := password.ParseHash(r.PasswordHash); err != nil {
			r.faults.Add("password_hash", "%s", err)
		}
		r.hash = r.PasswordHash
	case r.Password != "":
		checkPassword(&r.faults, "password", r.Password, r.Username)
		if r.faults.Err() == nil {
			var err error
			if r.hash, err = s.Hasher.Hash(ctx, r.Password); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// changesOf leaves out the members of a patch that the record has already. So an export that is imported again changes
// nothing, also where a property is null, which a patch would remove.
func changesOf(record *Import, patch []byte) ([]byte, error) {
	var before, changes map[string]json.RawMessage
	text, err := json.Marshal(record)
	if err == nil {
		err = errors.Join(json.Unmarshal(text, &before), json.Unmarshal(patch, &changes))
	}
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(changes, func(name string, value json.RawMessage) bool {
		return reflect.DeepEqual(decoded(value), decoded(before[name]))
	})
	return json.Marshal(changes)
}

// decoded keeps all digits of numbers.
func decoded(text json.RawMessage) (v any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	_ = d.Decode(&v) // it is JSON already; none is nil
	return v
}

// BadImport is a record that is not a JSON object: it fails with the fault.
func BadImport(fault string) *Import {
	r := &Import{}
	r.faults.Add("", "%s", fault)
	return r
}

// importMembers are the names of an Import's members. They are compared exactly, as in request bodies; encoding/json
// would accept Username for username.
var importMembers = func() map[string]json.RawMessage {
	var members map[string]json.RawMessage
	shared := []string{"email"}                                                                 // else it is left out
	blank, _ := json.Marshal(Import{User: User{SharedContacts: shared, FirstContacts: shared}}) // cannot fail
	_ = json.Unmarshal(blank, &members)
	return members
}()

// IsImportMember reports whether an Import has a member of that name.
func IsImportMember(name string) bool {
	_, known := importMembers[name]
	return known
}

// maxUnknown bounds the faults that are reported for one record: a line can have a hundred thousand unknown members.
const maxUnknown = 20

// decode decodes one JSON object and notes its faults. It reports whether the members should be checked further.
func (r *Import) decode(raw []byte) bool {
	if !utf8.Valid(raw) {
		r.faults.Add("", "must be UTF-8")
		return false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		r.faults.Add("", "must be a JSON object")
		return false
	}
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool {
		return IsImportMember(name)
	})
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i == maxUnknown {
			r.faults.Add("", "has more unknown members than are listed")
			break
		}
		r.faults.Add(name, "is not a known member")
	}
	err := json.Unmarshal(raw, r)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		member := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:] // without the names of embedded structs
		r.faults.Add(member, "has the wrong type")
	} else if err != nil {
		r.faults.Add("", "has a time that is not of RFC 3339")
	}
	return err == nil
}

// ImportOptions are the options of an import.
type ImportOptions struct {
	OnConflict OnConflict
	Invite     bool // new users who may sign in, and have a mail address and no password
}

// ImportMany stores records independently of each other, in one transaction, in which it calls finish with their
// results. In a dry run of several transactions, seen carries the names of the users who would exist from one to the
// next; otherwise it is nil.
func (s *Users) ImportMany(ctx context.Context, records []*Import, o ImportOptions, seen Seen,
	finish func(*docstore.Tx, []Imported) error) ([]Imported, error) {
	ids, err := s.Store.NewIDs(ctx, len(records))
	if err != nil {
		return nil, err
	}
	guarded, err := s.guard(ctx, records, o.OnConflict)
	if err != nil {
		return nil, err
	}
	var made Seen // made by the last attempt
	results, err := docstore.Write(ctx, s.Store, func(tx *docstore.Tx) ([]Imported, error) {
		made = Seen{}
		b := batch{s: s, tx: tx, on: o.OnConflict, invite: o.Invite, seen: seen, made: made, guarded: guarded,
			created: map[string]bool{}}
		if err := b.findOwners(ctx, records); err != nil {
			return nil, err
		}
		results := make([]Imported, len(records))
		for i, r := range records {
			result, err := b.store(ctx, ids[i], r)
			if err != nil {
				return nil, err
			}
			results[i] = result
		}
		return results, finish(tx, results)
	})
	if err == nil && seen != nil {
		maps.Copy(seen, made)
	}
	return results, err
}

// batch is one transaction of an import.
type batch struct {
	s      *Users
	tx     *docstore.Tx
	on     OnConflict
	invite bool
	owners Seen
	seen   Seen // from earlier transactions of a dry run
	made   Seen // from this transaction

	mayShare *bool // whether the tenant allows users to share contact values; nil: not asked yet

	// guarded has, for the users who would get another password, why the caller may not set it; nil if it may. The map
	// is nil for a caller who may set every password.
	guarded map[string]error
	created map[string]bool // the users that this transaction has made
}

// Seen maps the key of a login name to its holder.
type Seen map[string]holder

// holder is the user who has a login name. The names are in their compared form.
type holder struct {
	id, username string
	shared       []string // contact values that the user shares with others
}

// findOwners looks up all login names of the records together.
func (b *batch) findOwners(ctx context.Context, records []*Import) error {
	b.owners = Seen{}
	var keys []docstore.Value
	for _, r := range records {
		for _, key := range r.logins() {
			if key != "" {
				keys = append(keys, docstore.Text(key))
			}
		}
	}
	q := docstore.Query{Filter: docstore.In(byLogin, keys...), Limit: len(keys) + 1} // few names have owners
	for {
		page, err := users.Page(ctx, b.tx, q)
		if err != nil {
			return err
		}
		for i := range page.Docs {
			u, err := page.Docs[i].Value()
			if err != nil {
				return err
			}
			b.own(u)
		}
		if page.Next == "" {
			break
		}
		q.After = page.Next
	}
	for _, key := range keys {
		if has, ok := b.seen[key.Text]; ok && b.owners[key.Text].id == "" {
			b.owners[key.Text] = has
		}
	}
	return nil
}

func (b *batch) own(u *User) {
	has := holder{u.ID, loginKey(u.Username), u.sharedKeys()}
	for _, key := range u.logins() {
		if key == "" {
			continue
		}
		b.owners[key] = has
		b.made[key] = has
	}
}

func (b *batch) store(ctx context.Context, id string, r *Import) (Imported, error) {
	if err := r.faults.Err(); err != nil {
		return failed(err), nil
	}
	var taken apperr.Faults
	var owner holder
	// a user whose email is the record's username is not its owner
	if has := b.owners[loginKey(r.Username)]; has.username == loginKey(r.Username) {
		owner = has
	}
	conflict := owner.id
	clash := func(member string, has holder) {
		conflict = cmp.Or(conflict, has.id)
		taken.Check(b.on == ConflictUpdates && has.id == owner.id, member, "is taken")
	}
	if has := b.owners[loginKey(r.Username)]; has.id != "" {
		clash("username", has)
	}
	for _, c := range contacts {
		key := c.key(&r.User)
		has := b.owners[key]
		if key == "" || has.id == "" {
			continue
		}
		shared, err := b.isShared(ctx, key, has, owner)
		if err != nil {
			return Imported{}, err
		}
		if !shared {
			clash(c.name, has)
		}
	}
	switch err := taken.Err(); {
	case err != nil && b.on == ConflictSkips:
		return Imported{Status: Skipped, ID: conflict}, nil
	case err != nil:
		return failed(err), nil
	case owner.id != "":
		return b.update(ctx, owner.id, r)
	}
	draft := r.User
	draft.ID, draft.ManagedBy, draft.SharedContacts, draft.FirstContacts = id, nil, nil, nil
	if err := b.share(ctx, &draft); err != nil {
		return Imported{}, err
	}
	b.own(&draft)
	b.created[id] = true
	more := map[string]any{}
	if b.invite && r.hash == "" && draft.Email != "" && draft.Status == Active {
		more[questions.Invite] = true
	}
	_, err := add(ctx, b.tx, id, draft, r.hash, more)
	return Imported{Status: Created, ID: id}, err
}

// findFirst finds who is the first with a contact value that a user has shared, now that the user may have left it.
func (b *batch) findFirst(ctx context.Context, was *User) error {
	for _, key := range was.sharedKeys() {
		if _, has := b.owners[key]; has {
			continue
		}
		first, err := users.LoadWhere(ctx, b.tx, docstore.Eq(byLogin, docstore.Text(key)), "", 1)
		if err != nil {
			return err
		}
		for _, u := range first {
			b.own(u)
		}
	}
	return nil
}

// isShared reports whether a contact value of another user can be the owner's, too: it is already, or the tenant allows
// it and the value is not the other's username.
func (b *batch) isShared(ctx context.Context, key string, has, owner holder) (bool, error) {
	switch {
	case has.id == owner.id:
		return false, nil
	case slices.Contains(owner.shared, key):
		return true, nil
	case has.username == key:
		return false, nil
	}
	if b.mayShare == nil {
		may, err := MayShare(ctx, b.tx)
		if err != nil {
			return false, err
		}
		b.mayShare = &may
	}
	return *b.mayShare, nil
}

// share notes the contact values that other users have in the records of both. In a dry run of several transactions the
// other may be a user whom an earlier one would have made.
func (b *batch) share(ctx context.Context, u *User) error {
	for _, c := range contacts {
		has := b.owners[c.key(u)].id
		if has == "" || has == u.ID || c.shared(u) {
			continue
		}
		holders, err := users.LoadMany(ctx, b.tx, []string{has})
		if err != nil {
			return err
		}
		c.share(u)
		for _, first := range holders {
			if err := c.shareWith(ctx, b.tx, u, first); err != nil {
				return err
			}
		}
	}
	return nil
}

// guard asks whether the caller may give other passwords to the users whom records would change; nil if it may do so
// to everybody.
func (s *Users) guard(ctx context.Context, records []*Import, on OnConflict) (map[string]error, error) {
	if caller := auth.PrincipalFrom(ctx); caller == nil || caller.Has(auth.PlatformAdmin) || on != ConflictUpdates {
		return nil, nil //nolint:nilnil // nobody is asked
	}
	var names []docstore.Value
	for _, r := range records {
		if r.hash != "" {
			names = append(names, docstore.Text(loginKey(r.Username)))
		}
	}
	guarded := map[string]error{}
	if len(names) == 0 {
		return guarded, nil
	}
	var ids []string
	err := users.Each(ctx, s.Store, docstore.In(byLogin, names...), func(d docstore.Doc[User]) error {
		ids = append(ids, d.ID)
		return nil
	})
	if err != nil {
		return nil, err
	}
	refusals, err := s.mayTakeOver(ctx, ids)
	for i, id := range ids {
		guarded[id] = refusals[i]
	}
	return guarded, err
}

// mayTakeOver refuses to set the password of a user who has scopes that the caller lacks, and of one who got the name
// after guard had asked about its owners.
func (b *batch) mayTakeOver(id string) error {
	if b.guarded == nil || b.created[id] {
		return nil
	}
	refusal, asked := b.guarded[id]
	if !asked {
		return apperr.New(apperr.InvalidState, "the user has changed meanwhile")
	}
	return refusal
}

func (b *batch) update(ctx context.Context, id string, r *Import) (Imported, error) {
	u, err := b.s.load(ctx, b.tx, id)
	if b.seen != nil && apperr.IsNotFound(err) { // an earlier transaction of the dry run would have created it
		return Imported{Status: Updated, ID: id}, nil
	}
	if err != nil {
		return Imported{}, err
	}
	if r.hash != "" {
		if err := b.mayTakeOver(id); err != nil {
			return failed(err), nil
		}
	}
	was := *u
	proposal := *u
	if err := r.edit(&proposal); err != nil {
		return Imported{}, err
	}
	if proposal.Status == Resigned {
		proposal.Status = u.Status
	}
	if _, err := replaceProfile(ctx, b.tx, u, proposal, func(u *User) error { return b.share(ctx, u) }); err != nil {
		switch apperr.KindOf(err) {
		case apperr.InvalidParameters, apperr.InvalidState, apperr.ManagedElsewhere:
			return failed(err), nil
		}
		return Imported{}, err
	}
	if r.hash != "" {
		if err := b.s.setPassword(ctx, b.tx, u, r.hash, u.MustChangePassword); err != nil {
			return Imported{}, err
		}
	}
	for _, key := range was.logins() {
		delete(b.owners, key)
	}
	b.own(u)
	return Imported{Status: Updated, ID: id}, b.findFirst(ctx, &was)
}

// failed is the result of a refused record. Its faults have the locations that they would have in a request with the
// record as its body.
func failed(err error) Imported {
	var faults []apperr.Fault
	if e, ok := errors.AsType[*apperr.Error](err); ok {
		faults = slices.Clone(e.Faults)
		if len(faults) == 0 {
			faults = []apperr.Fault{{Message: e.Detail}}
		}
	}
	for i := range faults {
		faults[i].Location = apperr.Below("body", faults[i].Location)
	}
	return Imported{Status: Failed, Errors: faults}
}
