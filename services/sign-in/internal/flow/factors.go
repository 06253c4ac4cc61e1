package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/factor"
	"github.com/idplatform/idplatform/services/sign-in/internal/invitation"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// subject is who a request is of, and what the person has shown that counts for it. userID is empty if nobody is
// known.
type subject struct {
	userID    string
	user      *person.User
	proofs    []proof.Proof
	ofSession bool        // they are the session's, and no form of the flow has added one
	set       *factor.Set // nil: it was not looked up
	offered   offered
	// begins are the keys of steps whose days of grace have not begun.
	begins []string
}

// findSubject finds out who the request is of: the person of the flow who has shown something, or that of the browser's
// session.
func (e *Engine) findSubject(ctx context.Context, view *View) error {
	f := view.Flow
	if f.UserID != "" && len(f.Proofs) > 0 && !f.signedIn() {
		return e.subjectOfFlow(ctx, view)
	}
	if e.sessionCounts(view) {
		view.subject = subject{
			userID: view.Session.UserID, user: view.User, proofs: view.Session.Shown(), ofSession: true,
		}
	}
	return nil
}

// subjectOfFlow takes what a person has shown in the flow, if it still counts.
func (e *Engine) subjectOfFlow(ctx context.Context, view *View) error {
	f := view.Flow
	if f.StepUpOf != "" && (view.Session == nil || view.Session.ID != f.StepUpOf || e.tooOld(f)) {
		return nil
	}
	u, err := e.personOf(ctx, f.UserID)
	if err != nil || u == nil || proof.RestsOn(f.Proofs, proof.Password, u.TimePasswordChanged) || e.tooLate(f) {
		return err
	}
	s := subject{userID: f.UserID, user: u}
	if s.proofs, s.set, err = e.existing(ctx, f); err != nil || len(s.proofs) == 0 {
		return err
	}
	view.User, view.subject, f.Proofs = u, s, s.proofs
	return nil
}

// existing are the proofs of a flow whose factors are still there. The set is nil unless it had to be looked up.
func (e *Engine) existing(ctx context.Context, f *Flow) ([]proof.Proof, *factor.Set, error) {
	if !shownFactor(f.Proofs) {
		return f.Proofs, nil, nil
	}
	set, err := e.Factors.Of(ctx, f.UserID)
	if err != nil {
		return nil, nil, err
	}
	return set.Existing(f.Proofs), set, nil
}

// timeToEnrol is how long after the sign-in a factor can be set up on the way to an application: whoever finds a
// browser with a session must not add one.
const timeToEnrol = 5 * time.Minute

// mayEnrol reports whether the person of a view has signed in a moment ago.
func (e *Engine) mayEnrol(view *View) bool {
	return !view.subject.ofSession || view.Flow.signedIn() ||
		e.Store.Now().Sub(view.Session.TimeSignedIn) <= timeToEnrol
}

// timeForTask is how long after the sign-in a task can be done.
const timeForTask = 15 * time.Minute

// tooLate reports whether the sign-in for the task of a flow is too long ago.
func (e *Engine) tooLate(f *Flow) bool {
	return f.hasTask() && e.Store.Now().Sub(proof.Since(f.Proofs)) > timeForTask
}

// tooOld reports whether what a flow has taken over from a session is older than the application bears.
func (e *Engine) tooOld(f *Flow) bool {
	most := f.Request.MaxAge
	return most != nil && e.Store.Now().Sub(proof.Since(f.Proofs)).Seconds() > float64(*most) && !f.hasTask()
}

// hasTask reports whether the person has something left to do on pages of the flow.
func (f *Flow) hasTask() bool { return f.Request.Task != "" && !f.TaskDone }

// isTaskOf reports whether that is what a user has asked for.
func (f *Flow) isTaskOf(userID string) bool {
	return f.hasTask() && f.Request.TaskOf == userID
}

// personOf returns the copy of a user; nil if there is none, or the user may not sign in.
func (e *Engine) personOf(ctx context.Context, userID string) (*person.User, error) {
	copied, err := person.Find(ctx, e.Store, userID)
	if err != nil {
		return nil, apperr.Ignore(err, apperr.NotFound)
	}
	u, err := person.Parse(copied.User)
	if err != nil || u.Gone(e.Store.Now()) {
		return nil, err
	}
	return u, nil
}

