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

// requestBody notes when the client's side fails, so that this is not held against the service, and the progress of a stream.
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
	if b.w.progress != nil && n > 0 {
		b.w.progress()
	}
	return n, err
}

// lateBody is how long the rest of a body may take that was answered without: net/http reads on a little before it
// sends the answer, and would wait for all of a slow one.
const lateBody = time.Second

func limitRest(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(lateBody))
	}
}

// Close ends a Read that still waits for the client: the proxy closes the body once the answer is sent.
func (b *requestBody) Close() error {
	if !b.ended.Load() {
		_ = http.NewResponseController(b.w.ResponseWriter).SetReadDeadline(time.Now().Add(lateBody))
	}
	return b.ReadCloser.Close()
}

// mustEnd breaks the connection off where a stream was answered without reading all of its body: see response.duplex.
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

// errIdle ends a stream on which nothing moved, in either direction.
var errIdle = errors.New("the transfer stood still")

// answerGrace is how much longer than its request a connection may live, so that an answer about the time-out still gets out.
const answerGrace = 5 * time.Second

// withDeadline gives a request's connection the limit of an ordinary request. In HTTP/1 a read deadline that passes also ends the
// request's context. net/http takes the deadlines back before the connection's next request.
func withDeadline(w http.ResponseWriter, limit time.Duration) {
	control, deadline := http.NewResponseController(w), time.Now().Add(limit+answerGrace)
	_ = control.SetReadDeadline(deadline) // not a net/http server's connection: nothing to limit
	_ = control.SetWriteDeadline(deadline)
}

// withIdleLimit watches a stream: it ends (context, then connection) once nothing was read or written for so long. The caller
// serves the request that it returns and calls stop when done.
func withIdleLimit(w *response, r *http.Request, limit time.Duration) (_ *http.Request, stop func()) {
	control := http.NewResponseController(w.ResponseWriter)
	if r.ContentLength != 0 && r.ProtoMajor == 1 {
		w.duplex = control.EnableFullDuplex
	}

	ctx, cancel := context.WithCancelCause(r.Context())
	var mu sync.Mutex
	done := false
	timer := time.AfterFunc(limit, func() {
		mu.Lock()
		defer mu.Unlock()
		if done {
			return // the connection may serve the next request already
		}
		cancel(errIdle)
		_ = control.SetReadDeadline(time.Now())
		_ = control.SetWriteDeadline(time.Now().Add(answerGrace))
	})
	w.progress = func() {
		if ctx.Err() == nil {
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
