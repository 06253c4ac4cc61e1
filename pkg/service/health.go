package service

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/idplatform/idplatform/pkg/outbox"
)

// healthHandler answers /healthz and /readyz, and passes all else on.
type healthHandler struct {
	next     http.Handler
	ready    func(context.Context) error
	draining atomic.Bool
}

const readyTimeout = 2 * time.Second

func (h *healthHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz":
		say(w, http.StatusOK, "ok")
	case "/readyz":
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if h.draining.Load() {
			say(w, http.StatusServiceUnavailable, "stopping")
			return
		}
		switch err := h.ready(ctx); {
		case errors.Is(err, outbox.ErrStuck):
			say(w, http.StatusServiceUnavailable, outbox.ErrStuck.Error())
		case err != nil:
			say(w, http.StatusServiceUnavailable, "the store does not answer")
		default:
			say(w, http.StatusOK, "ready")
		}
	default:
		h.next.ServeHTTP(w, r)
	}
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"status": text})
}
