package rest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/change"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/telemetry"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

func replayed(a *testkit.Answer) bool { return a.Header.Get("Idempotent-Replayed") == "true" }

var one = map[string]any{"name": "one"}

// What was committed gets the same answer, whatever happened between the commit and the answer.
func TestACrashBetweenCommitAndAnswer(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]struct {
		after  func(context.Context) error
		status int
		code   string
	}{
		"panic":   {func(context.Context) error { panic("crash") }, 500, "internal"},
		"failure": {func(context.Context) error { return errors.New("crash") }, 500, "internal"},
		"refusal": {func(context.Context) error {
			return apperr.New(apperr.InvalidState, "too late")
		}, 409, "invalid_state"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.after = crash.after
			c := w.client().With("Idempotency-Key", "k")
			c.Post("/v1/things", one).Problem(crash.status, crash.code)
			require.Equal(t, 1, w.count())
			w.after = func(context.Context) error { t.Error("it must not run again"); return nil }
			again := c.Post("/v1/things", one)
			require.Equal(t, "one", again.Object()["name"])
			require.True(t, replayed(again))
			require.Equal(t, `"1"`, again.Header.Get("ETag"))
			require.Equal(t, string(w.client().Get("/v1/things/"+again.ID()).Body), string(again.Body))
			require.Equal(t, 1, w.count())
		})
	}
}

// The request's context ends after the commit: the rest is written nevertheless.
func TestAContextThatDies(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(w *world, die func(context.Context) error){
		"before the commit": func(w *world, die func(context.Context) error) { w.before = die },
		"after the commit":  func(w *world, die func(context.Context) error) { w.after = die },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ctx, cancel := context.WithCancel(context.Background())
			place(w, func(ctx context.Context) error { cancel(); <-ctx.Done(); return ctx.Err() })
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/things", strings.NewReader(`{"name":"one"}`))
			r.Header = http.Header{"Authorization": {"Bearer " + w.Token("acme", auth.UsersRead, auth.UsersWrite)},
				"Content-Type": {"application/json"}, "Idempotency-Key": {"k"}}
			w.Handler.ServeHTTP(httptest.NewRecorder(), r)
			w.before, w.after = func(context.Context) error { return nil }, func(context.Context) error { return nil }
			again := w.client().With("Idempotency-Key", "k").Post("/v1/things", one)
			again.OK(nil)
			require.Equal(t, name == "after the commit", replayed(again))
			require.Equal(t, 1, w.count())
		})
	}
}

func TestFailuresFreeTheKey(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(context.Context) error{
		"panic":           func(context.Context) error { panic("crash") },
		"foreign":         func(context.Context) error { return errors.New("crash") },
		"unavailable":     func(context.Context) error { return apperr.Away("it", nil) },
		"rate limited":    func(context.Context) error { return apperr.New(apperr.RateLimited, "slower") },
		"forbidden":       func(context.Context) error { return apperr.New(apperr.Forbidden, "not yet") },
		"unauthenticated": func(context.Context) error { return apperr.New(apperr.Unauthenticated, "who?") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.before = before
			c := w.client().With("Idempotency-Key", "k")
			require.NotEqual(t, http.StatusOK, c.Post("/v1/things", one).Status)
			w.before = func(context.Context) error { return nil }
			second := c.Post("/v1/things", one).OK(nil)
			require.False(t, replayed(second))
			require.True(t, replayed(c.Post("/v1/things", one).OK(nil)))
			require.Equal(t, 1, w.count())
		})
	}
}

// The next run of the same request with a key knows which change the run before asked another service for, also if that
// one died, for as long as answers are kept. Another request with the key does not.
func TestChangesOfAKey(t *testing.T) {
	t.Parallel()
	for name, dies := range map[string]bool{"a failure": false, "a crash": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := &mortal{}
			var store *docstore.Store
			w := newWorldOn(t, func(e docstore.Engine) docstore.Engine { engine.Engine = e; return engine },
				func(_ *rest.Server, d service.Deps) { store = d.Store })
			var former []string
			w.before = func(ctx context.Context) error {
				key := change.KeyOf(ctx)
				if former = append(former, key.Former); len(former) == 4 {
					return nil
				}
				err := docstore.Do(docstore.WithoutCommitHook(ctx), store, func(tx *docstore.Tx) error {
					return key.Note(ctx, tx, fmt.Sprint("change ", len(former)))
				})
				engine.dead.Store(dies)
				return apperr.Unknown(err)
			}
			post := func(thing map[string]any) *testkit.Answer {
				return w.client().With("Idempotency-Key", "k").Post("/v1/things", thing) // a token lives for an hour
			}
			two := map[string]any{"name": "two"}
			for i, thing := range []map[string]any{one, one, two} {
				require.NotEqual(t, http.StatusOK, post(thing).Status)
				engine.dead.Store(false)
				w.Clock.Advance([]time.Duration{24*time.Hour - time.Second, time.Minute, time.Minute}[i])
				due, err := rest.DueAnswers(t.Context(), store, 10)
				require.NoError(t, err)
				for _, ref := range due {
					require.NoError(t, rest.ForgetAnswer(request.System(t.Context(), ref.Tenant), store, ref.ID))
				}
			}
			require.False(t, replayed(post(two).OK(nil)))
			require.Equal(t, []string{"", "change 1", "", "change 3"}, former)
			require.True(t, replayed(post(two).OK(nil)))
			require.Equal(t, 1, w.count())
		})
	}
}

