package probe

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/xml"
	"strings"
	"time"

	"github.com/crewjam/saml"
)

// saml checks the identity provider's metadata: its endpoints and its signing certificates.
func (r *run) saml() {
	text := []byte(r.config.text("Metadata", ""))
	if address := r.config.text("MetadataUrl", ""); address != "" {
		fetched := r.step("metadata", func(ctx context.Context) (_ string, err error) {
			text, err = r.get(ctx, address, "application/samlmetadata+xml, application/xml")
			return counted(len(text), "byte"), err
		})
		if !fetched {
			return
		}
	}
	var entity *saml.EntityDescriptor
	read := r.step("identity provider", func(context.Context) (_ string, err error) {
		if entity, err = identityProvider(text, r.config.text("EntityId", "")); err != nil {
			return "", err
		}
		for _, service := range entity.IDPSSODescriptors[0].SingleSignOnServices {
			if service.Binding == saml.HTTPRedirectBinding || service.Binding == saml.HTTPPostBinding {
				return "the entity is " + entity.EntityID, nil
			}
		}
		return "", fault("the identity provider has no SingleSignOnService for HTTP-Redirect or HTTP-POST")
	})
	if read {
		r.step("signing certificates", func(context.Context) (string, error) {
			return signingCertificates(&entity.IDPSSODescriptors[0], time.Now())
		})
	}
}

// identityProvider returns the entity with an id, or the first identity provider if the id is empty, from metadata of
// one or several entities (SAML 2.0 Metadata §2.3.1, §2.3.2).
func identityProvider(text []byte, id string) (*saml.EntityDescriptor, error) {
	var entities []saml.EntityDescriptor
	var one saml.EntityDescriptor
	var several saml.EntitiesDescriptor
	if err := xml.Unmarshal(text, &one); err == nil {
		entities = append(entities, one)
	} else if err := xml.Unmarshal(text, &several); err == nil {
		entities = several.EntityDescriptors
	} else {
		return nil, fault("the document is not SAML 2.0 metadata")
	}
	for i, entity := range entities {
		if len(entity.IDPSSODescriptors) > 0 && (id == "" || id == entity.EntityID) {
			return &entities[i], nil
		}
	}
	if id != "" {
		return nil, fault("the metadata has no identity provider with this EntityId")
	}
	return nil, fault("the metadata has no identity provider (IDPSSODescriptor)")
}

// signingCertificates counts the valid signing certificates. It is an error if there is none.
func signingCertificates(idp *saml.IDPSSODescriptor, now time.Time) (string, error) {
	valid, all := 0, 0
	for _, key := range idp.KeyDescriptors {
		if key.Use == "encryption" {
			continue
		}
		for _, c := range key.KeyInfo.X509Data.X509Certificates {
			der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(c.Data), ""))
			if err != nil {
				return "", fault("a certificate in the metadata is not base64")
			}
			certificate, err := x509.ParseCertificate(der)
			if err != nil {
				return "", fault("a certificate in the metadata can't be read")
			}
			all++
			if now.After(certificate.NotBefore) && now.Before(certificate.NotAfter) {
				valid++
			}
		}
	}
	switch {
	case all == 0:
		return "", fault("the metadata has no signing certificate")
	case valid == 0:
		return "", fault("every signing certificate in the metadata has expired; refresh the metadata")
	}
	return counted(valid, "valid certificate"), nil
}
