package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
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

func (a *api) registerDiscovery(s *rest.Server) {
	documents := func(id, path, summary string, v any) {
		body, err := json.Marshal(v)
		rest.Handle(s, rest.Op{
			ID: id, Method: http.MethodGet, Path: root + path, Summary: summary, SCIM: fault,
			Response: json.RawMessage(body),
		}, func(_ context.Context, in *Asked) (rest.SCIMAnswer, error) {
			if err := unfiltered(in); err != nil {
				return rest.SCIMAnswer{}, err
			}
			return rest.SCIMAnswer{JSON: body, MaxAge: maxAge}, err
		})
	}
	documents("scim-get-config", "/ServiceProviderConfig", "What the SCIM service can do", schema.NewConfig(a.Base,
		schema.Limits{
			BulkOperations: message.MaxBulkOperations, BulkSize: message.MaxBulkSize,
			DefaultCount: message.DefaultCount, MaxCount: message.MaxCount,
		}))
	types, schemas := schema.TypeDocuments(a.Base), schema.Documents(a.Base)
	documents("scim-list-types", "/ResourceTypes", "List the kinds of resources", listDocument(types))
	documents("scim-list-schemas", "/Schemas", "List the schemas", listDocument(schemas))
	named(s, "scim-get-type", "/ResourceTypes/{name}", "Get a kind of resources", types[0],
		func(name string) (schema.TypeDocument, bool) {
			return schema.Named(types, name, func(d *schema.TypeDocument) string { return d.ID })
		})
	named(s, "scim-get-schema", "/Schemas/{name}", "Get a schema", schemas[0],
		func(name string) (schema.Document, bool) {
			return schema.Named(schemas, name, func(d *schema.Document) string { return d.ID })
		})
	a.registerAbsent(s)
	a.registerBulk(s)
}

func named[D any](s *rest.Server, id, path, summary string, example D, find func(string) (D, bool)) {
	rest.Handle(s, rest.Op{
		ID: id, Method: http.MethodGet, Path: root + path, Summary: summary, SCIM: fault, Record: rest.NoRecord,
		Response: example,
	}, func(_ context.Context, in *NamedInput) (rest.SCIMAnswer, error) {
		if err := unfiltered(&in.Asked); err != nil {
			return rest.SCIMAnswer{}, err
		}
		d, has := find(in.Name)
		if !has {
			return rest.SCIMAnswer{}, apperr.Missing("document")
		}
		answer, err := documentAnswer(d, nil)
		answer.MaxAge = maxAge
		return answer, err
	})
}

// unfiltered refuses a filter, which documents about the service cannot have: a client would take them for what the filter
// selects (RFC 7644 section 4).
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
		Success: http.StatusNotImplemented, Momentary: true, Summary: "Answer that kinds are searched apart",
		Response: message.NewError(http.StatusNotImplemented, nil),
	}, absent)
}
