package rest

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/problem"
)

// CrossOrigin is a request that a page of another origin sends (Fetch standard, "CORS protocol").
type CrossOrigin struct {
	Origin  string // as the browser writes it, such as https://app.example.com
	Request *http.Request
	Form    url.Values // nil at a preflight, and if the body could not be read
	params  gin.Params
}

// Param returns a parameter of the path.
func (c CrossOrigin) Param(name string) string { return c.params.ByName(name) }

// Origins reports whether a browser may show the answer to a request to the page that has sent it. The answer never
// allows credentials, so browsers send no cookies. An error means no.
type Origins func(context.Context, CrossOrigin) (bool, error)

const (
	allowOrigin = "Access-Control-Allow-Origin"
	askedMethod = "Access-Control-Request-Method"
	askedHeader = "Access-Control-Request-Headers"
	// preflightAge is how long a browser may remember the answer to a preflight, in seconds.
	preflightAge = "600"
	// maxAskedHeaders bounds the names of headers that a preflight's answer repeats, in bytes.
	maxAskedHeaders = 1024
)

// share tells the browser whether the page of another origin may read the answer.
func (s *Server) share(ctx context.Context, op *Op, c *gin.Context, form url.Values) error {
	h := c.Writer.Header()
	if op.AnyOrigin { // the answer may be kept for all of them
		h.Set(allowOrigin, "*")
	}
	if op.Origins == nil {
		return nil
	}
	h.Add("Vary", "Origin")
	origin := c.Request.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	allowed, err := op.Origins(ctx, CrossOrigin{origin, c.Request, form, c.Params})
	if err == nil && allowed {
		h.Set(allowOrigin, origin)
		h.Set("Access-Control-Expose-Headers", "Retry-After, WWW-Authenticate, X-Request-Id")
	}
	return err
}

// handlePreflight answers the preflights of an operation's path. The operations of one path share them.
func (s *Server) handlePreflight(adapter huma.Adapter, op *Op) {
	ops := s.preflights[op.Path]
	s.preflights[op.Path] = append(ops, op)
	if len(ops) > 0 {
		return
	}
	options := &huma.Operation{Method: http.MethodOptions, Path: op.Path}
	adapter.Handle(options, func(hc huma.Context) { s.preflight(op.Path, humagin.Unwrap(hc)) })
}

func (s *Server) preflight(path string, c *gin.Context) {
	asked := c.Request.Header.Get(askedMethod)
	ops := s.preflights[path]
	i := slices.IndexFunc(ops, func(op *Op) bool {
		return op.Method == asked || op.Method == http.MethodGet && asked == http.MethodHead
	})
	h := c.Writer.Header()
	h.Add("Vary", askedMethod+", "+askedHeader)
	if i < 0 {
		h.Set("Allow", strings.Join(methodsOf(ops), ", "))
		problem.Write(c.Writer, apperr.New(apperr.MethodNotAllowed, "the path has no %s", methodName(asked)))
		return
	}
	headers := c.Request.Header.Get(askedHeader)
	err := s.share(c.Request.Context(), ops[i], c, nil)
	switch {
	case len(headers) > maxAskedHeaders:
		err = apperr.Invalid("header."+askedHeader, "must have at most %d bytes", maxAskedHeaders)
	case err == nil && h.Get(allowOrigin) == "":
		err = apperr.New(apperr.Forbidden, "pages of this origin may not call it")
	}
	if err != nil {
		problem.Write(c.Writer, err)
		return
	}
	h.Set("Access-Control-Allow-Methods", strings.Join(methodsOf(ops), ", "))
	if headers != "" {
		h.Set("Access-Control-Allow-Headers", headers)
	}
	h.Set("Access-Control-Max-Age", preflightAge)
	c.Writer.WriteHeader(http.StatusNoContent)
}

// methodsOf lists the methods of operations of one path.
func methodsOf(ops []*Op) (methods []string) {
	for _, op := range ops {
		methods = append(methods, op.Method)
	}
	slices.Sort(methods)
	return methods
}
