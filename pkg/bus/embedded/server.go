// Package embedded runs a NATS server with JetStream inside the process. It is the event store of a platform that runs
// as one program.
//
// What a crash can lose: an acknowledged message has been handed to the operating system, so the death of the process
// (kill -9, a panic, out of memory) loses none. A power failure or a kernel crash can lose what was acknowledged after
// the last Sync. A sender that must not lose a message keeps it until a Sync has returned, and sends it again after the
// next start, as outbox.Relay does. nats-server sets back consumers that were ahead of the remaining events, so that
// they get what is sent again under the same numbers.
//
// What a full disk does: JetStream accepts no more messages, permanently. The server is restarted within seconds after
// there is space again.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const (
	// MaxPayload is the size of the largest message that the server accepts, in bytes. It must not be less than
	// outbox.MaxSize plus headers.
	MaxPayload = 8 << 20

	syncInterval   = time.Second
	readyTimeout   = 5 * time.Second
	settleTimeout  = 10 * time.Second
	settleEvery    = 5 * time.Millisecond
	maxMemory      = 64 << 20
	maxConnections = 1024
	defaultStore   = 16 << 30
	defaultSession = 30 * time.Second
)

// Config says where the server keeps its data and who may connect to it.
type Config struct {
	StoreDir string // created if missing; only one server at a time may use it
	// MaxStore is how many bytes all streams may take together; 0 means 16 GiB. A full store refuses events: they wait
	// in the outbox.
	MaxStore int64

	// Listen is the address for TCP clients, such as 127.0.0.1:4222 (port 0: any free one); "" means none.
	Listen string
	// User and Password are for TCP clients. Such a client may read idp.events.>, directly or with the durable consumer
	// "events" of the stream IDP_EVENTS if there is one, and nothing else: see admitReaders. Both are required with
	// Listen.
	User, Password string
	// Worker and WorkerPassword are for TCP clients that do the work of jobs: see workersPermissions. Optional.
	Worker, WorkerPassword string
	// SubscriberSession is how long users of subscriptions may stay connected before they are asked for again; 0 means
	// 30 s.
	SubscriberSession time.Duration

	Log *slog.Logger
}

// PortBusyError reports that another program listens on the address.
type PortBusyError struct {
	Addr  string
	cause error
}

func (e *PortBusyError) Error() string { return "embedded NATS: " + e.Addr + " is in use" }

// Unwrap returns the operating system's error.
func (e *PortBusyError) Unwrap() error { return e.cause }

// ErrStoreBusy reports that another server, possibly in another process, uses the folder.
var ErrStoreBusy = errors.New("embedded NATS: the folder is in use by another process")

// Server is a running NATS server. It is restarted on its files when it no longer accepts messages: see watch.
type Server struct {
	config  Config
	options *server.Options
	log     *logger
	lock    *flock.Flock
	synced  synced

	subscriber atomic.Pointer[Subscriber]

	mu      sync.Mutex
	running *server.Server // nil while it is being restarted, and after Stop
	url     string         // address for TCP clients

	stopping context.Context
	stop     context.CancelFunc
	watching sync.WaitGroup
}

// Start runs a server and waits until it is ready. That takes longest after an unclean end, when the store is read
// again. The error wraps *PortBusyError or ErrStoreBusy if that is the cause.
func Start(c Config) (*Server, error) {
	options, err := c.options()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.StoreDir, 0o700); err != nil {
		return nil, fmt.Errorf("embedded NATS: %w", err)
	}
	// JetStream does not notice a second server on its files and would damage them.
	lock := flock.New(filepath.Join(c.StoreDir, "lock"))
	if held, err := lock.TryLock(); err != nil {
		return nil, fmt.Errorf("embedded NATS: lock the folder: %w", err)
	} else if !held {
		return nil, ErrStoreBusy
	}
	s := &Server{config: c, options: options, log: &logger{log: c.Log}, lock: lock}
	if err := s.run(); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.watching.Go(s.watch)
	return s, nil
}

