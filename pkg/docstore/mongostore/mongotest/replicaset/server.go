package replicaset

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Options say how the replica set behaves. With the zero value it has one member, which answers at once, in the order
// of arrival, without faults.
type Options struct {
	Members  int           // 0 means 1
	Lifetime time.Duration // transactionLifetimeLimitSeconds; 0 means a minute
	// Wire is maxWireVersion; 0 means 25, that of MongoDB 8.0. Servers with a lower one do not have bulkWrite.
	Wire     int32
	Schedule *Schedule // nil means that commands run as they arrive
	Name     string    // of the set; empty means "simulated"
	// Listen is where the only member listens; empty means any port of 127.0.0.1. Address is where clients find it,
	// as in rs.initiate; empty means where it listens.
	Listen, Address string
}

const (
	defaultName     = "simulated"
	defaultLifetime = time.Minute
	bulkWriteWire   = 25
	electionTerm    = 8 // the bytes of an electionId before the term
)

// Server is a replica set. All its members have the same data at any time: every answered write is on a majority.
type Server struct {
	options   Options
	members   []*member
	process   bson.ObjectID
	scheduler *scheduler
	serving   sync.WaitGroup

	mu        sync.Mutex
	databases map[string]*database
	sessions  map[string]*session
	cursors   map[int64]*cursor
	numbered  int64  // the last number of a cursor or connection
	time      uint64 // the number of the last change
	primary   int
	term      uint32
	turned    chan struct{} // closed when another member becomes the primary
	closing   chan struct{}
	closed    bool
	conns     map[net.Conn]bool
	faults    []string

	injected   Fault
	injections int

	counts map[string]int // of commands, by name
}

type member struct {
	number   int
	listener net.Listener
	address  string
}

// Start starts a replica set. The caller closes it.
func Start(o Options) (*Server, error) {
	if o.Members == 0 {
		o.Members = 1
	}
	if o.Wire == 0 {
		o.Wire = bulkWriteWire
	}
	if o.Lifetime == 0 {
		o.Lifetime = defaultLifetime
	}
	o.Name, o.Listen = cmp.Or(o.Name, defaultName), cmp.Or(o.Listen, "127.0.0.1:0")
	s := &Server{
		options: o, process: bson.NewObjectID(), databases: map[string]*database{}, sessions: map[string]*session{},
		cursors: map[int64]*cursor{},
		term:    1, turned: make(chan struct{}), closing: make(chan struct{}), conns: map[net.Conn]bool{},
		counts: map[string]int{},
	}
	for i := range o.Members {
		listener, err := net.Listen("tcp", o.Listen)
		if err != nil {
			for _, m := range s.members {
				_ = m.listener.Close()
			}
			return nil, fmt.Errorf("start a simulated replica set: %w", err)
		}
		s.members = append(s.members, &member{i, listener, cmp.Or(o.Address, listener.Addr().String())})
	}
	if o.Schedule != nil {
		s.scheduler = newScheduler(*o.Schedule, s.closing)
		s.serving.Go(s.scheduler.run)
	}
	for _, m := range s.members {
		s.serving.Go(func() { s.accept(m) })
	}
	return s, nil
}

// URI returns the connection string of the set. When a client disconnects, the driver's monitors may wait for an
// answer, so the URI makes that wait short.
func (s *Server) URI() string {
	return "mongodb://" + strings.Join(s.addresses(), ",") + "/?heartbeatFrequencyMS=500&replicaSet=" + s.options.Name
}

func (s *Server) addresses() []string {
	list := make([]string, len(s.members))
	for i, m := range s.members {
		list[i] = m.address
	}
	return list
}

// Close ends the set. Its error names what the set was asked for and does not know, and the simulation's own faults. A
// second Close returns the same error.
func (s *Server) Close() error {
	s.mu.Lock()
	if !s.closed {
		close(s.closing)
		s.closed = true
	}
	s.abortAll()
	for _, m := range s.members {
		_ = m.listener.Close()
	}
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
	if len(s.faults) > 0 {
		return errors.New("simulated replica set: " + strings.Join(s.faults, "; "))
	}
	return nil
}

// fault adds to the faults that Close reports.
func (s *Server) fault(what string) {
	if !slices.Contains(s.faults, what) {
		s.faults = append(s.faults, what)
	}
}

// StepDown makes the next member the primary, as replSetStepDown and an election do: transactions in progress are
// aborted, and waiting commands are interrupted. Nothing that was answered is lost. The only member of a set of one
// succeeds itself.
func (s *Server) StepDown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stepDown()
}

func (s *Server) stepDown() {
	s.primary = (s.primary + 1) % len(s.members)
	s.term++
	s.abortAll()
	clear(s.cursors)
	close(s.turned)
	s.turned = make(chan struct{})
}

// Expire aborts the transactions in progress, as if they had exceeded their lifetime.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abortAll()
}

// Inject makes the next n commands that a fault applies to meet it, in addition to the faults that the schedule
// decides.
func (s *Server) Inject(f Fault, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.injected, s.injections = f, n
}

// injection returns the fault that was injected for a command, once.
func (s *Server) injection(c *command) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.injections == 0 || !s.injected.appliesTo(c) {
		return None
	}
	s.injections--
	return s.injected
}

// Counts returns how often each command was run, by name, without hello.
func (s *Server) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{}
	for name, n := range s.counts {
		counts[name] = n
	}
	return counts
}

