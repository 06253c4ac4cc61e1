package httpapi

import (
	"cmp"
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/monogram"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/flow"
	"github.com/idplatform/idplatform/services/sign-in/internal/page"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
	"github.com/idplatform/idplatform/services/sign-in/internal/session"
)

// SessionForm ends a session.
type SessionForm struct {
	Session string `json:"session" doc:"Its id"`
}

// ConsentForm withdraws a consent.
type ConsentForm struct {
	Consent string `json:"consent" doc:"Its id"`
}

// GrantEndForm ends a grant.
type GrantEndForm struct {
	Grant string `json:"grant" doc:"Its id"`
}

// PasswordForm changes the person's password.
type PasswordForm struct {
	LoginName string `json:"login_name,omitempty" doc:"For the browser's password manager; is not looked at"`
	Old       string `json:"old" doc:"The present password"`
	Password  string `json:"password" doc:"The new one"`
	Repeated  string `json:"repeated" doc:"The new one again"`
}

// EmailForm asks for a code, or has one.
type EmailForm struct {
	Action string `json:"action" doc:"send: a code to the address; verify: with the code"`
	Code   string `json:"code,omitempty" doc:"From the email"`
}

// FactorForm adds or removes a factor, or renews the recovery codes.
type FactorForm struct {
	Action string `json:"action" doc:"add: an authenticator app; renew: the recovery codes; remove: a factor"`
	Factor string `json:"factor,omitempty" doc:"The id of the one to remove"`
}

// LinkForm links an identity at another provider, or removes a link.
type LinkForm struct {
	Action     string `json:"action" doc:"add: a link; remove: one"`
	Connection string `json:"connection,omitempty" doc:"The id of the connection of the one to add"`
	Link       string `json:"link,omitempty" doc:"The id of the one to remove"`
}

type homeInput struct{ Visitor }

type linkInput struct {
	Visitor
	Form rest.Values[LinkForm]
}

type factorInput struct {
	Visitor
	Form rest.Values[FactorForm]
}

type emailInput struct {
	Visitor
	Form rest.Values[EmailForm]
}

type endSessionInput struct {
	Visitor
	Form rest.Values[SessionForm]
}

type withdrawInput struct {
	Visitor
	Form rest.Values[ConsentForm]
}

type endGrantInput struct {
	Visitor
	Form rest.Values[GrantEndForm]
}

type passwordInput struct {
	Visitor
	Form rest.Values[PasswordForm]
}

// The notices of the page, as its query names them; true for good news.
var homeNotices = map[string]bool{
	"password_changed": true, "withdrawn": true, "session_ended": true, "grant_ended": true, "not_changed": false,
	"wrong_password": false, "differs": false, "refused_new": false, "too_many": false, "away": false,
	flow.LinkAdded: true, flow.LinkRemoved: true, flow.LinkKept: false,
	flow.FactorAdded: true, flow.CodesRenewed: true, flow.FactorRemoved: true, flow.FactorKept: false,
	flow.CodeSent:      true,
	flow.EmailVerified: true, flow.WrongCode: false, flow.TooManyMails: false, flow.NotVerifiable: false,
}

const (
	maxRows = 50 // sessions and consents on the page
	maxApps = 200
	// recently is how long a sign-in proves that the person itself changes something. A new password wants the old one.
	recently = 5 * time.Minute
)

