package target

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/idplatform/idplatform/services/automation/internal/job"
)

// jobsPrefix is the subject space of the targets: idp.jobs.<tenant>.<subject>. So no job can publish an event, ask a
// service or reach another tenant's workers.
const jobsPrefix = "idp.jobs."

// acceptWithin is how long a worker has to reply.
const acceptWithin = 10 * time.Second

// NATS sends a run as a request to the target's subject. A worker replies to it: with nothing to accept it, or with
// {"state","result","error"} to end it. Without a worker, or without a reply in 10 s, the attempt fails.
func NATS(conn *nats.Conn) job.Runner { return natsTarget{conn} }

type natsTarget struct{ conn *nats.Conn }

// Run implements job.Runner.
func (n natsTarget) Run(ctx context.Context, c job.Call) (job.Outcome, error) {
	body, err := messageOf(c)
	if err != nil {
		return job.Outcome{}, err
	}
	timed, cancel := context.WithTimeout(ctx, acceptWithin)
	defer cancel()
	m := nats.NewMsg(jobsPrefix + c.Tenant + "." + c.Target.Subject)
	m.Data = body
	m.Header.Set(nats.MsgIdHdr, messageID(c))
	reply, err := n.conn.RequestMsgWithContext(timed, m)
	switch {
	case ctx.Err() != nil:
		return job.Outcome{}, ctx.Err()
	case errors.Is(err, nats.ErrNoResponders):
		return job.Outcome{}, errors.New("no worker listens to the subject")
	case errors.Is(err, context.DeadlineExceeded):
		return job.Outcome{}, errors.New("no worker replied in time")
	case err != nil:
		return job.Outcome{}, errors.New("NATS does not answer")
	case len(reply.Data) == 0:
		return job.Outcome{Accepted: true}, nil
	}
	var report job.Report
	err = json.Unmarshal(reply.Data, &report)
	if err != nil || report.State != "succeeded" && report.State != "failed" {
		return job.Outcome{}, errors.New("the worker's reply is not a result with the state succeeded or failed")
	}
	if report.State == "failed" {
		return job.Outcome{}, errors.New(report.Error)
	}
	return job.Outcome{Result: report.Result}, nil
}
