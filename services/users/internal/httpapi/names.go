package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/users/internal/user"
)

func (a *api) registerNames(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "check-login-name", Method: http.MethodPost, Path: "/v1/users-login-name-check", Scope: auth.UsersRead,
		Summary:  "Check a login name",
		Doc:      "Whether it can be a username, email or mobile, and whether nobody but `user_id` has it.",
		Request:  map[string]any{"login_name": "li.wei"},
		Response: map[string]any{"valid": true, "available": false, "reasons": []string{"is taken"}},
	}, a.checkLoginName)
	rest.Handle(s, rest.Op{
		ID: "user-exists", Method: http.MethodPost, Path: "/v1/users-exist", Scope: auth.UsersRead,
		Summary: "Check whether a user exists",
		Doc: "Finds the user who has all the given members. Several users can have an employee number, or a shared " +
			"email or mobile: then the answer has `several` and no `user_id`.",
		Request:  map[string]any{"username": "li.wei"},
		Response: map[string]any{"exists": true, "user_id": "1048577"},
	}, a.userExists)
	rest.Handle(s, rest.Op{
		ID: "users-exist", Method: http.MethodPost, Path: "/v1/batch/users-exist", Scope: auth.UsersRead,
		Summary: "Check whether users exist", NoReplay: true,
		Doc: "The answers come in the order of the items. Each item is handled as by `user-exists`.",
		Request: map[string]any{"items": []any{
			map[string]any{"username": "li.wei"}, map[string]any{"email": "nobody@acme.test"},
		}},
		Response: map[string]any{"items": []any{
			map[string]any{"exists": true, "user_id": "1048577"}, map[string]any{"exists": false},
		}},
	}, a.usersExist)
}

type loginNameInput struct {
	Body struct {
		LoginName string `json:"login_name" maxLength:"512" doc:"A username, email or mobile" example:"li.wei"`
		UserID    string `json:"user_id,omitempty" maxLength:"64" doc:"A user who may keep it"`
	}
}

func (a *api) checkLoginName(ctx context.Context, in *loginNameInput) (user.LoginName, error) {
	return a.users.CheckLoginName(ctx, in.Body.LoginName, in.Body.UserID)
}

// UserIdentity is what a user is looked for by.
type UserIdentity struct {
	ID             string `json:"id,omitempty" maxLength:"64" doc:"Its id"`
	Username       string `json:"username,omitempty" maxLength:"512" doc:"Its username" example:"li.wei"`
	Email          string `json:"email,omitempty" maxLength:"512" doc:"Its email"`
	Mobile         string `json:"mobile,omitempty" maxLength:"512" doc:"Its mobile"`
	EmployeeNumber string `json:"employee_number,omitempty" maxLength:"512" doc:"Its employee number"`
}

type existsInput struct {
	Body UserIdentity
}

func (a *api) userExists(ctx context.Context, in *existsInput) (user.Existence, error) {
	return a.users.Exists(ctx, user.Identity(in.Body))
}

type existInput struct {
	Body struct {
		Items []UserIdentity `json:"items" minItems:"1" maxItems:"1000" nullable:"false" doc:"1…1000 to ask about"`
	}
}

func (a *api) usersExist(ctx context.Context, in *existInput) (user.Existences, error) {
	list := make([]user.Identity, len(in.Body.Items))
	for i, item := range in.Body.Items {
		list[i] = user.Identity(item)
	}
	return a.users.ExistMany(ctx, list)
}
