package saml_test

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/beevik/etree"
	crewjam "github.com/crewjam/saml"
	dsig "github.com/russellhaering/goxmldsig"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
	"github.com/idplatform/idplatform/services/sign-in/internal/saml"
)

// signed makes an application that signs, and must.
func signed(t testing.TB) *world {
	t.Helper()
	w := newWorld(t)
	w.client.SignIn.SPCerts, w.client.SignIn.SignedRequests = []string{spPair().pem()}, true
	return w
}

func (w *world) signedPost(edit func(*crewjam.ServiceProvider)) string {
	w.t.Helper()
	sp := w.sp(func(sp *crewjam.ServiceProvider) {
		signing(sp)
		if edit != nil {
			edit(sp)
		}
	})
	r, err := sp.MakeAuthenticationRequest(
		sp.GetSSOBindingLocation(crewjam.HTTPPostBinding), crewjam.HTTPPostBinding, crewjam.HTTPPostBinding)
	require.NoError(w.t, err)
	return text(w.t, r.Element())
}

func withSHA1(sp *crewjam.ServiceProvider) { sp.SignatureMethod = dsig.RSASHA1SignatureMethod }

func text(t testing.TB, el *etree.Element) string {
	t.Helper()
	doc := etree.NewDocument()
	doc.SetRoot(el.Copy())
	s, err := doc.WriteToString()
	require.NoError(t, err)
	return s
}

func (w *world) refused(in saml.Inbound, about string) {
	w.t.Helper()
	_, err := w.provider.SSO(w.ctx, issuer, in)
	requirePage(w.t, err, about)
}

func TestSignaturesOfQueries(t *testing.T) {
	t.Parallel()
	w := signed(t)
	make := func(edit func(*crewjam.ServiceProvider)) string {
		in, _ := w.redirect(w.sp(func(sp *crewjam.ServiceProvider) {
			signing(sp)
			if edit != nil {
				edit(sp)
			}
		}), "state")
		return in.Query
	}
	good := make(nil)
	w.sso(saml.Inbound{Query: good})
	w.sso(saml.Inbound{Query: "utm=1&" + good + "&x=y"}) // others' parameters are not signed
	parts := map[string]string{}
	for part := range strings.SplitSeq(good, "&") {
		name, value, _ := strings.Cut(part, "=")
		parts[name] = value
	}
	w.sso(saml.Inbound{Query: "Signature=" + parts["Signature"] + "&SigAlg=" + parts["SigAlg"] + "&RelayState=" +
		parts["RelayState"] + "&SAMLRequest=" + parts["SAMLRequest"]}) // in any order
	w.sso(saml.Inbound{Query: strings.ReplaceAll(good, "%2F", "%2f")}) // the same values in another encoding
	another := make(nil)
	request := another[:strings.Index(another, "&")]
	for about, query := range map[string]string{
		"relay state":     strings.Replace(good, "RelayState=state", "RelayState=other", 1),
		"no relay state":  strings.Replace(good, "&RelayState=state", "", 1),
		"another request": request + good[strings.Index(good, "&"):],
		"no signature":    good[:strings.Index(good, "&Signature=")],
		"no algorithm":    strings.Replace(good, "&SigAlg="+parts["SigAlg"], "", 1),
		"unsigned":        good[:strings.Index(good, "&SigAlg=")],
		"empty signature": good[:strings.Index(good, "&Signature=")] + "&Signature=",
		"other algorithm": strings.Replace(good, "rsa-sha256", "rsa-sha512", 1),
		"of another key":  make(func(sp *crewjam.ServiceProvider) { sp.Key = otherPair().key }),
		"SHA-1":           make(withSHA1),
		"HMAC":            strings.Replace(good, "rsa-sha256", "hmac-sha256", 1),
		"twice":           good + "&Signature=" + parts["Signature"],
	} {
		w.refused(saml.Inbound{Query: query}, about)
	}
	w.client.SignIn.SPCerts = nil
	w.refused(saml.Inbound{Query: good}, "nothing to check it with")
	w.client.SignIn.SPCerts = []string{"nonsense", otherPair().pem()}
	w.refused(saml.Inbound{Query: good}, "another certificate")
	w.client.SignIn.SPCerts, w.client.SignIn.SignedRequests = []string{spPair().pem()}, false
	w.refused(saml.Inbound{Query: strings.Replace(good, "RelayState=state", "RelayState=other", 1)},
		"wrong, though none is needed")
	w.client.SignIn.SPCerts = []string{"no certificate of a key that is known"}
	w.refused(saml.Inbound{Query: good}, "a certificate that cannot be used")
	w.client.SignIn.SPCerts = nil
	w.sso(saml.Inbound{Query: good}) // none is needed, and it cannot be checked
}