// due finds out what the person has to show or to set up before going on, and reports whether it is anything.
func (e *Engine) due(ctx context.Context, view *View) (bool, protocol.Refusal, error) {
	f, r := view.Flow, view.Flow.Request
	next, err := e.next(ctx, view, &view.subject)
	if err != nil {
		return true, "", err
	}
	if next.Done() && r.Passive && len(r.ACR) > 0 && !meetsAny(view.subject.proofs, r.ACR) {
		return true, protocol.UnmetACR, nil
	}
	cannotChange, err := e.cannotChangeFactors(ctx, view)
	if err != nil {
		return true, "", err
	}
	switch {
	case next.Done() && cannotChange:
		view.Kind, view.Methods = Missing, []string{proof.LostFactor}
	case next.Done() && f.isTaskOf(view.subject.userID) && r.Task == protocol.RenewCodes:
		view.Kind = AskNewCodes
	case next.Done() && f.isTaskOf(view.subject.userID) && r.Task == protocol.AddLink:
		view.askToLink()
	case next.Done() && f.isTaskOf(view.subject.userID):
		view.Kind, view.Methods = setUpOf(f, view.subject.userID), e.canSetUp()
	case next.Done() && view.subject.ofSession:
		return false, "", nil
	case next.Done(): // a form has completed it, and the session has not begun
		view.Kind = KeepCodes
	case slices.Contains(next.Show, proof.Password):
		view.Kind, view.Methods = SignIn, next.Show
		e.offerRecovery(ctx, view)
	case len(next.Show) > 0:
		view.Kind, view.Methods = EnterFactor, next.Show
	case len(next.SetUp) > 0 && !e.mayEnrol(view):
		view.Kind, view.Methods = SignIn, view.demand.Next(nil, proof.Person{}, nil).Show
		e.offerRecovery(ctx, view)
	case len(next.SetUp) > 0:
		view.Kind, view.Methods = setUpOf(f, view.subject.userID), next.SetUp
	case len(next.Offer) > 0 && !e.mayEnrol(view): // it is offered at the next sign-in
		return false, "", nil
	case len(next.Offer) > 0:
		view.Later, view.Until, view.Methods = true, view.subject.offered.until, next.Offer
		view.Kind = setUpOf(f, view.subject.userID)
		has := view.subject.set.Methods(e.Site)
		if view.Kind != ChooseFactor && len(has) > 0 && !shownFactor(view.subject.proofs) {
			view.Kind, view.Methods = EnterFactor, has // before another one is set up
		}
	default:
		view.Kind, view.Methods = Missing, next.Missing
	}
	switch {
	case r.Passive && len(r.ACR) > 0 && !meetsAny(view.subject.proofs, r.ACR):
		return true, protocol.UnmetACR, nil
	case r.ACREssential && view.Kind == Missing:
		return true, protocol.UnmetACR, nil
	}
	return true, passive(r, protocol.LoginRequired), nil
}

// cannotChangeFactors reports whether a person wants to change their factors, and cannot show any of those that are
// there: a password alone is not enough.
func (e *Engine) cannotChangeFactors(ctx context.Context, view *View) (bool, error) {
	s := &view.subject
	if view.Flow.Request.TaskOf != s.userID || shownFactor(s.proofs) {
		return false, nil
	}
	err := e.findFactors(ctx, s)
	return err == nil && s.set.Lost(e.Site), err
}

func meetsAny(proofs []proof.Proof, classes []string) bool {
	return slices.ContainsFunc(classes, func(class string) bool { return proof.Meets(proof.Class(proofs), class) })
}

// setUpOf is the page of a user's set-up: which method, or the one that was chosen.
func setUpOf(f *Flow, userID string) Kind {
	switch {
	case f.Setup == "" || f.UserID != userID:
		return ChooseFactor
	case f.SetupType == proof.Passkey:
		return SetUpPasskey
	}
	return SetUpApp
}

