package gateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/problem"
)

// newProxy passes requests on to a service in another process. Bodies flow both ways as they come.
func newProxy(service string, target *url.URL, transport http.RoundTripper, log *slog.Logger) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			rewrite(pr, target)
			watchDelivery(pr)
		},
		Transport: transport,
		ModifyResponse: func(resp *http.Response) error {
			resp.Body = abandonedBody{resp.Body}
			return endAtDrain(resp)
		},
		BufferPool: copyBuffers{},
		ErrorLog:   slog.NewLogLogger(log.With("upstream", service).Handler(), slog.LevelWarn),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			answerFailure(w, r, service, err, log)
		},
	}
}

// rewrite changes where the request goes, and nothing of its path or query.
func rewrite(pr *httputil.ProxyRequest, target *url.URL) {
	out, in := pr.Out, pr.In
	out.URL.Scheme, out.URL.Host, out.Host = target.Scheme, target.Host, ""
	out.URL.RawQuery = in.URL.RawQuery // ReverseProxy drops parameters that it cannot parse; the service must see them
	for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v, ok := in.Header[name]; ok {
			out.Header[name] = v // set by the gateway: origin.forward
		}
	}
	// No protocol upgrades: a tunnel would escape every limit.
	delete(out.Header, "Upgrade")
	delete(out.Header, "Connection")
	// The gateway's own server sends 100 Continue. An interim answer of the service would make ReverseProxy clear the
	// headers set so far.
	delete(out.Header, "Expect")
}

// answerFailure answers a request that could not be passed on. A failure of the service is a 503, which says that
// nothing was changed, or a 502 if the service may have received a write. A failure of the client is a 400, or has no
// answer if the client has disconnected. ReverseProxy calls it with the outgoing request.
func answerFailure(w http.ResponseWriter, r *http.Request, service string, err error, log *slog.Logger) {
	rec, _ := w.(*response)
	cause := context.Cause(r.Context())
	switch {
	case errors.Is(cause, context.Canceled):
		panic(http.ErrAbortHandler) // the client is gone: no answer, and no log line
	case cause == nil && rec.clientFailed.Load():
		problem.Write(w, apperr.Invalid("body", "could not be read to its end"))
		return
	case cause != nil:
		err = cause // says more than "context canceled"
	}
	log.LogAttrs(r.Context(), slog.LevelWarn, "service does not answer", slog.String("upstream", service),
		slog.String("request_id", rec.requestID[0]), slog.String("method", r.Method), slog.Any("error", err))
	if d := deliveryOf(r); d != nil && d.mayHaveArrived(cause != nil) {
		problem.Write(w, apperr.Unknown(err))
		return
	}
	problem.Write(w, apperr.Away("the "+service+" service", err))
}

// abandonedBody is the body of an answer whose connection the transport closes when the client leaves in the middle of
// its request. ReverseProxy logs the error of such a read unless it says that the request was cancelled.
type abandonedBody struct{ io.ReadCloser }

func (b abandonedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, net.ErrClosed) {
		err = context.Canceled
	}
	return n, err
}

// copyBuffers lends ReverseProxy its buffers.
type copyBuffers struct{}

const copyBufferSize = 32 << 10

var copyBufferPool = sync.Pool{New: func() any { return new([copyBufferSize]byte) }}

func (copyBuffers) Get() []byte  { return copyBufferPool.Get().(*[copyBufferSize]byte)[:] }
func (copyBuffers) Put(b []byte) { copyBufferPool.Put((*[copyBufferSize]byte)(b)) }
