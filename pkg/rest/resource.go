package rest

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Resource declares the operations of a kind of record, each with one call. T is the record: the domain's type, whose
// tags describe it in the document (doc, enum, example, readOnly, and required for the members that a new record
// needs). V is the part of T that clients set. F is the filter of the list, with the tags of a query; it embeds
// docstore.Paging.
//
// An Op that is passed to a method has what the resource cannot know: Errors, Doc, an example that teaches something.
type Resource[T, V any, F interface{ Asked() docstore.Paging }] struct {
	Server      *Server
	ID          string // in the operations' ids: auth-method
	One, Many   string // in summaries: an authentication method, authentication methods
	Path        string // of the list; a record's is below it, by id
	Read, Write auth.Scope
}

// List registers the list.
func (r Resource[T, V, F]) List(op Op, list func(context.Context, F) (docstore.Page[T], error)) {
	r.read(&op, "list-"+r.ID+"s", "", "List "+r.Many)
	Handle(r.Server, op, func(ctx context.Context, in *F) (List[T], error) {
		page, err := list(ctx, *in)
		return ListOf[T]((*in).Asked(), page, err)
	})
}

// Get registers the operation that gets a record.
func (r Resource[T, V, F]) Get(op Op, get func(context.Context, string) (docstore.Doc[T], error)) {
	r.read(&op, "get-"+r.ID, "/{id}", "Get "+r.One)
	Handle(r.Server, op, One[T](get))
}

// Create registers the operation that creates a record.
func (r Resource[T, V, F]) Create(op Op, create func(context.Context, V) (docstore.Doc[T], error)) {
	r.write(&op, "create", http.MethodPost, "", "Create "+r.One)
	Handle(r.Server, op, Create[T, Input[T]](create))
}

// Update registers the operation that changes a record by a merge patch.
func (r Resource[T, V, F]) Update(op Op,
	update func(context.Context, string, func(*V) error) (docstore.Doc[T], error)) {
	r.write(&op, "update", http.MethodPatch, "/{id}", "Change "+r.One)
	Handle(r.Server, op, Update[T, Input[T]](update))
}

// Replace registers the operation that replaces the members that clients set.
func (r Resource[T, V, F]) Replace(op Op,
	update func(context.Context, string, func(*V) error) (docstore.Doc[T], error)) {
	r.write(&op, "replace", http.MethodPut, "/{id}", "Replace "+r.One)
	Handle(r.Server, op, Replace[T, Input[T]](update))
}

// Delete registers the operation that deletes a record.
func (r Resource[T, V, F]) Delete(op Op, remove func(context.Context, string) (Deleted, error)) {
	r.write(&op, "delete", http.MethodDelete, "/{id}", "Delete "+r.One)
	Handle(r.Server, op, Delete(remove))
}

// Action registers an operation without a body that does something to a record; the verb ends its path.
func (r Resource[T, V, F]) Action(verb string, op Op, do func(context.Context, string) (docstore.Doc[T], error)) {
	r.write(&op, verb, http.MethodPost, "/{id}/"+verb, strings.ToUpper(verb[:1])+verb[1:]+" "+r.One)
	Handle(r.Server, op, One[T](do))
}

// Switch registers the two operations that switch a record on and off: enable and disable. set takes a status, 1 or 0.
func (r Resource[T, V, F]) Switch(op Op, set func(ctx context.Context, id, status string) (docstore.Doc[T], error)) {
	to := func(status string) func(context.Context, string) (docstore.Doc[T], error) {
		return func(ctx context.Context, id string) (docstore.Doc[T], error) { return set(ctx, id, status) }
	}
	r.Action("enable", op, to("1"))
	r.Action("disable", op, to("0"))
}

func (r Resource[T, V, F]) read(op *Op, id, path, summary string) {
	r.complete(op, Op{ID: id, Method: http.MethodGet, Path: path, Summary: summary, Scope: r.Read})
}

func (r Resource[T, V, F]) write(op *Op, verb, method, path, summary string) {
	r.complete(op, Op{ID: verb + "-" + r.ID, Method: method, Path: path, Summary: summary, Scope: r.Write})
}

// complete gives an operation what it does not have itself.
func (r Resource[T, V, F]) complete(op *Op, of Op) {
	op.ID, op.Summary, op.Scope = cmp.Or(op.ID, of.ID), cmp.Or(op.Summary, of.Summary), cmp.Or(op.Scope, of.Scope)
	op.Method, op.Path = of.Method, r.Path+of.Path
}
