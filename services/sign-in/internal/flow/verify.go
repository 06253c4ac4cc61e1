package flow

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/recovery"
	"github.com/idplatform/idplatform/services/sign-in/internal/session"
)

// The outcomes of AskToVerify and VerifyEmail, as the person's own page says them.
const (
	CodeSent      = "code_sent"
	EmailVerified = "email_verified"
	WrongCode     = "wrong_code"
	TooManyMails  = "too_many_mails"
	NotVerifiable = "not_verifiable"
	ServiceAway   = "away"
)

// Verification says what a person can do about their address on their own page.
type Verification int

// The values of Verification.
const (
	NothingToVerify Verification = iota
	CanVerify
	CodeIsOut // a code was sent in the session
)

// VerificationOf says what a person who is signed in can do about their address.
func (e *Engine) VerificationOf(ctx context.Context, s *session.Session, u *person.User) (Verification, error) {
	if !u.VerifiableEmail() || !e.Recovery.Available(ctx) {
		return NothingToVerify, nil
	}
	sent, err := e.Recovery.Verifies(ctx, s.ID, u.Email)
	if sent {
		return CodeIsOut, err
	}
	return CanVerify, err
}

// AskToVerify has a code mailed to the address of a person who is signed in.
func (e *Engine) AskToVerify(ctx context.Context, s *session.Session, u *person.User, locale string, v Visitor) (string,
	error,
) {
	can, err := e.VerificationOf(ctx, s, u)
	if err != nil || can == NothingToVerify {
		return NotVerifiable, err
	}
	known, err := e.Sessions.KnownTo(ctx, v.Browser)
	if err != nil {
		return "", err
	}
	asking := recovery.Verifying{SessionID: s.ID, User: u, Locale: locale}
	if slices.Contains(known, s.UserID) { // else a browser that drops its cookie would have limits without end
		asking.Browser = v.Browser
	}
	sent, err := e.Recovery.AskToVerify(ctx, asking)
	if err != nil || !sent {
		return TooManyMails, err
	}
	return CodeSent, nil
}

// VerifyEmail checks a code, and has the address verified that it was sent to.
func (e *Engine) VerifyEmail(ctx context.Context, s *session.Session, code string) (string, error) {
	email, err := e.Recovery.TryToVerify(ctx, s.ID, code)
	if err != nil || email == "" {
		return WrongCode, err
	}
	in, err := questions.VerifyEmail.Ask(ctx, e.Bus, questions.ProvenEmail{UserID: s.UserID, Email: email})
	switch apperr.KindOf(err) {
	case apperr.Unavailable:
		return ServiceAway, e.Recovery.UntryToVerify(ctx, s.ID)
	case apperr.NotFound, apperr.InvalidState:
		return NotVerifiable, nil
	}
	if err != nil {
		return "", err
	}
	return EmailVerified, docstore.Do(ctx, e.Store, func(tx *docstore.Tx) error {
		if _, err := person.Keep(ctx, tx, s.UserID, in); err != nil {
			return err
		}
		return e.Recovery.Verified(ctx, tx, s.ID)
	})
}
