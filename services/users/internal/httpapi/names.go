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
		Doc:     "Finds the user who has all the given members.", Request: map[string]any{"username": "li.wei"},
		Response: map[string]any{"exists": true, "user_id": "1048577"},
	}, a.userExists)
}

type loginNameInput struct {
	Body struct {
		LoginName string `json:"login_name" maxLength:"512" example:"li.wei"`
		UserID    string `json:"user_id,omitempty" maxLength:"64"`
	}
}

func (a *api) checkLoginName(ctx context.Context, in *loginNameInput) (user.LoginName, error) {
	return a.users.CheckLoginName(ctx, in.Body.LoginName, in.Body.UserID)
}

type existsInput struct {
	Body struct {
		ID             string `json:"id,omitempty" maxLength:"64"`
		Username       string `json:"username,omitempty" maxLength:"512" example:"li.wei"`
		Email          string `json:"email,omitempty" maxLength:"512"`
		Mobile         string `json:"mobile,omitempty" maxLength:"512"`
		EmployeeNumber string `json:"employee_number,omitempty" maxLength:"512"`
	}
}

func (a *api) userExists(ctx context.Context, in *existsInput) (user.Existence, error) {
	return a.users.Exists(ctx, user.Identity(in.Body))
}
