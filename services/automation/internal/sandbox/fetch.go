package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/outbound"
)

const (
	maxHeaders     = 50
	maxHeaderBytes = 16 << 10
)

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
}

// fetch sends a request of the code, and the response to the worker.
func (r *running) fetch(ctx context.Context, payload []byte) error {
	var asked fetchRequest
	if r.fetches++; r.fetches > MaxFetches || json.Unmarshal(payload, &asked) != nil {
		return errProtocol
	}
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // the response is of no use once the worker has ended
		select {
		case <-r.exited:
			cancel()
		case <-sending.Done():
		}
	}()
	response, err := r.send(sending, &asked)
	if ctx.Err() != nil { // the code must not take the end of its time for a fault of the request
		return ctx.Err()
	}
	if err != nil {
		response = fetchResponse{Error: shorten(err.Error(), maxMessage)}
	}
	return r.writeJSON(frameAnswer, response)
}

func (r *running) send(ctx context.Context, asked *fetchRequest) (answer fetchResponse, err error) {
	if r.call.NoFetch != "" {
		return answer, errors.New(r.call.NoFetch)
	}
	request, err := newRequest(ctx, asked)
	if err != nil {
		return answer, err
	}
	if !allowed(r.call.Hosts, request.URL) || len(r.pool.Hosts) > 0 && !allowed(r.pool.Hosts, request.URL) {
		return answer, errors.New("the host is not on the list of allowed hosts")
	}
	for name, value := range r.call.Header {
		request.Header.Set(name, value)
	}
	response, err := r.pool.Client.Do(request)
	if err != nil {
		return answer, errors.New(outbound.Explain(err))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxFetched-r.fetched+1))
	if err != nil {
		return answer, errors.New(outbound.Explain(err))
	}
	if r.fetched += int64(len(body)); r.fetched > maxFetched {
		return answer, fmt.Errorf("the responses of a call have more than %d bytes", maxFetched)
	}
	answer = fetchResponse{Status: response.StatusCode, Headers: map[string]string{}, Body: body}
	for name, values := range response.Header {
		answer.Headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return answer, nil
}

func newRequest(ctx context.Context, asked *fetchRequest) (*http.Request, error) {
	at, err := url.Parse(asked.URL)
	if err != nil || at.Hostname() == "" || at.Scheme != "https" && at.Scheme != "http" || at.User != nil {
		return nil, errors.New("the URL must be absolute, with https or http, and without a user")
	}
	method := strings.ToUpper(asked.Method)
	if method == "" {
		method = http.MethodGet
	}
	if !slices.Contains(methods, method) {
		return nil, fmt.Errorf("the method must be one of %s", strings.Join(methods, ", "))
	}
	request, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(asked.Body))
	if err != nil {
		return nil, err
	}
	size := 0
	for name, value := range asked.Headers {
		size += len(name) + len(value)
		request.Header.Set(name, value)
	}
	if len(asked.Headers) > maxHeaders || size > maxHeaderBytes {
		return nil, errors.New("the request has too many headers")
	}
	return request, nil
}

// allowed reports whether the URL's host and port are in a list of hosts. An entry without a port stands for the
// default ports, 80 and 443.
func allowed(hosts []string, at *url.URL) bool {
	host, port := strings.ToLower(at.Hostname()), at.Port()
	if at.Scheme == "https" && port == "443" || at.Scheme == "http" && port == "80" {
		port = ""
	}
	return slices.ContainsFunc(hosts, func(entry string) bool {
		name, entryPort, _ := strings.Cut(strings.ToLower(entry), ":")
		if entryPort != port {
			return false
		}
		if below, ok := strings.CutPrefix(name, "*"); ok {
			return strings.HasSuffix(host, below) && len(host) > len(below)
		}
		return host == name
	})
}
