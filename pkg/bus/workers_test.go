package bus

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// workerUser is what deploy/nats/README.md has for the workers of a tenant's jobs.
const workerUser = `{
  user: acme-worker, password: $NATS_WORKER_PASSWORD
  permissions: { subscribe: "idp.jobs.acme.>", allow_responses: { max: 1, expires: "10s" } }
}`

// A worker's user gets the work of its tenant and replies to it. It hears nothing else, and publishes nothing else.
func TestWorkers(t *testing.T) {
	readme, err := os.ReadFile("../../deploy/nats/README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), workerUser)
	conf, err := os.ReadFile("../../deploy/nats/nats.conf")
	require.NoError(t, err)
	const users = "users: [ { user: services, password: $NATS_PASSWORD } ]"
	require.Contains(t, string(conf), users)
	file := filepath.Join(t.TempDir(), "nats.conf")
	with := strings.Replace(string(conf), users, strings.TrimSuffix(users, " ]")+", "+workerUser+" ]", 1)
	require.NoError(t, os.WriteFile(file, []byte(with), 0o600))
	setNATSEnvironment(t)
	t.Setenv("NATS_WORKER_PASSWORD", "worker")
	options := &server.Options{}
	require.NoError(t, options.ProcessConfigFile(file))
	url := runNATS(t, options, t.TempDir())
	b, err := Connect(t.Context(), Config{URL: url, User: "services", Password: "services", Name: t.Name(),
		Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patient)
		defer cancel()
		require.NoError(t, b.Close(ctx))
	})

	refused := make(chan error, 16)
	worker, err := nats.Connect(url, nats.UserInfo("acme-worker", "worker"),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	require.NoError(t, err)
	t.Cleanup(worker.Close)
	_, err = worker.QueueSubscribe("idp.jobs.acme.reports", "workers", func(m *nats.Msg) {
		for range 2 { // the second is one too many
			if err := m.Respond([]byte("done " + string(m.Data))); err != nil {
				t.Error(err)
			}
		}
	})
	require.NoError(t, err)
	require.NoError(t, worker.Flush())
	reply, err := b.Delegate(t.Context(), "acme", "reports", "1", []byte("it"))
	require.NoError(t, err)
	require.Equal(t, "done it", string(reply))
	require.ErrorIs(t, <-refused, nats.ErrPermissionViolation)
	_, err = b.Delegate(t.Context(), "globex", "reports", "1", nil)
	require.ErrorIs(t, err, ErrNoWorker)

	for _, subject := range []string{
		"idp.jobs.globex.>", "idp.jobs.>", "idp.events.>", "idp.check.>", "_INBOX.>", ">",
	} {
		_, err := worker.SubscribeSync(subject)
		require.NoError(t, err)
		require.NoError(t, worker.FlushTimeout(10*time.Second))
		require.ErrorIs(t, <-refused, nats.ErrPermissionViolation, subject)
	}
	for _, subject := range []string{
		"idp.jobs.acme.reports", "idp.events.acme.user.created", "idp.check.users.existing", "$JS.API.INFO",
	} {
		require.NoError(t, worker.Publish(subject, nil))
		require.NoError(t, worker.FlushTimeout(10*time.Second))
		require.ErrorIs(t, <-refused, nats.ErrPermissionViolation, subject)
	}
}
