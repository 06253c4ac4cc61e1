package request

import "context"

type drainKey struct{}

// WithDrain returns a context for a server's requests. drain ends when the server is about to stop: a response that
// would otherwise never end (an event stream) ends then.
func WithDrain(ctx, drain context.Context) context.Context {
	return context.WithValue(ctx, drainKey{}, drain)
}

// UntilDrain returns a context that ends with ctx, or with the drain that WithDrain put into ctx.
func UntilDrain(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	drain, ok := ctx.Value(drainKey{}).(context.Context)
	if !ok {
		return ctx, cancel
	}
	stop := context.AfterFunc(drain, cancel)
	return ctx, func() { stop(); cancel() }
}
