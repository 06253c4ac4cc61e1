package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/questions/claimmapping"
	"github.com/idplatform/idplatform/services/sign-in/internal/federation"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
	"github.com/idplatform/idplatform/services/sign-in/internal/session"
)

// Source is a connection through which people can sign in on the way to an application.
type Source struct {
	questions.Connection
	Method string // social or enterprise
	code   string // the method's
	policy sourcePolicy
}

// sourcePolicy is what a method's policy says of its connections.
type sourcePolicy struct {
	Link         string               `json:"link"`
	Create       string               `json:"create"`
	Domains      []string             `json:"domains"`
	TrustMFA     string               `json:"trust_mfa"`
	NodeID       string               `json:"node_id"`
	ClaimMapping claimmapping.Mapping `json:"claim_mapping"`
	Update       string               `json:"update"`
}

// The values of sourcePolicy.Link. Empty is linkAsk.
const (
	linkAsk   = "ask"
	linkEmail = "verified_email"
)

// sourcesOf are the connections of a template's methods through which people can sign in to an application, and the
// steps with these alone.
func sourcesOf(steps []questions.LoginStep, app questions.Client) ([]Source, []questions.LoginStep) {
	var sources []Source
	steps = slices.Clone(steps)
	for i := range steps {
		steps[i].Methods = slices.Clone(steps[i].Methods)
		for j, m := range steps[i].Methods {
			var usable []questions.Connection
			for _, c := range m.Connections {
				if !mayUse(app, m.Type, c) {
					continue
				}
				usable = append(usable, c)
				known := slices.ContainsFunc(sources, func(s Source) bool { return s.ID == c.ID })
				if known {
					continue
				}
				one := Source{Connection: c, Method: m.Type, code: m.Code}
				_ = json.Unmarshal(m.Policy, &one.policy) // it was checked; empty from an earlier version
				sources = append(sources, one)
			}
			steps[i].Methods[j].Connections = usable
		}
	}
	return sources, steps
}

// mayUse reports whether people can sign in to an application through a connection.
func mayUse(app questions.Client, method string, c questions.Connection) bool {
	attached := len(app.Sources) == 0 || slices.Contains(app.Sources, c.ID)
	allowed := method != proof.Social || len(app.SocialProviders) == 0 || app.SocialProviders[c.ProviderCode]
	return attached && allowed && federation.Supports(c.ProviderCode)
}

// elsewhere are the methods of steps that stand for the connections of a view.
func (view *View) elsewhere() []string {
	methods := make([]string, len(view.sources))
	for i, s := range view.sources {
		methods[i] = proof.Upstream(s.ID)
	}
	return methods
}

// Sources are the connections that the page of a view offers: none, once the person has come from one and is asked to
// show who they are here.
func (view *View) Sources() (shown []Source) {
	if view.Flow.Linking != "" {
		return nil
	}
	for _, s := range view.sources {
		if slices.Contains(view.Methods, proof.Upstream(s.ID)) {
			shown = append(shown, s)
		}
	}
	slices.SortStableFunc(shown, func(a, b Source) int { return view.order(a) - view.order(b) })
	return shown
}

func (view *View) order(s Source) int {
	if s.code == view.App.FirstMethod && s.code != "" {
		return 0
	}
	return 1
}

// First is the type of the method that the page of a view offers first, as the application wants it; empty if it does
// not say, or the page does not have the method.
func (view *View) First() string {
	if view.App.FirstMethod == "" {
		return ""
	}
	for _, step := range view.steps {
		for _, m := range step.Methods {
			if m.Code == view.App.FirstMethod && (slices.Contains(view.Methods, m.Type) ||
				slices.ContainsFunc(view.Sources(), func(s Source) bool { return s.code == m.Code })) {
				return m.Type
			}
		}
	}
	return ""
}

func (view *View) source(connectionID string) *Source {
	for i, s := range view.sources {
		if s.ID == connectionID {
			return &view.sources[i]
		}
	}
	return nil
}

