package saml

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"time"

	"github.com/beevik/etree"
	crewjam "github.com/crewjam/saml"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/attribute"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// Grant answers a request with an assertion about the person, by HTTP-POST. An id of a request is answered once: the
// error is *protocol.PageError the second time. What cannot be asserted is answered by a status.
func (p *Provider) Grant(
	ctx context.Context, issuer string, r protocol.Request, person protocol.Person,
) (protocol.Answer, error) {
	m, c, err := p.read(ctx, r)
	if err != nil {
		return protocol.Answer{}, err
	}
	user, err := attribute.RecordOf(person)
	if err != nil {
		return protocol.Answer{}, err
	}
	tenant, err := p.tenant(ctx)
	if err != nil {
		return protocol.Answer{}, err
	}
	name, ok := nameOf(m, issuer, c, person, user, tenant.salt)
	if !ok {
		return p.status(ctx, issuer, c, m, crewjam.StatusResponder, crewjam.StatusInvalidNameIDPolicy)
	}
	if !name.isFor(m.Subject) {
		return p.status(ctx, issuer, c, m, crewjam.StatusResponder, crewjam.StatusUnknownPrincipal)
	}
	class, ok := classOf(m, c, person)
	if !ok {
		return p.status(ctx, issuer, c, m, crewjam.StatusResponder, crewjam.StatusNoAuthnContext)
	}
	s, err := p.signerFor(ctx, c)
	if err != nil {
		return protocol.Answer{}, err
	}
	var groups []string
	if attribute.TellGroups(c.SAML.ResponseAttributes) {
		if groups, err = p.Groups(ctx, person.UserID); err != nil {
			return protocol.Answer{}, err
		}
	}
	if err := p.enter(ctx, c, m, person, name); err != nil {
		return protocol.Answer{}, err
	}
	now := p.Store.Now()
	assertion := assertionOf(now, issuer, c, m, person, name, class).Element()
	if attributes := statement(c, person, user, groups); attributes != nil {
		assertion.AddChild(attributes)
	}
	if err := s.sign(assertion, methodOf(c)); err != nil {
		return protocol.Answer{}, fmt.Errorf("sign an assertion: %w", err)
	}
	return respond(now, issuer, c, m, s, crewjam.Status{
		StatusCode: crewjam.StatusCode{Value: crewjam.StatusSuccess},
	}, assertion)
}

// refusals are the second-level status codes (SAML core §3.2.2.2). The rest have none.
var refusals = map[protocol.Refusal]string{
	protocol.AccessDenied: crewjam.StatusRequestDenied, protocol.LoginRequired: crewjam.StatusNoPassive,
	protocol.ConsentRequired: crewjam.StatusNoPassive, protocol.UnmetACR: crewjam.StatusNoAuthnContext,
}

// Refuse answers a request with a status.
func (p *Provider) Refuse(
	ctx context.Context, issuer string, r protocol.Request, why protocol.Refusal,
) (protocol.Answer, error) {
	m, c, err := p.read(ctx, r)
	if err != nil {
		return protocol.Answer{}, err
	}
	return p.status(ctx, issuer, c, m, crewjam.StatusResponder, refusals[why])
}

// status answers without an assertion.
func (p *Provider) status(
	ctx context.Context, issuer string, c questions.Client, m message, first, second string,
) (protocol.Answer, error) {
	s, err := p.signerFor(ctx, c)
	if err != nil {
		return protocol.Answer{}, err
	}
	code := crewjam.StatusCode{Value: first}
	if second != "" {
		code.StatusCode = &crewjam.StatusCode{Value: second}
	}
	return respond(p.Store.Now(), issuer, c, m, s, crewjam.Status{StatusCode: code}, nil)
}

// respond makes the response, signs it, and puts it into a form.
func respond(
	now clock.Time, issuer string, c questions.Client, m message, s *signer, status crewjam.Status,
	assertion *etree.Element,
) (protocol.Answer, error) {
	response := (&crewjam.Response{
		ID: newID(), InResponseTo: m.ID, Version: "2.0", IssueInstant: now.Std(), Destination: m.ACS,
		Issuer: issuerOf(issuer), Status: status,
	}).Element()
	if assertion != nil {
		response.AddChild(assertion)
	}
	if err := s.sign(response, methodOf(c)); err != nil {
		return protocol.Answer{}, fmt.Errorf("sign a response: %w", err)
	}
	text, err := write(response)
	if err != nil {
		return protocol.Answer{}, err
	}
	form := url.Values{paramResponse: {base64.StdEncoding.EncodeToString(text)}}
	if m.RelayState != "" {
		form.Set(paramRelay, m.RelayState)
	}
	return protocol.Answer{URL: m.ACS, Post: form}, nil
}

func assertionOf(
	now clock.Time, issuer string, c questions.Client, m message, p protocol.Person, name NameID, class string,
) *crewjam.Assertion {
	expires, ends := now.Add(good).Std(), sessionEnd(now, c, p).Std()
	return &crewjam.Assertion{
		ID: newID(), IssueInstant: now.Std(), Version: "2.0", Issuer: *issuerOf(issuer),
		Subject: &crewjam.Subject{
			NameID: name.element(),
			SubjectConfirmations: []crewjam.SubjectConfirmation{{
				Method: confirmationByBearer,
				SubjectConfirmationData: &crewjam.SubjectConfirmationData{
					InResponseTo: m.ID, Recipient: m.ACS, NotOnOrAfter: expires,
				},
			}},
		},
		Conditions: &crewjam.Conditions{
			NotBefore:    now.Add(-time.Minute).Std(), // for applications whose clock is slow
			NotOnOrAfter: expires,
			AudienceRestrictions: []crewjam.AudienceRestriction{
				{Audience: crewjam.Audience{Value: c.SAML.SPEntity}},
			},
		},
		AuthnStatements: []crewjam.AuthnStatement{{
			AuthnInstant: p.AuthTime.Std(), SessionIndex: p.SessionID, SessionNotOnOrAfter: &ends,
			AuthnContext: crewjam.AuthnContext{AuthnContextClassRef: &crewjam.AuthnContextClassRef{Value: class}},
		}},
	}
}

// sessionEnd is until when the application's session may last: the configured time, but not longer than the session
// here.
func sessionEnd(now clock.Time, c questions.Client, p protocol.Person) clock.Time {
	lifetime := c.SAML.LifetimeInSeconds
	if lifetime <= 0 {
		lifetime = 3600
	}
	end := now.Add(time.Duration(lifetime) * time.Second)
	if !p.SessionEnds.IsZero() && p.SessionEnds.Before(end) {
		end = p.SessionEnds
	}
	return end
}

func issuerOf(issuer string) *crewjam.Issuer { return &crewjam.Issuer{Value: entityID(issuer)} }

// newID makes an id of a message or assertion, of 160 bits (SAML core §1.3.4).
func newID() string { return "_" + secret.Token(20) }

// write writes an element in canonical form, so that a parser reads what was signed, line ends included.
func write(el *etree.Element) ([]byte, error) {
	doc := etree.NewDocument()
	doc.WriteSettings = etree.WriteSettings{CanonicalAttrVal: true, CanonicalEndTags: true, CanonicalText: true}
	doc.SetRoot(el)
	text, err := doc.WriteToBytes()
	if err != nil {
		return nil, fmt.Errorf("write a message: %w", err)
	}
	return text, nil
}
