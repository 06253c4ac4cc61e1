// Package proxy hands a signed-in person's requests to the gateway, with the session's token on them. What passes is
// not read, changed or buffered.
package proxy

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/forwarded"
	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/request"
)

// Prefix is where the page finds the operations: /console/api/v1/users is /v1/users of the gateway.
const Prefix = "/console/api"

// originHeader tells the audit log which screen a change comes from.
const originHeader = "X-Payload-Origin"

var origins = regexp.MustCompile(`^console/[a-z][a-z0-9-]{0,40}$`)

// Gateway is where requests go: the gateway's handler in this process, or Remote.
type Gateway struct {
	Handler http.Handler
	Trust   forwarded.Trust // whose X-Forwarded-For is believed
}

// Call hands a request below Prefix to the gateway. Whatever is not an operation of the API is a 404.
func (g Gateway) Call(w http.ResponseWriter, r *http.Request, token string) {
	path, ok := strings.CutPrefix(r.URL.Path, Prefix)
	raw := strings.TrimPrefix(r.URL.EscapedPath(), Prefix)
	if !ok || !strings.HasPrefix(path, "/v1/") || !strings.HasPrefix(raw, "/v1/") {
		problem.Write(w, apperr.New(apperr.NotFound, "no such path"))
		return
	}
	out := r.Clone(r.Context())
	out.URL.Path, out.URL.RawPath = path, raw
	out.RequestURI = out.URL.RequestURI()
	out.Header.Set("Authorization", "Bearer "+token)
	if !origins.MatchString(out.Header.Get(originHeader)) {
		out.Header.Set(originHeader, "console")
	}
	g.serve(w, out, r)
}

// serve lets the gateway answer out, which comes from the same client as in.
func (g Gateway) serve(w http.ResponseWriter, out, in *http.Request) {
	out.Header.Del("Cookie")
	if out.Header.Get("X-Request-Id") == "" { // the console is reached directly, not through the gateway
		out.Header.Set("X-Request-Id", request.NewID())
	}
	g.Trust.Gateway.Set(out.Header, g.Trust.Client(in))
	g.Handler.ServeHTTP(w, out)
}

// maxAnswer bounds the answers that the console itself reads.
const maxAnswer = 1 << 20

// ErrAnswer means that the gateway's answer was not an OAuth one.
var ErrAnswer = errors.New("console: the gateway's answer cannot be used")

// PostForm calls an OAuth endpoint on behalf of the client that sent in, and returns the answer's status and body.
func (g Gateway) PostForm(
	ctx context.Context, in *http.Request, path string, form url.Values, header http.Header,
) (status int, body []byte, err error) {
	header.Set("Content-Type", "application/x-www-form-urlencoded")
	return g.ask(ctx, in, http.MethodPost, path, form.Encode(), header)
}

// Get reads a path with a token on behalf of the client that sent in, and returns the answer's status and body.
func (g Gateway) Get(ctx context.Context, in *http.Request, path, token string) (status int, body []byte, err error) {
	return g.ask(ctx, in, http.MethodGet, path, "", http.Header{"Authorization": {"Bearer " + token}})
}

func (g Gateway) ask(
	ctx context.Context, in *http.Request, method, path, text string, header http.Header,
) (status int, body []byte, err error) {
	out, err := http.NewRequestWithContext(ctx, method, path, strings.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	out.RequestURI, out.Host, out.RemoteAddr, out.TLS = path, in.Host, in.RemoteAddr, in.TLS
	out.Header = header
	for _, name := range []string{"X-Request-Id", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
		forwarded.ProofHeader} {
		if v, ok := in.Header[name]; ok {
			out.Header[name] = v
		}
	}
	a := &answer{header: http.Header{}, status: http.StatusOK}
	g.serve(a, out, in)
	if a.body.Len() > maxAnswer {
		return 0, nil, ErrAnswer
	}
	return a.status, a.body.Bytes(), nil
}

// answer is an http.ResponseWriter that keeps the response.
type answer struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// SetReadDeadline and SetWriteDeadline let the gateway set its limits, which do not concern an answer in memory.
func (a *answer) SetReadDeadline(time.Time) error  { return nil }
func (a *answer) SetWriteDeadline(time.Time) error { return nil }

// Remote is the gateway in another process.
func Remote(base *url.URL, log *slog.Logger) http.Handler {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.MaxIdleConnsPerHost = 64
	transport.DisableCompression = true // bodies pass as they are
	return &httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host, pr.Out.Host = base.Scheme, base.Host, ""
			pr.Out.URL.RawQuery = pr.In.URL.RawQuery // ReverseProxy drops parameters that it cannot parse
			for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if v, ok := pr.In.Header[name]; ok {
					pr.Out.Header[name] = v
				}
			}
			delete(pr.Out.Header, "Upgrade")
			delete(pr.Out.Header, "Connection")
		},
		Transport: transport, FlushInterval: -1,
		ErrorLog:     slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ErrorHandler: failed,
	}
}

// failed answers a request that the gateway did not: a write may have been carried out.
func failed(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(context.Cause(r.Context()), context.Canceled):
		panic(http.ErrAbortHandler) // the client is gone
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		problem.Write(w, apperr.Away("the gateway", err))
	default:
		problem.Write(w, apperr.Unknown(err))
	}
}
