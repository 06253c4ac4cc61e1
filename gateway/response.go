package gateway

import (
	"net/http"
	"sync/atomic"
)

// Header values shared by all responses: net/http only reads them, and no code appends to these headers.
var (
	noSniff     = []string{"nosniff"}
	noReferrer  = []string{"no-referrer"}
	denyFrames  = []string{"DENY"}
	contentNone = []string{"default-src 'none'; frame-ancestors 'none'"}
	hsts        = []string{"max-age=31536000"}
	closeValue  = []string{"close"}
)

// response is the response to one request. It keeps the status, and sets the headers that every response has after the
// service has set its own, so that there is only one X-Request-Id.
type response struct {
	http.ResponseWriter
	requestID []string
	status    int  // 0 until the header is written
	secure    bool // the request came over TLS
	draining  bool // the connection should not be used again

	// progress is called for every piece of a stream, with true if its request body ends there; nil for other requests.
	progress func(sent bool)

	// duplex lets the response to a stream begin while its request body is still being sent; nil for other requests
	// and for HTTP/2, which always allows it. It is called for successful responses only: after it, net/http does not
	// read the rest of a body, and would take what a refusal leaves unread for the next request.
	duplex func() error

	credential uint64  // the hash of the credential
	learn      *shares // set if the credential's caller is not known yet

	clientFailed atomic.Bool // the client's side failed while its request body was read
}

func (w *response) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
		w.finish(w.Header())
		if w.duplex != nil && status < http.StatusMultipleChoices {
			_ = w.duplex()
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) finish(h http.Header) {
	w.learned(h)
	h["X-Request-Id"] = w.requestID
	h["X-Content-Type-Options"] = noSniff
	if _, ok := h["Referrer-Policy"]; !ok {
		h["Referrer-Policy"] = noReferrer
	}
	h["X-Frame-Options"] = denyFrames
	if _, ok := h["Content-Security-Policy"]; !ok {
		h["Content-Security-Policy"] = contentNone
	}
	if w.secure {
		h["Strict-Transport-Security"] = hsts
	}
	if w.draining {
		h["Connection"] = closeValue
	}
}

func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(b)
	if w.progress != nil && n > 0 {
		w.progress(false)
	}
	return n, err
}

// Flush exists because Gin expects an http.Flusher and does not use Unwrap.
func (w *response) Flush() {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush() // a server that cannot flush sends everything at the end
}

// Unwrap lets http.ResponseController find the server's writer.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
