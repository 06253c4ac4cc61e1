package gateway

import (
	"context"
	"io"
	"net/http"

	"github.com/idplatform/idplatform/pkg/request"
)

// An event stream of a service in this process sees the drain in its context, and ends by itself. One of another
// process does not know of the gateway's drain: the gateway ends it, cleanly, so that the client comes back elsewhere.

// passEvents calls a service in another process, until the drain at the latest.
func (g *Gateway) passEvents(service service, w *response, r *http.Request) {
	ctx, cancel := request.UntilDrain(r.Context())
	defer cancel()
	if ctx.Err() != nil {
		w.Header().Set("Content-Type", request.EventStreamType) // an empty one
		return
	}
	service.handler.ServeHTTP(w, r.WithContext(context.WithValue(ctx, clientKey{}, r.Context())))
}

// clientKey finds the context of the client's request in that of the call to the service.
type clientKey struct{}

// endAtDrain is a ReverseProxy.ModifyResponse: it makes the end of an event stream's context the end of its body, while
// the client is still there.
func endAtDrain(resp *http.Response) error {
	ctx := resp.Request.Context()
	if client, ok := ctx.Value(clientKey{}).(context.Context); ok {
		resp.Body = &drainedBody{resp.Body, ctx, client}
	}
	return nil
}

type drainedBody struct {
	io.ReadCloser
	ctx, client context.Context
}

func (b *drainedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.ctx.Err() != nil && b.client.Err() == nil {
		err = io.EOF // a client leaves out an event that is cut off (HTML Living Standard §9.2.6)
	}
	return n, err
}
