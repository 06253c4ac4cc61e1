package saml

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/beevik/etree"
	crewjam "github.com/crewjam/saml"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/post"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// Message is what came to /slo: one of the two is set.
type Message struct {
	Logout   *Logout   // an application wants the session to end
	Finished *Finished // an application has answered our LogoutRequest
}

// Logout is a LogoutRequest of an application.
type Logout struct {
	// SessionIDs are the sessions that it is about, at most 100. Without any there is nothing to end, and the answer is
	// that all is well.
	SessionIDs []string
	// Certain is true if it is signed. If not, anybody may have made it: a button must ask the person, and only the
	// session of its browser ends. A request that is certain is taken once.
	Certain bool
	Reply   Reply
}

// Reply is what the answer to a LogoutRequest needs. It may be stored until the other applications have been told.
type Reply struct {
	AppID      string `json:"app_id"`
	ID         string `json:"id"`
	RelayState string `json:"relay_state,omitempty"`
	Post       bool   `json:"post,omitempty"`
}

// Finished is the answer of an application to a LogoutRequest of ours.
type Finished struct {
	AppID  string
	Chain  string // as given to FrontRequest
	Failed bool
}

// maxSessions bounds the sessions that a LogoutRequest ends.
const maxSessions = 100

// logoutRequest is a LogoutRequest (SAML core §3.7.1).
type logoutRequest struct {
	XMLName xml.Name `xml:"urn:oasis:names:tc:SAML:2.0:protocol LogoutRequest"`
	header
	NotOnOrAfter string   `xml:"NotOnOrAfter,attr"`
	Name         *NameID  `xml:"urn:oasis:names:tc:SAML:2.0:assertion NameID"`
	Indexes      []string `xml:"urn:oasis:names:tc:SAML:2.0:protocol SessionIndex"`
}

// logoutResponse is a LogoutResponse (SAML core §3.7.2).
type logoutResponse struct {
	XMLName xml.Name `xml:"urn:oasis:names:tc:SAML:2.0:protocol LogoutResponse"`
	header
	InResponseTo string `xml:"InResponseTo,attr"`
	Status       struct {
		Code struct {
			Value  string `xml:"Value,attr"`
			Second *struct {
				Value string `xml:"Value,attr"`
			} `xml:"urn:oasis:names:tc:SAML:2.0:protocol StatusCode"`
		} `xml:"urn:oasis:names:tc:SAML:2.0:protocol StatusCode"`
	} `xml:"urn:oasis:names:tc:SAML:2.0:protocol Status"`
}

// succeeded reports whether the person is signed out.
func (r *logoutResponse) succeeded() bool {
	return r.Status.Code.Value == crewjam.StatusSuccess && r.Status.Code.Second == nil
}

// SLO reads a message to /slo. A Logout that is Certain ends its sessions, with Take, as if the person had asked for
// it. Then the other applications are told, and the last answer of all is AnswerLogout. After Finished, the next
// application of its chain is told. The errors are *protocol.PageError, protocol.ErrUnknown, and apperr.Unavailable.
func (p *Provider) SLO(ctx context.Context, issuer string, in Inbound) (Message, error) {
	m, err := decode(in)
	if err != nil {
		return Message{}, err
	}
	if m.response {
		finished, err := p.finished(ctx, issuer, m)
		return Message{Finished: finished}, err
	}
	logout, err := p.logout(ctx, issuer, m)
	return Message{Logout: logout}, err
}

