package gateway

import (
	"context"
	"io"
	"net/http"

	"github.com/idplatform/idplatform/pkg/request"
)

// An event stream of a service in this process sees the drain in its context and ends by itself. A service in another
// process does not know about the gateway's drain: the gateway ends its stream cleanly, so that the client connects
// to another replica.

// passEvents calls a service in another process for an event stream, which ends at the drain at the latest.
func (g *Gateway) passEvents(service service, w *response, r *http.Request) {
	ctx, cancel := request.UntilDrain(r.Context())
	defer cancel()
	if ctx.Err() != nil {
		w.Header().Set("Content-Type", request.EventStreamType) // an empty event stream
		return
	}
	service.handler.ServeHTTP(w, r.WithContext(context.WithValue(ctx, clientKey{}, r.Context())))
}

// clientKey is the key under which the call to the service carries the context of the client's request.
type clientKey struct{}

// endAtDrain is a ReverseProxy.ModifyResponse. When an event stream's context ends while the client is still
// connected, it makes the stream's body end without an error.
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
		err = io.EOF // a client ignores an incomplete last event (HTML Living Standard §9.2.6)
	}
	return n, err
}
