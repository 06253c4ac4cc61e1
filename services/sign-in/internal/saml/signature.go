package saml

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"slices"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/idplatform/idplatform/services/questions"
)

var (
	errBadSignature = page("The signature of the application's message is not right.")
	errUnsigned     = page("The application's message must be signed, and is not.")
)

// maxCertificates bounds the certificates that a signature is tried with.
const maxCertificates = 10

// The algorithms that signatures of applications may have. SHA-1 is not among them.
var (
	signatureMethods = map[string]x509.SignatureAlgorithm{
		dsig.RSASHA256SignatureMethod: x509.SHA256WithRSA,
		dsig.RSASHA384SignatureMethod: x509.SHA384WithRSA,
		dsig.RSASHA512SignatureMethod: x509.SHA512WithRSA,
	}
	digestMethods = []string{
		"http://www.w3.org/2001/04/xmlenc#sha256", "http://www.w3.org/2001/04/xmldsig-more#sha384",
		"http://www.w3.org/2001/04/xmlenc#sha512",
	}
	canonicalMethods = []string{
		string(dsig.CanonicalXML10ExclusiveAlgorithmId), string(dsig.CanonicalXML10RecAlgorithmId),
		string(dsig.CanonicalXML11AlgorithmId),
	}
)

// certificates are those with whose keys an application signs. Only the keys count, and not until when the certificates
// are good: the administrator who has registered them answers for them.
func certificates(c questions.Client) (all []*x509.Certificate) {
	for _, text := range c.SignIn.SPCerts {
		for rest := []byte(text); len(all) < maxCertificates; {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			cert, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				continue
			}
			if _, isRSA := cert.PublicKey.(*rsa.PublicKey); isRSA {
				all = append(all, cert)
			}
		}
	}
	return all
}

// authenticate checks the signatures of a message: that of the query, the enveloped one, or both. It returns the part
// of the message that may be believed, and whether it is signed. Signatures of applications that have registered no
// certificate cannot be checked, and count as none.
func authenticate(m received, root *etree.Element, c questions.Client) (*etree.Element, bool, error) {
	certs := certificates(c)
	checked := len(c.SignIn.SPCerts) > 0
	signed := false
	if len(m.signature.octets) > 0 && checked {
		if !m.signature.isOf(certs) {
			return nil, false, errBadSignature
		}
		signed = true
	}
	enveloped, err := soleSignature(root)
	if err != nil {
		return nil, false, err
	}
	if enveloped != nil && checked {
		if root, err = verified(root, certs); err != nil {
			return nil, false, err
		}
		signed = true
	}
	if !signed && c.SignIn.SignedRequests {
		return nil, false, errUnsigned
	}
	return root, signed, nil
}

// querySignature is the signature of the HTTP-Redirect binding (SAML bindings §3.4.4.1).
type querySignature struct {
	octets    []string // that it may be over; none if there is no signature
	algorithm string
	value     []byte
}

func (s querySignature) isOf(certs []*x509.Certificate) bool {
	algorithm, known := signatureMethods[s.algorithm]
	return known && slices.ContainsFunc(certs, func(cert *x509.Certificate) bool {
		return slices.ContainsFunc(s.octets, func(octets string) bool {
			return cert.CheckSignature(algorithm, []byte(octets), s.value) == nil
		})
	})
}

// soleSignature returns the signature of a message, nil if it has none. The only place for one is directly below the
// root, and ids must differ: everywhere else it could cover something that is not the message (signature wrapping).
func soleSignature(root *etree.Element) (*etree.Element, error) {
	var all []*etree.Element
	ids, twice := map[string]bool{}, false
	walk(root, func(el *etree.Element) {
		if is(el, nsSignature, "Signature") {
			all = append(all, el)
		}
		for _, a := range el.Attr {
			if a.Key == "ID" || a.Key == "Id" || a.Key == "id" {
				twice = twice || ids[a.Value]
				ids[a.Value] = true
			}
		}
	})
	switch {
	case len(all) == 0:
		return nil, nil
	case len(all) > 1 || all[0].Parent() != root || twice:
		return nil, errBadSignature
	}
	return all[0], nil
}

// verified returns what the signature of a message covers, which is all that may be believed. The certificate in the
// message plays no part.
func verified(root *etree.Element, certs []*x509.Certificate) (*etree.Element, error) {
	sole, err := soleSignature(root)
	if err != nil || sole == nil || !wellFormed(sole, root.SelectAttrValue("ID", "")) {
		return nil, errBadSignature
	}
	for _, cert := range certs {
		el := root.Copy()
		for _, sig := range children(el, nsSignature, "Signature") {
			for _, info := range children(sig, nsSignature, "KeyInfo") {
				sig.RemoveChild(info)
			}
		}
		check := dsig.NewDefaultValidationContext(&dsig.MemoryX509CertificateStore{Roots: []*x509.Certificate{cert}})
		check.Clock = dsig.NewFakeClockAt(cert.NotBefore)
		covered, err := check.Validate(el)
		if err == nil && is(covered, root.NamespaceURI(), root.Tag) &&
			covered.SelectAttrValue("ID", "") == root.SelectAttrValue("ID", "") {
			return covered, nil
		}
	}
	return nil, errBadSignature
}

// wellFormed reports whether a signature has the form that SAML demands (core §5.4): one reference, to the message as a
// whole, enveloped, with known algorithms.
func wellFormed(sig *etree.Element, id string) bool {
	info := only(sig, "SignedInfo")
	if info == nil || id == "" || len(children(sig, nsSignature, "Object")) > 0 {
		return false
	}
	reference := only(info, "Reference")
	if reference == nil || reference.SelectAttrValue("URI", "") != "#"+id {
		return false
	}
	_, known := signatureMethods[algorithmOf(info, "SignatureMethod")]
	if !known || !slices.Contains(canonicalMethods, algorithmOf(info, "CanonicalizationMethod")) ||
		!slices.Contains(digestMethods, algorithmOf(reference, "DigestMethod")) {
		return false
	}
	transforms := only(reference, "Transforms")
	if transforms == nil {
		return false
	}
	all := children(transforms, nsSignature, "Transform")
	return len(all) == 2 && len(transforms.ChildElements()) == 2 &&
		all[0].SelectAttrValue("Algorithm", "") == string(dsig.EnvelopedSignatureAltorithmId) &&
		slices.Contains(canonicalMethods, all[1].SelectAttrValue("Algorithm", ""))
}

// only returns the child with a name of XML Signature, if there is exactly one.
func only(el *etree.Element, tag string) *etree.Element {
	all := children(el, nsSignature, tag)
	if len(all) != 1 {
		return nil
	}
	return all[0]
}

func algorithmOf(el *etree.Element, tag string) string {
	child := only(el, tag)
	if child == nil {
		return ""
	}
	return child.SelectAttrValue("Algorithm", "")
}
