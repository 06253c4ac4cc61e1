package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// readinessAge is how long one answer about the services holds, so that however often readyz is asked, the services are not.
const readinessAge = time.Second

// readiness knows which services can serve.
type readiness struct {
	upstreams map[string]Upstream
	client    *http.Client
	log       *slog.Logger

	mu      sync.Mutex
	checked time.Time
	ready   bool
	states  map[string]string // service → ready, not_ready
}

func newReadiness(upstreams map[string]Upstream, client *http.Client, log *slog.Logger) *readiness {
	return &readiness{upstreams: upstreams, client: client, log: log}
}

// check asks all services at once, or gives what they said within the last second. The map must not be changed.
func (rd *readiness) check() (ready bool, states map[string]string) {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	if !rd.checked.IsZero() && time.Since(rd.checked) < readinessAge {
		return rd.ready, rd.states
	}
	var (
		wg sync.WaitGroup
		mu sync.Mutex
	)
	before := rd.states
	rd.ready, rd.states = true, make(map[string]string, len(rd.upstreams))
	for service, u := range rd.upstreams {
		wg.Go(func() {
			// Not the asker's context: the answer is for all who ask in the next second.
			err := u.isReady(context.Background(), rd.client)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				rd.states[service] = "ready"
				return
			}
			rd.ready, rd.states[service] = false, "not_ready"
			if before[service] != "not_ready" { // once each time it goes; the reason is for the log alone, readyz is open to all
				rd.log.Warn("service is not ready", "upstream", service, "error", err)
			}
		})
	}
	wg.Wait()
	rd.checked = time.Now()
	return rd.ready, rd.states
}

type health struct {
	Status   string            `json:"status"`
	Services map[string]string `json:"services,omitempty"`
}

// serveHealth answers as long as the process does.
func (g *Gateway) serveHealth(w http.ResponseWriter, _ *http.Request) {
	writeHealth(w, http.StatusOK, health{Status: "alive"})
}

// serveReady says 503 while a deployed service is not ready, and from the moment that a stop is asked for.
func (g *Gateway) serveReady(w http.ResponseWriter, _ *http.Request) {
	if g.draining.Load() {
		writeHealth(w, http.StatusServiceUnavailable, health{Status: "draining"})
		return
	}
	ready, states := g.readiness.check()
	if !ready {
		writeHealth(w, http.StatusServiceUnavailable, health{Status: "not_ready", Services: states})
		return
	}
	writeHealth(w, http.StatusOK, health{Status: "ready", Services: states})
}

func writeHealth(w http.ResponseWriter, status int, body health) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that is gone hears nothing
}
