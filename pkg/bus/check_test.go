package bus

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/pkg/transaction"
)

func acme(ctx context.Context) context.Context {
	return request.With(ctx, request.Info{ID: "req-7", Tenant: "acme", Actor: "admin-1", PayloadOrigin: "山田 <hr>"})
}

type question struct {
	IDs []string `json:"ids"`
}

type reply struct {
	Missing []string `json:"missing"`
}

var missing = Question[question, reply]{
	Service: "users", Name: "missing", Refusals: []apperr.Kind{apperr.InvalidParameters, apperr.NotFound,
		apperr.AlreadyExists},
}

func TestAnswersTravel(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	require.NoError(t, missing.Answer(b, func(ctx context.Context, q question) (reply, error) {
		if info := request.From(ctx); info != request.From(acme(ctx)) {
			return reply{}, errors.New("the caller was lost")
		}
		if trace.SpanContextFromContext(ctx).TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
			return reply{}, errors.New("the trace was lost")
		}
		return reply{Missing: q.IDs[1:]}, nil
	}))
	id, err := trace.TraceIDFromHex("0af7651916cd43dd8448eb211c80319c")
	require.NoError(t, err)
	span, err := trace.SpanIDFromHex("b7ad6b7169203331")
	require.NoError(t, err)
	ctx := trace.ContextWithSpanContext(acme(t.Context()),
		trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled}))
	got, err := missing.Ask(ctx, b, question{IDs: []string{"1", "二", "3"}})
	require.NoError(t, err)
	require.Equal(t, reply{Missing: []string{"二", "3"}}, got)
}

// A question about a request that is refused already is not sent to another service.
func TestNothingIsAsked(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	var asked atomic.Int32
	require.NoError(t, missing.Answer(b, func(context.Context, question) (reply, error) {
		asked.Add(1)
		return reply{}, nil
	}))
	_, err := missing.Ask(request.WithoutQuestions(acme(t.Context())), b, question{})
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
	require.True(t, Unheard(err))
	_, err = missing.Ask(acme(t.Context()), b, question{})
	require.NoError(t, err)
	require.EqualValues(t, 1, asked.Load())
}

