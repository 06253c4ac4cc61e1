package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// controlFile is the socket on which the running platform is asked for a backup. Who can open it can read the data
// folder as well, so it needs no credential; no client of the platform reaches it.
const controlFile = "control.sock"

// line is one line of the answer to a request for a backup.
type line struct {
	Progress string    `json:"progress,omitempty"`
	Done     *manifest `json:"done,omitempty"`
	Error    string    `json:"error,omitempty"`
}

// listenControl answers requests for backups until stop, which waits for those that run.
func (f folder) listenControl(from source, log *slog.Logger) (stop func(), err error) {
	path := f.join(controlFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a platform that was killed
		return nil, fmt.Errorf("data folder: %w", err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil { // the path of a socket can have about 100 bytes, and some file systems have none
		log.Warn("the running platform cannot be asked for a backup", "error", err)
		return func() {}, nil
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("data folder: %w", err), listener.Close())
	}
	var running sync.WaitGroup
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			running.Add(1)
			defer running.Done()
			answerBackup(w, r, from, log)
		})}
	go func() { _ = server.Serve(listener) }() // until Close
	return func() {
		_ = server.Close() // ends the requests, too
		running.Wait()
	}, nil
}

// answerBackup makes a backup, unless the asker goes away meanwhile.
func answerBackup(w http.ResponseWriter, r *http.Request, from source, log *slog.Logger) {
	var asked struct{ Dir string }
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&asked) != nil || asked.Dir == "" {
		http.Error(w, "POST a dir", http.StatusBadRequest)
		return
	}
	answer, flush := json.NewEncoder(w), http.NewResponseController(w)
	tell := func(l line) {
		_ = answer.Encode(l) // if the asker is away, the context has ended
		_ = flush.Flush()
	}
	m, err := from.backup(r.Context(), asked.Dir, func(format string, args ...any) {
		tell(line{Progress: fmt.Sprintf(format, args...)})
	})
	if err != nil {
		log.Warn("a backup failed", "dir", asked.Dir, "error", err)
		tell(line{Error: err.Error()})
		return
	}
	log.Info("a backup is complete", "dir", asked.Dir, "bytes", m.size(), "writes_waited_ms", m.Waited)
	tell(line{Done: &m})
}

// askForBackup asks the platform that runs on the folder for a backup.
func (f folder) askForBackup(ctx context.Context, target string, tell func(string, ...any)) (m manifest, err error) {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", f.join(controlFile))
		},
	}}
	body, err := json.Marshal(map[string]string{"dir": target})
	if err != nil {
		return m, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://platform/", bytes.NewReader(body))
	if err != nil {
		return m, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return m, fmt.Errorf("the platform on the data folder %s cannot be asked (it is starting or stopping, or its "+
			"log says why): %w", f.path, err)
	}
	defer answer.Body.Close()
	for lines := json.NewDecoder(answer.Body); ; {
		var l line
		if err := lines.Decode(&l); err != nil {
			return m, fmt.Errorf("the platform ended before the backup was complete: %w", err)
		}
		switch {
		case l.Error != "":
			return m, errors.New(l.Error)
		case l.Done != nil:
			return *l.Done, nil
		default:
			tell("%s", l.Progress)
		}
	}
}
