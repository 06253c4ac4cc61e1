// Package gateway is the entry point of the platform: it finds the service that a path belongs to and passes the
// request on, to a handler in the same process or to another process. It gives each request an id, limits the number,
// size and duration of requests, answers CORS preflights, and serves what belongs to no single service: one OpenAPI
// document, its page, and health. It has no store and does not look into bodies.
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

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/forwarded"
	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/request"
)

const (
	// maxURIBytes bounds path and query. The longest real one, a list of 200 ids with filters, takes about 4 KiB.
	maxURIBytes = 16 << 10
	// maxHeaderBytes bounds the request line and all headers together; net/http refuses more.
	maxHeaderBytes = 64 << 10
)

// Deps are what the gateway needs besides its configuration.
type Deps struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Tracer  trace.TracerProvider // nil: no tracing and no cost; a client's traceparent still reaches the service
}

// Gateway is an http.Handler for all that clients send. It is safe for concurrent use. Call Close at the end.
type Gateway struct {
	config   Config
	log      *slog.Logger
	origin   origin
	services map[string]service
	handler  http.Handler // all handlers, from edge to the services

	openAPI   http.Handler
	docs      http.Handler
	readiness *readiness
	transport *http.Transport

	shares    *shares
	perCaller buckets
	failures  buckets // 401 responses for each address
	metrics   *metrics
	inFlight  atomic.Int64 // running requests, without event streams
	streams   atomic.Int64 // open event streams
	draining  atomic.Bool
}

// service is the handler that calls one service.
type service struct {
	handler http.Handler
	remote  bool
}

// Services lists the names of all services that an Upstream can be given for.
func Services() []string { return slices.Sorted(maps.Keys(prefixes)) }

// New makes a gateway to the services in upstreams. Requests to other services are answered 503.
func New(config Config, upstreams map[string]Upstream, deps Deps) (*Gateway, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("gateway configuration: %w", err)
	}
	proxies, err := forwarded.ParseProxies(config.TrustedProxies)
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		config:    config,
		log:       deps.Log,
		origin:    origin{forwarded.Trust{Proxies: proxies, Gateway: forwarded.NewKey(config.GatewaySecret)}},
		services:  map[string]service{},
		docs:      newDocs(),
		transport: newTransport(config.MaxConcurrent),
		perCaller: newBuckets(config.RateLimit.PerSecond, config.RateLimit.Burst),
		failures:  newBuckets(config.RateLimit.UnauthorizedPerMinute/60, config.RateLimit.UnauthorizedBurst),
	}
	for name, u := range upstreams {
		if _, known := prefixes[name]; !known {
			return nil, fmt.Errorf("gateway: there is no service %q; the services are %s",
				name, strings.Join(Services(), ", "))
		}
		if u.url == nil {
			g.services[name] = service{handler: u.handler}
			continue
		}
		g.services[name] = service{handler: newProxy(name, u.url, g.transport, deps.Log), remote: true}
	}
	for _, name := range config.Required {
		if _, deployed := upstreams[name]; !deployed {
			return nil, fmt.Errorf("gateway: the required service %q is not one of the upstreams", name)
		}
	}
	if g.metrics, err = newMetrics(deps.Metrics, Services(), &g.inFlight, &g.streams); err != nil {
		return nil, fmt.Errorf("gateway metrics: %w", err)
	}
	g.shares = newShares(config.share(config.MaxConcurrent), config.share(config.MaxStreams))
	g.openAPI = newOpenAPI(g.services)
	g.readiness = newReadiness(upstreams, config.Required, &http.Client{Transport: g.transport}, deps.Log)
	g.handler = g.chain(deps.Tracer)
	return g, nil
}

// Close ends the gateway's connections to services. Call it after the last request.
func (g *Gateway) Close() { g.transport.CloseIdleConnections() }

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.handler.ServeHTTP(w, r) }

// chain returns the gateway's handlers, from the outside in: tracing, request id and headers, health or CORS, limits,
// routes.
func (g *Gateway) chain(tracer trace.TracerProvider) http.Handler {
	guarded := withCORS(g.config.CORSOrigins, http.HandlerFunc(g.limit))
	edge := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.edge(w, r, guarded) })
	if tracer == nil {
		return edge
	}
	propagator := propagation.TraceContext{}
	traced := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The service's span becomes a child of this one.
		propagator.Inject(r.Context(), propagation.HeaderCarrier(r.Header))
		edge(w, r)
	})
	return otelhttp.NewHandler(traced, "gateway", otelhttp.WithTracerProvider(tracer),
		otelhttp.WithPropagators(propagator),
		otelhttp.WithFilter(func(r *http.Request) bool { return r.URL.Path != "/healthz" && r.URL.Path != "/readyz" }),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string {
			name, _ := routes.find(r.URL.Path)
			return strings.TrimSpace(r.Method + " " + name) // not the path, which contains ids
		}))
}

