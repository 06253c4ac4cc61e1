package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/automation/internal/kv"
)

const (
	allObjects = oneBucket + "/objects"
	oneObject  = allObjects + "/{key}"
)

func (a *api) registerObjects(s *rest.Server) {
	rest.Named[kv.Object](s, "KVObject")
	rest.Named[kv.Version](s, "KVVersion")
	rest.Handle(s, rest.Op{
		ID: "list-kv-objects", Method: http.MethodGet, Path: allObjects, Scope: auth.KVRead, Summary: "List objects",
		Doc: "In the order of keys, without values unless `include_values=true`. A page with more than 4 MiB of " +
			"values ends early; `page_token` continues after its last object.",
	}, a.listObjects)
	rest.Handle(s, rest.Op{
		ID: "create-kv-object", Method: http.MethodPost, Path: allObjects, IfMatchParam: rest.NoRecord,
		Scope:   auth.KVWrite,
		Summary: "Create an object", Errors: []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState},
		Doc: "A bucket that does not exist is created too, with the default settings.",
	}, a.createObject)
	rest.Handle(s, rest.Op{
		ID: "get-kv-object", Method: http.MethodGet, Path: oneObject, IfMatchParam: "key", CatchAllParam: "key",
		Scope:   auth.KVRead,
		Summary: "Get an object", Doc: "Slashes in the key need not be encoded.",
	}, a.getObject)
	rest.Handle(s, rest.Op{
		ID: "put-kv-object", Method: http.MethodPut, Path: oneObject, IfMatchParam: "key", CatchAllParam: "key",
		Scope:   auth.KVWrite,
		Summary: "Write an object", Errors: []apperr.Kind{apperr.InvalidState},
		Doc: "Creates the object or replaces its value. With `If-Match` it only replaces that version " +
			"(compare-and-set), with `If-None-Match: *` it only creates. If an object with this key was deleted or " +
			"has expired in the last day, the versions of the new object continue from it.",
	}, a.putObject)
	rest.Handle(s, rest.Op{
		ID: "delete-kv-object", Method: http.MethodDelete, Path: oneObject, IfMatchParam: "key", CatchAllParam: "key",
		Scope: auth.KVWrite, Summary: "Delete an object",
		Doc: "Its former states are deleted too.",
	}, a.deleteObject)
	rest.Handle(s, rest.Op{
		ID: "get-kv-object-history", Method: http.MethodGet, Path: oneObject + "/history", CatchAllParam: "key",
		Scope: auth.KVRead, Summary: "List an object's former states",
		Doc: "Latest first. The bucket's `history` says how many are kept. A page with more than 4 MiB of " +
			"values ends early; `page_token` continues after its last item.",
	}, a.getHistory)
}

// ByKey is the path of an object.
type ByKey struct {
	ByBucket
	Key string `path:"key" maxLength:"1024" doc:"Up to 1024 bytes" example:"console/theme"`
}

func (a *api) listObjects(ctx context.Context, in *kv.ObjectFilter) (rest.List[kv.Object], error) {
	page, err := a.KV.List(ctx, *in)
	return listOf[kv.Object](in.Paging, page, err)
}

func listOf[W any](p docstore.Paging, page kv.Page, err error) (rest.List[W], error) {
	return rest.List[W]{
		Items: page.Items, Total: page.Total, More: page.More, Num: p.Num, Size: p.Size, Next: page.Next,
	}, err
}

func objectOf(r kv.Record, err error) (rest.Record[kv.Object], error) {
	return rest.Record[kv.Object]{JSON: r.JSON, Tag: r.Tag}, err
}

type createObjectInput struct {
	ByBucket
	Body rest.JSON[KVObjectInput]
}

func (a *api) createObject(ctx context.Context, in *createObjectInput) (rest.Record[kv.Object], error) {
	var draft struct {
		Key string `json:"key"`
		kv.Draft
	}
	if err := in.Body.Into(&draft); err != nil {
		return rest.Record[kv.Object]{}, err
	}
	return objectOf(a.KV.Create(ctx, in.Bucket, draft.Key, draft.Draft))
}

func (a *api) getObject(ctx context.Context, in *ByKey) (rest.Record[kv.Object], error) {
	return objectOf(a.KV.Get(ctx, in.Bucket, in.Key))
}

type putObjectInput struct {
	ByKey
	IfNoneMatch string `header:"If-None-Match" enum:"*" doc:"Only create; 412 if the object exists"`
	Body        rest.JSON[KVValueInput]
}

func (a *api) putObject(ctx context.Context, in *putObjectInput) (rest.Record[kv.Object], error) {
	var draft kv.Draft
	if err := in.Body.Into(&draft); err != nil {
		return rest.Record[kv.Object]{}, err
	}
	return objectOf(a.KV.Put(ctx, in.Bucket, in.Key, draft, in.IfNoneMatch != ""))
}

func (a *api) deleteObject(ctx context.Context, in *ByKey) (rest.Deleted, error) {
	return a.KV.Delete(ctx, in.Bucket, in.Key)
}

type historyInput struct {
	ByKey
	docstore.Paging
}

func (a *api) getHistory(ctx context.Context, in *historyInput) (rest.List[kv.Version], error) {
	page, err := a.KV.History(ctx, in.Bucket, in.Key, in.Paging)
	return listOf[kv.Version](in.Paging, page, err)
}

// KVObjectInput is an object to be created.
type KVObjectInput struct {
	rest.MembersOf[kv.Object]
	Key        string `json:"key" maxLength:"1024" doc:"Up to 1024 bytes; segments between slashes must not be empty, . or .."`
	Value      any    `json:"value" doc:"Any JSON"`
	TTLSeconds *int64 `json:"ttl_seconds,omitempty" doc:"After which the object expires; 0: never; the bucket's if absent"`
}

// KVValueInput is an object to be written.
type KVValueInput struct {
	rest.MembersOf[kv.Object]
	Key        string `json:"key,omitempty" readOnly:"true"`
	Value      any    `json:"value" doc:"Any JSON"`
	TTLSeconds *int64 `json:"ttl_seconds,omitempty" doc:"After which the object expires; 0: never; the bucket's if absent"`
}
