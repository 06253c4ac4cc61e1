package rest

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// A body must arrive at bodyRate bytes per second at least, once bodyGrace has passed. A client that declares much and
// sends little holds its place only for seconds; one on a slow line is served.
const (
	bodyGrace = 5 * time.Second
	bodyRate  = 4 << 10
)

// steadyBody is a body that must arrive at the minimum rate, and completely before end.
type steadyBody struct {
	io.ReadCloser
	control    *http.ResponseController
	start, end time.Time
	received   int64
}

func newSteadyBody(w http.ResponseWriter, body io.ReadCloser, limit time.Duration) *steadyBody {
	now := time.Now()
	return &steadyBody{ReadCloser: body, control: http.NewResponseController(w), start: now, end: now.Add(limit)}
}

func (b *steadyBody) Read(p []byte) (int, error) {
	deadline := b.start.Add(bodyGrace + time.Duration(b.received)*time.Second/bodyRate)
	if b.end.Before(deadline) {
		deadline = b.end
	}
	_ = b.control.SetReadDeadline(deadline) // the recorders of tests have no deadlines
	n, err := b.ReadCloser.Read(p)
	b.received += int64(n)
	if errors.Is(err, io.EOF) {
		// net/http takes a passed deadline for a client that has disconnected
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// unreadable is the error for a body that could not be read.
func unreadable(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return apperr.Invalid("body", "took too long to arrive").Because(err)
	}
	return apperr.Invalid("body", "could not be read").Because(err)
}

// Buffers for bodies start small and grow with the bytes that have arrived, whatever length was declared: a declared
// length costs a client nothing, so it must cost the server nothing. Buffers that stayed small are used again.
const (
	firstBuffer  = 4 << 10
	pooledBuffer = 64 << 10
)

var bodyBuffers = sync.Pool{New: func() any { b := make([]byte, 0, firstBuffer); return &b }}

// receive appends r to buffer, at most limit + 1 bytes.
func receive(buffer []byte, r io.Reader, limit int) ([]byte, error) {
	for {
		if len(buffer) == cap(buffer) {
			larger := make([]byte, len(buffer), 2*cap(buffer))
			copy(larger, buffer)
			buffer = larger
		}
		room := buffer[len(buffer):min(cap(buffer), limit+1)]
		n, err := r.Read(room)
		buffer = buffer[:len(buffer)+n]
		switch {
		case errors.Is(err, io.EOF), len(buffer) > limit:
			return buffer, nil
		case err != nil:
			return buffer, err
		}
	}
}

// release returns the buffer for later requests.
func release(buffer *[]byte) {
	if buffer != nil && cap(*buffer) <= pooledBuffer {
		*buffer = (*buffer)[:0]
		bodyBuffers.Put(buffer)
	}
}