func (a *api) registerHome(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "show-own-page", Method: http.MethodGet, Path: below, ErrorPage: a.failed,
		Summary:      "Show the person's own page",
		ContentTypes: htmlOnly, Response: examplePage,
		Doc: "The applications that the person may use, second factors, links to other providers, sessions, " +
			"consents, and the change of the password; without a session it shows the sign-in page.",
	}, a.showHome)
	post := func(id, path, summary string, form any) rest.Op {
		return rest.Op{ID: id, Method: http.MethodPost, Path: below + path, IfMatchParam: rest.NoRecord,
			ErrorPage: a.failed,
			Summary:   summary, ContentTypes: htmlOnly, Errors: []apperr.Kind{apperr.Forbidden}, Request: form,
			Response: examplePage, Doc: "A form of the person's own page. The answer is a 303 to the page."}
	}
	rest.Handle(s, post("end-own-session", "/sessions", "End one of one's own sessions", SessionForm{"1048577"}),
		func(ctx context.Context, in *endSessionInput) (rest.Page, error) {
			return a.own(ctx, &in.Visitor, func(ctx context.Context, v *visit, s *session.Session) (rest.Page, error) {
				return a.change(ctx, v, s, flow.EndSession, in.Form.Get("session"))
			})
		})
	rest.Handle(s, post("withdraw-own-consent", "/consents", "Withdraw one of one's own consents",
		ConsentForm{"1048577"}),
		func(ctx context.Context, in *withdrawInput) (rest.Page, error) {
			return a.own(ctx, &in.Visitor, func(ctx context.Context, v *visit, s *session.Session) (rest.Page, error) {
				return a.change(ctx, v, s, flow.WithdrawConsent, in.Form.Get("consent"))
			})
		})
	rest.Handle(s, post("end-own-grant", "/grants", "End one of one's own grants", GrantEndForm{"1048577"}),
		func(ctx context.Context, in *endGrantInput) (rest.Page, error) {
			return a.own(ctx, &in.Visitor, func(ctx context.Context, v *visit, s *session.Session) (rest.Page, error) {
				return a.change(ctx, v, s, flow.EndGrant, in.Form.Get("grant"))
			})
		})
	rest.Handle(s, post("verify-own-email", "/email", "Show that one's own email address is one's own",
		EmailForm{Action: "verify", Code: "BCDF-GHJK"}),
		func(ctx context.Context, in *emailInput) (rest.Page, error) {
			return a.own(ctx, &in.Visitor, func(ctx context.Context, v *visit, s *session.Session) (rest.Page, error) {
				done, err := a.verifyOwn(ctx, v, s, in.Form)
				return a.done(v, done), err
			})
		})
	rest.Handle(s, post("change-own-factors", "/factors", "Change one's own second factors",
		FactorForm{Action: "remove", Factor: "1048577"}),
		func(ctx context.Context, in *factorInput) (rest.Page, error) {
			return a.own(ctx, &in.Visitor, func(ctx context.Context, v *visit, s *session.Session) (rest.Page, error) {
				return a.changeFactors(ctx, v, s, in.Form)
			})
		})
	rest.Handle(s, post("change-own-links", "/links", "Change one's own links to other providers",
		LinkForm{Action: "remove", Link: "1048577"}),
		func(ctx context.Context, in *linkInput) (rest.Page, error) {
			return a.own(ctx, &in.Visitor, func(ctx context.Context, v *visit, s *session.Session) (rest.Page, error) {
				return a.changeLinks(ctx, v, s, in.Form)
			})
		})
	rest.Handle(s, post("change-own-password", "/password", "Change one's own password",
		PasswordForm{LoginName: "ann", Old: "…", Password: "…", Repeated: "…"}),
		func(ctx context.Context, in *passwordInput) (rest.Page, error) {
			return a.own(ctx, &in.Visitor, func(ctx context.Context, v *visit, s *session.Session) (rest.Page, error) {
				done, err := a.changeOwn(ctx, v, s, in.Form)
				return a.done(v, done), err
			})
		})
}

// own does what a form of the person's own page says. If the session has ended meanwhile, the person signs in and reads
// that nothing has changed.
func (a *api) own(ctx context.Context, in *Visitor,
	do func(context.Context, *visit, *session.Session) (rest.Page, error),
) (rest.Page, error) {
	ctx, v, err := a.enter(ctx, in)
	if err != nil {
		return rest.Page{}, err
	}
	s, err := a.Sessions.Of(ctx, v.Cookie)
	if err != nil {
		return rest.Page{}, err
	}
	if s == nil {
		return a.signInFirst(ctx, v, flow.Change{})
	}
	return do(flow.As(ctx, v.Issuer, s.UserID), v, s)
}

