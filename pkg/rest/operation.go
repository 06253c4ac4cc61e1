package rest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/forwarded"
	"github.com/idplatform/idplatform/pkg/request"
)

// Op describes an operation, apart from its types.
type Op struct {
	ID      string // the operationId, in kebab case
	Method  string
	Path    string // in OpenAPI form: /v1/users/{id}
	Summary string
	Doc     string     // a longer description in Markdown; optional
	Scope   auth.Scope // "" means open: no credential is needed, unless AnyToken
	Errors  []apperr.Kind

	// AnyToken marks an operation without a Scope that every valid token admits.
	AnyToken bool

	// AlsoScopes are needed in addition to Scope by an operation that also changes what belongs to another group.
	AlsoScopes []auth.Scope

	// CallbackToken is a header with a secret that admits a caller without a credential. Only the operation can check
	// it; it then has no tenant in the context.
	CallbackToken string

	// CallbackTenant checks the value of CallbackToken for the record that the path names, without the store, and
	// returns its tenant. With it, the same token is the same caller for an Idempotency-Key; without, such a key has no
	// effect.
	CallbackTenant func(token, record string) (tenant string, err error)

	// Greets marks an operation without a credential that has a caller in the context if the request has a valid one.
	Greets bool

	// Request and Response are examples for the OpenAPI document. Without them, it has examples made from the
	// schemas of the body and the answer.
	Request, Response any

	// Streams marks operations whose body or answer is a stream: no time-out, no buffering, and the operation handles
	// an Idempotency-Key itself.
	Streams bool

	// NoReplay marks a POST whose answer holds only at the moment: a check, a verification, a token. It is never
	// stored, so an Idempotency-Key has no effect. The OpenAPI document marks it with x-momentary.
	NoReplay bool

	// RecentSignIn marks an operation before which a client in which people sign in wants a recent sign-in: its answer
	// shows a new secret, or it deletes many records that the request does not name. The document marks it with
	// x-fresh.
	RecentSignIn Freshness

	// Timeout replaces the default of 30 s. It bounds the arrival of the body, and the operation separately.
	Timeout time.Duration

	// MaxBody replaces the default of 1 MiB for a JSON body, in bytes. A body above the default counts for the Budget
	// with all of MaxBody while the operation runs: without room the request is refused (apperr.Unavailable). The
	// document has it as x-max-body.
	MaxBody int

	// OAuth marks an operation whose errors have the form of RFC 6749 §5.2 instead of a problem document.
	OAuth bool

	// ErrorPage makes the page for an error, of an operation whose answers are pages for a person's browser (Page). The
	// page's Status and Location do not count. The document marks the operation with x-page. Writes of other sites'
	// pages are refused (http.CrossOriginProtection), unless CrossSite; a dry_run has no effect.
	ErrorPage func(*http.Request, error) Page
	CrossSite bool

	// Origins says which other origins' pages may read the answers in a browser; nil means none. With AnyOrigin, all
	// may.
	Origins   Origins
	AnyOrigin bool

	// Singleton marks an operation on the only record of its kind that a tenant has, whose path names no record. The
	// domain takes If-Match by the name "": see docstore.ExpectFor.
	Singleton bool

	SCIM    SCIMFault // of an operation of SCIM
	Success int       // the status of a successful answer in the document; 0 means 200

	// IfMatchParam is the path parameter with the id of the record that If-Match is about; "" means id, NoRecord none.
	// If it is not the record's id, the domain says which record it names: docstore.ExpectFor, docstore.CheckExpected.
	IfMatchParam string

	// CatchAllParam is the path parameter whose value can contain slashes. Only fixed segments may follow it. Of
	// several operations that a path fits, the one with the longest fixed end gets the request.
	CatchAllParam string

	// Lenient marks an operation of a standard that requires unknown members of a body to be ignored, and a content
	// type other than JSON to be answered with 400. The OpenAPI document marks it with x-lenient.
	Lenient bool

	// Deprecated operations still work. Every answer says since when, and what to use instead (RFC 9745).
	Deprecated *Deprecation

	Experimental bool // it may still change (x-development-status)

	// ContentTypes are those of the answer; none means JSON, and JSON comes first where there are others (OrEvents).
	// Consumes are those of a body that the operation reads itself (Upload).
	ContentTypes, Consumes []string

	target   string // the path parameter with the id that If-Match is about
	jsonBody presence
	schema   *huma.Schema // of the JSON body
	shape    *shape       // the members that the schema knows
	plain    *plain       // which JSON bodies need no other check
	form     *formShape   // shape of the form body; nil if there is none

	parameters map[string]string // for each member of the input in the query or the path, which of the two
}

// NoRecord says that no path parameter of an operation names a record whose version If-Match could be about.
const NoRecord = "none"

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

// open reports whether the operation needs no credential.
func (op *Op) open() bool { return op.Scope == "" && !op.AnyToken }

// scopes are all scopes that the operation needs.
func (op *Op) scopes() []auth.Scope {
	if op.Scope == "" {
		return nil
	}
	return append([]auth.Scope{op.Scope}, op.AlsoScopes...)
}

