package message

import (
	"cmp"
	"context"
	"net/mail"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/sign-in/internal/settings"
)

// example is a message with a made-up name and code. Without a locale, it has that of the settings.
func (s *Sender) example(kind Kind, locale string, of *settings.Settings) Message {
	m := Message{
		Kind: kind, Name: "Li Wei", Locale: cmp.Or(locale, of.Locale), Code: secret.New("BCDFGHJK"),
		Ends: s.Store.Now().Add(Minutes * time.Minute),
	}
	switch kind {
	case Invitation:
		m.Code, m.LoginName = secret.New("BCDFGHJKMNPQRTVW"), "li.wei"
		m.Ends = s.Store.Now().Add(7 * 24 * time.Hour)
	case Linked:
		m.Code, m.Ends, m.Through = secret.String{}, clock.Time{}, "Acme SSO"
	}
	return m
}

// Preview makes the text of an example, with the tenant's settings or with draft in their place. The error is
// apperr.InvalidParameters (in draft).
func (s *Sender) Preview(ctx context.Context, kind Kind, locale string, draft *settings.Messages) (Text, error) {
	of, err := s.Settings.Of(ctx)
	if err != nil {
		return Text{}, err
	}
	if draft != nil {
		if err := draft.Check(); err != nil {
			return Text{}, err
		}
		changed := *of
		changed.Messages = *draft
		of = &changed
	}
	return s.compose(ctx, of, s.example(kind, locale, of)), nil
}

const (
	testTime = 15 * time.Second
	idBytes  = 16
)

// Test sends an example now, and returns who has taken it. The error is
// apperr.InvalidParameters (the address), RateLimited, Unavailable, or InvalidState with what the mail server says. A
// dry run sends nothing.
func (s *Sender) Test(ctx context.Context, kind Kind, locale, to string, dryRun bool) (server Carrier, err error) {
	if address, err := mail.ParseAddress(to); err != nil || address.Name != "" || address.Address != to {
		return "", apperr.Invalid("to", "must be a mail address")
	}
	of, err := s.Settings.Of(ctx)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	m := s.example(kind, locale, of)
	m.To = to
	if !dryRun {
		ok, err := docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (bool, error) { return takeTest(ctx, tx) })
		if err != nil {
			return "", err
		}
		if !ok {
			return "", apperr.New(apperr.RateLimited, "there were %d test mails in this hour", maxTests)
		}
	}
	server, err = s.deliver(ctx, secret.Token(idBytes), m, s.compose(ctx, of, m), dryRun)
	if err != nil && apperr.KindOf(err) != apperr.Unavailable {
		err = apperr.New(apperr.InvalidState, "%s", err.Error()).Because(err)
	}
	return server, err
}
