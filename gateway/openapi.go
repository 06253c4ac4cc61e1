package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/openapi"
	"github.com/idplatform/idplatform/pkg/problem"
)

const (
	openAPIPath     = "/openapi.json"
	openAPIPathYAML = "/openapi.yaml"
	openAPIPath30   = "/openapi-3.0.json"
	openAPIAge      = 30 * time.Second // the age at which the document is built again
	openAPITimeout  = 5 * time.Second  // for one service to send its document
	maxOpenAPI      = 16 << 20         // bytes of one service's document
)

// openAPI serves the documents of all services as one. The merged document is built at the first request. Later it is
// rebuilt in the background, while requests get the present one. If a service does not answer, its part is missing
// and x-missing-services names it; the request does not fail.
type openAPI struct {
	upstreams map[string]Upstream
	client    *http.Client
	log       *slog.Logger
	ctx       context.Context // ends with the gateway
	cancel    context.CancelFunc
	running   sync.WaitGroup

	building sync.Mutex // allows one build at a time; guards parts
	parts    map[string]openAPIPart

	mu         sync.Mutex // guards the fields below
	current    *openAPIDocument
	refreshing bool
}

// openAPIPart is the last document that a service sent.
type openAPIPart struct {
	etag string
	body []byte
}

type openAPIDocument struct {
	made       time.Time
	json, yaml []byte
	json30     []byte // in version 3.0.3
	etag       string // of the JSON form; the other forms add a suffix
}

func newOpenAPI(upstreams map[string]Upstream, client *http.Client, log *slog.Logger) *openAPI {
	ctx, cancel := context.WithCancel(context.Background())
	return &openAPI{
		upstreams: upstreams, client: client, log: log, ctx: ctx, cancel: cancel, parts: map[string]openAPIPart{},
	}
}

func (o *openAPI) close() {
	o.cancel()
	o.running.Wait()
}

// ServeHTTP answers /openapi.json, /openapi.yaml and /openapi-3.0.json.
func (o *openAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		problem.Write(w, apperr.New(apperr.MethodNotAllowed, "the path has only GET and HEAD"))
		return
	}
	document, err := o.document()
	if err != nil {
		problem.Write(w, err)
		return
	}
	body, contentType, etag := document.json, "application/json; charset=utf-8", document.etag
	switch r.URL.Path {
	case openAPIPathYAML:
		body, contentType, etag = document.yaml, "application/yaml; charset=utf-8", document.etag+"-yaml"
	case openAPIPath30:
		body, etag = document.json30, document.etag+"-3.0"
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("Etag", `"`+etag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body)) // If-None-Match, HEAD
}

// document returns the present document, and starts to build a new one if it is old.
func (o *openAPI) document() (*openAPIDocument, error) {
	o.mu.Lock()
	current := o.current
	if current != nil && time.Since(current.made) >= openAPIAge && !o.refreshing {
		o.refreshing = true
		o.running.Go(func() {
			_, err := o.build(current)
			if err != nil {
				o.log.Error("the OpenAPI document cannot be rebuilt", "error", err)
			}
			o.mu.Lock()
			o.refreshing = false
			o.mu.Unlock()
		})
	}
	o.mu.Unlock()
	if current != nil {
		return current, nil
	}
	return o.build(nil)
}

// build makes the document, unless another goroutine has replaced old meanwhile.
func (o *openAPI) build(old *openAPIDocument) (*openAPIDocument, error) {
	o.building.Lock()
	defer o.building.Unlock()
	o.mu.Lock()
	current := o.current
	o.mu.Unlock()
	if current != old {
		return current, nil
	}
	parts, missing := o.collect()
	merged, clash := mergeOpenAPI(parts, missing)
	if clash != nil {
		o.log.Error("the OpenAPI documents of services conflict; a part is left out", "error", clash)
	}
	document, err := merged.encode()
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	o.current = document
	o.mu.Unlock()
	return document, nil
}

