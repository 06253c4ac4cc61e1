package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/message"
	"github.com/idplatform/idplatform/services/sign-in/internal/settings"
)

// MessageInput names a kind of mail, and its language.
type MessageInput struct {
	Kind   string `json:"kind" enum:"recovery,invitation,verification,linked" doc:"What the mail is about" example:"recovery"`
	Locale string `json:"locale,omitempty" enum:"en,zh" doc:"The language; the default is that of the settings" example:"en"`
}

// MessagePreviewInput is what POST /v1/sign-in/messages/preview takes.
type MessagePreviewInput struct {
	MessageInput
	Messages *settings.Messages `json:"messages,omitempty" doc:"Settings to try; the default is the saved ones"`
}

// MessageTestInput is what POST /v1/sign-in/messages/test takes.
type MessageTestInput struct {
	MessageInput
	To string `json:"to" maxLength:"320" doc:"The mail address that gets it" example:"you@acme.test"`
}

// MessageTested is how a test mail has left.
type MessageTested struct {
	Server string `json:"server" enum:"connection,platform,log" doc:"What took the mail: the tenant's mail server (connection), the platform's, or the log"`
}

const messagesPath = "/v1/sign-in/messages"

func (a *api) registerMessages(s *rest.Server) {
	rest.Named[message.Text](s, "MailText")
	rest.Handle(s, rest.Op{
		ID: "preview-message", Method: http.MethodPost, Path: messagesPath + "/preview", Scope: auth.SignInRead,
		Summary: "Show a mail as people get it", NoReplay: true,
		Doc:      "The mail has the tenant's words, and a made-up name and code.",
		Request:  map[string]any{"kind": "recovery", "locale": "en"},
		Response: exampleText,
	}, func(ctx context.Context, in *struct{ Body MessagePreviewInput }) (message.Text, error) {
		return a.Messages.Preview(ctx, message.Kind(in.Body.Kind), in.Body.Locale, in.Body.Messages)
	})
	rest.Handle(s, rest.Op{
		ID: "test-message", Method: http.MethodPost, Path: messagesPath + "/test", Scope: auth.SignInWrite,
		IfMatchParam: rest.NoRecord, Summary: "Send a mail to try it out", NoReplay: true,
		Errors: []apperr.Kind{apperr.InvalidState, apperr.RateLimited, apperr.Unavailable},
		Doc: "Sends the mail now, within 15 seconds, with a code that serves nothing. A tenant can do so 20 times in " +
			"an hour. The error invalid_state says what the mail server answers, or that there is " +
			"none. A dry run sends nothing.",
		Request:  map[string]any{"kind": "recovery", "locale": "en", "to": "you@acme.test"},
		Response: MessageTested{Server: "connection"},
	}, func(ctx context.Context, in *struct{ Body MessageTestInput }) (MessageTested, error) {
		body := in.Body
		server, err := a.Messages.Test(ctx, message.Kind(body.Kind), body.Locale, body.To, docstore.IsDryRun(ctx))
		return MessageTested{Server: string(server)}, err
	})
}

var exampleText = message.Text{
	Sender: "Acme", Subject: "Your code: BCDF-GHJK", Plain: "Hello Li Wei, …", HTML: "<!doctype html>…", Lang: "en",
}
