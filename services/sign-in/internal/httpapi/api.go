// Package httpapi defines the sign-in service's operations: the pages that people see, the endpoints of the protocols,
// and the API of administrators. It has no rules and no storage.
package httpapi

import (
	"log/slog"
	"strings"

	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/cas"
	"github.com/idplatform/idplatform/services/sign-in/internal/consent"
	"github.com/idplatform/idplatform/services/sign-in/internal/factor"
	"github.com/idplatform/idplatform/services/sign-in/internal/flow"
	"github.com/idplatform/idplatform/services/sign-in/internal/invitation"
	"github.com/idplatform/idplatform/services/sign-in/internal/message"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc"
	"github.com/idplatform/idplatform/services/sign-in/internal/saml"
	"github.com/idplatform/idplatform/services/sign-in/internal/session"
	"github.com/idplatform/idplatform/services/sign-in/internal/settings"
	"github.com/idplatform/idplatform/services/sign-in/internal/signout"
)

// Deps are what the operations call. All are required.
type Deps struct {
	Engine      *flow.Engine
	Own         flow.Own
	Sessions    *session.Sessions
	Consents    *consent.Consents
	Factors     *factor.Factors
	Settings    *settings.Service
	OIDC        *oidc.Provider
	SAML        *saml.Provider
	CAS         *cas.Server
	SignOuts    *signout.SignOuts
	Messages    *message.Sender
	Invitations *invitation.Invitations
	Log         *slog.Logger
	PublicURL   string
}

type api struct {
	Deps
	cookies cookies
}

// prefix is that of all that people and applications of a tenant call.
const prefix = "/sign-in/"

// below is the path of an operation of a tenant.
const below = prefix + "{tenant}"

// Register adds all operations to the server.
func Register(s *rest.Server, d Deps) {
	a := &api{d, cookies{secure: strings.HasPrefix(d.PublicURL, "https://")}}
	a.registerFlow(s.Tagged("Sign in pages", "What people see who sign in, by browser."))
	a.registerOIDC(s.Tagged("Openid connect", "The endpoints of OpenID Connect and OAuth 2.0 of each tenant."))
	a.registerSAML(s.Tagged("Saml", "The endpoints of SAML 2.0 of each tenant."))
	a.registerCAS(s.Tagged("Cas", "The endpoints of CAS of each tenant."))
	a.registerSessions(s.Tagged("Sessions", "Who is signed in, in which browsers and applications."))
	a.registerConsents(s.Tagged("Consents", "What people have agreed that applications may know."))
	a.registerFactors(s.Tagged("Factors", "What people have set up beside a password."))
	a.registerGrants(s.Tagged("Grants", "Access of applications that goes on after the session."))
	a.registerSAMLKeys(s.Tagged("Saml keys", "The keys that a tenant signs with for applications of SAML."))
	a.registerSettings(s.Tagged("Sign in settings", "How the pages of a tenant look, and what they say."))
	a.registerMessages(s.Tagged("Sign in messages", "The mails that people get."))
	a.registerInvitations(s.Tagged("Invitations", "Links with which people set up a first password or passkey."))
}

// issuer is the name of a tenant's provider, and the address of all that it has.
func (a *api) issuer(tenant string) string { return a.PublicURL + prefix + tenant }

// htmlOnly are the content types of pages.
var htmlOnly = []string{"text/html"}

// examplePage stands for the HTML of all pages.
const examplePage = "<!doctype html>…"