func TestRefusalsAreReplayed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	calls := 0
	w.before = func(context.Context) error { calls++; return apperr.Taken("body.name") }
	c := w.client().With("Idempotency-Key", "k")
	first := c.With("X-Request-Id", "first").Post("/v1/things", one)
	first.Problem(http.StatusConflict, "already_exists", "body.name")
	again := c.With("X-Request-Id", "second").Post("/v1/things", one)
	require.JSONEq(t, string(first.Body), string(again.Body),
		"the first answer, with the id of the first request, which leads to its logs")
	require.Equal(t, http.StatusConflict, again.Status)
	require.Equal(t, "application/problem+json", again.Header.Get("Content-Type"))
	require.Equal(t, "second", again.Header.Get("X-Request-Id"))
	require.True(t, replayed(again))
	require.Equal(t, 1, calls)
}

// mortal is an engine whose writes for the request "first" fail once its process is dead, and are counted before.
type mortal struct {
	docstore.Engine
	dead   atomic.Bool
	writes atomic.Int32
}

func (e *mortal) Write(ctx context.Context, fn func(docstore.EngineTx) error) error {
	if request.From(ctx).ID == "first" {
		if e.dead.Load() {
			return errors.New("the process is dead")
		}
		defer e.writes.Add(1)
	}
	return e.Engine.Write(ctx, fn)
}

// stall starts a request with a key, and returns once it runs.
func (w *world) stall() (answer <-chan *testkit.Answer, resume func()) {
	entered, resumed := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	w.before = func(context.Context) error {
		if calls.Add(1) == 1 {
			close(entered)
			<-resumed
		}
		return nil
	}
	answers := make(chan *testkit.Answer, 1)
	c := w.client().With("Idempotency-Key", "k").With("X-Request-Id", "first")
	go func() { answers <- c.Post("/v1/things", one) }()
	<-entered
	return answers, func() { close(resumed) }
}

// The key of a process that dies is free within 10 s.
func TestALeaseIsTakenOver(t *testing.T) {
	t.Parallel()
	engine := &mortal{}
	w := newWorldOn(t, func(e docstore.Engine) docstore.Engine { engine.Engine = e; return engine })
	stalled, resume := w.stall()
	c := w.client().With("Idempotency-Key", "k")
	busy := c.Post("/v1/things", one)
	busy.Problem(http.StatusConflict, "request_in_progress")
	require.Equal(t, "1", busy.Header.Get("Retry-After"))
	engine.dead.Store(true)
	w.Clock.Advance(10 * time.Second)
	second := c.Post("/v1/things", one).OK(nil)
	require.False(t, replayed(second))

	// The first request was only slow: now it must not change anything, even if it could.
	engine.dead.Store(false)
	w.client().Patch("/v1/things/"+second.ID(), `{"name":"renamed"}`).OK(nil)
	resume()
	(<-stalled).Problem(http.StatusConflict, "request_in_progress")
	require.Equal(t, 1, w.count())
	again := c.Post("/v1/things", one).OK(nil)
	require.True(t, replayed(again))
	require.Equal(t, second.ID(), again.ID())
}

// A request that takes long keeps its key.
func TestALeaseIsRenewed(t *testing.T) {
	t.Parallel()
	engine := &mortal{}
	w := newWorldOn(t, func(e docstore.Engine) docstore.Engine { engine.Engine = e; return engine })
	stalled, resume := w.stall()
	c := w.client().With("Idempotency-Key", "k")
	for range 3 {
		w.Clock.Advance(7 * time.Second)
		before := engine.writes.Load()
		renewed := func() bool { return engine.writes.Load() > before }
		wait.Until(t, renewed)
		c.Post("/v1/things", one).Problem(http.StatusConflict, "request_in_progress")
	}
	resume()
	first := (<-stalled).OK(nil)
	again := c.Post("/v1/things", one).OK(nil)
	require.True(t, replayed(again))
	require.Equal(t, first.ID(), again.ID())
	require.Equal(t, 1, w.count())
}

func TestKeysAreTheirCallersAndRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().With("Idempotency-Key", "k")
	c.Post("/v1/things", `{"name":"one"}`).OK(nil)
	for _, other := range []string{`{"name":"two"}`, `{"name":"one","count":1}`, `{"name": "one"}`} {
		c.Post("/v1/things", other).Problem(http.StatusUnprocessableEntity, "idempotency_key_reused")
	}
	c.Post("/v1/things?x=1", `{"name":"one"}`).Problem(http.StatusUnprocessableEntity, "idempotency_key_reused")
	require.False(t, replayed(w.As("globex", auth.UsersWrite).With("Idempotency-Key", "k").
		Post("/v1/things", `{"name":"one"}`).OK(nil)))
	require.False(t, replayed(c.With("Idempotency-Key", "K").Post("/v1/things", `{"name":"three"}`).OK(nil)))
	for _, key := range []string{" ", strings.Repeat("k", 256), "clé", "a\tb"} {
		answer := c.With("Idempotency-Key", key).Post("/v1/things", `{"name":"four"}`)
		if key == " " { // a single printable character is a key
			answer.OK(nil)
			continue
		}
		answer.Problem(http.StatusBadRequest, "invalid_parameters", "header.Idempotency-Key")
	}
	id := c.With("Idempotency-Key", strings.Repeat("k", 255)).Post("/v1/things", `{"name":"five"}`).ID()
	c.Patch("/v1/things/"+id, `{"count":1}`).OK(nil)
	require.False(t, replayed(c.Patch("/v1/things/"+id, `{"count":2}`).OK(nil)), "only a POST has a key")
}

func TestAnswersAreForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	for _, tenant := range []string{"acme", "globex"} {
		w.As(tenant, auth.UsersRead, auth.UsersWrite).With("Idempotency-Key", "k").Post("/v1/things", one).OK(nil)
	}
	w.Clock.Advance(23 * time.Hour)
	w.client().With("Idempotency-Key", "later").Post("/v1/things", map[string]any{"name": "two"}).OK(nil)
	forget := func() (n int) {
		refs, err := rest.DueAnswers(ctx, w.Deps.Store, 10)
		require.NoError(t, err)
		for _, ref := range refs {
			require.NoError(t, rest.ForgetAnswer(request.System(ctx, ref.Tenant), w.Deps.Store, ref.ID))
		}
		return len(refs)
	}
	require.Zero(t, forget())
	require.True(t, replayed(w.client().With("Idempotency-Key", "k").Post("/v1/things", one).OK(nil)))
	w.Clock.Advance(time.Hour)
	require.Equal(t, 2, forget())
	require.Zero(t, forget())
	w.client().With("Idempotency-Key", "k").Post("/v1/things", one).Problem(http.StatusConflict, "already_exists")
	require.True(t, replayed(w.client().With("Idempotency-Key", "later").
		Post("/v1/things", map[string]any{"name": "two"}).OK(nil)))
}

type shown struct {
	Name   string `json:"name"`
	Secret string `json:"secret"`
}

// A new secret is shown to the request that made it and to its repetition, and cannot be read from the database.
func TestKeptAnswersAreSealed(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-shown-once"
	w := newWorldOn(t, func(e docstore.Engine) docstore.Engine { return e }, func(s *rest.Server, d service.Deps) {
		rest.Handle(s, rest.Op{ID: "make-secret", Method: http.MethodPost, Path: "/v1/secrets", Scope: auth.UsersWrite,
			Summary: "Make"},
			func(ctx context.Context, _ *struct{}) (shown, error) {
				return docstore.Write(ctx, d.Store, func(tx *docstore.Tx) (shown, error) {
					_, err := things.Insert(ctx, tx, &thing{Meta: docstore.Meta{ID: "1"}, Name: "findable"})
					return shown{"findable", secret}, err
				})
			})
	})
	c := w.client().With("Idempotency-Key", "k")
	c.Post("/v1/secrets", nil).OK(nil)
	again := c.Post("/v1/secrets", nil).OK(nil)
	require.True(t, replayed(again))
	require.Contains(t, string(again.Body), secret)

	files, err := filepath.Glob(filepath.Join(w.dir, "*"))
	require.NoError(t, err)
	var stored []byte
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		stored = append(stored, content...)
	}
	require.Contains(t, string(stored), "findable")
	require.NotContains(t, string(stored), secret)
}