// beforePassword asks for a factor of whoever has one, before the person chooses a password: an email or a password
// that somebody else knows must not be enough. Whoever is invited can set up a passkey instead, or link an identity at
// another provider.
func (e *Engine) beforePassword(ctx context.Context, view View) (View, protocol.Refusal, error) {
	f := view.Flow
	view.Kind = ChangePassword
	if f.Recovering == Invited {
		if pending, err := e.Invitations.Pending(ctx, f.Invitation); err != nil {
			return view, "", err
		} else if !pending { // it was accepted in another tab, perhaps
			f.endInvitation()
			return e.signInStep(ctx, f, view.Session, view.visitor)
		}
	}
	if f.Recovering == Invited {
		var err error
		if view.Methods, err = e.enough(ctx, view); err != nil {
			return view, "", err
		}
		switch {
		case f.Linking != "":
			view.Kind = ConfirmLink
		case f.SetupType == proof.Passkey && slices.Contains(view.Methods, proof.Passkey):
			view.Kind = SetUpPasskey
		}
	}
	set, err := e.Factors.Of(ctx, f.UserID)
	if err != nil {
		return view, "", err
	}
	f.Proofs = set.Existing(f.Proofs)
	who := subject{userID: f.UserID, proofs: f.Proofs}
	switch has := set.Methods(e.Site); {
	case shownFactor(f.Proofs):
	case len(has) > 0:
		view.Kind, view.Methods, view.subject = EnterFactor, has, who
	case set.Lost(e.Site):
		view.Kind, view.Methods = Missing, []string{proof.LostFactor}
	}
	return view, "", nil
}

// enough are the methods of which one is enough for an invited person, without a password: on the own page, and in the
// application that the invitation leads to.
func (e *Engine) enough(ctx context.Context, own View) ([]string, error) {
	views := []View{own}
	if appID := opens(own.Flow.Request); appID != "" {
		app := View{Flow: Begin(protocol.Request{AppID: appID})}
		app.Flow.AppID = appID
		if err := e.loadClient(ctx, &app); err != nil {
			return nil, err
		}
		if app.Kind != Unknown {
			views = append(views, app)
		}
	}
	now := e.Store.Now()
	ways := map[string]proof.Proof{}
	if e.Site != (factor.Site{}) {
		ways[proof.Passkey] = proof.ByPasskey(now, "", now, true, false)
	}
	for _, s := range own.sources {
		if s.asks() {
			ways[proof.Upstream(s.ID)] = proof.ByUpstream(now, s.Method, s.ID, "", false, nil)
		}
	}
	var methods []string
	for method, shown := range ways {
		if !slices.ContainsFunc(views, func(view View) bool { return !e.isEnough(view, method, shown) }) {
			methods = append(methods, method)
		}
	}
	return methods, nil
}

// isEnough reports whether a person can begin with a method on the way to a view's application, and is asked for
// nothing else then that they do not have. Factors can be set up.
func (e *Engine) isEnough(view View, method string, shown proof.Proof) bool {
	d := view.demand
	if !d.Begins(method) {
		return false
	}
	d.Steps = nil
	for _, step := range view.steps {
		d.Steps = append(d.Steps, stepOf(step))
	}
	who := proof.Person{Known: true, Methods: []string{method}}
	if proof.IsFactor(method) {
		who.Factors = []string{method}
	}
	next := d.Next([]proof.Proof{shown}, who, e.canSetUp())
	return len(next.Missing) == 0 && len(next.Show) == 0
}

func shownFactor(proofs []proof.Proof) bool {
	return slices.ContainsFunc(proofs, func(p proof.Proof) bool { return proof.IsFactor(p.Method) })
}

// factors is the method of authenticator apps and recovery codes.
type factors struct{ *Engine }

// Guess implements Method.
func (factors) Guess() Guess { return FactorCode }

// Check implements Method.
func (m factors) Check(ctx context.Context, f *Flow, form Form, v Visitor) (Proven, error) {
	from := factor.From{Address: v.Address, Browser: v.UserAgent()}
	tried, err := m.Factors.Try(ctx, f.UserID, form.Code, from)
	if err == nil && tried.Blocked { // by others, perhaps
		var known []string
		if known, err = m.Sessions.KnownTo(ctx, v.Browser); err != nil {
			return Proven{}, err
		}
		if from.Known = slices.Contains(known, f.UserID); from.Known {
			tried, err = m.Factors.Try(ctx, f.UserID, form.Code, from)
		}
	}
	switch {
	case err != nil:
		return Proven{}, err
	case tried.Blocked:
		return Proven{Notice: NoticeBlocked}, nil
	case tried.Proof == nil:
		return Proven{Notice: NoticeFactor}, nil
	}
	return Proven{User: &person.User{ID: f.UserID}, Proof: *tried.Proof}, nil
}

