package replicaset

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"
	"time"
)

// Fault is what happens to a command.
type Fault int

// The faults. Each is something that a client of MongoDB must expect.
const (
	None          Fault = iota
	LoseRequest         // the connection breaks before the command is run
	LoseReply           // the connection breaks after the command was run
	Conflict            // a write in a transaction meets a write conflict
	Expire              // the command's transaction is aborted, as if it had lived too long
	StepDown            // another member becomes the primary before the command is run
	UnknownCommit       // a commit is done, but the answer says that it is not known to be a majority's
)

// AllFaults are all that there are.
var AllFaults = []Fault{LoseRequest, LoseReply, Conflict, Expire, StepDown, UnknownCommit}

// Masked are those that a transaction is run again for, so that no caller of a store hears of them.
var Masked = []Fault{Conflict, Expire, UnknownCommit}

// Schedule decides, by a seed, which of the commands that wait is run next, and what happens to it. Both follow from
// the seed, the command's content (without what differs at each run: sessions, times) and how often that command has
// come: of two commands that wait at the same time, the same is run first, and its n-th arrival meets the same fault,
// whenever the seed is the same. Which commands wait at the same time, the clients' speed decides; the scheduler only
// gives all of them Settle to arrive.
type Schedule struct {
	Seed   uint64
	Settle time.Duration // how long no command must come before one is chosen; 0 means 300 µs, less that all run as they come

	Delay  time.Duration // answers wait up to so long
	Faults []Fault       // which there are
	Every  int           // one in so many commands is hit; 0 means 40
	Most   int           // no more than so many are; 0 means 10
}

const (
	defaultSettle = 300 * time.Microsecond
	defaultEvery  = 40
	defaultMost   = 10
	aloneAfter    = 20 // commands of one connection in a row
	hitsOfOne     = 2
	settlesAtMost = 5 // where commands never cease to come
)

type scheduler struct {
	Schedule
	arrivals chan *waiting
	closing  chan struct{}
	hits     int
	unlucky  map[string]int // hits of a session's transactions since it committed one

	conn  int64 // that of the latest commands
	inRow int   // how many these are
}

type waiting struct {
	identity, order uint64
	arrival         int
	chosen          chan Fault
	command         *command
	alone           bool
}

func newScheduler(o Schedule, closing chan struct{}) *scheduler {
	o.Settle = cmp.Or(o.Settle, defaultSettle)
	o.Every, o.Most = cmp.Or(o.Every, defaultEvery), cmp.Or(o.Most, defaultMost)
	return &scheduler{Schedule: o, arrivals: make(chan *waiting), closing: closing, unlucky: map[string]int{}}
}

// turn waits until the command is chosen.
func (s *scheduler) turn(c *command) (f Fault, alone bool) {
	w := &waiting{identity: identity(c), chosen: make(chan Fault, 1), command: c}
	select {
	case s.arrivals <- w:
	case <-s.closing:
		return None, false
	}
	select {
	case f := <-w.chosen:
		return f, w.alone
	case <-c.gone:
		return None, false
	case <-s.closing:
		return None, false
	}
}

func (s *scheduler) run() {
	arrived := map[uint64]int{}
	var queue []*waiting
	var patience time.Time // until when the first in the queue waits for others to arrive
	settled := time.NewTimer(s.Settle)
	defer settled.Stop()
	for {
		select {
		case <-s.closing:
			return
		case w := <-s.arrivals:
			w.arrival = arrived[w.identity]
			arrived[w.identity]++
			w.order = mix(s.Seed, w.identity, uint64(w.arrival))
			if s.inRow++; s.conn != w.command.conn {
				s.conn, s.inRow = w.command.conn, 0
			}
			if w.alone = s.inRow > aloneAfter && len(queue) == 0; w.alone || s.Settle < 0 {
				w.chosen <- s.fault(w)
				continue
			}
			if len(queue) == 0 {
				patience = time.Now().Add(settlesAtMost * s.Settle)
			}
			queue = append(queue, w)
		case <-settled.C:
			if len(queue) > 0 {
				w := slices.MinFunc(queue, func(a, b *waiting) int { return cmp.Compare(a.order, b.order) })
				queue = slices.DeleteFunc(queue, func(other *waiting) bool { return other == w })
				patience = time.Now().Add(settlesAtMost * s.Settle)
				w.chosen <- s.fault(w)
			}
		}
		if settled.Stop(); len(queue) > 0 {
			settled.Reset(max(0, min(s.Settle, time.Until(patience))))
		}
	}
}

func (s *scheduler) fault(w *waiting) Fault {
	dice := mix(s.Seed, w.identity, uint64(w.arrival), 1)
	if w.command.envelope.Autocommit != nil && !s.mayAgain(w.command) {
		return None
	}
	if s.hits >= s.Most || dice%uint64(s.Every) != 0 {
		return None
	}
	var possible []Fault
	for _, f := range s.Faults {
		if f.hits(w.command) {
			possible = append(possible, f)
		}
	}
	if len(possible) == 0 {
		return None
	}
	s.hits++
	if w.command.envelope.Autocommit != nil {
		s.unlucky[string(w.command.envelope.Session.ID.Data)]++
	}
	return possible[dice/uint64(s.Every)%uint64(len(possible))]
}

// mayAgain bounds how often one caller's transaction is hit until it commits: one of many commands would else never
// get to its end.
func (s *scheduler) mayAgain(c *command) bool {
	caller := string(c.envelope.Session.ID.Data)
	if c.name == "commitTransaction" {
		delete(s.unlucky, caller)
	}
	return s.unlucky[caller] < hitsOfOne
}

// hits reports whether a fault means something to a command.
func (f Fault) hits(c *command) bool {
	inTransaction := c.envelope.Autocommit != nil
	switch f {
	case Conflict:
		return inTransaction && writes[c.name]
	case Expire:
		return inTransaction
	case UnknownCommit:
		return c.name == "commitTransaction"
	}
	return true
}

// delay keeps an answer back.
func (s *scheduler) delay(c *command) {
	if s.Delay == 0 {
		return
	}
	timer := time.NewTimer(time.Duration(mix(s.Seed, identity(c), 2) % uint64(s.Delay)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.gone:
	case <-s.closing:
	}
}

// volatile members differ from run to run.
var volatile = map[string]bool{
	"lsid": true, "txnNumber": true, "$clusterTime": true, "readConcern": true, "maxTimeMS": true, "$db": true, "nsInfo": true, "getMore": true,
}

// identity is what a command is known by.
func identity(c *command) uint64 {
	h := fnv.New64a()
	members, _ := c.body.Elements()
	for _, m := range members {
		if !volatile[m.Key()] {
			_, _ = h.Write(m)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.sequences)) {
		if !volatile[name] {
			for _, doc := range c.sequences[name] {
				_, _ = h.Write(doc)
			}
		}
	}
	return h.Sum64()
}

func mix(numbers ...uint64) uint64 {
	h := fnv.New64a()
	for _, n := range numbers {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, n))
	}
	x := h.Sum64() // FNV spreads its last bytes badly: finish as splitmix64 does
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
