// Package protocol is the domain of applications' authentication protocols: their records and the rules for their
// settings.
package protocol

import (
	"context"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/secret"
)

// The protocol types.
const (
	CAS    = "cas"
	OAuth2 = "oauth2"
	SAML   = "saml"
	OIDC   = "oidc"
	SXP    = "sxp"
)

// Types are all protocol types.
var Types = []string{CAS, OAuth2, SAML, OIDC, SXP}

// Protocol is the record of one protocol of an application. It has the same JSON form in the API, in events and in the
// store.
type Protocol struct {
	docstore.Meta
	AppID      string      `json:"app_id" readOnly:"true" doc:"The application" example:"1048577"`
	Type       string      `json:"protocol_type" readOnly:"true" enum:"cas,oauth2,saml,oidc,sxp" doc:"Which protocol; nothing speaks sxp" example:"saml"`
	Status     string      `json:"status" readOnly:"true" enum:"1,0" doc:"1: people can sign in by it" example:"1"`
	Prop       Prop        `json:"protocol_prop" doc:"Its settings" example:"{\"acs_url\":\"https://expenses.acme.test/saml/acs\",\"sp_entity\":\"https://expenses.acme.test\"}"`
	Secret     secret.Text `json:"secret" readOnly:"true" doc:"****** if there is one" example:""`
	SecretHint string      `json:"secret_hint" readOnly:"true" doc:"The secret's last characters" example:""`
}

// Doc is a protocol as read or written.
type Doc = docstore.Doc[Protocol]

const (
	byOwner  = "owner" // the application's id, the type
	byApp    = "app_id"
	byEntity = "sp_entity" // of SAML
)

// Protocols is the collection of protocol records.
var Protocols = outbox.Define("protocol", "/applications/protocols", docstore.Schema[Protocol]{
	Name: "protocols", Noun: "protocol", Revision: 1,
	Indexes: []docstore.Index[Protocol]{
		docstore.Unique(docstore.ByText(byOwner, func(p *Protocol) string { return owner(p.AppID, p.Type) }),
			"protocol_type"),
		docstore.ByText(byApp, func(p *Protocol) string { return p.AppID }),
		docstore.ByText(byEntity, func(p *Protocol) string {
			if p.Type != SAML {
				return ""
			}
			return p.Prop.SPEntity
		}),
	},
	Sealed: func(p *Protocol) []docstore.Sealed {
		return []docstore.Sealed{
			docstore.Seal("secret", &p.Secret, docstore.NotSent), // clients send it to the platform
			docstore.Seal(signingKey, &p.Prop.SigningKey, docstore.NotSent).At("protocol_prop." + signingKey),
		}
	},
})

// signingKey names the encrypted member of a protocol's settings.
const signingKey = "saml_response_signing_key"

func owner(appID, kind string) string { return appID + "/" + kind }

// OfApplication selects an application's protocols.
func OfApplication(appID string) docstore.Filter { return docstore.Eq(byApp, docstore.Text(appID)) }

// OfType selects an application's protocol of a type.
func OfType(appID, kind string) docstore.Filter {
	return docstore.Eq(byOwner, docstore.Text(owner(appID, kind)))
}

// OfEntity selects the protocols of SAML service providers with an entity id.
func OfEntity(entity string) docstore.Filter { return docstore.Eq(byEntity, docstore.Text(entity)) }

// RevealKey returns the signing key of SAML responses in plain text; empty if there is none.
func (p *Protocol) RevealKey(ctx context.Context, r docstore.Reader) (secret.String, error) {
	if !p.Prop.SigningKey.IsSet() {
		return secret.String{}, nil
	}
	return Protocols.Reveal(ctx, r, p.ID, signingKey)
}
