package gateway

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

func serve(t *testing.T, g *Gateway) (url string, stop context.CancelFunc, ended <-chan error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, ln) }()
	return "http://" + ln.Addr().String(), cancel, done
}

func TestDrain(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	g := newGateway(t, map[string]Upstream{Users: local(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/users/slow" {
			close(entered)
			<-leave
		}
		_, _ = io.WriteString(w, "whole")
	})}, func(c *Config) { c.DrainDelay = 300 * time.Millisecond })
	url, stop, ended := serve(t, g.Gateway)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ask := func(path string) (status int, body string, closes bool) {
		resp, err := client.Get(url + path)
		if err != nil {
			return 0, err.Error(), false
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(b), resp.Close
	}
	status, _, closes := ask("/readyz")
	require.Equal(t, 200, status)
	require.False(t, closes)
	slow := make(chan string, 1)
	go func() { _, body, _ := ask("/v1/users/slow"); slow <- body }()
	<-entered

	stop()
	wait.Until(t, g.draining.Load)
	status, _, _ = ask("/readyz")
	require.Equal(t, 503, status, "load balancers see that it stops")
	status, body, closes := ask("/v1/users")
	require.Equal(t, 200, status, "requests that still come are served")
	require.Equal(t, "whole", body)
	require.True(t, closes, "the connection is not used again")

	wait.Until(t, func() bool { // until the listener is closed
		conn, err := net.Dial("tcp", url[len("http://"):])
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	close(leave)
	require.Equal(t, "whole", <-slow, "a running request is answered")
	require.NoError(t, <-ended)
}

func TestDrainHasADeadline(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	g := newGateway(t, map[string]Upstream{Users: local(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})}, func(c *Config) { c.DrainDelay, c.DrainTimeout = 0, 50*time.Millisecond })
	url, stop, ended := serve(t, g.Gateway)
	failed := make(chan error, 1)
	go func() {
		resp, err := http.Get(url + "/v1/users")
		if err == nil {
			resp.Body.Close()
		}
		failed <- err
	}()
	<-entered
	stop()
	require.ErrorIs(t, <-ended, context.DeadlineExceeded)
	require.Error(t, <-failed)
	wait.Until(t, func() bool { return g.inFlight.Load() == 0 })
}

func TestServeSaysWhyItCannot(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, ln.Close())
	require.ErrorContains(t, newGateway(t, nil, nil).Serve(t.Context(), ln), "serve")

	ln, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := newGateway(t, nil, func(c *Config) { c.TLS = TLSConfig{"/nowhere/cert.pem", "/nowhere/key.pem"} })
	require.ErrorContains(t, g.Serve(t.Context(), ln), "tls certificate")
	_, err = net.Dial("tcp", ln.Addr().String())
	require.Error(t, err, "nothing listens")
}

// Every request that is not valid HTTP gets a problem document.
func TestMalformedRequestsAreAnsweredWithProblems(t *testing.T) {
	t.Parallel()
	g := newGateway(t, map[string]Upstream{Users: local(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
	})}, func(c *Config) { c.DrainDelay = 0 })
	url, stop, ended := serve(t, g.Gateway)
	for text, status := range map[string]int{
		"GET /v1/users/%zz HTTP/1.1\r\nHost: x\r\n\r\n":        400,
		"GET / HTTP/1.1\r\n\r\n":                               400,
		"GET /%ff HTTP/1.1\r\nHost: x\r\n\r\n":                 404,
		"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n":                404,
		"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n":              404,
		"BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n":                404,
		"BREW /docs HTTP/1.1\r\nHost: x\r\n\r\n":               405,
		"BREW /openapi.json HTTP/1.0\r\n\r\n":                  405,
		"GET http://other/nothing HTTP/1.1\r\nHost: x\r\n\r\n": 404,
	} {
		conn, err := net.Dial("tcp", url[len("http://"):])
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(wait.Long)))
		_, err = io.WriteString(conn, text)
		require.NoError(t, err)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err, text)
		code := map[int]string{400: "invalid_parameters", 404: "not_found", 405: "method_not_allowed"}[status]
		requireProblem(t, status, code, response.StatusCode, response.Header, response.Body)
		require.NoError(t, conn.Close())
	}
	stop()
	require.NoError(t, <-ended)
}

