package signin_test

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/questions"
)

const slo = "https://shop.test/slo"

// shop lets an application of SAML in, and signs Ann in there. It returns her browser and the id of her session.
func (w *world) shop() (b *browser, session string) {
	w.t.Helper()
	w.change(func() {
		w.clients["shop"] = questions.Client{
			AppID: "7", ClientID: "shop", Name: "Shop", Enabled: true, SSO: true,
			SAML: &questions.SAMLSettings{ACSURL: "https://shop.test/acs", SPEntity: "https://shop.test/metadata",
				NameIDFormat: "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified", LifetimeInSeconds: 1800},
			SignIn: questions.SignInSettings{SLOURL: w.sloURL, IdPInitiated: true},
		}
	})
	before := w.sessions()
	b = w.browser().get("/saml/start/7").signIn("ann", password)
	b.shows(200, "SAMLResponse")
	after := slices.DeleteFunc(w.sessions(), func(s any) bool {
		return slices.ContainsFunc(before, func(b any) bool { return b.(object)["id"] == s.(object)["id"] })
	})
	require.Len(w.t, after, 1)
	return b, after[0].(object)["id"].(string)
}

// logoutRequest is a LogoutRequest about Ann that is not signed.
func (w *world) logoutRequest(sessions ...string) url.Values {
	text := `<samlp:LogoutRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol"` +
		` xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="_1" Version="2.0" IssueInstant="` +
		w.Clock.Now().String() + `" Destination="` + base + `/saml/slo">` +
		`<saml:Issuer>https://shop.test/metadata</saml:Issuer><saml:NameID>ann</saml:NameID>` +
		`<samlp:SessionIndex>` + strings.Join(sessions, `</samlp:SessionIndex><samlp:SessionIndex>`) +
		`</samlp:SessionIndex></samlp:LogoutRequest>`
	var deflated bytes.Buffer
	writer, err := flate.NewWriter(&deflated, flate.BestSpeed)
	w.must(err)
	_, err = writer.Write([]byte(text))
	w.must(err)
	w.must(writer.Close())
	return url.Values{"SAMLRequest": {base64.StdEncoding.EncodeToString(deflated.Bytes())}}
}

var sealedLogout = regexp.MustCompile(`name="logout" value="([^"]*)"`)

func (b *browser) confirm() *browser {
	b.w.t.Helper()
	sealed := sealedLogout.FindStringSubmatch(b.shows(200, "Sign out?").body)
	require.NotNil(b.w.t, sealed, "%s", b.body)
	return b.send(url.Values{"logout": {html.UnescapeString(sealed[1])}})
}

// Whoever makes a request that is not signed ends nobody's session but its own, and the application is told so.
func TestAnUnsignedSAMLRequestSignsOutItsBrowserOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b, session := w.shop()
	request := "/saml/slo?" + w.logoutRequest(session).Encode()
	w.browser().get(request).confirm().logoutStatus("Requester", "RequestDenied")
	require.Len(t, w.sessions(), 1)
	other := w.signedIn()
	other.get(request).confirm().logoutStatus("Requester", "RequestDenied")
	require.Len(t, w.sessions(), 2)
	b.get(request).confirm().logoutStatus("Success")
	require.Len(t, w.sessions(), 1)
	b.get(request).logoutStatus("Success") // there is nothing to end

	b, session = w.shop()
	second, another := w.shop()
	both := "/saml/slo?" + w.logoutRequest(session, another).Encode()
	b.get(both).confirm().logoutStatus("Success", "PartialLogout")
	second.get(both).confirm().logoutStatus("Success")
}

// The page does not say that somebody is signed out whose session goes on.
func TestAnUnsignedSAMLRequestWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sloURL = ""
	b, session := w.shop()
	request := "/saml/slo?" + w.logoutRequest(session).Encode()
	stranger := w.browser().get(request).confirm().shows(200, "Sign in")
	require.NotContains(t, stranger.body, "signed out")
	require.Len(t, w.sessions(), 1)
	b.get(request).confirm().shows(200, "signed out")
	require.Empty(t, w.sessions())
}

