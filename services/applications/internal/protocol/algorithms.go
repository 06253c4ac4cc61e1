package protocol

import (
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// The namespaces of algorithm identifiers: XML Signature 1.1 §6, XML Encryption 1.1 §5.8, RFC 6931, RFC 9231.
const (
	xmldsig     = "http://www.w3.org/2000/09/xmldsig#"
	xmldsig11   = "http://www.w3.org/2009/xmldsig11#"
	xmldsigMore = "http://www.w3.org/2001/04/xmldsig-more#"
	moreOf2007  = "http://www.w3.org/2007/05/xmldsig-more#"
	moreOf2021  = "http://www.w3.org/2021/04/xmldsig-more#"
	xmlenc      = "http://www.w3.org/2001/04/xmlenc#"
)

// algorithm is a signature or digest algorithm and the kind of key that it needs.
type algorithm struct {
	uri  string
	key  string // rsa, ecdsa, ed25519; "" for a digest
	sha1 bool
}

var digests = []algorithm{
	{uri: xmldsig + "sha1", sha1: true},
	{uri: xmldsigMore + "sha224"}, {uri: xmlenc + "sha256"}, {uri: xmldsigMore + "sha384"}, {uri: xmlenc + "sha512"},
	{uri: moreOf2007 + "sha3-256"}, {uri: moreOf2007 + "sha3-384"}, {uri: moreOf2007 + "sha3-512"},
}

var signatures = []algorithm{
	{xmldsig + "rsa-sha1", rsaKey, true}, {xmldsigMore + "ecdsa-sha1", ecdsaKey, true},
	{xmldsigMore + "rsa-sha224", rsaKey, false}, {xmldsigMore + "rsa-sha256", rsaKey, false},
	{xmldsigMore + "rsa-sha384", rsaKey, false}, {xmldsigMore + "rsa-sha512", rsaKey, false},
	{moreOf2007 + "sha256-rsa-MGF1", rsaKey, false}, {moreOf2007 + "sha384-rsa-MGF1", rsaKey, false},
	{moreOf2007 + "sha512-rsa-MGF1", rsaKey, false},
	{xmldsigMore + "ecdsa-sha224", ecdsaKey, false}, {xmldsigMore + "ecdsa-sha256", ecdsaKey, false},
	{xmldsigMore + "ecdsa-sha384", ecdsaKey, false}, {xmldsigMore + "ecdsa-sha512", ecdsaKey, false},
	{moreOf2021 + "eddsa-ed25519", ed25519Key, false},
}

// tokenAlgorithms are the JSON Web Signature algorithms with public keys (RFC 7518 §3.1, RFC 8037 §3.1).
var tokenAlgorithms = []string{
	"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
}

// find looks an algorithm up by its identifier, or by the fragment after #, which many products write instead.
func find(list []algorithm, name string) *algorithm {
	for i := range list {
		_, short, _ := strings.Cut(list[i].uri, "#")
		if name == list[i].uri || strings.EqualFold(name, short) {
			return &list[i]
		}
	}
	return nil
}

func (p *Prop) checkAlgorithms(faults *apperr.Faults, kind string, rules Rules) {
	check := func(location string, list []algorithm, name string) {
		switch a := find(list, name); {
		case name == "":
		case a == nil:
			faults.Add(location, "must be an algorithm of XML Signature")
		case a.sha1 && !rules.AllowSHA1:
			faults.Add(location, "must not use SHA-1")
		}
	}
	check("digest_algorithm", digests, p.DigestAlgorithm)
	if kind == OIDC || kind == OAuth2 {
		faults.Check(p.SignatureAlgorithm == "" || slices.Contains(tokenAlgorithms, p.SignatureAlgorithm),
			"signature_algorithm", "must be one of %s", strings.Join(tokenAlgorithms, ", "))
		return
	}
	check("signature_algorithm", signatures, p.SignatureAlgorithm)
}
