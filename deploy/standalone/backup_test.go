package main

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/rounds"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// backedUp makes a backup of a running platform with a user.
func backedUp(t *testing.T, env ...string) (c *child, dir string) {
	t.Helper()
	c = startPlatform(t, t.TempDir(), env...)
	newUser(t, c, "li.wei")
	dir = filepath.Join(t.TempDir(), "backup")
	_, notes, code := runs(t, append(env, "IDP_DATA_DIR="+c.Dir), "backup", dir)
	require.Zero(t, code, notes)
	return c, dir
}

// begin starts a sub-command that is killed later.
func begin(t *testing.T, data string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "IDP_TEST_CHILD=platform", "IDP_DATA_DIR="+data)
	require.NoError(t, cmd.Start())
	return cmd
}

func TestBackupRefuses(t *testing.T) {
	t.Parallel()
	c, dir := backedUp(t)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(c.Dir, link))
	before := contents(t, dir)
	for target, want := range map[string]string{
		dir:                                  "exists already: a backup overwrites nothing",
		filepath.Join(c.Dir, "backup"):       "is in the data folder",
		filepath.Join(link, "nats", "b"):     "is in the data folder",
		filepath.Join(t.TempDir(), "a", "b"): "no such file or directory",
	} {
		_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + c.Dir}, "backup", target)
		assert.Equal(t, 1, code, target)
		assert.Contains(t, notes, want)
	}
	assert.Equal(t, before, contents(t, dir))
	_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + t.TempDir()}, "backup", filepath.Join(t.TempDir(), "b"))
	assert.Equal(t, 1, code)
	assert.Contains(t, notes, "there is nothing to copy")
	c.stop()
	assert.NoFileExists(t, filepath.Join(c.Dir, controlFile))
}

// A disk that gets full while a backup is written ends it without a trace; the platform goes on.
func TestBackupOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := filepath.Join(t.TempDir(), "disk")
	smallDisk(t, disk, "1m")
	c := startPlatform(t, t.TempDir()) // its stores are in their logs, which do not count as their sizes
	target := filepath.Join(disk, "backup")
	_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + c.Dir}, "backup", target)
	assert.Equal(t, 1, code)
	assert.Contains(t, notes, "no space left on device")
	assert.NoDirExists(t, target)
	newUser(t, c, "li.wei")
	c.stop()

	_, notes, code = runs(t, []string{"IDP_DATA_DIR=" + c.Dir}, "backup", target)
	assert.Equal(t, 1, code)
	assert.Contains(t, notes, "MB left, and the stores alone have")
	assert.NoDirExists(t, target)
}

// A stopped platform, and one that was killed, are backed up as well.
func TestBackupOfAStoppedPlatform(t *testing.T) {
	t.Parallel()
	c := startPlatform(t, t.TempDir())
	id := newUser(t, c, "li.wei")
	end := c.stop
	for range 2 {
		end()
		dir, restored := filepath.Join(t.TempDir(), "backup"), t.TempDir()
		_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + c.Dir}, "backup", dir)
		require.Zero(t, code, notes)
		_, notes, code = runs(t, []string{"IDP_DATA_DIR=" + restored}, "restore", dir)
		require.Zero(t, code, notes)
		out, code := checks(t, restored)
		require.Zero(t, code, out)
		again := startPlatform(t, restored)
		var users page
		fetch(t, again, again.token("--tenant", "acme"), "/v1/users", &users)
		require.Len(t, users.Items, 1)
		require.Greater(t, newUser(t, again, "wang.fang"), id+1<<43)
		again.stop()
		c = startPlatform(t, c.Dir) // the backup has left the platform as it was
		end = c.kill
	}
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	c, whole := backedUp(t)
	c.stop()
	change := func(name string, how func([]byte) []byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { damage(t, dir, name, how) }
	}
	edited := func(member string, value any) func(t *testing.T, dir string) {
		return change(manifestFile, func(text []byte) []byte {
			var m map[string]any
			require.NoError(t, json.Unmarshal(text, &m))
			m[member] = value
			text, err := json.Marshal(m)
			require.NoError(t, err)
			return text
		})
	}
	for name, c := range map[string]struct {
		do   func(t *testing.T, dir string)
		want string
	}{
		"an interrupted backup": {
			func(t *testing.T, dir string) { remove(t, dir, manifestFile) }, "the backup was interrupted",
		},
		"half a manifest": {change(manifestFile, func(b []byte) []byte { return b[:len(b)/2] }), "is damaged"},
		"a store":         {change("users.db", flipped(5000)), "users.db is damaged"},
		"the events":      {change("IDP_EVENTS.stream", flipped(50)), "IDP_EVENTS.stream is damaged"},
		"a store gone":    {func(t *testing.T, dir string) { remove(t, dir, "users.db") }, "users.db: no such file"},
		"a newer format":  {edited("format", 99), "was written by a newer program (format 99"},
		"a newer layout":  {edited("layout", 99), "was written by a newer program"},
		"a file elsewhere": {
			edited("files", []map[string]any{{"name": "../users.db", "size": 1}}), "a backup has no file",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, to := copyFolder(t, whole), filepath.Join(t.TempDir(), "data")
			c.do(t, dir)
			_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + to}, "restore", dir)
			assert.Equal(t, 1, code)
			assert.Contains(t, notes, c.want)
			entries, _ := os.ReadDir(to)
			for _, e := range entries {
				assert.Equal(t, "LOCK", e.Name(), "nothing is restored")
			}
		})
	}
	before := contents(t, c.Dir)
	_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + c.Dir}, "restore", whole)
	assert.Equal(t, 1, code)
	assert.Contains(t, notes, "is not empty")
	assert.Equal(t, before, contents(t, c.Dir))
}

