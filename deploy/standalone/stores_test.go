package main

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// used makes a folder that the platform has run on, and returns the id of a user in it.
func used(t *testing.T) (dir string, id int64) {
	t.Helper()
	c := startPlatform(t, t.TempDir())
	id = newUser(t, c, "li.wei")
	c.stop()
	return c.Dir, id
}

func newUser(t *testing.T, c *child, name string) int64 {
	t.Helper()
	text, err := create(http.DefaultClient, c.Addr, c.token("--tenant", "acme"), name)
	require.NoError(t, err)
	id, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return id
}

func copyFolder(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	require.NoError(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

// contents returns the content of each file of a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			var text []byte
			text, err = os.ReadFile(path)
			files[path] = string(text)
		}
		return err
	}))
	return files
}

func remove(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
	}
}

// A store that has disappeared is not created again unless the user asks for it; then no id is given out twice.
func TestLostStores(t *testing.T) {
	t.Parallel()
	dir, id := used(t)
	for name, c := range map[string]struct {
		store, file string
		lose        func(t *testing.T, dir string)
	}{
		"users gone": {"users", "users.db is missing", func(t *testing.T, dir string) { remove(t, dir, "users.db") }},
		"users empty": {"users", "users.db is empty", func(t *testing.T, dir string) {
			require.NoError(t, os.Truncate(filepath.Join(dir, "users.db"), 0))
		}},
		"users of one page": {"users", "users.db is empty", func(t *testing.T, dir string) {
			made := filepath.Join(t.TempDir(), "other")
			c := startPlatform(t, made)
			c.kill() // everything but the first page is in the log
			text, err := os.ReadFile(filepath.Join(made, "users.db"))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "users.db"), text, 0o600))
		}},
		"organization gone": {"organization", "organization.db is missing", func(t *testing.T, dir string) {
			remove(t, dir, "organization.db")
		}},
		"events gone": {"nats", "IDP_EVENTS is missing", func(t *testing.T, dir string) { remove(t, dir, "nats") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := copyFolder(t, dir)
			c.lose(t, dir)
			before := contents(t, dir)
			_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + dir}, "serve")
			assert.Equal(t, 1, code)
			assert.Contains(t, notes, c.file)
			assert.Contains(t, notes, "--accept-loss "+c.store)
			assert.Equal(t, before, contents(t, dir), "a refused folder must not be changed")

			again := startPlatform(t, dir, "IDP_ACCEPT_LOSS="+c.store)
			if next := newUser(t, again, "wang.fang"); c.store == "users" {
				assert.Greater(t, next, id+1<<43)
			}
			again.kill()
			again = startPlatform(t, dir) // the loss need not be accepted again
			again.stop()
		})
	}
}

// SQLite's log holds changes that are not in the file yet. Without the log, the file is an older state of the store.
func TestLostLog(t *testing.T) {
	t.Parallel()
	c := startPlatform(t, t.TempDir())
	id := newUser(t, c, "li.wei")
	c.kill()
	startPlatform(t, c.Dir).kill() // with its log the store starts again
	remove(t, c.Dir, "users.db-wal", "users.db-shm")
	_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + c.Dir}, "serve")
	assert.Equal(t, 1, code)
	assert.Regexp(t, "users.db (is empty|has lost its log).*--accept-loss users", notes)
	again := startPlatform(t, c.Dir, "IDP_ACCEPT_LOSS=users,nats")
	assert.Greater(t, newUser(t, again, "wang.fang"), id+1<<43)
}

// The store of a service that is new to the folder is created without being asked for. So are the stores of a folder
// whose first start was interrupted.
func TestNewStores(t *testing.T) {
	t.Parallel()
	dir, _ := used(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, storesFile), []byte(`{"stores":{"nats":{},"users":{}}}`), 0o600))
	remove(t, dir, "organization.db")
	startPlatform(t, dir).stop()

	remove(t, dir, storesFile)
	startPlatform(t, dir).stop()
	assert.FileExists(t, filepath.Join(dir, storesFile))

	remove(t, dir, storesFile, "users.db", "organization.db", "nats/jetstream/$G/streams/IDP_EVENTS/obs")
	startPlatform(t, dir).stop()

	require.NoError(t, os.WriteFile(filepath.Join(dir, storesFile), []byte(`{`), 0o600))
	_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + dir}, "serve")
	assert.Equal(t, 1, code)
	assert.Contains(t, notes, "stores.json is damaged")
	_, notes, code = runs(t, []string{"IDP_DATA_DIR=" + dir, "IDP_ACCEPT_LOSS=people"}, "serve")
	assert.Equal(t, 1, code)
	assert.Contains(t, notes, "stores.json is damaged")
}

// No other user can read the folder, whichever library wrote a file and whatever permissions the folder had before.
func TestRightsOfTheFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	others := filepath.Join(dir, "notes.txt")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(others, nil, 0o600))
	require.NoError(t, os.Chmod(others, 0o644))
	c := startPlatform(t, dir)
	newUser(t, c, "li.wei")
	private := func() (wide []string) {
		require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			var info fs.FileInfo
			if err == nil {
				info, err = entry.Info()
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil // JetStream renames its temporary files while it runs
			}
			require.NoError(t, err)
			if wanted := fs.FileMode(0o600); path != others && !entry.IsDir() {
				require.Equal(t, wanted, info.Mode().Perm(), path)
			} else if entry.IsDir() && info.Mode().Perm() != 0o700 {
				wide = append(wide, path)
			}
			return nil
		}))
		return wide
	}
	assert.Empty(t, private(), "while the platform runs")
	c.kill()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		if entry.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return os.Chmod(path, 0o644)
	}))
	c = startPlatform(t, dir)
	assert.Empty(t, private(), "after the permissions were changed")
	info, err := os.Stat(others)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o644), info.Mode().Perm(), "files that are not the platform's stay as they are")
	log, err := os.ReadFile(c.logs)
	require.NoError(t, err)
	assert.Contains(t, string(log), "other users had access to the data folder")
}
