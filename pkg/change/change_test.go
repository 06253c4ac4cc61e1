package change_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/change"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

type intent struct {
	change.Intent
	To string `json:"to"`
}

type outcome struct {
	change.Outcome
	To string `json:"to"`
}

type thing struct {
	docstore.Meta
	To string `json:"to"`
}

var (
	intents = change.Define(docstore.Schema[intent]{Name: "intents", Noun: "intent"}, 10*time.Second,
		func(i *intent) *change.Intent { return &i.Intent })
	outcomes = change.DefineOutcomes(docstore.Schema[outcome]{Name: "outcomes", Noun: "outcome"},
		func(o *outcome) *change.Outcome { return &o.Outcome })
	moved = docstore.Define(docstore.Schema[thing]{Name: "moved", Noun: "thing"}) // of the answering service
	known = docstore.Define(docstore.Schema[thing]{Name: "known", Noun: "thing"}) // of the asking one
)

var errKilled = errors.New("killed")

// world has both services, each with its store. Its faults are called before a step; an error is that of the step.
type world struct {
	asking, answering *docstore.Store
	clock             *basic.Clock
	fault             func(step string) error
	steps             []string
	noted             []string // what the request's key remembers
	former            string
}

func newWorld(t *testing.T) (*world, context.Context) {
	w := &world{clock: basic.NewClock(), fault: func(string) error { return nil }}
	open := func(name string, defs ...*docstore.Def) *docstore.Store {
		engine, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: filepath.Join(t.TempDir(), name)})
		require.NoError(t, err)
		store, err := docstore.Open(t.Context(), engine, w.clock, defs...)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		return store
	}
	w.asking = open("asking.db", intents.Def(), known.Def())
	w.answering = open("answering.db", outcomes.Def(), moved.Def())
	return w, request.With(t.Context(), request.Info{ID: "req-7", Tenant: "acme", Actor: "ann", PayloadOrigin: "hr"})
}

func (w *world) step(name string) error {
	w.steps = append(w.steps, name)
	return w.fault(name)
}

// ask is the question with its way there and back. The answering service refuses to move a thing to nowhere.
func (w *world) ask(ctx context.Context, id, to string) (string, error) {
	if err := w.step("ask"); err != nil {
		return "", err
	}
	if to == "nowhere" {
		return "", apperr.Invalid("to", "is no place")
	}
	err := docstore.Do(ctx, w.answering, func(tx *docstore.Tx) error {
		return outcomes.Once(ctx, tx, id, outcome{To: to}, func() error {
			_, err := moved.Insert(ctx, tx, &thing{docstore.Meta{ID: id}, to})
			return err
		})
	})
	return to, errors.Join(err, w.step("answer"))
}

func (w *world) settle(ctx context.Context, id string) (string, bool, error) {
	if err := w.step("settle"); err != nil {
		return "", false, err
	}
	done, err := docstore.Write(ctx, w.answering, func(tx *docstore.Tx) (*outcome, error) {
		return outcomes.Settle(ctx, tx, id)
	})
	if err = errors.Join(err, w.step("settled")); err != nil || done == nil {
		return "", false, err
	}
	return done.To, true, nil
}

func (w *world) complete(ctx context.Context, id, to string) (string, error) {
	if err := w.step("complete"); err != nil {
		return "", err
	}
	return docstore.Write(ctx, w.asking, func(tx *docstore.Tx) (string, error) {
		i, err := intents.End(ctx, tx, id)
		if err != nil || i == nil {
			return to, err
		}
		_, err = known.Insert(ctx, tx, &thing{docstore.Meta{ID: id}, to})
		return to, err
	})
}

// move is the request.
func (w *world) move(ctx context.Context, id, to string) (string, error) {
	ctx = change.WithKey(ctx, w.former, func(_ context.Context, _ *docstore.Tx, id string) error {
		w.noted = append(w.noted, id)
		return nil
	})
	return change.Run(ctx, w.asking, intents, change.Steps[intent, string, string]{
		ID: id, Intent: &intent{To: to}, Key: change.KeyOf(ctx),
		Check: func(context.Context, *docstore.Tx) error {
			if to == "" {
				return apperr.Invalid("to", "must be given")
			}
			return w.step("check")
		},
		Ask:    func(ctx context.Context) (string, error) { return w.ask(ctx, id, to) },
		Settle: w.settle, Complete: w.complete,
	})
}

