package flow

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/ratelimit"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/consent"
	"github.com/idplatform/idplatform/services/sign-in/internal/factor"
	"github.com/idplatform/idplatform/services/sign-in/internal/federation"
	"github.com/idplatform/idplatform/services/sign-in/internal/invitation"
	"github.com/idplatform/idplatform/services/sign-in/internal/message"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
	"github.com/idplatform/idplatform/services/sign-in/internal/recovery"
	"github.com/idplatform/idplatform/services/sign-in/internal/session"
	"github.com/idplatform/idplatform/services/sign-in/internal/settings"
)

// Clients know the applications and the login templates of the tenant. Errors are apperr.NotFound and Unavailable.
type Clients interface {
	Of(ctx context.Context, name questions.ClientName) (questions.Client, error)
	Template(ctx context.Context, code string) (questions.LoginTemplate, error)
	Launchable(ctx context.Context) ([]questions.Launchable, error)
}

// Deps are what an Engine needs. All are required unless they say otherwise.
type Deps struct {
	Store       *docstore.Store
	Bus         *bus.Bus
	Keys        *secret.Keyring
	Clients     Clients
	Sessions    *session.Sessions
	Consents    *consent.Consents
	Factors     *factor.Factors
	Site        factor.Site // where passkeys belong; without, there are none
	Settings    *settings.Service
	Recovery    *recovery.Recoveries
	Invitations *invitation.Invitations
	Federation  *federation.Connections
	Messages    *message.Sender
	Log         *slog.Logger
	Protocols   map[string]protocol.Protocol // by name
	// Pause waits for a time, or until the context ends; nil: by the machine's clock.
	Pause func(context.Context, time.Duration) error
}

// Engine leads people through their flows, for all tenants.
type Engine struct {
	Deps
	methods  map[string]Method // by type
	users    *users
	failures *failures
	begins   *ratelimit.Buckets[string] // by address
	// codes and codesOfKnown are for requests for codes, by address and by browser.
	codes, codesOfKnown *ratelimit.Buckets[string]
	opened              *ratelimit.Buckets[string] // by the link of an invitation
	creates             *ratelimit.Buckets[string] // users, by address
	entries             *ratelimit.Buckets[string] // wrong passwords of a directory, by the entry
}

// New makes an engine.
func New(d Deps) *Engine {
	if d.Pause == nil {
		d.Pause = wait
	}
	e := &Engine{
		Deps: d, users: &users{bus: d.Bus}, failures: newFailures(d.Store.Now),
		begins:       ratelimit.New[string](beginsPerSecond, beginsAtOnce, maxCounts),
		codes:        ratelimit.New[string](codesPerSecond, codesAtOnce, maxCounts),
		codesOfKnown: ratelimit.New[string](codesPerSecond, maxCodesKnown, maxCounts),
		opened:       ratelimit.New[string](opensPerSecond, opensAtOnce, maxCounts),
		creates:      ratelimit.New[string](createsPerSecond, createsAtOnce, maxCounts),
		entries:      ratelimit.New[string](guessesPerSecond, guessesAtOnce, maxCounts),
	}
	e.methods = map[string]Method{proof.Password: passwords{e}, proof.App: factors{e}, proof.Passkey: passkeys{e}}
	return e
}

// Visitor is who sends a request.
type Visitor struct {
	Issuer  string
	Browser string // the hash of its cookie
	Cookie  string // the session's
	Trust   string // the cookie of its last sign-in with two factors
	Address string
	Agent   string
}

// Kind says what a person sees.
type Kind int

// What a person sees.
const (
	SignIn Kind = iota
	ChangePassword
	Forgotten    // the password: asks for the login name
	EnterCode    // that was mailed
	EnterFactor  // the code of an app, or a recovery code
	ChooseFactor // to set up
	SetUpApp     // an authenticator app
	SetUpPasskey
	AskNewCodes  // whether recovery codes are to be made
	KeepCodes    // recovery codes that were made, if there are any, and go on
	AskDirectory // for the name and the password of a directory
	AskToLink    // who the person is at another provider: leads there
	ConfirmLink  // of who the person is at another provider
	ChooseAccount
	Consent
	Refused     // by permissions, or for want of an account
	Missing     // methods that the application demands, and the service does not have
	Unknown     // the application
	Away        // a service that must be asked does not answer
	TooMany     // failures
	GoElsewhere // to another provider
	Leave       // the answer goes to the application
)

