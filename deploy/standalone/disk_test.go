package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// smallDisk mounts a file system of this size at dir.
func smallDisk(t *testing.T, dir, size string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", "mode=700,size="+size, "tmpfs", dir).CombinedOutput()
	if err != nil {
		t.Skipf("a tmpfs cannot be mounted here: %v %s", err, out)
	}
	t.Cleanup(func() {
		out, err := exec.Command("umount", "--lazy", dir).CombinedOutput()
		require.NoError(t, err, "%s", out)
	})
}

// fill leaves only some bytes of dir's file system free, until free is called.
func fill(t *testing.T, dir string, left int64) (free func()) {
	t.Helper()
	name := filepath.Join(dir, "filler")
	file, err := os.Create(name)
	require.NoError(t, err)
	for _, size := range []int{1 << 20, 4096, 1} {
		for block := make([]byte, size); !errors.Is(err, syscall.ENOSPC); {
			_, err = file.Write(block)
		}
		err = nil
	}
	size, err := file.Seek(0, io.SeekCurrent)
	require.NoError(t, err)
	require.NoError(t, file.Truncate(size-left))
	require.NoError(t, file.Close())
	return func() { require.NoError(t, os.Remove(name)) }
}

// writeUntilReported writes until a write is refused, or readyz reports the full disk.
func writeUntilReported(t *testing.T, write func() (string, error), ready func() bool, refuses bool) {
	t.Helper()
	refused := false
	for begin := time.Now(); !refused && (refuses || ready()); {
		require.Less(t, time.Since(begin), wait.Long, "neither a refused write nor readyz reports the full disk")
		if _, err := write(); err != nil {
			require.True(t, refuses, "%v", err)
			require.True(t, strings.HasPrefix(err.Error(), "503:"), "%v", err)
			refused = true
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// writeUntilReady writes until a write succeeds and readyz reports that the platform is ready.
func writeUntilReady(t *testing.T, write func() (string, error), ready func() bool) {
	t.Helper()
	for freed := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		_, err := write()
		if err == nil && ready() {
			return
		}
		require.Less(t, time.Since(freed), wait.Long, "%v", err)
	}
}

// TestFullDisk: while the disk is full, either writes are refused, or they are acknowledged and readyz reports that
// their events are not sent. Once there is space again, the platform recovers by itself within 30 s, and every
// acknowledged change has its event.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		full    string // the folder on the full disk, inside the data folder
		left    int64  // the bytes that are left free
		refuses bool   // whether writes are refused, sooner or later
	}{
		"of events":            {"nats", 0, false},
		"of everything":        {"", 0, true},
		"of nearly everything": {"", 100 << 10, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			disk := filepath.Join(dir, x.full)
			smallDisk(t, disk, "64m")
			c := startPlatform(t, dir, "IDP_EVENTS_STUCK_AFTER=2s")
			token := c.token("--tenant", "acme")
			acknowledged := map[string]string{} // id → name
			n := 0
			write := func() (id string, err error) {
				n++
				name := fmt.Sprintf("user.%d", n)
				if id, err = create(http.DefaultClient, c.Addr, token, name); err == nil {
					acknowledged[id] = name
				}
				return id, err
			}
			for range 20 {
				_, err := write()
				require.NoError(t, err)
			}

			free := fill(t, disk, x.left)
			writeUntilReported(t, write, c.ready, x.refuses)
			free()
			freed := time.Now()
			writeUntilReady(t, write, c.ready)
			t.Logf("ready %v after space was freed", time.Since(freed).Round(time.Millisecond))
			last, err := write()
			require.NoError(t, err)
			seen := map[string]bool{}
			eachEventUntil(t, c, func(_, id string) bool { seen[id] = true; return id == last })
			for id, name := range acknowledged {
				assert.True(t, seen[id], "%s has no event", name)
			}
			c.stop()
		})
	}
}
