// Package outbound makes the HTTP client for every URL that somebody outside the platform chooses (webhooks, identity
// providers, avatars). The client connects to public addresses only, so that nobody can make the platform send
// requests to its own network (server-side request forgery, SSRF).
package outbound

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

var (
	// ErrRefused is in the chain of every error that means: this URL or address is not allowed. Nothing was sent to
	// it.
	ErrRefused = errors.New("outbound: refused")
	// ErrTooLarge ends the reading of a response body that is larger than Config.MaxResponseBytes.
	ErrTooLarge = errors.New("outbound: the response is too large")
)

// Config limits a client. Zero values mean the defaults.
type Config struct {
	// AllowPrivate permits loopback and private networks too: for development, and for a company whose systems are
	// there. Link-local addresses and the metadata services of clouds remain refused.
	AllowPrivate     bool
	Timeout          time.Duration  // of a whole request including the response body; default 10 s
	MaxResponseBytes int64          // of a response body, after decompression; default 1 MiB
	RootCAs          *x509.CertPool // nil: those of the machine
	Resolver         *net.Resolver  // nil: that of the machine
}

// New makes a client. It accepts http and https URLs only, needs TLS 1.2 or newer, does not follow redirects (it
// returns the redirect as the response) and uses no proxy. It checks the address of every connection after the name
// has been resolved, so a name that resolves to another address the second time (DNS rebinding) cannot pass the
// check.
//
// The errors of its methods quote the URL, whose path and query can contain a secret (webhooks): log Cause(err)
// instead.
func New(cfg Config) *http.Client {
	return &http.Client{
		Timeout: cmp.Or(cfg.Timeout, 10*time.Second),
		Transport: &transport{
			hosts:    newHosts(),
			maxBytes: cmp.Or(cfg.MaxResponseBytes, 1<<20),
			Transport: &http.Transport{
				DialContext:            NewDialer(cfg).DialContext,
				TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cfg.RootCAs},
				ForceAttemptHTTP2:      true,
				TLSHandshakeTimeout:    5 * time.Second,
				MaxIdleConns:           512,
				MaxIdleConnsPerHost:    16,
				IdleConnTimeout:        30 * time.Second,
				MaxResponseHeaderBytes: 64 << 10,
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// NewDialer makes a dialer for protocols other than HTTP, with the same policy: it checks each address after the name
// has been resolved, just before it connects. It connects by TCP only, within 5 s. It uses AllowPrivate and Resolver of
// cfg and ignores the other members.
func NewDialer(cfg Config) *net.Dialer {
	policy := policy{allowPrivate: cfg.AllowPrivate}
	return &net.Dialer{
		Timeout: 5 * time.Second, KeepAlive: 30 * time.Second, Resolver: cfg.Resolver, Control: policy.control,
	}
}

// Cause removes the URL from an error of the client.
func Cause(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

type transport struct {
	*http.Transport
	hosts    *hosts
	maxBytes int64
}

// RoundTrip refuses schemes other than http and https, waits for the tenant's turn at the host, and limits the response
// body.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		if r.Body != nil {
			_ = r.Body.Close() // http.RoundTripper requires it
		}
		return nil, fmt.Errorf("%w: the scheme must be http or https", ErrRefused)
	}
	leave, err := t.hosts.enter(r)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	resp, err := t.Transport.RoundTrip(r)
	if err != nil {
		leave()
		return nil, err
	}
	resp.Body = &limitedBody{ReadCloser: resp.Body, left: t.maxBytes, leave: leave}
	return resp, nil
}

// limitedBody fails if there is more than it may return. An io.LimitReader would return a cut body as if it were the
// whole.
type limitedBody struct {
	io.ReadCloser
	left  int64
	leave func() // may be called more than once
}

func (b *limitedBody) Close() error {
	defer b.leave()
	return b.ReadCloser.Close()
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLarge
	}
	if int64(len(p)) > b.left+1 { // one byte more shows whether the body goes on
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, ErrTooLarge
	}
	return n, err
}
