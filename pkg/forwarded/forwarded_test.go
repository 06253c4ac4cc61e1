package forwarded_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/forwarded"
	"github.com/idplatform/idplatform/pkg/secret"
)

func request(peer, id string, forwardedFor ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = peer
	r.Header["X-Request-Id"] = []string{id}
	if len(forwardedFor) > 0 {
		r.Header["X-Forwarded-For"] = forwardedFor
	}
	return r
}

// Only the gateway's proof of this address and this request is believed.
func TestGatewayProvesItself(t *testing.T) {
	t.Parallel()
	key := forwarded.NewKey(secret.New("shared"))
	trust := forwarded.Trust{Gateway: forwarded.NewKey(secret.New("shared"))}
	r := request("10.0.0.7:1", "r-1", "1.2.3.4")
	key.Set(r.Header, netip.MustParseAddr("203.0.113.9"))
	require.Equal(t, "203.0.113.9", trust.Client(r).String())

	other := r.Clone(t.Context())
	other.Header.Set("X-Forwarded-For", "1.2.3.4")
	require.Equal(t, "10.0.0.7", trust.Client(other).String(), "another address")
	other = r.Clone(t.Context())
	other.Header.Set("X-Request-Id", "r-2")
	require.Equal(t, "10.0.0.7", trust.Client(other).String(), "another request")
	for name, nobody := range map[string]forwarded.Trust{
		"another secret": {Gateway: forwarded.NewKey(secret.New("other"))}, "none": {},
	} {
		require.Equal(t, "10.0.0.7", nobody.Client(r).String(), name)
	}
	require.Equal(t, "10.0.0.7", trust.Client(request("10.0.0.7:1", "r-1", "1.2.3.4")).String(), "no proof")

	key.Set(r.Header, netip.Addr{})
	require.NotContains(t, r.Header, "X-Forwarded-For")
	require.NotContains(t, r.Header, forwarded.ProofHeader)
	var without *forwarded.Key
	r.Header.Set(forwarded.ProofHeader, "from the client")
	without.Set(r.Header, netip.MustParseAddr("203.0.113.9"))
	require.NotContains(t, r.Header, forwarded.ProofHeader, "a client's is dropped")
	require.Nil(t, forwarded.NewKey(secret.String{}))
	require.NotContains(t, fmt.Sprintf("%+v", key), "115 104", "the secret's bytes")
}

func TestProxiesAreBelieved(t *testing.T) {
	t.Parallel()
	proxies, err := forwarded.ParseProxies([]string{"10.0.0.0/8"})
	require.NoError(t, err)
	trust := forwarded.Trust{Proxies: proxies}
	require.Equal(t, "203.0.113.9", trust.Client(request("10.0.0.7:1", "r", "1.2.3.4, 203.0.113.9, 10.1.1.1")).String())
	require.Equal(t, "192.0.2.1", trust.Client(request("192.0.2.1:1", "r", "1.2.3.4")).String())
	require.Equal(t, "192.0.2.1", trust.Client(request("[::ffff:192.0.2.1]:1", "r")).String())
	require.False(t, trust.Client(request("pipe", "r", "1.2.3.4")).IsValid())
	_, err = forwarded.ParseProxies([]string{"10.0.0.0"})
	require.ErrorContains(t, err, "trusted_proxies")
}
