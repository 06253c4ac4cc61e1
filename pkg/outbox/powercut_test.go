package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/bus/embedded"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/replicas"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// platform is a store and an event store in one folder, as the standalone program has them.
type platform struct {
	dir    string
	nats   *embedded.Server
	bus    *bus.Bus
	events *stream.Log

	store *docstore.Store
	group *replicas.Group
	relay *Relay

	mu     sync.Mutex
	synced map[string]int64 // length of each message file before the last sync that has returned
	onSync func()
	seen   map[string]bool // keyed by consumer/record
}

func startOn(t *testing.T, dir string) *platform {
	t.Helper()
	p := &platform{dir: dir, seen: map[string]bool{}}
	var err error
	p.nats, err = embedded.Start(embedded.Config{StoreDir: filepath.Join(dir, "nats"), Log: quiet()})
	require.NoError(t, err)
	t.Cleanup(p.nats.Stop)
	p.bus, err = bus.Connect(t.Context(), bus.Config{InProcess: p.nats.Conn(), Name: "test", Log: quiet(),
		Sync: p.sync})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.bus.Close(context.Background())) })
	p.bus.EnsureStreams(t.Context())
	p.events, err = stream.New(stream.Config{Bus: p.bus, Log: quiet()})
	require.NoError(t, err)
	engine, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: filepath.Join(dir, "users.db"),
		Log: quiet()})
	require.NoError(t, err)
	p.store, err = docstore.Open(t.Context(), engine, clock.System, append(replicas.Collections(),
		stream.Collections()...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.store.Close()) })
	p.group = replicas.New(p.store, quiet(), true)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = p.group.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	p.consume(t, "users")
	p.relay, err = StartRelay(p.store, p.bus, quiet(), nil)
	require.NoError(t, err)
	return p
}

func (p *platform) consume(t *testing.T, name string) {
	handle := func(_ context.Context, e stream.Event) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.seen[name+"/"+e.Subject] = true
		return nil
	}
	_, err := p.events.Consume(t.Context(), stream.ConsumerConfig{Name: name, Types: stream.Types{"*"},
		Handle: handle}, p.store, p.group)
	require.NoError(t, err)
}

// sync calls the bus's Sync and notes what is on the disk afterwards.
func (p *platform) sync(ctx context.Context) error {
	p.mu.Lock()
	onSync := p.onSync
	p.mu.Unlock()
	if onSync != nil {
		onSync()
	}
	lengths := p.lengths()
	err := p.nats.Sync(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.synced = lengths
	}
	return err
}

func (p *platform) lengths() map[string]int64 {
	found := map[string]int64{}
	_ = filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".blk") {
			if info, err := d.Info(); err == nil {
				found[strings.TrimPrefix(path, p.dir)] = info.Size()
			}
		}
		return nil
	})
	return found
}

func (p *platform) hasSeen() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.seen)
}

// copyOf copies a folder in which consumers write their places, and message files only up to what was synced.
func copyOf(dir, left string, synced map[string]int64) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		name := strings.TrimPrefix(path, dir)
		if err != nil || d.IsDir() {
			return errors.Join(err, os.MkdirAll(left+name, 0o700))
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && strings.HasSuffix(name, ".blk") {
			content = content[:synced[name]]
		}
		return errors.Join(err, os.WriteFile(left+name, content, 0o600))
	})
}

// TestAfterAPowerCutEveryChangeHasItsEvent: the power fails just before the messages of the last second would have been
// synced. The disk then has every commit of the store, and of the messages only those of the last sync.
func TestAfterAPowerCutEveryChangeHasItsEvent(t *testing.T) {
	t.Parallel()
	p, left := startOn(t, t.TempDir()), t.TempDir()
	var writing sync.Mutex // held during the power failure: nothing is acknowledged then
	cut := make(chan struct{})
	var acknowledged []string
	syncs := 0
	var copyErr error
	var handled map[string]bool
	p.mu.Lock()
	p.onSync = func() { // called in the relay, which removes nothing meanwhile
		if syncs++; syncs != 3 {
			return
		}
		writing.Lock() // never released
		handled = p.hasSeen()
		p.mu.Lock()
		defer p.mu.Unlock()
		copyErr = copyOf(p.dir, left, p.synced)
		close(cut)
	}
	p.mu.Unlock()

	ctx := request.System(t.Context(), "acme")
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := 0; ; n++ {
			writing.Lock()
			id := fmt.Sprint(n)
			err := docstore.Do(ctx, p.store, func(tx *docstore.Tx) error {
				return Append(ctx, tx, Event{
					Entity: "user", Action: "created", Source: "/users", Subject: id, Revision: 1,
					Record: json.RawMessage("{}"),
				})
			})
			if err == nil {
				acknowledged = append(acknowledged, id)
			}
			writing.Unlock()
			select {
			case <-cut:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	})
	select {
	case <-cut:
	case <-time.After(patient):
		require.FailNow(t, "no third sync")
	}
	require.NoError(t, copyErr)

	after := startOn(t, left)
	stop(t, after.relay)
	after.consume(t, "newcomer")
	// A new consumer gets all events; an existing one gets those that it had not handled.
	wait.Until(t, func() bool {
		seen := after.hasSeen()
		return !slices.ContainsFunc(acknowledged, func(id string) bool {
			return !seen["newcomer/"+id] || !seen["users/"+id] && !handled["users/"+id]
		})
	})
	stream, err := after.bus.JetStream().Stream(t.Context(), bus.EventStream)
	require.NoError(t, err)
	require.EqualValues(t, len(acknowledged), stream.CachedInfo().State.Msgs, "each once")
	writing.Unlock()
	writer.Wait()
	stop(t, p.relay)
}
