package saml_test

import (
	"encoding/xml"
	"net/url"
	"strings"
	"testing"
	"time"

	crewjam "github.com/crewjam/saml"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
	"github.com/idplatform/idplatform/services/sign-in/internal/saml"
)

// enter signs a person in for the application in a session.
func (w *world) enter(session string) {
	w.t.Helper()
	r, err := w.provider.Start(w.ctx, "2001", "")
	require.NoError(w.t, err)
	w.grant(r, func(p *protocol.Person) { p.SessionID = session })
}

func (w *world) take(session string) []saml.Notice {
	w.t.Helper()
	all, err := docstore.Write(w.ctx, w.store, func(tx *docstore.Tx) ([]saml.Notice, error) {
		return w.provider.Take(w.ctx, tx, session)
	})
	require.NoError(w.t, err)
	return all
}

func (w *world) slo(in saml.Inbound) (saml.Message, error) { return w.provider.SLO(w.ctx, issuer, in) }

// logout is a LogoutRequest that is not signed.
func (w *world) logout(attributes, name string, indexes ...string) string {
	elements := `<saml:NameID>` + name + `</saml:NameID>`
	for _, index := range indexes {
		elements += "<samlp:SessionIndex>" + index + "</samlp:SessionIndex>"
	}
	text := w.authn(attributes, elements)
	text = strings.ReplaceAll(text, issuer+"/saml/sso", issuer+"/saml/slo")
	return strings.ReplaceAll(text, "AuthnRequest", "LogoutRequest")
}

func TestCrewjamSignsOut(t *testing.T) {
	t.Parallel()
	w := signed(t)
	w.enter("session-1")
	w.enter("session-2")
	sp := w.sp(signing)
	html, err := sp.MakePostLogoutRequest("li.wei", "state")
	require.NoError(t, err)
	in := form(t, html)
	m, err := w.slo(in)
	require.NoError(t, err)
	require.Nil(t, m.Finished)
	require.True(t, m.Logout.Certain)
	require.ElementsMatch(t, []string{"session-1", "session-2"}, m.Logout.SessionIDs)
	w.take("session-1")
	w.take("session-2")
	_, err = w.slo(in)
	requirePage(t, err, "a request is taken once")

	a, err := w.provider.AnswerLogout(w.ctx, issuer, m.Logout.Reply, saml.AllEnded)
	require.NoError(t, err)
	require.Equal(t, []string{slo, "state"}, []string{a.URL, a.Post.Get("RelayState")})
	require.NoError(t, sp.ValidateLogoutResponseForm(a.Post.Get("SAMLResponse")))
	a, err = w.provider.AnswerLogout(w.ctx, issuer, m.Logout.Reply, saml.SomeEnded)
	require.NoError(t, err)
	require.Contains(t, string(messageIn(t, a)), `<samlp:StatusCode Value="`+statusPrefix+`Success">`+
		`<samlp:StatusCode Value="`+statusPrefix+`PartialLogout">`)

	u, err := sp.MakeRedirectLogoutRequest("li.wei", "state") // with the signature in the message
	require.NoError(t, err)
	m, err = w.slo(saml.Inbound{Query: u.RawQuery})
	require.NoError(t, err)
	require.True(t, m.Logout.Certain)
	a, err = w.provider.AnswerLogout(w.ctx, issuer, m.Logout.Reply, saml.AllEnded)
	require.NoError(t, err)
	require.Nil(t, a.Post)
	require.True(t, strings.HasPrefix(a.URL, slo+"?SAMLResponse="), a.URL)
}

// A request that is repeated ends what is left of its sessions, and no later ones.
func TestALogoutRequestThatComesAgain(t *testing.T) {
	t.Parallel()
	w := signed(t)
	w.enter("session-1")
	w.enter("session-2")
	w.clock.Advance(time.Second)
	html, err := w.sp(signing).MakePostLogoutRequest("li.wei", "state")
	require.NoError(t, err)
	in := form(t, html)
	for range 2 {
		m, err := w.slo(in)
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"session-1", "session-2"}, m.Logout.SessionIDs)
	}
	w.clock.Advance(time.Second)
	w.enter("session-3")
	m, err := w.slo(in)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"session-1", "session-2"}, m.Logout.SessionIDs)
}

func TestLogoutRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enter("session-1")
	w.enter("session-2")
	for _, c := range []struct {
		name     string
		indexes  []string
		sessions []string
	}{
		{"li.wei", []string{"session-1"}, []string{"session-1"}},
		{"li.wei", []string{"session-1", "session-2", "session-9"}, []string{"session-1", "session-2"}},
		{"li.wei", []string{"session-9"}, nil},
		{"li.wei", nil, []string{"session-1", "session-2"}},
		{"admin", []string{"session-1"}, nil},
		{"admin", nil, nil},
	} {
		m, err := w.slo(post(w.logout("", c.name, c.indexes...)))
		require.NoError(t, err)
		require.ElementsMatch(t, c.sessions, m.Logout.SessionIDs)
		require.False(t, m.Logout.Certain, "anybody can make it")
	}
	in := post(w.logout("", "li.wei")) // asks the person, so a reload must work
	for range 2 {
		_, err := w.slo(in)
		require.NoError(t, err)
	}
	w.client.SignIn.SignedRequests = true
	_, err := w.slo(post(w.logout("", "li.wei", "session-1")))
	requirePage(t, err)
}

func TestLogoutRequestsThatArePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enter("session-1")
	at := func(d time.Duration) string { return w.clock.Now().Add(d).String() }
	for about, text := range map[string]string{
		"old":             w.logout(`IssueInstant="`+at(-11*time.Minute)+`"`, "li.wei"),
		"over":            w.logout(`NotOnOrAfter="`+at(-5*time.Minute)+`"`, "li.wei"),
		"no time":         w.logout(`NotOnOrAfter="x"`, "li.wei"),
		"elsewhere":       w.logout(`Destination="https://id.example.com/sign-in/globex/saml/slo"`, "li.wei"),
		"no name":         strings.ReplaceAll(w.logout("", "li.wei"), "NameID>", "EncryptedID>"),
		"empty":           w.logout("", ""),
		"an AuthnRequest": w.authn("", ""),
		"entities":        `<!DOCTYPE x [<!ENTITY e "li.wei">]>` + w.logout("", "&e;"),
	} {
		_, err := w.slo(post(text))
		requirePage(t, err, about)
	}
	_, err := w.provider.SLO(request.System(t.Context(), "globex"), issuer, post(w.logout("", "li.wei")))
	require.ErrorIs(t, err, protocol.ErrUnknown)
}

func TestSignatureWrappingOfLogouts(t *testing.T) {
	t.Parallel()
	w := signed(t)
	w.enter("session-1")
	sp := w.sp(signing)
	r, err := sp.MakeLogoutRequest(issuer+"/saml/slo", "li.wei")
	require.NoError(t, err)
	genuine := text(t, r.Element())
	for about, message := range wrappings(t, genuine, w.logout("", "admin", "session-1")) {
		for _, in := range []saml.Inbound{post(message), query(t, message)} {
			_, err := w.slo(in)
			require.EqualError(t, err, "The signature of the application's message is not right.", about)
		}
	}
	_, err = w.slo(post(strings.Replace(genuine, ">li.wei<", ">admin<", 1)))
	requirePage(t, err)
	_, err = w.slo(post(genuine))
	require.NoError(t, err)
}

// logoutResponse is the answer of the application to a request of ours.
func (w *world) logoutResponse(a protocol.Answer, edit func(*crewjam.LogoutResponse)) saml.Inbound {
	w.t.Helper()
	sp := w.sp(nil)
	r, err := sp.MakeLogoutResponse(issuer+"/saml/slo", w.requestIn(a).ID)
	require.NoError(w.t, err)
	if edit != nil {
		edit(r)
	}
	return saml.Inbound{Query: r.Redirect("").RawQuery}
}

func (w *world) requestIn(a protocol.Answer) crewjam.LogoutRequest {
	w.t.Helper()
	var r crewjam.LogoutRequest
	require.NoError(w.t, xml.Unmarshal(messageIn(w.t, a), &r))
	return r
}

func TestApplicationsAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enter("session-1")
	w.enter("session-1")
	w.enter("session-2")
	notices := w.take("session-1")
	require.Len(t, notices, 1)
	require.Empty(t, w.take("session-1"))
	basic.Golden(t, "testdata/notice.json", marshal(t, notices[0]))

	for _, post := range []bool{true, false} {
		w.client.SignIn.SLOByPost = post
		a, err := w.provider.FrontRequest(w.ctx, issuer, notices[0], "chain-7")
		require.NoError(t, err)
		require.Equal(t, post, a.Post != nil)
		require.True(t, strings.HasPrefix(a.URL, slo))
		r := w.requestIn(a)
		require.Equal(t, []string{"li.wei", "session-1", slo, issuer + "/saml/metadata"},
			[]string{r.NameID.Value, r.SessionIndex.Value, r.Destination, r.Issuer.Value})

		m, err := w.slo(w.logoutResponse(a, nil))
		require.NoError(t, err)
		require.Equal(t, &saml.Finished{AppID: "2001", Chain: "chain-7"}, m.Finished)
		_, err = w.slo(w.logoutResponse(a, nil))
		requirePage(t, err, "an answer is taken once")
	}
}

func TestAnswersToOurRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enter("session-1")
	notice := w.take("session-1")[0]
	ask := func() protocol.Answer {
		a, err := w.provider.FrontRequest(w.ctx, issuer, notice, "c")
		require.NoError(t, err)
		return a
	}
	for _, code := range []crewjam.StatusCode{
		{Value: crewjam.StatusResponder},
		{Value: crewjam.StatusSuccess, StatusCode: &crewjam.StatusCode{Value: crewjam.StatusPartialLogout}},
	} {
		m, err := w.slo(w.logoutResponse(ask(), func(r *crewjam.LogoutResponse) { r.Status.StatusCode = code }))
		require.NoError(t, err)
		require.True(t, m.Finished.Failed)
	}
	for about, edit := range map[string]func(*crewjam.LogoutResponse){
		"of no request": func(r *crewjam.LogoutResponse) { r.InResponseTo = "id-1" },
		"elsewhere":     func(r *crewjam.LogoutResponse) { r.Destination = slo },
		"old":           func(r *crewjam.LogoutResponse) { r.IssueInstant = r.IssueInstant.Add(-time.Hour) },
	} {
		_, err := w.slo(w.logoutResponse(ask(), edit))
		requirePage(t, err, about)
	}
	a := ask()
	w.clock.Advance(10 * time.Minute)
	_, err := w.slo(w.logoutResponse(a, func(r *crewjam.LogoutResponse) { r.IssueInstant = w.clock.Now().Std() }))
	requirePage(t, err, "too late")

	w.client.SignIn.SLOURL = ""
	_, err = w.provider.FrontRequest(w.ctx, issuer, notice, "c")
	require.ErrorIs(t, err, protocol.ErrUnknown)
	_, err = w.provider.AnswerLogout(w.ctx, issuer, saml.Reply{AppID: "2001"}, saml.AllEnded)
	require.ErrorIs(t, err, protocol.ErrUnknown)
	w.client.SignIn.SLOURL, w.client.Enabled = slo+"?x=1", false // a disabled one is told, too
	a = ask()
	require.True(t, strings.HasPrefix(a.URL, slo+"?x=1&SAMLRequest="), a.URL)
	u, err := url.Parse(a.URL)
	require.NoError(t, err)
	require.NotEmpty(t, u.Query().Get("Signature"))
}

// Only an answer that says so confirms a logout by SOAP.
func TestAnswersBySOAP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enter("session-1")
	notice := w.take("session-1")[0]
	m, err := w.provider.BackRequest(w.ctx, issuer, notice)
	require.NoError(t, err)
	require.Equal(t, slo, m.To)
	require.NotEmpty(t, m.Form.Get("SAMLRequest"), "without a service by SOAP it is a form")
	w.client.SignIn.SLOSOAPURL = "https://sp.example.com/soap"
	_, err = w.provider.FrontRequest(w.ctx, issuer, notice, "c")
	require.ErrorIs(t, err, saml.ErrBySOAP)
	m, err = w.provider.BackRequest(w.ctx, issuer, notice)
	require.NoError(t, err)
	require.Equal(t, "https://sp.example.com/soap", m.To)
	require.Contains(t, string(m.SOAP), `Destination="https://sp.example.com/soap"`)

	answer := func(body string) string {
		return `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>` + body + `</s:Body></s:Envelope>`
	}
	response := func(codes string) string {
		return answer(`<p:LogoutResponse xmlns:p="urn:oasis:names:tc:SAML:2.0:protocol" ID="_1" Version="2.0"><p:Status>` +
			codes + `</p:Status></p:LogoutResponse>`)
	}
	good := `<p:StatusCode Value="` + statusPrefix + `Success"/>`
	require.NoError(t, m.Check([]byte(response(good))))
	for about, body := range map[string]string{
		"nothing": "", "text": "OK", "no envelope": good, "no response": answer(""),
		"a fault": answer(`<s:Fault><faultcode>s:Server</faultcode></s:Fault>`),
		"refused": response(`<p:StatusCode Value="` + statusPrefix + `Requester"/>`),
		"partial": response(`<p:StatusCode Value="` + statusPrefix + `Success"><p:StatusCode Value="` + statusPrefix +
			`PartialLogout"/></p:StatusCode>`),
		"cut off":  response(good)[:200],
		"entities": `<!DOCTYPE x [<!ENTITY e "x">]>` + response(good),
	} {
		require.Error(t, m.Check([]byte(body)), about)
	}
}