// View is what a person sees, and what the page needs for it.
type View struct {
	Kind    Kind
	Flow    *Flow
	App     questions.Client
	Session *session.Session
	User    *person.User
	// Select is set where a person who is signed in may go on, or sign in as another one.
	Select bool
	// Recovers is set where a person who has forgotten the password can have a code.
	Recovers bool
	Accounts []questions.SubAccount
	Methods  []string // that are missing, that can be shown, or that can be set up
	Reason   string   // why it is refused
	RuleID   string
	Answer   protocol.Answer
	Cookies  session.Cookies // of a new session
	// SentFrom is the page whose form was sent, if it is Away or TooMany; SignIn stands for those that the flow tells.
	SentFrom Kind
	// Later says that the person may go on without the factor; Until is how long, zero for ever.
	Later bool
	Until clock.Time
	// Through is the name of the connection by which the person goes elsewhere, or whose password is asked for. In
	// AskToLink it is empty if there is none any more.
	Through string
	// OfName says that it is TooMany of one name.
	OfName bool

	err      error
	visitor  Visitor
	demand   proof.Demand // of everybody
	template string       // its id
	steps    []questions.LoginStep
	sources  []Source // the connections of these steps
	subject  subject
	// directory is the source whose password is asked for, and under the page that is hidden by that.
	directory *Source
	under     Kind
}

// Arrive is the way of a request that has no stored flow.
func (e *Engine) Arrive(ctx context.Context, r protocol.Request, v Visitor) (View, error) {
	return e.Show(ctx, Begin(r), v)
}

// Show returns what a person sees now. If nothing is left to ask, it finishes the flow with the application's answer.
func (e *Engine) Show(ctx context.Context, f *Flow, v Visitor) (View, error) {
	current, err := e.Sessions.Of(ctx, v.Cookie)
	if err != nil {
		return View{}, err
	}
	view, refusal, err := e.nextStep(ctx, f, current, v)
	view.askForDirectory()
	if apperr.KindOf(err) == apperr.Unavailable && err != nil {
		view.Kind, view.err = Away, err
		if f.Request.Passive {
			refusal, err = protocol.Unavailable, nil
		} else {
			return view, nil
		}
	}
	switch {
	case err != nil:
		return View{}, err
	case refusal != "":
		return e.refuse(ctx, view, v, refusal)
	case view.Kind == Leave:
		return e.grant(ctx, view, v)
	case view.Kind == Refused:
		return view, e.tellRefused(ctx, view, v)
	}
	return view, nil
}

// nextStep finds out what is due. A refusal is for the application.
func (e *Engine) nextStep(ctx context.Context, f *Flow, current *session.Session, v Visitor) (View, protocol.Refusal,
	error,
) {
	view, refusal, err := e.signInStep(ctx, f, current, v)
	if err != nil || refusal != "" || view.Kind != Leave {
		return view, refusal, err
	}
	return e.authorize(ctx, view)
}

// signInStep finds out what is due until the person is signed in: Leave, if nothing is.
func (e *Engine) signInStep(ctx context.Context, f *Flow, current *session.Session, v Visitor) (View, protocol.Refusal,
	error,
) {
	view, r := View{Kind: SignIn, Flow: f, Session: current, visitor: v}, f.Request
	if err := e.loadClient(ctx, &view); err != nil || view.Kind == Unknown {
		return view, "", err
	}
	if f.Denied {
		return view, protocol.AccessDenied, nil
	}
	if len(view.Methods) > 0 {
		view.Kind = Missing
		return view, passive(r, protocol.LoginRequired), nil
	}
	if r.ACREssential && len(view.demand.Impossible(e.known(&view))) > 0 {
		return view, protocol.UnmetACR, nil
	}
	if f.Codes != "" { // they are shown whatever becomes of the session
		view.Kind = KeepCodes
		return view, "", nil
	}
	if f.mustChoose() {
		return e.beforePassword(ctx, view)
	}
	if err := e.loadUser(ctx, &view); err != nil {
		return view, "", err
	}
	if err := e.findSubject(ctx, &view); err != nil {
		return view, "", err
	}
	if view.subject.userID == "" {
		view.Kind, view.Methods = SignIn, view.demand.Next(nil, proof.Person{}, nil).Show
		if r.Passive {
			return view, protocol.LoginRequired, nil
		}
		e.offerRecovery(ctx, &view)
		return view, "", nil
	}
	if due, refusal, err := e.due(ctx, &view); err != nil || due {
		return view, refusal, err
	}
	// Whoever signs in on the way to somebody else's task is not asked to link that person's identity.
	if view.Kind = Leave; f.Linking != "" && f.signedIn() && !f.isToLink() {
		view.Kind = ConfirmLink
	}
	return view, "", nil
}

func passive(r protocol.Request, why protocol.Refusal) protocol.Refusal {
	if r.Passive {
		return why
	}
	return ""
}

// loadClient finds the application, and what it demands.
func (e *Engine) loadClient(ctx context.Context, view *View) error {
	var err error
	if id := view.Flow.AppID; id != "" {
		view.App, err = e.Clients.Of(ctx, questions.ClientName{AppID: id})
		if apperr.IsNotFound(err) || err == nil && !view.App.Enabled {
			view.Kind = Unknown
			return nil
		}
		if err != nil {
			return err
		}
	} else {
		view.App.SSO = true
	}
	template, err := e.Clients.Template(ctx, view.App.LoginTemplate)
	if err == nil && !template.Found && view.App.LoginTemplate != "" {
		template, err = e.Clients.Template(ctx, "")
	}
	if err != nil {
		return err
	}
	view.template = cmp.Or(template.ID, template.Code)
	view.sources, view.steps = sourcesOf(stepsOf(template), view.App)
	view.demand = demandOf(view.steps, view.App)
	if len(template.Steps) == 0 {
		view.demand.Prefers = proof.TwoFactors
	}
	view.Methods = view.demand.Impossible(e.known(view))
	view.demand = asked(view.demand, view.Flow.Request)
	return nil
}

