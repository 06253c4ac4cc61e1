// Package outbound is the only way out: the HTTP client for every address that somebody else chooses (webhooks, identity
// providers, avatars). It reaches public addresses only, so that nobody makes the platform ask its own neighbours (SSRF).
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
	// ErrRefused is in the chain of every error that says: this is not to be asked. Nothing was sent there.
	ErrRefused = errors.New("outbound: refused")
	// ErrTooLarge is what reading a body ends with when it has more than Config.MaxResponseBytes.
	ErrTooLarge = errors.New("outbound: the answer is too large")
)

// Config limits a client. Zero values mean the defaults.
type Config struct {
	// AllowPrivate permits loopback and private networks too, for development, and where a company's systems are there. Link-local
	// addresses and the metadata services of clouds stay refused.
	AllowPrivate     bool
	Timeout          time.Duration  // of a whole request with its answer's body; default 10 s
	MaxResponseBytes int64          // of a body, after decompression; default 1 MiB
	RootCAs          *x509.CertPool // nil: the machine's
	Resolver         *net.Resolver  // nil: the machine's
}

// New makes a client. It asks http and https URLs only, over TLS 1.2 or newer, follows no redirect (the answer is the redirect), uses
// no proxy, and judges the address that it connects to itself, after the name was resolved, for every connection: a name that
// resolves differently the second time gains nothing.
//
// The errors of its methods quote the URL, whose path and query may be a secret (webhooks): log Cause(err) instead.
func New(cfg Config) *http.Client {
	policy := policy{allowPrivate: cfg.AllowPrivate}
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second, Resolver: cfg.Resolver, Control: policy.control}
	return &http.Client{
		Timeout: cmp.Or(cfg.Timeout, 10*time.Second),
		Transport: &transport{
			maxBytes: cmp.Or(cfg.MaxResponseBytes, 1<<20),
			Transport: &http.Transport{
				DialContext:            dialer.DialContext,
				TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cfg.RootCAs},
				ForceAttemptHTTP2:      true,
				TLSHandshakeTimeout:    5 * time.Second,
				MaxIdleConns:           100,
				MaxIdleConnsPerHost:    4,
				MaxConnsPerHost:        16, // no tenant's slow webhook takes all
				IdleConnTimeout:        30 * time.Second,
				MaxResponseHeaderBytes: 64 << 10,
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Cause takes the URL out of an error of the client.
func Cause(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

type transport struct {
	*http.Transport
	maxBytes int64
}

// RoundTrip refuses other schemes, and limits the body.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		if r.Body != nil {
			_ = r.Body.Close() // as http.RoundTripper demands
		}
		return nil, fmt.Errorf("%w: only http and https are asked", ErrRefused)
	}
	resp, err := t.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = &limitedBody{resp.Body, t.maxBytes}
	return resp, nil
}

// limitedBody fails where there is more than it may give; an io.LimitReader would pass a part for the whole.
type limitedBody struct {
	io.ReadCloser
	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLarge
	}
	if int64(len(p)) > b.left+1 { // one more: is there any?
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, ErrTooLarge
	}
	return n, err
}