// pageOf returns what the person sees now, for a form: it is done only where the page with the form is due.
func (e *Engine) pageOf(ctx context.Context, f *Flow, v Visitor) (View, error) {
	current, err := e.Sessions.Of(ctx, v.Cookie)
	if err != nil {
		return View{}, err
	}
	view, _, err := e.signInStep(ctx, f, current, v)
	view.askForDirectory()
	return view, err
}

// stepUpFrom goes on with what the browser's session rests on. Nothing of somebody else stays in the flow.
func (f *Flow) stepUpFrom(view View) {
	if !view.subject.ofSession {
		return
	}
	if f.UserID != view.subject.userID {
		f.forgetPerson()
	}
	f.UserID, f.Proofs, f.StepUpOf = view.subject.userID, view.subject.proofs, view.Session.ID
	f.LoginName = view.subject.user.Username
}

// showFactor checks what a person has sent for a method where a factor is due.
func (e *Engine) showFactor(ctx context.Context, f *Flow, now View, method string, form Form, v Visitor) (View, error) {
	view := View{Kind: Leave, Flow: f, SentFrom: EnterFactor, Methods: now.Methods}
	f.stepUpFrom(now)
	done, err := e.check(ctx, method, f, form, v)
	switch {
	case err != nil:
		return unlessAway(view, err)
	case done.TooMany:
		view.Kind = TooMany
		return view, nil
	case done.User == nil:
		f.Notice = done.Notice
		read := f.Version
		return view, e.saveAfter(ctx, f, v.Browser, func(_ context.Context, _ *docstore.Tx, stored *Flow) error {
			if stored.Version != read { // the same form was sent twice, and the first one was right
				return errFaster
			}
			return nil
		}, tellFailed(f, v, done.Notice))
	}
	f.Proofs = proof.Add(f.Proofs, done.Proof)
	if f.mustChoose() {
		return view, e.save(ctx, f, v.Browser, nil)
	}
	return e.goOn(ctx, f, done, now, v)
}

// goOn begins the session of a person who has shown all that is due, and otherwise stores the flow with what the person
// has shown so far. from is what the person saw before.
func (e *Engine) goOn(ctx context.Context, f *Flow, done Proven, from View, v Visitor) (View, error) {
	who := subject{userID: f.UserID, proofs: f.Proofs, set: from.subject.set, user: done.User}
	if len(done.User.Record) == 0 { // it is only an id
		who.user = from.subject.user
	}
	if source := from.insteadOfPassword(f, f.Proofs, who.user); source != nil {
		return e.leaveInstead(ctx, f, source, v)
	}
	next, err := e.next(ctx, &from, &who)
	switch {
	case err == nil && next.Done():
		return e.enter(ctx, f, done, v)
	case err != nil && apperr.KindOf(err) != apperr.Unavailable: // else the next page says so
		return View{}, err
	}
	view := View{Kind: Leave, Flow: f}
	f.StepUpOf, f.SessionID = cmp.Or(f.StepUpOf, f.SessionID), ""
	if done.SignedIn.User == nil {
		return view, e.save(ctx, f, v.Browser, nil)
	}
	return view, e.save(ctx, f, v.Browser, func(ctx context.Context, tx *docstore.Tx, _ *docstore.Doc[Flow]) error {
		_, err := person.Keep(ctx, tx, f.UserID, done.SignedIn) // events keep it up to date until the session begins
		return err
	})
}

func (e *Engine) boundToUser(ctx context.Context, use, userID string) []byte {
	return []byte("sign-in " + use + " " + request.Tenant(ctx) + " " + userID)
}

// What is sealed in a flow.
const (
	useKey   = "factor key"
	useCodes = "recovery codes"
)

// setUp begins to set up an authenticator app or a passkey: the next page shows a key, or asks the browser for a
// passkey.
func (e *Engine) setUp(ctx context.Context, f *Flow, now View, form Form, v Visitor) (View, error) {
	view := View{Kind: Leave, Flow: f, SentFrom: ChooseFactor}
	if !slices.Contains(now.Methods, form.Method) {
		return view, e.save(ctx, f, v.Browser, nil)
	}
	f.stepUpFrom(now)
	f.SetupType = form.Method
	if form.Method == proof.Passkey {
		asked := policyOfAll(now.steps)
		noPassword := now.subject.user != nil && !now.subject.user.HasPassword()
		if f.Recovering == Invited || noPassword { // it takes the place of the password
			asked.UserVerification, asked.Discoverable = verificationRequired, true
		}
		if err := e.beginPasskey(ctx, f, asked); err != nil {
			return View{}, err
		}
	} else {
		key, err := json.Marshal(factor.NewKey(policyOfAll(now.steps).Codes))
		if err != nil {
			return View{}, err
		}
		f.Setup = e.Keys.Seal(key, e.boundToUser(ctx, useKey, f.UserID))
	}
	return view, e.save(ctx, f, v.Browser, nil)
}

