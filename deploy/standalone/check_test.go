package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/rounds"
)

const eventFiles = "nats/jetstream/$G/streams/IDP_EVENTS/"

// checks runs check on a folder. It must change nothing.
func checks(t *testing.T, dir string, env ...string) (out string, code int) {
	t.Helper()
	before := contents(t, dir)
	out, notes, code := runs(t, append(env, "IDP_DATA_DIR="+dir), "check")
	assert.Equal(t, before, contents(t, dir), "check must not change the folder")
	assert.NotContains(t, out+notes, "goroutine ")
	return out + notes, code
}

func damage(t *testing.T, dir, name string, change func([]byte) []byte) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, change(text), 0o600))
}

func flipped(at int) func([]byte) []byte {
	return func(text []byte) []byte { text[at] ^= 0x20; return text }
}

func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	dir, _ := used(t)
	out, code := checks(t, dir)
	require.Zero(t, code, out)
	require.Contains(t, out, "2 events")
	blocks, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(eventFiles), "msgs", "*.blk"))
	require.NoError(t, err)
	require.Len(t, blocks, 1)
	block := "msgs/" + filepath.Base(blocks[0])
	half := func(text []byte) []byte { return text[:len(text)/2] }
	none := func([]byte) []byte { return nil }
	for name, c := range map[string]struct {
		file   string
		change func([]byte) []byte // nil: the file is removed
		want   string
	}{
		"an event":      {eventFiles + block, flipped(100), "IDP_EVENTS/" + block + ": at byte 30 of"},
		"half an event": {eventFiles + block, half, "IDP_EVENTS/" + block + ": at byte 30 of"},
		"no events": {
			eventFiles + block, nil, "IDP_EVENTS/msgs: the last event is 0, but there have been ",
		},
		"the events' index": {
			eventFiles + "msgs/index.db", flipped(9), "IDP_EVENTS/msgs/index.db: the checksum is wrong",
		},
		"a consumer": {
			eventFiles + "obs/organization-users/o.dat", half, "organization-users/o.dat: it is cut off",
		},
		"a store":              {"users.db", half, "users.db"},
		"a store's header":     {"users.db", flipped(3), "users.db"},
		"a store's first page": {"users.db", flipped(103), "users.db"},
		"an empty store": {
			"users.db", none, "users.db is empty: the next start refuses it without --accept-loss users",
		},
		"a store gone":     {"organization.db", nil, "organization.db is missing: the next start refuses it"},
		"a key gone":       {"encryption.key", nil, "encryption.key is missing"},
		"a key":            {"encryption.key", none, "keys"},
		"the stores":       {"stores.json", half, "stores.json is damaged"},
		"the version":      {"VERSION", none, "VERSION is not a number"},
		"the version gone": {"VERSION", nil, "VERSION is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := copyFolder(t, dir)
			if c.change == nil {
				remove(t, dir, c.file)
			} else {
				damage(t, dir, c.file, c.change)
			}
			out, code := checks(t, dir)
			assert.Equal(t, 1, code)
			assert.Contains(t, out, c.want)
			assert.NotContains(t, out, "idp-check-", "a fault names the store's file, not the copy")
		})
	}
}

// The log file of a platform that was killed is part of the store and must remain.
func TestCheckAfterAKill(t *testing.T) {
	t.Parallel()
	c := startPlatform(t, t.TempDir())
	newUser(t, c, "li.wei")
	c.kill()
	out, code := checks(t, c.Dir)
	assert.Zero(t, code, out)
	remove(t, c.Dir, "users.db-wal", "users.db-shm")
	out, code = checks(t, c.Dir)
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "--accept-loss users")
}

// Before the first start there is nothing, and check creates nothing.
func TestCheckOfNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, code := checks(t, dir, "IDP_TRACING_ENDPOINT=http://li:hush@collector:4318?api-key=hush",
		"IDP_AUTH_OIDC=issuer=https://i;jwks=https://li:hush@i/keys;tenant=a;audience=a;scopes=users:read")
	assert.Zero(t, code, out)
	assert.NotContains(t, out, "hush")
	assert.Contains(t, out, "http://******@collector:4318?api-key=******")
	_, err := os.Stat(filepath.Join(dir, "VERSION"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// Whichever bytes of a store are damaged, check ends and changes nothing. It cannot find all damage, because SQLite
// has no checksums.
func TestCheckRandomDamage(t *testing.T) {
	t.Parallel()
	dir, _ := used(t)
	random := rand.New(rand.NewPCG(1, 2))
	kinds := []int{0, 1, 5, 14, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 15}
	for _, try := range kinds[:rounds.Of(4, 16)] {
		t.Run(fmt.Sprint(try), func(t *testing.T) {
			dir, name := copyFolder(t, dir), []string{"users.db", "organization.db"}[try%2]
			damage(t, dir, name, func(text []byte) []byte {
				if try%8 == 0 {
					return text[:random.IntN(len(text))]
				}
				for range 1 + 40*(try/4) {
					text[random.IntN(len(text))] ^= 1 << random.IntN(8)
				}
				return text
			})
			out, code := checks(t, dir)
			assert.Contains(t, []int{0, 1}, code)
			if try%8 == 0 || code == 1 {
				assert.Equal(t, 1, code)
				assert.Contains(t, out, "store of "+strings.TrimSuffix(name, ".db"))
			}
		})
	}
}
