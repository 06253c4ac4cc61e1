package flow

import (
	"context"
	"slices"
	"strings"
	"sync"
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
	"github.com/idplatform/idplatform/services/sign-in/internal/session"
)

// demandOf is what an application demands of everybody: the steps of its template that have no condition, and the
// class.
func demandOf(steps []questions.LoginStep, app questions.Client) proof.Demand {
	d := proof.Demand{}
	for _, step := range steps {
		if step.When == "" {
			one := stepOf(step)
			one.Required = one.Required && !mayWait(step)
			d.Steps = append(d.Steps, one)
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
		methods := []string{m.Type}
		if len(m.Connections) > 0 {
			methods = nil
		}
		for _, c := range m.Connections {
			methods = append(methods, proof.Upstream(c.ID))
		}
		s.Methods = append(s.Methods, methods...)
		if m.Second {
			s.Second = append(s.Second, methods...)
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

// mayWait reports whether people who have no factor for a step may go on without.
func mayWait(step questions.LoginStep) bool {
	return step.Enrol == questions.EnrolOffer || hasGrace(step)
}

// hasGrace reports whether they may do so for some days.
func hasGrace(step questions.LoginStep) bool {
	return step.Enrol == questions.EnrolDemand && step.GraceDays > 0
}

// holding are those steps of the template of a view that are there for a person.
func (e *Engine) holding(ctx context.Context, view *View, s *subject) ([]questions.LoginStep, error) {
	if !slices.ContainsFunc(view.steps, func(step questions.LoginStep) bool { return step.When != "" }) {
		return view.steps, nil
	}
	in, err := e.input(ctx, view, s)
	if err != nil {
		return nil, err
	}
	var steps []questions.LoginStep
	for _, step := range view.steps {
		if step.When != "" {
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
		Groups:       sync.OnceValues(func() ([]string, error) { return e.Groups(ctx, s.userID) }),
		KnownBrowser: sync.OnceValues(func() (bool, error) { return e.trusts(ctx, view.visitor, s) }),
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

// trusts reports whether a person has signed in with a browser with two factors, which are still there.
func (e *Engine) trusts(ctx context.Context, v Visitor, s *subject) (bool, error) {
	shown, err := e.Sessions.Trust(ctx, v.Browser, s.userID, v.Trust)
	if err != nil || len(shown) == 0 {
		return false, err
	}
	if err := e.findFactors(ctx, s); err != nil {
		return false, err
	}
	return s.set.HaveAll(shown), nil
}

// findFactors looks up the factors of a person, unless it has.
func (e *Engine) findFactors(ctx context.Context, s *subject) (err error) {
	if s.set == nil {
		s.set, err = e.Factors.Of(ctx, s.userID)
	}
	return err
}

// next is what is due after what a person has shown. The person's factors are looked up only where they decide.
func (e *Engine) next(ctx context.Context, view *View, s *subject) (next proof.Next, err error) {
	d := view.demand
	switch {
	case view.Flow.Linking != "": // who links an identity shows all that they have
		d.Prefers = proof.TwoFactors
	case s.ofSession: // what the person prefers was asked for when the session began
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
	if view.Flow.OwnProof && !s.ofSession && !shownOwn(s.proofs) {
		return e.ownProof(ctx, s)
	}
	all := proof.Person{
		Known: true, Methods: e.known(&View{}), Factors: []string{proof.App, proof.Passkey},
		Elsewhere: view.elsewhere(),
	}
	if next = d.Next(s.proofs, all, e.canSetUp()); next.Done() && !shownFactor(s.proofs) {
		return next, nil
	}
	if err := e.findFactors(ctx, s); err != nil {
		return next, err
	}
	who := proof.Person{
		Known: true, Methods: s.set.Methods(e.Site), Factors: s.set.Types(), Elsewhere: view.elsewhere(),
	}
	if s.user == nil || s.user.HasPassword() {
		who.Methods = append([]string{proof.Password}, who.Methods...)
	}
	waits, err := e.relax(ctx, view, s, steps, &d, who)
	if err != nil {
		return next, err
	}
	next = d.Next(s.proofs, who, e.canSetUp())
	if len(next.Offer) > 0 {
		s.offered = offered{key: e.keyOf(view, steps[next.OfferOf]), until: waits[next.OfferOf]}
	}
	return next, nil
}

// shownOwn reports whether any of some proofs is not by another provider.
func shownOwn(proofs []proof.Proof) bool { return len(proof.Connections(proofs)) < len(proofs) }

// ownProof asks for a proof of this platform: a factor of who has one, otherwise the password. None is set up on the
// way, since another provider has said so far who the person is.
func (e *Engine) ownProof(ctx context.Context, s *subject) (next proof.Next, err error) {
	if err := e.findFactors(ctx, s); err != nil {
		return next, err
	}
	switch has := s.set.Methods(e.Site); {
	case len(has) > 0:
		next.Show = has
	case s.user != nil && s.user.HasPassword():
		next.Show = []string{proof.Password}
	default:
		next.Missing = []string{OwnProof}
	}
	return next, nil
}

// OwnProof is what View.Methods has where a proof of this platform is missing.
const OwnProof = "own_proof"

// offered is a step at which a person may go on without a factor. until is how long; zero: for ever.
type offered struct {
	key   string
	until clock.Time
}

// A person who may go on without a factor is asked again after some time.
const (
	askAgain        = 30 * 24 * time.Hour // where it is offered
	askAgainInGrace = 24 * time.Hour      // where it is demanded later
)

// keyOf is the key of a step in what a person has postponed. It stays when steps change their order, or the template
// gets another code.
func (e *Engine) keyOf(view *View, step questions.LoginStep) string {
	codes := make([]string, len(step.Methods))
	for i, m := range step.Methods {
		codes[i] = m.Code
	}
	slices.Sort(codes)
	return session.Hash(view.template + " " + strings.Join(codes, " "))
}

// relax makes the steps at which a person has no factor and may go on without ones that are not required. It returns
// until when, by the index of the step. Whoever has another factor shows it meanwhile.
func (e *Engine) relax(ctx context.Context, view *View, s *subject, steps []questions.LoginStep, d *proof.Demand,
	who proof.Person,
) (until map[int]clock.Time, err error) {
	waits := make([]bool, len(steps))
	for i, step := range steps {
		canSetUp := slices.ContainsFunc(e.canSetUp(), func(m string) bool {
			return slices.Contains(d.Steps[i].Methods, m)
		})
		waits[i] = mayWait(step) && (canSetUp || !hasGrace(step))
	}
	lacking := func() (waiting []int) { // what is demanded gets the person's factors first
		now := proof.Demand{Steps: slices.Clone(d.Steps)}
		for i := range now.Steps {
			now.Steps[i].Required = now.Steps[i].Required && !waits[i]
		}
		return slices.DeleteFunc(now.Lacking(who), func(i int) bool { return !waits[i] })
	}
	if len(lacking()) == 0 {
		return nil, nil
	}
	postponed, err := e.Factors.Postponed(ctx, s.userID)
	if err != nil {
		return nil, err
	}
	now, r := e.Store.Now(), view.Flow.Request
	until = map[int]clock.Time{}
	for i, step := range steps {
		if !waits[i] || !hasGrace(step) {
			continue
		}
		begins, _ := postponed.At(e.keyOf(view, step))
		if begins.IsZero() {
			begins = now
		}
		until[i] = begins.Add(time.Duration(step.GraceDays) * 24 * time.Hour)
		waits[i] = now.Before(until[i])
	}
	relaxed := lacking()
	for _, i := range relaxed {
		key := e.keyOf(view, steps[i])
		since, last := postponed.At(key)
		again, begun := askAgain, true
		if hasGrace(steps[i]) {
			again, begun = askAgainInGrace, !since.IsZero()
			d.Prefers = proof.TwoFactors
		}
		if !begun { // it begins where somebody can be asked
			s.begins = append(s.begins, key)
		}
		asked := last.IsZero() || !begun || !now.Before(last.Add(again))
		d.Steps[i].Offer = asked && !view.Flow.hasTask() && !(r.Passive && begun)
	}
	for _, i := range relaxed {
		d.Steps[i].Required = false
	}
	return until, nil
}

// later lets a person go on without a factor.
func (e *Engine) later(ctx context.Context, f *Flow, now View, v Visitor) (View, error) {
	view := View{Kind: Leave, Flow: f}
	if !now.Later {
		return view, e.save(ctx, f, v.Browser, nil)
	}
	f.Setup, f.SetupType = "", ""
	err := e.saveAfter(ctx, f, v.Browser, func(ctx context.Context, tx *docstore.Tx, _ *Flow) error {
		return factor.Postpone(ctx, tx, now.subject.userID, now.subject.offered.key, !now.Until.IsZero())
	}, nil)
	if err != nil || now.subject.ofSession {
		return view, err
	}
	return e.goOn(ctx, f, Proven{User: &person.User{ID: f.UserID}}, now, v)
}
