package rest

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// Op describes an operation beyond its types.
type Op struct {
	ID      string // operationId, in kebab case
	Method  string
	Path    string // OpenAPI form: /v1/users/{id}
	Summary string
	Doc     string     // more, in Markdown; optional
	Scope   auth.Scope // "" = open without a credential
	Errors  []apperr.Kind

	// AlsoScopes are needed beside Scope, by an operation that changes what belongs to another group, too.
	AlsoScopes []auth.Scope

	// Request and Response are examples for the document.
	Request, Response any

	// Streams marks operations whose body or answer is a stream: no time-out, no buffering, and an Idempotency-Key
	// that the operation handles itself.
	Streams bool

	// Momentary marks a POST whose answer is true only at its moment: a check, a verification, a token. It is never
	// kept, so an Idempotency-Key changes nothing. The document says so with x-momentary.
	Momentary bool

	// Timeout replaces the usual 30 s, for the body to arrive and again for the operation.
	Timeout time.Duration

	// OAuth marks an operation whose errors have the form of RFC 6749 §5.2, not that of a problem document.
	OAuth bool

	// Record is the path parameter that names the record which If-Match means; id unless given.
	Record string

	// Lenient marks an operation of a standard that has members of a body ignored which nobody knows, and any other
	// content type than JSON answered with 400. The document says so with x-lenient.
	Lenient bool

	// Deprecated operations still work. Developing ones may change (x-development-status).
	Deprecated, Developing bool

	// ContentTypes of the answer; JSON unless given. Consumes are those of a body that the operation reads itself (Upload).
	ContentTypes, Consumes []string

	target   string // the path parameter whose record If-Match means
	jsonBody presence
	shape    *shape     // of the JSON body
	form     *formShape // of the form body; nil if there is none

	parameters map[string]string // which of the input's members stand in the query or the path
}

// presence says whether an operation has a JSON body.
type presence int

const (
	absent presence = iota
	optional
	required
)

const (
	maxBody        = 1 << 20
	defaultTimeout = 30 * time.Second
)

// scopes are all that the operation needs; none if it is open.
func (op *Op) scopes() []auth.Scope {
	if op.Scope == "" {
		return nil
	}
	return append([]auth.Scope{op.Scope}, op.AlsoScopes...)
}

func (op *Op) writes() bool { return op.Method != http.MethodGet && op.Method != http.MethodHead }

// Handle registers an operation. fn answers with a body: Record, List, Image, Stream, or any value that encodes to the JSON meant.
// An *apperr.Error becomes its problem document, every other error a 500 that says nothing. A Body member of I is a JSON body, optional if it
// is a pointer. Handle panics on types that huma would not see whole.
func Handle[I, B any](s *Server, op Op, fn func(context.Context, *I) (B, error)) {
	if op.target = op.Record; op.target == "" && strings.Contains(op.Path, "{id}") {
		op.target = "id"
	}
	if body, ok := reflect.TypeFor[I]().FieldByName("Body"); ok {
		op.jsonBody = required
		if body.Type.Kind() == reflect.Pointer {
			op.jsonBody = optional
		}
	}
	op.form = formOf(reflect.TypeFor[I]())
	op.parameters = parametersOf(reflect.TypeFor[I]())
	if op.Method == http.MethodPost && len(op.Consumes) > 0 && !op.Streams {
		panic(op.ID + ": a POST that reads its body itself must be one that Streams: its Idempotency-Key is its own")
	}
	mustBeWhole(op.ID, reflect.TypeFor[I](), reflect.TypeFor[B]())
	if op.Timeout == 0 {
		op.Timeout = defaultTimeout
	}
	described := describe[I, B](s, &op)
	if op.jsonBody != absent {
		op.shape = shapeOf(s.api.OpenAPI().Components.Schemas, described.RequestBody.Content["application/json"].Schema, map[*huma.Schema]*shape{})
	}

	operation := &op
	huma.Register(&door{s.api, s, operation}, described, func(ctx context.Context, in *I) (*written, error) {
		return &written{func(hc huma.Context) {
			s.serve(hc, operation, func(ctx context.Context) (answer, error) {
				body, err := fn(ctx, in)
				if err != nil {
					return answer{}, operation.placed(err)
				}
				return answerOf(body)
			})
		}}, nil
	})
	if op.form != nil {
		s.describeForm(operation)
	}
}

// written is the output of every operation: it writes itself.
type written struct {
	Body func(huma.Context)
}

// door is the API as huma.Register sees it: what must happen before a request is parsed goes in front of its handlers.
type door struct {
	huma.API
	server *Server
	op     *Op
}

// Adapter puts admission before huma reads the body: a stranger's body is not worth reading.
func (d *door) Adapter() huma.Adapter { return &doorAdapter{d.API.Adapter(), d.server, d.op} }

type doorAdapter struct {
	huma.Adapter
	server *Server
	op     *Op
}

// call is what is noted of one request on its way.
type call struct {
	start   time.Time
	op      *Op
	buffer  *[]byte    // holds the body
	form    url.Values // the form body's parameters
	unknown []string   // where the body had members that nobody knows
	key     string     // Idempotency-Key
	print   [32]byte   // of the request, with key
	served  bool       // the input was good
	status  int        // of the answer
	err     error      // why it is a refusal, or broke off
}

