package saml_test

import (
	"encoding/xml"
	"strings"
	"testing"
	"time"

	crewjam "github.com/crewjam/saml"
	dsig "github.com/russellhaering/goxmldsig"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
	"github.com/idplatform/idplatform/services/sign-in/internal/saml"
)

func TestGroupsThatNobodyKnows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.noGroups = true
	r, err := w.provider.Start(w.ctx, "2001", "")
	require.NoError(t, err)
	_, err = w.provider.Grant(w.ctx, issuer, r, w.person())
	require.NoError(t, err, "they are not told")
	w.client.SAML.ResponseAttributes = []questions.Attribute{{Attribute: "groups"}}
	_, err = w.provider.Grant(w.ctx, issuer, r, w.person())
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err), "an application would take none for true")
}

func TestCrewjamAcceptsTheResponse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.client.SAML.ResponseAttributes = []questions.Attribute{
		{Attribute: "mail", Value: "email", NameFormat: "urn:oasis:names:tc:SAML:2.0:attrname-format:basic"},
		{Attribute: "groups", Value: "groups", NameFormat: "basic"},
		{Attribute: "Role", Value: "arn:aws:iam::1:role/x,arn:aws:iam::1:saml-provider/y"},
		{Attribute: "weird", Value: "a\r\nb\t<&>\x00\"'"},
	}
	for name, make := range map[string]func(*crewjam.ServiceProvider) (saml.Inbound, string){
		"redirect": func(sp *crewjam.ServiceProvider) (saml.Inbound, string) { return w.redirect(sp, "a b&c=d/é") },
		"post": func(sp *crewjam.ServiceProvider) (saml.Inbound, string) {
			r, err := sp.MakeAuthenticationRequest(
				sp.GetSSOBindingLocation(crewjam.HTTPPostBinding), crewjam.HTTPPostBinding, crewjam.HTTPPostBinding)
			require.NoError(t, err)
			in := form(t, r.Post(""))
			in.Form.Set("RelayState", "a b&c=d/é")
			return in, r.ID
		},
	} {
		for _, edit := range []func(*crewjam.ServiceProvider){nil, signing} {
			w.client.SignIn.SPCerts, w.client.SignIn.SignedRequests = nil, false
			if edit != nil {
				w.client.SignIn.SPCerts = []string{otherPair().pem(), spPair().pem()}
				w.client.SignIn.SignedRequests = true
			}
			sp := w.sp(edit)
			in, id := make(sp)
			a := w.grant(w.sso(in), nil)
			require.Equal(t, "a b&c=d/é", a.Post.Get("RelayState"))
			assertion, err := accept(sp, a, id)
			require.NoError(t, err, name)
			require.Equal(t, "li.wei", assertion.Subject.NameID.Value)
			var got []string
			for _, attribute := range assertion.AttributeStatements[0].Attributes {
				for _, v := range attribute.Values {
					got = append(got, attribute.Name+"="+v.Value)
				}
			}
			require.Equal(t, []string{
				"mail=Li@example.com", "groups=company/rd", "groups=company",
				"Role=arn:aws:iam::1:role/x,arn:aws:iam::1:saml-provider/y",
				"weird=a\nb\t<&>\uFFFD\"'", // crewjam's own copy of the assertion has no CR
			}, got)
			require.Contains(t, response(t, a), "a&#xD;\nb\t&lt;&amp;&gt;\uFFFD\"'")
			_, err = accept(sp, a, "another id")
			require.Error(t, err)
		}
	}
}

// Both are signed, so that it does not matter which of them a product checks.
func TestAssertionIsSignedByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sp := w.sp(nil)
	in, id := w.redirect(sp, "")
	a := w.grant(w.sso(in), nil)
	text := response(t, a)
	require.Equal(t, 2, strings.Count(text, "<ds:Signature "))
	require.Equal(t, 2, strings.Count(text, `Algorithm="`+dsig.RSASHA256SignatureMethod+`"`))
	require.NotContains(t, text, "sha1")
	// Without the response's signature crewjam looks at the assertion's.
	start := strings.Index(text, "<ds:Signature ")
	end := strings.Index(text, "</ds:Signature>") + len("</ds:Signature>")
	_, err := sp.ParseXMLResponse([]byte(text[:start]+text[end:]), []string{id}, sp.AcsURL)
	require.NoError(t, err)
	_, err = sp.ParseXMLResponse([]byte(strings.Replace(text, ">li.wei<", ">admin<", 1)), []string{id}, sp.AcsURL)
	require.Error(t, err)
}

func TestTimesAndAudience(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sp := w.sp(nil)
	in, id := w.redirect(sp, "")
	assertion, err := accept(sp, w.grant(w.sso(in), nil), id)
	require.NoError(t, err)
	now := w.clock.Now().Std()
	statement := assertion.AuthnStatements[0]
	require.Equal(t, now.Add(30*time.Minute), statement.SessionNotOnOrAfter.UTC())
	require.Equal(t, now.Add(-time.Minute), statement.AuthnInstant.UTC())
	require.Equal(t, "session-1", statement.SessionIndex)
	require.Equal(t, now.Add(5*time.Minute), assertion.Conditions.NotOnOrAfter.UTC())
	require.Equal(t, entity, assertion.Conditions.AudienceRestrictions[0].Audience.Value)
	data := assertion.Subject.SubjectConfirmations[0].SubjectConfirmationData
	require.Equal(t, []string{id, acs}, []string{data.InResponseTo, data.Recipient})
	require.Equal(t, now.Add(5*time.Minute), data.NotOnOrAfter.UTC())

	in, id = w.redirect(sp, "")
	assertion, err = accept(sp, w.grant(w.sso(in), func(p *protocol.Person) {
		p.SessionEnds = w.clock.Now().Add(time.Minute)
	}), id)
	require.NoError(t, err)
	require.Equal(t, now.Add(time.Minute), assertion.AuthnStatements[0].SessionNotOnOrAfter.UTC())
}

