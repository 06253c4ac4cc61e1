package application

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/applications/internal/protocol"
	"github.com/idplatform/idplatform/services/applications/internal/toggle"
	"github.com/idplatform/idplatform/services/questions"
)

// ForSignIn returns what the sign-in service needs to know of an application of the tenant. The error is
// apperr.NotFound.
func (s *Applications) ForSignIn(ctx context.Context, name questions.ClientName) (questions.Client, error) {
	a, err := s.named(ctx, name)
	if err != nil {
		return questions.Client{}, err
	}
	c := questions.Client{
		AppID: a.ID, ClientID: a.ClientID, Name: a.Name, Category: a.Category, Enabled: a.Enabled(),
		SSO: a.SSOEnabled == toggle.On, MFA: a.MFAEnabled == toggle.On, SubAccounts: a.SubAccountPolicy == toggle.On,
		LoginURL: a.LoginURL, LogoutURL: a.LogoutURL, RedirectURLs: a.redirects(),
		NoMailRecovery: !a.ConfigProp.recoversBy("mail"),
		LoginTemplate:  a.ConfigProp.loginTemplate(), Scopes: a.Scopes, JWKS: a.JWKS, JWKSURI: a.JWKSURI,
		SignIn: a.SignInProp.forSignIn(), Secrets: []questions.HashedSecret{},
	}
	c.MFAMethods, c.MFANoSetUp = a.ConfigProp.secondFactors()
	c.SocialProviders = a.ConfigProp.socialProviders()
	c.FirstMethod = a.ConfigProp.DefaultLoginMethod
	for _, source := range a.IDPs {
		c.Sources = append(c.Sources, source.ConfigID)
	}
	docs, err := s.Protocols(ctx, a.ID, toggle.On)
	if err != nil {
		return c, err
	}
	for _, doc := range docs {
		p, err := doc.Value()
		if err == nil {
			err = s.addProtocol(ctx, &c, p)
		}
		if err != nil {
			return c, err
		}
	}
	if a.Category != StandardWeb { // only they have a secret to prove who they are
		return c, nil
	}
	known, err := s.Client(ctx, a.ClientID)
	for _, secret := range known.Secrets {
		c.Secrets = append(c.Secrets, questions.HashedSecret{SHA256: secret.Hash, TimeExpires: secret.Expires})
	}
	return c, err
}

// addProtocol adds the settings of an enabled protocol.
func (s *Applications) addProtocol(ctx context.Context, c *questions.Client, p *protocol.Protocol) error {
	switch prop := &p.Prop; p.Type {
	case protocol.OIDC:
		c.OIDC = &questions.OIDCSettings{
			SignatureAlgorithm: prop.SignatureAlgorithm, LifetimeInSeconds: int64(prop.LifetimeInSeconds),
			ResponseAttributes: attributesOf(prop),
		}
	case protocol.OAuth2:
		if c.OIDC == nil { // which can do all that this can
			c.OIDC = &questions.OIDCSettings{OAuthOnly: true}
		}
	case protocol.CAS:
		c.CAS = &questions.CASSettings{}
	case protocol.SAML:
		c.SAML = &questions.SAMLSettings{
			ACSURL: prop.ACSURL, SPEntity: prop.SPEntity, LifetimeInSeconds: int64(prop.LifetimeInSeconds),
			SignatureAlgorithm: prop.SignatureAlgorithm, DigestAlgorithm: prop.DigestAlgorithm,
			NameIDFormat: prop.NameIdentifierFormat, AuthnContextClassRef: prop.AuthnContextClassRef,
			ResponseAttributes: attributesOf(prop),
		}
		if _, ok, err := s.signingKey(ctx, p); err != nil {
			return err
		} else if ok {
			c.SAML.SigningCert = prop.SigningCert
		}
	}
	return nil
}

func attributesOf(prop *protocol.Prop) (list []questions.Attribute) {
	for _, a := range prop.ResponseAttr {
		list = append(list, questions.Attribute(a))
	}
	return list
}

// signingKey returns the protocol's own key (PKCS #8, PEM) if it has one that can sign with RSA.
func (s *Applications) signingKey(ctx context.Context, p *protocol.Protocol) (key string, ok bool, err error) {
	if !p.Prop.SigningKey.IsSet() || p.Prop.SigningCert == "" {
		return "", false, nil
	}
	text, err := p.RevealKey(ctx, s.Store)
	if err != nil {
		return "", false, err
	}
	key, ok = protocol.RSAKey(text)
	return key, ok, nil
}

// forSigningKey is the use that a key on its way is sealed for.
const forSigningKey = "applications.signing-key"

// SigningKey returns the key by which an application's SAML assertions are signed, sealed to the asker. The error is
// apperr.NotFound if it has none of its own, and InvalidParameters for an asker without a key.
func (s *Applications) SigningKey(
	ctx context.Context, q questions.SigningKeyQuestion,
) (questions.SigningKey, error) {
	doc, err := s.Protocol(ctx, q.AppID, protocol.SAML)
	if err != nil {
		return questions.SigningKey{}, err
	}
	p, err := doc.Value()
	if err != nil {
		return questions.SigningKey{}, err
	}
	key, ok, err := s.signingKey(ctx, p)
	if err != nil {
		return questions.SigningKey{}, err
	}
	if !ok || p.Status != toggle.On {
		return questions.SigningKey{}, apperr.Missing("signing key")
	}
	sealed, err := q.To.Seal(key, forSigningKey)
	if err != nil {
		return questions.SigningKey{}, apperr.Invalid("to", "is not a public key that values can be sealed for")
	}
	return questions.SigningKey{Sealed: sealed}, nil
}

