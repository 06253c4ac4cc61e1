package protocol

import (
	"cmp"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/questions"
)

// Prop are the settings of a protocol. All are optional.
type Prop struct {
	ACSURL               string      `json:"acs_url,omitempty" doc:"SAML: assertion consumer service" example:"https://expenses.acme.test/saml/acs"`
	SPEntity             string      `json:"sp_entity,omitempty" doc:"SAML: entity id of the service provider" example:"https://expenses.acme.test"`
	ResponseAttr         []Attribute `json:"response_attr,omitempty" doc:"Attributes of the SAML response; claims of ID tokens and userinfo, beside those of the scopes"`
	DigestAlgorithm      string      `json:"digest_algorithm,omitempty" doc:"Identifier of XML Signature, not with SHA-1; is kept, without effect: assertions have the digest of signature_algorithm" example:"http://www.w3.org/2001/04/xmlenc#sha256"`
	LifetimeInSeconds    float64     `json:"lifetime_in_seconds,omitempty" minimum:"1" maximum:"86400" doc:"How long an assertion holds" example:"3600"`
	SignatureAlgorithm   string      `json:"signature_algorithm,omitempty" doc:"Identifier of XML Signature; for oidc and oauth2, of JWS" example:"RS256"`
	NameIdentifierFormat string      `json:"name_identifier_format,omitempty" doc:"SAML: a URI"`
	AuthnContextClassRef string      `json:"authn_context_class_ref,omitempty" doc:"SAML: a URI"`
	SigningKey           secret.Text `json:"saml_response_signing_key,omitzero" doc:"PEM; reads as ******, which keeps it when written back" example:"******"`
	SigningCert          string      `json:"saml_response_signing_cert,omitempty" doc:"PEM"`
	Fingerprint          string      `json:"saml_response_signing_cert_fingerprint,omitempty" doc:"SHA-256; computed, and checked if given"`
}

// Attribute is what an application is told about a user: an attribute of SAML, or a claim of OpenID Connect.
type Attribute struct {
	Value      string `json:"value,omitempty" doc:"The member of the user, such as sys_ext_props.team; another text is told as it is" example:"email"`
	Attribute  string `json:"attribute,omitempty" doc:"The name of the attribute or claim" example:"mail"`
	NameFormat string `json:"nameFormat,omitempty" doc:"SAML: NameFormat of the attribute" example:"urn:oasis:names:tc:SAML:2.0:attrname-format:basic"`
}

// Limits of members: characters, members of a list, seconds.
const (
	maxText       = 1024 // an entity id's, SAML 2.0 core §8.3.6
	maxAttributes = 100
	maxLifetime   = 86400
	lifetime      = 3600
)

// Rules are the checks that the configuration can relax, and the check that all URLs of an application must pass.
type Rules struct {
	AllowSHA1 bool
	URL       func(faults *apperr.Faults, location, url string)
}

// Default returns the settings of a protocol for which none are given. The signature algorithm of OIDC is the default
// for clients that register none (OpenID Connect Dynamic Client Registration §2).
func Default(kind string) Prop {
	switch kind {
	case OIDC, OAuth2:
		return Prop{LifetimeInSeconds: lifetime, SignatureAlgorithm: "RS256"}
	case SAML:
		return Prop{
			LifetimeInSeconds: lifetime, DigestAlgorithm: xmlenc + "sha256",
			SignatureAlgorithm:   xmldsigMore + "rsa-sha256",
			NameIdentifierFormat: "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified",
		}
	}
	return Prop{}
}

// Check reports every fault of the settings of a protocol, and adds the certificate's fingerprint. was are the previous
// settings and oldKey their signing key, which a mask in p stands for.
func (p *Prop) Check(faults *apperr.Faults, kind string, rules Rules, was Prop, oldKey secret.String) {
	rules.URL(faults, "acs_url", p.ACSURL)
	faults.Text("sp_entity", p.SPEntity, maxText)
	faults.Check(!strings.ContainsAny(p.SPEntity, " \t"), "sp_entity", "must not have spaces")
	faults.Check(len(p.ResponseAttr) <= maxAttributes, "response_attr", "must have at most %d items", maxAttributes)
	for _, a := range p.ResponseAttr {
		faults.Check(a.Attribute != "" || a.Value != "", "response_attr", "must have attribute or value in each item")
		reserved := kind == OIDC && questions.IsReservedClaim(cmp.Or(a.Attribute, a.Value))
		faults.Check(!reserved || slices.Contains(was.ResponseAttr, a), "response_attr",
			"must not name a claim that the protocol has, or one of email and phone_number")
		for _, text := range []string{a.Value, a.Attribute, a.NameFormat} {
			faults.Text("response_attr", text, maxText)
		}
	}
	whole := p.LifetimeInSeconds == float64(int64(p.LifetimeInSeconds))
	faults.Check(whole && p.LifetimeInSeconds >= 0 && p.LifetimeInSeconds <= maxLifetime, "lifetime_in_seconds",
		"must be a whole number in 1…%d", maxLifetime)
	checkURI(faults, "name_identifier_format", p.NameIdentifierFormat)
	checkURI(faults, "authn_context_class_ref", p.AuthnContextClassRef)
	p.checkAlgorithms(faults, kind, rules)
	p.checkKeyPair(faults, kind, was, oldKey)
}

// checkURI checks an absolute URI (RFC 3986 §4.3). It may be empty.
func checkURI(faults *apperr.Faults, location, text string) {
	u, err := url.Parse(text)
	good := err == nil && u.Scheme != "" && len(text) <= maxText && !strings.ContainsAny(text, " \t")
	faults.Check(text == "" || good, location, "must be a URI")
}

// Lacks reports what is missing to enable a protocol. redirectURL is the application's.
func (p *Prop) Lacks(faults *apperr.Faults, kind, redirectURL string) {
	switch kind {
	case SAML:
		faults.Check(p.ACSURL != "", "protocol_prop.acs_url", "is needed for saml")
		faults.Check(p.SPEntity != "", "protocol_prop.sp_entity", "is needed for saml")
	case CAS, OIDC:
		faults.Check(redirectURL != "", "redirect_url", "is needed for %s", kind)
	}
}

// IsZero reports whether nothing is set.
func (p *Prop) IsZero() bool { return reflect.ValueOf(*p).IsZero() }
