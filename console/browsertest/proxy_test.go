package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// proxy stands between a tab and the platform: it looks at every request, and can answer badly in the platform's place.
type proxy struct {
	url      string
	platform *platform

	mu      sync.Mutex
	faults  []*fault
	calls   []call
	waiting int             // calls that are not answered yet, streams aside
	streams []func()        // cut those that are open
	used    map[string]int  // operations
	unknown map[string]bool // what the document of the API lacks
}

// call is a request to the API as the console sent it.
type call struct {
	method, path, query, key string
}

// fault is how the proxy answers some calls.
type fault struct {
	call       string // "GET /v1/users": method, and the path or, with * at its end, what it begins with
	status     int
	code       string // of the problem; without it the one of the status
	errors     []map[string]any
	retryAfter int
	plain      bool          // an answer of something that is not the platform: HTML
	cut        bool          // the platform's answer, until its middle
	hold       chan struct{} // until it is closed, no answer; then the platform's, or that of the status
	next       string        // of the problem: where a stream goes on
	stream     bool          // meets requests for an event stream alone
	after      int           // how many calls it lets pass first
	times      int           // 0: until it is mended
}

var codes = map[int]string{
	400: "invalid_parameters", 401: "unauthenticated", 403: "forbidden", 404: "not_found", 409: "already_exists",
	412: "version_mismatch", 413: "too_large", 415: "unsupported_media_type", 422: "idempotency_key_reused",
	429: "rate_limited", 500: "internal", 502: "outcome_unknown", 503: "unavailable",
}

func startProxy(t testing.TB, p *platform) *proxy {
	t.Helper()
	target, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	x := &proxy{platform: p, used: map[string]int{}, unknown: map[string]bool{}}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		FlushInterval: -1, // streams
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				t.Logf("%s %s: the platform does not answer: %v", r.Method, r.URL.Path, err)
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := x.look(r)
		defer x.answered(r)()
		if f != nil && f.hold != nil {
			select {
			case <-f.hold:
			case <-r.Context().Done():
			}
		}
		switch {
		case f == nil || f.status == 0 && !f.cut:
			forward.ServeHTTP(w, x.cuttable(r))
		case f.cut:
			cut(w, r, forward)
		default:
			f.answer(w)
		}
	}))
	x.url = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return x
}

// answered counts a call until its answer is sent; a stream has no end.
func (x *proxy) answered(r *http.Request) (done func()) {
	if r.Header.Get("Accept") == "text/event-stream" {
		return func() {}
	}
	count := func(by int) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.waiting += by
	}
	count(1)
	return func() { count(-1) }
}

// cuttable is a request whose answer, if it is a stream, cutStreams ends.
func (x *proxy) cuttable(r *http.Request) *http.Request {
	if r.Header.Get("Accept") != "text/event-stream" {
		return r
	}
	ctx, cut := context.WithCancel(r.Context())
	x.mu.Lock()
	defer x.mu.Unlock()
	x.streams = append(x.streams, cut)
	return r.WithContext(ctx)
}

// cutStreams breaks the connections of all streams.
func (x *proxy) cutStreams() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, cut := range x.streams {
		cut()
	}
	x.streams = nil
}

// quiet is true when every call is answered; n is how many there were.
func (x *proxy) quiet() (n int, is bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.calls), x.waiting == 0
}

// look notes a request, and returns the fault that it meets.
func (x *proxy) look(r *http.Request) *fault {
	x.mu.Lock()
	defer x.mu.Unlock()
	path, api := strings.CutPrefix(r.URL.Path, "/console/api")
	if api {
		x.calls = append(x.calls, call{r.Method, path, r.URL.RawQuery, r.Header.Get("Idempotency-Key")})
		id, unknown := x.platform.document.find(r.Method, r.URL)
		if unknown != "" {
			x.unknown[unknown] = true
		} else {
			x.used[id]++
		}
	} else {
		path = r.URL.Path
	}
	for i, f := range x.faults {
		if !f.meets(r.Method+" "+path) || f.stream && r.Header.Get("Accept") != "text/event-stream" {
			continue
		}
		if f.after > 0 {
			f.after--
			continue
		}
		if f.times--; f.times == 0 {
			x.faults = append(x.faults[:i:i], x.faults[i+1:]...)
		}
		return f
	}
	return nil
}

func (f *fault) meets(call string) bool {
	if start, ok := strings.CutSuffix(f.call, "*"); ok {
		return strings.HasPrefix(call, start)
	}
	return call == f.call
}

func (f *fault) answer(w http.ResponseWriter) {
	if f.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.retryAfter))
	}
	if f.plain {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.status)
		fmt.Fprint(w, "<html><body>A proxy on the way is unwell</body></html>")
		return
	}
	code := f.code
	if code == "" {
		code = codes[f.status]
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"type": "urn:idp:problem:" + code, "title": code, "status": f.status, "code": code,
		"detail": "made by the test", "errors": f.errors, "request_id": "request-of-the-test", "next": f.next,
	})
}

// cut sends the first half of the platform's answer, and breaks the connection.
func cut(w http.ResponseWriter, r *http.Request, forward http.Handler) {
	r.Header.Del("Accept-Encoding")
	whole := httptest.NewRecorder()
	forward.ServeHTTP(whole, r)
	maps.Copy(w.Header(), whole.Header())
	w.Header().Set("Content-Length", strconv.Itoa(whole.Body.Len()))
	w.WriteHeader(whole.Code)
	_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// fail makes calls fail from now on; mend ends it.
func (x *proxy) fail(f fault) (mend func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	added := &f
	x.faults = append(x.faults, added)
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		for i, other := range x.faults {
			if other == added {
				x.faults = append(x.faults[:i:i], x.faults[i+1:]...)
				return
			}
		}
	}
}

// sent returns the calls of a kind that the console has sent: "POST /v1/users".
func (x *proxy) sent(which string) (calls []call) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.calls {
		if (&fault{call: which}).meets(c.method + " " + c.path) {
			calls = append(calls, c)
		}
	}
	return calls
}

// forget begins counting anew.
func (x *proxy) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.calls = nil
}