func (p *Provider) logout(ctx context.Context, issuer string, m received) (*Logout, error) {
	var r logoutRequest
	c, signed, err := p.receive(ctx, m, "LogoutRequest", &r, &r.header)
	if err == nil {
		err = r.check(p.Store.Now(), sloURL(issuer), logoutAge)
	}
	if err != nil {
		return nil, err
	}
	if r.NotOnOrAfter != "" {
		if end, err := moment(r.NotOnOrAfter); err != nil || !p.Store.Now().Before(end.Add(skew)) {
			return nil, page("The application's request is too old.")
		}
	}
	if r.Name == nil || r.Name.Value == "" {
		return nil, page("The application does not say who signs out.")
	}
	sessions, err := p.sessionsOf(ctx, c, &r, clock.Time{})
	if err != nil {
		return nil, err
	}
	l := &Logout{
		SessionIDs: sessions, Certain: signed,
		Reply: Reply{AppID: c.AppID, ID: r.ID, RelayState: m.relayState, Post: m.post},
	}
	if !l.Certain {
		return l, nil
	}
	err = docstore.Do(ctx, p.Store, func(tx *docstore.Tx) error {
		return remember(ctx, tx, c.AppID, r.ID, "", tx.Now.Add(logoutAge+2*skew))
	})
	if _, twice := errors.AsType[*docstore.DuplicateError](err); twice {
		return l, p.again(ctx, c, &r, l)
	}
	return l, err
}

// again is for a request that was taken before: its sessions may not have ended, since a service died or did not answer
// then. It ends those that are left, but none of a later sign-in.
func (p *Provider) again(ctx context.Context, c questions.Client, r *logoutRequest, l *Logout) error {
	issued, err := moment(r.IssueInstant)
	if err != nil {
		return page("The application's request is not well-formed.")
	}
	if l.SessionIDs, err = p.sessionsOf(ctx, c, r, issued); err == nil && len(l.SessionIDs) == 0 {
		err = page("The application has signed out already.")
	}
	return err
}

// sessionsOf lists the sessions that a LogoutRequest is about: those of its indexes, or all in which the application
// knows the person by this name; unless before is zero, only those that it was entered in before then.
func (p *Provider) sessionsOf(
	ctx context.Context, c questions.Client, r *logoutRequest, before clock.Time,
) (ids []string, _ error) {
	found, err := participants.Page(ctx, p.Store, docstore.Query{
		Filter: docstore.Eq(byName, docstore.Text(hash(c.AppID, r.Name.Value))), Limit: maxSessions,
	})
	if err != nil {
		return nil, err
	}
	for _, doc := range found.Docs {
		entry, err := doc.Value()
		if err != nil {
			return nil, err
		}
		if !before.IsZero() && !entry.TimeCreated.Before(before) {
			continue
		}
		named := len(r.Indexes) == 0 || slices.Contains(r.Indexes, entry.SessionID)
		if named && !slices.Contains(ids, entry.SessionID) {
			ids = append(ids, entry.SessionID)
		}
	}
	return ids, nil
}

// finished reads the answer to a request of ours, which is known by an id that nobody can guess and is taken once.
func (p *Provider) finished(ctx context.Context, issuer string, m received) (*Finished, error) {
	var r logoutResponse
	c, _, err := p.receive(ctx, m, "LogoutResponse", &r, &r.header)
	if err == nil {
		err = r.check(p.Store.Now(), sloURL(issuer), logoutAge)
	}
	if err != nil {
		return nil, err
	}
	return docstore.Write(ctx, p.Store, func(tx *docstore.Tx) (*Finished, error) {
		ours, err := messages.Load(ctx, tx, hash(ourRequest, c.AppID, r.InResponseTo))
		if apperr.IsNotFound(err) || err == nil && !tx.Now.Before(ours.TimeExpires) {
			return nil, page("The application's answer belongs to no request.")
		}
		if err != nil {
			return nil, err
		}
		_, err = messages.Delete(ctx, tx, ours)
		return &Finished{AppID: c.AppID, Chain: ours.Chain, Failed: !r.succeeded()}, err
	})
}

// ourRequest keeps the ids of our requests apart from those of applications.
const ourRequest = "logout"

// Notice is an application that must be told that a session has ended. It may be stored until then.
type Notice struct {
	AppID     string `json:"app_id"`
	SessionID string `json:"session_id"`
	Name      NameID `json:"name"`
}