// needsCredential reports whether a request is admitted by a credential only.
func (op *Op) needsCredential(r *http.Request) bool {
	return !op.open() && (op.CallbackToken == "" || r.Header.Get(op.CallbackToken) == "")
}

func (op *Op) writes() bool { return op.Method != http.MethodGet && op.Method != http.MethodHead }

// Handle registers an operation. fn answers with a body: Record, List, Image, Stream, or any value that encodes to the
// wanted JSON. An *apperr.Error is answered as its problem document, any other error as a 500 without details. A Body
// member of I is a JSON body; it is optional if it is a pointer. Handle panics on types of which huma would overlook
// members.
func Handle[I, B any](s *Server, op Op, fn func(context.Context, *I) (B, error)) {
	operation := &op
	described := s.prepare(operation, reflect.TypeFor[I](), reflect.TypeFor[B]())
	huma.Register(&guardedAPI{s.api, s, operation}, described, func(ctx context.Context, in *I) (*alreadySent, error) {
		return &alreadySent{func(hc huma.Context) {
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

// prepare derives from an operation's types what serving it needs, and returns its part of the document. It is not
// generic: each of hundreds of operations would add a copy of it to the program.
func (s *Server) prepare(op *Op, input, output reflect.Type) huma.Operation {
	if op.AnyToken && op.Scope != "" {
		panic(op.ID + ": an operation with a Scope does not admit any token")
	}
	op.target = op.targetOf()
	if body, ok := input.FieldByName("Body"); ok {
		op.jsonBody = required
		if body.Type.Kind() == reflect.Pointer {
			op.jsonBody = optional
		}
	}
	op.form = formOf(input)
	op.RecentSignIn.check(op.ID, input)
	op.parameters = parametersOf(input)
	if op.Method == http.MethodPost && len(op.Consumes) > 0 && !op.Streams {
		panic(op.ID + ": a POST that reads its body itself must have Streams and handle its Idempotency-Key itself")
	}
	if op.hasKey() && output.Implements(inPiecesType) {
		panic(op.ID + ": a POST whose answer is written while it is read must be NoReplay")
	}
	mustBeWhole(op.ID, input, output)
	op.MaxBody = cmp.Or(op.MaxBody, maxBody)
	if op.Timeout == 0 {
		op.Timeout = defaultTimeout
	}
	described := s.describe(op, input, output)
	if op.jsonBody != absent {
		op.schema = described.RequestBody.Content["application/json"].Schema
		schemas := s.api.OpenAPI().Components.Schemas
		op.shape = shapeOf(schemas, op.schema, map[*huma.Schema]*shape{})
		op.plain = plainOf(schemas, op.schema, map[*huma.Schema]*plain{})
		described.SkipValidateBody = true // the server does it
	}
	return described
}

// alreadySent tells huma that the answer of an operation has left.
type alreadySent struct {
	Body func(huma.Context)
}

// guardedAPI is the API that huma.Register gets. Its adapter admits each request and reads its body before huma parses
// it.
type guardedAPI struct {
	huma.API
	server *Server
	op     *Op
}

// Adapter returns the adapter that admits requests. The body of a caller that is not admitted is not read.
func (g *guardedAPI) Adapter() huma.Adapter { return &guardedAdapter{g.API.Adapter(), g.server, g.op} }

type guardedAdapter struct {
	huma.Adapter
	server *Server
	op     *Op
}

// call is the state of one request.
type call struct {
	start  time.Time
	op     *Op
	buffer *[]byte        // holds the body
	large  hold           // of a body above the default size
	form   url.Values     // the form body's parameters
	plain  bool           // the body needs no other check
	faults []apperr.Fault // of the body: unknown members, and what the schema forbids
	unfit  bool           // the domain must not see the body
	key    string         // the Idempotency-Key
	ticket string         // what admits the request instead of a credential; only if it has a key
	print  [32]byte       // fingerprint of the request, if it has a key
	served bool           // the input was valid
	// untimed is the request's context without the time-out of the operation, unless it Streams.
	untimed context.Context
	status  int    // of the answer
	err     error  // the reason for a refusal or a broken answer
	token   string // see request.SetConsistencyToken

	forwarded forwarded.Trust // see Sender
}

type callKey struct{}

var errPanic = errors.New("the operation panicked")

// Handle wraps an operation's handler. An operation for GET also answers HEAD (RFC 9110 §9.3.2); net/http omits the
// body.
func (g *guardedAdapter) Handle(op *huma.Operation, handler func(huma.Context)) {
	g.Adapter.Handle(op, func(hc huma.Context) { g.enter(hc, handler) })
	if op.Method == http.MethodGet && !g.op.Streams {
		head := *op
		head.Method = http.MethodHead
		g.Adapter.Handle(&head, func(hc huma.Context) { g.enter(hc, handler) })
	}
	if g.op.AnyOrigin || g.op.Origins != nil {
		g.server.handlePreflight(g.Adapter, g.op)
	}
}

// enter handles one request from its admission to its answer.
func (g *guardedAdapter) enter(hc huma.Context, handler func(huma.Context)) {
	s, op, c := g.server, g.op, humagin.Unwrap(hc)
	call := &call{op: op, start: time.Now(), status: http.StatusInternalServerError, err: errPanic,
		forwarded: s.cfg.Forwarded}
	fair.Requested(call.start)
	op.Deprecated.tell(hc, c.Writer.Header())
	ctx, err := s.admit(op, c.Request, c.Writer.Header())
	defer func() { s.observe(ctx, op, call); release(call.buffer); call.large.release() }()
	if err == nil {
		err = s.checkSite(op, c.Request)
	}
	if err == nil {
		err = s.readRequest(ctx, op, call, c.Writer, c.Request)
	}
	if unknown := s.share(ctx, op, c, call.form); unknown != nil {
		s.cfg.Log.WarnContext(ctx, "could not check a page's origin, so it may not read the answer", "error", unknown)
	}
	if err != nil {
		call.status, call.err = s.fail(ctx, op, c.Writer, c.Request, err), err
		return
	}
	timed := context.WithValue(ctx, callKey{}, call)
	if op.writes() {
		timed = request.WithConsistencyToken(timed, &call.token)
	}
	var cancel context.CancelFunc
	if op.Streams {
		timed, cancel = s.watch(timed, op, c.Writer, c.Request)
	} else {
		call.untimed = timed
		timed, cancel = context.WithTimeout(timed, op.Timeout)
	}
	defer cancel()
	c.Request = c.Request.WithContext(timed)
	handler(hc)
	if !call.served { // huma has refused the input
		call.status, call.err = c.Writer.Status(), nil
	}
}

// serve runs an operation with its valid input, and writes its answer.
func (s *Server) serve(hc huma.Context, op *Op, run func(context.Context) (answer, error)) {
	c := humagin.Unwrap(hc)
	ctx, w, r := hc.Context(), c.Writer, c.Request
	call := ctx.Value(callKey{}).(*call)
	call.served = true

	if len(call.faults) > 0 {
		call.err = call.allFaults(ctx, run)
		call.status = s.fail(ctx, op, w, r, call.err)
		return
	}
	var a answer
	err := s.roomFor(ctx, op)
	if err == nil {
		a, err = s.respond(ctx, op, call, r, w.Header(), hc.Param(op.target), run)
	}
	a.Token = cmp.Or(a.Token, call.token)
	if err == nil && op.Method == http.MethodGet && notModified(r, a.ETag) {
		a = answer{Status: http.StatusNotModified, ETag: a.ETag, Cache: a.Cache}
	}
	if err == nil && a.load != nil {
		a.ContentType, a.Body, err = a.load(ctx)
		err = op.placed(err)
	}
	if err == nil {
		call.status = a.Status
		if op.OAuth {
			w.Header().Set("Pragma", "no-cache") // RFC 6749 §5.1
		}
		err = op.placed(s.write(ctx, op, call, w, r, &a))
		if err != nil && w.Written() {
			call.err = err
			s.cfg.Log.WarnContext(ctx, "the answer was broken off", "error", err)
			panic(http.ErrAbortHandler) // breaks the connection: the client must see that the answer is incomplete
		}
	}
	if call.err = err; err != nil {
		call.status = s.fail(ctx, op, w, r, err)
	}
}

// respond applies what headers and query ask for to a run: a condition, a dry run, an Idempotency-Key.
func (s *Server) respond(ctx context.Context, op *Op, call *call, r *http.Request, h http.Header, target string,
	run func(context.Context) (answer, error)) (answer, error) {
	if !op.writes() || op.ErrorPage != nil {
		return run(ctx)
	}
	dry, err := dryRun(r.URL)
	if err != nil {
		return answer{}, err
	}
	if condition := r.Header.Values("If-Match"); len(condition) > 0 && (op.target != "" || op.Singleton) {
		ctx = docstore.WithExpected(ctx, target, ifMatch(condition))
	}
	if dry {
		h.Set("Dry-Run", "true")
		return run(docstore.WithDryRun(ctx))
	}
	if call.key == "" {
		return run(ctx)
	}
	if call.ticket != "" {
		tenant, err := op.CallbackTenant(call.ticket, target)
		if err != nil {
			return answer{}, err
		}
		ctx = request.System(ctx, tenant)
	}
	return s.withIdempotency(ctx, op, call, h, run)
}

func dryRun(u *url.URL) (bool, error) {
	if u.RawQuery == "" {
		return false, nil
	}
	// a repeated dry_run with different values is refused: one of them may have meant a dry run
	switch strings.Join(u.Query()["dry_run"], "") {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	}
	return false, apperr.Invalid("query.dry_run", "must be true or false")
}

// OpenAPI returns the document of the operations registered so far.
func (s *Server) OpenAPI() *huma.OpenAPI { return s.api.OpenAPI() }
