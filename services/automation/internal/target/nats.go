package target

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/services/automation/internal/job"
)

// replyWithin is how long a worker has to reply.
const replyWithin = 10 * time.Second

// NATS sends runs to a worker of the tenant that listens to the target's subject (bus.Delegate). An empty reply accepts
// the run, and a job.Report ends it. Without a worker, or without a reply within 10 s, the attempt fails.
func NATS(b *bus.Bus) job.Runner { return natsTarget{b} }

type natsTarget struct{ bus *bus.Bus }

// Run implements job.Runner.
func (n natsTarget) Run(ctx context.Context, c job.Call) (job.Outcome, error) {
	body, err := messageOf(c)
	if err != nil {
		return job.Outcome{}, err
	}
	timed, cancel := context.WithTimeout(ctx, replyWithin)
	defer cancel()
	reply, err := n.bus.Delegate(timed, c.Tenant, c.Target.Subject, messageID(c), body)
	switch {
	case ctx.Err() != nil:
		return job.Outcome{}, ctx.Err()
	case errors.Is(err, bus.ErrNoWorker):
		return job.Outcome{}, err
	case timed.Err() != nil:
		return job.Outcome{}, errors.New("no worker replied within 10 s")
	case err != nil:
		return job.Outcome{}, errors.New("NATS is not available")
	case len(reply) == 0:
		return job.Outcome{Accepted: true}, nil
	}
	var report job.Report
	err = json.Unmarshal(reply, &report)
	if err != nil || report.State != "succeeded" && report.State != "failed" {
		return job.Outcome{}, errors.New("the worker's reply is not a JSON object with the state succeeded or failed")
	}
	if report.State == "failed" {
		return job.Outcome{}, errors.New(report.Error)
	}
	return job.Outcome{Result: report.Result}, nil
}
