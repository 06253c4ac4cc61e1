package gateway

import (
	"net/http"
	"sync/atomic"
)

// Shared values: net/http only reads them, and nothing adds to a header of one of these names.
var (
	noSniff     = []string{"nosniff"}
	noReferrer  = []string{"no-referrer"}
	denyFrames  = []string{"DENY"}
	contentNone = []string{"default-src 'none'; frame-ancestors 'none'"}
	hsts        = []string{"max-age=31536000"}
	closeValue  = []string{"close"}
)

// response is the answer to one request: it notes the status and sets what every answer carries, last of all, so that a service's
// own X-Request-Id doesn't come twice.
type response struct {
	http.ResponseWriter
	requestID []string
	status    int    // 0 until the header is written
	secure    bool   // the request came over TLS
	draining  bool   // the connection should not be used again
	progress  func() // called for every piece of a stream; nil for the rest

	// duplex lets a stream's answer begin while its body still comes (HTTP/2 always can); nil for the rest. It is
	// called for good answers only: after it net/http no longer sees to the rest of a body, and would take what a
	// refusal leaves unread for the next request.
	duplex func() error

	credential uint64  // its hash
	learn      *shares // wants to know whose the credential is; nil if it does

	clientFailed atomic.Bool // the request's body could not be read
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
	h["Referrer-Policy"] = noReferrer
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
		w.progress()
	}
	return n, err
}

// Flush is here because Gin asks for an http.Flusher, not for Unwrap.
func (w *response) Flush() {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush() // a server that can't flush sends at the end
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