// logoutStatus fails the test unless the browser brings the application an answer with these codes to its request.
func (b *browser) logoutStatus(codes ...string) {
	b.w.t.Helper()
	u, err := url.Parse(b.at)
	b.w.must(err)
	require.Equal(b.w.t, slo, u.Scheme+"://"+u.Host+u.Path, "%s", b.body)
	deflated, err := base64.StdEncoding.DecodeString(u.Query().Get("SAMLResponse"))
	b.w.must(err)
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(deflated)))
	b.w.must(err)
	var told []string
	for _, code := range regexp.MustCompile(`StatusCode Value="[^"]*:([^":]*)"`).FindAllSubmatch(text, -1) {
		told = append(told, string(code[1]))
	}
	require.Equal(b.w.t, codes, told, "%s", text)
}

// Strangers ask for the metadata of tenants that do not exist.
func TestMetadataOfTenantsWithoutApplications(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.browser().get("/saml/metadata").shows(200, "EntityDescriptor")
	require.Equal(t, 404, w.browser().get("https://idp.test/sign-in/globex/saml/metadata").page.StatusCode)
}

// partner is an application of SAML beside the shop.
func (w *world) partner(id, name string, edit func(*questions.Client)) {
	w.t.Helper()
	w.change(func() {
		c := questions.Client{
			AppID: id, ClientID: name, Name: name, Enabled: true, SSO: true,
			SAML: &questions.SAMLSettings{ACSURL: "https://" + name + ".test/acs",
				SPEntity: "https://" + name + ".test", LifetimeInSeconds: 1800,
				NameIDFormat: "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified"},
			SignIn: questions.SignInSettings{SLOURL: "https://" + name + ".test/slo", IdPInitiated: true},
		}
		if edit != nil {
			edit(&c)
		}
		w.clients[name] = c
	})
}

var (
	postedRequest = regexp.MustCompile(`name="SAMLRequest" value="([^"]*)"`)
	requestID     = regexp.MustCompile(`<samlp:LogoutRequest [^>]* ID="([^"]*)"`)
)

// isAsked fails the test unless the browser brings an application a LogoutRequest, and returns the request's id.
func (b *browser) isAsked(application string, post bool) string {
	b.w.t.Helper()
	to := "https://" + application + ".test/slo"
	var text []byte
	if post {
		require.Contains(b.w.t, b.body, `action="`+to+`"`)
		found := postedRequest.FindStringSubmatch(b.body)
		require.NotNil(b.w.t, found, "%s", b.body)
		var err error
		text, err = base64.StdEncoding.DecodeString(html.UnescapeString(found[1]))
		b.w.must(err)
	} else {
		u, err := url.Parse(b.at)
		b.w.must(err)
		require.Equal(b.w.t, to, u.Scheme+"://"+u.Host+u.Path, "%s", b.body)
		require.NotEmpty(b.w.t, u.Query().Get("Signature"))
		deflated, err := base64.StdEncoding.DecodeString(u.Query().Get("SAMLRequest"))
		b.w.must(err)
		text, err = io.ReadAll(flate.NewReader(bytes.NewReader(deflated)))
		b.w.must(err)
	}
	id := requestID.FindSubmatch(text)
	require.NotNil(b.w.t, id, "%s", text)
	return string(id[1])
}

// answers brings the answer of an application to a LogoutRequest.
func (b *browser) answers(application, request, status string) *browser {
	b.w.t.Helper()
	entity := b.w.clients[application].SAML.SPEntity
	text := `<samlp:LogoutResponse xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol"` +
		` xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="_r" Version="2.0" IssueInstant="` +
		b.w.Clock.Now().String() + `" Destination="` + base + `/saml/slo" InResponseTo="` + request + `">` +
		`<saml:Issuer>` + entity + `</saml:Issuer><samlp:Status><samlp:StatusCode` +
		` Value="urn:oasis:names:tc:SAML:2.0:status:` + status + `"/></samlp:Status></samlp:LogoutResponse>`
	var deflated bytes.Buffer
	writer, err := flate.NewWriter(&deflated, flate.BestSpeed)
	b.w.must(err)
	_, err = writer.Write([]byte(text))
	b.w.must(err)
	b.w.must(writer.Close())
	message := base64.StdEncoding.EncodeToString(deflated.Bytes())
	return b.get("/saml/slo?" + url.Values{"SAMLResponse": {message}}.Encode())
}