func (a *api) done(v *visit, done string) rest.Page { return a.redirect(v, v.base+"?done="+done) }

func (a *api) signInFirst(ctx context.Context, v *visit, c flow.Change) (rest.Page, error) {
	r, err := c.Request()
	if err != nil {
		return rest.Page{}, err
	}
	return a.arrive(ctx, v, r)
}

// changeFactors leads to the pages that add or renew a factor, or removes one, after a sign-in with all that the person
// has.
func (a *api) changeFactors(ctx context.Context, v *visit, s *session.Session, form rest.Values[FactorForm]) (rest.Page,
	error,
) {
	c := flow.Change{UserID: s.UserID, ID: form.Get("factor"), Address: v.Address, Browser: v.UserAgent()}
	switch form.Get("action") {
	case "add":
		c.Action = flow.AddFactor
	case "renew":
		c.Action = flow.RenewCodes
	case "remove":
		c.Action = flow.RemoveFactor
	default:
		return rest.Page{}, apperr.Invalid("action", "is not one of the page's")
	}
	return a.signInFirst(ctx, v, c)
}

// changeLinks leads to the pages that link an identity, or removes a link, after a sign-in with all that the person
// has.
func (a *api) changeLinks(ctx context.Context, v *visit, s *session.Session, form rest.Values[LinkForm]) (rest.Page,
	error,
) {
	c := flow.Change{UserID: s.UserID, Address: v.Address, Browser: v.UserAgent()}
	switch form.Get("action") {
	case "add":
		c.Action, c.ID = flow.AddLink, form.Get("connection")
	case "remove":
		c.Action, c.ID = flow.RemoveLink, form.Get("link")
	default:
		return rest.Page{}, apperr.Invalid("action", "is not one of the page's")
	}
	return a.signInFirst(ctx, v, c)
}

// change makes a change, after a new sign-in if the last one is too long ago. A browser may always sign itself out.
func (a *api) change(
	ctx context.Context, v *visit, s *session.Session, what flow.Action, id string,
) (rest.Page, error) {
	c := flow.Change{UserID: s.UserID, Action: what, ID: id, Address: v.Address, Browser: v.UserAgent()}
	itself := what == flow.EndSession && id == s.ID
	if !itself && a.Engine.Store.Now().Sub(s.TimeSignedIn) > recently {
		return a.signInFirst(ctx, v, c)
	}
	done, err := a.Own.Make(ctx, c)
	if err == nil && itself {
		a.signedOut(v)
	}
	return a.done(v, done), err
}

func (a *api) changeOwn(ctx context.Context, v *visit, s *session.Session, form rest.Values[PasswordForm],
) (string, error) {
	if form.Get("password") != form.Get("repeated") {
		return "differs", nil
	}
	u, err := a.userOf(ctx, s)
	if err != nil {
		return "", err
	}
	cookies, err := a.Engine.ChangePassword(ctx, s, u.Username, form.Get("old"), form.Get("password"), v.Visitor)
	a.signedIn(v, cookies)
	switch {
	case errors.Is(err, flow.ErrPassword):
		return "refused_new", nil
	case err == nil:
		return "password_changed", nil
	}
	switch apperr.KindOf(err) {
	case apperr.Unauthenticated:
		return "wrong_password", nil
	case apperr.RateLimited:
		return "too_many", nil
	case apperr.Unavailable:
		return "away", nil
	}
	return "", err
}

func (a *api) verifyOwn(ctx context.Context, v *visit, s *session.Session, form rest.Values[EmailForm]) (string,
	error,
) {
	switch form.Get("action") {
	case "verify":
		return a.Engine.VerifyEmail(ctx, s, form.Get("code"))
	case "send":
	default:
		return "", apperr.Invalid("action", "is not one of the page's")
	}
	u, err := a.userOf(ctx, s)
	if err != nil {
		return "", err
	}
	v.choose(a.language(v), "", nil, u.Locale)
	return a.Engine.AskToVerify(ctx, s, u, v.locale, v.Visitor)
}

