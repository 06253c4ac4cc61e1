package outbound

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/outbound/outboundtest"
)

// neighbour starts a server on loopback that counts its requests.
func neighbour(t *testing.T, handler http.HandlerFunc) (server *httptest.Server, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if handler != nil {
			handler(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server, asked
}

func client(t *testing.T, cfg Config) *http.Client {
	t.Helper()
	c := New(cfg)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// get reads the whole response body.
func get(t *testing.T, c *http.Client, target string) (*http.Response, []byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	require.NoError(t, err)
	resp, err := c.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

// names is a resolver that returns answers one after another, and then the last one again and again.
var names = outboundtest.Resolver

func port(t *testing.T, server *httptest.Server) string {
	t.Helper()
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	return u.Port()
}

// loopbacks are forms of addresses that lead to this machine, as hosts of URLs.
var loopbacks = []string{
	"127.0.0.1", "127.1.2.3", "0.0.0.0", "localhost", "[::1]", "[::]",
	// IPv4 in IPv6
	"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]",
	"[64:ff9b::7f00:1]", "[64:ff9b::127.0.0.1]", "[64:ff9b:1::7f00:1]", // NAT64
	"[2002:7f00:1::]", "[2001:0:4136:e378:8000:63bf:80ff:fffe]", // 6to4, Teredo
	"[::1%25lo]", "[fe80::1%25lo]", "[fe80::1%25eth0]", // with a zone
	"[::ffff:10.0.0.1]", "[64:ff9b::a00:1]", "[fec0::1]", "[fd00:ec2::254]", "169.254.169.254", // others of the network
	"１２７.0.0.1", "127。0。0。1", "①②⑦.⓪.⓪.①", // what becomes 127.0.0.1 in the mapping of names (UTS 46)
	"harmless.example", "user:pass@harmless.example", "harmless.example@127.0.0.1",
}

// numbers are forms of 127.0.0.1 that some resolvers take for an address (inet_aton). Here they are names.
var numbers = []string{
	"2130706433", "0x7f000001", "017700000001", "0x7f.1", "0177.0.0.1", "0x7f.0x0.0x0.0x1", "127.1", "127.0.1",
	"127.000.000.001",
	"127.0.0.1.", "0", "00.0.0.0",
}

func TestNeighboursAreNotAsked(t *testing.T) {
	t.Parallel()
	server, asked := neighbour(t, nil)
	p := port(t, server)
	c := client(t, Config{Resolver: names([]string{"127.0.0.1", "10.0.0.1"})})
	for _, host := range loopbacks {
		for _, scheme := range []string{"http", "https"} {
			_, _, err := get(t, c, scheme+"://"+host+":"+p+"/latest/meta-data/")
			require.ErrorIs(t, err, ErrRefused, host)
		}
	}
	for _, host := range numbers {
		for _, resolver := range []*net.Resolver{nil, names([]string{"127.0.0.1"})} {
			_, _, err := get(t, client(t, Config{Resolver: resolver}), "http://"+host+":"+p)
			require.Error(t, err, host)
		}
	}
	require.Zero(t, asked.Load())
}

// The dialer for other protocols has the same policy as the client.
func TestDialerDoesNotReachNeighbours(t *testing.T) {
	t.Parallel()
	server, asked := neighbour(t, nil)
	p := port(t, server)
	dial := func(cfg Config, network, host string) error {
		conn, err := NewDialer(cfg).DialContext(t.Context(), network, net.JoinHostPort(host, p))
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	inside := Config{Resolver: names([]string{"127.0.0.1", "10.0.0.1"})}
	for _, host := range loopbacks {
		u, err := url.Parse("http://" + host)
		require.NoError(t, err)
		// it maps no names
		if host := u.Hostname(); strings.Trim(host, "0123456789abcdefghijklmnopqrstuvwxyz:.%") == "" {
			require.ErrorIs(t, dial(inside, "tcp", host), ErrRefused, host)
		}
	}
	for _, host := range numbers {
		require.Error(t, dial(Config{}, "tcp", host), host)
		require.Error(t, dial(inside, "tcp", host), host)
	}
	require.NoError(t, dial(Config{AllowPrivate: true}, "tcp", "127.0.0.1"))
	for _, network := range []string{"tcp4", "tcp6"} {
		require.Error(t, dial(inside, network, "harmless.example"), network)
	}
	require.ErrorIs(t, dial(Config{AllowPrivate: true}, "udp", "127.0.0.1"), ErrRefused, "another protocol")
	_, err := NewDialer(Config{AllowPrivate: true}).DialContext(t.Context(), "unix", "/var/run/docker.sock")
	require.ErrorIs(t, err, ErrRefused)

	rebinding := Config{AllowPrivate: true, Resolver: names([]string{"127.0.0.1"}, []string{"169.254.169.254"})}
	require.NoError(t, dial(rebinding, "tcp", "rebind.example"))
	require.ErrorIs(t, dial(rebinding, "tcp", "rebind.example"), ErrRefused)
	require.Zero(t, asked.Load(), "no HTTP was spoken")
}

func TestAllowPrivate(t *testing.T) {
	t.Parallel()
	server, asked := neighbour(t, nil)
	c := client(t, Config{AllowPrivate: true})
	_, _, err := get(t, c, server.URL)
	require.NoError(t, err)
	require.EqualValues(t, 1, asked.Load())
	for _, target := range []string{
		"http://169.254.169.254/", "http://[fe80::1]/", "http://0.0.0.0:" + port(t, server), "http://100.100.100.200/",
	} {
		_, _, err = get(t, c, target)
		require.ErrorIs(t, err, ErrRefused, target)
	}
}

// A name whose first look-up gives an allowed address and whose second gives a refused one (DNS rebinding).
func TestRebindingIsRefused(t *testing.T) {
	t.Parallel()
	server, asked := neighbour(t,
		func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	c := client(t, Config{AllowPrivate: true, Resolver: names([]string{"127.0.0.1"}, []string{"169.254.169.254"})})
	target := "http://rebind.example:" + port(t, server)
	_, _, err := get(t, c, target)
	require.NoError(t, err)
	_, _, err = get(t, c, target)
	require.ErrorIs(t, err, ErrRefused)
	require.EqualValues(t, 1, asked.Load())
}

// Of a name's addresses, only the allowed ones are connected to.
func TestNameWithBothKinds(t *testing.T) {
	t.Parallel()
	server, asked := neighbour(t, nil)
	c := client(t, Config{AllowPrivate: true, Resolver: names([]string{"169.254.169.254", "127.0.0.1"})})
	_, _, err := get(t, c, "http://both.example:"+port(t, server))
	require.NoError(t, err)
	require.EqualValues(t, 1, asked.Load())
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	target, asked := neighbour(t, nil)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, location := range []string{target.URL, "http://169.254.169.254/", "//localhost/", "/elsewhere",
			"file:///etc/passwd"} {
			server, first := neighbour(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", location)
				w.Header().Set("Refresh", "0; url="+location)
				w.WriteHeader(status)
			})
			resp, _, err := get(t, client(t, Config{AllowPrivate: true}), server.URL)
			require.NoError(t, err)
			require.Equal(t, status, resp.StatusCode)
			require.EqualValues(t, 1, first.Load())
		}
	}
	require.Zero(t, asked.Load())
}

func TestOtherSchemes(t *testing.T) {
	t.Parallel()
	c := client(t, Config{AllowPrivate: true})
	for _, target := range []string{
		"file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "unix:///run/x.sock", "//127.0.0.1/",
	} {
		body := &closing{Reader: strings.NewReader("x")}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, body)
		require.NoError(t, err)
		_, err = c.Do(req) // there is no body
		require.ErrorIs(t, err, ErrRefused, target)
		require.True(t, body.closed)
	}
}

type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

// A proxy would look names up itself, and connect to what it finds.
func TestNoProxy(t *testing.T) {
	t.Parallel()
	server, asked := neighbour(t, nil)
	target := "http://proxied.example:" + port(t, server)
	c := client(t, Config{AllowPrivate: true, Resolver: names([]string{"127.0.0.1"})})
	_, _, err := get(t, c, target)
	require.NoError(t, err)
	require.EqualValues(t, 1, asked.Load(), "it connects by itself")

	before := proxied.Load()
	usual := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	_, _, err = get(t, usual, target)
	require.Error(t, err)
	require.Equal(t, before+1, proxied.Load(), "another client asks the proxy")
}

func TestBodyIsLimited(t *testing.T) {
	t.Parallel()
	server, _ := neighbour(t, func(w http.ResponseWriter, r *http.Request) {
		body := bytes.Repeat([]byte{'x'}, 1000)
		switch r.URL.Path {
		case "/more":
			body = append(body, 'x')
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(make([]byte, 1<<20))
			_ = z.Close()
			return
		}
		_, _ = w.Write(body)
	})
	c := client(t, Config{AllowPrivate: true, MaxResponseBytes: 1000})
	_, body, err := get(t, c, server.URL+"/just")
	require.NoError(t, err)
	require.Len(t, body, 1000)
	for _, path := range []string{"/more", "/bomb"} {
		_, body, err = get(t, c, server.URL+path)
		require.ErrorIs(t, err, ErrTooLarge, path)
		require.Len(t, body, 1000)
	}
}

// However a body arrives, its reader gets all of it, or the limit and an error.
func TestLimitedBody(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "content")
		limit := rapid.IntRange(0, 100).Draw(t, "limit")
		r := io.Reader(bytes.NewReader(content))
		if rapid.Bool().Draw(t, "byte by byte") {
			r = iotest.OneByteReader(r)
		}
		if rapid.Bool().Draw(t, "end with data") {
			r = iotest.DataErrReader(r)
		}
		b := &limitedBody{ReadCloser: io.NopCloser(r), left: int64(limit)}
		got, err := io.ReadAll(b)
		require.Equal(t, content[:min(limit, len(content))], got)
		if len(content) > limit {
			require.ErrorIs(t, err, ErrTooLarge)
			_, err = b.Read(make([]byte, 1))
			require.ErrorIs(t, err, ErrTooLarge, "a later read fails too")
		} else {
			require.NoError(t, err)
		}
	})
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	server, _ := neighbour(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "slow")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	_, _, err := get(t, client(t, Config{AllowPrivate: true, Timeout: 50 * time.Millisecond}), server.URL)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout())
}

