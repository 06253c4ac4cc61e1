package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNATSConfiguration: the file for NATS in production is one that NATS takes, and gives subscribers no more than the embedded server does.
func TestNATSConfiguration(t *testing.T) {
	t.Setenv("NATS_PASSWORD", "one")
	t.Setenv("NATS_EVENTS_PASSWORD", "two")
	options, err := server.ProcessConfigFile("../nats/nats.conf")
	require.NoError(t, err)
	assert.True(t, options.JetStream)
	assert.Greater(t, options.MaxPayload, int32(4<<20))
	require.Len(t, options.Users, 2)
	assert.Nil(t, options.Users[0].Permissions)
	assert.Equal(t, []string{"idp.events.>", "_INBOX.>"}, options.Users[1].Permissions.Subscribe.Allow)
	for _, subject := range options.Users[1].Permissions.Publish.Allow {
		assert.Regexp(t, `^\$JS\.(ACK|API\.(INFO|STREAM\.(NAMES|INFO\.IDP_EVENTS)|CONSUMER\.[A-Z.]+))(\.IDP_EVENTS\.events(\.>)?)?$`, subject)
	}
}

// TestComposeFile: docker compose, where it is installed, understands the file.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("docker", "compose", "version").CombinedOutput(); err != nil {
		t.Skipf("docker compose is not here: %v %s", err, out)
	}
	cmd := exec.Command("docker", "compose", "-f", "../../docker-compose.yml", "--env-file", "../docker/example.env", "config", "--quiet")
	cmd.Env = os.Environ()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