func TestSignaturesOfMessages(t *testing.T) {
	t.Parallel()
	w := signed(t)
	good := w.signedPost(nil)
	w.sso(post(good))
	w.sso(query(t, good)) // crewjam and others leave it in the message there, too
	start, end := strings.Index(good, "<ds:Signature"), strings.Index(good, "</ds:Signature>")+len("</ds:Signature>")
	info := good[strings.Index(good, "<ds:KeyInfo>") : strings.Index(good, "</ds:KeyInfo>")+len("</ds:KeyInfo>")]
	_, value, _ := strings.Cut(good, "<ds:SignatureValue>")
	value, _, _ = strings.Cut(value, "</ds:SignatureValue>")
	w.sso(post(strings.Replace(good, info, "", 1)))                                                    // not said
	w.sso(post(strings.Replace(good, info, "<ds:KeyInfo><ds:KeyName>x</ds:KeyName></ds:KeyInfo>", 1))) // otherwise
	forged := w.signedPost(func(sp *crewjam.ServiceProvider) {
		sp.Key, sp.Certificate = otherPair().key, otherPair().cert
	})
	aimed := func(services ...crewjam.Endpoint) string {
		return w.signedPost(func(sp *crewjam.ServiceProvider) {
			sp.IDPMetadata.IDPSSODescriptors[0].SingleSignOnServices = services
		})
	}
	globex := crewjam.Endpoint{
		Binding: crewjam.HTTPPostBinding, Location: "https://id.example.com/sign-in/globex/saml/sso",
	}
	sha1 := w.signedPost(withSHA1)
	for about, message := range map[string]string{
		"unsigned":          good[:start] + good[end:],
		"of another key":    forged,
		"SHA-1":             sha1,
		"SHA-1 digest":      strings.Replace(good, "2001/04/xmlenc#sha256", "2000/09/xmldsig#sha1", 1),
		"tampered":          strings.Replace(good, entity+"</saml:Issuer>", entity+"</saml:Issuer><!-- -->", 1) + "",
		"passive":           strings.Replace(good, "<samlp:AuthnRequest ", `<samlp:AuthnRequest IsPassive="true" `, 1),
		"element":           strings.Replace(good, "</samlp:AuthnRequest>", "<samlp:Scoping/></samlp:AuthnRequest>", 1),
		"value":             strings.Replace(good, value, base64.StdEncoding.EncodeToString(make([]byte, 256)), 1),
		"empty value":       strings.Replace(good, value, "", 1),
		"two signatures":    good[:end] + good[start:end] + good[end:],
		"whole document":    regexpURI.ReplaceAllString(good, `URI=""`),
		"elsewhere":         regexpURI.ReplaceAllString(good, `URI="#other"`),
		"external":          regexpURI.ReplaceAllString(good, `URI="https://evil.example/x"`),
		"XSLT":              strings.Replace(good, "xmldsig#enveloped-signature", "xslt", 1),
		"no transforms":     transforms.ReplaceAllString(good, ""),
		"object":            strings.Replace(good, "</ds:Signature>", "<ds:Object>x</ds:Object></ds:Signature>", 1),
		"other destination": aimed(globex),
		"no destination":    aimed(),
		"other's ACS": w.signedPost(func(sp *crewjam.ServiceProvider) {
			sp.AcsURL = url.URL{Scheme: "https", Host: "evil.example"}
		}),
	} {
		if about == "tampered" { // comments are no part of what is signed, and change nothing
			w.sso(post(message))
			continue
		}
		w.refused(post(message), about)
	}
	w.client.SignIn.SignedRequests = false
	w.refused(post(forged), "wrong, though none is needed")
	w.sso(post(good[:start] + good[end:]))
}

