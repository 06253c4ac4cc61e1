// Package gateway is the platform's front door: it finds the service that a path names and passes the request on, to a handler in the same
// process or to another process. On the way it gives the request an id, limits how much and how long, answers CORS, and serves what
// belongs to no single service: one OpenAPI document of all, its page, and health. It has no store and reads no body.
package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/problem"
)

const (
	// maxURIBytes bounds path and query. The largest honest one, a list of 200 ids with filters, has some 4 KiB.
	maxURIBytes = 16 << 10
	// maxHeaderBytes bounds the request line and all headers; net/http answers 431 beyond.
	maxHeaderBytes = 64 << 10
)

// Deps is what the gateway is given besides its configuration.
type Deps struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Tracer  trace.TracerProvider // nil: no tracing, at no cost; a caller's traceparent still reaches the service
}

// Gateway is an http.Handler for everything that clients reach. It is safe for concurrent use. Close it when done.
type Gateway struct {
	config   Config
	log      *slog.Logger
	proxies  trustedProxies
	services map[string]service
	handler  http.Handler // the whole chain

	openAPI   *openAPI
	docs      http.Handler
	readiness *readiness
	transport *http.Transport

	shares        *shares
	perCredential *limiter
	failures      *limiter // 401 answers, per address
	metrics       *metrics
	inFlight      atomic.Int64 // requests but event streams
	streams       atomic.Int64 // event streams
	draining      atomic.Bool
}

// service is how one service is called.
type service struct {
	handler http.Handler
	remote  bool
}

// Services lists the names that an Upstream can be given for.
func Services() []string { return slices.Sorted(maps.Keys(prefixes)) }

// New makes a gateway to the services that are deployed. The paths of the others are answered 503.
func New(config Config, upstreams map[string]Upstream, deps Deps) (*Gateway, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("gateway configuration: %w", err)
	}
	proxies, err := parseProxies(config.TrustedProxies)
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		config:        config,
		log:           deps.Log,
		proxies:       proxies,
		services:      map[string]service{},
		docs:          newDocs(),
		transport:     newTransport(config.MaxConcurrent),
		perCredential: newLimiter(rate.Limit(config.RateLimit.PerSecond), config.RateLimit.Burst),
		failures:      newLimiter(rate.Limit(config.RateLimit.FailuresPerMinute/60), config.RateLimit.FailuresBurst),
	}
	for name, u := range upstreams {
		if _, known := prefixes[name]; !known {
			return nil, fmt.Errorf("gateway: there is no service %q; the services are %s", name, strings.Join(Services(), ", "))
		}
		if u.url == nil {
			g.services[name] = service{handler: u.handler}
			continue
		}
		g.services[name] = service{handler: newProxy(name, u.url, g.transport, deps.Log), remote: true}
	}
	if g.metrics, err = newMetrics(deps.Metrics, Services(), &g.inFlight, &g.streams); err != nil {
		return nil, fmt.Errorf("gateway metrics: %w", err)
	}
	client := &http.Client{Transport: g.transport}
	// From here on New can't fail: Close must end what it starts.
	g.shares = newShares(config.share(config.MaxConcurrent), config.share(config.MaxStreams))
	g.openAPI = newOpenAPI(upstreams, client, deps.Log)
	g.readiness = newReadiness(upstreams, client, deps.Log)
	g.handler = g.chain(deps.Tracer)
	return g, nil
}

// Close ends what runs in the background. No request may come any more.
func (g *Gateway) Close() {
	g.openAPI.close()
	g.shares.close()
	g.perCredential.close()
	g.failures.close()
	g.transport.CloseIdleConnections()
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.handler.ServeHTTP(w, r) }

// chain wraps, from the outside: tracing, request id and headers, health or CORS, limits, routes.
func (g *Gateway) chain(tracer trace.TracerProvider) http.Handler {
	guarded := withCORS(g.config.CORSOrigins, http.HandlerFunc(g.limit))
	edge := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.edge(w, r, guarded) })
	if tracer == nil {
		return edge
	}
	propagator := propagation.TraceContext{}
	traced := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		propagator.Inject(r.Context(), propagation.HeaderCarrier(r.Header)) // the service's span hangs below this one
		edge(w, r)
	})
	return otelhttp.NewHandler(traced, "gateway", otelhttp.WithTracerProvider(tracer), otelhttp.WithPropagators(propagator),
		otelhttp.WithFilter(func(r *http.Request) bool { return r.URL.Path != "/healthz" && r.URL.Path != "/readyz" }),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string {
			name, _ := routes.find(r.URL.Path)
			return strings.TrimSpace(r.Method + " " + name) // never the path: it holds ids
		}))
}