// leaving is what a flow keeps while the person is at another provider. Its JSON form is kept compatible.
type leaving struct {
	Connection string          `json:"connection"`
	State      string          `json:"state"` // SHA-256 of what comes back
	Kept       federation.Kept `json:"kept"`
	Links      bool            `json:"links,omitempty"` // the person links the identity, and does not sign in by it
}

// What is sealed in a flow.
const (
	useLeaving = "upstream"
	useLinking = "link"
)

func (e *Engine) seal(ctx context.Context, use, flowID string, value any) (string, error) {
	text, err := json.Marshal(value)
	return e.Keys.Seal(text, boundToFlow(ctx, use, flowID)), err
}

func (e *Engine) unseal(ctx context.Context, use string, f *Flow, sealed string, value any) error {
	text, err := e.Keys.Open(sealed, boundToFlow(ctx, use, f.ID))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, value)
}

func boundToFlow(ctx context.Context, use, flowID string) []byte {
	return []byte("sign-in " + use + " " + request.Tenant(ctx) + " " + flowID)
}

// CallbackOf is the address that people come back to from the provider of a connection.
func CallbackOf(issuer, connectionID string) string { return issuer + "/callback/" + connectionID }

// FlowOf is the id of the flow that a provider's answer belongs to.
func FlowOf(state string) string {
	id, _, _ := strings.Cut(state, ".")
	return id
}

// leave sends a person to the provider of a connection.
func (e *Engine) leave(ctx context.Context, f *Flow, now View, form Form, v Visitor) (View, error) {
	view := View{Kind: Leave, Flow: f, Methods: now.Methods, sources: now.sources}
	source := now.source(form.Connection)
	switch {
	case source != nil && now.linksBy(source):
		f.stepUpFrom(now)
	case source == nil || !slices.Contains(now.Methods, proof.Upstream(source.ID)): // a form from before
		return view, e.save(ctx, f, v.Browser, nil)
	}
	return e.leaveFor(ctx, f, departure{source, f.Request.LoginHint, now.linksBy(source)}, v)
}

// departure is how a person goes to the provider of a source: with a name that they have given, if any, to sign in by
// who they are there, or to link that.
type departure struct {
	*Source
	hint  string
	links bool
}

// leaveFor sends a person to another provider, or to the page that asks for a password of a directory.
func (e *Engine) leaveFor(ctx context.Context, f *Flow, to departure, v Visitor) (View, error) {
	view := View{Kind: Leave, Flow: f}
	if f.Directory = ""; federation.IsDirectory(to.ProviderCode) { // its password is asked for here
		f.Directory = to.ID
		return view, e.save(ctx, f, v.Browser, nil)
	}
	if f.ID == "" {
		f.ID = secret.Token(idBytes)
	}
	state := f.ID + "." + secret.Token(idBytes)
	r := f.Request
	address, kept, err := e.Federation.Begin(ctx, to.ID, federation.Request{
		Callback: CallbackOf(v.Issuer, to.ID), State: state, Fresh: r.Fresh, MaxAge: r.MaxAge,
		LoginHint: to.hint, Locales: r.Locales,
	})
	if notice, err := e.noticeOf(ctx, to.ID, err); notice != "" || err != nil {
		if err != nil {
			return unlessAway(view, err)
		}
		f.Notice = notice
		return view, e.save(ctx, f, v.Browser, nil)
	}
	f.Leaving, err = e.seal(ctx, useLeaving, f.ID, leaving{to.ID, session.Hash(state), kept, to.links})
	if err != nil {
		return View{}, err
	}
	if err := e.save(ctx, f, v.Browser, nil); err != nil {
		return View{}, err
	}
	return View{Kind: GoElsewhere, Flow: f, Through: to.Name, Answer: protocol.Answer{URL: address}}, nil
}

// noticeOf is what the page says of a provider that cannot be used; empty if it can. The error is one of others.
func (e *Engine) noticeOf(ctx context.Context, connectionID string, err error) (string, error) {
	notice := ""
	switch {
	case err == nil:
		return "", nil
	case errors.Is(err, federation.ErrAway):
		notice = NoticeProviderAway
	case errors.Is(err, federation.ErrRefused), apperr.IsNotFound(err):
		notice = NoticeProvider
	default:
		return "", err
	}
	e.Log.WarnContext(ctx, "somebody could not sign in through a connection", "connection", connectionID,
		"error", short(err))
	return notice, nil
}

