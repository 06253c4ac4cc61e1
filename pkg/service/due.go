package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

// DueWork is the work on the documents of a collection that have fallen due, of all tenants.
type DueWork struct {
	Name  string
	Every time.Duration
	// Due lists what has fallen due, earliest first: docstore.Collection.Due.
	Due func(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error)
	// Page is how many documents are worked on before Due is called again; 0 means 500. Those that failed before are
	// not counted.
	Page int
	// Do works on one document, so that it is no longer due. It runs in the document's tenant. apperr.NotFound and
	// VersionMismatch mean that another replica was first. After apperr.Unavailable the remaining documents wait until
	// the next run, too.
	Do func(ctx context.Context, id string) error
	// DoAll, if set, works on up to AtOnce documents of one tenant in one transaction, which costs less than Do for
	// each. If it fails, it has changed nothing, and Do works on each of them alone.
	DoAll  func(ctx context.Context, ids []string) error
	AtOnce int
}

const (
	duePage      = 500
	maxPostponed = 10_000
	firstRetry   = time.Second
	lastRetry    = time.Minute
	maxFailed    = 10 // failures in a row: not only these documents are at fault, and the rest waits until the next run
)

// DueTask makes a task of such work. Any number of replicas may run it. A document that fails is logged once and
// postpones only itself: it is tried again after 1 s, then after twice as long each time, up to a minute. Up to 10,000
// documents are postponed in this way; if there are more, they delay others. The metrics idp_due_failures_total and
// idp_due_postponed count them.
func (d Deps) DueTask(w DueWork) Task {
	r := &dueRunner{DueWork: w, store: d.Store, log: d.Log, postponed: map[docstore.Ref]postponement{}}
	r.failures, r.waiting = dueMetrics(d.Metrics, w.Name)
	return Task{Name: w.Name, Every: w.Every, Do: r.run}
}

// dueMetrics are the metrics of all due work of a service, with the task's name as label.
func dueMetrics(registry prometheus.Registerer, task string) (prometheus.Counter, prometheus.Gauge) {
	labels := []string{"task"}
	failures := telemetry.Register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "idp_due_failures_total", Help: "Documents that fell due and whose work failed; each is tried again.",
	}, labels))
	waiting := telemetry.Register(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "idp_due_postponed",
		Help: "Documents that fell due, whose work failed, and that wait for the next attempt.",
	}, labels))
	return failures.WithLabelValues(task), waiting.WithLabelValues(task)
}

// dueRunner is due work with its failures. Only one goroutine uses it.
type dueRunner struct {
	DueWork
	store     *docstore.Store
	log       *slog.Logger
	failures  prometheus.Counter
	waiting   prometheus.Gauge
	postponed map[docstore.Ref]postponement
	done      map[docstore.Ref]bool // done by the last run
}

type postponement struct {
	until clock.Time
	pause time.Duration
}

var errStillDue = errors.New("it is still due after it was worked off")

// run works on a page of what is due and returns how many documents it worked on. Documents that failed before come
// last, so that they delay no others.
func (r *dueRunner) run(ctx context.Context) (int, error) {
	due, err := r.Due(ctx, r.store, cmp.Or(r.Page, duePage)+len(r.postponed))
	if err != nil {
		return 0, err
	}
	last := r.done
	r.done = map[docstore.Ref]bool{}
	fresh, again := r.sort(due)
	defer func() { r.waiting.Set(float64(len(r.postponed))) }()
	failed := 0 // in a row
	for ref, err := range r.tryAll(ctx, append(fresh, again...)) {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if kind := apperr.KindOf(err); kind == apperr.NotFound || kind == apperr.VersionMismatch {
			err = nil
		}
		if err == nil && last[ref] { // otherwise it would be tried forever, without a pause
			err = errStillDue
		}
		if err == nil { // if it was postponed, sort finds out that it is no longer due
			r.done[ref] = true
			failed = 0
			continue
		}
		r.postpone(ctx, ref, err)
		if failed++; failed == maxFailed || apperr.KindOf(err) == apperr.Unavailable {
			return 0, fmt.Errorf("document %s of tenant %s: %w", ref.ID, ref.Tenant, err)
		}
	}
	return len(r.done), nil
}

// sort separates first attempts from retries, leaves out what is postponed, and forgets what is no longer due.
func (r *dueRunner) sort(due []docstore.Ref) (fresh, again []docstore.Ref) {
	postponed := make(map[docstore.Ref]postponement, len(r.postponed))
	now := r.store.Now()
	for _, ref := range due {
		p, ok := r.postponed[ref]
		switch {
		case !ok:
			fresh = append(fresh, ref)
			continue
		case !p.until.After(now):
			again = append(again, ref)
		}
		postponed[ref] = p
	}
	r.postponed = postponed
	return fresh, again
}

// tryAll works on documents and yields their results. With DoAll it takes those of one tenant together.
func (r *dueRunner) tryAll(ctx context.Context, refs []docstore.Ref) iter.Seq2[docstore.Ref, error] {
	return func(yield func(docstore.Ref, error) bool) {
		for _, group := range r.groups(refs) {
			together := len(group) > 1 && r.tryGroup(ctx, group) == nil
			for _, ref := range group {
				var err error
				if !together {
					err = r.try(ctx, func(ctx context.Context) error { return r.Do(ctx, ref.ID) }, ref.Tenant)
				}
				if !yield(ref, err) {
					return
				}
			}
		}
	}
}

// groups puts documents together that DoAll may take. A group comes where its first document is due.
func (r *dueRunner) groups(refs []docstore.Ref) (all [][]docstore.Ref) {
	open := map[string]int{} // by tenant
	for _, ref := range refs {
		i, ok := open[ref.Tenant]
		if !ok || r.DoAll == nil || len(all[i]) == r.AtOnce {
			i, all = len(all), append(all, nil)
			open[ref.Tenant] = i
		}
		all[i] = append(all[i], ref)
	}
	return all
}

func (r *dueRunner) tryGroup(ctx context.Context, group []docstore.Ref) error {
	ids := make([]string, len(group))
	for i, ref := range group {
		ids[i] = ref.ID
	}
	return r.try(ctx, func(ctx context.Context) error { return r.DoAll(ctx, ids) }, group[0].Tenant)
}

// try turns a panic into a failure of these documents.
func (r *dueRunner) try(ctx context.Context, do func(context.Context) error, tenant string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do(request.System(ctx, tenant))
}

func (r *dueRunner) postpone(ctx context.Context, ref docstore.Ref, err error) {
	r.failures.Inc()
	p, again := r.postponed[ref]
	if !again && len(r.postponed) == maxPostponed {
		return // it is tried again in the next run
	}
	p.pause = min(max(2*p.pause, firstRetry), lastRetry)
	p.until = r.store.Now().Add(p.pause)
	r.postponed[ref] = p
	if !again && apperr.KindOf(err) != apperr.Unavailable { // otherwise the task itself fails, and logs it
		r.log.ErrorContext(ctx, "a document that is due is postponed", "task", r.Name, "tenant", ref.Tenant, "id",
			ref.ID, "error", err)
	}
}
