package signin_test

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"html"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