type callKey struct{}

var errPanic = errors.New("it panicked")

// Handle wraps an operation's handler. What answers to GET does to HEAD (RFC 9110 §9.3.2), and net/http leaves the body out.
func (d *doorAdapter) Handle(op *huma.Operation, handler func(huma.Context)) {
	d.Adapter.Handle(op, func(hc huma.Context) { d.enter(hc, handler) })
	if op.Method == http.MethodGet && !d.op.Streams {
		head := *op
		head.Method = http.MethodHead
		d.Adapter.Handle(&head, func(hc huma.Context) { d.enter(hc, handler) })
	}
}

// enter goes with one request from its admission to its answer.
func (d *doorAdapter) enter(hc huma.Context, handler func(huma.Context)) {
	s, op, c := d.server, d.op, humagin.Unwrap(hc)
	call := &call{op: op, start: time.Now(), status: http.StatusInternalServerError, err: errPanic}
	ctx, err := s.admit(op, c.Request, c.Writer.Header())
	defer func() { s.observe(ctx, op, call); release(call.buffer) }()
	if err == nil {
		err = s.identify(op, call, c.Writer, c.Request)
	}
	if err != nil {
		call.status, call.err = s.fail(ctx, op, c.Writer, c.Request, err), err
		return
	}
	timed := context.WithValue(ctx, callKey{}, call)
	if !op.Streams {
		var cancel context.CancelFunc
		timed, cancel = context.WithTimeout(timed, op.Timeout)
		defer cancel()
	}
	c.Request = c.Request.WithContext(timed)
	handler(hc)
	if !call.served { // huma refused the input
		call.status, call.err = c.Writer.Status(), nil
	}
}

// serve runs an operation whose input is read and valid, and writes its answer.
func (s *Server) serve(hc huma.Context, op *Op, run func(context.Context) (answer, error)) {
	c := humagin.Unwrap(hc)
	ctx, w, r := hc.Context(), c.Writer, c.Request
	call := ctx.Value(callKey{}).(*call)
	call.served = true

	if len(call.unknown) > 0 {
		_, err := run(request.WithoutQuestions(docstore.WithDryRun(ctx)))
		call.err = withUnknown(call.unknown, err)
		call.status = s.fail(ctx, op, w, r, call.err)
		return
	}
	a, err := s.respond(ctx, op, call, r, w.Header(), hc.Param(op.target), run)
	if err == nil && op.Method == http.MethodGet && notModified(r, a.ETag) {
		a = answer{Status: http.StatusNotModified, ETag: a.ETag, Cache: a.Cache}
	}
	if err == nil && a.load != nil {
		a.ContentType, a.Body, err = a.load(ctx)
		err = op.placed(err)
	}
	if err == nil {
		call.status = a.Status
		err = op.placed(a.write(ctx, w, func() bool { return s.good(ctx, op, r) }))
		if err != nil && w.Written() {
			call.err = err
			s.cfg.Log.WarnContext(ctx, "answer broke off", "error", err)
			panic(http.ErrAbortHandler) // the client must see that the answer is not whole
		}
	}
	if call.err = err; err != nil {
		call.status = s.fail(ctx, op, w, r, err)
	}
}

// respond adds to a run what its headers and query ask for: a condition, a dry run, an answer given once only.
func (s *Server) respond(ctx context.Context, op *Op, call *call, r *http.Request, h http.Header, target string, run func(context.Context) (answer, error)) (answer, error) {
	if !op.writes() {
		return run(ctx)
	}
	dry, err := dryRun(r.URL)
	if err != nil {
		return answer{}, err
	}
	if condition := r.Header.Values("If-Match"); len(condition) > 0 && op.target != "" {
		ctx = docstore.WithExpected(ctx, target, ifMatch(condition))
	}
	if dry {
		h.Set("Dry-Run", "true")
		return run(docstore.WithDryRun(ctx))
	}
	if call.key == "" {
		return run(ctx)
	}
	return s.once(ctx, op, call, h, run)
}

func dryRun(u *url.URL) (bool, error) {
	if u.RawQuery == "" {
		return false, nil
	}
	switch strings.Join(u.Query()["dry_run"], "") { // whoever asks for both must not get a real one
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	}
	return false, apperr.Invalid("query.dry_run", "must be true or false")
}

func (a answer) write(ctx context.Context, w http.ResponseWriter, good func() bool) error {
	h := w.Header()
	if a.ETag != "" {
		h.Set("ETag", a.ETag)
	}
	if a.Cache == "" {
		a.Cache = "no-store"
	}
	h.Set("Cache-Control", a.Cache)
	if a.Status == http.StatusNotModified {
		w.WriteHeader(a.Status)
		return nil
	}
	h.Set("Content-Type", a.ContentType)
	if a.replayed {
		h.Set("Idempotent-Replayed", "true")
	}
	if a.stream != nil {
		w.WriteHeader(a.Status)
		return a.stream(ctx, w, good)
	}
	h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	w.WriteHeader(a.Status)
	send(w, a.Body)
	return nil
}

// OpenAPI is the document of the operations registered so far.
func (s *Server) OpenAPI() *huma.OpenAPI { return s.api.OpenAPI() }
