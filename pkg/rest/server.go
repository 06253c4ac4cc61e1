package rest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/forwarded"
	"github.com/idplatform/idplatform/pkg/openapi"
	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

// Config is what a Server needs. Every member is required unless it says otherwise.
type Config struct {
	Title    string // title of the OpenAPI document
	Store    *docstore.Store
	Keys     *secret.Keyring // seals the answers stored for Idempotency-Keys
	Verifier *auth.Verifier
	Metrics  *telemetry.HTTPMetrics
	Log      *slog.Logger
	Clock    clock.Clock

	// Forwarded says whose X-Forwarded-For is believed; optional.
	Forwarded forwarded.Trust

	// Denied is called for every write that is answered with 401 or 403; optional. It must return at once.
	Denied func(Denial)

	// Budget bounds what answers hold while their clients read them; nil means the budget of the process.
	Budget *Budget
	// Recheck is how often the credential of a running stream is verified again; 0 means every 10 s.
	Recheck time.Duration

	// Origins are the platform's own, whose pages may send forms; see Op.ErrorPage.
	Origins []string

	// Strict makes the server panic if the answer stored for an Idempotency-Key differs from the answer that is sent.
	// It is for tests.
	Strict bool
}

// Collections are the collections of this package. The store of every service must have them.
func Collections() []*docstore.Def { return []*docstore.Def{savedAnswers.Def()} }

// Server serves the operations registered with Handle.
type Server struct {
	cfg    Config
	engine *gin.Engine
	api    huma.API
	tag    string
	names  map[reflect.Type]string // of schemas that do not have the name of their type
	rests  map[string]*restRoute   // by method and Gin's path
	// preflights are the operations that pages of other origins may call, by path.
	preflights map[string][]*Op
	sites      *http.CrossOriginProtection
	opaque     *auth.Opaque // nil: there are no opaque tokens
	scim       SCIMRoot
}

// New makes a server whose only operation returns the OpenAPI document.
func New(cfg Config) *Server {
	cfg.Budget, cfg.Recheck = cmp.Or(cfg.Budget, held), cmp.Or(cfg.Recheck, recheck)
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.RedirectTrailingSlash, engine.RedirectFixedPath = false, false
	engine.HandleMethodNotAllowed = true
	engine.UseRawPath, engine.UnescapePathValues = true, true // an id may contain an encoded slash

	s := &Server{cfg: cfg, engine: engine, tag: cfg.Title, rests: map[string]*restRoute{},
		preflights: map[string][]*Op{}, names: map[reflect.Type]string{}, sites: protection(cfg.Origins)}
	engine.Use(s.frame)
	engine.NoRoute(func(c *gin.Context) { s.refuse(c, apperr.New(apperr.NotFound, "no such path")) })
	engine.NoMethod(func(c *gin.Context) { // Gin has set Allow
		s.refuse(c, apperr.New(apperr.MethodNotAllowed, "the path has no %s", methodName(c.Request.Method)))
	})

	config := huma.DefaultConfig(cfg.Title, "1.0.0")
	config.Info.License = &huma.License{Name: openapi.LicenseName, URL: openapi.LicenseURL}
	config.Info.Contact = &huma.Contact{Name: openapi.ContactName, URL: openapi.ContactURL}
	config.CreateHooks = nil // no $schema members, no Link headers
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.Formats = map[string]huma.Format{
		"application/json":  {Marshal: encodeJSON, Unmarshal: decodeJSON},
		problem.ContentType: {Marshal: encodeJSON},
		SCIMType:            {Marshal: encodeJSON},
	}
	config.Components = components(s.names)
	config.Servers = []*huma.Server{{URL: "/"}}
	s.api = huma.NewAPI(config, &adapter{s})
	s.serveDocuments()
	return s
}

// refuse answers a request that no operation takes, or whose operation has failed unforeseen.
func (s *Server) refuse(c *gin.Context, err error) {
	if below, is := s.scim.below(c.Request.URL.Path); is {
		s.scim.refuse(c.Writer, below, err)
		return
	}
	problem.Write(c.Writer, err)
}

// methodName replaces a method that a client made up.
func methodName(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions:
		return method
	}
	return "such method"
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.engine.ServeHTTP(w, r) }

// frame is around every request, even to unknown paths. It assigns the request id and handles panics.
func (s *Server) frame(c *gin.Context) {
	id := request.IDOf(c.Request.Header.Get("X-Request-Id"))
	c.Request.Header.Set("X-Request-Id", id)
	if ctx := c.Request.Context(); !trace.SpanContextFromContext(ctx).IsValid() { // no collector: no span was started
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(c.Request.Header))
		c.Request = c.Request.WithContext(ctx)
	}
	h := c.Writer.Header()
	h.Set("X-Request-Id", id)
	h.Set("X-Content-Type-Options", "nosniff")
	defer func() {
		if c.Request.ContentLength != 0 {
			// net/http reads the rest of a body before it sends an answer, and would wait for all of a slow one.
			_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(lateBody))
		}
		fault := recover()
		if fault == nil {
			return
		}
		if fault == http.ErrAbortHandler { // net/http compares it in the same way
			panic(fault)
		}
		ctx := c.Request.Context()
		if request.From(ctx).ID == "" {
			ctx = request.With(ctx, request.Info{ID: id})
		}
		s.cfg.Log.ErrorContext(ctx, "panic", "fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
		if c.Writer.Written() {
			panic(http.ErrAbortHandler) // breaks the connection: the client must see that the answer is incomplete
		}
		s.refuse(c, apperr.New(apperr.Internal, ""))
	}()
	c.Next()
}