// Only the Write whose result is the answer stores it; those with WithoutCommitHook do not.
func TestWritesWithoutCommitHook(t *testing.T) {
	t.Parallel()
	insert := func(ctx context.Context, d service.Deps, id string) (shown, error) {
		return docstore.Write(ctx, d.Store, func(tx *docstore.Tx) (shown, error) {
			_, err := things.Insert(ctx, tx, &thing{Meta: docstore.Meta{ID: id}, Name: id})
			return shown{Name: id}, err
		})
	}
	operation := func(path string, fn func(context.Context, service.Deps) (shown, error)) func(*rest.Server,
		service.Deps) {
		return func(s *rest.Server, d service.Deps) {
			rest.Handle(s, rest.Op{ID: path[1:], Method: http.MethodPost, Path: path, Scope: auth.UsersWrite,
				Summary: "Write"},
				func(ctx context.Context, _ *struct{}) (shown, error) { return fn(ctx, d) })
		}
	}
	w := newWorld(t,
		operation("/aside", func(ctx context.Context, d service.Deps) (shown, error) {
			if _, err := insert(docstore.WithoutCommitHook(ctx), d, "first"); err != nil {
				return shown{}, err
			}
			return insert(ctx, d, "second")
		}),
		operation("/none", func(context.Context, service.Deps) (shown, error) {
			return shown{Name: "no write at all"}, nil
		}),
		operation("/other", func(ctx context.Context, d service.Deps) (shown, error) {
			_, err := insert(ctx, d, "third")
			return shown{Name: "not the stored result"}, err
		}),
	)
	c := w.client().With("Idempotency-Key", "k")
	for path, want := range map[string]string{"/aside": "second", "/none": "no write at all"} {
		c := c.With("Idempotency-Key", path)
		require.Equal(t, want, c.Post(path, nil).Object()["name"])
		again := c.Post(path, nil)
		require.Equal(t, want, again.Object()["name"])
		require.True(t, replayed(again))
	}
	c.Post("/other", nil).Problem(http.StatusInternalServerError, "internal")
	require.Len(t, w.logs.with("the transaction's result is not the answer"), 1,
		"strict tests notice an answer that would be replayed wrongly")
}

// What holds only at the moment is computed each time. What guards against guessing is stored even in a dry run,
// whatever version If-Match expects.
func TestMomentaryAnswersAndGuards(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *rest.Server, d service.Deps) {
		rest.Handle(s, rest.Op{
			ID: "guess", Method: http.MethodPost, Path: "/v1/things/{id}/guess", Scope: auth.UsersWrite,
			Summary: "Guess", NoReplay: true,
		}, func(ctx context.Context, in *ByID) (shown, error) {
			ctx = docstore.Guarding(ctx)
			return docstore.Write(ctx, d.Store, func(tx *docstore.Tx) (shown, error) {
				v, err := things.Load(ctx, tx, in.ID)
				if err != nil {
					return shown{}, err
				}
				v.Count++
				_, err = things.Replace(ctx, tx, v)
				return shown{Name: fmt.Sprint(v.Count)}, err
			})
		})
	})
	c := w.client()
	path := "/v1/things/" + c.Post("/v1/things", map[string]any{"name": "x"}).ID()
	keyed := c.With("Idempotency-Key", "k")
	for i, post := range []func() *testkit.Answer{
		func() *testkit.Answer { return keyed.Post(path+"/guess", nil) },
		func() *testkit.Answer { return keyed.Post(path+"/guess", nil) },
		func() *testkit.Answer { return keyed.Post(path+"/guess?dry_run=true", nil) },
		func() *testkit.Answer { return keyed.With("If-Match", `"99"`).Post(path+"/guess", nil) },
	} {
		answer := post()
		require.Equal(t, fmt.Sprint(i+1), answer.Object()["name"])
		require.False(t, replayed(answer))
		require.EqualValues(t, i+1, c.Get(path).Object()["count"])
	}
}

// twice is an engine whose transactions all run a second time, as after a conflict. between makes the other writer's
// change.
type twice struct {
	docstore.Engine
	between func()
}

var errConflict = errors.New("conflict")

func (e *twice) Write(ctx context.Context, fn func(docstore.EngineTx) error) error {
	err := e.Engine.Write(ctx, func(tx docstore.EngineTx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return errConflict
	})
	if !errors.Is(err, errConflict) {
		return err
	}
	if e.between != nil {
		e.between()
	}
	return e.Engine.Write(ctx, fn)
}

