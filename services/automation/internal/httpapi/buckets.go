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
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/automation/internal/kv"
)

const oneBucket = "/v1/kv/buckets/{bucket}"

func (a *api) registerBuckets(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "list-kv-buckets", Method: http.MethodGet, Path: "/v1/kv/buckets", Scope: auth.KVRead,
		Summary:  "List buckets",
		Response: map[string]any{"items": []any{exampleBucket}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listBuckets)
	rest.Handle(s, rest.Op{
		ID: "get-kv-bucket", Method: http.MethodGet, Path: oneBucket, Record: "bucket", Scope: auth.KVRead,
		Summary: "Get a bucket", Response: exampleBucket,
	}, a.getBucket)
	rest.Handle(s, rest.Op{
		ID: "put-kv-bucket", Method: http.MethodPut, Path: oneBucket, Record: "bucket", Scope: auth.KVWrite,
		Summary: "Create a bucket or change its settings", Errors: []apperr.Kind{apperr.InvalidState},
		Doc: "A bucket also appears with its first object, with the default settings. Changed settings apply to " +
			"later writes of objects. A tenant has at most 1000 buckets.",
		Request: exampleBucketInput, Response: exampleBucket,
	}, a.putBucket)
	rest.Handle(s, rest.Op{
		ID: "delete-kv-bucket", Method: http.MethodDelete, Path: oneBucket, Record: "bucket", Scope: auth.KVWrite,
		Summary: "Delete a bucket", Errors: []apperr.Kind{apperr.InUse},
		Doc: "Refused while it has objects, unless `force=true`, which deletes them too. The deletion of many " +
			"objects goes on after the answer; until it is finished, the bucket has the state `deleting` and " +
			"nothing can be written.",
		Fresh:    rest.FreshIfQuery("force"),
		Response: rest.Deleted{ID: "1048577"},
	}, a.deleteBucket)
}

// ByBucket is the path of a bucket.
type ByBucket struct {
	Bucket string `path:"bucket" maxLength:"64" doc:"1…64 letters, digits or . _ -" example:"settings"`
}

type listBucketsInput struct {
	textindex.Search
	docstore.Paging
}

func (a *api) listBuckets(ctx context.Context, in *listBucketsInput) (rest.List[KVBucket], error) {
	page, err := a.KV.Buckets(ctx, in.Keyword, in.Paging)
	return rest.ListOf[KVBucket](in.Paging, page, err)
}

func (a *api) getBucket(ctx context.Context, in *ByBucket) (rest.Record[KVBucket], error) {
	return rest.RecordOf[KVBucket](a.KV.Bucket(ctx, in.Bucket))
}

type putBucketInput struct {
	ByBucket
	Body rest.JSON[KVBucketInput]
}

func (a *api) putBucket(ctx context.Context, in *putBucketInput) (rest.Record[KVBucket], error) {
	var settings kv.Settings
	if err := in.Body.Into(&settings); err != nil {
		return rest.Record[KVBucket]{}, err
	}
	return rest.RecordOf[KVBucket](a.KV.PutBucket(ctx, in.Bucket, settings))
}

type deleteBucketInput struct {
	ByBucket
	Force docstore.Flag `query:"force" doc:"true deletes the objects, too"`
}

func (a *api) deleteBucket(ctx context.Context, in *deleteBucketInput) (rest.Deleted, error) {
	return a.KV.DeleteBucket(ctx, in.Bucket, in.Force.Or(false))
}

// KVBucket describes kv.Bucket for the OpenAPI document.
type KVBucket struct {
	rest.Meta
	Name           string     `json:"name" readOnly:"true" doc:"1…64 letters, digits or . _ -; unique" example:"settings"`
	Description    string     `json:"description" doc:"Up to 1024 characters"`
	TTLSeconds     int64      `json:"ttl_seconds" doc:"Of objects that are written without their own; 0: forever"`
	History        int64      `json:"history" doc:"How many former states of an object are kept: 0…100"`
	MaxObjectBytes int64      `json:"max_object_bytes" doc:"Of a value as compact JSON: 1…1048576, which is what it is if absent"`
	State          string     `json:"state" readOnly:"true" enum:"active,deleting" doc:"deleting: its objects are being deleted"`
	TimeDeleted    *time.Time `json:"time_deleted" readOnly:"true" nullable:"true" doc:"When its deletion began"`
}

// KVBucketInput is a bucket's settings. Read-only members may be sent back and do not count.
type KVBucketInput struct{ rest.MembersOf[KVBucket] }

var exampleBucketInput = map[string]any{"description": "Settings of the console", "history": 10}

var exampleBucket = json.RawMessage(`{"id":"1048577","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z","name":"settings",` +
	`"description":"Settings of the console","ttl_seconds":0,"history":10,"max_object_bytes":1048576,` +
	`"state":"active","time_deleted":null}`)
