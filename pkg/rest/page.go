package rest

import (
	"bytes"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/problem"
)

// PageType is the content type of a Page.
const PageType = "text/html; charset=utf-8"

// Page is the answer to a person's browser: HTML, or a redirect. The operation must have an Op.ErrorPage.
type Page struct {
	Status   int    // 0 means 200; with a Location always 303
	HTML     []byte // of a page of its own
	Location string // where the browser goes instead
	Policy   Policy
	// Refresh is where the page leads by itself at once. Unlike a redirect, it ends the chain of redirects that
	// form-action of the page before allows.
	Refresh      string
	RefreshAfter time.Duration // in whole seconds
	Cookies      []*http.Cookie
	RetryAfter   time.Duration // rounded up to seconds; 0 means none
	Vary         string
}

// Redirect makes a 303, after which the browser sends a GET whatever it has sent before.
func Redirect(to string, cookies ...*http.Cookie) Page { return Page{Location: to, Cookies: cookies} }

// Policy is a page's Content-Security-Policy. The zero Policy allows the platform's own script, style sheets and
// images, images in data URIs, and forms to the platform.
type Policy struct {
	Forms      bool     // forms may go to any address: for a page that hands a form to an application
	ScriptHash string   // of the only inline script, such as sha256-…
	Frames     []string // origins of frames
}

// String is the value of the header.
func (p Policy) String() string {
	var b strings.Builder
	b.WriteString("default-src 'none'; script-src 'self'")
	if p.ScriptHash != "" {
		b.WriteString(" '" + p.ScriptHash + "'")
	}
	b.WriteString("; style-src 'self'; img-src 'self' data:; ")
	if len(p.Frames) > 0 {
		b.WriteString("frame-src " + strings.Join(p.Frames, " ") + "; ")
	}
	if !p.Forms {
		b.WriteString("form-action 'self'; ")
	}
	b.WriteString("frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
	return b.String()
}

func (p Page) answer() (answer, error) {
	a := answer{Status: p.Status, ContentType: PageType, Body: p.HTML, header: p.header()}
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	if p.Location != "" {
		a.Status, a.Body = http.StatusSeeOther, nil
	}
	return a, nil
}

func (p Page) header() http.Header {
	h := http.Header{}
	h.Set("Content-Security-Policy", p.Policy.String())
	h.Set("Referrer-Policy", "same-origin") // no-referrer would make browsers hide the origin of the page's own forms
	for name, value := range map[string]string{"Location": p.Location, "Vary": p.Vary} {
		if value != "" {
			h.Set(name, value)
		}
	}
	if p.Refresh != "" {
		h.Set("Refresh", strconv.Itoa(int(p.RefreshAfter.Seconds()))+"; url="+p.Refresh)
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((p.RetryAfter+time.Second-1)/time.Second), 10))
	}
	for _, c := range p.Cookies {
		h.Add("Set-Cookie", c.String())
	}
	return h
}

// Asset is a file of a page, such as a style sheet. Its address changes with its content, so it may be kept forever.
type Asset struct {
	ContentType string
	Body        []byte
}

func (a Asset) answer() (answer, error) {
	h := http.Header{}
	h.Set("Content-Security-Policy", "default-src 'none'")
	return answer{Status: http.StatusOK, ContentType: a.ContentType, Body: a.Body, header: h,
		Cache: "public, max-age=31536000, immutable"}, nil
}

// Document is a text in the form of a standard, such as XML. It is never kept.
type Document struct {
	ContentType string
	Body        []byte
}

func (d Document) answer() (answer, error) {
	return answer{Status: http.StatusOK, ContentType: d.ContentType, Body: d.Body}, nil
}

// Created is a JSON body with the schema of B and the status 201, for standards that want it.
type Created[B any] struct{ Body B }

func (c Created[B]) answer() (answer, error) {
	a, err := answerOf(c.Body)
	a.Status = http.StatusCreated
	return a, err
}

func (Created[B]) wraps() reflect.Type { return reflect.TypeFor[B]() }

// Schema returns the schema of B.
func (Created[B]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[B](), true, "")
}

// Browser is the request itself, for an operation that reads what browsers send: cookies, languages, a query whose
// parameters are a protocol's. Embed it in the input. The operation must not read the body.
type Browser struct {
	Request *http.Request `json:"-"`
}

// Resolve is called by huma.
func (b *Browser) Resolve(hc huma.Context) []error {
	b.Request = humagin.Unwrap(hc).Request
	return nil
}

// Values is the form body of an input for an operation that reads the parameters by itself, in a member called Form. W
// describes them for the document; those that it names must not be repeated. Its limits are those of Form.
type Values[W any] struct{ url.Values }

func (*Values[W]) parameters() reflect.Type { return reflect.TypeFor[W]() }

// Resolve is called by huma.
func (v *Values[W]) Resolve(hc huma.Context) []error {
	v.Values = humagin.Unwrap(hc).Request.Context().Value(callKey{}).(*call).form
	return nil
}

// checkSite refuses a write that another site's page has made a person's browser send.
func (s *Server) checkSite(op *Op, r *http.Request) error {
	if op.ErrorPage == nil || op.CrossSite || !op.writes() {
		return nil
	}
	if err := s.sites.Check(r); err != nil {
		return apperr.New(apperr.Forbidden, "the form was sent by a page of another site").Because(err)
	}
	return nil
}

// protection is what checkSite asks. A request without Sec-Fetch-Site is compared with the platform's own origins: the
// gateway changes the host.
func protection(origins []string) *http.CrossOriginProtection {
	p := http.NewCrossOriginProtection()
	for _, origin := range origins {
		if u, err := url.Parse(origin); err == nil {
			_ = p.AddTrustedOrigin(u.Scheme + "://" + u.Host) // an address that is none gives no trust
		}
	}
	return p
}

// writePage answers with the page for an error.
func writePage(op *Op, w http.ResponseWriter, r *http.Request, err error) {
	page := op.ErrorPage(r, err)
	page.Location = ""
	body := page.HTML
	problem.Headers(w.Header(), err)
	w.Header().Del("WWW-Authenticate")
	for name, values := range page.header() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", PageType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(problem.Status(apperr.KindOf(err)))
	_, _ = bytes.NewReader(body).WriteTo(w) // the client may have disconnected
}
