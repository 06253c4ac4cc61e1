package saml_test

import (
	"bytes"
	"compress/flate"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
	"github.com/idplatform/idplatform/services/sign-in/internal/saml"
)

// post puts a request into the HTTP-POST binding.
func post(text string) saml.Inbound {
	return saml.Inbound{Form: url.Values{"SAMLRequest": {base64.StdEncoding.EncodeToString([]byte(text))}}}
}

// query puts a request into the HTTP-Redirect binding.
func query(t testing.TB, text string) saml.Inbound {
	t.Helper()
	var packed bytes.Buffer
	z, err := flate.NewWriter(&packed, flate.BestCompression)
	require.NoError(t, err)
	_, err = z.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return saml.Inbound{Query: "SAMLRequest=" + url.QueryEscape(base64.StdEncoding.EncodeToString(packed.Bytes()))}
}

// authn is an AuthnRequest with more attributes and elements. Attributes that are there replace the usual ones.
func (w *world) authn(attributes, elements string) string {
	usual := ""
	for name, value := range map[string]string{
		"ID": "id-" + rand.Text(), "Version": "2.0", "IssueInstant": w.clock.Now().String(),
		"Destination": issuer + "/saml/sso",
	} {
		if !strings.Contains(attributes, name+"=") {
			usual += fmt.Sprintf(" %s=%q", name, value)
		}
	}
	return `<samlp:AuthnRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" ` +
		`xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ` + attributes + usual + `><saml:Issuer>` + entity +
		`</saml:Issuer>` + elements + `</samlp:AuthnRequest>`
}

func TestACS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for attributes, want := range map[string]string{
		"": acs,
		`AssertionConsumerServiceURL="` + acs + `"`:                                   acs,
		`AssertionConsumerServiceURL="https://sp.example.com/acs2"`:                   "https://sp.example.com/acs2",
		`AssertionConsumerServiceIndex="0"`:                                           acs,
		`AssertionConsumerServiceIndex="1"`:                                           "https://sp.example.com/acs2",
		`AssertionConsumerServiceIndex="2"`:                                           "",
		`AssertionConsumerServiceIndex="-1"`:                                          "",
		`AssertionConsumerServiceIndex="x"`:                                           "",
		`AssertionConsumerServiceURL="https://evil.example/acs"`:                      "",
		`AssertionConsumerServiceURL="` + acs + `/"`:                                  "",
		`AssertionConsumerServiceURL="` + acs + `/../x"`:                              "",
		`AssertionConsumerServiceURL="` + acs + `?x=1"`:                               "",
		`AssertionConsumerServiceURL="` + acs + `#x"`:                                 "",
		`AssertionConsumerServiceURL=" ` + acs + `"`:                                  "",
		`AssertionConsumerServiceURL="HTTPS://sp.example.com/acs"`:                    "",
		`AssertionConsumerServiceURL="http://sp.example.com/acs"`:                     "",
		`AssertionConsumerServiceURL="https://sp.example.com.evil.example/"`:          "",
		`AssertionConsumerServiceURL="https://sp.example.com@evil.example/"`:          "",
		`AssertionConsumerServiceURL="javascript:alert(1)"`:                           "",
		`AssertionConsumerServiceURL="` + acs + `" AssertionConsumerServiceIndex="0"`: "",
	} {
		r, err := w.provider.SSO(w.ctx, issuer, post(w.authn(attributes, "")))
		if want == "" {
			requirePage(t, err, attributes)
			continue
		}
		require.NoError(t, err, attributes)
		require.Equal(t, want, w.grant(r, nil).URL)
	}
	r := w.sso(post(w.authn(`ID="late"`, "")))
	w.client.SAML.ACSURL = "https://sp.example.com/moved" // while the person signs in
	_, err := w.provider.Grant(w.ctx, issuer, r, w.person())
	require.ErrorIs(t, err, protocol.ErrUnknown)
}

func TestUnknownApplications(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := post(w.authn("", ""))
	_, err := w.provider.SSO(request.System(t.Context(), "globex"), issuer, in)
	require.ErrorIs(t, err, protocol.ErrUnknown, "another tenant's")
	_, err = w.provider.SSO(w.ctx, issuer, post(strings.ReplaceAll(w.authn("", ""), entity, "https://other.example")))
	require.ErrorIs(t, err, protocol.ErrUnknown)
	w.away = true
	_, err = w.provider.SSO(w.ctx, issuer, in)
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
	w.away = false
	w.client.Enabled = false
	_, err = w.provider.SSO(w.ctx, issuer, in)
	require.ErrorIs(t, err, protocol.ErrUnknown)
}

func TestRequestsThatArePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := w.authn("", "")
	at := func(d time.Duration) string {
		return w.authn(`IssueInstant="`+w.clock.Now().Add(d).String()+`"`, "")
	}
	w.sso(post(good))
	w.sso(query(t, good))
	for range 50 { // compressed in a form, whatever bytes that makes
		compressed, err := url.ParseQuery(query(t, w.authn("", "")).Query)
		require.NoError(t, err)
		w.sso(saml.Inbound{Form: compressed})
	}
	w.sso(post(at(-23 * time.Hour)))
	w.sso(post(at(4 * time.Minute)))
	w.sso(post(w.authn(`IssueInstant="`+strings.TrimSuffix(w.clock.Now().String(), "Z")+`"`, "")))
	w.sso(post(strings.ReplaceAll(good, entity, "\n  "+entity+"\n")))
	wrapped := post(good)
	wrapped.Form.Set("SAMLRequest", wrapped.Form.Get("SAMLRequest")[:76]+"\r\n"+wrapped.Form.Get("SAMLRequest")[76:])
	w.sso(wrapped)
	for name, in := range map[string]saml.Inbound{
		"nothing":        {},
		"empty form":     {Form: url.Values{}},
		"both":           {Form: url.Values{"SAMLRequest": post(good).Form["SAMLRequest"], "SAMLResponse": {"x"}}},
		"a response":     {Form: url.Values{"SAMLResponse": post(good).Form["SAMLRequest"]}},
		"twice":          {Form: url.Values{"SAMLRequest": append(post(good).Form["SAMLRequest"], "x")}},
		"query twice":    {Query: query(t, good).Query + "&" + query(t, good).Query},
		"not base64":     {Form: url.Values{"SAMLRequest": {"%%%"}}},
		"not deflated":   {Query: "SAMLRequest=" + url.QueryEscape(post(good).Form.Get("SAMLRequest"))},
		"encoding":       {Query: query(t, good).Query + "&SAMLEncoding=gzip"},
		"bad escape":     {Query: "SAMLRequest=%zz"},
		"too long":       {Form: url.Values{"SAMLRequest": {strings.Repeat("A", 200_000)}}},
		"too long query": {Query: "SAMLRequest=" + strings.Repeat("A", 200_000)},
		"bomb":           query(t, good+strings.Repeat(" ", 100_000_000)),
		"relay":          {Query: query(t, good).Query + "&RelayState=" + strings.Repeat("A", 5000)},
		"version":        post(w.authn(`Version="1.1"`, "")),
		"no id":          post(w.authn(`ID=""`, "")),
		"bad id":         post(w.authn(`ID="1 2"`, "")),
		"long id":        post(w.authn(`ID="a`+strings.Repeat("a", 300)+`"`, "")),
		"elsewhere":      post(w.authn(`Destination="https://id.example.com/sign-in/globex/saml/sso"`, "")),
		"no time":        post(w.authn(`IssueInstant=""`, "")),
		"old":            post(at(-25 * time.Hour)),
		"future":         post(at(6 * time.Minute)),
		"no issuer":      post(strings.ReplaceAll(good, "<saml:Issuer>"+entity+"</saml:Issuer>", "")),
		"other root":     post(strings.ReplaceAll(good, "AuthnRequest", "LogoutRequest")),
		"other space":    post(strings.ReplaceAll(good, "SAML:2.0:protocol", "SAML:1.0:protocol")),
	} {
		_, err := w.provider.SSO(w.ctx, issuer, in)
		requirePage(t, err, name)
	}
}

