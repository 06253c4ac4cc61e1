package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// A worker of jobs connects with the URL in the data folder, gets the work of its subject, and replies. It may do
// nothing else.
func TestWorkersOfJobs(t *testing.T) {
	t.Parallel()
	c := startPlatform(t, t.TempDir())
	info, err := os.Stat(filepath.Join(c.Dir, workersURL))
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	url, err := os.ReadFile(filepath.Join(c.Dir, workersURL))
	require.NoError(t, err)
	refused := make(chan error, 10)
	nc, err := nats.Connect(strings.TrimSpace(string(url)), nats.ErrorHandler(
		func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	require.NoError(t, err)
	defer nc.Close()
	work := make(chan *nats.Msg, 1)
	_, err = nc.ChanQueueSubscribe("idp.jobs.acme.reports", "workers", work)
	require.NoError(t, err)
	require.NoError(t, nc.Flush())

	client := c.client("acme")
	answer, err := client.Do(http.MethodPost, "/v1/jobs", `{"code":"report","name":"Report",
		"schedule":{"type":"manual"},"target":{"type":"nats","subject":"reports","payload":{"month":7}},"status":"1"}`)
	require.NoError(t, err)
	var made struct{ ID string }
	require.NoError(t, json.Unmarshal(answer, &made))
	job := "/v1/jobs/" + made.ID
	_, err = client.Do(http.MethodPost, job+"/trigger", `{}`)
	require.NoError(t, err)
	m := <-work
	assert.Contains(t, string(m.Data), `"month":7`)
	require.NoError(t, m.Respond([]byte(`{"state":"succeeded","result":{"pages":3}}`)))
	wait.Until(t, func() bool {
		answer, err := client.Do(http.MethodGet, job+"/sub-jobs", "")
		return err == nil && strings.Contains(string(answer), `"pages":3`)
	})

	for _, subject := range []string{"idp.events.>", "idp.check.>", "_IDP.>", "_INBOX.>", "idp.subscriptions.>"} {
		_, err = nc.SubscribeSync(subject)
		require.NoError(t, err)
		require.ErrorIs(t, <-refused, nats.ErrPermissionViolation, subject)
	}
	for _, subject := range []string{
		"idp.jobs.acme.reports", "idp.events.acme.user.created", "$JS.API.INFO", "idp.check.users.x", m.Reply,
	} {
		require.NoError(t, nc.PublishRequest(subject, "idp.jobs.acme.reports", nil))
		require.ErrorIs(t, <-refused, nats.ErrPermissionViolation, subject)
	}
	c.stop()
}
