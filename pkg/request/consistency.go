package request

import "context"

// ConsistencyToken is the header in which the answer to a write names the write, and a later request names a write that
// its answer must take into account.
const ConsistencyToken = "X-Consistency-Token"

type consistencyKey struct{}

// WithConsistencyToken returns a context in which SetConsistencyToken sets *token.
func WithConsistencyToken(ctx context.Context, token *string) context.Context {
	return context.WithValue(ctx, consistencyKey{}, token)
}

// SetConsistencyToken sets the header ConsistencyToken of the answer to the operation that runs in the context; ""
// removes it. It is kept with the answer, if that is kept for its Idempotency-Key, and so must be set before the
// transaction's commit.
func SetConsistencyToken(ctx context.Context, token string) {
	if to, ok := ctx.Value(consistencyKey{}).(*string); ok {
		*to = token
	}
}
