package application

import (
	"net"
	"net/url"
	"strings"
	"unicode"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// Rules are the checks that the configuration can relax.
type Rules struct {
	AllowHTTP bool // http URLs of every host, not of loopback hosts alone
}

// Limits of members, in characters.
const (
	maxName     = 128
	maxDomain   = 253 // a DNS name's
	maxURL      = 2048
	maxDescr    = 2000
	maxRedirect = 20 // URLs
)

// normalize fills in what an absent member means.
func (p *Profile) normalize() {
	for _, member := range []struct {
		value  *string
		absent string
	}{
		{&p.Category, "1"}, {&p.SubAccountPolicy, Off}, {&p.ProtocolType, "oidc"},
		{&p.ConfigProp.SSOEnabled, On}, {&p.ConfigProp.MFAEnabled, Off},
	} {
		if *member.value == "" {
			*member.value = member.absent
		}
	}
	if p.Type == "" {
		p.Type = SelfBuilt
		if p.TemplateID != "" {
			p.Type = FromTemplate
		}
	}
	if p.Scopes == nil {
		p.Scopes = []string{}
	}
}

// check notes every fault.
func (p *Profile) check(faults *apperr.Faults, rules Rules) {
	faults.Name("name", p.Name, maxName)
	faults.Text("domain_sn", p.DomainSN, maxDomain)
	faults.Check(!strings.ContainsFunc(p.DomainSN, unicode.IsSpace), "domain_sn", "must not have spaces")
	faults.Prose("descr", p.Descr, maxDescr)
	rules.url(faults, "login_url", p.LoginURL)
	rules.url(faults, "logout_url", p.LogoutURL)
	if p.RedirectURL != "" {
		list := strings.Split(p.RedirectURL, ",")
		faults.Check(len(list) <= maxRedirect, "redirect_url", "must have at most %d URLs", maxRedirect)
		for _, u := range list {
			rules.url(faults, "redirect_url", strings.TrimSpace(u))
		}
	}
	faults.Props("sys_ext_props", &p.SysExtProps)
	faults.Props("free_ext_props", &p.FreeExtProps)
}

// url checks a URL that may be empty: absolute, http or https, without a fragment, of http only where the host is this
// machine (RFC 8252 §7.3).
func (r Rules) url(faults *apperr.Faults, location, text string) {
	if text == "" {
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil:
		faults.Add(location, "must be an absolute http or https URL")
	case u.Fragment != "" || strings.HasSuffix(text, "#"):
		faults.Add(location, "must not have a fragment")
	case len(text) > maxURL:
		faults.Add(location, "must have at most %d characters", maxURL)
	case u.Scheme == "http" && !r.AllowHTTP && !isLoopback(u.Hostname()):
		faults.Add(location, "must be https unless its host is localhost or a loopback address")
	}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
