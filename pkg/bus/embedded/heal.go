package embedded

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	lookEvery   = time.Second
	illLooks    = 2                // checks in a row with the same result before the server is restarted
	healAtMost  = 8 * time.Second  // the longest time between two attempts
	hopeless    = 10 * time.Minute // the time after a restart that did not help, as with a damaged stream
	healthyFor  = time.Minute      // after this time attempts follow quickly again
	spaceNeeded = 1 << 20          // bytes; after a restart with less, writes would soon fail again
)

var errNotRunning = errors.New("embedded NATS: the server is being restarted")

// watch restarts the server when JetStream accepts no more messages: after one failed write, usually because the disk
// is full, a stream refuses all others until it is opened again. It waits until there is space, and longer from attempt
// to attempt.
func (s *Server) watch() {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	looks, ill, logged := 0, false, "" // failed checks in a row, an outage is logged, the last reason in the log
	var next time.Time                 // time of the next attempt
	wait := lookEvery
	for {
		select {
		case <-look.C:
		case <-s.stopping.Done():
			return
		}
		err := s.health()
		if err == nil {
			if ill {
				s.config.Log.Info("the event store accepts events again")
			}
			if looks, ill, logged = 0, false, ""; time.Since(next) > healthyFor {
				wait = lookEvery
			}
			continue
		}
		if looks++; looks < illLooks { // a stream or consumer may be in the middle of being created or deleted
			continue
		}
		if !ill {
			s.config.Log.Error(
				"the event store accepts no events; they wait in the outbox until it is restarted, which needs disk "+
					"space",
				"error", err)
			ill = true
		}
		if time.Now().Before(next) {
			continue
		}
		err = s.heal()
		if err != nil && err.Error() != logged {
			logged = err.Error()
			s.config.Log.Warn("the event store cannot be restarted yet", "error", err)
		}
		next = time.Now().Add(wait)
		wait = min(2*wait, healAtMost)
		if err != nil {
			continue
		}
		if err := s.health(); err != nil {
			s.config.Log.Error("the event store was restarted, which has not helped", "error", err)
			next = time.Now().Add(hopeless)
		}
	}
}

// health returns what keeps JetStream from accepting messages; nil if nothing is known.
func (s *Server) health() error {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	if running == nil {
		return errNotRunning
	}
	if !running.ReadyForConnections(readyTimeout) {
		return fmt.Errorf("not ready after %s", readyTimeout)
	}
	// Healthz gives the server 1 ms to be ready, which may be too short on a busy machine.
	if status := running.Healthz(nil); status.StatusCode != http.StatusOK &&
		!strings.HasPrefix(status.Error, "failed to be ready") {
		return errors.New(status.Error)
	}
	s.synced.mu.Lock()
	defer s.synced.mu.Unlock()
	return s.synced.err
}

// heal restarts the server if there is space. The next check shows whether that has helped.
func (s *Server) heal() error {
	if err := s.space(); err != nil {
		return err
	}
	s.halt()
	s.synced.forget()
	return s.run()
}

// space tests by writing: the space that the file system reports as free may be reserved for others, or beyond a quota.
func (s *Server) space() error {
	name := filepath.Join(s.config.StoreDir, "space.probe")
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("look for space: %w", err)
	}
	_, err = file.Write(make([]byte, spaceNeeded))
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close(), os.Remove(name)); err != nil {
		return fmt.Errorf("look for space: %w", err)
	}
	return nil
}
