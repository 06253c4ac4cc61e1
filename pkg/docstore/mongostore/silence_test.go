package mongostore

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// silencer is a proxy that can stop to forward, without closing anything: as if the server's machine had lost power.
type silencer struct {
	listener net.Listener
	to       string
	silent   chan struct{} // closed: nothing is forwarded any more
	all      sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

func newSilencer(t *testing.T, to string) *silencer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &silencer{listener: listener, to: to, silent: make(chan struct{})}
	s.all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.forward(conn)
		}
	})
	t.Cleanup(s.close)
	return s
}

func (s *silencer) forward(client net.Conn) {
	server, err := net.Dial("tcp", s.to)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, client)
	if err != nil {
		return
	}
	s.conns = append(s.conns, server)
	copying := func(to io.Writer, from io.Reader) {
		part := make([]byte, 1<<16)
		for {
			n, err := from.Read(part)
			select {
			case <-s.silent:
				return
			default:
			}
			if err != nil {
				return
			}
			if _, err := to.Write(part[:n]); err != nil {
				return
			}
		}
	}
	s.all.Go(func() { copying(server, client) })
	s.all.Go(func() { copying(client, server) })
}

func (s *silencer) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for _, conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.all.Wait()
}

// TestSilentServer: requests under way are answered when the server vanishes without closing its connections, long
// before the engine's timeout, here an hour.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	read := make(chan struct{}, 1)
	var proxy *silencer
	stop := sync.OnceFunc(func() { close(proxy.silent) })
	s := newFakeServer(t, nil)
	proxy = newSilencer(t, s.address())
	s.hello = bson.D{{Key: "setName", Value: "rs0"}, {Key: "hosts", Value: bson.A{proxy.listener.Addr().String()}},
		{Key: "me", Value: proxy.listener.Addr().String()}}
	o := s.options(t)
	o.URI = "mongodb://" + proxy.listener.Addr().String() + "/?directConnection=true"
	o.Timeout, o.Select = time.Hour, 0
	e, err := Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	s.answer = func(command string, _ bson.Raw) bson.D {
		switch command {
		case "find":
			read <- struct{}{}
		default:
			return nil
		}
		stop()
		return nil
	}
	answers := make(chan error, 1)
	go func() {
		_, err := e.Get(t.Context(), def, "t1", []string{"a"})
		answers <- err
	}()
	<-read
	silent := time.Now()
	require.Equal(t, apperr.Unavailable, apperr.KindOf(<-answers))
	t.Log("answered after", time.Since(silent))
	require.Equal(t, apperr.Unavailable, apperr.KindOf(e.Write(t.Context(), func(tx docstore.EngineTx) error {
		return tx.Insert(t.Context(), def, entry(newThing("a")))
	})))
}

// TestHeartbeats: a silent server is noticed before those who wait for it give up, unless the URI says otherwise.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	of := func(uri string) time.Duration {
		config := options.Client().ApplyURI(uri)
		setHeartbeats(config)
		return *config.HeartbeatInterval + *config.ConnectTimeout
	}
	require.Less(t, of("mongodb://localhost"), defaultSelect)
	require.Equal(t, 9*time.Second, of("mongodb://localhost/?heartbeatFrequencyMS=2000&connectTimeoutMS=7000"))
}