// short is what a log says of an error that quotes a provider.
func short(err error) string {
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), maxQuoted)], "")
}

const maxQuoted = 500 // bytes

// Returned is what a person has brought back from another provider.
type Returned struct {
	Connection string
	State      string
	Code       string
	Issuer     string
	Error      string // what the provider says instead of a code
}

// Return goes on with a flow whose person comes back from another provider. The view is as Act's. An answer that the
// flow does not wait for changes nothing.
func (e *Engine) Return(ctx context.Context, f *Flow, in Returned, v Visitor) (View, error) {
	view := View{Kind: Leave, Flow: f}
	var left leaving
	if f.Leaving == "" || e.unseal(ctx, useLeaving, f, f.Leaving, &left) != nil ||
		left.Connection != in.Connection || !secret.Equal(left.State, session.Hash(in.State)) {
		return view, nil
	}
	f.Leaving, f.Notice = "", ""
	if in.Error != "" {
		f.Notice = NoticeProvider
		if in.Error == "access_denied" { // the person has changed their mind
			f.Notice = NoticeNotThere
		}
	}
	err := e.save(ctx, f, v.Browser, nil) // the same answer is good once
	if err != nil || in.Error != "" {
		return view, err
	}
	now, err := e.pageOf(ctx, f, v)
	if err != nil {
		return unlessAway(view, err)
	}
	view.Methods, view.sources = now.Methods, now.sources
	source := now.source(left.Connection)
	asked := source != nil && now.shows(source)
	if left.Links {
		asked = source != nil && source.asks() && (f.isToLink() || f.Recovering == Invited)
	}
	if !asked {
		return view, nil // the template has changed, or the person has signed in in another way
	}
	who, err := e.redeem(ctx, source, left.Kept, in, v)
	if errors.Is(err, errTooMany) {
		view.Kind = TooMany
		return view, nil
	}
	if notice, err := e.noticeOf(ctx, source.ID, err); notice != "" || err != nil {
		if err != nil {
			return unlessAway(view, err)
		}
		f.Notice = notice
		return view, e.save(ctx, f, v.Browser, nil)
	}
	if left.Links {
		return e.bringsLink(ctx, f, source, who, v)
	}
	return e.identified(ctx, f, now, source, who, v)
}

// redeem asks a provider who has signed in, within the limits of guesses: each costs the provider a request. The error
// may be errTooMany.
func (e *Engine) redeem(ctx context.Context, source *Source, kept federation.Kept, in Returned, v Visitor,
) (federation.Identity, error) {
	attempt, err := e.Admit(ctx, ProviderCode, v, "")
	if err != nil {
		return federation.Identity{}, err
	}
	if attempt == nil {
		return federation.Identity{}, errTooMany
	}
	who, err := e.Federation.End(ctx, source.ID, kept, federation.Answer{
		Code: in.Code, Issuer: in.Issuer, AllClaims: len(source.policy.ClaimMapping) > 0,
	})
	if err != nil && (!errors.Is(err, federation.ErrRefused) || errors.Is(err, federation.ErrClient)) {
		return who, err // it is no fault of the person
	}
	told, failed := attempt.Settle(ctx, err == nil)
	switch {
	case failed != nil:
		return federation.Identity{}, failed
	case !told:
		return federation.Identity{}, errTooMany
	}
	return who, err
}

