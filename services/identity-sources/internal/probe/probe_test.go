package probe_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/outbound"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
	"github.com/idplatform/idplatform/services/identity-sources/internal/probe"
	"github.com/idplatform/idplatform/services/identity-sources/internal/provider"
)

func TestMain(m *testing.M) { leaks.Main(m) }

type object = map[string]any

// identity is the key of a server with a self-signed certificate.
type identity struct {
	tls *tls.Config
	pem string
	der []byte
}

func newIdentity(t *testing.T, host string, until time.Duration) identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(until),
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	return identity{
		tls: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
			MinVersion: tls.VersionTLS12},
		pem: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), der: der,
	}
}

// good is a valid identity of this machine.
func good(t *testing.T) identity { return newIdentity(t, "127.0.0.1", time.Hour) }

// web serves HTTPS under an identity, and returns its address.
func web(t *testing.T, id identity, handler http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = id.tls
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// run tests a connection with a prober that may connect to this machine and trusts an identity.
func run(t *testing.T, trusted identity, code string, fields object) probe.Result {
	t.Helper()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM([]byte(trusted.pem)))
	return runWith(t, outbound.Config{AllowPrivate: true, RootCAs: roots}, code, fields)
}

func runWith(t *testing.T, config outbound.Config, code string, fields object) probe.Result {
	t.Helper()
	client := outbound.New(config)
	t.Cleanup(client.CloseIdleConnections)
	result, err := probe.New(client, outbound.NewDialer(config)).Test(tenant(t), find(t, code), settings(t, fields),
		false)
	require.NoError(t, err)
	return result
}

func tenant(t *testing.T) context.Context { return request.System(t.Context(), "acme") }

func find(t *testing.T, code string) *provider.Provider {
	t.Helper()
	p, ok := provider.Builtin().Find(code)
	require.True(t, ok)
	return p
}

func settings(t *testing.T, fields object) probe.Config {
	t.Helper()
	config := probe.Config{}
	for name, value := range fields {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		config[name] = text
	}
	return config
}

// requireFailure checks that the test failed at a step, with a message that contains the text.
func requireFailure(t *testing.T, r probe.Result, step, message string) {
	t.Helper()
	require.False(t, r.OK)
	last := r.Steps[len(r.Steps)-1]
	require.Equal(t, step, last.Name, "%+v", r.Steps)
	require.False(t, last.OK)
	require.Contains(t, last.Message, message)
}

// requireSuccess checks that the test has these steps and that all succeeded.
func requireSuccess(t *testing.T, r probe.Result, steps ...string) {
	t.Helper()
	require.True(t, r.OK, "%+v", r.Steps)
	var names []string
	for _, s := range r.Steps {
		names = append(names, s.Name)
	}
	require.Equal(t, steps, names)
}

func TestShapes(t *testing.T) {
	t.Parallel()
	for _, p := range provider.Builtin().List() {
		if p.Check != provider.ShapeCheck {
			continue
		}
		prober := probe.New(nil, nil)
		result, err := prober.Test(tenant(t), p, p.Example, false)
		require.NoError(t, err)
		require.True(t, result.OK, "%s: %+v", p.ProviderCode, result.Steps)
		require.NotEmpty(t, result.Steps)
		broken := probe.Config{}
		for name := range p.Example {
			broken[name] = json.RawMessage(`"?"`)
		}
		result, err = prober.Test(tenant(t), p, broken, false)
		require.NoError(t, err)
		require.False(t, result.OK)
	}
	requireSuccess(t, runWith(t, outbound.Config{}, "mfa_otp", nil), "settings")
}

func TestOfflineAsksNobody(t *testing.T) {
	t.Parallel()
	result, err := probe.New(nil, nil).Test(tenant(t), find(t, "oidc"),
		settings(t, object{"Issuer": "https://nobody.test"}), true)
	require.NoError(t, err)
	requireSuccess(t, result, "settings")
}

// Tests of no protocol reach private addresses.
func TestPrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	address := listener.Addr().String()
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	for name, r := range map[string]probe.Result{
		"oidc": runWith(t, outbound.Config{}, "oidc", object{"Issuer": "http://" + address}),
		"saml": runWith(t, outbound.Config{}, "saml", object{"MetadataUrl": "http://[::ffff:127.0.0.1]:" + port}),
		"cas":  runWith(t, outbound.Config{}, "cas", object{"ServerUrl": "http://" + address}),
		"ldap": runWith(t, outbound.Config{}, "ldap", object{"Url": "ldap://" + address, "BaseDn": "dc=test"}),
		"mail": runWith(t, outbound.Config{}, "mfa_mail",
			object{"Host": host, "Port": json.Number(port), "From": "a@acme.test"}),
	} {
		require.Len(t, r.Steps, 1, name)
		require.Contains(t, r.Steps[0].Message, "private", name)
	}
}

// A test ends when its caller disconnects, although the server sends nothing.
func TestDisconnectedCaller(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	ctx, cancel := context.WithCancel(tenant(t))
	prober := probe.New(nil, outbound.NewDialer(outbound.Config{AllowPrivate: true}))
	done := make(chan error)
	go func() {
		_, err := prober.Test(ctx, find(t, "ldap"),
			settings(t, object{"Url": "ldap://" + listener.Addr().String(), "BaseDn": "dc=test"}), false)
		done <- err
	}()
	conn, err := listener.Accept()
	require.NoError(t, err)
	defer conn.Close()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}