// wrappings are the signature wrapping attacks XSW 1–8 (Somorovsky et al., USENIX Security 2012) on a message instead
// of an assertion: the signed one is moved to where its signature is still right, and a forged one takes its place.
// genuine is the signed message with its signature sig, bare the same without it, forged the attacker's.
func wrappings(t testing.TB, genuine, forged string) map[string]string {
	t.Helper()
	read := func(text string) *etree.Element {
		doc := etree.NewDocument()
		require.NoError(t, doc.ReadFromString(text))
		return doc.Root()
	}
	signature := func(root *etree.Element) *etree.Element { return root.FindElement("./Signature") }
	bare := read(genuine)
	sig := signature(bare).Copy()
	bare.RemoveChild(signature(bare))
	build := func(make func(evil, bare, sig *etree.Element)) string {
		evil := read(forged)
		if old := signature(evil); old != nil {
			evil.RemoveChild(old)
		}
		make(evil, bare.Copy(), sig.Copy())
		return text(t, evil)
	}
	behindIssuer := func(evil, el *etree.Element) { evil.InsertChildAt(1, el) }
	sameID := func(evil *etree.Element) { evil.CreateAttr("ID", bare.SelectAttrValue("ID", "")) }
	all := map[string]string{
		"1: in the signature": build(func(evil, bare, sig *etree.Element) {
			sig.AddChild(bare)
			behindIssuer(evil, sig)
		}),
		"2: before the signature": build(func(evil, bare, sig *etree.Element) {
			behindIssuer(evil, sig)
			evil.InsertChildAt(1, bare)
		}),
		"3: with its signature, first": build(func(evil, bare, sig *etree.Element) {
			bare.InsertChildAt(1, sig)
			evil.InsertChildAt(0, bare)
		}),
		"4: around the forged one": build(func(evil, bare, sig *etree.Element) {
			bare.InsertChildAt(1, sig)
			bare.AddChild(evil.Copy())
			*evil = *bare
		}),
		"5: last, the signature stays": build(func(evil, bare, sig *etree.Element) {
			behindIssuer(evil, sig)
			evil.AddChild(bare)
		}),
		"6: in the key": build(func(evil, bare, sig *etree.Element) {
			sig.FindElement("./KeyInfo").AddChild(bare)
			behindIssuer(evil, sig)
		}),
		"7: in Extensions": build(func(evil, bare, sig *etree.Element) {
			bare.InsertChildAt(1, sig)
			extensions := etree.NewElement("samlp:Extensions")
			extensions.AddChild(bare)
			behindIssuer(evil, extensions)
		}),
		"8: in an Object": build(func(evil, bare, sig *etree.Element) {
			sig.CreateElement("ds:Object").AddChild(bare)
			behindIssuer(evil, sig)
		}),
		"same id": build(func(evil, bare, sig *etree.Element) {
			sameID(evil)
			behindIssuer(evil, sig)
			evil.AddChild(bare)
		}),
		"same id, in an Object": build(func(evil, bare, sig *etree.Element) {
			sameID(evil)
			sig.CreateElement("ds:Object").AddChild(bare)
			behindIssuer(evil, sig)
		}),
		"same id, in Extensions with its signature": build(func(evil, bare, sig *etree.Element) {
			sameID(evil)
			bare.InsertChildAt(1, sig)
			evil.CreateElement("samlp:Extensions").AddChild(bare)
		}),
	}
	return all
}

func TestSignatureWrapping(t *testing.T) {
	t.Parallel()
	w := signed(t)
	genuine := w.signedPost(nil)
	w.sso(post(genuine))
	forged := strings.Replace(w.authn(`ForceAuthn="true"`, ""), entity, entity, 1)
	for about, message := range wrappings(t, genuine, forged) {
		for _, demanded := range []bool{true, false} {
			w.client.SignIn.SignedRequests = demanded
			for _, in := range []saml.Inbound{post(message), query(t, message)} {
				r, err := w.provider.SSO(w.ctx, issuer, in)
				require.EqualError(t, err, "The signature of the application's message is not right.", about)
				require.Equal(t, protocol.Request{}, r)
			}
		}
	}
}

var (
	regexpURI  = regexp.MustCompile(`URI="#[^"]*"`)
	transforms = regexp.MustCompile(`<ds:Transforms>.*</ds:Transforms>`)
)
