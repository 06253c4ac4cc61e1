package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"
)

// readinessAge is how long the services' answers are used again, so that frequent requests to /readyz do not reach
// the services.
const readinessAge = time.Second

// readiness knows which services are ready.
type readiness struct {
	upstreams map[string]Upstream
	required  []string
	client    *http.Client
	log       *slog.Logger

	mu      sync.Mutex
	checked time.Time
	last    health
}

func newReadiness(
	upstreams map[string]Upstream, required []string, client *http.Client, log *slog.Logger,
) *readiness {
	return &readiness{upstreams: upstreams, required: required, client: client, log: log}
}

// check asks all services at the same time, or returns their answers of the last second, which must not be changed.
func (rd *readiness) check() health {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	if !rd.checked.IsZero() && time.Since(rd.checked) < readinessAge {
		return rd.last
	}
	var (
		wg sync.WaitGroup
		mu sync.Mutex
	)
	before := rd.last.Services
	now := health{Status: ready, Services: map[string]string{}, Warnings: map[string][]string{}}
	for service, u := range rd.upstreams {
		wg.Go(func() {
			// The answer serves all requests of the next second, so it must not end with the context of one of them.
			warnings, err := u.isReady(context.Background(), rd.client)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				now.Services[service] = ready
				if len(warnings) > 0 {
					now.Warnings[service] = warnings
				}
				return
			}
			now.Services[service] = notReady
			if slices.Contains(rd.required, service) {
				now.Status = notReady
			}
			// The reason goes to the log, once for each time the service becomes not ready. It is not in the
			// response, which everybody can read.
			if before[service] != notReady {
				rd.log.Warn("service is not ready", "upstream", service, "error", err)
			}
		})
	}
	wg.Wait()
	rd.checked, rd.last = time.Now(), now
	return now
}

type health struct {
	Status   string              `json:"status"`
	Services map[string]string   `json:"services,omitempty"` // ready or not_ready
	Warnings map[string][]string `json:"warnings,omitempty"` // what ready services do not have and work without
}

const (
	ready    = "ready"
	notReady = "not_ready"
)

// serveHealth answers 200 as long as the process runs.
func (g *Gateway) serveHealth(w http.ResponseWriter, _ *http.Request) {
	writeHealth(w, http.StatusOK, health{Status: "alive"})
}

// serveReady answers 503 while a required service is not ready, and from the moment that the gateway is told to stop.
// Without the others the gateway routes on: only their paths are answered 503.
func (g *Gateway) serveReady(w http.ResponseWriter, _ *http.Request) {
	if g.draining.Load() {
		writeHealth(w, http.StatusServiceUnavailable, health{Status: "draining"})
		return
	}
	now := g.readiness.check()
	status := http.StatusOK
	if now.Status != ready {
		status = http.StatusServiceUnavailable
	}
	writeHealth(w, status, now)
}

func writeHealth(w http.ResponseWriter, status int, body health) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails only if the client has gone
}