// Keys that are configured are not in the backup, and a restore needs the same.
func TestBackupWithoutKeys(t *testing.T) {
	t.Parallel()
	const key = "IDP_ENCRYPTION_KEYS=k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	const other = "IDP_ENCRYPTION_KEYS=k1:AQECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	c, dir := backedUp(t, key)
	c.stop()
	to := "IDP_DATA_DIR=" + t.TempDir()
	_, notes, code := runs(t, []string{to}, "restore", dir)
	assert.Equal(t, 1, code)
	assert.Contains(t, notes, "the encryption keys are not in this backup: set IDP_ENCRYPTION_KEYS")
	_, notes, code = runs(t, []string{to, other}, "restore", dir)
	assert.Equal(t, 1, code)
	assert.Contains(t, notes, "do not open the secrets in this backup")
	_, notes, code = runs(t, []string{to, key}, "restore", dir)
	assert.Zero(t, code, notes)
	for name, text := range contents(t, dir) {
		assert.NotContains(t, text, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", name)
	}
}

// Only the owner can read a backup.
func TestBackupIsTheOwners(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no such permissions")
	}
	c, dir := backedUp(t)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	for name := range contents(t, dir) {
		info, err := os.Stat(name)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
	info, err = os.Stat(filepath.Join(c.Dir, controlFile))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	c.stop()
}

// Whenever a backup is killed, its folder is removed, or is none that a restore accepts, or is complete.
func TestKilledBackups(t *testing.T) {
	t.Parallel()
	c := startPlatform(t, t.TempDir())
	importUsers(t, c, c.token("--tenant", "acme"), people(0, 5000))
	random := rand.New(rand.NewPCG(3, 4))
	for try := range rounds.Of(1, 6) {
		dir := filepath.Join(t.TempDir(), "backup")
		asker := begin(t, c.Dir, "backup", dir)
		time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond) // the moment of the kill
		if whole := try%2 == 0; whole {
			require.NoError(t, asker.Process.Kill())
			_ = asker.Wait()
			wait.Until(t, func() bool { // the platform notices, and removes what it has written
				return !exists(dir) || exists(filepath.Join(dir, manifestFile))
			})
		} else {
			c.kill()
			_ = asker.Wait()
			c = startPlatform(t, c.Dir)
		}
		_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + t.TempDir()}, "restore", dir)
		if code != 0 {
			assert.True(t, strings.Contains(notes, "the backup was interrupted") || !exists(dir), notes)
		}
	}
	c.stop()
}

// Whenever a restore is killed, the folder has nothing that a start accepts, or the whole.
func TestKilledRestores(t *testing.T) {
	t.Parallel()
	c := startPlatform(t, t.TempDir())
	importUsers(t, c, c.token("--tenant", "acme"), people(0, 2000))
	dir := filepath.Join(t.TempDir(), "backup")
	_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + c.Dir}, "backup", dir)
	require.Zero(t, code, notes)
	c.stop()
	random := rand.New(rand.NewPCG(5, 6))
	for range rounds.Of(1, 6) {
		to := t.TempDir()
		killed := begin(t, to, "restore", dir)
		time.Sleep(time.Duration(random.IntN(600)) * time.Millisecond) // the moment of the kill
		require.NoError(t, killed.Process.Kill())
		_ = killed.Wait()
		if !exists(filepath.Join(to, "VERSION")) && !exists(filepath.Join(to, restored)) {
			if exists(filepath.Join(to, restoring)) {
				_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + to}, "serve")
				require.Equal(t, 1, code)
				require.Contains(t, notes, "a restore was interrupted: run it again")
			}
			_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + to}, "restore", dir)
			require.Zero(t, code, notes)
		}
		requireUsers(t, to, 2000)
	}
}

// A restore that was killed while it moved its files into the data folder is completed by the next start.
func TestRestoreIsCompletedByTheNextStart(t *testing.T) {
	t.Parallel()
	c, dir := backedUp(t)
	c.stop()
	to := t.TempDir()
	_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + to}, "restore", dir)
	require.Zero(t, code, notes)
	require.NoError(t, os.Mkdir(filepath.Join(to, restored), 0o700))
	for _, name := range []string{"users.db", "nats", "VERSION"} {
		require.NoError(t, os.Rename(filepath.Join(to, name), filepath.Join(to, restored, name)))
	}
	_, notes, code = runs(t, []string{"IDP_DATA_DIR=" + to}, "check")
	assert.Equal(t, 1, code)
	assert.Contains(t, notes, "the next start completes it")
	requireUsers(t, to, 1)
}

// requireUsers starts the platform on a folder and counts its users.
func requireUsers(t *testing.T, dir string, n int) {
	t.Helper()
	c := startPlatform(t, dir)
	var users page
	fetch(t, c, c.token("--tenant", "acme"), "/v1/users", &users)
	require.Equal(t, n, users.Total)
	_, err := create(http.DefaultClient, c.Addr, c.token("--tenant", "acme"), "one.more")
	require.NoError(t, err)
	c.stop()
	out, code := checks(t, dir)
	require.Zero(t, code, out)
}
