package transfer

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/idplatform/idplatform/cli/internal/failure"
)

// remembered is how long the platform knows what became of a request with a key, less a while for the way there.
const remembered = 24*time.Hour - 10*time.Minute

// progress is how far an import has come. It is on disk before a request is sent and after it was answered.
type progress struct {
	// What is imported, and where to: another import must not go on here.
	Kind    string `json:"kind"`
	Target  string `json:"target"`
	Options string `json:"options"`
	Size    int64  `json:"size"`
	Sum     string `json:"sha256"`

	Key     string    `json:"key"`
	Started time.Time `json:"started"`

	// Of imports in batches.
	Place      place  `json:"place"` // of the first record of the batch
	Batch      int64  `json:"batch"`
	Current    *batch `json:"current,omitempty"` // nil: the next one has not begun
	Report     Report `json:"report"`
	FailedSize int64  `json:"failed_size"` // of the file of failures

	path string // "": it is not kept
}

// batch is what has become of the records that are read together. Records are named by their place in it, from 0.
type batch struct {
	Records int            `json:"records"`
	Queue   [][]int        `json:"queue"`   // the records of each request that is still to be sent
	Aside   map[int]string `json:"aside"`   // records that failed, and why
	Sent    *sent          `json:"sent"`    // the first request of the queue, if it may have been sent
	Number  int            `json:"number"`  // of the requests, so that each has another key
	Made    [3]int64       `json:"made"`    // created, updated, skipped
	Exists  map[int]bool   `json:"skipped"` // records that are there already, and are left as they are or changed
}

// sent is a request that may have been done.
type sent struct {
	Key   string            `json:"key"`
	Time  time.Time         `json:"time"`
	Names map[string]string `json:"names"` // ids that names had, so that the same request can be sent again
}

// openProgress reads the progress of an import, or begins one. fresh has what must be equal.
func openProgress(path string, fresh progress) (*progress, bool, error) {
	fresh.path = path
	if fresh.Key == "" {
		fresh.Key = rand.Text()
	}
	fresh.Started = time.Now().UTC()
	if path == "" {
		return &fresh, false, nil
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &fresh, false, nil
	}
	if err != nil {
		return nil, false, failure.Usagef("the progress: %w", err)
	}
	var kept progress
	if json.Unmarshal(content, &kept) != nil || kept.Key == "" {
		return nil, false, failure.Usagef("%s is not the progress of an import; --progress names another file", path)
	}
	if err := kept.continues(&fresh, path); err != nil {
		return nil, false, err
	}
	kept.path = path
	return &kept, true, nil
}

// peekPlace reads where an import goes on. A file that cannot be read is told later.
func peekPlace(path string, otherwise place) place {
	var kept progress
	if content, err := os.ReadFile(path); err == nil && json.Unmarshal(content, &kept) == nil && kept.Place.Offset > 0 {
		return kept.Place
	}
	return otherwise
}

// continues refuses to go on with another import.
func (p *progress) continues(now *progress, path string) error {
	again := fmt.Sprintf("to begin anew, delete %s; --on-conflict skip leaves out what is there already", path)
	if now.Kind == "grants" {
		again = fmt.Sprintf("to begin anew, delete %s; what is granted already is not granted twice", path)
	}
	switch {
	case p.Kind != now.Kind:
		return failure.Usagef("%s is of an import of %s; %s", path, p.Kind, again)
	case p.Target != now.Target:
		return failure.Usagef("%s is of an import to %s, not to %s; %s", path, p.Target, now.Target, again)
	case p.Size != now.Size || p.Sum != now.Sum:
		return failure.Usagef("the file has changed since %s was written: put it back as it was to go on; or, %s", path,
			again)
	case p.Options != now.Options:
		return failure.Usagef("%s is of an import with other flags (%s): give the same to go on; or, %s", path,
			p.Options, again)
	}
	began := p.Started
	if p.Kind != "users" {
		if p.Current == nil || p.Current.Sent == nil || p.Current.Sent.Key == "" {
			return nil // every request is known to be done, or not to be sent, or can be done twice
		}
		began = p.Current.Sent.Time
	}
	if time.Since(began) > remembered {
		return failure.Usagef("%s is of %s: after 24 hours the platform does not know any more what it has done; %s",
			path, began.Format(time.DateTime), again)
	}
	return nil
}

// key makes the key of a request: the same place has the same key.
func (p *progress) key(parts ...any) string {
	sum := sha256.Sum256(fmt.Append([]byte(p.Key), parts...))
	return hex.EncodeToString(sum[:16])
}

// save puts the progress on disk.
func (p *progress) save() error {
	if p.path == "" {
		return nil
	}
	content, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := replaceFile(p.path, content); err != nil {
		return fmt.Errorf("the progress cannot be kept: %w", err)
	}
	return nil
}

// remove ends the progress of an import that is finished.
func (p *progress) remove() error {
	if p.path == "" {
		return nil
	}
	if err := os.Remove(p.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// replaceFile writes a file whole or not at all. It is for its owner alone: names of people are in it.
func replaceFile(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	syncFolder(filepath.Dir(path))
	return nil
}

// syncFolder makes a new name in a folder survive a loss of power, on systems that can do that.
func syncFolder(path string) {
	if folder, err := os.Open(path); err == nil {
		_ = folder.Sync()
		_ = folder.Close()
	}
}
