// Package embedded runs a NATS server with JetStream inside the process: the event store of a platform that is one program.
//
// What a crash can lose. An acknowledged message has been handed to the operating system, so the death of the process (kill -9, a
// panic, out of memory) loses none. A power cut or a kernel crash can lose what was acknowledged after the last Sync:
// whoever must not lose a message keeps it until a Sync has come back and sends it again after the next start, as
// outbox.Relay does. Consumers that were further than the events that are left are set back by nats-server, so that
// they see what is sent again under the same numbers.
//
// What a full disk does. JetStream takes no more messages, for good; the server is restarted within seconds after there
// is space again.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const (
	// MaxPayload is the largest message that the server takes, in bytes. It must not be below outbox.MaxSize plus headers.
	MaxPayload = 8 << 20

	syncInterval   = time.Second
	readyTimeout   = 5 * time.Second
	maxMemory      = 64 << 20
	maxConnections = 1024
	defaultStore   = 16 << 30
)

// Config says where the server keeps its data and who may reach it.
type Config struct {
	StoreDir string // made if missing; one server at a time may use it
	MaxStore int64  // bytes that all streams may take; 0 means 16 GiB. A full store refuses events: they wait in the outbox

	// Listen is the address for TCP clients, as 127.0.0.1:4222 (port 0: any free one); "" means none.
	Listen string
	// User and Password are for TCP clients. Such a client may follow idp.events.>, directly or with the durable
	// consumer "events" of the stream IDP_EVENTS if there is one, and nothing else: see admitReaders. Both are needed
	// with Listen.
	User, Password string

	Log *slog.Logger
}

// PortBusyError says that another program listens on the address.
type PortBusyError struct {
	Addr  string
	cause error
}

func (e *PortBusyError) Error() string { return "embedded NATS: " + e.Addr + " is in use" }

// Unwrap gives the operating system's error.
func (e *PortBusyError) Unwrap() error { return e.cause }

// ErrStoreBusy says that another server, maybe of another process, uses the folder.
var ErrStoreBusy = errors.New("embedded NATS: the folder is in use by another process")

// Server is a NATS server that runs, and is started anew on its files where it no longer takes messages: see watch.
type Server struct {
	config  Config
	options *server.Options
	log     *logger
	lock    *flock.Flock
	synced  synced

	mu      sync.Mutex
	running *server.Server // nil while it is being restarted, and after Stop
	url     string         // for TCP clients

	stopping context.Context
	stop     context.CancelFunc
	watching sync.WaitGroup
}

// Start runs a server and waits until it is ready, which takes longest after an unclean end, when the store is read
// again. It fails with
// *PortBusyError or ErrStoreBusy where those are the cause.
func Start(c Config) (*Server, error) {
	options, err := c.options()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.StoreDir, 0o700); err != nil {
		return nil, fmt.Errorf("embedded NATS: %w", err)
	}
	// JetStream itself does not notice a second server on its files and would damage them.
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

// run starts the server that connections go to from then on.
func (s *Server) run() error {
	// The server would log a busy port as an error of its own and say no more than that it did not get ready.
	if err := s.config.probe(); err != nil {
		return err
	}
	options, guard := s.options.Clone(), newGuard(s.config.User, s.config.Password)
	options.CustomClientAuthentication = guard
	started, err := server.NewServer(options)
	if err != nil {
		return fmt.Errorf("embedded NATS: %w", err)
	}
	s.log.fatal.Store(nil)
	started.SetLoggerV2(s.log, false, false, false)
	started.Start()
	err = s.config.admitReaders(started, guard)
	// Start returns after recovery, however long that takes, and only logs what went wrong.
	if err == nil && (s.log.fatal.Load() != nil || !started.ReadyForConnections(readyTimeout) || !started.JetStreamEnabled()) {
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
		// A server that is started anew must be where the clients look for it.
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

// startError tells why the server did not get ready.
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

// ClientURL is where TCP clients connect; "" without Listen. It stays the same until Stop.
func (s *Server) ClientURL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}

// Conn gives connections that stay in the process and have full rights.
func (s *Server) Conn() nats.InProcessConnProvider { return s }

// InProcessConn implements nats.InProcessConnProvider. It fails while the server is being restarted; the client tries
// again.
func (s *Server) InProcessConn() (net.Conn, error) {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	if running == nil {
		return nil, errors.New("embedded NATS: not running now")
	}
	return running.InProcessConn()
}

// Stop ends the server and waits until its files are closed. It may be called more than once.
func (s *Server) Stop() {
	s.stop()
	s.watching.Wait()
	s.halt()
	_ = s.lock.Unlock() // the lock ends with the process anyhow
}

// halt ends the server that runs now.
func (s *Server) halt() {
	s.mu.Lock()
	running := s.running
	s.running = nil
	s.mu.Unlock()
	if running != nil {
		running.Shutdown()
		running.WaitForShutdown()
	}
}
