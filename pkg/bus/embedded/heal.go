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
	illLooks    = 2                // that find the same before something is done
	healAtMost  = 8 * time.Second  // between two tries
	hopeless    = 10 * time.Minute // after a restart that did not help, as with a damaged stream
	healthyFor  = time.Minute      // after which tries are close together again
	spaceNeeded = 1 << 20          // bytes; a restart with less would soon fail again
)

var errNotRunning = errors.New("embedded NATS: not running now")

// watch restarts the server where JetStream takes no more messages: after one write that failed, above all on a full
// disk, a stream refuses all others until it is opened anew. It waits for space, and longer from try to try.
func (s *Server) watch() {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	looks, ill, told := 0, false, ""
	var next time.Time // of a try
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
				s.config.Log.Info("the event store takes events again")
			}
			if looks, ill, told = 0, false, ""; time.Since(next) > healthyFor {
				wait = lookEvery
			}
			continue
		}
		if looks++; looks < illLooks { // a stream or consumer may just be coming or going
			continue
		}
		if !ill {
			s.config.Log.Error("the event store takes no events; they wait in the outbox until it is restarted, which needs space",
				"error", err)
			ill = true
		}
		if time.Now().Before(next) {
			continue
		}
		err = s.heal()
		if err != nil && err.Error() != told {
			told = err.Error()
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

// health tells what keeps JetStream from taking messages; nil if nothing is known.
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
	// Healthz gives the server 1 ms to be ready, which a busy machine may not have.
	if status := running.Healthz(nil); status.StatusCode != http.StatusOK && !strings.HasPrefix(status.Error, "failed to be ready") {
		return errors.New(status.Error)
	}
	s.synced.mu.Lock()
	defer s.synced.mu.Unlock()
	return s.synced.err
}

// heal restarts the server if there is space. Whether that has helped, the next look tells.
func (s *Server) heal() error {
	if err := s.space(); err != nil {
		return err
	}
	s.halt()
	s.synced.forget()
	return s.run()
}

// space finds out by writing: what the file system says is free may be others', or beyond a quota.
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