// Take removes the applications of a session and returns them, in the order in which the person entered them.
func (p *Provider) Take(ctx context.Context, tx *docstore.Tx, sessionID string) ([]Notice, error) {
	var entries []*Participant
	ofSession := docstore.Eq(bySession, docstore.Text(sessionID))
	err := participants.DeleteWhere(ctx, tx, ofSession, func(d docstore.Doc[Participant]) error {
		entry, err := d.Value()
		entries = append(entries, entry)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b *Participant) int {
		return cmp.Or(cmp.Compare(a.TimeCreated.Millis(), b.TimeCreated.Millis()), cmp.Compare(a.ID, b.ID))
	})
	var all []Notice
	for _, entry := range entries {
		all = append(all, Notice{AppID: entry.AppID, SessionID: entry.SessionID, Name: entry.Name})
	}
	return all, nil
}

// ErrBySOAP is the error for an application that is told from server to server, since it has a SOAP service.
var ErrBySOAP = errors.New("the application is told by SOAP")

// FrontRequest makes the request that tells an application of the end of a session through the browser, by the binding
// of its settings. chain comes back with the answer. The error is ErrBySOAP, or protocol.ErrUnknown if the application
// has no address for it, or is no more.
func (p *Provider) FrontRequest(
	ctx context.Context, issuer string, n Notice, chain string,
) (protocol.Answer, error) {
	if c, err := p.Clients.Of(ctx, questions.ClientName{AppID: n.AppID}); err == nil && c.SAML != nil &&
		c.SignIn.SLOSOAPURL != "" {
		return protocol.Answer{}, ErrBySOAP
	}
	c, s, err := p.addressee(ctx, n.AppID)
	if err != nil {
		return protocol.Answer{}, err
	}
	id := newID()
	err = docstore.Do(ctx, p.Store, func(tx *docstore.Tx) error {
		_, err := messages.Insert(ctx, tx, &Used{
			Meta: docstore.Meta{ID: hash(ourRequest, c.AppID, id)}, AppID: c.AppID, Chain: chain,
			TimeExpires: tx.Now.Add(logoutAge),
		})
		return err
	})
	if err != nil {
		return protocol.Answer{}, err
	}
	return s.send(c, paramRequest, "", c.SignIn.SLOByPost, p.requestAbout(issuer, n, id, c.SignIn.SLOURL))
}

// requestAbout is a LogoutRequest about a session, without a signature.
func (p *Provider) requestAbout(issuer string, n Notice, id, to string) *etree.Element {
	now := p.Store.Now()
	end := now.Add(good).Std()
	return (&crewjam.LogoutRequest{
		ID: id, Version: "2.0", IssueInstant: now.Std(), NotOnOrAfter: &end, Destination: to,
		Issuer: issuerOf(issuer), NameID: n.Name.element(), SessionIndex: &crewjam.SessionIndex{Value: n.SessionID},
	}).Element()
}

// BackRequest makes the request that tells an application of the end of a session from server to server: by SOAP if it
// has a service for that, else by a form to its slo_url, which only applications take that find a session without its
// cookie. Errors are those of FrontRequest.
func (p *Provider) BackRequest(ctx context.Context, issuer string, n Notice) (post.Message, error) {
	c, err := p.Clients.Of(ctx, questions.ClientName{AppID: n.AppID}) // a disabled one is told, too
	if apperr.IsNotFound(err) || err == nil && (c.SAML == nil || c.SignIn.SLOURL+c.SignIn.SLOSOAPURL == "") {
		err = protocol.ErrUnknown
	}
	if err != nil {
		return post.Message{}, err
	}
	s, err := p.signerFor(ctx, c)
	if err != nil {
		return post.Message{}, err
	}
	to := c.SignIn.SLOSOAPURL
	if to == "" {
		a, err := s.send(c, paramRequest, "", true, p.requestAbout(issuer, n, newID(), c.SignIn.SLOURL))
		return post.Message{To: a.URL, Form: a.Post}, err
	}
	request := p.requestAbout(issuer, n, newID(), to)
	if err := s.sign(request, methodOf(c)); err != nil {
		return post.Message{}, fmt.Errorf("sign a message: %w", err)
	}
	envelope, err := inSOAP(request)
	return post.Message{To: to, SOAP: envelope, Check: checkSOAP}, err
}

// Outcome is what became of a LogoutRequest.
type Outcome int

