package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/request"
)

// job is a document with a Due time.
type job struct {
	docstore.Meta
	At clock.Time `json:"at"`
}

var jobs = docstore.Define(docstore.Schema[job]{Name: "jobs", Noun: "job", Due: func(j *job) clock.Time {
	return j.At
}})

// stopped is a clock that tests move.
type stopped struct {
	sync.Mutex
	now clock.Time
}

func (c *stopped) Now() clock.Time { c.Lock(); defer c.Unlock(); return c.now }

func (c *stopped) advance(d time.Duration) { c.Lock(); defer c.Unlock(); c.now = c.now.Add(d) }

// jobsWorld is a store of jobs and a task that does them.
type jobsWorld struct {
	*stopped
	Deps
	log   bytes.Buffer
	tried []string // in the last run
	fault map[string]error
	run   func() int // one run of the task, which must not fail
	once  func() (int, error)
}

func newJobs(t *testing.T) *jobsWorld {
	t.Helper()
	w := &jobsWorld{stopped: &stopped{now: clock.Of(time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC))},
		fault: map[string]error{}}
	engine, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: t.TempDir() + "/test.db", Log: quiet()})
	require.NoError(t, err)
	store, err := docstore.Open(t.Context(), engine, w.stopped, jobs.Def())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	w.Deps = Deps{Store: store, Log: slog.New(slog.NewTextHandler(&w.log, nil)), Metrics: prometheus.NewRegistry()}
	task := w.DueTask(DueWork{Name: "do jobs", Every: time.Second, Due: jobs.Due,
		Do: func(ctx context.Context, id string) error {
			w.tried = append(w.tried, request.Tenant(ctx)+"/"+id)
			if err, bad := w.fault[id]; bad && err == nil {
				panic("poison")
			} else if bad && !errors.Is(err, errStillDue) {
				return err
			} else if bad {
				return nil // and does nothing
			}
			err := docstore.Do(ctx, store, func(tx *docstore.Tx) error {
				return jobs.DeleteWhere(ctx, tx, docstore.ID(id), nil)
			})
			return err
		}})
	w.once = func() (int, error) { w.tried = nil; return task.Do(t.Context()) }
	w.run = func() int {
		t.Helper()
		n, err := w.once()
		require.NoError(t, err)
		return n
	}
	return w
}

// add makes jobs that fall due one after the other.
func (w *jobsWorld) add(t *testing.T, tenant string, ids ...string) {
	t.Helper()
	ctx := request.System(t.Context(), tenant)
	for _, id := range ids {
		w.advance(time.Millisecond)
		_, err := docstore.Write(ctx, w.Store, func(tx *docstore.Tx) (docstore.Doc[job], error) {
			return jobs.Insert(ctx, tx, &job{Meta: docstore.Meta{ID: id}, At: tx.Now})
		})
		require.NoError(t, err)
	}
}

func (w *jobsWorld) metric(t *testing.T, name string) float64 {
	t.Helper()
	n, err := testutil.GatherAndCount(w.Metrics.(prometheus.Gatherer), name)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	families, err := w.Metrics.(prometheus.Gatherer).Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue() + f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1
}

// A document that fails, panics or stays due postpones only itself, longer each time. It is logged once and counted.
func TestAPoisonedDocumentPostponesItself(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{"error": errors.New("it is broken"), "panic": nil,
		"stays due": errStillDue} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newJobs(t)
			w.fault["bad"] = fault
			w.add(t, "acme", "bad", "a")
			w.add(t, "globex", "b")
			for w.run() > 0 {
			}
			for _, pause := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
				w.add(t, "acme", "next")
				w.run()
				require.Equal(t, []string{"acme/next"}, w.tried, "the others are done")
				w.advance(time.Duration(pause)*time.Second - 2*time.Millisecond)
				w.run()
				require.Empty(t, w.tried)
				w.advance(2 * time.Millisecond)
				for w.run() > 0 {
				}
			}
			require.Equal(t, 1, strings.Count(w.log.String(), "postponed"))
			require.Contains(t, w.log.String(), `task="do jobs" tenant=acme id=bad`)
			require.InDelta(t, 9, w.metric(t, "idp_due_failures_total"), 0)
			require.InDelta(t, 1, w.metric(t, "idp_due_postponed"), 0)

			delete(w.fault, "bad")
			w.advance(time.Minute)
			require.Equal(t, 1, w.run())
			require.Zero(t, w.run())
			require.Zero(t, w.metric(t, "idp_due_postponed"))
		})
	}
}

// It is not a failure if another replica did it first.
func TestDueWorkOfAnotherReplica(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	w.add(t, "acme", "gone", "changed")
	w.fault["gone"], w.fault["changed"] = apperr.Missing("job"), apperr.New(apperr.VersionMismatch, "it is another")
	require.Equal(t, 2, w.run())
	require.Empty(t, w.log.String())
}

// If a service is unavailable, the task fails, which is logged once and not for each document. Documents that always
// fail, however many, delay the others for a few runs at most.
func TestManyDocumentsFail(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	w.fault["away"] = apperr.Away("the other service", nil)
	w.add(t, "acme", "away", "a")
	_, err := w.once()
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
	require.Equal(t, []string{"acme/away"}, w.tried)
	require.Empty(t, w.log.String())
	require.Equal(t, 1, w.run())
	require.Equal(t, []string{"acme/a"}, w.tried)

	var bad []string
	for i := range 2*maxFailed + 1 {
		id := fmt.Sprint("bad-", i)
		bad, w.fault[id] = append(bad, id), errors.New("it is broken")
	}
	w.add(t, "acme", append(bad, "good")...)
	for range 2 {
		_, err := w.once()
		require.ErrorContains(t, err, "it is broken")
		require.Len(t, w.tried, maxFailed)
	}
	require.Equal(t, 1, w.run())
	require.Equal(t, "acme/good", w.tried[1])
	w.advance(time.Second)
	w.add(t, "globex", "good")
	_, err = w.once()
	require.Error(t, err)
	require.Equal(t, "globex/good", w.tried[0], "retries come after new ones")
}

// Documents of one tenant are worked on together, at most AtOnce of them. If that fails, each is worked on alone, and
// one that fails then postpones only itself.
func TestDueWorkTogether(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	var calls []string
	remove := func(ctx context.Context, ids ...string) error {
		calls = append(calls, request.Tenant(ctx)+" "+strings.Join(ids, " "))
		if slices.Contains(ids, "bad") {
			panic("poison")
		}
		return docstore.Do(ctx, w.Store, func(tx *docstore.Tx) error {
			return jobs.DeleteWhere(ctx, tx, docstore.ID(ids...), nil)
		})
	}
	task := w.DueTask(DueWork{Name: "work", Every: time.Second, Due: jobs.Due, AtOnce: 3,
		Do:    func(ctx context.Context, id string) error { return remove(ctx, id) },
		DoAll: func(ctx context.Context, ids []string) error { return remove(ctx, ids...) },
	})
	w.add(t, "acme", "0", "1")
	w.add(t, "globex", "a", "bad", "b")
	w.add(t, "acme", "2", "3")
	for _, n := range []int{6, 0} {
		done, err := task.Do(t.Context())
		require.NoError(t, err)
		require.Equal(t, n, done)
	}
	require.Equal(t, []string{
		"acme 0 1 2", "globex a bad b", "globex a", "globex bad", "globex b", "acme 3",
	}, calls)
	require.Equal(t, 1, strings.Count(w.log.String(), "postponed"))
}