// loadUser finds the person of the browser's session. A session whose person may not sign in is as none, and so is one
// by a password where the person must sign in through a connection.
func (e *Engine) loadUser(ctx context.Context, view *View) error {
	if view.Session == nil {
		return nil
	}
	copied, err := person.Find(ctx, e.Store, view.Session.UserID)
	if apperr.IsNotFound(err) {
		view.Session = nil
		return nil
	}
	if err != nil {
		return err
	}
	view.User, err = person.Parse(copied.User)
	if err != nil {
		return err
	}
	enforced := !view.Flow.signedIn() && view.insteadOfPassword(view.Flow, view.Session.Shown(), view.User) != nil
	if enforced || view.User.Gone(e.Store.Now()) {
		view.Session, view.User = nil, nil
	}
	return nil
}

// sessionCounts reports whether what the browser's session rests on counts for the request.
func (e *Engine) sessionCounts(view *View) bool {
	f, s := view.Flow, view.Session
	if s == nil {
		return false
	}
	if f.signedIn() {
		return f.SessionID == s.ID && !(f.hasTask() && e.Store.Now().Sub(s.TimeSignedIn) > timeForTask)
	}
	r := f.Request
	if f.Another || r.Fresh || !view.App.SSO {
		return false
	}
	if r.MaxAge != nil && e.Store.Now().Sub(s.TimeSignedIn).Seconds() > float64(*r.MaxAge) {
		return false
	}
	view.Select = r.SelectAccount
	return !r.SelectAccount
}

// authorize checks what lies between a person who is signed in and the application: access, sub-account and consent, in
// this order.
func (e *Engine) authorize(ctx context.Context, view View) (View, protocol.Refusal, error) {
	f, r := view.Flow, view.Flow.Request
	if f.AppID == "" {
		view.Kind = Leave
		return view, "", nil
	}
	may, err := questions.MayUse.Ask(ctx, e.Bus, questions.Use{UserID: view.Session.UserID, AppID: f.AppID})
	if err != nil {
		return view, "", err
	}
	if !may.Allowed {
		view.Kind, view.Reason, view.RuleID = Refused, may.Reason, may.RuleID
		return view, passive(r, protocol.AccessDenied), nil
	}
	if view.App.SubAccounts {
		if done, refusal, err := e.account(ctx, &view); err != nil || done {
			return view, refusal, err
		}
	}
	asked, err := e.asksConsent(ctx, view)
	if err != nil {
		return view, "", err
	}
	if asked {
		view.Kind = Consent
		return view, passive(r, protocol.ConsentRequired), nil
	}
	view.Kind = Leave
	return view, "", nil
}

// ReasonNoAccount is the reason of a refusal for want of a sub-account.
const ReasonNoAccount = "no_account"

// account finds the sub-account. done says that the person has to choose, or is refused.
func (e *Engine) account(ctx context.Context, view *View) (done bool, why protocol.Refusal, err error) {
	f := view.Flow
	of, err := questions.AccountsOfUser.Ask(ctx, e.Bus,
		questions.AccountsQuestion{AppID: f.AppID, UserID: view.Session.UserID})
	if err != nil {
		return false, "", err
	}
	chosen := slices.IndexFunc(of.Accounts, func(a questions.SubAccount) bool { return a.ID == f.SubAccount })
	switch {
	case len(of.Accounts) == 0:
		view.Kind, view.Reason = Refused, ReasonNoAccount
		return true, passive(f.Request, protocol.AccessDenied), nil
	case len(of.Accounts) == 1:
		chosen = 0
	case chosen < 0 && f.Request.Passive:
		chosen = slices.IndexFunc(of.Accounts, func(a questions.SubAccount) bool { return a.IsDefault })
		if chosen < 0 {
			return true, protocol.LoginRequired, nil
		}
	case chosen < 0:
		view.Kind, view.Accounts = ChooseAccount, of.Accounts
		return true, "", nil
	}
	view.Accounts = of.Accounts[chosen : chosen+1]
	return false, "", nil
}

func (e *Engine) asksConsent(ctx context.Context, view View) (bool, error) {
	f, r := view.Flow, view.Flow.Request
	if f.Consented || !view.App.SignIn.Consent && !r.AskConsent && len(r.Consents) == 0 {
		return false, nil
	}
	if r.AskConsent {
		return true, nil
	}
	consent, err := e.Consents.Covering(ctx, view.Session.UserID, f.AppID, r.Consents)
	return consent == "", err
}

var errNoProtocol = errors.New("the flow's protocol is not known")

func (e *Engine) protocolOf(f *Flow) (protocol.Protocol, error) {
	p, ok := e.Protocols[f.Protocol]
	if !ok {
		return nil, errNoProtocol
	}
	return p, nil
}