func (s *Server) accept(m *member) {
	for {
		conn, err := m.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		select {
		case <-s.closing:
			_ = conn.Close()
		default:
			s.conns[conn] = true
		}
		s.numbered++
		number := s.numbered
		s.mu.Unlock()
		s.serving.Go(func() {
			s.serve(m, number, conn)
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
		})
	}
}

// serve answers the requests of one connection. It reads ahead, to notice when the client disconnects while a command
// waits.
func (s *Server) serve(m *member, number int64, conn net.Conn) {
	requests, gone := make(chan *request), make(chan struct{})
	s.serving.Go(func() {
		defer close(gone)
		for {
			r, err := readRequest(conn)
			if err != nil {
				return // the client has disconnected, or speaks another protocol
			}
			select {
			case requests <- r:
			case <-s.closing:
				return
			}
		}
	})
	defer func() {
		_ = conn.Close()
		for { // ends the reader
			select {
			case <-requests:
			case <-gone:
				return
			}
		}
	}()
	var appName string
	for {
		select {
		case <-gone:
			return
		case r := <-requests:
			if name := commandName(r.body); name == "hello" || name == "isMaster" || name == "ismaster" {
				if name, ok := r.body.Lookup("client", "application", "name").StringValueOK(); ok {
					appName = name
				}
				if err := s.answerHello(m, conn, r, gone); err != nil {
					return
				}
				continue
			}
			reply, lost := s.answer(m, number, appName, r, gone)
			if lost || writeReply(conn, r, reply, false) != nil {
				return
			}
		}
	}
}

func commandName(body bson.Raw) string {
	first, err := body.IndexErr(0)
	if err != nil {
		return ""
	}
	return first.Key()
}

// answerHello answers hello: at once or, to a client that knows the topology, when that changes ("awaitable hello";
// with exhaust as a stream of replies;
// https://github.com/mongodb/specifications/blob/master/source/server-discovery-and-monitoring/server-monitoring.md).
func (s *Server) answerHello(m *member, conn net.Conn, r *request, gone <-chan struct{}) error {
	known, await := r.body.Lookup("topologyVersion", "counter").AsInt64OK()
	limit, _ := r.body.Lookup("maxAwaitTimeMS").AsInt64OK()
	for {
		s.mu.Lock()
		now, turned := int64(s.term), s.turned
		s.mu.Unlock()
		if await && known == now {
			timer := time.NewTimer(time.Duration(limit) * time.Millisecond)
			select {
			case <-turned:
			case <-timer.C:
			case <-gone:
			}
			timer.Stop()
		}
		s.mu.Lock()
		known = int64(s.term)
		reply := s.hello(m)
		s.mu.Unlock()
		stream := await && r.exhaust
		if err := writeReply(conn, r, marshal(reply), stream); err != nil || !stream {
			return err
		}
	}
}

func (s *Server) hello(m *member) bson.D {
	primary := m.number == s.primary
	reply := bson.D{
		{Key: "helloOk", Value: true}, {Key: "isWritablePrimary", Value: primary}, {Key: "ismaster", Value: primary},
		{Key: "secondary", Value: !primary}, {Key: "topologyVersion", Value: s.topologyVersion()},
		{Key: "setName", Value: s.options.Name},
		{Key: "setVersion", Value: int32(1)}, {Key: "hosts", Value: s.addresses()}, {Key: "me", Value: m.address},
		{Key: "primary", Value: s.members[s.primary].address}, {Key: "maxBsonObjectSize", Value: int32(maxDocument)},
		{Key: "maxMessageSizeBytes", Value: int32(maxMessage)}, {Key: "maxWriteBatchSize", Value: int32(maxWriteBatch)},
		{Key: "localTime", Value: bson.NewDateTimeFromTime(time.Now())},
		{Key: "logicalSessionTimeoutMinutes", Value: int32(30)}, {Key: "minWireVersion", Value: int32(0)},
		{Key: "maxWireVersion", Value: s.options.Wire}, {Key: "readOnly", Value: false},
	}
	if primary {
		var election bson.ObjectID // "0x7fffffff", then the term: a later election has a greater id
		copy(election[:], []byte{0x7f, 0xff, 0xff, 0xff})
		election[electionTerm], election[electionTerm+1] = byte(s.term>>24), byte(s.term>>16)
		election[electionTerm+2], election[electionTerm+3] = byte(s.term>>8), byte(s.term)
		reply = append(reply, bson.E{Key: "electionId", Value: election})
	}
	return s.finished(reply)
}

func (s *Server) topologyVersion() bson.D {
	return bson.D{{Key: "processId", Value: s.process}, {Key: "counter", Value: int64(s.term)}}
}

// finished adds what every reply has.
func (s *Server) finished(reply bson.D) bson.D {
	now := bson.Timestamp{T: 1 << 30, I: uint32(s.time) + 1}
	return append(reply,
		bson.E{Key: "ok", Value: 1.0}, bson.E{Key: "operationTime", Value: now},
		bson.E{Key: "$clusterTime", Value: bson.D{{Key: "clusterTime", Value: now}, {Key: "signature", Value: bson.D{
			{Key: "hash", Value: bson.Binary{Data: make([]byte, 20)}}, {Key: "keyId", Value: int64(0)}}}}})
}

func (s *Server) database(name string) (*database, error) {
	if name == "" {
		return nil, refuse(codeFailedToParse, "no $db")
	}
	d := s.databases[name]
	if d == nil {
		d = newDatabase(name)
		s.databases[name] = d
	}
	return d, nil
}
