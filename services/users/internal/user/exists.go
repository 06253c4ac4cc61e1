package user

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/textindex"
)

// LoginName is the answer to a check of a login name.
type LoginName struct {
	Valid     bool     `json:"valid" doc:"Whether its form is right"`
	Available bool     `json:"available" doc:"Whether nobody has it, or only user_id"`
	Reasons   []string `json:"reasons" doc:"Why not"`
}

// CheckLoginName checks whether a name can be a username, email or mobile, and whether nobody has it but userID, which
// may be empty.
func (s *Users) CheckLoginName(ctx context.Context, name, userID string) (LoginName, error) {
	answer := LoginName{Valid: true, Available: true, Reasons: []string{}}
	if !validUsername(name) && !validEmail(name) && !e164.MatchString(name) {
		answer.Valid, answer.Available = false, false
		answer.Reasons = append(answer.Reasons, "is not a username, email address or E.164 number")
		return answer, nil
	}
	doc, err := users.First(ctx, s.Store, docstore.Eq(byLogin, docstore.Text(loginKey(name))))
	if err != nil && !apperr.IsNotFound(err) {
		return LoginName{}, err
	}
	if err == nil && doc.ID != userID {
		answer.Available = false
		answer.Reasons = append(answer.Reasons, "is taken")
	}
	return answer, nil
}

// Identity identifies a user, who must have all of the given members.
type Identity struct {
	ID             string `json:"id"`
	Username       string `json:"username"`
	Email          string `json:"email"`
	Mobile         string `json:"mobile"`
	EmployeeNumber string `json:"employee_number"`
}

// Existence is the answer to an existence check.
type Existence struct {
	Exists  bool   `json:"exists" doc:"Whether there is such a user"`
	UserID  string `json:"user_id,omitempty" doc:"Its id, if there is one only"`
	Several bool   `json:"several,omitempty" doc:"Whether there are several such users"`
}

// add notes a user that was found.
func (e *Existence) add(id string) {
	switch {
	case !e.Exists:
		e.Exists, e.UserID = true, id
	case e.UserID != id:
		e.UserID, e.Several = "", true
	}
}

// Exists looks for a user. The error is apperr.InvalidParameters if no member is given.
func (s *Users) Exists(ctx context.Context, who Identity) (Existence, error) {
	if err := who.given(); err != nil {
		return Existence{}, err
	}
	var all []docstore.Filter
	if who.ID != "" {
		all = append(all, docstore.ID(who.ID))
	}
	if who.Username != "" {
		all = append(all, docstore.Eq(byLogin, docstore.Text(loginKey(who.Username))))
	}
	for _, value := range []string{who.Email, who.Mobile} {
		if value != "" {
			all = append(all, having(loginKey(value)))
		}
	}
	if who.EmployeeNumber != "" {
		all = append(all, docstore.Eq(byEmployeeNumber, docstore.Text(textindex.Key(who.EmployeeNumber))))
	}
	// The index of login names does not tell which kind a name is, so the record is checked, too.
	page, err := users.Page(ctx, s.Store, docstore.Query{Filter: docstore.And(all...), Limit: 2})
	if err != nil {
		return Existence{}, err
	}
	var answer Existence
	for i := range page.Docs {
		u, err := page.Docs[i].Value()
		if err != nil {
			return Existence{}, err
		}
		if who.is(u) {
			answer.add(u.ID)
		}
	}
	return answer, nil
}

// given refuses an identity without a member.
func (who Identity) given() error {
	if who == (Identity{}) {
		return apperr.Invalid("", "must have one or more of id, username, email, mobile, employee_number")
	}
	return nil
}

// logins are the given login names, as compared.
func (who Identity) logins() (keys []string) {
	for _, login := range []string{who.Username, who.Email, who.Mobile} {
		if login != "" {
			keys = append(keys, loginKey(login))
		}
	}
	return keys
}

func (who Identity) is(u *User) bool {
	same := func(asked, has string) bool { return asked == "" || loginKey(asked) == loginKey(has) }
	return (who.ID == "" || who.ID == u.ID) && same(who.Username, u.Username) && same(who.Email, u.Email) &&
		same(who.Mobile, u.Mobile) && same(who.EmployeeNumber, u.EmployeeNumber)
}

// Has reports whether a user exists, in a transaction of another package.
func Has(ctx context.Context, r docstore.Reader, id string) (bool, error) {
	_, err := users.Find(ctx, r, id)
	if apperr.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