func TestTLS(t *testing.T) {
	t.Parallel()
	start := func(newest uint16) *httptest.Server {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: newest} // an outdated server, on purpose
		server.Config.ErrorLog = discard
		server.EnableHTTP2 = true
		server.StartTLS()
		t.Cleanup(server.Close)
		return server
	}
	old, current := start(tls.VersionTLS11), start(tls.VersionTLS13)
	roots := x509.NewCertPool()
	roots.AddCert(old.Certificate())
	roots.AddCert(current.Certificate())
	c := client(t, Config{AllowPrivate: true, RootCAs: roots})

	resp, _, err := get(t, c, current.URL)
	require.NoError(t, err)
	require.Equal(t, 2, resp.ProtoMajor)
	_, _, err = get(t, c, old.URL)
	require.Error(t, err)
	_, _, err = get(t, client(t, Config{AllowPrivate: true}), current.URL)
	unknown := x509.UnknownAuthorityError{}
	require.ErrorAs(t, err, &unknown)
}

func TestCauseHasNoURL(t *testing.T) {
	t.Parallel()
	_, _, err := get(t, client(t, Config{}), "http://127.0.0.1/hooks/s3cret?token=s3cret")
	require.Contains(t, err.Error(), "s3cret", "without this, Cause would not be needed")
	require.NotContains(t, Cause(err).Error(), "s3cret")
	require.ErrorIs(t, Cause(err), ErrRefused)
	plain := errors.New("plain")
	require.Equal(t, plain, Cause(plain))
	require.NoError(t, Cause(nil))
}

var discard = log.New(io.Discard, "", 0)