func (a *api) userOf(ctx context.Context, s *session.Session) (*person.User, error) {
	p, err := person.Find(ctx, a.Engine.Store, s.UserID)
	if err != nil {
		return nil, err
	}
	return person.Parse(p.User)
}

// whoIs is the name and language of the person of a session, as far as they are known.
func (a *api) whoIs(ctx context.Context, s *session.Session) (name, locale string) {
	if s == nil {
		return "", ""
	}
	u, err := a.userOf(ctx, s)
	if err != nil {
		return s.UserID, ""
	}
	return u.Name(), u.Locale
}

func (a *api) showHome(ctx context.Context, in *homeInput) (rest.Page, error) {
	ctx, v, err := a.enter(ctx, &in.Visitor)
	if err != nil || in.Request.Method == http.MethodHead {
		return rest.Page{}, err
	}
	s, err := a.Sessions.Of(ctx, v.Cookie)
	if err != nil {
		return rest.Page{}, err
	}
	if s == nil {
		return a.arrive(ctx, v, flow.OwnRequest(false))
	}
	u, err := a.userOf(ctx, s)
	if err != nil {
		return rest.Page{}, err
	}
	if u.Gone(a.Engine.Store.Now()) {
		return a.arrive(ctx, v, flow.OwnRequest(true))
	}
	v.choose(a.language(v), "", nil, u.Locale)
	c := page.Home{Name: u.Name(), LoginName: u.Username, Password: u.HasPassword()}
	if done := in.Request.URL.Query().Get("done"); done != "" {
		if good, ok := homeNotices[done]; ok {
			c.Notice, c.Good = done, good
		}
	}
	can, err := a.Engine.VerificationOf(ctx, s, u)
	if err != nil {
		return rest.Page{}, err
	}
	c.Email, c.Verifiable, c.CodeIsOut = u.Email, can != flow.NothingToVerify, can == flow.CodeIsOut
	if c.Notice == flow.CodeSent && !c.CodeIsOut || c.Notice == flow.EmailVerified && !u.EmailVerified {
		c.Notice = "" // somebody else's link
	}
	a.addHomeApps(ctx, v, s, &c)
	if err := a.addHomeFactors(ctx, s, &c); err != nil {
		return rest.Page{}, err
	}
	a.addHomeLinks(ctx, s, &c)
	if c.Sessions, err = a.homeSessions(ctx, s); err != nil {
		return rest.Page{}, err
	}
	if c.Consents, err = a.homeConsents(ctx, v, s); err != nil {
		return rest.Page{}, err
	}
	if c.Grants, err = a.homeGrants(ctx, s); err != nil {
		return rest.Page{}, err
	}
	return a.html(ctx, v, http.StatusOK, c)
}

// addHomeApps adds the applications that the person may open, by name. The page does without them if they cannot be
// found: a service is away, or the person belongs to too many groups.
func (a *api) addHomeApps(ctx context.Context, v *visit, s *session.Session, c *page.Home) {
	apps, err := a.Engine.Usable(ctx, s.UserID)
	if err != nil {
		c.AppsAway = true
		a.Log.WarnContext(ctx, "a person's applications cannot be found", "user_id", s.UserID, "error", err)
		return
	}
	slices.SortFunc(apps, func(a, b questions.Launchable) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), strings.Compare(a.ID, b.ID))
	})
	c.MoreApps = len(apps) > maxApps
	for _, app := range apps[:min(len(apps), maxApps)] {
		shown := page.HomeApp{
			Name: app.Name, URL: flow.StartOf(v.base, app), Icon: template.URL(monogram.DataURI(app.Name)),
		}
		if u, err := url.Parse(app.LoginURL); err == nil {
			shown.Host = u.Host
		}
		c.Apps = append(c.Apps, shown)
	}
}

