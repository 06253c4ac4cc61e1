package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const mostBytes = 25 << 20 // of the program

// build makes the program as make build does.
func build(tb testing.TB) (file string, size int64) {
	tb.Helper()
	file = filepath.Join(tb.TempDir(), "idp")
	command := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, ".")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := command.CombinedOutput()
	require.NoError(tb, err, string(out))
	info, err := os.Stat(file)
	require.NoError(tb, err)
	return file, info.Size()
}

func TestSize(t *testing.T) {
	t.Parallel()
	_, size := build(t)
	assert.LessOrEqual(t, size, int64(mostBytes))
}

// BenchmarkStart measures how long the program takes to its first output. The aim is 50 ms.
func BenchmarkStart(b *testing.B) {
	file, size := build(b)
	for name, args := range map[string][]string{
		"version": {"--version"}, "help": {"users", "list", "--help"}, "api": {"api", "list-users", "--help"},
		"completion": {"__complete", "api", "list-u"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, exec.Command(file, args...).Run())
			}
			b.ReportMetric(float64(size)/1e6, "MB")
		})
	}
}