// finish is the task of a replica, for one intent.
func (w *world) finish(ctx context.Context, id string) error {
	ctx, i, err := intents.Resume(request.With(ctx, request.Info{Tenant: "acme"}), w.asking, id)
	if err != nil {
		return err
	}
	want := request.Info{ID: "req-7", Tenant: "acme", Actor: "ann", PayloadOrigin: "hr"}
	if info := request.From(ctx); info != want {
		panic(fmt.Sprintf("in the name of %v", info))
	}
	to, made, err := w.settle(ctx, id)
	switch {
	case err != nil:
		return err
	case !made:
		return intents.Drop(ctx, w.asking, id)
	case to != i.To:
		panic(fmt.Sprintf("moved to %q instead of %q", to, i.To))
	}
	_, err = w.complete(ctx, id, to)
	return err
}

func (w *world) has(t *testing.T, ctx context.Context, c *docstore.Collection[thing], s *docstore.Store, id string,
) bool {
	t.Helper()
	_, err := c.Find(ctx, s, id)
	if !apperr.IsNotFound(err) {
		require.NoError(t, err)
	}
	return err == nil
}

// open reports whether the intent is there.
func (w *world) open(t *testing.T, ctx context.Context, id string) bool {
	t.Helper()
	_, err := intents.Find(ctx, w.asking, id)
	if !apperr.IsNotFound(err) {
		require.NoError(t, err)
	}
	return err == nil
}

func TestRun(t *testing.T) {
	t.Parallel()
	lost, unheard := apperr.Unknown(nil), apperr.Away("the other service", nats.ErrNoResponders)
	for name, test := range map[string]struct {
		to     string
		faults map[string]error
		kind   apperr.Kind // "" if the change is made
		steps  []string
		noted  []string
		open   bool // the intent stays
	}{
		"made":    {to: "a", steps: []string{"check", "ask", "answer", "complete"}, noted: []string{"1"}},
		"checked": {to: "", kind: apperr.InvalidParameters},
		"refused": {to: "nowhere", kind: apperr.InvalidParameters, steps: []string{"check", "ask"},
			noted: []string{"1", ""}},
		"unheard": {to: "a", faults: map[string]error{"ask": unheard}, kind: apperr.Unavailable,
			steps: []string{"check", "ask"}, noted: []string{"1", ""}},
		"the question is lost": {to: "a", faults: map[string]error{"ask": apperr.Away("the other service", nil)},
			kind: apperr.Unavailable, steps: []string{"check", "ask", "settle", "settled"}, noted: []string{"1", ""}},
		"the answer is lost": {to: "a", faults: map[string]error{"answer": lost},
			steps: []string{"check", "ask", "answer", "settle", "settled", "complete"}, noted: []string{"1"}},
		"both are lost": {to: "a", faults: map[string]error{"answer": lost, "settle": unheard},
			kind: apperr.OutcomeUnknown, steps: []string{"check", "ask", "answer", "settle"}, noted: []string{"1"},
			open: true},
		"not completed": {to: "a", faults: map[string]error{"complete": errKilled}, kind: apperr.OutcomeUnknown,
			steps: []string{"check", "ask", "answer", "complete"}, noted: []string{"1"}, open: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ctx := newWorld(t)
			w.fault = func(step string) error { return test.faults[step] }
			to, err := w.move(ctx, "1", test.to)
			require.Equal(t, test.steps, w.steps)
			require.Equal(t, test.noted, w.noted)
			require.Equal(t, test.open, w.open(t, ctx, "1"))
			if test.kind != "" {
				require.Equal(t, test.kind, apperr.KindOf(err), "%v", err)
			} else {
				require.NoError(t, err)
				require.Equal(t, test.to, to)
			}
			if !test.open {
				require.Equal(t, test.kind == "", w.has(t, ctx, known, w.asking, "1"))
				require.Equal(t, test.kind == "", w.has(t, ctx, moved, w.answering, "1"))
			}
		})
	}
}

