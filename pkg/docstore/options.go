package docstore

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
)

type commitKey struct{}
type dryRunKey struct{}
type expectKey struct{}
type turnKey struct{}

// InTurn makes the Writes of the context take turns with the other Writes of this process that share a key and have the
// same tenant. It is for transactions that change the same documents and would abort one another. It replaces earlier
// keys. It only saves work: Writes without the keys, and those of other processes, do not wait.
func InTurn(ctx context.Context, keys ...string) context.Context {
	turns := make([]string, len(keys))
	for i, key := range keys {
		turns[i] = request.Tenant(ctx) + "/" + key
	}
	slices.Sort(turns)
	return context.WithValue(ctx, turnKey{}, slices.Compact(turns))
}

// Turns returns the keys of InTurn with their tenant. They are sorted, so that those who take several turns in this
// order never wait for each other. It is for engines whose transactions can abort one another.
func Turns(ctx context.Context) []string {
	keys, _ := ctx.Value(turnKey{}).([]string)
	return keys
}

// OnCommit makes every Write of the context call hook, with the result of its function, before it commits. The hook
// gets the context of the Write, which may outlive the one that OnCommit was given.
func OnCommit(ctx context.Context, hook func(ctx context.Context, tx *Tx, result any) error) context.Context {
	return context.WithValue(ctx, commitKey{}, hook)
}

// WithoutCommitHook is for a Write whose result is not the answer to the request: the hook of OnCommit does not run for
// it.
func WithoutCommitHook(ctx context.Context) context.Context {
	return context.WithValue(ctx, commitKey{}, nil)
}

// Guarding is for a Write that guards against guessing, such as one that counts a wrong password. It takes effect in a
// dry run, too, and whatever version If-Match asks for. The hook of OnCommit does not run for it.
func Guarding(ctx context.Context) context.Context {
	ctx = context.WithValue(WithoutCommitHook(ctx), dryRunKey{}, nil)
	return context.WithValue(ctx, expectKey{}, nil)
}

// WithDryRun makes every Write of the context undo its changes.
func WithDryRun(ctx context.Context) context.Context {
	return context.WithValue(ctx, dryRunKey{}, true)
}

// IsDryRun reports whether Writes of the context are undone. Code with effects outside the store must then leave them
// out.
func IsDryRun(ctx context.Context) bool { return ctx.Value(dryRunKey{}) != nil }

type expectation struct {
	id string
	ok func(version int64) bool
}

// WithExpected makes Load refuse the record with the id if ok does not accept its version (If-Match, RFC 9110 section
// 13.1.1).
func WithExpected(ctx context.Context, id string, ok func(version int64) bool) context.Context {
	return context.WithValue(ctx, expectKey{}, expectation{id, ok})
}

// ExpectFor applies to the record with the id what WithExpected asked of name. It is for records that requests name by
// something other than their id.
func ExpectFor(ctx context.Context, name, id string) context.Context {
	if e, ok := ctx.Value(expectKey{}).(expectation); ok && e.id == name {
		return WithExpected(ctx, id, e.ok)
	}
	return ctx
}

// Expects reports whether WithExpected was called for name. An If-Match request expects that the record exists.
func Expects(ctx context.Context, name string) bool {
	e, ok := ctx.Value(expectKey{}).(expectation)
	return ok && e.id == name
}

// CheckExpected is what Load does for the record with the id, for a record that was loaded in another way and that the
// request calls name. The error is apperr.VersionMismatch.
func CheckExpected(ctx context.Context, name string, version int64) error {
	if ok := expectedVersion(ctx, name); ok != nil && !ok(version) {
		return Mismatch(version)
	}
	return nil
}

// Mismatch is the error for a record that is at another version than the one that was asked for.
func Mismatch(version int64) *apperr.Error {
	return apperr.New(apperr.VersionMismatch, "the record has changed; its version is now %d", version)
}

func expectedVersion(ctx context.Context, id string) func(int64) bool {
	if e, ok := ctx.Value(expectKey{}).(expectation); ok && e.id == id {
		return e.ok
	}
	return nil
}
