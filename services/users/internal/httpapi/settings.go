package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/users/internal/user"
)

const settingsPath = "/v1/users-settings"

func (a *api) registerSettings(s *rest.Server) {
	rest.Named[user.Settings](s, "UserSettings")
	rest.Handle(s, rest.Op{
		ID: "get-user-settings", Method: http.MethodGet, Path: settingsPath, Scope: auth.UsersRead,
		Summary: "Get the settings of users",
	}, func(ctx context.Context, _ *struct{}) (rest.Record[user.Settings], error) {
		return rest.RecordOf[user.Settings](a.users.Settings(ctx))
	})
	rest.Handle(s, rest.Op{
		ID: "update-user-settings", Method: http.MethodPatch, Path: settingsPath, Scope: auth.UsersWrite,
		Singleton: true,
		Summary:   "Change the settings of users", Request: map[string]any{"shared_contacts": true},
		Doc: "JSON merge patch (RFC 7396). Users who share an email or mobile already go on sharing it when " +
			"`shared_contacts` becomes false.",
	}, func(ctx context.Context, in *struct {
		Body rest.MergePatch[rest.Input[user.Settings]]
	}) (rest.Record[user.Settings], error) {
		return rest.RecordOf[user.Settings](a.users.ChangeSettings(ctx, func(p *user.SettingsProfile) error {
			return in.Body.Into(p)
		}))
	})
}