// The other service may have made the change, so the work goes on without the client. Before the question, it ends.
func TestAClientLeaves(t *testing.T) {
	t.Parallel()
	for step, made := range map[string]bool{"check": false, "ask": true} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w, ctx := newWorld(t)
			client, leave := context.WithCancel(ctx)
			w.fault = func(now string) error {
				if now == step {
					leave()
				}
				return nil
			}
			_, err := w.move(client, "1", "a")
			require.Equal(t, made, err == nil)
			require.Equal(t, made, w.has(t, ctx, known, w.asking, "1"))
			require.Equal(t, made, w.has(t, ctx, moved, w.answering, "1"))
			require.False(t, w.open(t, ctx, "1"))
		})
	}
}

// A question is asked for as long as no task takes the change over.
func TestTheRequestHasATime(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t)
	_, err := change.Run(ctx, w.asking, intents, change.Steps[intent, string, string]{
		ID: "1", Intent: &intent{To: "a"},
		Ask: func(ctx context.Context) (string, error) {
			end, ends := ctx.Deadline()
			require.True(t, ends)
			require.LessOrEqual(t, time.Until(end), intents.Takes)
			return w.ask(ctx, "1", "a")
		},
		Complete: w.complete,
	})
	require.NoError(t, err)
	require.Panics(t, func() { _, _ = w.move(docstore.WithDryRun(ctx), "2", "a") })
}

// A change that the asking service stores nothing with has no intent.
func TestWithoutAnIntent(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]string{"answered": "", "settled": "answer"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ctx := newWorld(t)
			w.fault = func(step string) error {
				if step == lost {
					return apperr.Unknown(nil)
				}
				return nil
			}
			to, err := change.Ask(ctx, "1", func(ctx context.Context) (string, error) { return w.ask(ctx, "1", "a") },
				w.settle)
			require.NoError(t, err)
			require.Equal(t, "a", to)
			_, err = change.Run(ctx, w.asking, intents, change.Steps[intent, string, string]{
				ID: "2", Ask: func(ctx context.Context) (string, error) { return w.ask(ctx, "2", "nowhere") },
				Settle: w.settle, Complete: w.complete,
				Refusal: func(err error) error { return fmt.Errorf("refused: %w", err) },
			})
			require.ErrorContains(t, err, "refused: ")
			require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
			require.False(t, w.open(t, ctx, "2"))
		})
	}
}

// A change is made once, and completed once.
func TestAskedAndCompletedTwice(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t)
	w.fault = func(step string) error {
		if step == "complete" {
			_, err := w.ask(ctx, "1", "a") // the question arrives once more
			require.NoError(t, err)
			w.fault = func(string) error { return nil }
			require.NoError(t, w.finish(ctx, "1")) // another replica is faster
		}
		return nil
	}
	to, err := w.move(ctx, "1", "a")
	require.NoError(t, err)
	require.Equal(t, "a", to)
	require.True(t, apperr.IsNotFound(w.finish(ctx, "1")))
	require.True(t, w.has(t, ctx, known, w.asking, "1"))
}

// Without a key, a request can make several changes, each with its own answer.
func TestTwoChanges(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t)
	_, err := w.move(ctx, "1", "a")
	require.NoError(t, err)
	ctx = change.WithKey(ctx, "1", func(context.Context, *docstore.Tx, string) error { return errKilled })
	for id, place := range map[string]string{"2": "b", "3": "c"} {
		to, err := change.Run(ctx, w.asking, intents, change.Steps[intent, string, string]{
			ID: id, Intent: &intent{To: place}, Settle: w.settle, Complete: w.complete,
			Ask: func(ctx context.Context) (string, error) { return w.ask(ctx, id, place) },
		})
		require.NoError(t, err)
		require.Equal(t, place, to)
		require.True(t, w.has(t, ctx, known, w.asking, id))
	}
}