func TestOwnKeySigns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.client.SAML.SigningCert, w.ownKey = otherPair().pem(), otherPair().keyPEM(t)
	w.client.SAML.SignatureAlgorithm = "rsa-sha512"
	sp := w.sp(nil)
	in, id := w.redirect(sp, "")
	r := w.sso(in)
	w.ownKey = ""
	_, err := w.provider.Grant(w.ctx, issuer, r, w.person())
	require.ErrorContains(t, err, "applications service")
	w.ownKey = spPair().keyPEM(t)
	_, err = w.provider.Grant(w.ctx, issuer, r, w.person())
	require.Error(t, err, "another key than the certificate's")
	w.ownKey = otherPair().keyPEM(t)
	a := w.grant(r, nil)
	require.Contains(t, response(t, a), dsig.RSASHA512SignatureMethod)
	_, err = accept(sp, a, id)
	require.Error(t, err, "the tenant's certificate is not that of the key")
	own := w.sp(func(sp *crewjam.ServiceProvider) {
		text := strings.ReplaceAll(otherPair().pem(), "-----BEGIN CERTIFICATE-----", "")
		text = strings.ReplaceAll(text, "-----END CERTIFICATE-----", "")
		sp.IDPMetadata.IDPSSODescriptors[0].KeyDescriptors[0].KeyInfo.X509Data.X509Certificates[0].Data = text
	})
	_, err = accept(own, a, id)
	require.ErrorContains(t, err, "not valid at this time", "all but the test's certificate is right")
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const status = "urn:oasis:names:tc:SAML:2.0:status:"
	for why, second := range map[protocol.Refusal]string{
		protocol.AccessDenied: "RequestDenied", protocol.LoginRequired: "NoPassive",
		protocol.ConsentRequired: "NoPassive", protocol.UnmetACR: "NoAuthnContext", protocol.Unavailable: "",
	} {
		sp := w.sp(func(sp *crewjam.ServiceProvider) {})
		in, id := w.redirect(sp, "r")
		a, err := w.provider.Refuse(w.ctx, issuer, w.sso(in), why)
		require.NoError(t, err)
		require.Equal(t, []string{acs, "r"}, []string{a.URL, a.Post.Get("RelayState")})
		got := statusOf(t, a)
		require.Equal(t, status+"Responder", got.Value)
		if second == "" {
			require.Nil(t, got.StatusCode)
		} else {
			require.Equal(t, status+second, got.StatusCode.Value)
		}
		require.Contains(t, response(t, a), "<ds:Signature ")
		require.NotContains(t, response(t, a), "Assertion ")
		_, err = accept(sp, a, id)
		require.Equal(t, crewjam.ErrBadStatus{Status: status + "Responder"}, err)
	}
}

func statusOf(t testing.TB, a protocol.Answer) crewjam.StatusCode {
	t.Helper()
	var r crewjam.Response
	require.NoError(t, xml.Unmarshal([]byte(response(t, a)), &r))
	return r.Status.StatusCode
}

func TestStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, err := w.provider.Start(w.ctx, "2001", "/deep")
	require.NoError(t, err)
	sp := w.sp(func(sp *crewjam.ServiceProvider) { sp.AllowIDPInitiated = true })
	for range 2 { // nothing is used up: there is no request
		a := w.grant(r, nil)
		require.Equal(t, "/deep", a.Post.Get("RelayState"))
		require.NotContains(t, response(t, a), "InResponseTo")
		_, err = accept(sp, a)
		require.NoError(t, err)
	}
	_, err = w.provider.Start(w.ctx, "2001", strings.Repeat("x", 5000))
	requirePage(t, err)
	_, err = w.provider.Start(w.ctx, "9", "")
	require.ErrorIs(t, err, protocol.ErrUnknown)
	w.client.SignIn.IdPInitiated = false
	_, err = w.provider.Start(w.ctx, "2001", "")
	requirePage(t, err)
}

func TestMessageIsAFormat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	request := `<samlp:AuthnRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" ` +
		`xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="id-1" Version="2.0" IssueInstant="` +
		w.clock.Now().String() + `" ForceAuthn="1" IsPassive="false"><saml:Issuer>` + entity + `</saml:Issuer>` +
		`<saml:Subject><saml:NameID Format="` + unspecified + `">li.wei</saml:NameID></saml:Subject>` +
		`<samlp:NameIDPolicy Format="` + persistent + `"/><samlp:RequestedAuthnContext>` +
		`<saml:AuthnContextClassRef>https://refeds.org/profile/mfa</saml:AuthnContextClassRef>` +
		`</samlp:RequestedAuthnContext></samlp:AuthnRequest>`
	in := post(request)
	in.Form.Set("RelayState", "state")
	r := w.sso(in)
	basic.Golden(t, "testdata/message.json", r.Message)
	require.True(t, r.Fresh)
	require.False(t, r.Passive)
	require.Equal(t, "li.wei", r.LoginHint)
	require.Equal(t, []string{"urn:idplatform:aal:2", "phr"}, r.ACR)
	require.True(t, r.ACREssential)
}