// identified goes on with who another provider has signed in.
func (e *Engine) identified(ctx context.Context, f *Flow, now View, source *Source, who federation.Identity, v Visitor,
) (View, error) {
	view := View{Kind: Leave, Flow: f, Methods: now.Methods, sources: now.sources}
	identity := source.identity(who)
	shownAt := e.Store.Now() // before it is asked: a link that ends meanwhile counts no more
	linked, err := questions.FindLinked.Ask(ctx, e.Bus, identity)
	if err == nil && linked.Reason == questions.NotLinked && source.linksBy(who.Email) {
		linked, err = questions.Link.Ask(ctx, e.Bus, questions.NewLink{ForeignIdentity: identity, Email: who.Email})
		if refusedLink(err) {
			linked, err = questions.Linked{Reason: questions.NotLinked}, nil
		}
		if err == nil && linked.Reason == "" {
			err = e.tellLinked(ctx, linked.User, source.Name, v)
		}
	}
	if err != nil {
		return unlessAway(view, err)
	}
	members, err := source.members(ctx, who)
	if err != nil {
		return View{}, err
	}
	switch {
	case linked.Reason == questions.NotLinked && source.creates(members, who):
		linked, err = e.createUser(ctx, source, identity, members, who, v)
	case linked.Reason == "" && source.policy.Update == updateAlways && !linked.HasScopes:
		linked.SignedIn, err = e.updateUser(ctx, source, linked.SignedIn, members, who, v)
	}
	switch {
	case errors.Is(err, errTooMany):
		view.Kind = TooMany
		return view, nil
	case err != nil:
		return unlessAway(view, err)
	case linked.Reason == questions.NotLinked && source.asks() && now.canShowWhoTheyAre():
		f.Linking, err = e.seal(ctx, useLinking, f.ID, pending{identity, source.Name})
		if err != nil {
			return View{}, err
		}
		return view, e.save(ctx, f, v.Browser, nil)
	case linked.Reason == questions.NotLinked:
		return view, e.refused(ctx, f, Proven{Notice: NoticeNotLinked}, v)
	case linked.Reason != "":
		return view, e.refused(ctx, f, Proven{Notice: NoticeForeign}, v)
	}
	user, err := person.Parse(linked.User)
	if err != nil {
		return View{}, err
	}
	two := who.TwoFactors && source.policy.TrustMFA == "1" && !linked.HasScopes
	shown := proof.ByUpstream(shownAt, source.Method, source.ID, linked.LinkID, two, who.AMR)
	if who.Session != "" {
		shown.UpstreamSession = proof.HashSession(source.ID, who.Session)
	}
	if !now.demand.Begins(shown.Channel) && user.ID != now.subject.userID { // nobody else can begin with it
		return view, e.refused(ctx, f, Proven{Notice: NoticeForeign}, v)
	}
	f.Linking = ""
	return e.proven(ctx, f, now, true, Proven{
		User: user, Proof: shown, LoginName: user.Username, SignedIn: linked.SignedIn, OwnProof: linked.HasScopes,
	}, v)
}

func refusedLink(err error) bool {
	if err == nil {
		return false
	}
	switch apperr.KindOf(err) {
	case apperr.AlreadyExists, apperr.InvalidState, apperr.InvalidParameters, apperr.NotFound:
		return true
	}
	return false
}

// asks reports whether people who are not linked are asked to show who they are here.
func (s *Source) asks() bool { return cmp.Or(s.policy.Link, linkAsk) != "never" }

// linksBy reports whether an address that the provider has verified is enough to link: it is of a domain that the
// provider is trusted for.
func (s *Source) linksBy(email string) bool {
	return s.policy.Link == linkEmail && s.trustsDomainOf(email)
}

// trustsDomainOf reports whether the provider is trusted for the domain of an address.
func (s *Source) trustsDomainOf(address string) bool {
	at := strings.LastIndexByte(address, '@')
	return at >= 0 && slices.ContainsFunc(s.policy.Domains, func(d string) bool {
		return strings.EqualFold(d, address[at+1:])
	})
}

// canShowWhoTheyAre reports whether the page of a view asks for anything that only a person of this platform has.
func (view *View) canShowWhoTheyAre() bool {
	return slices.Contains(view.Methods, proof.Password) || slices.Contains(view.Methods, proof.Passkey)
}

// identity is what a link binds of who somebody is at the provider.
func (s *Source) identity(who federation.Identity) questions.ForeignIdentity {
	return questions.ForeignIdentity{
		ConnectionID: s.ID, ProviderCode: s.ProviderCode, Subject: who.Subject, Subject2: who.Subject2,
		Username: who.Username, DisplayName: who.DisplayName,
	}
}