// edge gives the request its id and the answer its headers. It changes the request's header map in place: the gateway is its first
// reader, and a copy would cost more than the rest of the hop.
func (g *Gateway) edge(w http.ResponseWriter, r *http.Request, next http.Handler) {
	dropHopByHop(r.Header)
	id := []string{requestID(r.Header.Get("X-Request-Id"))}
	r.Header["X-Request-Id"] = id
	w.Header()["X-Request-Id"] = id // for problem.Write
	answer := &response{ResponseWriter: w, requestID: id, secure: r.TLS != nil, draining: g.draining.Load()}
	switch r.URL.Path {
	case "/healthz": // neither limited nor counted: they are asked all the time, and most when all else is full
		g.serveHealth(answer, r)
	case "/readyz":
		g.serveReady(answer, r)
	default:
		next.ServeHTTP(answer, r)
	}
}

// limit bounds how many requests there are, and counts them. Event streams, which last, have places of their own.
func (g *Gateway) limit(w http.ResponseWriter, r *http.Request) {
	answer, started, what := w.(*response), time.Now(), kindOf(r)
	count, most, many := &g.inFlight, g.config.MaxConcurrent, "requests"
	if what == eventStream {
		count, most, many = &g.streams, g.config.MaxStreams, "event streams"
	}
	name, finished := ownService, false
	running := count.Add(1)
	defer func() {
		limitRest(answer.ResponseWriter, r)
		count.Add(-1)
		if !finished { // http.ErrAbortHandler: the answer broke off after its status
			answer.status = 0
		}
		if what != eventStream || answer.status >= http.StatusMultipleChoices { // how long a stream lasts is no measure
			g.metrics.observe(name, answer.status, time.Since(started))
		}
	}()
	if running > int64(most) {
		problem.Write(w, &apperr.Error{
			Kind: apperr.Unavailable, Detail: "too many " + many + " at once", RetryAfter: time.Second,
		})
	} else {
		g.serve(answer, r, what, &name)
	}
	if answer.status == 0 {
		answer.WriteHeader(http.StatusOK) // as net/http would, but with our headers
	}
	finished = true
}

// serve answers a request that was let in. It sets name to the service that did.
func (g *Gateway) serve(w *response, r *http.Request, what kind, name *string) {
	if what == ordinary {
		withDeadline(w.ResponseWriter, g.config.RequestTimeout)
	}
	client := g.proxies.forward(r)
	share, ok := g.shares.take(w, r, client, what == eventStream)
	if !ok {
		g.metrics.rateLimited.Inc()
		problem.Write(w, &apperr.Error{Kind: apperr.RateLimited, Detail: "too many requests of one caller at once", RetryAfter: time.Second})
		return
	}
	defer g.shares.leave(share)
	if err := g.admit(r, client, what); err != nil {
		problem.Write(w, err)
		return
	}
	switch path := r.URL.Path; {
	case path == openAPIPath || path == openAPIPathYAML || path == openAPIPath30:
		g.openAPI.ServeHTTP(w, r)
		return
	case path == "/docs" || strings.HasPrefix(path, "/docs/"):
		g.docs.ServeHTTP(w, r)
		return
	}
	found, err := route(r.URL)
	if err != nil {
		problem.Write(w, err)
		return
	}
	*name = found
	g.pass(w, r, found, what)
	if w.status == http.StatusUnauthorized {
		g.failures.take(addressKey(client))
	}
}

// admit refuses what is too much: by size, then by rate.
func (g *Gateway) admit(r *http.Request, client netip.Addr, what kind) error {
	if len(r.RequestURI) > maxURIBytes {
		return apperr.Invalid("path", "and query must not be longer than %d bytes", maxURIBytes)
	}
	if r.ContentLength > g.config.MaxBodyBytes && what != transfer {
		return apperr.New(apperr.TooLarge, "the body must not be longer than %d bytes", g.config.MaxBodyBytes)
	}
	wait := g.failures.empty(addressKey(client))
	if wait == 0 {
		wait = g.perCredential.take(credentialKey(r, client))
	}
	if wait > 0 {
		g.metrics.rateLimited.Inc()
		return &apperr.Error{Kind: apperr.RateLimited, Detail: "too many requests", RetryAfter: wait}
	}
	return nil
}

// pass calls the service.
func (g *Gateway) pass(w *response, r *http.Request, name string, what kind) {
	service, deployed := g.services[name]
	if !deployed {
		problem.Write(w, &apperr.Error{Kind: apperr.Unavailable, Detail: "the " + name + " service is not deployed here", RetryAfter: time.Minute})
		return
	}
	switch {
	case what != ordinary:
		watched, stop := withIdleLimit(w, r, g.config.StreamIdleTimeout)
		defer stop()
		r = watched
	case service.remote:
		// In process the service has its own time-out, and the connection's deadline stands behind it.
		ctx, cancel := context.WithTimeout(r.Context(), g.config.RequestTimeout)
		defer cancel()
		r = r.WithContext(ctx)
	}
	if r.Body != nil && r.Body != http.NoBody && (service.remote || w.progress != nil) {
		body := &requestBody{ReadCloser: r.Body, w: w}
		defer body.mustEnd()
		r.Body = body
	}
	if what == eventStream && service.remote {
		g.passEvents(service, w, r)
		return
	}
	service.handler.ServeHTTP(w, r)
}
