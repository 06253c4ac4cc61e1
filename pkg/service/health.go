package service

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/problem"
)

// healthHandler answers /healthz and /readyz, and passes all other requests on once the service has started.
type healthHandler struct {
	started  atomic.Pointer[started]
	draining atomic.Bool
}

type started struct {
	handler  http.Handler
	ready    func(context.Context) error
	warnings func() []string
}

// open passes requests to handler from now on, and lets ready and warnings answer /readyz.
func (h *healthHandler) open(handler http.Handler, ready func(context.Context) error, warnings func() []string) {
	h.started.Store(&started{handler, ready, warnings})
}

const readyTimeout = 2 * time.Second

func (h *healthHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	service := h.started.Load()
	switch {
	case r.URL.Path == "/healthz":
		say(w, http.StatusOK, "ok")
	case service == nil && r.URL.Path == "/readyz":
		say(w, http.StatusServiceUnavailable, "starting")
	case service == nil:
		problem.Write(w, apperr.Away("the service", errStarting))
	case r.URL.Path == "/readyz":
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if h.draining.Load() {
			say(w, http.StatusServiceUnavailable, "stopping")
			return
		}
		switch err := service.ready(ctx); {
		case errors.Is(err, outbox.ErrStuck):
			say(w, http.StatusServiceUnavailable, outbox.ErrStuck.Error())
		case errors.Is(err, errBehind):
			say(w, http.StatusServiceUnavailable, errBehind.Error())
		case errors.Is(err, errLoading):
			say(w, http.StatusServiceUnavailable, errLoading.Error())
		case err != nil:
			say(w, http.StatusServiceUnavailable, "the store does not answer")
		default:
			say(w, http.StatusOK, "ready", service.warnings()...)
		}
	default:
		service.handler.ServeHTTP(w, r)
	}
}

// readiness is a metric that asks at each scrape what /readyz asks.
func (u *Unit) readiness() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "idp_ready",
		Help: "1 while the service has everything that it needs to serve, as /readyz says; 0 otherwise.",
	}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
		defer cancel()
		if u.Ready(ctx) != nil {
			return 0
		}
		return 1
	})
}

var errStarting = errors.New("the service is starting")

func say(w http.ResponseWriter, status int, text string, warnings ...string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(struct { // fails only if the client has disconnected
		Status   string   `json:"status"`
		Warnings []string `json:"warnings,omitempty"`
	}{text, warnings})
}