func TestHarmfulXML(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := w.authn("", "")
	entities := `<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>`
	deep := strings.Repeat("<a>", 30) + strings.Repeat("</a>", 30)
	for name, text := range map[string]string{
		"doctype":  `<!DOCTYPE samlp:AuthnRequest>` + good,
		"external": `<!DOCTYPE x SYSTEM "https://evil.example/x.dtd">` + good,
		"XXE": `<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>` +
			strings.ReplaceAll(good, entity, "&e;"),
		"parameter":      `<!DOCTYPE x [<!ENTITY % e SYSTEM "https://evil.example/x"> %e;]>` + good,
		"laughs":         entities + strings.ReplaceAll(good, entity, "&b;"),
		"entity":         strings.ReplaceAll(good, entity, "&e;"),
		"doctype inside": strings.ReplaceAll(good, "<saml:Issuer>", `<!DOCTYPE x><saml:Issuer>`),
		"instruction":    `<?xml-stylesheet href="https://evil.example/x.xsl"?>` + good,
		"include":        strings.ReplaceAll(good, "<saml:Issuer>", `<?php echo 1 ?><saml:Issuer>`),
		"charset":        `<?xml version="1.0" encoding="UTF-7"?>` + good,
		"late":           " " + `<?xml version="1.0"?>` + good,
		"xml 1.1":        `<?xml version="1.1"?>` + good,
		"two roots":      good + good,
		"text before":    "x" + good,
		"text after":     good + "x",
		"not closed":     strings.TrimSuffix(good, "</samlp:AuthnRequest>"),
		"deep":           strings.ReplaceAll(good, "<saml:Issuer>", deep+"<saml:Issuer>"),
		"wide":           strings.ReplaceAll(good, "<saml:Issuer>", strings.Repeat("<a/>", 600)+"<saml:Issuer>"),
		"attributes":     strings.ReplaceAll(good, "<saml:Issuer>", "<saml:Issuer "+many(60)+">"),
		"two ids":        strings.ReplaceAll(good, ` ID="`, ` xmlns:e="urn:e" e:ID="x" ID="`),
		"same twice":     strings.ReplaceAll(good, ` ID="`, ` ID="x" ID="`),
		"not utf-8":      strings.ReplaceAll(good, "<saml:Issuer>", "<saml:Issuer>\xff"),
		"colons":         strings.ReplaceAll(good, "<saml:Issuer>", "<:a/><saml:Issuer>"),
		"undeclared":     strings.ReplaceAll(good, "saml:Issuer", "other:Issuer"),
	} {
		for _, in := range []saml.Inbound{post(text), query(t, text)} {
			_, err := w.provider.SSO(w.ctx, issuer, in)
			requirePage(t, err, name)
		}
	}
	for _, head := range []string{
		`<?xml version="1.0"?>`, "<?xml version='1.0' encoding='utf-8'?>\n", "<!-- hello -->",
	} {
		w.sso(post(head + good))
	}
	_, err := w.provider.SSO(w.ctx, issuer,
		post(strings.ReplaceAll(good, entity, entity+"<!---->.evil.example"))) // is not cut at the comment
	require.ErrorIs(t, err, protocol.ErrUnknown)
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `a%d="" `, i)
	}
	return b.String()
}

func TestARequestIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := post(w.authn("", ""))
	r := w.sso(in)
	w.grant(r, nil)
	_, err := w.provider.Grant(w.ctx, issuer, r, w.person())
	requirePage(t, err)
	again := w.sso(in) // reading stores nothing, so a reloaded page is shown again
	_, err = w.provider.Grant(w.ctx, issuer, again, w.person())
	requirePage(t, err)
	_, err = w.provider.Refuse(w.ctx, issuer, again, protocol.AccessDenied)
	require.NoError(t, err)

	w.clock.Advance(24 * time.Hour)
	yesterday := w.clock.Now().Add(-25 * time.Hour).String()
	_, err = w.provider.SSO(w.ctx, issuer, post(w.authn(`IssueInstant="`+yesterday+`"`, "")))
	requirePage(t, err, "an id is remembered for as long as its request is taken")
	w.clock.Advance(6 * time.Minute)
	for _, expiring := range w.provider.Expiring() {
		refs, err := expiring.Due(w.ctx, w.store, 10)
		require.NoError(t, err)
		require.Len(t, refs, 1, expiring.Name)
		require.NoError(t, expiring.Do(w.ctx, refs[0].ID))
	}
}

func TestManyAnswersAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.sso(post(w.authn("", "")))
	results := make(chan error)
	for range 6 {
		go func() {
			_, err := w.provider.Grant(w.ctx, issuer, r, w.person())
			results <- err
		}()
	}
	good := 0
	for range 6 {
		if err := <-results; err == nil {
			good++
		} else {
			requirePage(t, err)
		}
	}
	require.Equal(t, 1, good)
}
