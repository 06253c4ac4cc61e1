package saml

import "time"

// The namespaces of XML.
const (
	nsProtocol  = "urn:oasis:names:tc:SAML:2.0:protocol"
	nsAssertion = "urn:oasis:names:tc:SAML:2.0:assertion"
	nsMetadata  = "urn:oasis:names:tc:SAML:2.0:metadata"
	nsSignature = "http://www.w3.org/2000/09/xmldsig#"
)

// The bindings (SAML bindings §3.4, §3.5).
const (
	bindingRedirect = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
	bindingPost     = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"
)

// The formats of name identifiers (SAML core §8.3). The first wrong one is common, and means the same.
const (
	formatUnspecified    = "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified"
	formatUnspecified2   = "urn:oasis:names:tc:SAML:2.0:nameid-format:unspecified"
	formatEmail          = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
	formatPersistent     = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
	formatTransient      = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
	confirmationByBearer = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
)

// Bounds of what applications send, in bytes.
const (
	maxEncoded    = 128 << 10
	maxMessage    = 64 << 10
	maxRelayState = 4 << 10
	maxID         = 256
)

const (
	// good is how long a response may be used.
	good = 5 * time.Minute
	// skew is by how much the clocks of applications may differ.
	skew = 5 * time.Minute
	// maxAge is how long a request may be shown again, such as by a browser that reopens its tabs. Its id is remembered
	// for as long.
	maxAge = 24 * time.Hour
	// logoutAge is how long a LogoutRequest, and the answer to one of ours, is taken.
	logoutAge = 10 * time.Minute
)