// lateBody bounds the time for the rest of a body that was not needed for the answer.
const lateBody = time.Second

// adapter registers huma's operations with Gin.
type adapter struct{ *Server }

// Handle registers path parameters under positional names, because Gin panics on routes whose parameters have different
// names in the same position. Requests get the real names back.
func (a *adapter) Handle(op *huma.Operation, handler func(huma.Context)) {
	segments := strings.Split(op.Path, "/")
	var names []string
	for i, segment := range segments {
		if !strings.HasPrefix(segment, "{") {
			continue
		}
		names = append(names, strings.Trim(segment, "{}"))
		if op.Metadata[slashesKey] == names[len(names)-1] {
			a.handleRest(op, segments[:i], strings.Join(segments[i+1:], "/"), names, handler)
			return
		}
		segments[i] = fmt.Sprintf(":p%d", len(names))
	}
	a.engine.Handle(op.Method, strings.Join(segments, "/"), func(c *gin.Context) {
		for i, name := range names {
			c.Params[i].Key = name
		}
		handler(humagin.NewContext(op, c))
	})
}

// admit checks the credential, scope, tenant and limits of a request. The returned context carries the results, also
// those of a refused request, for its log lines. A header of the answer names the caller, for the gateway.
func (s *Server) admit(op *Op, r *http.Request, h http.Header) (context.Context, error) {
	info := request.Info{ID: r.Header.Get("X-Request-Id"), PayloadOrigin: r.Header.Get("X-Payload-Origin"),
		Operation: op.ID}
	ctx := request.With(r.Context(), info)
	if len(info.PayloadOrigin) > maxPayloadOrigin {
		return ctx, apperr.Invalid("header.X-Payload-Origin", "must have at most %d bytes", maxPayloadOrigin)
	}
	if op.needsCredential(r) {
		token, err := auth.BearerToken(r)
		if err != nil {
			return ctx, err
		}
		principal, err := s.verify(ctx, token, auth.MaxCacheTTL)
		if err != nil {
			return ctx, err
		}
		principal.SetCaller(h)
		info.Tenant, info.Actor = principal.Tenant, principal.Actor()
		ctx = request.With(ctx, info) // a refusal is noted for the caller's tenant
		for _, scope := range op.scopes() {
			if !principal.Has(scope) {
				return ctx, apperr.New(apperr.Forbidden, "the scope %s is needed", scope)
			}
		}
		if info.Tenant, err = auth.SelectTenant(r, principal); err != nil {
			return ctx, err
		}
		ctx = auth.WithPrincipal(ctx, principal)
	}
	if op.open() && op.Greets {
		if token, err := auth.BearerToken(r); err == nil {
			principal, err := s.verify(ctx, token, auth.MaxCacheTTL)
			if err == nil {
				info.Tenant, err = auth.SelectTenant(r, principal)
			}
			if err == nil {
				info.Actor, ctx = principal.Actor(), auth.WithPrincipal(ctx, principal)
			}
		}
	}
	// net/url drops malformed parameters, possibly a dry_run.
	if query, err := url.QueryUnescape(r.URL.RawQuery); err != nil || !utf8.ValidString(query) ||
		strings.Contains(r.URL.RawQuery, ";") {
		return ctx, apperr.Invalid("query", "is not well formed")
	}
	if !utf8.ValidString(r.URL.Path) {
		return ctx, apperr.Invalid("path", "must be UTF-8")
	}
	return request.With(ctx, info), nil
}

// verify returns whom a token identifies. What is known about it already is enough if it is not older than age.
func (s *Server) verify(ctx context.Context, token string, age time.Duration) (*auth.Principal, error) {
	if s.opaque.Is(token) {
		return s.opaque.Verify(ctx, token)
	}
	return s.cfg.Verifier.VerifyWithin(ctx, token, age)
}

const maxPayloadOrigin = 4096

// observe counts and logs an answered request; the context identifies the request.
func (s *Server) observe(ctx context.Context, op *Op, call *call) {
	elapsed := time.Since(call.start)
	s.cfg.Metrics.Observe(op.ID, call.status, elapsed)
	level, message := slog.LevelDebug, "request"
	if call.status >= http.StatusInternalServerError {
		level, message = slog.LevelError, "request failed"
	}
	if s.cfg.Log.Enabled(ctx, level) {
		s.cfg.Log.Log(ctx, level, message, "status", call.status, "duration_ms", elapsed.Milliseconds(), "error",
			call.err)
	}
}
