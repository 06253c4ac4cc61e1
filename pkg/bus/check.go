package bus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/transaction"
)

var tracer = otel.Tracer("github.com/idplatform/idplatform/pkg/bus")

const (
	checkTimeout = 2 * time.Second
	maxAnswers   = 32 // of one question, computed at the same time
	maxQuestions = 1024

	headerTenant    = "Idp-Tenant"
	headerActor     = "Idp-Actor"
	headerOrigin    = "Idp-Payload-Origin"
	headerRequestID = "X-Request-Id"
)

func checkSubject(service, question string) (string, error) {
	if !IsName(service) || !IsName(question) {
		return "", fmt.Errorf("%q cannot be asked %q", service, question)
	}
	return "idp.check." + service + "." + question, nil
}

// Question declares what one service asks another, on idp.check.<service>.<name>. Both sides compile against the same
// declaration, so that neither imports the other. Its JSON form is a format that services of different versions must
// agree on.
type Question[Req, Resp any] struct {
	Service, Name string
	// Refusals are the kinds of error that an answer may have, besides apperr.Internal and apperr.Unavailable, which
	// are always possible.
	Refusals []apperr.Kind
	// Patience is how long the asker waits for an answer, and how long the answer may take, unless Config.Patience is
	// longer; 0 means 2 s.
	Patience time.Duration
}

func (q Question[Req, Resp]) patience(b *Bus) time.Duration {
	return max(b.config.Patience, cmp.Or(q.Patience, checkTimeout))
}

// Ask asks the question and waits for its answer, for as long as its Patience. The context's tenant, actor, request id,
// payload origin and trace are sent with it. A refusal comes back as the *apperr.Error that the service made, without
// its cause. If nobody answers, or the connection to NATS ends meanwhile, the error is apperr.Unavailable; if ctx ends
// first, it is ctx's error. An answer that cannot be decoded, or a refusal of an unknown kind, is another error: it is
// then unknown what the service did. Inside a store's Write it fails at once.
func (q Question[Req, Resp]) Ask(ctx context.Context, b *Bus, req Req) (Resp, error) {
	var resp Resp
	subject, err := checkSubject(q.Service, q.Name)
	if err != nil {
		return resp, err
	}
	if err := transaction.Refuse("bus: Ask " + subject); err != nil {
		return resp, err
	}
	if request.AsksNothing(ctx) {
		return resp, apperr.Away("the "+q.Service+" service", fmt.Errorf("ask %s: %w", subject, nats.ErrNoResponders))
	}
	body, err := json.Marshal(req)
	if err != nil {
		return resp, fmt.Errorf("ask %s: %w", subject, err)
	}
	asking, cancel := context.WithTimeout(ctx, q.patience(b))
	defer cancel()
	defer b.link.onDown(cancel)()
	asking, span := tracer.Start(asking, "ask "+subject, trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	answer, err := b.nats.RequestMsgWithContext(asking,
		&nats.Msg{Subject: subject, Data: body, Header: b.headers(asking)})
	if err != nil {
		if ctx.Err() != nil {
			return resp, fmt.Errorf("ask %s: %w", subject, ctx.Err())
		}
		if errors.Is(err, context.Canceled) {
			err = nats.ErrDisconnected
		}
		return resp, apperr.Away("the "+q.Service+" service", fmt.Errorf("ask %s: %w", subject, err))
	}
	if answer.Header.Get("Content-Type") == problem.ContentType {
		return resp, refusal(answer)
	}
	if err := json.Unmarshal(answer.Data, &resp); err != nil {
		return resp, fmt.Errorf("ask %s: the answer: %w", subject, err)
	}
	return resp, nil
}

// Unheard reports whether Ask failed because the question was not sent or nobody received it. Then nothing was done
// about it, and nothing will be. While NATS is away no question is sent, because the connection does not buffer (see
// Connect).
func Unheard(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, nats.ErrReconnectBufExceeded)
}

// headers puts the context of a question into headers, from which asked restores it.
func (b *Bus) headers(ctx context.Context) nats.Header {
	info := request.From(ctx)
	h := nats.Header{}
	for name, value := range map[string]string{
		headerTenant: info.Tenant, headerActor: info.Actor, headerOrigin: info.PayloadOrigin, headerRequestID: info.ID,
	} {
		if value != "" {
			h.Set(name, value)
		}
	}
	b.trace.Inject(ctx, propagation.HeaderCarrier(h))
	return h
}

// asked returns ctx with the tenant, actor, request id, payload origin and trace that a question was sent with.
func (b *Bus) asked(ctx context.Context, h nats.Header) context.Context {
	ctx = request.With(ctx, request.Info{
		ID: h.Get(headerRequestID), Tenant: h.Get(headerTenant), Actor: h.Get(headerActor),
		PayloadOrigin: h.Get(headerOrigin),
	})
	return b.trace.Extract(ctx, propagation.HeaderCarrier(h))
}

