package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// WorkPrefix is the subject space of work for programs outside the platform: idp.jobs.<tenant>.<subject>. Its subjects
// can be neither events nor questions.
const WorkPrefix = "idp.jobs."

// ErrNoWorker means that nobody listens to a subject.
var ErrNoWorker = errors.New("no worker listens to the subject")

// Delegate sends work to one of a tenant's workers that listen to a subject, and returns its reply. id identifies the
// work, so that a worker can tell that it gets it twice. The error is ErrNoWorker, the context's, or about NATS.
func (b *Bus) Delegate(ctx context.Context, tenant, subject, id string, work []byte) (reply []byte, err error) {
	m := nats.NewMsg(WorkPrefix + tenant + "." + subject)
	m.Data = work
	m.Header.Set(nats.MsgIdHdr, id)
	answer, err := b.nats.RequestMsgWithContext(ctx, m)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, ErrNoWorker
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("NATS does not answer: %w", err)
	}
	return answer.Data, nil
}
