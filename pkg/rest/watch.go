package rest

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
)

// A stream ends within 30 s of its token's end, however busy it is. A replica without NATS notices that after
// auth.Grace. The token is looked at every recheck, with an answer that is at most recheckAge old; asking takes at most
// recheckTime, and the client may take endGrace to receive what is being sent.
const (
	recheck     = 5 * time.Second
	recheckAge  = 5 * time.Second
	recheckTime = 5 * time.Second
	endGrace    = 4 * time.Second
)

var errEnded = apperr.New(apperr.Unauthenticated, "the token has ended")

// watch returns a context that ends with the credential of a running stream. Soon after, the stream's connection takes
// no more bytes in either direction. The caller must call stop at the end.
func (s *Server) watch(ctx context.Context, op *Op, w http.ResponseWriter, r *http.Request) (_ context.Context,
	stop func()) {
	if !op.needsCredential(r) {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	control := http.NewResponseController(w)
	var mu sync.Mutex
	var timer *time.Timer
	done := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(s.cfg.Recheck, func() {
		valid := s.stillValid(ctx, r)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case done: // the connection may already serve the next request
		case valid:
			timer.Reset(s.cfg.Recheck)
		default:
			cancel(errEnded)
			_ = control.SetWriteDeadline(time.Now().Add(endGrace)) // not every server has deadlines
			if r.ContentLength != 0 {
				_ = control.SetReadDeadline(time.Now())
			}
		}
	})
	return ctx, func() {
		mu.Lock()
		done = true
		mu.Unlock()
		timer.Stop()
		cancel(nil)
	}
}

// stillValid reports whether the credential of a running request is still valid. One about which nobody answers for so
// long that new requests are refused is not. There is no leeway for a token that has expired: it is for the clocks of
// those who use a new one.
func (s *Server) stillValid(ctx context.Context, r *http.Request) bool {
	token, err := auth.BearerToken(r)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, recheckTime)
	defer cancel()
	principal, err := s.verify(ctx, token, recheckAge)
	return err == nil && (principal.Expires.IsZero() || s.cfg.Clock.Now().Before(principal.Expires))
}

// endingWriter refuses writes once its context has ended.
type endingWriter struct {
	http.ResponseWriter
	ctx context.Context
}

// Write is called after the deadline for it was set, so that the one that watch sets holds.
func (w endingWriter) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w endingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
