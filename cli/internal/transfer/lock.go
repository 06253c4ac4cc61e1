package transfer

import (
	"fmt"
	"os"

	"github.com/gofrs/flock"

	"github.com/idplatform/idplatform/cli/internal/failure"
)

// lock keeps a second import with the same progress out. The operating system lets go of it when the process ends,
// however that happens.
type lock struct{ file *flock.Flock }

// lockProgress locks the progress at a path; "" is none. The error is of exit code 7 if another process has it.
func lockProgress(path string) (lock, error) {
	if path == "" {
		return lock{}, nil
	}
	for {
		file := flock.New(path+".lock", flock.SetPermissions(0o600))
		mine, err := file.TryLock()
		switch {
		case err != nil:
			return lock{}, failure.Usagef("the progress: %w", err)
		case !mine:
			return lock{}, &failure.Error{Code: failure.Unavailable, Err: fmt.Errorf(
				"another import is under way, which keeps its progress in %s", path)}
		case isNamed(file):
			return lock{file}, nil
		}
		// Whoever had it has just removed it: the next one is another file of that name.
		if err := file.Unlock(); err != nil {
			return lock{}, err
		}
	}
}

// isNamed reports whether a locked file still has its name.
func isNamed(file *flock.Flock) bool {
	locked, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(file.Path())
	return err == nil && os.SameFile(locked, named)
}

// release removes the lock.
func (l lock) release() error {
	if l.file == nil {
		return nil
	}
	_ = os.Remove(l.file.Path()) // before it is let go of; Windows, which removes no open file, leaves it
	return l.file.Unlock()
}
