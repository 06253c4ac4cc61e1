package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

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
	rest.Handle(s, rest.Op{
		ID: "list-kv-objects", Method: http.MethodGet, Path: allObjects, Scope: auth.KVRead, Summary: "List objects",
		Doc: "In the order of keys, without values unless `include_values=true`. A page with more than 4 MiB of " +
			"values ends early; `page_token` continues after its last object.",
		Response: map[string]any{"items": []any{exampleObject}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listObjects)
	rest.Handle(s, rest.Op{
		ID: "create-kv-object", Method: http.MethodPost, Path: allObjects, Record: rest.NoRecord, Scope: auth.KVWrite,
		Summary: "Create an object", Errors: []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState},
		Doc:     "A bucket that does not exist is created too, with the default settings.",
		Request: exampleObjectInput, Response: exampleObject,
	}, a.createObject)
	rest.Handle(s, rest.Op{
		ID: "get-kv-object", Method: http.MethodGet, Path: oneObject, Record: "key", Slashes: "key", Scope: auth.KVRead,
		Summary: "Get an object", Doc: "Slashes in the key need not be encoded.", Response: exampleObject,
	}, a.getObject)
	rest.Handle(s, rest.Op{
		ID: "put-kv-object", Method: http.MethodPut, Path: oneObject, Record: "key", Slashes: "key",
		Scope:   auth.KVWrite,
		Summary: "Write an object", Errors: []apperr.Kind{apperr.InvalidState},
		Doc: "Creates the object or replaces its value. With `If-Match` it only replaces that version " +
			"(compare-and-set), with `If-None-Match: *` it only creates. If an object with this key was deleted or " +
			"has expired in the last day, the versions of the new object continue from it.",
		Request: exampleValueInput, Response: exampleObject,
	}, a.putObject)
	rest.Handle(s, rest.Op{
		ID: "delete-kv-object", Method: http.MethodDelete, Path: oneObject, Record: "key", Slashes: "key",
		Scope: auth.KVWrite, Summary: "Delete an object", Response: rest.Deleted{ID: "1048578"},
		Doc: "Its former states are deleted too.",
	}, a.deleteObject)
	rest.Handle(s, rest.Op{
		ID: "get-kv-object-history", Method: http.MethodGet, Path: oneObject + "/history", Slashes: "key",
		Scope: auth.KVRead, Summary: "List an object's former states",
		Doc: "Latest first. The bucket's `history` says how many are kept. A page with more than 4 MiB of " +
			"values ends early; `page_token` continues after its last item.",
		Response: map[string]any{"items": []any{exampleVersion}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.getHistory)
}

// ByKey is the path of an object.
type ByKey struct {
	ByBucket
	Key string `path:"key" maxLength:"1024" doc:"Up to 1024 bytes" example:"console/theme"`
}

type listObjectsInput struct {
	ByBucket
	Prefix        string        `query:"prefix" maxLength:"1024" doc:"Only objects whose keys begin with it"`
	IncludeValues docstore.Flag `query:"include_values" doc:"true adds the values"`
	docstore.Paging
}

func (a *api) listObjects(ctx context.Context, in *listObjectsInput) (rest.List[KVObject], error) {
	page, err := a.KV.List(ctx, in.Bucket, in.Prefix, in.IncludeValues.Or(false), in.Paging)
	return listOf[KVObject](in.Paging, page, err)
}

func listOf[W any](p docstore.Paging, page kv.Page, err error) (rest.List[W], error) {
	return rest.List[W]{
		Items: page.Items, Total: page.Total, More: page.More, Num: p.Num, Size: p.Size, Next: page.Next,
	}, err
}

func objectOf(r kv.Record, err error) (rest.Record[KVObject], error) {
	return rest.Record[KVObject]{JSON: r.JSON, Tag: r.Tag}, err
}

type createObjectInput struct {
	ByBucket
	Body rest.JSON[KVObjectInput]
}

func (a *api) createObject(ctx context.Context, in *createObjectInput) (rest.Record[KVObject], error) {
	var draft struct {
		Key string `json:"key"`
		kv.Draft
	}
	if err := in.Body.Into(&draft); err != nil {
		return rest.Record[KVObject]{}, err
	}
	return objectOf(a.KV.Create(ctx, in.Bucket, draft.Key, draft.Draft))
}

func (a *api) getObject(ctx context.Context, in *ByKey) (rest.Record[KVObject], error) {
	return objectOf(a.KV.Get(ctx, in.Bucket, in.Key))
}

type putObjectInput struct {
	ByKey
	IfNoneMatch string `header:"If-None-Match" enum:"*" doc:"Only create; 412 if the object exists"`
	Body        rest.JSON[KVValueInput]
}

func (a *api) putObject(ctx context.Context, in *putObjectInput) (rest.Record[KVObject], error) {
	var draft kv.Draft
	if err := in.Body.Into(&draft); err != nil {
		return rest.Record[KVObject]{}, err
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

func (a *api) getHistory(ctx context.Context, in *historyInput) (rest.List[KVVersion], error) {
	page, err := a.KV.History(ctx, in.Bucket, in.Key, in.Paging)
	return listOf[KVVersion](in.Paging, page, err)
}

// KVObject describes kv.Object for the OpenAPI document.
type KVObject struct {
	rest.Meta
	Bucket       string     `json:"bucket" readOnly:"true" doc:"The name of its bucket" example:"settings"`
	Key          string     `json:"key" doc:"Its name in the bucket" example:"console/theme"`
	ContentType  string     `json:"content_type" doc:"Of the value, for its readers; up to 128 characters; application/json if absent" example:"application/json"`
	Size         int64      `json:"size" readOnly:"true" doc:"Of the value as compact JSON, in bytes"`
	TimeExpires  *time.Time `json:"time_expires" readOnly:"true" nullable:"true" doc:"When it is deleted by itself; null: never"`
	KeptVersions int64      `json:"kept_versions" readOnly:"true" doc:"How many former states are kept"`
	Value        any        `json:"value,omitempty" doc:"Any JSON; absent from lists without include_values"`
}

// KVObjectInput is an object to be created.
type KVObjectInput struct {
	rest.MembersOf[KVObject]
	Key        string `json:"key" maxLength:"1024" doc:"Up to 1024 bytes; segments between slashes must not be empty, . or .."`
	Value      any    `json:"value" doc:"Any JSON"`
	TTLSeconds *int64 `json:"ttl_seconds,omitempty" doc:"After which the object expires; 0: never; the bucket's if absent"`
}

// KVValueInput is an object to be written.
type KVValueInput struct {
	rest.MembersOf[KVObject]
	Key        string `json:"key,omitempty" readOnly:"true"`
	Value      any    `json:"value" doc:"Any JSON"`
	TTLSeconds *int64 `json:"ttl_seconds,omitempty" doc:"After which the object expires; 0: never; the bucket's if absent"`
}

// KVVersion describes kv.Version for the OpenAPI document.
type KVVersion struct {
	Version      int64     `json:"version" doc:"Of the object then"`
	TimeModified time.Time `json:"time_modified" doc:"When it became the value"`
	ContentType  string    `json:"content_type" doc:"Of the value"`
	Size         int64     `json:"size" doc:"Of the value as compact JSON, in bytes"`
	Value        any       `json:"value" doc:"As it was"`
}

var (
	exampleObjectInput = map[string]any{"key": "console/theme", "value": map[string]any{"dark": true}}
	exampleValueInput  = map[string]any{"value": map[string]any{"dark": true}}
	exampleObject      = json.RawMessage(`{"id":"1048578","tenant_id":"acme","version":2,` +
		`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:31:00.000Z","bucket":"settings",` +
		`"key":"console/theme","content_type":"application/json","size":13,"time_expires":null,"kept_versions":1,` +
		`"value":{"dark":true}}`)
	exampleVersion = json.RawMessage(`{"version":1,"time_modified":"2026-01-31T09:30:00.000Z",` +
		`"content_type":"application/json","size":14,"value":{"dark":false}}`)
)
