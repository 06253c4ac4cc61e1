package user

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// contact is a member that a user can share with others.
type contact struct {
	name string
	of   func(*User) string
}

var contacts = []contact{
	{"email", func(u *User) string { return u.Email }},
	{"mobile", func(u *User) string { return u.Mobile }},
}

// shares reports whether a contact value is one that another user had before.
func (u *User) shares(member string) bool { return slices.Contains(u.SharedContacts, member) }

// sharedKeys are the contact values that another user had before, as compared.
func (u *User) sharedKeys() (keys []string) {
	for _, c := range contacts {
		if u.shares(c.name) {
			keys = append(keys, loginKey(c.of(u)))
		}
	}
	return keys
}

// sharedMark begins the words of shared contact values. No word of a search has it.
const sharedMark = "\x1f"

// called selects the users who have one of the login names, also by a contact value that they share. Shared values are
// among the words of a user, because an index of their own would have an entry for each user.
func called(keys ...string) docstore.Filter {
	logins, words := make([]docstore.Value, len(keys)), make([]docstore.Value, len(keys))
	for i, key := range keys {
		logins[i], words[i] = docstore.Text(key), docstore.Text(sharedMark+key)
	}
	return docstore.Or(docstore.In(byLogin, logins...), docstore.In(byWord, words...))
}

// byLogin finds the user whom a login name means. Blanks around it, as the keyboards of phones add, do not count: no
// login name has any. A username means its user. A contact value of several users means nobody. The error is
// apperr.NotFound.
func (s *Users) byLogin(ctx context.Context, r docstore.Reader, name string) (Doc, error) {
	key := loginKey(strings.TrimSpace(name))
	page, err := users.Page(ctx, r, docstore.Query{Filter: called(key), Limit: 2})
	if err != nil {
		return Doc{}, err
	}
	if len(page.Docs) == 1 {
		return page.Docs[0], nil
	}
	if len(page.Docs) == 0 {
		return Doc{}, apperr.Missing("user")
	}
	doc, err := users.First(ctx, r, docstore.Eq(byLogin, docstore.Text(key)))
	if err != nil {
		return Doc{}, err
	}
	u, err := doc.Value()
	if err == nil && loginKey(u.Username) != key {
		err = apperr.Missing("user")
	}
	return doc, err
}

// keepShared makes the shared contact values of was, as far as they are unchanged, those of u.
func (u *User) keepShared(was *User) {
	u.SharedContacts = nil
	for _, c := range contacts {
		if was.shares(c.name) && loginKey(c.of(was)) == loginKey(c.of(u)) {
			u.SharedContacts = append(u.SharedContacts, c.name)
		}
	}
}

// share adds the contact values that other users have, unless they are usernames, to the shared ones of u.
func (s *Users) share(ctx context.Context, tx *docstore.Tx, u *User) error {
	for _, c := range contacts {
		key := loginKey(c.of(u))
		if key == "" || u.shares(c.name) {
			continue
		}
		doc, err := users.First(ctx, tx, docstore.Eq(byLogin, docstore.Text(key)))
		if apperr.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		other, err := doc.Value()
		if err != nil {
			return err
		}
		if other.ID != u.ID && loginKey(other.Username) != key {
			u.SharedContacts = append(u.SharedContacts, c.name)
		}
	}
	return nil
}

// writeContacts runs fn in a transaction. If contact values are taken and the tenant allows users to share them, it
// runs fn again with share, which fn calls for each record before it writes it.
func writeContacts[R any](ctx context.Context, s *Users, fn func(tx *docstore.Tx, share func(*User) error) (R, error),
) (R, error) {
	result, err := docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (R, error) {
		return fn(tx, func(*User) error { return nil })
	})
	if !contactTaken(err) {
		return result, err
	}
	refused := err
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (R, error) {
		var none R
		if allowed, err := mayShare(ctx, tx); err != nil {
			return none, err
		} else if !allowed {
			return none, refused
		}
		return fn(tx, func(u *User) error { return s.share(ctx, tx, u) })
	})
}

// contactTaken reports whether an error says that somebody has a contact value.
func contactTaken(err error) bool {
	e, ours := errors.AsType[*apperr.Error](err)
	return ours && e.Kind == apperr.AlreadyExists && slices.ContainsFunc(e.Faults, func(f apperr.Fault) bool {
		return slices.ContainsFunc(contacts, func(c contact) bool { return c.name == f.Location })
	})
}
