package application

import (
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/applications/internal/protocol"
	"github.com/idplatform/idplatform/services/applications/internal/toggle"
	"github.com/idplatform/idplatform/services/questions"
)

// SignInProp says how people sign in to an application, and out of it. All members are optional; an absent flag is off.
type SignInProp struct {
	Consent               string   `json:"consent,omitempty" enum:"1,0" doc:"1: people agree to the scopes before it gets them"`
	Audiences             []string `json:"audiences,omitempty" maxItems:"20" doc:"OIDC: resources (RFC 8707) that its access tokens can be for" example:"[\"https://api.acme.test\"]"`
	PostLogoutURLs        []string `json:"post_logout_urls,omitempty" maxItems:"20" doc:"OIDC: where people may return to after a logout, besides logout_url" example:"[\"https://expenses.acme.test/bye\"]"`
	BackchannelLogoutURL  string   `json:"backchannel_logout_url,omitempty" doc:"OIDC: hears of the end of sessions (Back-Channel Logout)" example:"https://expenses.acme.test/backchannel"`
	FrontchannelLogoutURL string   `json:"frontchannel_logout_url,omitempty" doc:"OIDC: is loaded in a frame at a logout (Front-Channel Logout)"`
	SLOURL                string   `json:"slo_url,omitempty" doc:"SAML: single logout service, for messages through the browser"`
	SLOBinding            string   `json:"slo_binding,omitempty" enum:"redirect,post" doc:"SAML: how messages go to slo_url; absent: redirect"`
	SLOSOAPURL            string   `json:"slo_soap_url,omitempty" doc:"SAML: single logout service by SOAP; if there is one, logouts are told by it alone"`
	ACSURLs               []string `json:"acs_urls,omitempty" maxItems:"20" doc:"SAML: further assertion consumer services, besides acs_url"`
	SPCerts               []string `json:"sp_certs,omitempty" maxItems:"10" doc:"SAML: certificates (PEM) by which its requests are signed"`
	SignedRequests        string   `json:"signed_requests,omitempty" enum:"1,0" doc:"SAML, 1: requests without a signature are refused"`
	IdPInitiated          string   `json:"idp_initiated,omitempty" enum:"1,0" doc:"SAML, 1: people may begin at the platform"`
}

// IsZero is for encoding/json.
func (s SignInProp) IsZero() bool {
	return s.Consent+s.BackchannelLogoutURL+s.FrontchannelLogoutURL+s.SLOURL+s.SLOBinding+s.SLOSOAPURL+s.SignedRequests+
		s.IdPInitiated == "" &&
		len(s.Audiences)+len(s.PostLogoutURLs)+len(s.ACSURLs)+len(s.SPCerts) == 0
}

// The bindings of slo_url.
const (
	sloRedirect = "redirect"
	sloPost     = "post"
)

// Limits of the members of SignInProp.
const (
	maxAudiences = 20
	maxAudience  = 1024 // bytes
	maxURLs      = 20
	maxCerts     = 10
)

// check reports every fault.
func (s *SignInProp) check(faults *apperr.Faults, rules Rules) {
	for _, m := range []struct{ name, flag string }{
		{"consent", s.Consent}, {"signed_requests", s.SignedRequests}, {"idp_initiated", s.IdPInitiated},
	} {
		faults.Check(m.flag == "" || m.flag == toggle.On || m.flag == toggle.Off, m.name, "must be 1 or 0")
	}
	rules.url(faults, "backchannel_logout_url", s.BackchannelLogoutURL)
	rules.url(faults, "frontchannel_logout_url", s.FrontchannelLogoutURL)
	rules.url(faults, "slo_url", s.SLOURL)
	rules.url(faults, "slo_soap_url", s.SLOSOAPURL)
	faults.Check(slices.Contains([]string{"", sloRedirect, sloPost}, s.SLOBinding), "slo_binding",
		"must be redirect or post")
	for _, m := range []struct {
		name string
		list []string
		most int
		one  func(location, text string)
	}{
		{"audiences", s.Audiences, maxAudiences, func(location, text string) { checkAudience(faults, location, text) }},
		{"post_logout_urls", s.PostLogoutURLs, maxURLs, rules.each(faults)},
		{"acs_urls", s.ACSURLs, maxURLs, rules.each(faults)},
		{"sp_certs", s.SPCerts, maxCerts, func(location, text string) {
			if err := protocol.CheckCertificate(text); err != nil {
				faults.Add(location, "%s", err)
			}
		}},
	} {
		if len(m.list) > m.most {
			faults.Add(m.name, "must have at most %d items", m.most)
			continue
		}
		for i, text := range m.list {
			location := apperr.Item(m.name, i)
			if text == "" || slices.Contains(m.list[:i], text) {
				faults.Add(location, "must not be empty, and not repeat another one")
				continue
			}
			m.one(location, text)
		}
	}
}

// each checks one URL of a list.
func (r Rules) each(faults *apperr.Faults) func(location, text string) {
	return func(location, text string) { r.url(faults, location, text) }
}

// checkAudience checks the name of a resource: an absolute URI without a fragment (RFC 8707 §2).
func checkAudience(faults *apperr.Faults, location, text string) {
	u, err := url.Parse(text)
	good := err == nil && u.Scheme != "" && len(text) <= maxAudience && !strings.Contains(text, "#") &&
		!strings.ContainsFunc(text, unicode.IsSpace)
	faults.Check(good, location, "must be an absolute URI of at most %d bytes, without a fragment", maxAudience)
}

// forSignIn is the form of the sign-in service's question.
func (s *SignInProp) forSignIn() questions.SignInSettings {
	return questions.SignInSettings{
		Consent: s.Consent == toggle.On, Audiences: s.Audiences, PostLogoutURLs: s.PostLogoutURLs,
		BackchannelLogoutURL: s.BackchannelLogoutURL, FrontchannelLogoutURL: s.FrontchannelLogoutURL,
		SLOURL: s.SLOURL, SLOByPost: s.SLOBinding == sloPost, SLOSOAPURL: s.SLOSOAPURL,
		ACSURLs: s.ACSURLs, SPCerts: s.SPCerts, SignedRequests: s.SignedRequests == toggle.On,
		IdPInitiated: s.IdPInitiated == toggle.On,
	}
}
