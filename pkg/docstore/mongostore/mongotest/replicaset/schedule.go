package replicaset

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"
	"time"
)

// Fault is a fault that a command meets.
type Fault int

// The faults. Each is something that a client of MongoDB must expect.
const (
	None          Fault = iota
	LoseRequest         // the connection breaks before the command is run
	LoseReply           // the connection breaks after the command was run
	Conflict            // a write in a transaction meets a write conflict
	Expire              // the command's transaction is aborted, as if it had lived too long
	StepDown            // another member becomes the primary before the command is run
	UnknownCommit       // a commit takes effect, but the answer says that a majority has not confirmed it
)

// AllFaults are all faults.
var AllFaults = []Fault{LoseRequest, LoseReply, Conflict, Expire, StepDown, UnknownCommit}

// Masked are the faults after which a transaction is repeated, so that no caller of a store notices them.
var Masked = []Fault{Conflict, Expire, UnknownCommit}

// Schedule decides, by a seed, which of the waiting commands runs next and which fault it meets. Both follow from the
// seed, the command's content (without what differs in each run: sessions, times) and how often the command has
// arrived: with the same seed, the same one of two waiting commands runs first, and its n-th arrival meets the same
// fault. Which commands wait at the same time depends on the speed of the clients; the scheduler only gives them the
// time Settle to arrive.
type Schedule struct {
	Seed uint64
	// Settle is how long no other command must arrive before one is chosen; 0 means 300 µs. With a negative one,
	// commands run as they arrive.
	Settle time.Duration

	Delay     time.Duration // the longest wait of an answer
	Faults    []Fault       // the faults to choose from
	Every     int           // one in so many commands meets a fault; 0 means 40
	MaxFaults int           // at most so many commands meet a fault; 0 means 10
}

const (
	defaultSettle    = 300 * time.Microsecond
	defaultEvery     = 40
	defaultMaxFaults = 10
	aloneAfter       = 20 // commands of one connection in a row, after which the scheduler does not wait for others
	maxFaultsOfOne   = 2  // faults of one caller's transaction
	maxSettles       = 5  // how often Settle one waits, if commands never stop arriving
)

type scheduler struct {
	Schedule
	arrivals chan *waiting
	closing  chan struct{}
	hits     int            // faults so far
	faultsOf map[string]int // faults of a session's transactions since it last committed one

	conn  int64 // the connection of the latest commands
	inRow int   // how many of them came from it in a row
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
	o.Every, o.MaxFaults = cmp.Or(o.Every, defaultEvery), cmp.Or(o.MaxFaults, defaultMaxFaults)
	return &scheduler{Schedule: o, arrivals: make(chan *waiting), closing: closing, faultsOf: map[string]int{}}
}

// turn waits until the command is chosen. alone reports that no others wait: its connection is the only busy one.
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
	var deadline time.Time // until when the queue waits for others
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
				deadline = time.Now().Add(maxSettles * s.Settle)
			}
			queue = append(queue, w)
		case <-settled.C:
			if len(queue) > 0 {
				w := slices.MinFunc(queue, func(a, b *waiting) int { return cmp.Compare(a.order, b.order) })
				queue = slices.DeleteFunc(queue, func(other *waiting) bool { return other == w })
				deadline = time.Now().Add(maxSettles * s.Settle)
				w.chosen <- s.fault(w)
			}
		}
		if settled.Stop(); len(queue) > 0 {
			settled.Reset(max(0, min(s.Settle, time.Until(deadline))))
		}
	}
}

func (s *scheduler) fault(w *waiting) Fault {
	random := mix(s.Seed, w.identity, uint64(w.arrival), 1)
	if w.command.envelope.Autocommit != nil && !s.mayFail(w.command) {
		return None
	}
	if s.hits >= s.MaxFaults || random%uint64(s.Every) != 0 {
		return None
	}
	var possible []Fault
	for _, f := range s.Faults {
		if f.appliesTo(w.command) {
			possible = append(possible, f)
		}
	}
	if len(possible) == 0 {
		return None
	}
	s.hits++
	if w.command.envelope.Autocommit != nil {
		s.faultsOf[string(w.command.envelope.Session.ID.Data)]++
	}
	return possible[random/uint64(s.Every)%uint64(len(possible))]
}

// mayFail bounds how often one caller's transaction meets a fault before it commits. Otherwise a transaction of many
// commands might never end.
func (s *scheduler) mayFail(c *command) bool {
	caller := string(c.envelope.Session.ID.Data)
	if c.name == "commitTransaction" {
		delete(s.faultsOf, caller)
	}
	return s.faultsOf[caller] < maxFaultsOfOne
}

// appliesTo reports whether a command can meet a fault.
func (f Fault) appliesTo(c *command) bool {
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

// delay holds an answer back.
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
	"lsid": true, "txnNumber": true, "$clusterTime": true, "readConcern": true, "maxTimeMS": true, "$db": true,
	"nsInfo": true, "getMore": true,
}

// identity is the same for the same command in every run.
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
	x := h.Sum64() // FNV mixes its last bytes poorly; this is the final step of splitmix64
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
