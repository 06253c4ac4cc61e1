package session

import (
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/secret"
)

const (
	// linkLife is how long a one-time link is good.
	linkLife = 2 * time.Minute
	// maxLinks bounds the links that wait; with more, the oldest ends.
	maxLinks = 100
)

// Links are the sign-ins that wait for their one-time link to be opened. They are in memory: a link is opened on the
// replica that made it, which is the one of a platform on one machine. It is safe for concurrent use.
type Links struct {
	Now func() time.Time

	mu      sync.Mutex
	waiting []waiting
}

type waiting struct {
	code    string
	session Session
	until   time.Time
}

// Add returns the code of a new link.
func (l *Links) Add(s Session) (code string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	if len(l.waiting) >= maxLinks {
		l.waiting = l.waiting[1:]
	}
	code = secret.Token(16)
	l.waiting = append(l.waiting, waiting{code, s, l.Now().Add(linkLife)})
	return code
}

// Take returns the session of a code, once.
func (l *Links) Take(code string) (s Session, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	for i, w := range l.waiting {
		if secret.Equal(w.code, code) {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			return w.session, true
		}
	}
	return s, false
}

// forget drops the links that have ended; they are in the order of their ends.
func (l *Links) forget() {
	for len(l.waiting) > 0 && !l.Now().Before(l.waiting[0].until) {
		l.waiting = l.waiting[1:]
	}
}