// KeyOf is the key of the app that the person is setting up.
func (e *Engine) KeyOf(ctx context.Context, f *Flow) (key factor.AppKey, err error) {
	text, err := e.Keys.Open(f.Setup, e.boundToUser(ctx, useKey, f.UserID))
	if err == nil {
		err = json.Unmarshal(text, &key)
	}
	return key, err
}

// CodesOf are the recovery codes that the person has to keep.
func (e *Engine) CodesOf(ctx context.Context, f *Flow) (codes []string, err error) {
	if f.Codes == "" {
		return nil, nil
	}
	text, err := e.Keys.Open(f.Codes, e.boundToUser(ctx, useCodes, f.UserID))
	if err == nil {
		err = json.Unmarshal(text, &codes)
	}
	return codes, err
}

func (e *Engine) sealCodes(ctx context.Context, f *Flow, codes []string) error {
	if len(codes) == 0 {
		return nil
	}
	text, err := json.Marshal(codes)
	f.Codes = e.Keys.Seal(text, e.boundToUser(ctx, useCodes, f.UserID))
	return err
}

// errFaster says that another form of the flow was faster.
var errFaster = apperr.New(apperr.VersionMismatch, "another form was faster")

// addFactor adds the app whose code shows that it works, or the passkey that the browser has made. That is a proof,
// too. The factor, its recovery codes and the flow are stored at once, and a second form adds nothing.
func (e *Engine) addFactor(ctx context.Context, f *Flow, now View, form Form, v Visitor) (View, error) {
	view := View{Kind: Leave, Flow: f, SentFrom: SetUpApp}
	f.stepUpFrom(now)
	add, err := e.newFactor(ctx, f, form, v)
	if err != nil {
		return View{}, err
	}
	if add == nil {
		return view, e.save(ctx, f, v.Browser, nil)
	}
	accept, err := e.acceptInvitation(ctx, f)
	if err != nil {
		return unlessAway(view, err)
	}
	if accept == nil {
		f.endInvitation()
		return view, e.save(ctx, f, v.Browser, nil)
	}
	shown, setup, recovering, link := f.Proofs, f.Setup, f.Recovering, f.Invitation
	f.Setup, f.SetupType, f.TaskDone = "", "", f.Request.Task == protocol.AddFactor
	err = e.saveAfter(As(ctx, v.Issuer, f.UserID), f, v.Browser,
		func(ctx context.Context, tx *docstore.Tx, stored *Flow) error {
			if stored.Setup != setup {
				return errFaster
			}
			if !shownFactor(shown) {
				if err := factor.HasNone(ctx, tx, f.UserID); err != nil {
					return err
				}
			}
			if err := accept(ctx, tx); err != nil {
				return err
			}
			added, codes, err := add(ctx, tx)
			if err != nil {
				return err
			}
			// A session that rests on another factor goes on if this one is removed again.
			if f.Proofs = shown; f.Request.Task == "" || !shownFactor(shown) {
				f.Proofs = proof.Add(shown, added)
			}
			return e.sealCodes(ctx, f, codes)
		}, nil)
	if errors.Is(err, invitation.ErrEnded) {
		f.endInvitation()
		return view, e.save(ctx, f, v.Browser, nil)
	}
	if errors.Is(err, factor.ErrTooMany) || errors.Is(err, factor.ErrShowFirst) ||
		err != nil && apperr.KindOf(err) == apperr.AlreadyExists {
		f.TaskDone, f.Proofs, f.Recovering, f.Invitation = false, shown, recovering, link
		switch {
		case errors.Is(err, factor.ErrTooMany):
			f.Notice = NoticeFull
		case apperr.KindOf(err) == apperr.AlreadyExists: // somebody's passkey has the id
			f.Notice = NoticePasskey
		}
		return view, e.save(ctx, f, v.Browser, nil)
	}
	if err != nil || f.Codes != "" {
		return view, err
	}
	now.subject.set = nil // there is one more
	return e.goOn(ctx, f, Proven{User: &person.User{ID: f.UserID}}, now, v)
}