// opens signs the browser in to applications, one after the other.
func (b *browser) opens(ids ...string) {
	b.w.t.Helper()
	for _, id := range ids {
		b.w.Clock.Advance(time.Second)
		if b.get("/saml/start/" + id); strings.Contains(b.body, "login_name") {
			b.signIn("ann", password)
		}
		b.shows(200, "SAMLResponse")
	}
}

var backToPortal = url.Values{"client_id": {"portal"}, "post_logout_redirect_uri": {"https://portal.test/bye"}}

func (b *browser) signsOut() *browser {
	return b.get("/logout?" + backToPortal.Encode()).send(backToPortal)
}

// The browser tells the applications of SAML one after the other, because each knows the person by its own cookie. The
// page names those that have not confirmed.
func TestTheBrowserTellsApplicationsOfALogout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b, _ := w.shop()
	w.partner("71", "docs", func(c *questions.Client) { c.SignIn.SLOByPost = true })
	w.partner("72", "deaf", func(c *questions.Client) { c.SignIn.SLOURL = "" })
	w.partner("73", "slow", nil)
	b.opens("71", "72", "73")
	first := b.signsOut().isAsked("shop", false)
	require.Empty(t, w.sessions(), "the session ends at once")
	require.NotContains(t, b.body, "data-signed-in", "no other tab is told of a sign-in")
	second := b.answers("shop", first, "Success").isAsked("docs", true)
	third := b.answers("docs", second, "Success").isAsked("slow", false)
	b.answers("slow", third, "Responder").shows(200, "You are signed out")
	require.Regexp(t, `<li>deaf</li>\s*<li>slow</li>`, b.body)
	require.Contains(t, b.body, `href="https://portal.test/bye"`, "there is still a way back")
	require.NotContains(t, b.body, "<li>shop</li>")

	b.opens("7", "71")
	first = b.signsOut().isAsked("shop", false)
	second = b.answers("shop", first, "Success").isAsked("docs", true)
	b.answers("docs", second, "Success")
	require.Equal(t, "https://portal.test/bye", b.at, "all have confirmed")
}

// The application that asks for the logout is not asked itself. It is told if others have not confirmed.
func TestALogoutThatAnApplicationBegins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.partner("71", "docs", nil)
	b, session := w.shop()
	b.opens("71")
	asked := b.get("/saml/slo?"+w.logoutRequest(session).Encode()).confirm().isAsked("docs", false)
	b.answers("docs", asked, "Success").logoutStatus("Success")

	b, session = w.shop()
	b.opens("71")
	asked = b.get("/saml/slo?"+w.logoutRequest(session).Encode()).confirm().isAsked("docs", false)
	b.answers("docs", asked, "Responder").logoutStatus("Success", "PartialLogout")
}

// A browser that comes back without an application's answer goes on, and the application has not confirmed. An answer
// that comes later counts, and an answer counts once.
func TestABrowserThatComesBackWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b, session := w.shop()
	w.partner("71", "docs", nil)
	w.partner("72", "slow", nil)
	b.opens("71", "72")
	first := b.get("/saml/slo?"+w.logoutRequest(session).Encode()).confirm().isAsked("docs", false)
	onward := "/saml/sign-out/" + w.signOut()
	second := b.get(onward).isAsked("slow", false)
	again := b.answers("docs", first, "Success").isAsked("slow", false)
	require.NotEqual(t, second, again)
	b.answers("docs", first, "Success").shows(400, "belongs to no request")
	b.answers("slow", again, "Success").logoutStatus("Success")
	b.get(onward).shows(200, "You are signed out")

	b, session = w.shop()
	b.opens("71")
	b.get("/saml/slo?"+w.logoutRequest(session).Encode()).confirm().isAsked("docs", false)
	b.get("/saml/sign-out/"+w.signOut()).logoutStatus("Success", "PartialLogout")
}

