package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/settings"
)

// SignInSettings describes settings.Settings for the OpenAPI document.
type SignInSettings struct {
	rest.Meta
	Name             string     `json:"name" doc:"The organization's name, up to 64 characters; empty: none is shown" example:"Acme"`
	Logo             string     `json:"logo" doc:"A data URI in base64 of a PNG, JPEG, GIF or WebP, up to 64 KiB; empty: none"`
	Colour           string     `json:"colour" doc:"Of buttons and links on light pages, with a contrast of at least 4.5 to white; empty: the platform's" example:"#1a5fb4"`
	ColourDark       string     `json:"colour_dark" doc:"Of those on dark pages, with a contrast of at least 4.5 to #1c1f26; empty: the platform's" example:"#8ab4ff"`
	Locale           string     `json:"locale" enum:"en,zh" doc:"The language where nothing says which one a person reads"`
	Links            []PageLink `json:"links" doc:"At the foot of each page, up to 5"`
	Texts            PageTexts  `json:"texts" doc:"What the tenant says on the pages"`
	FailuresPerMin   int        `json:"failures_per_minute" doc:"Wrong passwords from one address in a minute" example:"10"`
	FailuresOfTenant int        `json:"failures_of_tenant" doc:"Wrong passwords of all in a minute" example:"300"`
}

// PageLink is a link at the foot of the pages.
type PageLink struct {
	Label string `json:"label" doc:"Up to 64 characters" example:"Privacy"`
	URL   string `json:"url" doc:"An https, http or mailto URL" example:"https://acme.test/privacy"`
}

// PageTexts are texts by language; plain text of up to 500 characters.
type PageTexts struct {
	SignIn PageText `json:"sign_in,omitempty" doc:"Above the sign-in form"`
	Help   PageText `json:"help,omitempty" doc:"Whom to ask, where something is refused"`
}

// PageText is a text in the languages of the pages.
type PageText struct {
	English string `json:"en,omitempty" doc:"English" example:"Call 4711."`
	Chinese string `json:"zh,omitempty" doc:"Simplified Chinese" example:"请拨打 4711。"`
}

// SignInSettingsInput are the settings to be changed.
type SignInSettingsInput struct {
	rest.MembersOf[SignInSettings]
}

const settingsPath = "/v1/sign-in/settings"

func (a *api) registerSettings(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "get-sign-in-settings", Method: http.MethodGet, Path: settingsPath, Scope: auth.SignInRead,
		Summary: "Get the settings of sign-in", Response: exampleSettings,
	}, func(ctx context.Context, _ *struct{}) (rest.Record[SignInSettings], error) {
		return rest.RecordOf[SignInSettings](a.Settings.Get(ctx))
	})
	rest.Handle(s, rest.Op{
		ID: "replace-sign-in-settings", Method: http.MethodPut, Path: settingsPath, Scope: auth.SignInWrite,
		Single:  true,
		Summary: "Replace the settings of sign-in", Request: exampleSettingsInput, Response: exampleSettings,
		Doc: "Members that are left out get their defaults.",
	}, func(ctx context.Context, in *struct {
		Body rest.JSON[SignInSettingsInput]
	}) (rest.Record[SignInSettings], error) {
		return rest.RecordOf[SignInSettings](a.Settings.Change(ctx, func(p *settings.Profile) error {
			settings.Fresh(p)
			return in.Body.Into(p)
		}))
	})
	rest.Handle(s, rest.Op{
		ID: "update-sign-in-settings", Method: http.MethodPatch, Path: settingsPath, Scope: auth.SignInWrite,
		Single:  true,
		Summary: "Change the settings of sign-in", Request: exampleSettingsInput, Response: exampleSettings,
	}, func(ctx context.Context, in *struct {
		Body rest.MergePatch[SignInSettingsInput]
	}) (rest.Record[SignInSettings], error) {
		return rest.RecordOf[SignInSettings](a.Settings.Change(ctx, func(p *settings.Profile) error {
			return in.Body.Into(p)
		}))
	})
}

var exampleSettingsInput = map[string]any{"name": "Acme", "colour": "#1a5fb4", "colour_dark": "#8ab4ff"}

var exampleSettings = json.RawMessage(`{"id":"1048577","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z","name":"Acme","logo":"",` +
	`"colour":"#1a5fb4","colour_dark":"#8ab4ff","locale":"en","links":[],"texts":{"sign_in":{},"help":{}},` +
	`"failures_per_minute":10,"failures_of_tenant":300}`)
