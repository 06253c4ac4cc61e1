// Package embedded runs a NATS server with JetStream inside the process: the event store of a platform that is one program.
//
// What a crash can lose. An acknowledged message has been handed to the operating system, so the death of the process (kill -9, a
// panic, out of memory) loses none. It is forced to the disk within a second, so a power cut or a kernel crash can lose the events
// acknowledged in the last second, whose outbox rows may be gone by then; the records themselves are never lost, since the store
// forces every commit. A cluster of three NATS servers has no such second.
package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
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
	// User and Password are for TCP clients. Such a client may follow idp.events.>, directly or with one durable consumer
	// named like the user, and nothing else. Both are needed with Listen.
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

// Server is a running NATS server.
type Server struct {
	nats *server.Server
	lock *flock.Flock
}

// Start runs a server and waits until it is ready, which takes longest after an unclean end, when the store is read again. It fails with *PortBusyError or ErrStoreBusy where those are the cause.
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
	s, err := server.NewServer(options)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("embedded NATS: %w", err), lock.Unlock())
	}
	log := &logger{log: c.Log}
	s.SetLoggerV2(log, false, false, false)
	started := &Server{nats: s, lock: lock}
	s.Start()
	// Start returns after recovery, however long that takes, and only logs what went wrong.
	if log.fatal.Load() != nil || !s.ReadyForConnections(readyTimeout) || !s.JetStreamEnabled() {
		started.Stop()
		return nil, c.startError(log.fatal.Load())
	}
	return started, nil
}

// startError finds the cause of a failed start.
func (c Config) startError(logged *string) error {
	if c.Listen != "" {
		probe, err := net.Listen("tcp", c.Listen)
		if errors.Is(err, syscall.EADDRINUSE) {
			return &PortBusyError{c.Listen, err}
		}
		if err != nil {
			return fmt.Errorf("embedded NATS: %w", err)
		}
		_ = probe.Close()
	}
	if logged != nil {
		return fmt.Errorf("embedded NATS: %s", *logged)
	}
	return fmt.Errorf("embedded NATS: not ready after %s", readyTimeout)
}

func (c Config) options() (*server.Options, error) {
	if c.StoreDir == "" {
		return nil, errors.New("embedded NATS: no folder given")
	}
	o := &server.Options{
		ServerName:                 "idplatform",
		DontListen:                 true,
		NoSigs:                     true,
		MaxPayload:                 MaxPayload,
		MaxConn:                    maxConnections,
		JetStream:                  true,
		DisableJetStreamBanner:     true,
		StoreDir:                   c.StoreDir,
		SyncInterval:               syncInterval,
		JetStreamMaxMemory:         maxMemory,
		JetStreamMaxStore:          defaultStore,
		CustomClientAuthentication: newGuard(c.User, c.Password),
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

// ClientURL is where TCP clients connect; "" without Listen.
func (s *Server) ClientURL() string {
	if addr := s.nats.Addr(); addr != nil {
		return "nats://" + addr.String()
	}
	return ""
}

// Conn gives connections that stay in the process and have full rights.
func (s *Server) Conn() nats.InProcessConnProvider { return s.nats }

// Stop ends the server and waits until its files are closed. It may be called more than once.
func (s *Server) Stop() {
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
	_ = s.lock.Unlock() // the lock ends with the process anyhow
}
