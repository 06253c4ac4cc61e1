package user

import (
	"context"
	"errors"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// contact is a member that a user can share with others.
type contact struct {
	name     string
	of       func(*User) string
	unverify func(*User)
}

var contacts = []contact{
	{"email", func(u *User) string { return u.Email }, func(u *User) { u.EmailVerified = false }},
	{"mobile", func(u *User) string { return u.Mobile }, func(u *User) { u.MobileVerified = false }},
}

// key is the contact value as compared; "" if the user has none.
func (c contact) key(u *User) string { return loginKey(c.of(u)) }

// shared reports whether other users have the contact value, too. One of them is the first: its value is in the unique
// index, so that nobody gets it as username.
func (c contact) shared(u *User) bool { return slices.Contains(u.SharedContacts, c.name) }
func (c contact) first(u *User) bool  { return slices.Contains(u.FirstContacts, c.name) }

func (c contact) share(u *User) { u.SharedContacts = with(u.SharedContacts, c.name) }
func (c contact) lead(u *User)  { u.FirstContacts = with(u.FirstContacts, c.name) }

// unshare notes that nobody else has the contact value.
func (c contact) unshare(u *User) {
	u.SharedContacts, u.FirstContacts = without(u.SharedContacts, c.name), without(u.FirstContacts, c.name)
}

// with and without return new lists, because copies of a record have the same.
func with(list []string, name string) []string {
	if slices.Contains(list, name) {
		return list
	}
	return append(slices.Clone(list), name)
}

func without(list []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(other string) bool { return other == name })
}

// sharedKeys are the contact values that other users have, too, as compared.
func (u *User) sharedKeys() (keys []string) {
	for _, c := range contacts {
		if c.shared(u) {
			keys = append(keys, c.key(u))
		}
	}
	return keys
}

// sharedMark begins the words of shared contact values. No word of a search has it.
const sharedMark = "\x1f"

// sharing selects the users who share a contact value. The values are among the words of users, because an index of
// their own would have an entry for each user.
func sharing(key string) docstore.Filter { return docstore.Eq(byWord, docstore.Text(sharedMark+key)) }

// having selects the users who have a login name, also one that they share.
func having(key string) docstore.Filter {
	return docstore.Or(docstore.Eq(byLogin, docstore.Text(key)), sharing(key))
}

// keepShared copies from was which contact values are shared, as far as they are unchanged.
func (u *User) keepShared(was *User) {
	u.SharedContacts, u.FirstContacts = was.SharedContacts, was.FirstContacts
	for _, c := range contacts {
		if c.key(was) != c.key(u) {
			c.unshare(u)
		}
	}
}

// unverify sets email_verified and mobile_verified to false where another user had the value first. Applications that
// know people by verified addresses would take one for the other.
func (u *User) unverify() {
	for _, c := range contacts {
		if c.shared(u) && !c.first(u) {
			c.unverify(u)
		}
	}
}

// share notes the contact values that other users have, unless they are usernames, in the records of both.
func share(ctx context.Context, tx *docstore.Tx, u *User) error {
	for _, c := range contacts {
		key := c.key(u)
		if key == "" || c.shared(u) {
			continue
		}
		holders, err := users.LoadWhere(ctx, tx, docstore.Eq(byLogin, docstore.Text(key)), "", 1)
		if err != nil {
			return err
		}
		if len(holders) == 0 || holders[0].ID == u.ID || loginKey(holders[0].Username) == key {
			continue
		}
		if err := c.shareWith(ctx, tx, u, holders[0]); err != nil {
			return err
		}
	}
	return nil
}

func (c contact) shareWith(ctx context.Context, tx *docstore.Tx, u, first *User) error {
	c.share(u)
	if c.shared(first) {
		return nil
	}
	c.share(first)
	c.lead(first)
	_, err := users.Replace(ctx, tx, first)
	return err
}

// leave tells those who share a contact value that a user, who is written already, has another one now. is is nil if
// the user is deleted. If one of them is left, the value is no longer shared; else another one is the first.
func leave(ctx context.Context, tx *docstore.Tx, was, is *User) error {
	for _, c := range contacts {
		if !c.shared(was) || is != nil && c.key(is) == c.key(was) {
			continue
		}
		others, err := users.LoadWhere(ctx, tx, sharing(c.key(was)), "", 2)
		if err != nil {
			return err
		}
		switch {
		case len(others) == 1:
			c.unshare(others[0])
		case len(others) == 2 && c.first(was):
			c.lead(others[0])
		default:
			continue
		}
		if _, err := users.Replace(ctx, tx, others[0]); err != nil {
			return err
		}
	}
	return nil
}

// sharer notes which contact values of a record are shared, before it is written.
type sharer func(*User) error

// writeContacts runs fn in a transaction. If contact values are taken and the tenant allows users to share them, it
// runs fn again with a sharer that notes this.
func writeContacts[R any](ctx context.Context, s *Users, fn func(*docstore.Tx, sharer) (R, error)) (R, error) {
	result, err := docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (R, error) {
		return fn(tx, unshared)
	})
	if !contactTaken(err) {
		return result, err
	}
	refused := err
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (R, error) {
		var none R
		if allowed, err := MayShare(ctx, tx); err != nil {
			return none, err
		} else if !allowed {
			return none, refused
		}
		return fn(tx, func(u *User) error { return share(ctx, tx, u) })
	})
}

// unshared is the sharer of records whose contact values must be theirs alone.
func unshared(*User) error { return nil }

// contactTaken reports whether an error says that somebody has a contact value.
func contactTaken(err error) bool {
	e, ours := errors.AsType[*apperr.Error](err)
	return ours && e.Kind == apperr.AlreadyExists && slices.ContainsFunc(e.Faults, func(f apperr.Fault) bool {
		return slices.ContainsFunc(contacts, func(c contact) bool { return c.name == f.Location })
	})
}
