package flow

import (
	"context"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/questions/loginstep"
	"github.com/idplatform/idplatform/services/sign-in/internal/factor"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// demandOf is what an application demands of everybody: the steps of its template that have no condition, and the
// class.
func demandOf(steps []questions.LoginStep, app questions.Client) proof.Demand {
	d := proof.Demand{}
	for _, step := range steps {
		if step.When == "" {
			d.Steps = append(d.Steps, stepOf(step))
		}
	}
	if app.MFA {
		d.Class, d.Factors, d.NoSetUp = proof.TwoFactors, withCodes(app.MFAMethods), app.MFANoSetUp
	}
	return d
}

// asked adds what a request asks for: one of the classes, of which an essential one must be reached.
func asked(d proof.Demand, r protocol.Request) proof.Demand {
	if !r.ACREssential {
		d.Wishes = r.ACR
		return d
	}
	least := ""
	for _, class := range r.ACR { // any of them will do
		if least == "" || proof.Meets(least, class) {
			least = class
		}
	}
	if !proof.Meets(d.Class, least) {
		d.Class = least
	}
	return d
}

// stepsOf are the steps of a template. Without one it is a password or a passkey.
func stepsOf(t questions.LoginTemplate) []questions.LoginStep {
	if t.Found && len(t.Steps) > 0 {
		return t.Steps
	}
	return []questions.LoginStep{{
		Required: true, Methods: []questions.LoginMethod{{Type: proof.Password}, {Type: proof.Passkey}},
	}}
}

// stepOf is a step as it is for somebody who has a factor for it.
func stepOf(step questions.LoginStep) proof.Step {
	s := proof.Step{
		Required: step.Required || step.Enrol == questions.EnrolDemand, NoSetUp: step.Enrol == questions.EnrolOff,
		Verified: verifiesUsers(step),
	}
	for _, m := range step.Methods {
		s.Methods = append(s.Methods, m.Type)
		if m.Second {
			s.Second = append(s.Second, m.Type)
		}
	}
	s.Methods = withCodes(s.Methods)
	return s
}

// withCodes adds recovery codes to methods whose place they can take.
func withCodes(methods []string) []string {
	if slices.ContainsFunc(methods, proof.IsFactor) {
		return append(slices.Clone(methods), proof.RecoveryCode)
	}
	return methods
}

// holding are those steps of the template of a view that are there for a person.
func (e *Engine) holding(ctx context.Context, view *View, s *subject) ([]questions.LoginStep, error) {
	var steps []questions.LoginStep
	for _, step := range view.steps {
		if step.When != "" {
			in, err := e.input(ctx, view, s)
			if err != nil {
				return nil, err
			}
			holds, err := loginstep.Holds(ctx, step.When, in)
			if err != nil {
				return nil, err
			}
			if !holds {
				continue
			}
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// input is what the conditions of steps can read.
func (e *Engine) input(ctx context.Context, view *View, s *subject) (loginstep.Input, error) {
	in := loginstep.Input{
		User: []byte("{}"), Address: view.visitor.Address, ACR: view.Flow.Request.ACR,
		Groups: func() ([]string, error) { return e.Groups(ctx, s.userID) },
		KnownBrowser: func() (bool, error) {
			return e.Sessions.Trusts(ctx, view.visitor.Browser, s.userID)
		},
		Application: loginstep.Application{
			ID: view.App.AppID, ClientID: view.App.ClientID, Name: view.App.Name, Category: view.App.Category,
		},
	}
	if s.user != nil && len(s.user.Record) > 0 {
		in.User = s.user.Record
		return in, nil
	}
	copied, err := person.Find(ctx, e.Store, s.userID)
	if err != nil {
		return in, apperr.Ignore(err, apperr.NotFound)
	}
	in.User = copied.User
	return in, nil
}

// next is what is due after what a person has shown. The person's factors are looked up only where they decide.
func (e *Engine) next(ctx context.Context, view *View, s *subject) (next proof.Next, err error) {
	d := view.demand
	if s.ofSession { // what the person prefers was asked for when the session began
		d.Prefers = ""
	}
	steps, err := e.holding(ctx, view, s)
	if err != nil {
		return next, err
	}
	d.Steps = make([]proof.Step, len(steps))
	for i, step := range steps {
		d.Steps[i] = stepOf(step)
	}
	all := proof.Person{Known: true, Methods: e.known(), Factors: []string{proof.App, proof.Passkey}}
	if next = d.Next(s.proofs, all, e.canSetUp()); next.Done() && !shownFactor(s.proofs) {
		return next, nil
	}
	if s.set == nil {
		if s.set, err = e.Factors.Of(ctx, s.userID); err != nil {
			return next, err
		}
	}
	who := proof.Person{
		Known: true, Methods: append([]string{proof.Password}, s.set.Methods(e.Site)...), Factors: s.set.Types(),
	}
	if err := e.postpone(ctx, view, s, steps, d.Steps, who); err != nil {
		return next, err
	}
	return d.Next(s.proofs, who, e.canSetUp()), nil
}

// A person who may go on without a factor is asked again after some time.
const (
	askAgain        = 30 * 24 * time.Hour // where it is offered
	askAgainInGrace = 24 * time.Hour      // where it is demanded later
)

// postpone relaxes the steps for which a person has no method and may go on without.
func (e *Engine) postpone(ctx context.Context, view *View, s *subject, steps []questions.LoginStep,
	relaxed []proof.Step, who proof.Person,
) error {
	var postponed *factor.Postponed
	now, r := e.Store.Now(), view.Flow.Request
	for i, step := range steps {
		offers := step.Enrol == questions.EnrolOffer
		inGrace := step.Enrol == questions.EnrolDemand && step.GraceDays > 0
		has := slices.ContainsFunc(who.Methods, func(m string) bool {
			return m != proof.RecoveryCode && slices.Contains(relaxed[i].Methods, m)
		})
		if has || !offers && !inGrace {
			continue
		}
		if postponed == nil {
			var err error
			if postponed, err = e.Factors.Postponed(ctx, s.userID); err != nil {
				return err
			}
		}
		first, last := postponed.At(view.template)
		again, until := askAgain, clock.Time{}
		if inGrace {
			if first.IsZero() {
				first = now
			}
			until = first.Add(time.Duration(step.GraceDays) * 24 * time.Hour)
			if again = askAgainInGrace; !now.Before(until) {
				continue
			}
		}
		relaxed[i].Required = false
		asked := last.IsZero() || !now.Before(last.Add(again))
		if relaxed[i].Offer = asked && !r.Passive && !view.Flow.hasTask(); relaxed[i].Offer && s.until.IsZero() {
			s.until = until
		}
	}
	return nil
}

// later lets a person go on without a factor.
func (e *Engine) later(ctx context.Context, f *Flow, now View, v Visitor) (View, error) {
	view := View{Kind: Leave, Flow: f}
	if !now.Later {
		return view, e.save(ctx, f, v.Browser, nil)
	}
	f.Setup, f.SetupType = "", ""
	err := e.saveAfter(ctx, f, v.Browser, func(ctx context.Context, tx *docstore.Tx, _ *Flow) error {
		return factor.Postpone(ctx, tx, now.subject.userID, now.template)
	}, nil)
	if err != nil || now.subject.ofSession {
		return view, err
	}
	return e.goOn(ctx, f, Proven{User: &person.User{ID: f.UserID}}, now, v)
}
