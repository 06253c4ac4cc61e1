package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/propagation"

	"github.com/idplatform/idplatform/pkg/secret"
)

const (
	connectTimeout = 2 * time.Second
	requestTimeout = 5 * time.Second // for one request to JetStream

	maxBatch = 2048 // messages that answer one request; more would be dropped

	// inboxPrefix separates replies to the platform from _INBOX, to which other users of the same NATS account may
	// subscribe.
	inboxPrefix = "_IDP"
)

// Config says where NATS is and how to authenticate.
type Config struct {
	URL       string                     // one or several, joined by commas
	InProcess nats.InProcessConnProvider // a server in this process, instead of URL
	Name      string                     // the service's name, shown by NATS

	CredentialsFile string // user JWT and key, for a NATS with operators
	User, Password  string
	Token           string
	TLSCA           string // PEM files; TLSCert and TLSKey for a client certificate
	TLSCert, TLSKey string

	// Sync forces to the disk what JetStream has acknowledged. It is nil if the acknowledgement already means that it
	// is on a disk, or on those of a quorum.
	Sync func(context.Context) error

	Replicas int           // of the streams; 0 means 1
	MaxAge   time.Duration // of events; 0 means 7 days

	// Patience is the least time that questions wait for their answers. Where asker and asked are one process, silence
	// means that the machine is busy, not that the other side is away.
	Patience time.Duration

	Log *slog.Logger
}

// Bus is a connection to NATS. Its methods are safe for concurrent use.
type Bus struct {
	config Config
	log    *slog.Logger
	nats   *nats.Conn
	js     jetstream.JetStream
	trace  propagation.TraceContext

	background context.Context // ends with Close
	cancel     context.CancelFunc
	running    sync.WaitGroup

	link   *link
	closed chan struct{}

	mu        sync.Mutex
	streams   error // why they may be missing; nil if they exist, or EnsureStreams was not called
	closers   map[*func(context.Context) error]bool
	answers   []*nats.Subscription
	answering sync.WaitGroup
}

// Connect makes a Bus. It waits for NATS for at most 2 s and continues in the background. Errors are about the
// configuration.
func Connect(ctx context.Context, c Config) (*Bus, error) {
	b := &Bus{config: c, log: c.Log, link: newLink(), closed: make(chan struct{}),
		closers: map[*func(context.Context) error]bool{}}
	options, err := b.options()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if b.nats, err = nats.Connect(c.URL, options...); err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", secret.MaskError(err)) // the error may contain the URL
	}
	b.js, err = jetstream.New(b.nats, jetstream.WithDefaultTimeout(requestTimeout),
		jetstream.WithPublishAsyncTimeout(requestTimeout))
	if err != nil {
		b.nats.Close()
		return nil, fmt.Errorf("connect to JetStream: %w", err)
	}
	b.background, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return b, nil
}

func (b *Bus) options() ([]nats.Option, error) {
	c := b.config
	options := []nats.Option{
		nats.Name(c.Name),
		nats.CustomInboxPrefix(inboxPrefix),
		nats.Timeout(connectTimeout),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, 500*time.Millisecond),
		nats.PingInterval(10 * time.Second),
		// Nothing is buffered while NATS is away. A publish then fails at once; the caller knows whether it makes sense
		// to try again.
		nats.ReconnectBufSize(-1),
		// Each request for a batch of messages has a queue, which takes 8 bytes for each message that it can hold.
		nats.SyncQueueLen(maxBatch),
		nats.ConnectHandler(b.connected),
		nats.ReconnectHandler(b.connected),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			b.link.set(false)
			if err != nil {
				b.log.Warn("NATS is away", "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) {
			subject := ""
			if s != nil {
				subject = s.Subject
			}
			b.log.Warn("NATS reports an error", "error", err, "subject", subject)
		}),
		nats.ClosedHandler(func(*nats.Conn) { b.link.set(false); close(b.closed) }),
	}
	if c.InProcess != nil {
		options = append(options, nats.InProcessServer(c.InProcess))
	} else if c.URL == "" {
		return nil, errors.New("no NATS server is configured")
	}
	if c.CredentialsFile != "" {
		options = append(options, nats.UserCredentials(c.CredentialsFile))
	}
	if c.User != "" {
		options = append(options, nats.UserInfo(c.User, c.Password))
	}
	if c.Token != "" {
		options = append(options, nats.Token(c.Token))
	}
	if c.TLSCA != "" {
		options = append(options, nats.RootCAs(c.TLSCA))
	}
	if c.TLSCert != "" || c.TLSKey != "" {
		if _, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey); err != nil {
			return nil, fmt.Errorf("the client certificate for NATS: %w", err)
		}
		options = append(options, nats.ClientCert(c.TLSCert, c.TLSKey))
	}
	return options, nil
}

// connected may be called before Connect has returned.
func (b *Bus) connected(nc *nats.Conn) {
	b.log.Info("NATS is connected", "server", nc.ConnectedServerName())
	b.link.set(true)
}

// Ready returns the reason why the Bus cannot work now; nil if it can.
func (b *Bus) Ready() error {
	if !b.nats.IsConnected() {
		if err := b.nats.LastError(); err != nil {
			return fmt.Errorf("NATS is away: %w", err)
		}
		return errors.New("NATS is away")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.streams
}

// JetStream returns the JetStream context, for those who read or keep the streams.
func (b *Bus) JetStream() jetstream.JetStream { return b.js }

// WhileConnected waits for a connection and returns a context that ends with it, or with ctx: the server that comes
// back may have another stream, or have lost events. The caller calls end when it no longer uses the context.
func (b *Bus) WhileConnected(ctx context.Context) (connected context.Context, end context.CancelFunc, err error) {
	return b.link.wait(ctx)
}

// BeforeClose has Close call stop before it disconnects, unless forget is called earlier.
func (b *Bus) BeforeClose(stop func(context.Context) error) (forget func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closers[&stop] = true
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.closers, &stop)
	}
}

// Close stops those who asked for it (BeforeClose), answers the questions that have arrived, and disconnects. Handlers
// that still run when ctx ends are cancelled.
func (b *Bus) Close(ctx context.Context) error {
	b.mu.Lock()
	closers, answers := slices.Collect(maps.Keys(b.closers)), b.answers
	b.answers = nil
	b.mu.Unlock()

	var errs []error
	for _, stop := range closers {
		errs = append(errs, (*stop)(ctx))
	}
	errs = append(errs, b.drain(ctx, answers))
	b.cancel()
	b.running.Wait()
	b.nats.Close()
	<-b.closed
	return errors.Join(errs...)
}

// IsName reports whether a service, a consumer or a question can have a name: it is one token of a subject.
func IsName(name string) bool { return word.MatchString(name) }

var word = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// Backoff is the delay between attempts that are repeated until one succeeds.
func Backoff() backoff.BackOff {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.Multiplier, wait.MaxInterval = 50*time.Millisecond, 2, 5*time.Second
	return wait
}
