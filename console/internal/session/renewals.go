package session

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// renewalTimeout bounds a renewal, which goes on when the request that began it has ended.
	renewalTimeout = 20 * time.Second
	// keepRenewal is how long the outcome of a renewal is known: for requests that were sent with the former cookies,
	// and a browser that did not get the answer.
	keepRenewal = time.Minute
)

// Renewals lets one renewal of a session run at a time in this process: an issuer may give another refresh token each
// time, and end all of them when one comes twice. The zero value with Now is ready. It is safe for concurrent use.
type Renewals struct {
	Now func() time.Time

	mu   sync.Mutex
	list map[[sha256.Size]byte]*renewal // by refresh token
}

type renewal struct {
	done    chan struct{} // closed when session and err are set
	session Session
	err     error
	until   time.Time
}

// Do returns the session that renew makes of s, or has made a moment ago. A failure is not kept.
func (l *Renewals) Do(
	ctx context.Context, s Session, renew func(context.Context, Session) (Session, error),
) (Session, error) {
	key := sha256.Sum256([]byte(s.Refresh))
	l.mu.Lock()
	l.forget()
	running := l.list[key]
	if running == nil || running.isOld(l.Now()) {
		running = &renewal{done: make(chan struct{}), until: l.Now().Add(keepRenewal)}
		l.list[key] = running
		go l.run(context.WithoutCancel(ctx), key, running, s, renew)
	}
	l.mu.Unlock()
	select {
	case <-running.done:
		return running.session, running.err
	case <-ctx.Done():
		return Session{}, context.Cause(ctx)
	}
}

func (l *Renewals) run(
	ctx context.Context, key [sha256.Size]byte, r *renewal, s Session,
	renew func(context.Context, Session) (Session, error),
) {
	ctx, cancel := context.WithTimeout(ctx, renewalTimeout)
	defer cancel()
	r.session, r.err = renew(ctx, s)
	if r.err != nil {
		l.mu.Lock()
		delete(l.list, key)
		l.mu.Unlock()
	}
	close(r.done)
}

// isOld reports whether a renewal's tokens have to be renewed themselves: not every issuer gives another refresh token.
func (r *renewal) isOld(now time.Time) bool {
	select {
	case <-r.done:
		return r.session.Due(now)
	default:
		return false
	}
}

// forget drops what is old.
func (l *Renewals) forget() {
	if l.list == nil {
		l.list = map[[sha256.Size]byte]*renewal{}
	}
	for key, r := range l.list {
		if !l.Now().Before(r.until) {
			delete(l.list, key)
		}
	}
}
