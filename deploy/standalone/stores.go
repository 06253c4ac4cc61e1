package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// stores is the content of the file stores.json: the stores that the folder has had. A store that has disappeared
// must not be created again silently: it would give out ids again that other records still refer to.
type stores struct {
	folder folder
	mu     sync.Mutex
	Stores map[string]*storeState `json:"stores"` // by name: a service's, or natsStore
}

// storeState is the state of one store.
type storeState struct {
	First int64 `json:"first_id,omitempty"` // smallest id after the last loss or restore; see restored
	// Open is true while the store is open, and after the platform was killed. Then a SQLite file has its log beside
	// it.
	Open bool `json:"open"`
}

const (
	storesFile = "stores.json"
	natsStore  = "nats" // the events
)

// restored makes a store that was restored, or whose loss was accepted, give out no id that it has given out before:
// others still know those ids, tokens too. They are less than the milliseconds since 2026 times 1024, because no store
// gives out a million ids a second for long. If the clock says less than at the last loss, they are less than 2^44 more
// than those began with: at 10,000 a second that takes 55 years.
func (s *storeState) restored(now time.Time) {
	first := now.Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).Milliseconds() << 10
	if first <= s.First {
		first = s.First + 1<<44
	}
	s.First, s.Open = first, false
}

// readStores reads the file. A folder in which no platform has started has none.
func (f folder) readStores() (*stores, error) {
	s := &stores{folder: f, Stores: map[string]*storeState{}}
	text, err := os.ReadFile(f.join(storesFile))
	if err == nil {
		if err = json.Unmarshal(text, s); err == nil && s.Stores == nil {
			err = errors.New("it names no stores")
		}
		if err != nil {
			return nil, fmt.Errorf("data folder: %s is damaged (%w): restore it from a backup, or delete it: "+
				"the next start makes it again from the stores that exist", storesFile, err)
		}
		return s, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	return s, nil
}

const (
	isMissing = "is missing"
	isEmpty   = "is empty"
	noLog     = "has lost its log: the last changes were in %s-wal"
)

// lookAt looks at a store's file without opening the store. It returns what is wrong, or "".
func (f folder) lookAt(name string) string {
	if name == natsStore {
		if !exists(f.join(streamFolder, "meta.inf")) {
			return isMissing
		}
		return ""
	}
	file, err := os.Open(f.join(name + ".db"))
	if err != nil {
		return isMissing
	}
	defer file.Close()
	header := make([]byte, 100)
	if n, _ := file.ReadAt(header, 0); n == 0 {
		return isEmpty
	}
	// Bytes 28…31 are the number of pages. A database without a table has one page, and its tables may still be in
	// the log.
	pages := binary.BigEndian.Uint32(header[28:])
	if string(header[:15]) == "SQLite format 3" && pages <= 1 && !hasContent(f.join(name+".db-wal")) {
		return isEmpty
	}
	return ""
}

var streamFolder = filepath.Join("nats", "jetstream", "$G", "streams", "IDP_EVENTS")

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func hasContent(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

// lost lists the stores that have disappeared, each with what is wrong with it.
func (s *stores) lost(names []string) (lost []string, faults []string) {
	for _, name := range names {
		state, file := s.Stores[name], name+".db"
		if state == nil {
			continue // a new store
		}
		if name == natsStore {
			file = streamFolder
		}
		fault := s.folder.lookAt(name)
		if fault == "" && state.Open && name != natsStore && !exists(s.folder.join(file+"-wal")) {
			fault = fmt.Sprintf(noLog, file)
		}
		if fault != "" {
			lost, faults = append(lost, name), append(faults, file+" "+fault)
		}
	}
	return lost, faults
}

// begin refuses to start if a store has been lost, unless the loss is accepted. It returns the accepted losses.
func (s *stores) begin(names, accepted []string) (lost []string, err error) {
	for _, name := range accepted {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("accept_loss: there is no store %q; the stores are %s",
				name, strings.Join(names, ", "))
		}
	}
	lost, faults := s.lost(names)
	var refused []string
	for i, name := range lost {
		if !slices.Contains(accepted, name) {
			refused = append(refused, fmt.Sprintf("%s: put it back from a backup, or start once with --accept-loss %s "+
				"to continue without its content", faults[i], name))
		}
	}
	if len(refused) > 0 {
		return nil, fmt.Errorf("data folder %s has lost stores:\n  %s",
			s.folder.path, strings.Join(refused, "\n  "))
	}
	changed := len(lost) > 0
	for _, name := range lost {
		s.Stores[name].restored(time.Now()) // without any of its content
	}
	// If a start fails later, it closes stores in an orderly way: their logs are then missing, but they are not lost.
	for _, state := range s.Stores {
		changed = changed || state.Open
		state.Open = false
	}
	if !changed {
		return nil, nil
	}
	return lost, s.write()
}

// opened notes that these stores are open.
func (s *stores) opened(names []string) error { return s.set(names, true) }

// closing notes that these stores are closed. Call it before an orderly close.
func (s *stores) closing(names []string) error { return s.set(names, false) }

func (s *stores) set(names []string, open bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if s.Stores[name] == nil {
			s.Stores[name] = &storeState{}
		}
		s.Stores[name].Open = open
	}
	return s.write()
}

// firstID is the smallest id that a store may give out; 0 if it was never lost.
func (s *stores) firstID(name string) int64 {
	if state := s.Stores[name]; state != nil {
		return state.First
	}
	return 0
}

func (s *stores) write() error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return s.folder.replace(storesFile, string(text))
}