// refusal makes the error from which complain made an answer.
func refusal(answer *nats.Msg) error {
	var doc problem.Document
	if err := json.Unmarshal(answer.Data, &doc); err != nil {
		return fmt.Errorf("the problem that was answered: %w", err)
	}
	kind := apperr.Kind(doc.Code)
	if !problem.Known(kind) { // possibly from a newer service; it is unknown whether it did anything
		return fmt.Errorf("the problem that was answered is of the unknown kind %.64q", doc.Code)
	}
	e := &apperr.Error{Kind: kind, Detail: doc.Detail, Faults: doc.Errors}
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// Answer makes fn answer the question, for the tenant and caller in its context, within its Patience. One of the
// service's replicas gets each question; at most 32 are answered at the same time. An error of a kind that is not in
// Refusals is answered as apperr.Internal, because the asker does not expect it. Close waits for running answers.
func (q Question[Req, Resp]) Answer(b *Bus, fn func(ctx context.Context, req Req) (Resp, error)) error {
	subject, err := checkSubject(q.Service, q.Name)
	if err != nil {
		return err
	}
	free := make(chan struct{}, maxAnswers)
	sub, err := b.nats.QueueSubscribe(subject, q.Service, func(m *nats.Msg) {
		free <- struct{}{} // blocks only this subscription; the askers' time runs on
		b.answering.Add(1)
		go func() {
			defer func() { <-free; b.answering.Done() }()
			b.respond(m, q.patience(b), func(ctx context.Context) (any, error) {
				var req Req
				if err := json.Unmarshal(m.Data, &req); err != nil {
					return nil, apperr.New(apperr.InvalidParameters,
						"the question is not in the form that the %s service understands", q.Service)
				}
				resp, err := fn(ctx, req)
				return resp, q.declared(err)
			})
		}()
	})
	if err != nil {
		return fmt.Errorf("answer %s: %w", subject, err)
	}
	if err := sub.SetPendingLimits(maxQuestions, maxQuestions*64<<10); err != nil {
		return fmt.Errorf("answer %s: %w", subject, err)
	}
	b.mu.Lock()
	b.answers = append(b.answers, sub)
	b.mu.Unlock()
	// So a question that is asked from now on arrives. If NATS is away, the client subscribes again when it is back.
	_ = b.flush(b.background)
	return nil
}

// declared returns only errors that the asker expects.
func (q Question[Req, Resp]) declared(err error) error {
	switch kind := apperr.KindOf(err); {
	case err == nil, kind == apperr.Unavailable, kind == apperr.Internal, slices.Contains(q.Refusals, kind):
		return err
	default:
		return apperr.New(apperr.Internal, "the question %s.%s does not declare the refusal %s", q.Service, q.Name,
			kind).Because(err)
	}
}

// respond computes an answer and sends it.
func (b *Bus) respond(m *nats.Msg, patience time.Duration, answer func(context.Context) (any, error)) {
	ctx, cancel := context.WithTimeout(b.background, patience)
	defer cancel()
	ctx = b.asked(ctx, m.Header)
	ctx, span := tracer.Start(ctx, "answer "+m.Subject, trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()

	resp, err := b.contained(ctx, answer)
	var body []byte
	if err == nil {
		body, err = json.Marshal(resp)
	}
	reply := &nats.Msg{Header: nats.Header{}, Data: body}
	if err != nil {
		if apperr.KindOf(err) == apperr.Internal {
			b.log.Error("a question failed", "subject", m.Subject, "request_id", request.From(ctx).ID, "error", err)
		}
		complain(reply, err, request.From(ctx).ID)
	}
	if err := m.RespondMsg(reply); err != nil {
		b.log.Warn("the answer to a question was not sent", "subject", m.Subject, "error", err)
	}
}

// contained turns a panic into an error, and refuses a question that no service of the platform would ask.
func (b *Bus) contained(ctx context.Context, answer func(context.Context) (any, error)) (resp any, err error) {
	defer func() {
		if p := recover(); p != nil {
			b.log.Error("an answer panicked", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if request.Tenant(ctx) == "" {
		return nil, apperr.New(apperr.InvalidParameters, "the question names no tenant")
	}
	return answer(ctx)
}

// complain turns an error into a problem document, as over HTTP. It leaves out causes and the details of internal
// errors.
func complain(reply *nats.Msg, err error, requestID string) {
	problem.Headers(http.Header(reply.Header), err)
	reply.Data, _ = json.Marshal(problem.Of(err, requestID)) // cannot fail: texts and numbers
}

// drain accepts no more questions and waits for the answers to those that have arrived.
func (b *Bus) drain(ctx context.Context, answers []*nats.Subscription) error {
	drained := make(chan struct{})
	for _, sub := range answers {
		closed := make(chan struct{})
		sub.SetClosedHandler(func(string) { close(closed) })
		if !b.nats.IsConnected() || sub.Drain() != nil {
			continue // no question is waiting
		}
		select {
		case <-closed:
		case <-ctx.Done():
		}
	}
	go func() {
		b.answering.Wait()
		close(drained)
	}()
	select {
	case <-drained:
		return b.flush(ctx)
	case <-ctx.Done():
		b.cancel() // running answers see it in their context
		<-drained
		return fmt.Errorf("answers were cancelled: %w", ctx.Err())
	}
}

// flush sends to NATS what is buffered; without NATS it returns at once.
func (b *Bus) flush(ctx context.Context) error {
	if !b.nats.IsConnected() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if err := b.nats.FlushWithContext(ctx); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}