func (a *api) addHomeFactors(ctx context.Context, s *session.Session, c *page.Home) error {
	all, err := a.Factors.OfUser(ctx, s.UserID)
	for _, one := range all {
		if one.Type == proof.RecoveryCode {
			c.CodesLeft = one.CodesLeft
			continue
		}
		row := page.HomeFactor{
			ID: one.ID, Name: one.Name, Kind: "authenticator_app", Since: one.TimeCreated.Std().Format("2006-01-02"),
		}
		if one.Type == proof.Passkey {
			row.Kind = "a_passkey"
		}
		if !one.TimeUsed.IsZero() {
			row.Used = one.TimeUsed.Std().Format("2006-01-02")
		}
		c.Factors = append(c.Factors, row)
	}
	return err
}

// addHomeLinks adds the person's links to other providers. The page does without them while a service is away.
func (a *api) addHomeLinks(ctx context.Context, s *session.Session, c *page.Home) {
	links, err := a.Own.Links(ctx, s.UserID)
	if err != nil {
		c.LinksAway = true
		a.Log.WarnContext(ctx, "a person's links to other providers cannot be found", "user_id", s.UserID, "error", err)
		return
	}
	linked := map[string]bool{}
	for _, one := range links {
		linked[one.ConnectionID] = true
		c.Links = append(c.Links, page.HomeLink{
			ID: one.ID, Through: one.Through, Name: one.Name, Off: !one.Enabled,
			Since: one.TimeCreated.Std().Format(time.DateOnly),
		})
	}
	sources, err := a.Engine.Linkable(ctx)
	if err != nil {
		a.Log.WarnContext(ctx, "the connections that people can link cannot be found", "error", err)
	}
	for _, one := range sources {
		if !linked[one.ID] {
			c.Linkable = append(c.Linkable, page.Source{ID: one.ID, Name: one.Name})
		}
	}
}

func (a *api) homeSessions(ctx context.Context, s *session.Session) ([]page.HomeSession, error) {
	all, err := a.Sessions.OfUser(ctx, s.UserID, maxRows)
	rows := make([]page.HomeSession, 0, len(all))
	for _, one := range all {
		rows = append(rows, page.HomeSession{
			ID: one.ID, Browser: page.BrowserName(one.Browser), Address: one.Address, Here: one.ID == s.ID,
			Since: one.TimeSignedIn.Std().Format("2006-01-02 15:04 UTC"),
		})
	}
	slices.SortStableFunc(rows, func(a, b page.HomeSession) int {
		switch {
		case a.Here:
			return -1
		case b.Here:
			return 1
		}
		return 0
	})
	return rows, err
}

func (a *api) homeConsents(ctx context.Context, v *visit, s *session.Session) ([]page.HomeConsent, error) {
	all, err := a.Consents.OfUser(ctx, s.UserID, maxRows)
	rows := make([]page.HomeConsent, 0, len(all))
	for _, one := range all {
		name, err := a.shownName(ctx, one.AppID)
		if err != nil {
			return nil, err
		}
		rows = append(rows, page.HomeConsent{ID: one.ID, App: name, Scopes: scopeTexts(v.frame(ctx), one.Scopes)})
	}
	return rows, err
}

func (a *api) homeGrants(ctx context.Context, s *session.Session) ([]page.HomeGrant, error) {
	all, err := a.OIDC.GrantsOfUser(ctx, s.UserID, maxRows)
	rows := make([]page.HomeGrant, 0, len(all))
	for _, one := range all {
		name, err := a.shownName(ctx, one.AppID)
		if err != nil {
			return nil, err
		}
		rows = append(rows, page.HomeGrant{
			ID: one.ID, App: name, Since: one.TimeCreated.Std().Format("2006-01-02 15:04 UTC"),
			Until: one.TimeExpires.Std().Format("2006-01-02"),
		})
	}
	return rows, err
}

// shownName is the name of an application, or its id if the name is not known.
func (a *api) shownName(ctx context.Context, appID string) (string, error) {
	name, err := a.nameOf(ctx, appID)
	if strings.TrimSpace(name) == "" {
		name = appID
	}
	return name, err
}
