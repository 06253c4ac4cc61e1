package signin_test

import (
	"crypto/rand"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/questions"
)

// casServer is a CAS server at which people sign in by a call of the test.
type casServer struct {
	URL string

	mu      sync.Mutex
	tickets map[string]casTicket
	says    string // instead of what is right
}

type casTicket struct {
	service, user, attributes string
	fresh                     bool
}

func startCASServer(t *testing.T) *casServer {
	s := &casServer{tickets: map[string]casTicket{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		q := r.URL.Query()
		ticket, ok := s.tickets[q.Get("ticket")]
		delete(s.tickets, q.Get("ticket"))
		says := `<cas:authenticationFailure code="INVALID_TICKET">no</cas:authenticationFailure>`
		if ok && ticket.service == q.Get("service") && (q.Get("renew") == "" || ticket.fresh) {
			says = `<cas:authenticationSuccess><cas:user>` + ticket.user + `</cas:user><cas:attributes>` +
				ticket.attributes + `</cas:attributes></cas:authenticationSuccess>`
		}
		if r.URL.Path != "/cas/p3/serviceValidate" {
			http.NotFound(w, r)
			return
		}
		if s.says != "" {
			says = s.says
		}
		_, _ = fmt.Fprintf(w, `<cas:serviceResponse xmlns:cas="http://www.yale.edu/tp/cas">%s</cas:serviceResponse>`,
			says)
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL + "/cas"
	return s
}

// signIn signs somebody in who comes with a request, and returns where the browser goes, and the ticket.
func (s *casServer) signIn(t *testing.T, request, user, attributes string) (back, ticket string) {
	t.Helper()
	u, err := url.Parse(request)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(request, s.URL+"/login?"), "%s", request)
	service := u.Query().Get("service")
	ticket = "ST-" + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tickets[ticket] = casTicket{service, user, attributes, u.Query().Get("renew") == "true"}
	return service + "&ticket=" + ticket, ticket
}

func withCAS(t *testing.T, policy string) (*federated, *casServer) {
	t.Helper()
	f, s := federate(t, policy), startCASServer(t)
	f.connections[corp], f.providers[corp] = object{"ServerUrl": s.URL + "/"}, "cas"
	connection := corpConnection
	connection.ProviderCode = "cas"
	f.template.Steps[0].Methods[1].Connections[0] = connection
	f.links[questions.ForeignIdentity{ConnectionID: corp, ProviderCode: "cas", Subject: "ann"}] =
		&linked{"500", "20", "1"}
	return f, s
}

// People come from a CAS server, become users with its attributes, and sign out there.
func TestSignInAtCAS(t *testing.T) {
	t.Parallel()
	f, s := withCAS(t, `{"create": "1", "domains": ["acme.test"], "claim_mapping": {
		"display_name": "cn", "sys_ext_props.staff": "\"staff\" in claims.groups ? \"yes\" : \"no\""}}`)
	b := f.browser().get(f.authorize("portal"))
	back, ticket := s.signIn(t, b.goes(), "ann", "")
	b.get(back).answered(callback)
	require.Equal(t, "20", f.newest()["user_id"])
	other := f.browser().get(f.authorize("portal", "prompt", "login"))
	back, _ = s.signIn(t, other.goes(), "li.wei", `<cas:mail>li.wei@acme.test</cas:mail><cas:cn>李伟</cas:cn>
		<cas:groups>staff</cas:groups><cas:groups>rd</cas:groups>`)
	other.get(back).answered(callback)
	require.Equal(t, []object{{
		"username": "li.wei", "display_name": "李伟", "email": "li.wei@acme.test", "email_verified": true,
		"sys_ext_props": object{"staff": "yes"},
	}}, f.changes)
	require.Len(t, f.sessions(), 2)

	for _, one := range []struct {
		request string
		status  int
		left    int
	}{
		{"<x/>", 400, 2}, {"", 400, 2}, {logoutOf(t, "ST-other"), 200, 2}, {logoutOf(t, ""), 400, 2},
		{logoutOf(t, ticket), 200, 1},
	} {
		r := f.browser().post(base+"/callback/"+corp, url.Values{"logoutRequest": {one.request}})
		require.Equal(t, one.status, r.page.StatusCode, one.request)
		require.Len(t, f.sessions(), one.left, one.request)
	}
}

func logoutOf(t *testing.T, ticket string) string {
	var text strings.Builder
	require.NoError(t, xml.EscapeText(&text, []byte(ticket)))
	return `<samlp:LogoutRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" ID="1" Version="2.0">` +
		`<saml:NameID xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion">@NOT_USED@</saml:NameID>` +
		`<samlp:SessionIndex>` + text.String() + `</samlp:SessionIndex></samlp:LogoutRequest>`
}

// goes presses the button of the connection, and returns where the browser goes.
func (b *browser) goes() string {
	b.w.t.Helper()
	b.send(url.Values{"action": {"leave"}, "connection": {corp}})
	return b.at
}

// A ticket that was given for another sign-in, or to nobody, is good for nothing.
func TestCASTicketsThatAreRefused(t *testing.T) {
	t.Parallel()
	f, s := withCAS(t, `{}`)
	try := func(back func(b *browser) string) *browser {
		b := f.browser().get(f.authorize("portal"))
		return b.get(back(b))
	}
	thief := f.browser().get(f.authorize("portal"))
	stolen, ticket := s.signIn(t, thief.goes(), "ann", "")
	try(func(b *browser) string {
		own, _ := s.signIn(t, b.goes(), "eve", "")
		return own[:strings.Index(own, "ticket=")] + "ticket=" + ticket
	}).shows(200, "did not work")
	f.browser().get(stolen)
	require.Empty(t, f.sessions(), "another browser")
	try(func(b *browser) string {
		own, _ := s.signIn(t, b.goes(), "ann", "")
		return own[:strings.Index(own, "&ticket=")]
	}).shows(200, "did not work")
	for _, says := range []string{
		"<x/>", "</cas:serviceResponse>",
		"<cas:authenticationSuccess><cas:user> </cas:user></cas:authenticationSuccess>",
		"<cas:authenticationSuccess><cas:user>" + strings.Repeat("x", 300) + "</cas:user></cas:authenticationSuccess>",
		"<cas:authenticationSuccess><cas:user>ann</cas:user></cas:authenticationSuccess><cas:authenticationFailure/>",
	} {
		s.mu.Lock()
		s.says = says
		s.mu.Unlock()
		try(func(b *browser) string {
			back, _ := s.signIn(t, b.goes(), "ann", "")
			return back
		}).shows(200, "did not work")
	}
	require.Empty(t, f.sessions())
}
