package gateway

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/forwarded"
	"github.com/idplatform/idplatform/pkg/secret"
)

var forwardCases = map[string]struct {
	peer      string
	sent      http.Header
	tls       bool
	client    string
	wantProto string
	wantHost  string
}{
	"an untrusted peer": {
		peer: "203.0.113.9:1",
		sent: http.Header{
			"X-Forwarded-For": {"1.2.3.4"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"evil"},
			"Forwarded": {"for=1.2.3.4"},
		},
		client: "203.0.113.9", wantProto: "http", wantHost: "api.example",
	},
	"TLS at the gateway": {
		peer: "203.0.113.9:1", tls: true, client: "203.0.113.9", wantProto: "https", wantHost: "api.example",
	},
	"a trusted load balancer": {
		peer: "10.1.1.1:1",
		sent: http.Header{
			"X-Forwarded-For": {"203.0.113.9"}, "X-Forwarded-Proto": {"https"},
			"X-Forwarded-Host": {"public.example"},
		},
		client: "203.0.113.9", wantProto: "https", wantHost: "public.example",
	},
	"addresses that the client sent to the load balancer": {
		peer: "10.1.1.1:1", sent: http.Header{"X-Forwarded-For": {"1.1.1.1, 203.0.113.9", "10.2.2.2"}},
		client: "203.0.113.9", wantProto: "http", wantHost: "api.example",
	},
	"a load balancer that writes ports": {
		peer: "10.1.1.1:1", sent: http.Header{"X-Forwarded-For": {"1.1.1.1:5, 203.0.113.9:61234"}},
		client: "203.0.113.9", wantProto: "http", wantHost: "api.example",
	},
	"a load balancer that writes ports, over IPv6": {
		peer: "[fd00::1]:1", sent: http.Header{"X-Forwarded-For": {"[2001:db8::7]:61234"}},
		client: "2001:db8::7", wantProto: "http", wantHost: "api.example",
	},
	"values that are not valid": {
		peer: "10.1.1.1:1", sent: http.Header{"X-Forwarded-For": {"unknown"}, "X-Forwarded-Proto": {"gopher"}},
		client: "10.1.1.1", wantProto: "http", wantHost: "api.example",
	},
	"IPv4 in IPv6": {
		peer: "[::ffff:203.0.113.9]:1", client: "203.0.113.9", wantProto: "http", wantHost: "api.example",
	},
	"a load balancer over IPv6": {
		peer: "[fd00::1]:1", sent: http.Header{"X-Forwarded-For": {"2001:db8::7"}},
		client: "2001:db8::7", wantProto: "http", wantHost: "api.example",
	},
	"a peer without an address": {
		peer: "pipe", sent: http.Header{"X-Forwarded-For": {"1.2.3.4"}}, wantProto: "http", wantHost: "api.example",
	},
}

func TestForward(t *testing.T) {
	t.Parallel()
	proxies, err := forwarded.ParseProxies([]string{"10.0.0.0/8", "fd00::/8"})
	require.NoError(t, err)
	from := origin{forwarded.Trust{Proxies: proxies}}
	for name, c := range forwardCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodGet, "http://api.example/v1/users", nil)
			r.RemoteAddr = c.peer
			if c.sent != nil {
				r.Header = c.sent
			}
			if c.tls {
				r.TLS = &tls.ConnectionState{}
			}
			client := from.forward(r)
			if c.client == "" {
				require.False(t, client.IsValid())
				require.NotContains(t, r.Header, "X-Forwarded-For")
			} else {
				require.Equal(t, c.client, client.String())
				require.Equal(t, []string{c.client}, r.Header["X-Forwarded-For"])
			}
			require.Equal(t, []string{c.wantProto}, r.Header["X-Forwarded-Proto"])
			require.Equal(t, []string{c.wantHost}, r.Header["X-Forwarded-Host"])
			require.NotContains(t, r.Header, "Forwarded")
		})
	}
}

// The gateway proves to the services that it wrote the address.
func TestForwardIsProven(t *testing.T) {
	t.Parallel()
	key := forwarded.NewKey(secret.New("shared"))
	r := httptest.NewRequest(http.MethodGet, "http://api.example/v1/users", nil)
	r.RemoteAddr = "203.0.113.9:1"
	r.Header.Set("X-Request-Id", "r-1")
	r.Header.Set(forwarded.ProofHeader, "forged")
	origin{forwarded.Trust{Gateway: key}}.forward(r)
	r.RemoteAddr = "10.0.0.2:1" // the gateway's, for the service
	require.Equal(t, "203.0.113.9", forwarded.Trust{Gateway: key}.Client(r).String())
}

// The console in a process of its own passes on what it got from the gateway, and so keeps the client's address.
func TestForwardBelievesItsOwnProof(t *testing.T) {
	t.Parallel()
	from := origin{forwarded.Trust{Gateway: forwarded.NewKey(secret.New("shared"))}}
	r := httptest.NewRequest(http.MethodPost, "https://api.example/console/api/v1/users", nil)
	r.RemoteAddr = "203.0.113.9:1"
	r.TLS = &tls.ConnectionState{}
	r.Header.Set("X-Request-Id", "r-1")
	from.forward(r)

	again := httptest.NewRequest(http.MethodPost, "http://gateway:8080/v1/users", nil)
	again.RemoteAddr = "10.0.0.8:1" // the console's
	again.Header = r.Header.Clone()
	require.Equal(t, "203.0.113.9", from.forward(again).String())
	require.Equal(t, "https", again.Header.Get("X-Forwarded-Proto"))
	require.Equal(t, "api.example", again.Header.Get("X-Forwarded-Host"))

	again.Header = r.Header.Clone()
	again.Header.Set("X-Forwarded-For", "1.2.3.4")
	require.Equal(t, "10.0.0.8", from.forward(again).String(), "an address that the proof is not of")
	require.Equal(t, "http", again.Header.Get("X-Forwarded-Proto"))
}
