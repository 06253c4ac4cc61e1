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

const oneBucket = "/v1/kv/buckets/{bucket}"

func (a *api) registerBuckets(s *rest.Server) {
	rest.Named[kv.Bucket](s, "KVBucket")
	buckets := rest.Resource[kv.Bucket, kv.Settings, kv.BucketFilter]{
		Server: s, ID: "kv-bucket", Many: "buckets", Path: "/v1/kv/buckets", Read: auth.KVRead,
	}
	buckets.List(rest.Op{}, a.KV.Buckets)
	rest.Handle(s, rest.Op{
		ID: "get-kv-bucket", Method: http.MethodGet, Path: oneBucket, IfMatchParam: "bucket", Scope: auth.KVRead,
		Summary: "Get a bucket",
	}, a.getBucket)
	rest.Handle(s, rest.Op{
		ID: "put-kv-bucket", Method: http.MethodPut, Path: oneBucket, IfMatchParam: "bucket", Scope: auth.KVWrite,
		Summary: "Create a bucket or change its settings", Errors: []apperr.Kind{apperr.InvalidState},
		Doc: "A bucket also appears with its first object, with the default settings. Changed settings apply to " +
			"later writes of objects. A tenant has at most 1000 buckets.",
	}, a.putBucket)
	rest.Handle(s, rest.Op{
		ID: "delete-kv-bucket", Method: http.MethodDelete, Path: oneBucket, IfMatchParam: "bucket", Scope: auth.KVWrite,
		Summary: "Delete a bucket", Errors: []apperr.Kind{apperr.InUse},
		Doc: "Refused while it has objects, unless `force=true`, which deletes them too. The deletion of many " +
			"objects goes on after the answer; until it is finished, the bucket has the state `deleting` and " +
			"nothing can be written.",
		RecentSignIn: rest.FreshIfQuery("force"),
	}, a.deleteBucket)
}

// ByBucket is the path of a bucket.
type ByBucket struct {
	Bucket string `path:"bucket" maxLength:"64" doc:"1…64 letters, digits or . _ -" example:"settings"`
}

func (a *api) getBucket(ctx context.Context, in *ByBucket) (rest.Record[kv.Bucket], error) {
	return rest.RecordOf[kv.Bucket](a.KV.Bucket(ctx, in.Bucket))
}

type putBucketInput struct {
	ByBucket
	Body rest.JSON[rest.Input[kv.Bucket]]
}

func (a *api) putBucket(ctx context.Context, in *putBucketInput) (rest.Record[kv.Bucket], error) {
	var settings kv.Settings
	if err := in.Body.Into(&settings); err != nil {
		return rest.Record[kv.Bucket]{}, err
	}
	return rest.RecordOf[kv.Bucket](a.KV.PutBucket(ctx, in.Bucket, settings))
}

type deleteBucketInput struct {
	ByBucket
	Force docstore.Flag `query:"force" doc:"true deletes the objects, too"`
}

func (a *api) deleteBucket(ctx context.Context, in *deleteBucketInput) (rest.Deleted, error) {
	return a.KV.DeleteBucket(ctx, in.Bucket, in.Force.Or(false))
}
