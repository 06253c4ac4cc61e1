package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestComposeFile checks docker-compose.yml with docker compose, if that is installed.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("docker", "compose", "version").CombinedOutput(); err != nil {
		t.Skipf("docker compose is not installed: %v %s", err, out)
	}
	cmd := exec.Command("docker", "compose", "-f", "../../docker-compose.yml",
		"--env-file", "../docker/example.env", "config", "--quiet")
	cmd.Env = os.Environ()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