// collect asks all services at the same time for their documents.
func (o *openAPI) collect() (parts map[string]map[string]any, missing []string) {
	var (
		wg sync.WaitGroup
		mu sync.Mutex
	)
	parts = map[string]map[string]any{}
	for service, upstream := range o.upstreams {
		mu.Lock()
		last := o.parts[service]
		mu.Unlock()
		wg.Go(func() {
			part, parsed, err := o.fetch(upstream, last)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				missing = append(missing, service)
				o.log.Warn("a service's OpenAPI document is left out", "upstream", service, "error", err)
				return
			}
			o.parts[service], parts[service] = part, parsed
		})
	}
	wg.Wait()
	slices.Sort(missing)
	return parts, missing
}

// fetch gets a service's document, or uses last if the service answers that it has not changed.
func (o *openAPI) fetch(upstream Upstream, last openAPIPart) (part openAPIPart, parsed map[string]any, err error) {
	ctx, cancel := context.WithTimeout(o.ctx, openAPITimeout)
	defer cancel()
	var resp *http.Response
	if upstream.url == nil {
		resp = callInProcess(ctx, upstream.handler)
	} else if resp, err = o.call(ctx, upstream.url, last.etag); err != nil {
		return part, nil, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && last.etag != "":
		part = last
	case resp.StatusCode == http.StatusOK:
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxOpenAPI+1))
		if err != nil {
			return part, nil, err
		}
		if len(body) > maxOpenAPI {
			return part, nil, fmt.Errorf("the document is larger than %d bytes", maxOpenAPI)
		}
		part = openAPIPart{etag: resp.Header.Get("Etag"), body: body}
	default:
		return part, nil, fmt.Errorf("the service answers %d", resp.StatusCode)
	}
	parsed, err = parseOpenAPI(part.body)
	return part, parsed, err
}

func (o *openAPI) call(ctx context.Context, base *url.URL, etag string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(openAPIPath).String(), nil)
	if err != nil {
		return nil, err
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	return o.client.Do(req)
}

// recorder is an http.ResponseWriter that keeps the response.
type recorder struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
func (r *recorder) WriteHeader(status int)      { r.status = status }

func callInProcess(ctx context.Context, handler http.Handler) *http.Response {
	req := (&http.Request{
		Method: http.MethodGet, URL: &url.URL{Path: openAPIPath}, RequestURI: openAPIPath, Host: "localhost",
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody,
	}).WithContext(ctx)
	r := &recorder{status: http.StatusOK, header: http.Header{}}
	handler.ServeHTTP(r, req)
	return &http.Response{StatusCode: r.status, Header: r.header, Body: io.NopCloser(&r.body)}
}

// parseOpenAPI decodes a document. Integers stay exact.
func parseOpenAPI(body []byte) (map[string]any, error) {
	document, err := openapi.Parse(body)
	if err != nil {
		return nil, err
	}
	if version, _ := document["openapi"].(string); !strings.HasPrefix(version, "3.1") {
		return nil, errors.New("the document is not OpenAPI 3.1")
	}
	return plainNumbers(document).(map[string]any), nil
}

// plainNumbers replaces each json.Number, which the YAML encoder does not know, by an int64 or, if it is not one, a
// float64.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = plainNumbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = plainNumbers(e)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil {
			return f
		}
		return v.String() // out of the range of all number types
	}
	return v
}

// encode writes all forms of the document. All keys except the outermost are sorted, so equal input gives equal
// bytes.
func (m *mergedOpenAPI) encode() (*openAPIDocument, error) {
	var asJSON, asYAML bytes.Buffer
	je := json.NewEncoder(&asJSON)
	je.SetEscapeHTML(false)
	if err := je.Encode(m); err != nil {
		return nil, fmt.Errorf("encode OpenAPI document: %w", err)
	}
	ye := yaml.NewEncoder(&asYAML)
	ye.SetIndent(2)
	if err := ye.Encode(m); err != nil {
		return nil, fmt.Errorf("encode OpenAPI document: %w", err)
	}
	older, err := openapi.Parse(asJSON.Bytes())
	if err != nil {
		return nil, err
	}
	openapi.Downgrade(older)
	json30, err := json.Marshal(older)
	if err != nil {
		return nil, fmt.Errorf("encode OpenAPI document: %w", err)
	}
	sum := sha256.Sum256(asJSON.Bytes())
	return &openAPIDocument{
		made: time.Now(), json: asJSON.Bytes(), yaml: asYAML.Bytes(), json30: json30,
		etag: base64.RawURLEncoding.EncodeToString(sum[:12]),
	}, nil
}