func TestRefusalsTravel(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	var refuse atomic.Pointer[error]
	require.NoError(t, missing.Answer(b, func(context.Context, question) (reply, error) {
		return reply{}, *refuse.Load()
	}))
	secret := errors.New("password=hunter2")
	for name, c := range map[string]struct {
		made error
		want apperr.Error
	}{
		"a kind and a detail": {apperr.Missing("使用者"), apperr.Error{Kind: apperr.NotFound, Detail: "no such 使用者"}},
		"faults": {apperr.Taken("body.name", "body.email"),
			apperr.Error{Kind: apperr.AlreadyExists, Detail: "a unique value is taken",
				Faults: []apperr.Fault{{Location: "body.name", Message: "is taken"},
					{Location: "body.email", Message: "is taken"}}}},
		"when to try again": {apperr.Away("the store", secret),
			apperr.Error{Kind: apperr.Unavailable, Detail: "the store does not answer", RetryAfter: 2 * time.Second}},
		"an undeclared kind": {apperr.New(apperr.InUse, "hunter2"),
			apperr.Error{Kind: apperr.Internal,
				Detail: "something went wrong on our side; the request id finds it in the logs"}},
		"nothing internal": {secret, apperr.Error{Kind: apperr.Internal,
			Detail: "something went wrong on our side; the request id finds it in the logs"}},
	} {
		refuse.Store(&c.made)
		_, err := missing.Ask(acme(t.Context()), b, question{})
		got, ok := errors.AsType[*apperr.Error](err)
		require.True(t, ok, name)
		require.Equal(t, c.want, *got, name)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

// A problem of a kind that the asker does not know leaves open what was done: it is not a refusal.
func TestAnUnknownKindIsNoRefusal(t *testing.T) {
	t.Parallel()
	b, x := open(t)
	for _, body := range []string{`{"code":"no_such_kind","detail":"no"}`, `{"detail":"no"}`, `{`, ``} {
		sub, err := x.connect(t, Config{}).nats.Subscribe("idp.check.users.missing", func(m *nats.Msg) {
			_ = m.RespondMsg(&nats.Msg{Header: nats.Header{"Content-Type": {"application/problem+json"}},
				Data: []byte(body)})
		})
		require.NoError(t, err)
		require.NoError(t, b.nats.Flush())
		wait.Until(t, func() bool {
			_, err = missing.Ask(acme(t.Context()), b, question{})
			return !Unheard(err)
		})
		require.Error(t, err)
		require.Equal(t, apperr.Internal, apperr.KindOf(err), body)
		require.NoError(t, sub.Unsubscribe())
	}
}

func TestAPanicIsAnInternalError(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	require.NoError(t, missing.Answer(b, func(_ context.Context, q question) (reply, error) {
		return reply{Missing: []string{q.IDs[5]}}, nil
	}))
	for range 2 {
		_, err := missing.Ask(acme(t.Context()), b, question{})
		require.Equal(t, apperr.Internal, apperr.KindOf(err))
	}
}

func TestSilenceIsUnavailable(t *testing.T) {
	t.Parallel()
	t.Run("nobody answers", func(t *testing.T) {
		t.Parallel()
		b, _ := open(t)
		_, err := missing.Ask(acme(t.Context()), b, question{})
		require.ErrorContains(t, err, "the users service does not answer")
		require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
		require.True(t, Unheard(err))
	})
	t.Run("too late", func(t *testing.T) {
		t.Parallel()
		b, _ := open(t)
		require.NoError(t, missing.Answer(b, func(ctx context.Context, _ question) (reply, error) {
			<-ctx.Done() // the answer has no more time than the asker waits
			return reply{}, ctx.Err()
		}))
		_, err := missing.Ask(acme(t.Context()), b, question{})
		require.Error(t, err)
		require.False(t, Unheard(err), "it was received")
	})
	t.Run("NATS is away", func(t *testing.T) {
		t.Parallel()
		b, x := open(t)
		x.Stop()
		wait.Until(t, func() bool { return b.Ready() != nil })
		_, err := missing.Ask(acme(t.Context()), b, question{})
		require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
		require.True(t, Unheard(err), "it was not sent")
	})
	t.Run("NATS goes away meanwhile", func(t *testing.T) {
		t.Parallel()
		x := newBox(t)
		b := x.connect(t, Config{Patience: time.Hour})
		over := make(chan struct{})
		t.Cleanup(func() { close(over) }) // before the bus is closed, which waits for the answer
		require.NoError(t, missing.Answer(b, func(context.Context, question) (reply, error) {
			go x.Stop()
			<-over
			return reply{}, nil
		}))
		_, err := missing.Ask(acme(t.Context()), b, question{})
		require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
		require.ErrorIs(t, err, nats.ErrDisconnected)
		require.False(t, Unheard(err), "it was received")
	})
	t.Run("the caller gave up", func(t *testing.T) {
		t.Parallel()
		b, _ := open(t)
		ctx, cancel := context.WithCancel(acme(t.Context()))
		require.NoError(t, missing.Answer(b, func(ctx context.Context, _ question) (reply, error) {
			cancel()
			return reply{}, nil
		}))
		if _, err := missing.Ask(ctx, b, question{}); err != nil { // the answer may come first
			require.ErrorIs(t, err, context.Canceled)
		}
		_, err := missing.Ask(ctx, b, question{})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, apperr.Internal, apperr.KindOf(err), "not the service's fault")
	})
}

func TestQuestionsOfStrangersAreRefused(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	called := make(chan struct{}, 8)
	require.NoError(t, missing.Answer(b, func(context.Context, question) (reply, error) {
		called <- struct{}{}
		return reply{}, nil
	}))
	_, err := missing.Ask(t.Context(), b, question{})
	require.ErrorContains(t, err, "names no tenant")
	_, err = Question[int, reply]{Service: "users", Name: "missing"}.Ask(acme(t.Context()), b, 42)
	require.ErrorContains(t, err, "not in the form")
	require.Empty(t, called)

	for _, name := range []string{"", "*", "a.b", "a b", ">", "Users", strings.Repeat("x", 64)} {
		_, err := Question[question, reply]{Service: name, Name: "missing"}.Ask(acme(t.Context()), b, question{})
		require.ErrorContains(t, err, "cannot be asked")
		require.Error(t, Question[question, reply]{Service: "users", Name: name}.Answer(b,
			func(context.Context, question) (reply, error) {
				return reply{}, nil
			}))
	}
}

func TestAnswersAreBoundedAndShared(t *testing.T) {
	t.Parallel()
	b, x := open(t)
	const asked = 100
	var running, most, first, second atomic.Int64
	answer := func(count *atomic.Int64, gate chan struct{}) func(context.Context, question) (reply, error) {
		return func(context.Context, question) (reply, error) {
			n := running.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			gate <- struct{}{}
			<-gate
			running.Add(-1)
			count.Add(1)
			return reply{}, nil
		}
	}
	gate := make(chan struct{}, 1)
	require.NoError(t, missing.Answer(b, answer(&first, gate)))
	require.NoError(t, missing.Answer(x.connect(t, Config{}), answer(&second, gate)))
	errs := make(chan error, asked)
	for range asked {
		go func() {
			_, err := missing.Ask(acme(t.Context()), b, question{})
			errs <- err
		}()
	}
	for range asked {
		require.NoError(t, receive(t, errs))
	}
	require.EqualValues(t, asked, first.Load()+second.Load(), "each question is answered by one replica")
	require.Positive(t, first.Load())
	require.Positive(t, second.Load())
	require.LessOrEqual(t, most.Load(), int64(2*maxAnswers))
}

func TestCloseWaitsForAnswers(t *testing.T) {
	t.Parallel()
	b, x := open(t)
	server := x.connect(t, Config{})
	started, finish := make(chan struct{}), make(chan struct{})
	require.NoError(t, missing.Answer(server, func(context.Context, question) (reply, error) {
		close(started)
		<-finish
		return reply{Missing: []string{"1"}}, nil
	}))
	answered := make(chan error, 1)
	go func() {
		got, err := missing.Ask(acme(t.Context()), b, question{})
		if err == nil && len(got.Missing) != 1 {
			err = errors.New("a wrong answer")
		}
		answered <- err
	}()
	receive(t, started)
	closed := make(chan error, 1)
	go func() { closed <- server.Close(t.Context()) }()
	wait.Until(t, func() bool { // it accepts no more questions
		_, err := missing.Ask(acme(t.Context()), b, question{})
		return Unheard(err)
	})
	close(finish)
	require.NoError(t, receive(t, answered))
	require.NoError(t, receive(t, closed))
}

func FuzzRefusal(f *testing.F) {
	f.Add([]byte(`{"code":"not_found","detail":"no such user","errors":[{"location":"a","message":"b"}]}`), "2")
	f.Add([]byte(`{"code":"brand_new"}`), "-1")
	f.Add([]byte(`[`), "x")
	f.Fuzz(func(t *testing.T, body []byte, after string) {
		m := &nats.Msg{Data: body, Header: nats.Header{"Retry-After": {after}}}
		err := refusal(m)
		require.Error(t, err)
		require.NotEqual(t, "", string(apperr.KindOf(err)))
	})
}

func TestNothingIsAskedInsideATransaction(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	var asked atomic.Bool
	require.NoError(t, missing.Answer(b, func(context.Context, question) (reply, error) {
		asked.Store(true)
		return reply{}, nil
	}))
	ask := func() error {
		_, err := missing.Ask(acme(t.Context()), b, question{})
		return err
	}
	transaction.Enter()
	err := ask()
	transaction.Leave()
	require.ErrorIs(t, err, transaction.ErrInside)
	require.False(t, asked.Load())
	require.NoError(t, ask())
}
