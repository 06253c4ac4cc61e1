package probe_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/outbound"
	"github.com/idplatform/idplatform/pkg/outbound/outboundtest"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/identity-sources/internal/probe"
)

// impatient tests a connection within 100 milliseconds.
func impatient(t *testing.T, code string, fields object) probe.Result {
	t.Helper()
	config := outbound.Config{AllowPrivate: true}
	client := outbound.New(config)
	t.Cleanup(client.CloseIdleConnections)
	ctx, cancel := context.WithTimeout(tenant(t), 100*time.Millisecond)
	defer cancel()
	result, err := probe.New(client, outbound.NewDialer(config)).Test(ctx, find(t, code), settings(t, fields), false)
	require.NoError(t, err)
	return result
}

// talker is a server that sends a text to every client, without end if endless, and then waits until the client
// disconnects.
func talker(t *testing.T, says string, endless bool) (host, port string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	t.Cleanup(func() { listener.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if strings.HasPrefix(says, "HTTP") { // HTTP clients refuse an answer before the request
				_, err = conn.Read(make([]byte, 1))
			}
			for err == nil && says != "" {
				if _, err = io.WriteString(conn, says); !endless {
					break
				}
			}
			_, _ = io.Copy(io.Discard, conn) // until the client disconnects
			conn.Close()
		}
	}()
	host, port, err = net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return host, port
}

// late is in the message of a step that took too long.
const late = "no answer in time"

// A server that sends nothing, or stops in the middle of its answer, is reported as slow.
func TestSlowAnswers(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"nothing": "", "the beginning of HTTP": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
		"half a greeting": "220-wel", "half a packet": "0",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, port := talker(t, says, false)
			at := net.JoinHostPort(host, port)
			if says == "" {
				requireFailure(t, impatient(t, "oidc", object{"Issuer": "https://" + at}), "discovery", late)
				requireFailure(t, impatient(t, "ldap", object{"Url": "ldaps://" + at, "BaseDn": "dc=test"}), "connect",
					late)
			}
			if strings.HasPrefix(says, "HTTP") {
				requireFailure(t, impatient(t, "oidc", object{"Issuer": "http://" + at}), "discovery", late)
				requireFailure(t, impatient(t, "saml", object{"MetadataUrl": "http://" + at}), "metadata", late)
				requireFailure(t, impatient(t, "cas", object{"ServerUrl": "http://" + at}), "ticket validation", late)
				return
			}
			requireFailure(t, impatient(t, "mfa_mail",
				object{"Host": host, "Port": json.Number(port), "From": "a@acme.test"}), "connect", late)
			requireFailure(t, impatient(t, "ldap", object{"Url": "ldap://" + at, "BaseDn": "dc=test"}), "connect", late)
		})
	}
}

// An endless answer is refused when it is too large.
func TestEndlessAnswers(t *testing.T) {
	t.Parallel()
	const large = "too large"
	filler := strings.Repeat("x", 1<<10)
	host, port := talker(t, "220-"+filler+"\r\n", true)
	requireFailure(t, run(t, good(t), "mfa_mail",
		object{"Host": host, "Port": json.Number(port), "From": "a@acme.test"}), "connect", large)
	host, port = talker(t, filler, true)
	requireFailure(t, run(t, good(t), "mfa_mail",
		object{"Host": host, "Port": json.Number(port), "From": "a@acme.test"}), "connect", large)
	host, port = talker(t, "\x04\x84\x7f\xff\xff\xff"+filler, true) // a text of 2 GiB
	requireFailure(t, run(t, good(t), "ldap",
		object{"Url": "ldap://" + net.JoinHostPort(host, port), "BaseDn": "dc=test"}), "connect", large)

	id := good(t)
	endless := web(t, id, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := io.WriteString(w, filler); err != nil {
				return
			}
		}
	}))
	requireFailure(t, run(t, id, "oidc", object{"Issuer": endless}), "discovery", large)
	requireFailure(t, run(t, id, "saml", object{"MetadataUrl": endless}), "metadata", large)
	requireFailure(t, run(t, id, "cas", object{"ServerUrl": endless}), "ticket validation", large)
}

// A name that resolves to a private address, the first or the second time, is refused in every protocol.
func TestNamesWithPrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"} {
		config := outbound.Config{Resolver: outboundtest.Resolver([]string{address})}
		for code, fields := range map[string]object{
			"oidc":     {"Issuer": "https://login.acme.test"},
			"saml":     {"MetadataUrl": "http://login.acme.test/metadata"},
			"cas":      {"ServerUrl": "https://login.acme.test/cas"},
			"ldap":     {"Url": "ldap://login.acme.test", "BaseDn": "dc=test"},
			"mfa_mail": {"Host": "login.acme.test", "From": "a@acme.test"},
		} {
			r := runWith(t, config, code, fields)
			require.False(t, r.OK)
			require.Len(t, r.Steps, 1, code)
			require.Contains(t, r.Steps[0].Message, "private", code)
		}
	}

	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	require.NoError(t, err)
	issuer := "http://login.acme.test:" + port
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		_ = json.NewEncoder(w).Encode(object{
			"issuer": issuer, "authorization_endpoint": issuer + "/a", "token_endpoint": issuer + "/t",
			"jwks_uri": issuer + "/keys",
		})
	})
	rebinding := outbound.Config{AllowPrivate: true,
		Resolver: outboundtest.Resolver([]string{"127.0.0.1"}, []string{"169.254.169.254"})}
	requireFailure(t, runWith(t, rebinding, "oidc", object{"Issuer": issuer}), "keys", "private")
}

// A tenant's many tests of a server that does not answer keep no other tenant waiting.
func TestSlowTestsDelayTheirTenantOnly(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	arrived := make(chan struct{}, 100)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			arrived <- struct{}{}
		}
	}()
	config := outbound.Config{AllowPrivate: true}
	client := outbound.New(config)
	t.Cleanup(client.CloseIdleConnections)
	prober := probe.New(client, outbound.NewDialer(config))
	of := find(t, "ldap")
	fields := settings(t, object{"Url": "ldap://" + listener.Addr().String(), "BaseDn": "dc=acme"})
	slow, stop := context.WithCancel(tenant(t))
	var running sync.WaitGroup
	for range 40 {
		running.Go(func() { _, _ = prober.Test(slow, of, fields, false) })
	}
	for range 4 { // as many as a tenant may run
		<-arrived
	}
	_, err = prober.Test(request.System(t.Context(), "globex"), of, fields, true)
	require.NoError(t, err)
	require.Empty(t, arrived, "the others wait for their turn")
	stop()
	running.Wait()
}
