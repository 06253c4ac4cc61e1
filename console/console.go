// Package console is the web console: a browser application for the people who run the platform, and the session that
// lets it call the API. It owns no data. Its files are public and hold none; its calls go to the gateway with the
// session's token, and services decide about each of them as about every other.
package console

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/idplatform/idplatform/console/internal/issuer"
	"github.com/idplatform/idplatform/console/internal/pages"
	"github.com/idplatform/idplatform/console/internal/proxy"
	"github.com/idplatform/idplatform/console/internal/session"
	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/forwarded"
	"github.com/idplatform/idplatform/pkg/outbound"
	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/secret"
)

// dist is what `make build` writes: nothing but a placeholder before.
//
//go:embed all:dist
var dist embed.FS

// Deps are what the console needs besides its configuration.
type Deps struct {
	Log      *slog.Logger
	Gateway  http.Handler     // where calls go: the gateway, or Remote
	Outbound *http.Client     // for requests to the issuer; nil: a client that reaches any address
	Trust    forwarded.Trust  // who is believed about the client's address
	Keys     *secret.Keyring  // seals sessions where the configuration has no keys
	Now      func() time.Time // nil: the machine's clock
	Files    fs.FS            // nil: the files in the program
}

// Console is an http.Handler for /console and all paths below. It is safe for concurrent use.
type Console struct {
	config   Config
	log      *slog.Logger
	now      func() time.Time
	gateway  proxy.Gateway
	cookies  session.Cookies
	links    session.Links
	renewals session.Renewals
	issuer   *issuer.Issuer // nil: nobody signs in at an issuer
	pages    *pages.Pages
	guarded  http.Handler
}

// Remote is the gateway in another process, for Deps.
func Remote(base *url.URL, log *slog.Logger) http.Handler { return proxy.Remote(base, log) }

// New makes a console.
func New(config Config, deps Deps) (*Console, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("console configuration: %w", err)
	}
	c := &Console{
		config: config, log: deps.Log, now: deps.Now,
		gateway: proxy.Gateway{Handler: deps.Gateway, Trust: deps.Trust},
	}
	if c.now == nil {
		c.now = time.Now
	}
	keys := deps.Keys
	if !config.Keys.IsZero() || keys == nil {
		chosen := config.Keys
		if chosen.IsZero() {
			chosen = secret.NewKey()
		}
		var err error
		if keys, err = secret.ParseKeyring(chosen); err != nil {
			return nil, err
		}
	}
	c.cookies, c.links.Now, c.renewals.Now = session.Cookies{Keys: keys, Now: c.now}, c.now, c.now
	if config.OIDC.Issuer != "" {
		c.issuer = newIssuer(config.OIDC, deps, c.now)
	}
	files := deps.Files
	if files == nil {
		files, _ = fs.Sub(dist, "dist") // cannot fail: the folder is embedded
	}
	var err error
	if c.pages, err = pages.New(files); err != nil {
		return nil, fmt.Errorf("console files: %w", err)
	}
	c.guarded = c.protect()
	return c, nil
}

func newIssuer(o OIDC, deps Deps, now func() time.Time) *issuer.Issuer {
	client := deps.Outbound
	if client == nil {
		client = outbound.New(outbound.Config{AllowPrivate: true}) // only those who run the console choose the issuer
	}
	return issuer.New(issuer.Config{
		Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: o.ClientSecret.Reveal(), Scopes: o.Scopes,
		Params: o.Params,
	}, client, deps.Log, now)
}

// protect refuses changes that another site's page has sent (Sec-Fetch-Site, or Origin against the host).
func (c *Console) protect() http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		problem.Write(w, apperr.New(apperr.Forbidden, "the request comes from another site's page"))
	}))
	return protection.Handler(http.HandlerFunc(c.route))
}

// openAPI is the console's part of the gateway's document: it has no operations of its own.
const openAPI = `{"openapi":"3.1.0","info":{"title":"console","version":"1.0.0"},"paths":{}}`

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/openapi.json" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(openAPI))
		return
	}
	// A balancer may have replaced the host that the protection compares Origin with.
	if host := session.Host(r); host != r.Host {
		r = r.Clone(r.Context())
		r.Host = host
	}
	w.Header().Set("Referrer-Policy", "no-referrer")
	c.guarded.ServeHTTP(w, r)
}

func (c *Console) route(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == sessionPath:
		c.serveSession(w, r)
	case path == linksPath:
		c.serveLinks(w, r)
	case path == renewalPath:
		c.serveRenewal(w, r)
	case strings.HasPrefix(path, proxy.Prefix+"/"):
		c.serveCall(w, r)
	case path != "/console" && !strings.HasPrefix(path, "/console/") || r.URL.RawPath != "" && hidesSlash(r.URL):
		problem.Write(w, apperr.New(apperr.NotFound, "no such path"))
	case c.issuer != nil && (path == oidcPath || path == callbackPath):
		c.serveOIDC(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		problem.Write(w, apperr.New(apperr.MethodNotAllowed, "the path has only GET and HEAD"))
	case strings.HasPrefix(path, pages.AssetPrefix):
		c.pages.Asset(w, r)
	case strings.HasPrefix(path, "/console/~"):
		problem.Write(w, apperr.New(apperr.NotFound, "no such path"))
	default: // every screen is the same page, which reads the path itself
		about, screen := c.about(r), ""
		if about.SignedIn {
			screen = screenOf(path)
		}
		c.pages.Page(w, r, about, screen)
	}
}

// screenOf names the screen of a path: /console/default/users/… is users, and what names none leads to start.
func screenOf(path string) string {
	parts := strings.SplitN(strings.TrimPrefix(path, "/console"), "/", 4) // "", tenant, screen, …
	if len(parts) < 3 || parts[2] == "" {
		return "start"
	}
	return parts[2]
}

// hidesSlash reports whether the prefix of a path is not spelled as such: /console%2Fapi.
func hidesSlash(u *url.URL) bool { return !strings.HasPrefix(u.RawPath, "/console/") }

// errNobody refuses what needs a session.
var errNobody = apperr.New(apperr.Unauthenticated, "nobody is signed in, or the session has ended")

// background marks the calls that a page makes by itself, such as those of a screen that asks again and again. They do
// not keep a session alive whose person has left.
const background = "X-Console-Background"

// serveCall hands an operation to the gateway.
func (c *Console) serveCall(w http.ResponseWriter, r *http.Request) {
	s, ok := c.cookies.Read(r)
	if !ok || !s.Usable(c.now()) {
		problem.Write(w, errNobody)
		return
	}
	if proxy.WantsFresh(r) && !s.IsFresh(c.now()) {
		refuseOld(w)
		return
	}
	if r.Header.Get(background) == "" {
		c.cookies.Touch(w, r, s)
	}
	r.Header.Del(background)
	c.gateway.Call(w, r, s.Token)
}

// refuseOld refuses a call that wants a fresh sign-in (RFC 9470). Its code is the console's own: services have none.
func refuseOld(w http.ResponseWriter) {
	doc := problem.Of(apperr.New(apperr.Unauthenticated, "this wants a sign-in of the last %d minutes",
		session.Fresh/time.Minute), w.Header().Get("X-Request-Id"))
	doc.Code, doc.Title = "sign_in_too_old", "Sign-in too old"
	doc.Type = "urn:idp:problem:" + doc.Code
	w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_user_authentication", max_age="%d"`,
		session.Fresh/time.Second))
	w.Header().Set("Content-Type", problem.ContentType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(doc.Status)
	_ = json.NewEncoder(w).Encode(doc) // the client is gone, if anything
}
