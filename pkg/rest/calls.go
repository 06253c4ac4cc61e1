package rest

import (
	"context"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// Creation is the input of an operation that creates what the body describes.
type Creation[In any] struct {
	Body JSON[In]
}

// Replacement is the input of an operation that replaces the editable members of a record.
type Replacement[In any] struct {
	ByID
	Body JSON[In]
}

// Change is the input of an operation that changes a record by a merge patch.
type Change[In any] struct {
	ByID
	Body MergePatch[In]
}

// The functions below turn domain calls that need nothing else from the request into operations. W and In are the
// schemas of the answer and of the body, V is the domain's type for the body, T the domain's record.

// Create makes an operation that creates a record from a body.
func Create[W, In, V, T any](
	create func(context.Context, V) (docstore.Doc[T], error),
) func(context.Context, *Creation[In]) (Record[W], error) {
	return func(ctx context.Context, in *Creation[In]) (Record[W], error) {
		var draft V
		if err := in.Body.Into(&draft); err != nil {
			return Record[W]{}, err
		}
		return RecordOf[W](create(ctx, draft))
	}
}

// One makes an operation that gets a record, or does something to it that needs no body.
func One[W, T any](
	do func(context.Context, string) (docstore.Doc[T], error),
) func(context.Context, *ByID) (Record[W], error) {
	return func(ctx context.Context, in *ByID) (Record[W], error) { return RecordOf[W](do(ctx, in.ID)) }
}

// Update makes an operation that changes a record by a merge patch.
func Update[W, In, V, T any](
	update func(context.Context, string, func(*V) error) (docstore.Doc[T], error),
) func(context.Context, *Change[In]) (Record[W], error) {
	return func(ctx context.Context, in *Change[In]) (Record[W], error) {
		return RecordOf[W](update(ctx, in.ID, func(v *V) error { return in.Body.Into(v) }))
	}
}

// Replace makes an operation that replaces the editable members of a record, which are those of V.
func Replace[W, In, V, T any](
	update func(context.Context, string, func(*V) error) (docstore.Doc[T], error),
) func(context.Context, *Replacement[In]) (Record[W], error) {
	return func(ctx context.Context, in *Replacement[In]) (Record[W], error) {
		var draft V
		if err := in.Body.Into(&draft); err != nil {
			return Record[W]{}, err
		}
		return RecordOf[W](update(ctx, in.ID, func(v *V) error { *v = draft; return nil }))
	}
}

// Delete makes an operation that deletes a record.
func Delete(
	remove func(context.Context, string) (Deleted, error),
) func(context.Context, *ByID) (Deleted, error) {
	return func(ctx context.Context, in *ByID) (Deleted, error) { return remove(ctx, in.ID) }
}
