package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/settings"
)

// PageTexts describes settings.Texts: texts by language; plain text of up to 500 characters.
type PageTexts struct {
	SignIn PageText `json:"sign_in,omitempty" doc:"Above the sign-in form"`
	Help   PageText `json:"help,omitempty" doc:"Whom to ask, where something is refused"`
}

// PageText is a text in the languages of the pages.
type PageText struct {
	English string `json:"en,omitempty" doc:"English" example:"Call 4711."`
	Chinese string `json:"zh,omitempty" doc:"Simplified Chinese" example:"请拨打 4711。"`
}

// MailTexts describes settings.MessageTexts.
type MailTexts struct {
	Subject PageText `json:"subject,omitempty" doc:"One line of up to 100 characters. Missing: the one of the platform, which has the code if the mail is about a forgotten password"`
	Words   PageText `json:"words,omitempty" doc:"Above the code"`
}

const settingsPath = "/v1/sign-in/settings"

func (a *api) registerSettings(s *rest.Server) {
	rest.Named[settings.Settings](s, "SignInSettings")
	rest.Named[settings.Link](s, "PageLink")
	rest.DescribedAs[settings.Texts, PageTexts](s)
	rest.Named[settings.Messages](s, "MailSettings")
	rest.DescribedAs[settings.MessageTexts, MailTexts](s)
	rest.Handle(s, rest.Op{
		ID: "get-sign-in-settings", Method: http.MethodGet, Path: settingsPath, Scope: auth.SignInRead,
		Summary: "Get the settings of sign-in",
	}, func(ctx context.Context, _ *struct{}) (rest.Record[settings.Settings], error) {
		return rest.RecordOf[settings.Settings](a.Settings.Get(ctx))
	})
	rest.Handle(s, rest.Op{
		ID: "replace-sign-in-settings", Method: http.MethodPut, Path: settingsPath, Scope: auth.SignInWrite,
		Singleton: true,
		Summary:   "Replace the settings of sign-in", Request: exampleSettingsInput,
		Doc: "Members that are left out get their defaults.",
	}, func(ctx context.Context, in *struct {
		Body rest.JSON[rest.Input[settings.Settings]]
	}) (rest.Record[settings.Settings], error) {
		return rest.RecordOf[settings.Settings](a.Settings.Change(ctx, func(p *settings.Profile) error {
			settings.Fresh(p)
			return in.Body.Into(p)
		}))
	})
	rest.Handle(s, rest.Op{
		ID: "update-sign-in-settings", Method: http.MethodPatch, Path: settingsPath, Scope: auth.SignInWrite,
		Singleton: true,
		Summary:   "Change the settings of sign-in", Request: exampleSettingsInput,
	}, func(ctx context.Context, in *struct {
		Body rest.MergePatch[rest.Input[settings.Settings]]
	}) (rest.Record[settings.Settings], error) {
		return rest.RecordOf[settings.Settings](a.Settings.Change(ctx, func(p *settings.Profile) error {
			return in.Body.Into(p)
		}))
	})
}

var exampleSettingsInput = map[string]any{"name": "Acme", "colour": "#1a5fb4", "colour_dark": "#8ab4ff"}
