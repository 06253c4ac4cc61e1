package service

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"
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
		switch {
		case h.draining.Load():
			say(w, http.StatusServiceUnavailable, "stopping")
		case h.ready(ctx) != nil:
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