// A client that sends half a body and waits does not hold a service longer than a request may take.
func TestASlowClientIsCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		read := make(chan error, 1)
		g := newGateway(t, map[string]Upstream{Users: local(func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			read <- err
		})}, nil)
		listener := newPipes()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.Serve(ctx, listener) }()
		client, server := net.Pipe()
		defer client.Close()
		listener.connections <- server
		started := time.Now()
		_, err := io.WriteString(client, "POST /v1/users HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
		require.NoError(t, err)
		go func() { _, _ = io.Copy(io.Discard, client) }()
		require.ErrorIs(t, <-read, os.ErrDeadlineExceeded)
		require.Equal(t, g.config.RequestTimeout+answerGrace, time.Since(started))
		stop()
		require.NoError(t, <-ended)
	})
}

// writeCertificate writes a self-signed certificate and its key.
func writeCertificate(t *testing.T, config TLSConfig, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour),
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	write := func(path, kind string, der []byte) {
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	}
	write(config.CertFile, "CERTIFICATE", cert)
	write(config.KeyFile, "PRIVATE KEY", keyDER)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := TLSConfig{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	writeCertificate(t, files, 1)
	var proto string
	g := newGateway(t, map[string]Upstream{Users: local(func(_ http.ResponseWriter, r *http.Request) {
		proto = r.Header.Get("X-Forwarded-Proto")
	})}, func(c *Config) { c.TLS, c.DrainDelay = files, 0 })
	url, stop, ended := serve(t, g.Gateway)
	insecure := &tls.Config{InsecureSkipVerify: true} // the certificate is self-signed
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: insecure}
	resp, err := (&http.Client{Transport: transport}).Get("https" + url[len("http"):] + "/v1/users")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, 2, resp.ProtoMajor)
	require.Equal(t, "https", proto)
	require.Equal(t, "max-age=31536000", resp.Header.Get("Strict-Transport-Security"))
	outdated := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11} // to be refused
	_, err = tls.Dial("tcp", url[len("http://"):], outdated)
	require.Error(t, err, "TLS 1.1")
	transport.CloseIdleConnections()
	stop()
	require.NoError(t, <-ended)
}

func TestCertificateIsReadAgainWhenItChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := TLSConfig{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	writeCertificate(t, files, 1)
	log := &logs{}
	c, err := newCertificate(files, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	age := time.Now()
	serial := func(checkNow bool) int64 {
		if checkNow {
			c.checked = time.Time{}
		}
		cert, err := c.get(nil)
		require.NoError(t, err)
		leaf, err := x509.ParseCertificate(cert.Certificate[0])
		require.NoError(t, err)
		return leaf.SerialNumber.Int64()
	}
	change := func() { // file times may have a low resolution
		age = age.Add(time.Second)
		for _, f := range []string{files.CertFile, files.KeyFile} {
			require.NoError(t, os.Chtimes(f, age, age))
		}
	}
	writeCertificate(t, files, 2)
	change()
	require.EqualValues(t, 1, serial(false), "the files are not checked at every handshake")
	require.EqualValues(t, 2, serial(true))
	require.NoError(t, os.WriteFile(files.CertFile, []byte("half"), 0o600))
	change()
	require.EqualValues(t, 2, serial(true), "a broken file changes nothing")
	require.Contains(t, log.String(), "old one stays")
	require.NoError(t, os.Remove(files.KeyFile))
	require.EqualValues(t, 2, serial(true))
	writeCertificate(t, files, 3)
	change()
	require.EqualValues(t, 3, serial(true))
}
