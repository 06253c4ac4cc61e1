package people

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/provisioning/internal/directory"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/mapping"
	"github.com/idplatform/idplatform/services/questions"
)

// changeOf makes the change of the users service that a target needs. status is "" to keep it.
func (s *Users) changeOf(ctx context.Context, c *connection.Connection, action string, w target, status string) (
	questions.UserChange, error,
) {
	change := questions.UserChange{Action: action, ManagedBy: c.ManagedBy()}
	p := w.profile
	members := map[string]any{}
	for name, value := range map[string]string{
		"username": p.Username, "display_name": p.DisplayName, "email": p.Email, "mobile": p.Mobile,
		"employee_number": p.EmployeeNumber, "locale": p.Locale, "zoneinfo": p.Zoneinfo,
	} {
		if slices.Contains(c.Owns, name) || name == "username" && action == questions.CreateUser {
			members[name] = value
		}
	}
	if slices.Contains(c.Owns, mapping.OwnedProps) {
		props := map[string]any{"scim": nil}
		if p.SCIM != nil {
			props["scim"] = p.SCIM
		}
		members["sys_ext_props"] = props
	}
	if status != "" && (slices.Contains(c.Owns, "status") || action == questions.CreateUser) {
		members["status"] = status
	}
	var err error
	if change.Profile, err = json.Marshal(members); err != nil {
		return change, err
	}
	if l := c.LoginLink; l != nil {
		id1 := w.externalID
		if l.ID1 == connection.ByUserName {
			id1 = p.Username
		}
		if id1 != "" {
			change.Credential = &questions.UserCredential{
				ProviderCode: c.ProviderCode, IDPConfigID: l.IDPConfigID, ID1: id1,
			}
		}
	}
	if p.Password == "" {
		return change, nil
	}
	key, err := questions.TransitKeyOfUsers.Ask(ctx, s.Bus, questions.Nothing{})
	if err != nil {
		return change, err
	}
	username, _ := members["username"].(string)
	use := questions.PasswordFor(questions.ToProvision, request.Tenant(ctx), username)
	change.Password, err = key.Seal(p.Password, use)
	return change, err
}

// candidate is a user that may be adopted.
type candidate struct {
	ID            string `json:"id"`
	Version       int64  `json:"version"`
	Email         string `json:"email"`
	EmailVerified bool   `json:"email_verified"`
	ManagedBy     *struct {
		ConnectionID string `json:"connection_id"`
	} `json:"managed_by"`
}

// adoptable returns the user with the name or verified email of a target, if it belongs to no connection; nil
// otherwise.
func (s *Users) adoptable(ctx context.Context, c *connection.Connection, w target) (*candidate, error) {
	name := questions.UserName{Username: w.profile.Username}
	if c.Adopt == connection.AdoptEmail {
		name = questions.UserName{Email: w.profile.Email}
	}
	if name == (questions.UserName{}) {
		return nil, nil //nolint:nilnil // there is none
	}
	state, err := questions.FindUser.Ask(ctx, s.Bus, name)
	if err != nil || len(state.User) == 0 {
		return nil, err
	}
	var u candidate
	if err := json.Unmarshal(state.User, &u); err != nil {
		return nil, err
	}
	if u.ManagedBy != nil || c.Adopt == connection.AdoptEmail && !u.EmailVerified {
		return nil, nil //nolint:nilnil // there is none
	}
	return &u, nil
}

// guardPassword drops the new password of a user who has more scopes of the platform's API than the connection: a
// client that sets a password can sign in as the user. The rest of the request is carried out, such as a deactivation.
func (s *Users) guardPassword(ctx context.Context, j *update) error {
	if j.change.Password == "" || j.change.UserID == "" {
		return nil
	}
	has, err := questions.ScopesOfUser.Ask(ctx, s.Bus, questions.HolderOfScopes{UserID: j.change.UserID})
	if err == nil && !has.Set().Within(j.call.Connection.Given()) {
		j.change.Password = ""
		j.call.Ignored.Add("password")
	}
	return err
}

// mayAdopt returns taken, the error of a POST that adopts nobody, if a user has scopes of the platform's API beyond
// those of a connection: whoever adopts a user can sign in as that user.
func (s *Users) mayAdopt(ctx context.Context, c *connection.Connection, userID string, taken error) error {
	has, err := questions.ScopesOfUser.Ask(ctx, s.Bus, questions.HolderOfScopes{UserID: userID})
	if err == nil && !has.Set().Within(c.Given()) {
		err = taken
	}
	return err
}

// refresh takes over the present record of a user, of which the copy is out of date.
func (s *Users) refresh(ctx context.Context, u *directory.User) error {
	state, err := questions.FindUser.Ask(ctx, s.Bus, questions.UserName{ID: u.ID})
	if err != nil {
		return err
	}
	if len(state.User) == 0 {
		return apperr.Missing("user")
	}
	return docstore.Do(docstore.WithoutCommitHook(ctx), s.Store, func(tx *docstore.Tx) error {
		_, err := directory.PutUser(ctx, tx, u.ID, state, directory.Link{ConnectionID: u.ConnectionID})
		return err
	})
}

// toSCIMError turns a refusal of the users service into a SCIM error that names attributes instead of members.
func toSCIMError(err error) error {
	err = apperr.Relocate(err, mapping.AttributeOf)
	e, ours := asError(err)
	if !ours {
		return err
	}
	switch e.Kind {
	case apperr.AlreadyExists:
		return scim.With(scim.Uniqueness, e)
	case apperr.InvalidParameters:
		return scim.With(scim.InvalidValue, e)
	}
	return err
}
