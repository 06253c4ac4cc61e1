package rest

import (
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/problem"
)

// slashesKey is where an operation's huma.Operation has Op.CatchAllParam.
const slashesKey = "slashes"

// restRoute is a Gin route for the rest of a path. Gin cannot have fixed segments after such a wildcard, so the
// operations that share the route are told apart here.
type restRoute struct{ operations []restOperation } // those with the longest tail first

// restOperation is an operation whose path has fixed segments, the tail, after the parameter with slashes.
type restOperation struct {
	tail  string // "" or such as /history
	names []string
	op    *huma.Operation
	run   func(huma.Context)
}

// handleRest registers an operation whose last path parameter can contain slashes. head are the segments before it.
func (a *adapter) handleRest(op *huma.Operation, head []string, tail string, names []string, run func(huma.Context)) {
	if tail != "" {
		tail = "/" + tail
	}
	path := strings.Join(head, "/") + "/*rest"
	route, registered := a.rests[op.Method+path]
	if !registered {
		route = &restRoute{}
		a.rests[op.Method+path] = route
		a.engine.Handle(op.Method, path, func(c *gin.Context) { route.serve(c, len(head)) })
	}
	route.operations = append(route.operations, restOperation{tail, names, op, run})
	slices.SortStableFunc(route.operations, func(x, y restOperation) int { return len(y.tail) - len(x.tail) })
}

// serve runs the operation with the longest tail that the path ends with.
func (r *restRoute) serve(c *gin.Context, head int) {
	value := restOf(c.Request.URL, head)
	for _, o := range r.operations {
		rest, ok := strings.CutSuffix(value, o.tail)
		if !ok || o.tail != "" && rest == "" {
			continue
		}
		for i, name := range o.names {
			c.Params[i].Key = name
		}
		c.Params[len(o.names)-1].Value = rest
		o.run(humagin.NewContext(o.op, c))
		return
	}
	problem.Write(c.Writer, apperr.New(apperr.NotFound, "no such path"))
}

// restOf returns what follows the first segments of a path. It does not take Gin's value, because Gin decodes a plus
// sign as a space.
func restOf(u *url.URL, segments int) string {
	rest := u.EscapedPath()
	for range segments {
		var more bool
		if _, rest, more = strings.Cut(rest, "/"); !more {
			return ""
		}
	}
	value, err := url.PathUnescape(rest)
	if err != nil { // net/url has decoded the path before
		return ""
	}
	return value
}