// run starts the server that new connections go to.
func (s *Server) run() error {
	// The server would log a taken port as an error of its own, and report only that it did not get ready.
	if err := s.config.probe(); err != nil {
		return err
	}
	options, guard := s.options.Clone(), newGuard(s.config, &s.subscriber)
	guard.session = cmp.Or(s.config.SubscriberSession, defaultSession)
	options.CustomClientAuthentication = guard
	started, err := server.NewServer(options)
	if err != nil {
		return fmt.Errorf("embedded NATS: %w", err)
	}
	s.log.fatal.Store(nil)
	started.SetLoggerV2(s.log, false, false, false)
	started.Start()
	err = s.config.admitReaders(started, guard)
	// Start returns after recovery, however long that takes, and only logs what failed.
	if err == nil && (s.log.fatal.Load() != nil || !started.ReadyForConnections(readyTimeout) ||
		!started.JetStreamEnabled()) {
		err = s.startError(started)
	}
	if err == nil {
		err = s.syncConsumers()
	}
	if err != nil {
		started.Shutdown()
		started.WaitForShutdown()
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = started
	if addr, ok := started.Addr().(*net.TCPAddr); ok {
		s.url = "nats://" + addr.String()
		// A restarted server must have the address that its clients know.
		s.options.Port = addr.Port
		s.config.Listen = net.JoinHostPort(s.options.Host, strconv.Itoa(addr.Port))
	}
	return nil
}

// probe finds out whether the address can be listened on.
func (c Config) probe() error {
	if c.Listen == "" {
		return nil
	}
	probe, err := net.Listen("tcp", c.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return &PortBusyError{c.Listen, err}
	}
	if err != nil {
		return fmt.Errorf("embedded NATS: %w", err)
	}
	return probe.Close()
}

// startError returns the reason why the server did not get ready.
func (s *Server) startError(started *server.Server) error {
	if started.Addr() == nil {
		if err := s.config.probe(); err != nil {
			return err
		}
	}
	if logged := s.log.fatal.Load(); logged != nil {
		return fmt.Errorf("embedded NATS: %s", *logged)
	}
	return fmt.Errorf("embedded NATS: not ready after %s", readyTimeout)
}

func (c Config) options() (*server.Options, error) {
	if c.StoreDir == "" {
		return nil, errors.New("embedded NATS: no folder given")
	}
	o := &server.Options{
		ServerName:             "idplatform",
		DontListen:             true,
		NoSigs:                 true,
		MaxPayload:             MaxPayload,
		MaxConn:                maxConnections,
		JetStream:              true,
		DisableJetStreamBanner: true,
		StoreDir:               c.StoreDir,
		SyncInterval:           syncInterval,
		JetStreamMaxMemory:     maxMemory,
		JetStreamMaxStore:      defaultStore,
	}
	if c.MaxStore > 0 {
		o.JetStreamMaxStore = c.MaxStore
	}
	if c.Listen == "" {
		return o, nil
	}
	if !validUser(c.User) || c.Password == "" {
		return nil, errors.New("embedded NATS: TCP clients need a password and a user name of letters, digits, _ and -")
	}
	if c.Worker != "" && (!validUser(c.Worker) || c.Worker == c.User || c.WorkerPassword == "") {
		return nil, errors.New("embedded NATS: workers need a password and a user name of their own")
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, fmt.Errorf("embedded NATS: %w", err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("embedded NATS: the port of %s is not a number from 0 to 65535", c.Listen)
	}
	o.DontListen, o.Host, o.Port = false, host, int(number)
	if number == 0 {
		o.Port = server.RANDOM_PORT
	}
	return o, nil
}

// ClientURL returns the address for TCP clients; "" without Listen. It stays the same until Stop.
func (s *Server) ClientURL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}

// Conn returns connections inside the process, with full rights.
func (s *Server) Conn() nats.InProcessConnProvider { return s }

// InProcessConn implements nats.InProcessConnProvider. It fails while the server is being restarted; the client
// retries.
func (s *Server) InProcessConn() (net.Conn, error) {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	if running == nil {
		return nil, errNotRunning
	}
	return running.InProcessConn()
}

// Stop stops the server and waits until its files are closed. It may be called more than once.
func (s *Server) Stop() {
	s.stop()
	s.watching.Wait()
	s.halt()
	_ = s.lock.Unlock() // the lock ends with the process in any case
}

// halt stops the server that is running.
func (s *Server) halt() {
	s.mu.Lock()
	running := s.running
	s.running = nil
	s.mu.Unlock()
	if running != nil {
		drain(running)
		running.Shutdown()
		running.WaitForShutdown()
	}
}

// drain ends the connections and waits until their requests are done. nats-server does not wait for them: a stream
// that is made while it shuts down stays open beside the next server on its files.
func drain(running *server.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	for ctx.Err() == nil {
		connections, err := running.Connz(&server.ConnzOptions{Limit: maxConnections})
		if err != nil {
			return
		}
		for _, c := range connections.Conns {
			_ = running.DisconnectClientByID(c.Cid) // an error means that it has gone
		}
		requests, err := running.Jsz(nil)
		if err != nil || len(connections.Conns) == 0 && requests.API.Inflight == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(settleEvery):
		}
	}
}
