package plan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/idplatform/idplatform/cli/internal/failure"
	idp "github.com/idplatform/idplatform/sdk/go"
)

const (
	lockFor    = 2 * time.Minute // a lock in the bucket holds so long if nobody renews it
	renewEvery = lockFor / 4
)

// Holder is who holds a lock: what it shows to others, and what tells whether the process was killed.
type Holder struct {
	Host    string    `json:"host"`
	Space   string    `json:"process_space,omitempty"` // containers have processes of the same numbers
	Process int       `json:"process"`
	Since   time.Time `json:"since"`
	Run     string    `json:"run"` // tells this apply from all others
}

func thisProcess(run string) Holder {
	h := Holder{Process: os.Getpid(), Since: time.Now().UTC().Truncate(time.Second), Run: run}
	h.Host, _ = os.Hostname()
	h.Space, _ = os.Readlink("/proc/self/ns/pid") // only Linux has it
	return h
}

// ended reports whether it is certain that the holder is gone: it was a process of this machine, which has none of that
// number.
func (h Holder) ended() bool {
	here := thisProcess("")
	if h.Host == "" || h.Host != here.Host || h.Space != here.Space || h.Process <= 0 {
		return false
	}
	process, err := os.FindProcess(h.Process)
	if err != nil {
		return true
	}
	defer func() { _ = process.Release() }()
	return errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// lockedBy is the error of an apply that is kept out.
func lockedBy(what string, h Holder) error {
	who := ""
	if h.Host != "" {
		who = fmt.Sprintf(" on %s, process %d, since %s", h.Host, h.Process, h.Since.Local().Format(time.DateTime))
	}
	return &failure.Error{Code: failure.Unavailable, Err: fmt.Errorf(
		"another apply of %s is under way%s; if it was killed, --unlock takes its lock away", what, who)}
}

// bucketLock is a lock in the bucket. It is renewed until it is let go of.
type bucketLock struct {
	platform Platform
	set      string
	me       Holder

	mu      sync.Mutex
	version string    // "": it is not held
	renewed time.Time // by the clock on the wall: a machine that sleeps loses its locks
	lost    bool
	stop    func()
}

// take takes the lock, also from a process of this machine that was killed.
func (l *bucketLock) take(ctx context.Context) error {
	err := l.put(ctx, "")
	for tries := 0; tries < 3 && unclear(err); tries++ {
		holder, version, readErr := l.read(ctx)
		switch {
		case readErr != nil:
			return readErr
		case version != "" && holder.Run == l.me.Run: // the answer was lost
			l.version, err = version, nil
		case version != "" && !holder.ended():
			return lockedBy(l.set, holder)
		default: // it has just expired, or is nobody's
			err = l.put(ctx, version)
		}
	}
	if err != nil {
		return err
	}
	l.keep(ctx)
	return nil
}

// unclear reports whether a write may have been done, by this process or by somebody else.
func unclear(err error) bool {
	_, lost := errors.AsType[*idp.LostError](err)
	code := idp.CodeOf(err)
	return lost || code == idp.CodeOutcomeUnknown || code == idp.CodeVersionMismatch || code == idp.CodeNotFound
}

// put writes the lock in place of a version, or if there is none.
func (l *bucketLock) put(ctx context.Context, version string) error {
	w := Write{
		Operation: "put-kv-object", Path: []string{Bucket, "lock." + l.set}, NoneMatch: version == "",
		Body: map[string]any{"value": l.me, "ttl_seconds": int(lockFor.Seconds())},
	}
	if version != "" {
		w.IfMatch = `"` + version + `"`
	}
	began := time.Now().Round(0)
	answer, err := l.platform.Write(ctx, w, false)
	if err == nil {
		l.version, l.renewed = fmt.Sprint(answer["version"]), began
	}
	return err
}

// read returns who holds the lock; the version is "" if nobody does.
func (l *bucketLock) read(ctx context.Context) (Holder, string, error) {
	var object struct {
		Value   Holder `json:"value"`
		Version any    `json:"version"`
	}
	err := l.platform.Get(ctx, objectPath("lock."+l.set), nil, &object)
	if idp.CodeOf(err) == idp.CodeNotFound {
		return Holder{}, "", nil
	}
	return object.Value, fmt.Sprint(object.Version), err
}

// keep renews the lock in the background.
func (l *bucketLock) keep(ctx context.Context) {
	l.renewed = time.Now().Round(0)
	ctx, cancel := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		ticker := time.NewTicker(renewEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				l.mu.Lock()
				l.renew(ctx)
				l.mu.Unlock()
			}
		}
	})
	l.stop = func() {
		cancel()
		renewing.Wait()
	}
}

// renew is called with the mutex held. A platform that is away for a moment takes no lock away.
func (l *bucketLock) renew(ctx context.Context) {
	err := l.put(ctx, l.version)
	if !unclear(err) {
		return
	}
	holder, version, err := l.read(ctx)
	switch {
	case err != nil:
	case version != "" && holder.Run == l.me.Run:
		l.version, l.renewed = version, time.Now().Round(0)
	default:
		l.lost = true
	}
}

// held returns an error if the lock is lost: somebody else may apply the set now.
func (l *bucketLock) held(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.renewed) >= renewEvery && !l.lost {
		l.renew(ctx)
	}
	if l.lost || time.Since(l.renewed) >= lockFor {
		return &failure.Error{Code: failure.Changed, Err: fmt.Errorf("the lock of the set %s was lost", l.set)}
	}
	return nil
}

// letGo deletes the lock if it is still this apply's.
func (l *bucketLock) letGo(ctx context.Context) error {
	if l.version == "" {
		return nil
	}
	l.stop()
	if l.lost {
		return nil
	}
	_, err := l.platform.Write(ctx, Write{
		Operation: "delete-kv-object", Path: []string{Bucket, "lock." + l.set}, IfMatch: `"` + l.version + `"`,
	}, false)
	if code := idp.CodeOf(err); code == idp.CodeNotFound || code == idp.CodeVersionMismatch {
		return nil // it is another's now
	}
	return err
}
