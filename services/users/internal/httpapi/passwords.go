package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/users/internal/user"
)

func (a *api) registerPasswords(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "reset-password", Method: http.MethodPost, Path: "/v1/users/{id}/reset-password", Scope: auth.UsersSecrets,
		Summary: "Reset a user's password",
		Doc: "The user must change it at the next sign-in. Without `new_password` one is generated, and only then " +
			"does the answer contain it. Resets to a given password that change nothing, such as dry runs, are " +
			"limited like wrong passwords: 429. The caller needs the scopes of this API that rules give the user.",
		RecentSignIn: rest.FreshAlways,
		Request:      map[string]any{}, Response: map[string]any{"password": "kR7-vm2Q-xW9e-Zt4p"},
	}, a.resetPassword)
	rest.Handle(s, rest.Op{
		ID: "reset-passwords", Method: http.MethodPost, Path: "/v1/batch/users-reset-password",
		Scope: auth.UsersSecrets, Summary: "Reset users' passwords",
		Doc: "All or nothing. Hashing 1000 passwords takes a while. The caller needs the scopes of this API that " +
			"rules give the users.",
		Timeout:      5 * time.Minute,
		RecentSignIn: rest.FreshAlways,
		Response:     map[string]any{"items": []any{map[string]any{"id": "1048577", "password": "kR7-vm2Q-xW9e-Zt4p"}}},
	}, a.resetPasswords)
	rest.Handle(s, rest.Op{
		ID: "change-password", Method: http.MethodPost, Path: "/v1/users/{id}/change-password",
		Scope: auth.UsersSecrets, Summary: "Change a password, knowing the old one",
		Doc: "A wrong old password counts as a failed login, in a dry run, too. A user who is locked, disabled or " +
			"resigned is refused, whatever the password.",
		Errors:  []apperr.Kind{apperr.InvalidState},
		Request: map[string]any{"old_password": "the old one", "new_password": "a new one"},
	}, a.changePassword)
	rest.Named[user.Credentials](s, "VerifyLoginRequest")
	rest.Handle(s, rest.Op{
		ID: "verify-login", Method: http.MethodPost, Path: "/v1/thin/login-verification", Scope: auth.UsersVerify,
		Summary: "Verify a login name and password",
		Doc: "Always 200. The true reason of a refusal is given only if the password is right. Five failures in " +
			"15 minutes lock the user for 15 minutes, unless configured otherwise. After five more while the user is " +
			"locked, the right password is answered like a wrong one. A wrong password is counted in a dry run, " +
			"too.\n\n`mfa_required` says whether the user has a second factor; it follows within a second. With " +
			"`app_id` it says whether that application demands one of this user, by its settings and its login " +
			"template; conditions of the template are met without a known browser and address. With `otp`, a " +
			"code of an authenticator app, `verified` says that both are right, and `mfa_required` what is due " +
			"beyond. Wrong codes are counted as at a sign-in. A code is used up in a dry run, too.",
		Errors:   []apperr.Kind{apperr.Unavailable},
		NoReplay: true,
		Request:  map[string]any{"login_name": "li.wei", "password": "a password"},
		Response: map[string]any{"verified": true, "user_id": "1048577", "must_change_password": false,
			"mfa_required": false},
	}, a.verifyLogin)
}

type resetPasswordInput struct {
	rest.ByID
	Body *struct {
		NewPassword string `json:"new_password,omitempty" writeOnly:"true" doc:"8…256 characters"`
	}
}

func (a *api) resetPassword(ctx context.Context, in *resetPasswordInput) (user.PasswordReset, error) {
	newPassword := ""
	if in.Body != nil {
		newPassword = in.Body.NewPassword
	}
	return a.users.ResetPassword(ctx, in.ID, newPassword)
}

func (a *api) resetPasswords(ctx context.Context, in *idsInput) (user.PasswordResets, error) {
	return a.users.ResetPasswords(ctx, in.Body.IDs)
}

type changePasswordInput struct {
	rest.ByID
	Body struct {
		OldPassword string `json:"old_password" writeOnly:"true" maxLength:"1024" doc:"The password as it is"`
		NewPassword string `json:"new_password" writeOnly:"true" doc:"8…256 characters"`
	}
}

func (a *api) changePassword(ctx context.Context, in *changePasswordInput) (rest.Empty, error) {
	return rest.Empty{}, a.users.ChangePassword(ctx, in.ID, in.Body.OldPassword, in.Body.NewPassword)
}

type loginInput struct{ Body user.Credentials }

func (a *api) verifyLogin(ctx context.Context, in *loginInput) (user.Verification, error) {
	return a.users.VerifyLogin(ctx, in.Body)
}
