package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Upstream is where a service answers: a handler in this process, or another process. Make one with InProcess or Remote.
type Upstream struct {
	handler http.Handler
	ready   func() error
	url     *url.URL // nil in process
}

// InProcess is a service of this process, reached by a function call. ready says whether it can serve; it must return at once.
func InProcess(handler http.Handler, ready func() error) Upstream {
	return Upstream{handler: handler, ready: ready}
}

// Remote is a service at a base URL like http://users:8080: a scheme, a host, and no path, for paths are passed on as they are.
func Remote(base string) (Upstream, error) {
	u, err := url.Parse(base)
	if err != nil {
		return Upstream{}, errors.New("is not a URL") // the parser's error would repeat what may hold a password
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/" {
		return Upstream{}, errors.New("must be http(s)://host[:port] and nothing more")
	}
	return Upstream{url: u}, nil
}

// Remotes makes an Upstream of each URL, by the services' names. The error names every bad one.
func Remotes(urls map[string]string) (map[string]Upstream, error) {
	upstreams := make(map[string]Upstream, len(urls))
	var errs []error
	for service, base := range urls {
		u, err := Remote(base)
		if err != nil {
			errs = append(errs, fmt.Errorf("upstreams: %s: %w", service, err))
		}
		upstreams[service] = u
	}
	return upstreams, errors.Join(errs...)
}

// readyTimeout bounds one question whether a service is ready.
const readyTimeout = time.Second

// isReady asks the service: its function, or its /readyz.
func (u Upstream) isReady(ctx context.Context, client *http.Client) error {
	if u.url == nil {
		return u.ready()
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.url.JoinPath("readyz").String(), nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz answered %d", resp.StatusCode)
	}
	return nil
}

// newTransport makes the connections to services in other processes. The pool keeps as many as there can be requests; they are given up
// after 30 s without use, which must be sooner than the services close them, or a POST may meet a connection just closed.
func newTransport(maxConns int) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Protocols:              &protocols,
		DialContext:            dialCounted,
		TLSHandshakeTimeout:    5 * time.Second,
		MaxIdleConnsPerHost:    maxConns,
		IdleConnTimeout:        30 * time.Second,
		DisableCompression:     true, // what the service sent is what the client gets
		MaxResponseHeaderBytes: 64 << 10,
	}
}
