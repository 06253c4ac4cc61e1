package httpapi

import (
	"context"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/factor"
	"github.com/idplatform/idplatform/services/sign-in/internal/flow"
	"github.com/idplatform/idplatform/services/sign-in/internal/message"
	"github.com/idplatform/idplatform/services/sign-in/internal/page"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// awayFor is what Retry-After says while a service does not answer, and busyFor after too many failures.
const (
	awayFor = 5 * time.Second
	busyFor = time.Minute
)

// page makes the page of a view.
func (a *api) page(ctx context.Context, v *visit, view flow.View) (rest.Page, error) {
	f := view.Flow
	person := ""
	if view.User != nil {
		person = view.User.Locale
	}
	v.choose(a.language(v), f.Locale, f.Request.Locales, person)
	form, err := a.form(ctx, v, f)
	if err != nil {
		return rest.Page{}, err
	}
	challenge, err := a.challenge(ctx, v, view)
	if err != nil {
		return rest.Page{}, err
	}
	switch view.Kind {
	case flow.Leave:
		return a.leave(ctx, v, view)
	case flow.ChangePassword:
		c := newPasswordOf(form, f, notice(f))
		c.Passkey, c.Sources = slices.Contains(view.Methods, proof.Passkey), sourcesOf(view)
		return a.html(ctx, v, http.StatusOK, c)
	case flow.Forgotten:
		return a.html(ctx, v, http.StatusOK, page.Forgotten{Form: form, LoginName: f.LoginName, Notice: notice(f)})
	case flow.EnterCode:
		return a.html(ctx, v, http.StatusOK, page.EnterCode{Form: form, LoginName: f.LoginName, Notice: notice(f)})
	case flow.EnterFactor:
		return a.html(ctx, v, http.StatusOK, enterFactorOf(form, view, challenge, notice(f)))
	case flow.ChooseFactor:
		return a.html(ctx, v, http.StatusOK, page.ChooseFactor{
			Form: form, App: view.App.Name, Own: f.Request.Task != "", Later: laterOf(view),
			Passkey:       slices.Contains(view.Methods, proof.Passkey),
			Authenticator: slices.Contains(view.Methods, proof.App), Notice: notice(f),
		})
	case flow.SetUpApp:
		return a.setUpApp(ctx, v, view, form)
	case flow.SetUpPasskey:
		c, err := a.Engine.CeremonyOf(ctx, f)
		if err != nil {
			return rest.Page{}, err
		}
		return a.html(ctx, v, http.StatusOK, page.SetUpPasskey{
			Form: form, Options: string(c.Options), Own: f.Request.Task != "", Later: laterOf(view), Notice: notice(f),
			Invited: f.Recovering == flow.Invited,
		})
	case flow.AskNewCodes:
		return a.html(ctx, v, http.StatusOK, page.AskNewCodes{Form: form})
	case flow.KeepCodes:
		codes, err := a.Engine.CodesOf(ctx, f)
		if err != nil {
			return rest.Page{}, err
		}
		return a.html(ctx, v, http.StatusOK, page.KeepCodes{Form: form, Codes: codes})
	case flow.AskDirectory:
		return a.html(ctx, v, http.StatusOK, askDirectoryOf(form, view, notice(f)))
	case flow.AskToLink:
		return a.html(ctx, v, http.StatusOK, page.AskToLink{
			Form: form, Through: view.Through, Connection: f.LinksThrough(), Notice: notice(f),
		})
	case flow.ConfirmLink:
		return a.confirmLink(ctx, v, view, form)
	case flow.GoElsewhere:
		return a.goElsewhere(ctx, v, view)
	case flow.ChooseAccount:
		return a.html(ctx, v, http.StatusOK, chooseOf(form, view))
	case flow.Consent:
		p := page.Consent{Form: form, App: view.App.Name, Name: view.User.Name(),
			Scopes: scopeTexts(v.frame(ctx), f.Request.Consents)}
		if d := f.Request.Device; d != nil {
			// Only names of browsers that are known: a User-Agent is whatever its sender wants the person to read.
			p.Device = &page.AskingDevice{Code: d.Code, Address: d.Address, Browser: page.BrowserName(d.Agent)}
		}
		return a.html(ctx, v, http.StatusOK, p)
	case flow.Refused:
		return a.html(ctx, v, http.StatusForbidden, refusedOf(form, view))
	case flow.Missing:
		return a.html(ctx, v, http.StatusForbidden, missingOf(v.frame(ctx), form, view))
	case flow.Unknown:
		return a.html(ctx, v, http.StatusBadRequest, page.Problem{Head: "unknown_app", Text: "unknown_app_text"})
	case flow.Away:
		return a.away(ctx, v, view, form)
	case flow.TooMany:
		p, err := a.html(ctx, v, http.StatusTooManyRequests, formOf(form, view, nil, tooMany(view)))
		p.RetryAfter = busyFor
		return p, err
	}
	c := signInOf(form, view, challenge, notice(f))
	if f.Linking != "" {
		if c.Linking.Through, c.Linking.There, err = a.Engine.LinkingOf(ctx, f); err != nil {
			return rest.Page{}, err
		}
	}
	return a.html(ctx, v, http.StatusOK, c)
}

// form makes what all forms of a flow have.
func (a *api) form(ctx context.Context, v *visit, f *flow.Flow) (page.Form, error) {
	if v.lang != "" {
		f.Locale = v.lang
	}
	sealed, err := a.Engine.Seal(ctx, f)
	action := v.base + "/flow"
	if f.ID != "" {
		action += "/" + f.ID
	}
	return page.Form{Action: action, Request: sealed, Locale: f.Locale}, err
}

// notice is the key of what the page says of the last form.
func notice(f *flow.Flow) string {
	switch f.Notice {
	case flow.NoticePassword:
		return "refused_new"
	case flow.NoticeCode:
		return "wrong_code"
	case flow.NoticeSent:
		return "sent_again"
	case flow.NoticeLink:
		return "open_again"
	}
	return f.Notice
}

func signInOf(form page.Form, view flow.View, challenge *page.Challenge, notice string) page.SignIn {
	c := page.SignIn{Form: form, App: view.App.Name, LoginName: view.Flow.LoginName, Notice: notice,
		Recovers: view.Recovers, Challenge: challenge}
	c.Sources = sourcesOf(view)
	switch view.First() {
	case proof.Social, proof.Enterprise:
		c.SourcesFirst = true
	case proof.Passkey:
		c.PasskeyFirst = challenge != nil
	}
	c.Password = challenge == nil && len(c.Sources) == 0 || slices.Contains(view.Methods, proof.Password)
	if c.AsksName = view.AsksName(); c.AsksName {
		c.Password = false
	}
	if c.LoginName == "" {
		c.LoginName = view.Flow.Request.LoginHint
	}
	if view.Select && view.User != nil {
		c.Current = view.User.Name()
	}
	return c
}

func askDirectoryOf(form page.Form, view flow.View, notice string) page.AskDirectory {
	return page.AskDirectory{
		Form: form, App: view.App.Name, Through: view.Through, LoginName: view.Flow.LoginName, Notice: notice,
		Back: view.CanGoBack(),
	}
}

// sourcesOf are the buttons for other providers.
func sourcesOf(view flow.View) (all []page.Source) {
	for _, s := range view.Sources() {
		all = append(all, page.Source{ID: s.ID, Name: s.Name})
	}
	return all
}

// enterFactorOf asks for what the person has; for either, if that is not known.
func enterFactorOf(form page.Form, view flow.View, challenge *page.Challenge, notice string) page.EnterFactor {
	has := func(method string) bool { return len(view.Methods) == 0 || slices.Contains(view.Methods, method) }
	c := page.EnterFactor{
		Form: form, LoginName: view.Flow.LoginName, App: has(proof.App), Codes: has(proof.RecoveryCode),
		Sources: sourcesOf(view), Challenge: challenge, Notice: notice, Later: laterOf(view),
	}
	if view.User != nil {
		c.LoginName = view.User.Name()
	}
	return c
}

func laterOf(view flow.View) page.Later {
	later := page.Later{Can: view.Later}
	if !view.Until.IsZero() {
		later.Until = view.Until.Std().Format(time.DateOnly)
	}
	return later
}

// challenge is what the page of a view asks for a passkey with; nil if it asks for none.
func (a *api) challenge(ctx context.Context, v *visit, view flow.View) (*page.Challenge, error) {
	c, err := a.Engine.Challenge(ctx, view, v.Visitor)
	if err != nil || c == nil {
		return nil, err
	}
	return &page.Challenge{Options: c.Options, Sealed: c.Sealed}, nil
}

// setUpApp shows the key of the app that the person sets up.
func (a *api) setUpApp(ctx context.Context, v *visit, view flow.View, form page.Form) (rest.Page, error) {
	key, err := a.Engine.KeyOf(ctx, view.Flow)
	if err != nil {
		return rest.Page{}, err
	}
	issuer := v.settings.Name
	if u, err := url.Parse(a.PublicURL); issuer == "" && err == nil {
		issuer = u.Hostname()
	}
	account := view.Flow.LoginName
	if view.User != nil {
		account = view.User.Username
	}
	address := factor.URL(key, issuer, account)
	picture, err := factor.Picture(address)
	if err != nil {
		return rest.Page{}, err
	}
	codes := key.OrUsual()
	return a.html(ctx, v, http.StatusOK, page.SetUpApp{
		Form: form, Picture: template.URL(picture), Address: template.URL(address), //nolint:gosec // both are made here
		Key: message.Grouped(key.Key), Digits: codes.Digits, Period: codes.Period,
		Own: view.Flow.Request.Task != "", Later: laterOf(view), Notice: notice(view.Flow),
	})
}

// tooMany is the key of what the page says after too many failures.
func tooMany(view flow.View) string {
	f := view.Flow
	if view.OfName {
		return "too_many_of_name"
	}
	if f.Recovering != "" || len(f.Proofs) > 0 {
		return "too_often"
	}
	return "too_many"
}

// formOf is the form that was sent, without its secrets; nil for one that only the flow's own page has.
func formOf(form page.Form, view flow.View, challenge *page.Challenge, notice string) page.Content {
	f := view.Flow
	switch {
	case view.SentFrom == flow.EnterFactor:
		return enterFactorOf(form, view, challenge, notice)
	case view.SentFrom == flow.AskDirectory && view.Through != "":
		return askDirectoryOf(form, view, notice)
	case view.SentFrom != flow.SignIn:
		return nil
	case f.MustChange || f.Recovering == flow.Invited:
		return newPasswordOf(form, f, notice)
	case f.Recovering == flow.RecoverAsk:
		return page.Forgotten{Form: form, LoginName: f.LoginName, Notice: notice}
	case f.Recovering == flow.RecoverCode:
		return page.EnterCode{Form: form, LoginName: f.LoginName, Notice: notice}
	}
	return signInOf(form, view, challenge, notice)
}

func newPasswordOf(form page.Form, f *flow.Flow, notice string) page.NewPassword {
	c := page.NewPassword{
		Form: form, Title: "new_password", LoginName: f.LoginName, Why: "new_password_why", Notice: notice,
	}
	switch f.Recovering {
	case flow.Recovered:
		c.Why = "recovered_why"
	case flow.Invited:
		c.Title, c.Why = "choose_password", "invited_why"
	}
	return c
}

// away is the page while a service does not answer. The form that was sent is shown again, without its password.
func (a *api) away(ctx context.Context, v *visit, view flow.View, form page.Form) (rest.Page, error) {
	a.Log.WarnContext(ctx, "somebody could not sign in: a service does not answer", "error", view.Err())
	var c page.Content = page.Problem{
		Head: "unavailable", Text: "unavailable_text", OnURL: v.request.URL.RequestURI(), On: "try_again",
	}
	if v.request.Method == http.MethodPost {
		if sent := formOf(form, view, nil, "away"); sent != nil {
			c = sent
		} else {
			c = page.Problem{Head: "unavailable", Text: "unavailable_text", OnURL: form.Action, On: "try_again"}
		}
	}
	p, err := a.html(ctx, v, http.StatusServiceUnavailable, c)
	p.RetryAfter = awayFor
	return p, err
}

// leave leads to the application.
func (a *api) leave(ctx context.Context, v *visit, view flow.View, frames ...string) (rest.Page, error) {
	to := view.Answer
	if to.Post != nil {
		p, err := a.html(ctx, v, http.StatusOK, page.Post{App: view.App.Name, URL: to.URL, Fields: to.Post})
		p.Policy = rest.Policy{Forms: true, ScriptHash: page.PostHash}
		return p, err
	}
	p, err := a.html(ctx, v, http.StatusOK, page.Leave{
		App: view.App.Name, URL: to.URL, Frames: frames, SignedIn: view.Session != nil,
	})
	p.Refresh, p.Policy.Frames = to.URL, origins(frames)
	return p, err
}

func chooseOf(form page.Form, view flow.View) page.Choose {
	c := page.Choose{Form: form, App: view.App.Name}
	for _, account := range view.Accounts {
		c.Accounts = append(c.Accounts, page.Account{
			ID: account.ID, Account: account.Account, DisplayName: account.DisplayName, Checked: account.IsDefault,
		})
	}
	return c
}

func refusedOf(form page.Form, view flow.View) page.Refused {
	c := page.Refused{
		Form: form, App: view.App.Name, Name: view.User.Name(), Reason: "refused_text", Admin: "admin_no_rule",
		Rule: view.RuleID,
	}
	switch view.Reason {
	case flow.ReasonNoAccount:
		c.Reason, c.Admin = "refused_account", "admin_account"
	case "denied":
		c.Admin = "admin_denied"
	case "unknown_identity":
		c.Admin = "admin_identity"
	}
	return c
}

func missingOf(frame page.Frame, form page.Form, view flow.View) page.Missing {
	c := page.Missing{Form: form, App: view.App.Name, Text: "missing_text"}
	switch {
	case slices.Contains(view.Methods, flow.OwnProof):
		c.Text, c.Personal = "missing_own_proof", true
	case slices.Contains(view.Methods, proof.LostFactor):
		c.Text, c.Personal, c.Home = "missing_lost", true, view.Flow.AppID == ""
	case view.User != nil && slices.ContainsFunc(view.Methods, canSetUp) && view.Flow.AppID == "":
		c.Text, c.Personal = "missing_own", true
	case view.User != nil && slices.ContainsFunc(view.Methods, canSetUp):
		c.Text, c.Personal, c.Home = "missing_factor", true, true
	}
	for _, method := range view.Methods {
		c.Methods = append(c.Methods, frame.T("method_"+method))
	}
	return c
}

// canSetUp reports whether people can set up what is missing on their own page.
func canSetUp(missing string) bool { return missing == proof.AnyFactors || proof.IsFactor(missing) }

// scopeTexts says what scopes mean.
func scopeTexts(frame page.Frame, scopes []string) []string {
	var all []string
	for _, scope := range scopes {
		if text := frame.T("scope_" + scope); text != "" {
			all = append(all, text)
		} else {
			all = append(all, frame.T("scope_other", scope))
		}
	}
	return slices.Compact(all)
}
