package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// synced is the state that is known to be on the disk.
type synced struct {
	mu    sync.Mutex
	began time.Time              // start of the last sync
	known map[string]os.FileInfo // files and folders, by path, as they were when they were synced
	// err is the error of a failed sync. It stays, because the operating system may have dropped what it could not
	// write, and reports that only once.
	err error
}

// Sync forces to the disk what JetStream acknowledged before the call. It checks all message files and syncs those that
// have changed since the last call. An error is returned to all later calls until the server has been restarted, which
// then happens by itself.
func (s *Server) Sync(ctx context.Context) error {
	asked := time.Now()
	s.synced.mu.Lock()
	defer s.synced.mu.Unlock()
	// Otherwise another call has synced everything since this one was made, while it waited for the lock.
	if s.synced.err == nil && !s.synced.began.After(asked) {
		began := time.Now()
		err := s.synced.walk(ctx, s.config.StoreDir, isMessages)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.synced.began, s.synced.err = began, err
	}
	if s.synced.err != nil {
		return fmt.Errorf("embedded NATS: sync: %w", s.synced.err)
	}
	return nil
}

// isMessages recognizes the files that streams are opened from. An index is made again when it is missing, and the
// progress of consumers may be lost: they then get events once more.
func isMessages(name string) bool {
	return strings.HasSuffix(name, ".blk") || name == server.JetStreamMetaFile || name == server.JetStreamMetaFileSum
}

// syncConsumers is called after recovery. A stream that lost its end in a power failure sets its consumers back. If
// another power failure lost their new places, the stream could have grown past the old ones, and what lies between
// would be skipped.
func (s *Server) syncConsumers() error {
	const state = "o.dat" // JetStream's name for the file
	if err := new(synced).walk(context.Background(), s.config.StoreDir, func(name string) bool {
		return name == state
	}); err != nil {
		return fmt.Errorf("embedded NATS: sync the consumers: %w", err)
	}
	return nil
}

// walk syncs the wanted files below root, and the folders with new files. It ignores files that are removed meanwhile.
func (y *synced) walk(ctx context.Context, root string, wanted func(name string) bool) error {
	next := make(map[string]os.FileInfo, len(y.known))
	folders := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || !d.IsDir() && !wanted(d.Name()) {
			return gone(err)
		}
		now, err := d.Info()
		if err != nil {
			return gone(err)
		}
		before := y.known[path]
		next[path] = now
		isNew := before == nil || !os.SameFile(before, now)
		if isNew {
			folders[filepath.Dir(path)] = true
		}
		if d.IsDir() || !isNew && before.Size() == now.Size() && before.ModTime().Equal(now.ModTime()) {
			return nil
		}
		return gone(force(path))
	})
	if err != nil {
		return err
	}
	for folder := range folders {
		if err := gone(force(folder)); err != nil {
			return err
		}
	}
	y.known = next
	return nil
}

func force(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// forget makes the next sync start from nothing, because the files are opened again.
func (y *synced) forget() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.known, y.err = nil, nil
}
