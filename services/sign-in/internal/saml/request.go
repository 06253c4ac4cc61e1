package saml

import (
	"context"
	"encoding/xml"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	crewjam "github.com/crewjam/saml"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// header is what all messages of applications have (SAML core §3.2). crewjam's types keep one class of a sign-in, and
// one index of a session, of several, so messages are read into our own.
type header struct {
	ID           string `xml:"ID,attr"`
	Version      string `xml:"Version,attr"`
	IssueInstant string `xml:"IssueInstant,attr"`
	Destination  string `xml:"Destination,attr"`
	Issuer       string `xml:"urn:oasis:names:tc:SAML:2.0:assertion Issuer"`
}

// authnRequest is an AuthnRequest (SAML core §3.4.1).
type authnRequest struct {
	XMLName xml.Name `xml:"urn:oasis:names:tc:SAML:2.0:protocol AuthnRequest"`
	header
	ForceAuthn      string `xml:"ForceAuthn,attr"`
	IsPassive       string `xml:"IsPassive,attr"`
	ACSURL          string `xml:"AssertionConsumerServiceURL,attr"`
	ACSIndex        string `xml:"AssertionConsumerServiceIndex,attr"`
	ProtocolBinding string `xml:"ProtocolBinding,attr"`
	Subject         *struct {
		NameID *NameID `xml:"urn:oasis:names:tc:SAML:2.0:assertion NameID"`
	} `xml:"urn:oasis:names:tc:SAML:2.0:assertion Subject"`
	NameIDPolicy *struct {
		Format          string `xml:"Format,attr"`
		SPNameQualifier string `xml:"SPNameQualifier,attr"`
	} `xml:"urn:oasis:names:tc:SAML:2.0:protocol NameIDPolicy"`
	Context *requestedContext `xml:"urn:oasis:names:tc:SAML:2.0:protocol RequestedAuthnContext"`
}

// SSO reads an AuthnRequest. Its errors are *protocol.PageError, protocol.ErrUnknown, *protocol.AnswerError, and
// apperr.Unavailable.
func (p *Provider) SSO(ctx context.Context, issuer string, in Inbound) (protocol.Request, error) {
	m, err := decode(in)
	if err != nil {
		return protocol.Request{}, err
	}
	var a authnRequest
	c, _, err := p.receive(ctx, m, "AuthnRequest", &a, &a.header)
	if err == nil {
		err = a.check(p.Store.Now(), ssoURL(issuer), maxAge)
	}
	if err != nil {
		return protocol.Request{}, err
	}
	acs, err := a.acs(c)
	if err != nil {
		return protocol.Request{}, err
	}
	kept := message{ID: a.ID, ACS: acs, RelayState: m.relayState}
	if status := a.demands(c, &kept); status != "" {
		answer, err := p.status(ctx, issuer, c, kept, crewjam.StatusRequester, status)
		if err != nil {
			return protocol.Request{}, err
		}
		return protocol.Request{}, &protocol.AnswerError{Answer: answer, Code: status}
	}
	r, err := requestOf(c, kept)
	r.Fresh, r.Passive = isTrue(a.ForceAuthn), isTrue(a.IsPassive)
	r.ACR = acrFrom(kept.Level)
	r.ACREssential = len(r.ACR) > 0
	if kept.Subject != nil {
		r.LoginHint = kept.Subject.Value
	}
	return r, err
}

// receive reads a message of an application into v, of which head is a part. It finds the application by the issuer,
// and then believes only what the signature covers, if there is one.
func (p *Provider) receive(
	ctx context.Context, m received, tag string, v any, head *header,
) (c questions.Client, signed bool, err error) {
	root, err := parse(m.xml)
	if err != nil {
		return c, false, err
	}
	var claimed struct{ header }
	if !is(root, nsProtocol, tag) || m.response != (tag == "LogoutResponse") || into(root, &claimed) != nil {
		return c, false, errUnreadable
	}
	sender := strings.TrimSpace(claimed.Issuer) // some products break lines in their texts
	if sender == "" {
		return c, false, page("The application's message does not say who sends it.")
	}
	if c, err = p.client(ctx, questions.ClientName{SPEntity: sender}); err != nil {
		return c, false, err
	}
	believed, signed, err := authenticate(m, root, c)
	if err != nil {
		return c, false, err
	}
	if err := into(believed, v); err != nil {
		return c, false, err
	}
	if strings.TrimSpace(head.Issuer) != c.SAML.SPEntity {
		return c, false, protocol.ErrUnknown
	}
	if signed && head.Destination == "" { // SAML bindings §3.4.5.2, §3.5.5.2
		return c, false, errElsewhere
	}
	return c, signed, nil
}

var (
	errElsewhere = page("The application's message is for another address.")
	idForm       = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]*$`)
)

// check checks the attributes of a message that was sent to an address of ours, and is not older than age.
func (h *header) check(now clock.Time, address string, age time.Duration) error {
	issued, err := moment(h.IssueInstant)
	switch {
	case h.Version != "2.0":
		return page("The application's message is not of SAML 2.0.")
	case len(h.ID) > maxID || !idForm.MatchString(h.ID):
		return page("The application's message has no id.")
	case h.Destination != "" && h.Destination != address:
		return errElsewhere
	case err != nil:
		return page("The application's message does not say when it was made.")
	case issued.After(now.Add(skew)):
		return page("The application's message is from the future: the clock of the application is wrong.")
	case issued.Before(now.Add(-age)):
		return page("The application's message is too old. Please open the application again.")
	}
	return nil
}

// moment reads an xs:dateTime. SAML wants UTC; some products leave the Z out.
func moment(text string) (clock.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t, err = time.Parse("2006-01-02T15:04:05.999999999", text)
	}
	if year := t.UTC().Year(); err == nil && (year < 1970 || year > 9999) {
		err = errors.New("out of range")
	}
	return clock.Of(t), err
}

// isTrue reads an xs:boolean.
func isTrue(text string) bool { return text == "true" || text == "1" }

// acs returns where the response goes: an address that is registered for the application, or none.
func (a *authnRequest) acs(c questions.Client) (string, error) {
	refused := page("The application wants its answer at an address that is not registered for it.")
	switch {
	case a.ACSURL != "" && a.ACSIndex != "":
		return "", refused
	case a.ACSURL != "":
		if !isACS(c, a.ACSURL) {
			return "", refused
		}
		return a.ACSURL, nil
	case a.ACSIndex != "":
		all := append([]string{c.SAML.ACSURL}, c.SignIn.ACSURLs...)
		i, err := strconv.Atoi(a.ACSIndex)
		if err != nil || i < 0 || i >= len(all) || all[i] == "" {
			return "", refused
		}
		return all[i], nil
	case c.SAML.ACSURL == "":
		return "", refused
	}
	return c.SAML.ACSURL, nil
}

func isACS(c questions.Client, url string) bool {
	return url != "" && (url == c.SAML.ACSURL || slices.Contains(c.SignIn.ACSURLs, url))
}

// demands keeps what the application demands of the answer. It returns the status if that cannot be.
func (a *authnRequest) demands(c questions.Client, m *message) (status string) {
	if a.ProtocolBinding != "" && a.ProtocolBinding != bindingPost {
		return crewjam.StatusUnsupportedBinding
	}
	if a.NameIDPolicy != nil {
		q := a.NameIDPolicy.SPNameQualifier
		if q != "" && q != c.SAML.SPEntity || !known(a.NameIDPolicy.Format) {
			return crewjam.StatusInvalidNameIDPolicy
		}
		m.NameIDFormat = a.NameIDPolicy.Format
	}
	if a.Subject != nil && a.Subject.NameID != nil && a.Subject.NameID.Value != "" {
		m.Subject = a.Subject.NameID
	}
	if a.Context != nil {
		var ok bool
		if m.Contexts, m.Level, ok = a.Context.level(); !ok {
			return crewjam.StatusNoAuthnContext
		}
	}
	return ""
}
