package flow

import (
	"context"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// Method is a way to prove who somebody is. What it has proven is a proof.Proof, and nothing else counts: which page
// comes next follows from the proofs.
type Method interface {
	// Finish checks what a person has sent for a flow. The error is apperr.Unavailable if a service that must be asked
	// does not answer.
	Finish(ctx context.Context, f *Flow, form Form, v Visitor) (Proven, error)
}

// Proven is what became of what a person has sent.
type Proven struct {
	// User is whom the proof is of; nil: it was refused.
	User *person.User
	// Proof counts once nothing is demanded any more.
	Proof proof.Proof
	// SignedIn is the user's record as the service that has checked the proof knows it.
	SignedIn questions.SignedIn
	// MustChangePassword demands a new password, which takes the place of the proof.
	MustChangePassword bool
	// TooMany says that it was not checked, because of too many failures.
	TooMany bool
}

// passwords is the method password.
type passwords struct{ *Engine }

// Finish implements Method.
func (m passwords) Finish(ctx context.Context, f *Flow, form Form, v Visitor) (Proven, error) {
	name := strings.TrimSpace(form.LoginName)
	f.LoginName = name[:min(len(name), maxLoginName)]
	attempt, err := m.Admit(ctx, Password, v, f.LoginName)
	if err != nil {
		return Proven{}, err
	}
	if attempt == nil {
		return Proven{TooMany: true}, nil
	}
	login := questions.LoginVerified{}
	if name != "" && len(name) <= maxLoginName && form.Password != "" && len(form.Password) <= maxPassword {
		if login, err = m.verify(ctx, name, form.Password, v); err != nil {
			return Proven{}, err
		}
	}
	told, err := attempt.Settle(ctx, login.Verified)
	if err != nil || !told {
		return Proven{TooMany: err == nil}, err
	}
	if !login.Verified {
		return Proven{}, nil
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

// missing are the types of methods that a login demands and the service does not have: whoever proves all that it has
// does not complete the login.
func (e *Engine) missing(t questions.LoginTemplate, mfa bool) []string {
	var all []proof.Proof
	for method := range e.methods {
		all = append(all, proof.Proof{Method: method, Channel: method})
	}
	steps := stepsOf(t)
	left := proof.Left(steps, all)
	var types []string
	for _, i := range left {
		switch {
		case !steps[i].Required:
		case len(steps[i].Methods) == 0:
			types = append(types, "none")
		default:
			types = append(types, steps[i].Methods...)
		}
	}
	if len(left) == len(steps) && len(types) == 0 { // nothing of what it offers can be proven
		types = append(types, proof.Password)
	}
	if mfa && len(types) == 0 {
		types = append(types, "mfa")
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// stepsOf are the steps of a template; without one, a password.
func stepsOf(t questions.LoginTemplate) []proof.Step {
	if !t.Found || len(t.Steps) == 0 {
		return []proof.Step{{Required: true, Methods: []string{proof.Password}}}
	}
	steps := make([]proof.Step, len(t.Steps))
	for i, step := range t.Steps {
		steps[i].Required = step.Required
		for _, m := range step.Methods {
			steps[i].Methods = append(steps[i].Methods, m.Type)
		}
	}
	return steps
}