func (s *Applications) named(ctx context.Context, name questions.ClientName) (*Application, error) {
	switch {
	case name.ClientID != "":
		doc, err := applications.FindGlobal(ctx, s.Store, byClientID, name.ClientID)
		if err != nil {
			return nil, err
		}
		a, err := doc.Value()
		if err == nil && a.TenantID != request.Tenant(ctx) {
			err = apperr.Missing("application")
		}
		return a, err
	case name.SPEntity != "":
		return s.ofEntity(ctx, name.SPEntity)
	case name.Service != "":
		return s.ofService(ctx, name.Service)
	case name.Origin != "":
		return s.oldest(ctx, byOrigin, name.Origin, protocol.OIDC, protocol.OAuth2)
	}
	return Find(ctx, s.Store, name.AppID)
}

// maxCandidates bounds the applications that share an entity id, the place of a service or an origin.
const maxCandidates = 20

// ofEntity finds the application whose enabled SAML service provider has an entity id. If there are several, it is the
// oldest one: who adds another cannot take the sign-ins.
func (s *Applications) ofEntity(ctx context.Context, entity string) (*Application, error) {
	page, err := protocol.Protocols.Page(ctx, s.Store, docstore.Query{
		Filter: protocol.OfEntity(entity), Limit: maxCandidates,
	})
	if err != nil {
		return nil, err
	}
	var found *Application
	for _, doc := range page.Docs {
		p, err := doc.Value()
		if err != nil {
			return nil, err
		}
		if p.Status != toggle.On {
			continue
		}
		a, err := Find(ctx, s.Store, p.AppID)
		if err != nil {
			return nil, err
		}
		if a.Enabled() && (found == nil || older(a, found) < 0) {
			found = a
		}
	}
	if found == nil {
		return nil, apperr.Missing("application")
	}
	return found, nil
}

// older orders applications by their age.
func older(a, b *Application) int {
	return cmp.Or(cmp.Compare(a.TimeCreated.Millis(), b.TimeCreated.Millis()), cmp.Compare(a.ID, b.ID))
}

// ofService finds the application with CAS enabled below whose URLs a service lies: the nearest one, and the oldest of
// those.
func (s *Applications) ofService(ctx context.Context, service string) (*Application, error) {
	normal, ok := place(service)
	if !ok {
		return nil, apperr.Missing("application")
	}
	for _, base := range above(normal) {
		a, err := s.oldest(ctx, byPlace, base, protocol.CAS)
		if !apperr.IsNotFound(err) {
			return a, err
		}
	}
	return nil, apperr.Missing("application")
}

// oldest finds the oldest application with one of the protocols enabled among those with a value of an index.
func (s *Applications) oldest(ctx context.Context, index, value string, kinds ...string) (*Application, error) {
	page, err := applications.Page(ctx, s.Store, docstore.Query{
		Filter: docstore.Eq(index, docstore.Text(value)), Limit: maxCandidates,
	})
	if err != nil {
		return nil, err
	}
	var candidates []*Application
	for _, doc := range page.Docs {
		a, err := doc.Value()
		if err != nil {
			return nil, err
		}
		candidates = append(candidates, a)
	}
	slices.SortFunc(candidates, older)
	for _, a := range candidates {
		for _, kind := range kinds {
			if uses, err := s.uses(ctx, a, kind); uses || err != nil {
				return a, err
			}
		}
	}
	return nil, apperr.Missing("application")
}

// uses reports whether people can sign in to an application by a protocol.
func (s *Applications) uses(ctx context.Context, a *Application, kind string) (bool, error) {
	if !a.Enabled() {
		return false, nil
	}
	doc, err := s.Protocol(ctx, a.ID, kind)
	if apperr.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p, err := doc.Value()
	return err == nil && p.Status == toggle.On, err
}

// loginTemplate is the code of the authentication template that the configuration names; "" for none.
func (c *ConfigProp) loginTemplate() string {
	var named struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(c.AllowedLoginMethod, &named) // an object that has another name names no template
	return named.Name
}

// socialProviders says of each social-login provider that the configuration names whether people may sign in through
// it; nil if it names none.
func (c *ConfigProp) socialProviders() map[string]bool {
	var named map[string]float64
	_ = json.Unmarshal(c.AllowedSocialLoginProvider, &named) // it was checked when it was stored
	var allowed map[string]bool
	for code, is := range named {
		if allowed == nil {
			allowed = map[string]bool{}
		}
		allowed[code] = is == 1
	}
	return allowed
}

// recoversBy reports whether people may set a new password by a channel: by all of them, if the configuration names
// none.
func (c *ConfigProp) recoversBy(channel string) bool {
	var policy struct {
		ForgetPassword *[]string `json:"forget_password"`
	}
	_ = json.Unmarshal(c.AccessPolicy, &policy) // it was checked when it was stored
	return policy.ForgetPassword == nil || slices.Contains(*policy.ForgetPassword, channel)
}

// secondFactors returns the types of methods that count as second factors, all if there are none, and whether people
// must have set one up before they open the application.
func (c *ConfigProp) secondFactors() (methods []string, noSetUp bool) {
	var config struct {
		Methods []string `json:"methods"`
		Enrol   string   `json:"enrol"`
	}
	_ = json.Unmarshal(c.MFAConfig, &config) // it was checked when it was stored
	return config.Methods, config.Enrol == "off"
}