// acceptInvitation returns what accepts the invitation of a flow, if it has one, in a transaction; nil if that has
// ended.
// The error may be apperr.Unavailable.
func (e *Engine) acceptInvitation(ctx context.Context, f *Flow) (func(context.Context, *docstore.Tx) error, error) {
	if f.Recovering != Invited {
		return func(context.Context, *docstore.Tx) error { return nil }, nil
	}
	opened, err := e.Invitations.Still(ctx, f.Invitation)
	if err != nil || opened == nil || opened.User.ID != f.UserID || opened.Email != f.RecoveredTo {
		return nil, err
	}
	in, err := questions.VerifyEmail.Ask(ctx, e.Bus, questions.ProvenEmail{UserID: f.UserID, Email: f.RecoveredTo})
	switch {
	case err == nil:
	case apperr.IsNotFound(err):
		return nil, nil
	case apperr.KindOf(err) == apperr.InvalidState: // another user had the address before: it is not verified
		in, err = opened.SignedIn, nil
	}
	userID, link := f.UserID, f.Invitation
	return func(ctx context.Context, tx *docstore.Tx) error {
		if err := invitation.AcceptBy(ctx, tx, userID, link); err != nil {
			return err
		}
		f.Recovering, f.Invitation = "", ""
		_, err := person.Keep(ctx, tx, userID, in)
		return err
	}, err
}

// addition stores a new factor.
type addition func(context.Context, *docstore.Tx) (proof.Proof, []string, error)

// newFactor checks what the person has sent of a factor; nil if it is not good, which the flow says then.
func (e *Engine) newFactor(ctx context.Context, f *Flow, form Form, v Visitor) (addition, error) {
	ids, err := e.Store.NewIDs(ctx, 2)
	if err != nil {
		return nil, err
	}
	from := factor.From{Address: v.Address, Browser: v.UserAgent()}
	if f.SetupType == proof.Passkey {
		key := factor.NewPasskey{ID: ids[0], CodesID: ids[1], Name: form.Name, From: from}
		return e.newPasskey(ctx, f, key, form.Passkey)
	}
	key, err := e.KeyOf(ctx, f)
	if err != nil {
		return nil, err
	}
	step, right := factor.Confirms(key, form.Code, e.Store.Now())
	if !right {
		f.Notice = NoticeFactor
		return nil, nil
	}
	app := factor.NewApp{
		ID: ids[0], CodesID: ids[1], UserID: f.UserID, Key: key, Step: step, Name: form.Name, From: from,
	}
	return func(ctx context.Context, tx *docstore.Tx) (proof.Proof, []string, error) {
		return e.Factors.Add(ctx, tx, app)
	}, nil
}

// renewCodes makes new recovery codes.
func (e *Engine) renewCodes(ctx context.Context, f *Flow, now View, v Visitor) (View, error) {
	view := View{Kind: Leave, Flow: f, SentFrom: AskNewCodes}
	id, err := e.Store.NewID(ctx)
	if err != nil {
		return View{}, err
	}
	f.UserID, f.TaskDone = now.subject.userID, true
	from := factor.From{Address: v.Address, Browser: v.UserAgent()}
	err = e.saveAfter(As(ctx, v.Issuer, f.UserID), f, v.Browser,
		func(ctx context.Context, tx *docstore.Tx, stored *Flow) error {
			if stored.TaskDone {
				return errFaster
			}
			codes, err := e.Factors.RenewCodes(ctx, tx, id, f.UserID, from)
			if err != nil {
				return err
			}
			return e.sealCodes(ctx, f, codes)
		}, nil)
	if errors.Is(err, factor.ErrNone) {
		f.Request.Message = nil // there is nothing to tell on the own page
		return view, e.save(ctx, f, v.Browser, nil)
	}
	return view, err
}

// kept goes on once the person has kept the recovery codes.
func (e *Engine) kept(ctx context.Context, f *Flow, v Visitor) (View, error) {
	view := View{Kind: Leave, Flow: f}
	f.Codes = ""
	now, err := e.pageOf(ctx, f, v)
	if err != nil {
		return unlessAway(view, err)
	}
	if now.Kind != KeepCodes {
		return view, e.save(ctx, f, v.Browser, nil)
	}
	return e.enter(ctx, f, Proven{User: &person.User{ID: f.UserID}}, v)
}
