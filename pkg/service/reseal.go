package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

// maxCounted bounds how many records under older keys are counted for the metric and the log.
const maxCounted = 10_000

// resealTask seals data keys and the secrets of records again under the first encryption key. It leaves out answers
// stored for an Idempotency-Key: they are deleted within a day.
func (d Deps) resealTask() Task {
	secrets := d.DueTask(DueWork{
		Name: "seal anew", Every: time.Minute, Due: docstore.UnderOlderKeys,
		Do: func(ctx context.Context, id string) error { return docstore.Reseal(ctx, d.Store, id) },
	})
	left := telemetry.Register(d.Metrics, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "idp_secrets_under_older_keys",
		Help: "Records whose secrets are not all sealed under the first encryption key yet, counted up to 10,000.",
	}))
	return Task{Name: secrets.Name, Every: secrets.Every, Do: func(ctx context.Context) (int, error) {
		if err := d.resealDataKeys(ctx); err != nil {
			return 0, err
		}
		n, failure := secrets.Do(ctx)
		refs, err := docstore.UnderOlderKeys(ctx, d.Store, maxCounted)
		if err == nil {
			left.Set(float64(len(refs)))
		}
		if n > 0 {
			d.Log.InfoContext(ctx, "secrets are sealed again under the first encryption key", "records", n, "left",
				len(refs))
		}
		return n, errors.Join(failure, err)
	}}
}

// Reseal seals all secrets in the store again under the first encryption key. When it returns nil, the other keys are
// no longer needed, unless a replica still seals under them. If it was interrupted, it continues when it is called
// again. Of Deps it uses Store, Keys, Log and Metrics.
func (d Deps) Reseal(ctx context.Context) error {
	task := d.resealTask()
	for n := 1; n > 0; {
		var err error
		if n, err = task.Do(ctx); err != nil {
			return err
		}
	}
	left, err := docstore.UnderOlderKeys(ctx, d.Store, maxCounted)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("secrets of %d record(s) are not sealed under the first encryption key: the log says why",
			len(left))
	}
	n, err := rest.ResealAnswers(ctx, d.Store, d.Keys)
	if err != nil {
		return err
	}
	d.Log.InfoContext(ctx, "everything is sealed under the first encryption key; the others can be removed", "answers",
		n)
	return nil
}
