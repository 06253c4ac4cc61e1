//go:build unix

package main

import (
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/deploy/standalone/internal/drive"
	"github.com/idplatform/idplatform/gateway"
)

// startForEvents starts a platform whose webhooks may reach the tests, and returns a client of the tenant acme.
func startForEvents(t *testing.T) (*platform, *drive.Client) {
	t.Helper()
	s := settingsForTest(t)
	s.env = map[string][]string{
		gateway.Events: {"IDP_OUTBOUND_ALLOW_PRIVATE=true", "IDP_WEBHOOK_TRIES=" + drive.Tries},
		"gateway":      {"IDP_MAX_PER_CALLER=1024"},
	}
	p, err := start(t.Context(), s, t.Output())
	require.NoError(t, err)
	t.Cleanup(p.stop)
	c := p.client(firstToken(t, p))
	c.Tenant = "acme"
	t.Cleanup(c.HTTP.CloseIdleConnections)
	return p, &c
}

// process returns the process of a service.
func (p *platform) named(name string) *process {
	all := slices.Concat(p.groups...)
	return all[slices.IndexFunc(all, func(one *process) bool { return one.name == name })]
}

// The events service alone is killed again and again while changes flow to 20 subscriptions, 5 of which fail half of
// the time. No change fails, each subscription gets every event, in the order of each record, and the audit log has
// every change once. IDP_CRASH_CHANGES makes it larger.
func TestKillNineOfTheEventsService(t *testing.T) {
	t.Parallel()
	const kills = 3
	changes := drive.Changes(t)
	p, c := startForEvents(t)
	hooks := drive.NewWebhooks(t)
	hooks.Subscribe(t, c, 15, 5)
	acknowledged := 0
	for round := range kills + 1 {
		kill := func() {
			require.NoError(t, syscall.Kill(int(p.named(gateway.Events).pid.Load()), syscall.SIGKILL))
		}
		if round == kills {
			kill = func() {}
		}
		acknowledged += c.ChangeUsers(fmt.Sprint("round", round), changes/(kills+1), kill)
		require.Eventually(t, func() bool {
			_, err := c.Do(http.MethodGet, "/v1/events?after=now", "")
			return err == nil
		}, time.Minute, 50*time.Millisecond, "it is started again")
	}
	told := c.Told(t)
	assert.Len(t, told, acknowledged)
	hooks.RequireAll(t, told, time.Minute)
	c.RequireAudited(t, told)
}