// edge gives the request its id and the response its headers. It changes the request's headers in place: nobody reads
// them earlier, and a copy would cost more than all other work of the gateway.
func (g *Gateway) edge(w http.ResponseWriter, r *http.Request, next http.Handler) {
	dropHopByHop(r.Header)
	id := []string{request.IDOf(r.Header.Get("X-Request-Id"))}
	r.Header["X-Request-Id"] = id
	w.Header()["X-Request-Id"] = id // for problem.Write
	answer := &response{ResponseWriter: w, requestID: id, secure: r.TLS != nil, draining: g.draining.Load()}
	switch r.URL.Path {
	case "/healthz": // not limited or counted, because probes must be answered when all places are taken
		g.serveHealth(answer, r)
	case "/readyz":
		g.serveReady(answer, r)
	default:
		next.ServeHTTP(answer, r)
	}
}

// limit bounds the number of running requests and counts them. Event streams have places of their own, because they
// stay open.
func (g *Gateway) limit(w http.ResponseWriter, r *http.Request) {
	answer, started, what := w.(*response), time.Now(), kindOf(r)
	count, limit, noun := &g.inFlight, g.config.MaxConcurrent, "requests"
	if what == eventStream {
		count, limit, noun = &g.streams, g.config.MaxStreams, "event streams"
	}
	name, finished := ownService, false
	running := count.Add(1)
	defer func() {
		limitRest(answer.ResponseWriter, r)
		count.Add(-1)
		if !finished { // http.ErrAbortHandler: the response ended after its status had been sent
			answer.status = 0
		}
		// The duration of an event stream says nothing about the service.
		if what != eventStream || answer.status >= http.StatusMultipleChoices {
			g.metrics.observe(name, answer.status, time.Since(started))
		}
	}()
	if running > int64(limit) {
		problem.Write(w, &apperr.Error{
			Kind: apperr.Unavailable, Detail: "too many " + noun + " at once", RetryAfter: time.Second,
		})
	} else {
		g.serve(answer, r, what, &name)
	}
	if answer.status == 0 {
		answer.WriteHeader(http.StatusOK) // as net/http does, but with the gateway's headers
	}
	finished = true
}

// serve answers a request for which limit has a place. It sets name to the service that answers.
func (g *Gateway) serve(w *response, r *http.Request, what kind, name *string) {
	if what == ordinary {
		withDeadline(w.ResponseWriter, g.config.RequestTimeout)
	}
	client := g.origin.forward(r)
	share, ok := g.shares.take(w, r, client, what == eventStream)
	if !ok {
		g.metrics.rateLimited.Inc()
		problem.Write(w, &apperr.Error{
			Kind: apperr.RateLimited, Detail: "too many requests of this caller at once", RetryAfter: time.Second,
		})
		return
	}
	defer g.shares.leave(share)
	if err := g.admit(r, &share.caller, client, what); err != nil {
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
	case path == "/" && wantsPage(r):
		g.redirectToPage(w, r)
		return
	}
	found, err := route(r.URL)
	if err != nil {
		problem.Write(w, err)
		return
	}
	*name = found
	keepCookies(r, found)
	g.pass(w, r, found, what)
	if w.status == http.StatusUnauthorized && !isConsoleCall(r.URL.Path) {
		g.failures.Take(addressKey(client))
	}
}

// admit refuses requests that are too large, then those that exceed a rate limit.
func (g *Gateway) admit(r *http.Request, caller *bucketKey, client netip.Addr, what kind) error {
	if len(r.RequestURI) > maxURIBytes {
		return apperr.Invalid("path", "must not be longer than %d bytes, together with the query", maxURIBytes)
	}
	if r.ContentLength > g.config.MaxBodyBytes && what != transfer {
		return apperr.New(apperr.TooLarge, "the body must not be longer than %d bytes", g.config.MaxBodyBytes)
	}
	var wait time.Duration
	if !caller.isCaller() { // others at an address from which credentials are guessed go on
		wait = g.failures.Empty(addressKey(client))
	}
	if wait == 0 {
		wait = g.perCaller.Take(*caller)
	}
	if wait > 0 {
		g.metrics.rateLimited.Inc()
		return &apperr.Error{Kind: apperr.RateLimited, Detail: "too many requests", RetryAfter: wait}
	}
	return nil
}

// pass calls the service name.
func (g *Gateway) pass(w *response, r *http.Request, name string, what kind) {
	service, deployed := g.services[name]
	if !deployed {
		problem.Write(w, &apperr.Error{
			Kind: apperr.Unavailable, Detail: "the " + name + " service is not deployed here", RetryAfter: time.Minute,
		})
		return
	}
	switch {
	case what != ordinary:
		watched, stop := withIdleLimit(w, r, g.config.StreamIdleTimeout)
		defer stop()
		r = watched
	case service.remote:
		// A service in this process has its own time-out, and the connection has a deadline after it.
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