// A change that was settled as not made is refused when the question arrives late.
func TestALateQuestion(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t)
	_, made, err := w.settle(ctx, "1")
	require.NoError(t, err)
	require.False(t, made)
	_, err = w.ask(ctx, "1", "a")
	require.Equal(t, apperr.InvalidState, apperr.KindOf(err))
	_, made, err = w.settle(ctx, "1")
	require.NoError(t, err)
	require.False(t, made)
	require.False(t, w.has(t, ctx, moved, w.answering, "1"))
	_, err = w.ask(ctx, "", "a")
	require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
}

// A repeated request with an Idempotency-Key ends the change that the first one has asked for.
func TestARepeatedRequest(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]bool{"made": true, "not made": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ctx := newWorld(t)
			lost := "ask"
			if made {
				lost = "answer"
			}
			w.fault = func(step string) error {
				if step == lost || step == "settle" {
					return apperr.Unknown(nil)
				}
				return nil
			}
			_, err := w.move(ctx, "1", "a")
			require.Equal(t, apperr.OutcomeUnknown, apperr.KindOf(err))
			w.former = "1"
			_, err = w.move(ctx, "2", "a")
			require.Equal(t, apperr.OutcomeUnknown, apperr.KindOf(err), "the first is not settled")
			require.Equal(t, []string{"1"}, w.noted)

			w.fault = func(string) error { return nil }
			_, err = w.move(ctx, "3", "a")
			require.NoError(t, err)
			require.False(t, w.open(t, ctx, "1"))
			require.Equal(t, made, w.has(t, ctx, known, w.asking, "1"))
			require.Equal(t, !made, w.has(t, ctx, known, w.asking, "3"))
		})
	}
}

// An outcome can be asked for as long as it is kept.
func TestOutcomesAreForgotten(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t)
	_, err := w.move(ctx, "1", "a")
	require.NoError(t, err)
	w.clock.Advance(24*time.Hour - time.Second)
	due, err := outcomes.Due(ctx, w.answering, 10)
	require.NoError(t, err)
	require.Empty(t, due)
	w.clock.Advance(2 * time.Second)
	due, err = outcomes.Due(ctx, w.answering, 10)
	require.NoError(t, err)
	require.Len(t, due, 1)
	require.NoError(t, outcomes.Forget(ctx, w.answering, "1"))
}

// Whatever is lost, and wherever a service dies, in the end both services have a change or neither has.
func TestBothOrNeither(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t)
	ended := map[bool]int{}
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 0))
		id := fmt.Sprint("change-", seed)
		w.fault = func(step string) error {
			switch n := r.IntN(8); {
			case n == 0:
				return apperr.Unknown(errKilled)
			case n == 1 && step == "ask":
				return apperr.Away("the other service", nats.ErrNoResponders)
			}
			return nil
		}
		tries := func() {
			if r.IntN(2) == 0 { // a second replica
				_ = w.finish(ctx, id)
			}
			_ = w.finish(ctx, id)
		}
		_, moveErr := w.move(ctx, id, "a")
		if moveErr == nil {
			require.False(t, w.open(t, ctx, id), "seed %d", seed)
		}
		for round := 0; w.open(t, ctx, id); round++ {
			require.Less(t, round, 1000, "seed %d", seed)
			w.clock.Advance(11 * time.Second)
			due, err := intents.Due(ctx, w.asking, 10)
			require.NoError(t, err)
			require.Len(t, due, 1, "seed %d", seed)
			tries()
		}
		has := w.has(t, ctx, moved, w.answering, id)
		require.Equal(t, has, w.has(t, ctx, known, w.asking, id), "seed %d: %v", seed, moveErr)
		if moveErr == nil || apperr.KindOf(moveErr) == apperr.InvalidParameters {
			require.Equal(t, moveErr == nil, has, "seed %d", seed)
		}
		ended[has]++
	}
	require.Greater(t, ended[true], 20)
	require.Greater(t, ended[false], 20)
}
