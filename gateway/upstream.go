package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/idplatform/idplatform/pkg/weburl"
)

// Upstream is where a service is reached: a handler in this process, or another process. Make it with InProcess or
// Remote.
type Upstream struct {
	handler http.Handler
	ready   func() (warnings []string, err error)
	url     *url.URL // nil for a service in this process
}

// InProcess is a service in this process, called as a function. ready returns the reason why it cannot serve, nil if it
// can, and what it does not have and works without; it must return within a second.
func InProcess(handler http.Handler, ready func() (warnings []string, err error)) Upstream {
	return Upstream{handler: handler, ready: ready}
}

// Remote is a service at a base URL like http://users:8080: a scheme and a host without a path, because request paths
// are passed on unchanged.
func Remote(base string) (Upstream, error) {
	u, err := weburl.HTTP(base)
	if err != nil {
		return Upstream{}, err
	}
	if u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/" {
		return Upstream{}, errors.New("must be http(s)://host[:port] without path or query")
	}
	return Upstream{url: u}, nil
}

// Remotes makes an Upstream for each service's URL. The error names all faulty ones.
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

// readyTimeout bounds one request to /readyz of a service.
const readyTimeout = time.Second

// maxReadyAnswer bounds the answer to such a request.
const maxReadyAnswer = 64 << 10

// isReady asks the service whether it is ready: its function, or its /readyz.
func (u Upstream) isReady(ctx context.Context, client *http.Client) (warnings []string, err error) {
	if u.url == nil {
		return u.ready()
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.url.JoinPath("readyz").String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/readyz answered %d", resp.StatusCode)
	}
	var answer struct {
		Warnings []string `json:"warnings"`
	}
	// A body that cannot be decoded has no warnings; the status alone says that the service is ready.
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxReadyAnswer)).Decode(&answer)
	return answer.Warnings, nil
}

// newTransport makes the connections to services in other processes. The pool keeps as many idle connections as there
// can be requests. It closes them after 30 s without use, which must be sooner than the services do: otherwise a POST
// can be sent on a connection that was just closed.
func newTransport(maxConns int) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Protocols:              &protocols,
		DialContext:            dialCounted,
		TLSHandshakeTimeout:    5 * time.Second,
		MaxIdleConnsPerHost:    maxConns,
		IdleConnTimeout:        30 * time.Second,
		DisableCompression:     true, // the client gets exactly what the service sent
		MaxResponseHeaderBytes: 64 << 10,
	}
}
