package cas

import (
	"context"
	"encoding/xml"
	"net/url"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// Return is where the browser goes after /logout (§2.3): to the service, if it is a service of an application, its
// logout URL or one of its post_logout_urls. Without one it returns "". The error is apperr.Unavailable.
func (s *Server) Return(ctx context.Context, v url.Values) (string, error) {
	service := v.Get("service")
	u, ok := parse(service)
	if !ok || len(v["service"]) != 1 {
		return "", nil
	}
	c, err := s.clients.Of(ctx, questions.ClientName{Service: service})
	switch {
	case apperr.IsNotFound(err), apperr.KindOf(err) == apperr.Unavailable: // the session can end all the same
		return "", nil
	case err != nil:
		return "", err
	}
	known := covers(c.RedirectURLs, u) || service == c.LogoutURL || slices.Contains(c.SignIn.PostLogoutURLs, service)
	if !c.Enabled || c.CAS == nil || !known {
		return "", nil
	}
	return service, nil
}

// Notice is a session of an application that ends with the person's. It can be stored until the application is told.
type Notice struct {
	AppID   string `json:"app_id"`
	Service string `json:"service"`
	Ticket  string `json:"ticket"`
	User    string `json:"user"`
}

// Take removes the tickets of a session, so that none can be validated any more, and returns the sessions of
// applications that began with them.
func (s *Server) Take(ctx context.Context, tx *docstore.Tx, sessionID string) ([]Notice, error) {
	var all []Notice
	ofSession := docstore.Eq(bySession, docstore.Text(sessionID))
	err := tickets.DeleteWhere(ctx, tx, ofSession, func(d docstore.Doc[Ticket]) error {
		t, err := d.Value()
		if err == nil && t.Name != "" {
			all = append(all, Notice{AppID: t.AppID, Service: t.Service, Ticket: t.Name, User: t.User})
		}
		return err
	})
	return all, err
}

// LogoutPost is the request that ends an application's session (Appendix C): a form, to the application's slo_url or to
// the service itself. The error is apperr.Unavailable; protocol.ErrUnknown if there is nobody to tell any more.
func (s *Server) LogoutPost(ctx context.Context, n Notice) (protocol.Answer, error) {
	c, err := s.clients.Of(ctx, questions.ClientName{AppID: n.AppID}) // a disabled one is told, too
	if apperr.IsNotFound(err) {
		err = protocol.ErrUnknown
	}
	if err != nil {
		return protocol.Answer{}, err
	}
	to := n.Service
	if c.SignIn.SLOURL != "" {
		to = c.SignIn.SLOURL
	}
	body, err := xml.Marshal(logoutRequest{
		Protocol: "urn:oasis:names:tc:SAML:2.0:protocol", Assertion: "urn:oasis:names:tc:SAML:2.0:assertion",
		ID: "LR-" + secret.Token(16), Version: "2.0", Time: s.store.Now().String(),
		User: n.User, Ticket: n.Ticket,
	})
	return protocol.Answer{URL: to, Post: url.Values{"logoutRequest": {string(body)}}}, err
}

// logoutRequest has the prefixes that clients search for in the text.
type logoutRequest struct {
	XMLName   xml.Name `xml:"samlp:LogoutRequest"`
	Protocol  string   `xml:"xmlns:samlp,attr"`
	Assertion string   `xml:"xmlns:saml,attr"`
	ID        string   `xml:"ID,attr"`
	Version   string   `xml:"Version,attr"`
	Time      string   `xml:"IssueInstant,attr"`
	User      string   `xml:"saml:NameID"`
	Ticket    string   `xml:"samlp:SessionIndex"`
}