// The outcomes.
const (
	AllEnded  Outcome = iota // every session that the request is about
	SomeEnded                // PartialLogout (SAML core §3.7.3.2)
	NoneEnded                // Requester: the request was not entitled to end the session that it is about
)

// AnswerLogout answers a LogoutRequest, in the binding in which it came. The error is protocol.ErrUnknown if the
// application has no address for it.
func (p *Provider) AnswerLogout(
	ctx context.Context, issuer string, r Reply, outcome Outcome,
) (protocol.Answer, error) {
	c, s, err := p.addressee(ctx, r.AppID)
	if err != nil {
		return protocol.Answer{}, err
	}
	code := crewjam.StatusCode{Value: crewjam.StatusSuccess}
	switch outcome {
	case SomeEnded:
		code.StatusCode = &crewjam.StatusCode{Value: crewjam.StatusPartialLogout}
	case NoneEnded:
		code = crewjam.StatusCode{
			Value:      crewjam.StatusRequester,
			StatusCode: &crewjam.StatusCode{Value: crewjam.StatusRequestDenied},
		}
	}
	return s.send(c, paramResponse, r.RelayState, r.Post, (&crewjam.LogoutResponse{
		ID: newID(), InResponseTo: r.ID, Version: "2.0", IssueInstant: p.Store.Now().Std(),
		Destination: c.SignIn.SLOURL, Issuer: issuerOf(issuer), Status: crewjam.Status{StatusCode: code},
	}).Element())
}

// addressee returns an application with an address for messages about logouts, disabled or not, and the key for them.
func (p *Provider) addressee(ctx context.Context, appID string) (questions.Client, *signer, error) {
	c, err := p.Clients.Of(ctx, questions.ClientName{AppID: appID})
	if apperr.IsNotFound(err) || err == nil && (c.SAML == nil || c.SignIn.SLOURL == "") {
		err = protocol.ErrUnknown
	}
	if err != nil {
		return c, nil, err
	}
	s, err := p.signerFor(ctx, c)
	return c, s, err
}

// send signs a message to an application's slo_url and puts it into a binding.
func (s *signer) send(
	c questions.Client, kind, relayState string, post bool, el *etree.Element,
) (protocol.Answer, error) {
	if !post {
		return s.redirect(c, kind, relayState, el)
	}
	if err := s.sign(el, methodOf(c)); err != nil {
		return protocol.Answer{}, fmt.Errorf("sign a message: %w", err)
	}
	text, err := write(el)
	if err != nil {
		return protocol.Answer{}, err
	}
	form := url.Values{kind: {base64.StdEncoding.EncodeToString(text)}}
	if relayState != "" {
		form.Set(paramRelay, relayState)
	}
	return protocol.Answer{URL: c.SignIn.SLOURL, Post: form}, nil
}

// redirect is the HTTP-Redirect binding (SAML bindings §3.4.4.1), whose signature is over the query.
func (s *signer) redirect(c questions.Client, kind, relayState string, el *etree.Element) (protocol.Answer, error) {
	text, err := write(el)
	if err != nil {
		return protocol.Answer{}, err
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.DefaultCompression)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return protocol.Answer{}, fmt.Errorf("compress a message: %w", err)
	}
	query := kind + "=" + url.QueryEscape(base64.StdEncoding.EncodeToString(packed.Bytes()))
	if relayState != "" {
		query += "&" + paramRelay + "=" + url.QueryEscape(relayState)
	}
	query += "&" + paramSigAlg + "=" + url.QueryEscape(methodOf(c))
	sign, err := s.context(methodOf(c))
	if err != nil {
		return protocol.Answer{}, err
	}
	signature, err := sign.SignString(query)
	if err != nil {
		return protocol.Answer{}, fmt.Errorf("sign a message: %w", err)
	}
	query += "&" + paramSign + "=" + url.QueryEscape(base64.StdEncoding.EncodeToString(signature))
	to, err := url.Parse(c.SignIn.SLOURL)
	if err != nil {
		return protocol.Answer{}, protocol.ErrUnknown
	}
	if to.RawQuery != "" {
		query = to.RawQuery + "&" + query
	}
	to.RawQuery = query
	return protocol.Answer{URL: to.String()}, nil
}
