package saml

import (
	"context"
	"encoding/base64"
	"encoding/xml"
)

// MetadataType is the media type of metadata (SAML metadata, appendix A).
const MetadataType = "application/samlmetadata+xml; charset=utf-8"

// The elements of metadata. Those of crewjam would write a validUntil in the year 1.
type entityDescriptor struct {
	XMLName  xml.Name      `xml:"urn:oasis:names:tc:SAML:2.0:metadata EntityDescriptor"`
	EntityID string        `xml:"entityID,attr"`
	IdP      idpDescriptor `xml:"IDPSSODescriptor"`
}

type idpDescriptor struct {
	Protocols   string       `xml:"protocolSupportEnumeration,attr"`
	WantsSigned bool         `xml:"WantAuthnRequestsSigned,attr"`
	Keys        []keyElement `xml:"KeyDescriptor"`
	Logout      []endpoint   `xml:"SingleLogoutService"`
	Formats     []string     `xml:"NameIDFormat"`
	SignOn      []endpoint   `xml:"SingleSignOnService"`
}

type keyElement struct {
	Use  string `xml:"use,attr"`
	Info struct {
		Certificate string `xml:"X509Data>X509Certificate"`
	} `xml:"http://www.w3.org/2000/09/xmldsig# KeyInfo"`
}

type endpoint struct {
	Binding  string `xml:"Binding,attr"`
	Location string `xml:"Location,attr"`
}

// Metadata describes the tenant's identity provider, with all its keys, so that applications that read it accept the
// next key before it is active. It has no end: applications keep it. The error is apperr.NotFound for a tenant without
// applications, or Unavailable.
func (p *Provider) Metadata(ctx context.Context, issuer string) ([]byte, error) {
	k, err := p.tenant(ctx)
	if err != nil {
		return nil, err
	}
	d := entityDescriptor{EntityID: entityID(issuer), IdP: idpDescriptor{
		Protocols: nsProtocol,
		Formats:   []string{formatUnspecified, formatEmail, formatPersistent, formatTransient},
		SignOn:    []endpoint{{bindingRedirect, ssoURL(issuer)}, {bindingPost, ssoURL(issuer)}},
		Logout:    []endpoint{{bindingRedirect, sloURL(issuer)}, {bindingPost, sloURL(issuer)}},
	}}
	for _, cert := range k.certs {
		key := keyElement{Use: "signing"}
		key.Info.Certificate = base64.StdEncoding.EncodeToString(cert)
		d.IdP.Keys = append(d.IdP.Keys, key)
	}
	body, err := xml.MarshalIndent(d, "", " ")
	return append([]byte(xml.Header), body...), err
}
