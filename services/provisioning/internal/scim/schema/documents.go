package schema

import "strings"

// The URNs of the documents about the service.
const (
	ConfigURN       = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"
	ResourceTypeURN = "urn:ietf:params:scim:schemas:core:2.0:ResourceType"
	SchemaURN       = "urn:ietf:params:scim:schemas:core:2.0:Schema"
)

// Meta is about a document.
type Meta struct {
	ResourceType string `json:"resourceType"`
	Location     string `json:"location"`
}

// Supported says whether the service has a feature.
type Supported struct {
	Supported bool `json:"supported"`
}

// Config is the document of /ServiceProviderConfig (RFC 7643 §5, RFC 9865 §4).
type Config struct {
	Schemas []string  `json:"schemas"`
	Patch   Supported `json:"patch"`
	Bulk    struct {
		Supported
		MaxOperations  int `json:"maxOperations"`
		MaxPayloadSize int `json:"maxPayloadSize"`
	} `json:"bulk"`
	Filter struct {
		Supported
		MaxResults int `json:"maxResults"`
	} `json:"filter"`
	ChangePassword Supported `json:"changePassword"`
	Sort           Supported `json:"sort"`
	ETag           Supported `json:"etag"`
	Pagination     struct {
		Cursor                  bool   `json:"cursor"`
		Index                   bool   `json:"index"`
		DefaultPaginationMethod string `json:"defaultPaginationMethod"`
		DefaultPageSize         int    `json:"defaultPageSize"`
		MaxPageSize             int    `json:"maxPageSize"`
	} `json:"pagination"`
	AuthenticationSchemes []AuthenticationScheme `json:"authenticationSchemes"`
	Meta                  Meta                   `json:"meta"`
}

// AuthenticationScheme is a way to authenticate requests.
type AuthenticationScheme struct {
	Type        string `json:"type"`
	Name        string `json:"name"`
	Description string `json:"description"`
	SpecURI     string `json:"specUri"`
	Primary     bool   `json:"primary"`
}

// Limits are the limits that the configuration states.
type Limits struct{ BulkOperations, BulkSize, DefaultCount, MaxCount int }

// NewConfig makes the configuration of the service at a base URI. passwords reports that the connection accepts them.
func NewConfig(base string, l Limits, passwords bool) Config {
	yes := Supported{true}
	c := Config{
		Schemas: []string{ConfigURN}, Patch: yes, Sort: yes, ETag: yes, ChangePassword: Supported{passwords},
		AuthenticationSchemes: []AuthenticationScheme{{
			Type: "oauthbearertoken", Name: "OAuth Bearer Token", Primary: true,
			SpecURI:     "https://www.rfc-editor.org/info/rfc6750",
			Description: "A token of the connection, or an access token of its client with the scope scim.",
		}},
		Meta: Meta{"ServiceProviderConfig", base + "/ServiceProviderConfig"},
	}
	c.Bulk.Supported, c.Bulk.MaxOperations, c.Bulk.MaxPayloadSize = yes, l.BulkOperations, l.BulkSize
	c.Filter.Supported, c.Filter.MaxResults = yes, l.MaxCount
	c.Pagination.Cursor, c.Pagination.Index, c.Pagination.DefaultPaginationMethod = true, true, "index"
	c.Pagination.DefaultPageSize, c.Pagination.MaxPageSize = l.DefaultCount, l.MaxCount
	return c
}

// TypeDocument is a document of /ResourceTypes (RFC 7643 §6).
type TypeDocument struct {
	Schemas          []string    `json:"schemas"`
	ID               string      `json:"id"`
	Name             string      `json:"name"`
	Endpoint         string      `json:"endpoint"`
	Description      string      `json:"description"`
	Schema           string      `json:"schema"`
	SchemaExtensions []Extension `json:"schemaExtensions"`
	Meta             Meta        `json:"meta"`
}

// Extension names an extension of a resource type.
type Extension struct {
	Schema   string `json:"schema"`
	Required bool   `json:"required"`
}

// TypeDocuments are the documents of /ResourceTypes. user is the type of users, with the connection's extensions.
func TypeDocuments(base string, user *Resource) []TypeDocument {
	var documents []TypeDocument
	for _, r := range []*Resource{user, Group} {
		d := TypeDocument{
			Schemas: []string{ResourceTypeURN}, ID: r.Name, Name: r.Name, Endpoint: r.Endpoint,
			Description: r.Description, Schema: r.Core.ID,
			Meta: Meta{"ResourceType", base + "/ResourceTypes/" + r.Name},
		}
		for _, s := range r.Extensions {
			d.SchemaExtensions = append(d.SchemaExtensions, Extension{Schema: s.ID})
		}
		documents = append(documents, d)
	}
	return documents
}

// Document is a document of /Schemas (RFC 7643 §7).
type Document struct {
	Schemas []string `json:"schemas"`
	Schema
	Meta Meta `json:"meta"`
}

// Documents are the documents of /Schemas. user is the type of users, with the connection's extensions.
func Documents(base string, user *Resource) []Document {
	var schemas []*Schema
	for _, r := range []*Resource{user, Group} {
		schemas = append(append(schemas, r.Core), r.Extensions...)
	}
	var documents []Document
	for _, s := range append(schemas, aboutService...) {
		documents = append(documents, Document{[]string{SchemaURN}, *s, Meta{"Schema", base + "/Schemas/" + s.ID}})
	}
	return documents
}

// Named returns the document of that id in any case, of those that list has.
func Named[D any](documents []D, id string, idOf func(*D) string) (D, bool) {
	for i := range documents {
		if strings.EqualFold(idOf(&documents[i]), id) {
			return documents[i], true
		}
	}
	var none D
	return none, false
}
