package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/message"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// maxAge is how long anybody may keep a document about the service.
const maxAge = "public, max-age=3600"

// NamedInput names a document.
type NamedInput struct {
	Asked
	Name string `path:"name" maxLength:"255" doc:"Its id" example:"User"`
}

// about are the documents about the service.
type about struct {
	config  schema.Config
	types   []schema.TypeDocument
	schemas []schema.Document
	maxAge  string // "" of those of one connection
}

// describe makes the documents for a connection and its users; nil stands for a caller who has none.
func (a *api) describe(c *connection.Connection, user *schema.Resource) about {
	limits := schema.Limits{
		BulkOperations: message.MaxBulkOperations, BulkSize: message.MaxBulkSize,
		DefaultCount: message.DefaultCount, MaxCount: message.MaxCount,
	}
	d := about{maxAge: maxAge}
	passwords := false
	if c != nil {
		passwords, d.maxAge = c.AcceptPassword == "1", ""
	}
	d.config = schema.NewConfig(a.Base, limits, passwords)
	d.types, d.schemas = schema.TypeDocuments(a.Base, user), schema.Documents(a.Base, user)
	return d
}

func (a *api) registerDiscovery(s *rest.Server) {
	general := a.describe(nil, schema.User)
	document := func(id, path, summary string, of func(about) any) {
		handleDocument(a, s, general, rest.Op{ID: id, Path: root + path, Summary: summary, Response: of(general)},
			func(d about, _ *Asked) (any, error) { return of(d), nil })
	}
	document("scim-get-config", "/ServiceProviderConfig", "What the SCIM service can do",
		func(d about) any { return d.config })
	document("scim-list-types", "/ResourceTypes", "List the kinds of resources",
		func(d about) any { return listDocument(d.types) })
	document("scim-list-schemas", "/Schemas", "List the schemas", func(d about) any { return listDocument(d.schemas) })
	handleDocument(a, s, general, rest.Op{ID: "scim-get-type", Path: root + "/ResourceTypes/{name}",
		Summary: "Get a kind of resources", Response: general.types[0]},
		func(d about, in *NamedInput) (any, error) {
			return found(schema.Named(d.types, in.Name, func(t *schema.TypeDocument) string { return t.ID }))
		})
	handleDocument(a, s, general, rest.Op{ID: "scim-get-schema", Path: root + "/Schemas/{name}",
		Summary: "Get a schema", Response: general.schemas[0]},
		func(d about, in *NamedInput) (any, error) {
			return found(schema.Named(d.schemas, in.Name, func(s *schema.Document) string { return s.ID }))
		})
	a.registerAbsent(s)
	a.registerBulk(s)
}

func found[D any](document D, has bool) (any, error) {
	if !has {
		return nil, apperr.Missing("document")
	}
	return document, nil
}

func (in *Asked) asked() *Asked { return in }

// handleDocument registers an operation that answers with a document about the service. It needs no credential; with
// that of a connection, the document is the connection's.
func handleDocument[I any, P interface {
	*I
	asked() *Asked
}](a *api, s *rest.Server, general about, op rest.Op, of func(about, *I) (any, error)) {
	op.Method, op.SCIM, op.IfMatchParam, op.Greets = http.MethodGet, fault, rest.NoRecord, true
	rest.Handle(s, op, func(ctx context.Context, in *I) (rest.SCIMAnswer, error) {
		if err := unfiltered(P(in).asked()); err != nil {
			return rest.SCIMAnswer{}, err
		}
		d := general
		if c, err := a.caller(ctx); err == nil {
			kind, err := a.Users.ToldKind(ctx, c)
			if err != nil {
				return rest.SCIMAnswer{}, err
			}
			d = a.describe(c, kind)
		}
		answer, err := documentAnswer(of(d, in))
		answer.MaxAge = d.maxAge
		return answer, err
	})
}

// unfiltered refuses a filter: a client would take all documents about the service for those that the filter selects
// (RFC 7644 section 4).
func unfiltered(in *Asked) error {
	if _, has := in.Parameter("filter"); has {
		return apperr.New(apperr.Forbidden, "documents about the service cannot be filtered")
	}
	return nil
}

func listDocument[D any](documents []D) message.List {
	items := make([]json.RawMessage, len(documents))
	for i, d := range documents {
		items[i], _ = json.Marshal(d) // texts and booleans
	}
	return message.NewList(int64(len(items)), 1, "", items)
}

// registerAbsent answers what RFC 7644 has and this service has not.
func (a *api) registerAbsent(s *rest.Server) {
	absent := func(ctx context.Context, in *Asked) (rest.SCIMAnswer, error) {
		if _, err := a.caller(ctx); err != nil {
			return rest.SCIMAnswer{}, err
		}
		answer, err := documentAnswer(message.NewError(http.StatusNotImplemented,
			apperr.New(apperr.MethodNotAllowed, "the service does not have it: search below /Users or /Groups")), nil)
		answer.Status = http.StatusNotImplemented
		return answer, err
	}
	rest.Handle(s, rest.Op{
		ID: "scim-get-me", Method: http.MethodGet, Path: root + "/Me", Scope: auth.SCIM, SCIM: fault,
		Success: http.StatusNotImplemented, Summary: "Answer that there is no resource for the client itself",
		Response: message.NewError(http.StatusNotImplemented, nil),
	}, absent)
	rest.Handle(s, rest.Op{
		ID: "scim-search-all", Method: http.MethodPost, Path: root + "/.search", Scope: auth.SCIM, SCIM: fault,
		Success: http.StatusNotImplemented, NoReplay: true, Summary: "Answer that kinds are searched apart",
		Response: message.NewError(http.StatusNotImplemented, nil),
	}, absent)
}