// signOut is the id of the only sign-out that goes on in a browser.
func (w *world) signOut() string {
	w.t.Helper()
	all := testkit.Stored(w.t, w.Service, "acme", "sign_outs")
	require.Len(w.t, all, 1)
	for id := range all {
		return id
	}
	return ""
}

// receiver is an application's address that is reached from server to server.
func (w *world) receiver(answer string) (address string, heard <-chan string) {
	w.t.Helper()
	requests := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			requests <- r.Header.Get("Content-Type") + " " + r.Header.Get("SOAPAction") + " " + string(body)
		}
		_, _ = io.WriteString(rw, answer)
	}))
	w.t.Cleanup(server.Close)
	return server.URL, requests
}

func (w *world) hears(heard <-chan string) string {
	w.t.Helper()
	select {
	case text := <-heard:
		return text
	case <-time.After(wait.Long):
		w.t.Fatal("nothing was heard")
		return ""
	}
}

// Applications are told from server to server by SOAP if they have a service for it, and by a form if the browser does
// not come back.
func TestApplicationsAreToldFromServerToServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	soap, heard := w.receiver(`<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>` +
		`<LogoutResponse xmlns="urn:oasis:names:tc:SAML:2.0:protocol" ID="_1" Version="2.0"><Status>` +
		`<StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></Status></LogoutResponse></e:Body></e:Envelope>`)
	form, late := w.receiver("")
	b, _ := w.shop()
	w.partner("71", "soap", func(c *questions.Client) { c.SignIn.SLOSOAPURL, c.SignIn.SLOURL = soap, "" })
	w.partner("72", "late", func(c *questions.Client) { c.SignIn.SLOURL = form })
	b.opens("71", "72")
	first := b.signsOut().isAsked("shop", false)
	b.answers("shop", first, "Success")
	require.True(t, strings.HasPrefix(b.at, form+"?SAMLRequest="), "it does not go to the one with SOAP: %s", b.at)
	text := w.hears(heard)
	require.Contains(t, text, "text/xml; charset=utf-8 http://www.oasis-open.org/committees/security <soap:Envelope")
	require.Regexp(t, `<soap:Body><samlp:LogoutRequest .*<ds:Signature .*>ann</saml:NameID>`, text)
	require.Empty(t, late)
	w.signOut()
	w.Clock.Advance(3 * time.Minute) // the browser stays there
	w.RunTask("give up sign-outs in browsers")
	require.Contains(t, w.hears(late), "application/x-www-form-urlencoded  SAMLRequest=")
	require.Empty(t, testkit.Stored(t, w.Service, "acme", "sign_outs"))
	b.get("/saml/sign-out/x").shows(200, "You are signed out")

	b, session := w.shop()
	b.opens("71")
	w.admin().Post("/v1/sessions/end", object{"user_ids": []string{"20"}}).OK(nil)
	require.Contains(t, w.hears(heard), session)
}

// A request by a form of another site comes without cookies. The browser brings them with the next request, so its own
// session ends in the browser.
func TestALogoutRequestByAForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.partner("71", "docs", nil)
	b, session := w.shop()
	b.opens("71")
	query := w.logoutRequest(session)
	inflated, err := base64.StdEncoding.DecodeString(query.Get("SAMLRequest"))
	w.must(err)
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(inflated)))
	w.must(err)
	r, err := http.NewRequest(http.MethodPost, base+"/saml/slo",
		strings.NewReader(url.Values{"SAMLRequest": {base64.StdEncoding.EncodeToString(text)}}.Encode()))
	w.must(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	stranger := w.browser()
	stranger.do(r)
	require.Contains(t, stranger.at, "/saml/sign-out?logout=")
	b.get(stranger.at).confirm().isAsked("docs", false)
	require.Empty(t, w.sessions())
	w.browser().get("/saml/sign-out?logout=x").shows(200, "You are signed out")
}
