package rest

import (
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Deprecation says since when an operation is deprecated, and the path of its successor, such as /v1/resources/{id}. Of
// the successor's parameters each must be one of the operation's, too.
type Deprecation struct {
	Since     time.Time
	Successor string
}

var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

// tell adds the headers of RFC 9745 to an answer.
func (d *Deprecation) tell(hc huma.Context, h http.Header) {
	if d == nil {
		return
	}
	path := pathParameter.ReplaceAllStringFunc(d.Successor, func(name string) string {
		return url.PathEscape(hc.Param(name[1 : len(name)-1]))
	})
	h.Set("Deprecation", "@"+strconv.FormatInt(d.Since.Unix(), 10))
	h.Set("Link", "<"+path+`>; rel="successor-version"`)
}

var tagged = reflect.TypeFor[interface{ tagged() }]()

// isTagged reports whether answers of this type have an ETag.
func isTagged(output reflect.Type) bool { return output != nil && output.Implements(tagged) }
