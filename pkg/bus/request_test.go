package bus

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

func TestDelegate(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	_, err := b.Delegate(t.Context(), "acme", "reports", "7.1", []byte("work"))
	require.ErrorIs(t, err, ErrNoWorker)

	_, err = b.nats.Subscribe("idp.jobs.acme.reports", func(m *nats.Msg) {
		if err := m.Respond([]byte(m.Header.Get(nats.MsgIdHdr) + " " + string(m.Data))); err != nil {
			t.Error(err)
		}
	})
	require.NoError(t, err)
	reply, err := b.Delegate(t.Context(), "acme", "reports", "7.1", []byte("work"))
	require.NoError(t, err)
	require.Equal(t, "7.1 work", string(reply))
	_, err = b.Delegate(t.Context(), "globex", "reports", "7.1", nil)
	require.ErrorIs(t, err, ErrNoWorker, "another tenant's workers")

	_, err = b.nats.Subscribe("idp.jobs.acme.silent", func(*nats.Msg) {})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = b.Delegate(ctx, "acme", "silent", "7.1", nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