func TestTransactionsThatRunTwice(t *testing.T) {
	t.Parallel()
	engine := &twice{}
	w := newWorldOn(t, func(e docstore.Engine) docstore.Engine { engine.Engine = e; return engine })
	c := w.client().With("Idempotency-Key", "k")
	first := c.Post("/v1/things", one).OK(nil)
	again := c.Post("/v1/things", one).OK(nil)
	require.True(t, replayed(again))
	require.Equal(t, first.ID(), again.ID())
	require.Equal(t, 1, w.count())

	// The first run succeeded and was undone, the second is refused: the refusal is the answer.
	engine.between = func() {
		engine.between = nil
		w.As("acme", auth.UsersWrite).Post("/v1/things", map[string]any{"name": "two"}).OK(nil)
	}
	claimed := engine.between
	engine.between = func() { engine.between = claimed } // the first transaction is that of claim
	c = c.With("Idempotency-Key", "k2")
	c.Post("/v1/things", map[string]any{"name": "two"}).Problem(http.StatusConflict, "already_exists")
	refused := c.Post("/v1/things", map[string]any{"name": "two"})
	require.Contains(t, string(refused.Body), "already_exists")
	require.True(t, replayed(refused))
}

// raced is an engine that reports once that another replica has just inserted the same key.
type raced struct {
	docstore.Engine
	done bool
}

type racedTx struct {
	docstore.EngineTx
	engine *raced
}

func (e *raced) Write(ctx context.Context, fn func(docstore.EngineTx) error) error {
	return e.Engine.Write(ctx, func(tx docstore.EngineTx) error { return fn(racedTx{tx, e}) })
}

func (tx racedTx) Insert(ctx context.Context, def *docstore.Def, e *docstore.Entry) error {
	if def.Name == "idempotency" && !tx.engine.done {
		tx.engine.done = true
		return &docstore.DuplicateError{Collection: def.Name}
	}
	return tx.EngineTx.Insert(ctx, def, e)
}

func TestAClaimThatLosesARaceLooksAgain(t *testing.T) {
	t.Parallel()
	engine := &raced{}
	w := newWorldOn(t, func(e docstore.Engine) docstore.Engine { engine.Engine = e; return engine })
	w.client().With("Idempotency-Key", "k").Post("/v1/things", one).OK(nil)
	require.True(t, engine.done)
	require.True(t, replayed(w.client().With("Idempotency-Key", "k").Post("/v1/things", one).OK(nil)))
}

// A key belongs to its caller: the same subject of two issuers is two callers. A caller without a credential has no
// keys.
func TestCallersAreToldApart(t *testing.T) {
	t.Parallel()
	var handler http.Handler
	signers := map[string]*auth.Signer{}
	newWorld(t, func(_ *rest.Server, d service.Deps) {
		config := auth.Config{Clock: d.Clock, Log: d.Log}
		for _, name := range []string{"a", "b"} {
			key, err := auth.GenerateKey()
			require.NoError(t, err)
			signers[name], err = auth.NewSigner(name, auth.NewKeys(key), d.Clock)
			require.NoError(t, err)
			config.Issuers = append(config.Issuers, auth.Issuer{Name: name, Keys: signers[name],
				Scopes: auth.AllScopes})
		}
		var err error
		d.Verifier, err = auth.New(config)
		require.NoError(t, err)
		d.Requests = telemetry.NewHTTPMetrics(prometheus.NewRegistry())
		s := d.Server("Callers")
		n := 0
		count := func(context.Context, *struct{}) (int, error) { n++; return n, nil }
		rest.Handle(s, rest.Op{ID: "count", Method: http.MethodPost, Path: "/v1/count", Scope: auth.UsersWrite,
			Summary: "Count"}, count)
		rest.Handle(s, rest.Op{ID: "open", Method: http.MethodPost, Path: "/v1/open", Summary: "Count"}, count)
		handler = s
	})
	ask := func(path, token string) string {
		r := httptest.NewRequest(http.MethodPost, path, nil)
		r.Header.Set("Idempotency-Key", "k")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		return strings.TrimSpace(w.Body.String())
	}
	token := func(issuer, subject string) string {
		token, err := signers[issuer].Mint(auth.Claims{Subject: subject, ClientID: "c", Tenant: "acme",
			Scopes: auth.AllScopes, TTL: time.Hour})
		require.NoError(t, err)
		return token
	}
	for _, x := range []struct{ issuer, subject, want string }{{"a", "ann", "1"}, {"b", "ann", "2"}, {"a", "bob", "3"},
		{"a", "ann", "1"}, {"b", "ann", "2"}} {
		require.Equal(t, x.want, ask("/v1/count", token(x.issuer, x.subject)))
	}
	require.Equal(t, "4", ask("/v1/open", ""))
	require.Equal(t, "5", ask("/v1/open", ""))
}
