package flow

import (
	"context"
	"strings"

	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/factor"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// Method is a way to prove who somebody is. What it has proven is a proof.Proof, and nothing else counts: which page
// comes next follows from the proofs.
type Method interface {
	// Guess is what a wrong one counts as.
	Guess() Guess
	// Check checks what a person has sent for a flow. A flow with a user is for that user. The error is
	// apperr.Unavailable if a service that must be asked does not answer.
	Check(ctx context.Context, f *Flow, form Form, v Visitor) (Proven, error)
}

// Proven is what became of what a person has sent.
type Proven struct {
	// User is whom the proof is of; nil: it was refused.
	User *person.User
	// Proof counts once nothing is demanded any more.
	Proof proof.Proof
	// LoginName is by what name the person is known from then on; empty: by that of the flow.
	LoginName string
	// SignedIn is the user's record as the service that has checked the proof knows it.
	SignedIn questions.SignedIn
	// OwnProof demands a proof of this platform beside that of another provider.
	OwnProof bool
	// MustChangePassword demands a new password.
	MustChangePassword bool
	// TooMany says that it was not checked, because of too many failures.
	TooMany bool
	// Notice says why it was refused.
	Notice string
}

// check checks what a person has sent for a method, within the limits of guesses.
func (e *Engine) check(ctx context.Context, method string, f *Flow, form Form, v Visitor) (Proven, error) {
	m := e.methods[method]
	attempt, err := e.Admit(ctx, m.Guess(), v, f.LoginName)
	if err != nil {
		return Proven{}, err
	}
	if attempt == nil {
		return Proven{TooMany: true}, nil
	}
	done, err := m.Check(ctx, f, form, v)
	if err != nil {
		return Proven{}, err
	}
	told, err := attempt.Settle(ctx, done.User != nil)
	if err != nil || !told {
		return Proven{TooMany: err == nil}, err
	}
	return done, nil
}

// passwords is the method password.
type passwords struct{ *Engine }

// Guess implements Method.
func (passwords) Guess() Guess { return Password }

// Check implements Method. The flow has the login name.
func (m passwords) Check(ctx context.Context, f *Flow, form Form, v Visitor) (Proven, error) {
	wrong := Proven{Notice: NoticeWrong}
	wasCut := strings.TrimSpace(form.LoginName) != f.LoginName
	if f.LoginName == "" || wasCut || form.Password == "" || len(form.Password) > maxPassword {
		return wrong, nil
	}
	login, err := m.verify(ctx, f.LoginName, form.Password, v)
	if err != nil || !login.Verified {
		return wrong, err
	}
	user, err := person.Parse(login.User)
	if err != nil {
		return Proven{}, err
	}
	return Proven{
		User: user, Proof: proof.ByPassword(m.Store.Now(), user.TimePasswordChanged), SignedIn: login.SignedIn,
		MustChangePassword: login.MustChangePassword,
	}, nil
}

// known are the methods that the service has, on the way to a view's application.
func (e *Engine) known(view *View) []string {
	return append(append(e.canSetUp(), proof.Password, proof.RecoveryCode), view.elsewhere()...)
}

// canSetUp are the methods of which people can set up one in a flow.
func (e *Engine) canSetUp() []string {
	if e.Site == (factor.Site{}) {
		return []string{proof.App}
	}
	return []string{proof.Passkey, proof.App}
}
