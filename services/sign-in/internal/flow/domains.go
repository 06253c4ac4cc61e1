package flow

import (
	"context"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/dnsname"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// domainOf is the domain of a name that looks like an address, in the form of dnsname.Key; empty for others.
func domainOf(name string) string {
	name = textindex.Key(name)
	at := strings.LastIndexByte(name, '@')
	if at < 0 {
		return ""
	}
	return dnsname.Key(name[at+1:])
}

// find returns the verified domain of a source that a name belongs to; nil if there is none.
func (s *Source) find(name string) *questions.ConnectionDomain {
	domain := domainOf(name)
	i := slices.IndexFunc(s.Domains, func(d questions.ConnectionDomain) bool { return d.Name == domain })
	if i < 0 {
		return nil
	}
	return &s.Domains[i]
}

// AsksName reports whether the page of a view asks for the login name alone: it may lead to a connection.
func (view *View) AsksName() bool {
	return view.Kind == SignIn && !view.Flow.Named &&
		slices.ContainsFunc(view.Sources(), func(s Source) bool { return len(s.Domains) > 0 })
}

// named goes on with a login name: at the provider of the connection that it belongs to, or else on the page that asks
// for a proof.
func (e *Engine) named(ctx context.Context, f *Flow, now View, form Form, v Visitor) (View, error) {
	view := View{Kind: Leave, Flow: f}
	name := strings.TrimSpace(form.LoginName)
	if name == "" || len(name) > maxLoginName {
		return view, e.save(ctx, f, v.Browser, nil)
	}
	f.LoginName, f.Named = name, true
	for _, s := range now.Sources() {
		if s.find(name) != nil {
			return e.leaveFor(ctx, f, departure{Source: &s, hint: name}, v)
		}
	}
	return view, e.save(ctx, f, v.Browser, nil)
}

// insteadOfPassword returns the source through which alone a user signs in, whom a password has shown; nil if the
// password is enough. Whoever has come from another provider shows by the password who they are here.
func (view *View) insteadOfPassword(f *Flow, proofs []proof.Proof, user *person.User) *Source {
	byPassword := slices.ContainsFunc(proofs, func(p proof.Proof) bool { return p.Method == proof.Password })
	if user == nil || !byPassword || len(proof.Connections(proofs)) > 0 || f.Linking != "" {
		return nil
	}
	for i := range view.sources {
		s := &view.sources[i]
		if !view.demand.Begins(proof.Upstream(s.ID)) {
			continue
		}
		for _, name := range []string{user.Username, user.Email} {
			d := s.find(name)
			if d != nil && d.Enforced && !slices.Contains(d.ExemptUserIDs, user.ID) {
				return s
			}
		}
	}
	return nil
}

// leaveInstead sends a person to the provider through which alone they sign in. What they have shown counts no more.
func (e *Engine) leaveInstead(ctx context.Context, f *Flow, source *Source, v Visitor) (View, error) {
	f.forgetPerson()
	f.Named = true
	return e.leaveFor(ctx, f, departure{Source: source, hint: f.LoginName}, v)
}
