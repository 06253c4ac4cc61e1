package rest

import (
	"context"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/idplatform/idplatform/pkg/request"
)

// roomFor refuses a change whose answer could not be sent.
func (s *Server) roomFor(ctx context.Context, op *Op) error {
	if op.refusable() {
		return nil // write refuses the answer itself
	}
	return s.cfg.Budget.room(request.Tenant(ctx))
}

// refusable reports whether an operation's answer can be refused when it is made: it has changed nothing.
func (op *Op) refusable() bool { return !op.writes() || op.NoReplay }

// write writes an answer. What the answer holds meanwhile counts for the server's budget. An error after the first byte
// means that the rest is missing.
func (s *Server) write(ctx context.Context, op *Op, call *call, w http.ResponseWriter, r *http.Request,
	a *answer) error {
	defer a.release()
	mine := share{s.cfg.Budget, request.Tenant(ctx)}
	size := len(a.Body)
	if a.stream != nil {
		size = a.holds
	}
	taken, err := mine.take(size, !op.refusable())
	if err != nil {
		return err
	}
	defer taken.release()
	a.writeHeaders(w.Header())
	if a.stream == nil {
		if a.Status != http.StatusNotModified && a.Status != http.StatusNoContent {
			w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
		}
		w.WriteHeader(a.Status)
		_ = send(w, a.Body) // fails only if the client has gone
		return nil
	}
	if call.untimed != nil {
		var stop func()
		ctx, stop = s.watch(call.untimed, op, w, r)
		defer stop()
	}
	w.WriteHeader(a.Status)
	return a.stream(ctx, endingWriter{w, ctx}, mine)
}

func (a *answer) writeHeaders(h http.Header) {
	if a.ETag != "" {
		h.Set("ETag", a.ETag)
	}
	if a.Location != "" {
		h.Set("Location", a.Location)
	}
	if a.Token != "" {
		h.Set(request.ConsistencyToken, a.Token)
	}
	if a.Cache == "" {
		a.Cache = "no-store"
	}
	h.Set("Cache-Control", a.Cache)
	if a.Status == http.StatusNotModified {
		return
	}
	if a.replayed {
		h.Set("Idempotent-Replayed", "true")
	}
	if a.Status == http.StatusNoContent {
		return
	}
	h.Set("Content-Type", a.ContentType)
	maps.Copy(h, a.header)
}

// An answer is sent in pieces, and the client must take each in time. A slow reader is served; one that stops reading
// is not.
const (
	answerPiece = 64 << 10
	pieceTime   = 10 * time.Second
)

func send(w http.ResponseWriter, body []byte) error {
	control := http.NewResponseController(w)
	for len(body) > 0 {
		piece := body[:min(len(body), answerPiece)]
		body = body[len(piece):]
		_ = control.SetWriteDeadline(time.Now().Add(pieceTime)) // not every server has deadlines
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

// inPieces makes the stream of a body that is written while it is read. One that fits into a single piece has a
// Content-Length.
func inPieces(write func(context.Context, io.Writer) error) func(context.Context, http.ResponseWriter, share) error {
	return func(ctx context.Context, w http.ResponseWriter, _ share) error {
		buffer := buffers.Get().(*[]byte)
		out := &pieces{w: w, b: (*buffer)[:0]}
		defer func() { *buffer = out.b[:0]; buffers.Put(buffer) }()
		if err := write(ctx, out); err != nil {
			return err
		}
		if !out.begun {
			w.Header().Set("Content-Length", strconv.Itoa(len(out.b)))
		}
		return send(w, out.b)
	}
}

// pieces collects small writes.
type pieces struct {
	w     http.ResponseWriter
	b     []byte
	begun bool
}

func (p *pieces) Write(b []byte) (int, error) {
	if len(p.b)+len(b) > answerPiece {
		p.begun = true
		if err := send(p.w, p.b); err != nil {
			return 0, err
		}
		p.b = p.b[:0]
	}
	if len(b) > answerPiece {
		return len(b), send(p.w, b)
	}
	p.b = append(p.b, b...)
	return len(b), nil
}
