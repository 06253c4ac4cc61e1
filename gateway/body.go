package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// requestBody notes failures on the client's side, so that they are not counted against the service, and reports the
// progress of a stream.
type requestBody struct {
	io.ReadCloser
	w     *response
	ended atomic.Bool
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.ended.Store(true)
		if !errors.Is(err, io.EOF) {
			b.w.clientFailed.Store(true)
		}
	}
	if end := errors.Is(err, io.EOF); b.w.progress != nil && (n > 0 || end) {
		b.w.progress(end)
	}
	return n, err
}

// lateBody is how long the rest of a request body may take after the response: net/http reads on a little before it
// sends a response, and would wait long for a slow body.
const lateBody = time.Second

// limitRest sets the deadline for the rest of a request's body.
func limitRest(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(lateBody))
	}
}

// Close ends a Read that still waits for the client. The proxy closes the body once the response is sent.
func (b *requestBody) Close() error {
	if !b.ended.Load() {
		_ = http.NewResponseController(b.w.ResponseWriter).SetReadDeadline(time.Now().Add(lateBody))
	}
	return b.ReadCloser.Close()
}

// mustEnd breaks the connection of a stream whose response was sent before its body was read to the end: see
// response.duplex.
func (b *requestBody) mustEnd() {
	if b.w.duplex == nil || b.w.status == 0 || b.w.status >= http.StatusMultipleChoices {
		return
	}
	if !b.ended.Load() {
		_ = http.NewResponseController(b.w.ResponseWriter).SetReadDeadline(time.Now().Add(lateBody))
		_, _ = io.CopyN(io.Discard, b, 1)
	}
	if !b.ended.Load() || b.w.clientFailed.Load() {
		panic(http.ErrAbortHandler)
	}
}

// answerFactor is how many times as long as a stream may stand still its service may take to answer a request that was
// sent to the end: the service has yet to work through megabytes that wait in the buffers of the connection.
const answerFactor = 15

// errIdle ends a stream on which no bytes moved in either direction.
var errIdle = errors.New("nothing was sent or received for too long")

// answerGrace is how much longer than its request a connection may live, so that the response about a time-out can
// still be sent.
const answerGrace = 5 * time.Second

// withDeadline limits the time of a request's connection as for an ordinary request. In HTTP/1, a read deadline that
// passes also ends the request's context. net/http resets the deadlines before the connection's next request.
func withDeadline(w http.ResponseWriter, limit time.Duration) {
	control, deadline := http.NewResponseController(w), time.Now().Add(limit+answerGrace)
	_ = control.SetReadDeadline(deadline) // fails only without a net/http connection, which has nothing to limit
	_ = control.SetWriteDeadline(deadline)
}

// withIdleLimit ends a stream (first its context, then its connection) when nothing has been read or written for the
// time limit, see also answerFactor. The caller serves the returned request and calls stop at the end.
func withIdleLimit(w *response, r *http.Request, limit time.Duration) (_ *http.Request, stop func()) {
	control := http.NewResponseController(w.ResponseWriter)
	if r.ContentLength != 0 && r.ProtoMajor == 1 && r.Method != http.MethodGet { // nobody reads the body of a GET
		w.duplex = control.EnableFullDuplex
	}

	ctx, cancel := context.WithCancelCause(r.Context())
	var mu sync.Mutex
	done := false
	timer := time.AfterFunc(limit, func() {
		mu.Lock()
		defer mu.Unlock()
		if done {
			return // the connection may already serve the next request
		}
		cancel(errIdle)
		_ = control.SetReadDeadline(time.Now())
		_ = control.SetWriteDeadline(time.Now().Add(answerGrace))
	})
	w.progress = func(sent bool) {
		switch {
		case ctx.Err() != nil:
		case sent:
			timer.Reset(answerFactor * limit)
		default:
			timer.Reset(limit)
		}
	}
	return r.WithContext(ctx), func() {
		mu.Lock()
		done = true
		mu.Unlock()
		timer.Stop()
		cancel(nil)
	}
}
