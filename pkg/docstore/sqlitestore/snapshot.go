package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Snapshot is one committed state of a file. Others read and write meanwhile. Until Close, the file's log grows with
// what they write.
type Snapshot struct {
	path string
	conn Conn
}

const (
	holdAtMost = time.Second // in one try; a transaction that runs already can take longer
	holdTries  = 20
	holdPause  = 250 * time.Millisecond
)

// Snapshots takes a snapshot of each file at one moment: what a program learnt from one file and then wrote to another
// is not in the other's snapshot alone. For that moment all writers wait, but none fails; waited is for how long.
// meanwhile is called in that moment, and should take little time. If the transactions that run already take too long,
// the writers go on, and Snapshots tries again.
func Snapshots(
	ctx context.Context, engines []*Engine, meanwhile func(context.Context) error,
) (list []*Snapshot, waited time.Duration, err error) {
	defer func() {
		if err != nil {
			for _, s := range list {
				err = errors.Join(err, s.Close())
			}
			list = nil
		}
	}()
	for _, e := range engines {
		conn, err := connect(ctx, e.driver, e.path, reading)
		if err != nil {
			return list, 0, fmt.Errorf("sqlitestore: snapshot of %s: %w", e.path, err)
		}
		list = append(list, &Snapshot{e.path, conn})
	}
	for try := 1; ; try++ {
		began := time.Now()
		release, err := holdAll(ctx, engines)
		if err == nil {
			err = errors.Join(begin(ctx, list), meanwhile(ctx))
			release()
			return list, time.Since(began), err
		}
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) || try == holdTries {
			return list, 0, fmt.Errorf("sqlitestore: make the writers wait: %w", err)
		}
		select {
		case <-time.After(holdPause):
		case <-ctx.Done():
		}
	}
}

func begin(ctx context.Context, list []*Snapshot) error {
	for _, s := range list {
		if _, err := s.conn.Exec(ctx, "BEGIN"); err != nil {
			return fmt.Errorf("sqlitestore: snapshot of %s: %w", s.path, err)
		}
		// Only a statement that reads makes SQLite choose the state.
		if _, err := number(ctx, s.conn, "SELECT count(*) FROM sqlite_schema"); err != nil {
			return fmt.Errorf("sqlitestore: snapshot of %s: %w", s.path, err)
		}
	}
	return nil
}

// holdAll holds the writers of all engines. They are asked at once, because each may first end a transaction. If one of
// them does not hold in time, none is held, and the error is context.DeadlineExceeded.
func holdAll(ctx context.Context, engines []*Engine) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, holdAtMost)
	defer cancel()
	releases, errs := make([]func(), len(engines)), make([]error, len(engines))
	var all sync.WaitGroup
	for i, e := range engines {
		all.Go(func() { releases[i], errs[i] = e.writer.hold(ctx) })
	}
	all.Wait()
	release = func() {
		for _, r := range releases {
			if r != nil {
				r()
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// hold makes the transactions that follow wait until release. Those that share a commit with it have run, but are not
// committed before.
func (w *writer) hold(ctx context.Context) (release func(), err error) {
	held, over, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- w.do(ctx, func(Conn) error {
			close(held)
			<-over
			return nil
		})
	}()
	select {
	case <-held:
		return sync.OnceFunc(func() { close(over); <-ended }), nil
	case err := <-ended:
		return nil, err
	}
}

// Copy writes the snapshot to a new file, which must not exist yet. copied, which may be nil, is called now and then
// with the number of bytes so far. When Copy returns nil, the file is on disk; otherwise there is none.
func (s *Snapshot) Copy(ctx context.Context, path string, copied func(int64)) error {
	if copied == nil {
		copied = func(int64) {}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("sqlitestore: copy: %w", err)
	}
	err = file.Close()
	if err == nil {
		err = s.conn.Backup(ctx, path, copied)
	}
	if err == nil {
		err = errors.Join(syncFile(path), syncFile(filepath.Dir(path)))
	}
	if err != nil {
		return fmt.Errorf("sqlitestore: copy %s: %w", s.path, errors.Join(err, os.Remove(path)))
	}
	return nil
}

// Close ends the snapshot.
func (s *Snapshot) Close() error { return s.conn.Close() }

// syncFile makes a written file, or a new name in a folder, survive power loss.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
