package application

import (
	"context"
	"net"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/go-jose/go-jose/v4"
	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/weburl"
	"github.com/idplatform/idplatform/services/applications/internal/protocol"
	"github.com/idplatform/idplatform/services/applications/internal/toggle"
)

// Rules are the checks that the configuration can relax.
type Rules struct {
	AllowHTTP bool // http URLs of every host, not only of loopback hosts
	AllowSHA1 bool // algorithms with SHA-1 in SAML
}

// Limits of members, in characters unless stated otherwise.
const (
	maxName     = 128
	maxDomain   = 253 // a DNS name's
	maxURL      = 2048
	maxDescr    = 2000
	maxRedirect = 20 // URLs
	maxKeys     = 20
)

// normalize sets absent members to their defaults.
func (p *Profile) normalize() {
	for _, member := range []struct {
		value  *string
		absent string
	}{
		{&p.Category, StandardWeb}, {&p.SubAccountPolicy, toggle.Off}, {&p.ProtocolType, protocol.OIDC},
		{&p.ConfigProp.SSOEnabled, toggle.On}, {&p.ConfigProp.MFAEnabled, toggle.Off},
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

// check reports every fault except those of protocol_prop.
func (p *Profile) check(faults *apperr.Faults, tenant string, rules Rules) {
	faults.Name("name", p.Name, maxName)
	faults.Text("domain_sn", p.DomainSN, maxDomain)
	faults.Check(!strings.ContainsFunc(p.DomainSN, unicode.IsSpace), "domain_sn", "must not have spaces")
	faults.Check(p.Category >= StandardWeb && p.Category <= BackendService && len(p.Category) == 1, "category",
		"must be 1, 2, 3 or 4")
	faults.Check(slices.Contains(protocol.Types, p.ProtocolType), "protocol_type", "must be one of %s",
		strings.Join(protocol.Types, ", "))
	faults.Prose("descr", p.Descr, maxDescr)
	if !strings.HasPrefix(p.Logo, "/") {
		rules.url(faults, "logo", p.Logo)
	}
	faults.Text("logo", p.Logo, maxURL)
	rules.url(faults, "login_url", p.LoginURL)
	rules.url(faults, "logout_url", p.LogoutURL)
	p.checkRedirects(faults, "redirect_url", rules)
	faults.Switch("sub_account_policy", &p.SubAccountPolicy, toggle.Off)
	p.ConfigProp.check(faults.Within("config_prop"), tenant)
	p.SignInProp.check(faults.Within("sign_in_prop"), rules)
	_, unknown := auth.ParseScopes(strings.Join(p.Scopes, " "))
	faults.Check(len(unknown) == 0 && !slices.Contains(p.Scopes, ""), "scopes", "must be scopes of the platform")
	p.Scopes = unique(p.Scopes)
	p.checkKeys(faults, rules)
	faults.Props("sys_ext_props", &p.SysExtProps)
	faults.Props("free_ext_props", &p.FreeExtProps)
}

func unique(list []string) []string {
	var once []string
	for _, text := range list {
		if !slices.Contains(once, text) {
			once = append(once, text)
		}
	}
	return append([]string{}, once...)
}

func (p *Profile) checkRedirects(faults *apperr.Faults, location string, rules Rules) {
	if p.RedirectURL == "" {
		return
	}
	list := strings.Split(p.RedirectURL, ",")
	faults.Check(len(list) <= maxRedirect, location, "must have at most %d URLs", maxRedirect)
	faults.Check(strings.Trim(p.RedirectURL, " ") == p.RedirectURL, location, "must not have blanks around it")
	for _, u := range list {
		if u = strings.Trim(u, " "); u == "" {
			faults.Add(location, "must not have an empty URL in its list")
			continue
		}
		if p.Category != ClientProgram || !privateUse.MatchString(u) {
			rules.url(faults, location, u)
		}
	}
}

// privateUse matches the redirect URL of an app on a device: a domain in reverse as the scheme, and a path (RFC 8252
// §7.1).
var privateUse = regexp.MustCompile(`^[a-z][a-z0-9-]*(\.[a-z0-9-]+)+:/[A-Za-z0-9._~/?=&%-]*$`)

// checkKeys checks the keys for private_key_jwt: in jwks or at jwks_uri, not both (RFC 7591 §2).
func (p *Profile) checkKeys(faults *apperr.Faults, rules Rules) {
	rules.url(faults, "jwks_uri", p.JWKSURI)
	if string(p.JWKS) == "null" {
		p.JWKS = nil
	}
	if len(p.JWKS) == 0 {
		return
	}
	faults.Check(p.JWKSURI == "", "jwks_uri", "must not be given together with jwks")
	faults.Props("jwks", &p.JWKS)
	keys, all, err := auth.ReadKeySet(p.JWKS)
	if err != nil || all == 0 || all > maxKeys ||
		slices.ContainsFunc(keys, func(key jose.JSONWebKey) bool { return !key.IsPublic() }) {
		faults.Add("jwks", "must be a JWK set of 1…%d keys, all of them public", maxKeys)
		return
	}
	faults.Check(auth.UsableKeys(p.JWKS), "jwks", "must have a key for signatures with EdDSA, ES256 (P-256) or RS256 "+
		"(2048…8192 bits)")
}

// url checks a URL that may be empty: absolute, http or https, without a fragment. http is for loopback hosts only (RFC
// 8252 §7.3), unless the configuration allows more.
func (r Rules) url(faults *apperr.Faults, location, text string) {
	if text == "" {
		return
	}
	u, err := weburl.HTTP(text)
	switch {
	case err != nil:
		faults.Add(location, "%s", err)
	case strings.Contains(text, "#"):
		faults.Add(location, "must not have a fragment")
	case len(text) > maxURL:
		faults.Add(location, "must have at most %d characters", maxURL)
	case u.Scheme == "http" && !r.AllowHTTP && !isLoopback(u.Hostname()):
		faults.Add(location, "must be https unless its host is localhost or a loopback address")
	}
}

func (r Rules) protocol() protocol.Rules { return protocol.Rules{AllowSHA1: r.AllowSHA1, URL: r.url} }

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// mayHold refuses a caller who would give away, or take over, scopes that it does not have: whoever can set an
// application's scopes, or get a secret of it, can get tokens with them. Work without a request may hold all scopes.
func mayHold(ctx context.Context, scopes []string) error {
	caller := auth.PrincipalFrom(ctx)
	if caller == nil {
		return nil
	}
	wanted, _ := auth.ParseScopes(strings.Join(scopes, " "))
	if !wanted.Within(caller.Scopes) {
		return apperr.New(apperr.Forbidden, "the application has, or would have, a scope that the caller lacks")
	}
	return nil
}
