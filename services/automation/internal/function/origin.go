package function

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/idplatform/idplatform/pkg/request"
)

// maxDepth limits chains of functions: one sends a request to the platform, which emits an event, which triggers the
// next. deploy/adr/0038 says which chains this ends and which it does not.
const maxDepth = 5

// chainTooLong refuses a call at the end of such a chain.
var chainTooLong = fmt.Sprintf("a chain of %d functions led to this call; longer chains are refused", maxDepth)

// origin is the payload origin of the requests that a function sends: function/<id>/<depth>/<seal>. The platform's
// services copy it to the events that the requests cause. Any client can send a payload origin; the seal tells those
// apart that a function's request had, so that nobody hides changes from functions by claiming to be at the end of a
// chain.
func (s *Functions) origin(tenant, function string, depth int) string {
	number := strconv.Itoa(depth)
	return "function/" + function + "/" + number + "/" + s.Keys.Seal(nil, originData(tenant, function, number))
}

// originData is what the seal of a payload origin is bound to.
func originData(tenant, function, depth string) []byte {
	return []byte("origin/" + tenant + "/" + function + "/" + depth)
}

// depth is how many functions in a chain led to the context's request.
func (s *Functions) depth(ctx context.Context) int {
	return s.depthOf(request.Tenant(ctx), request.From(ctx).PayloadOrigin)
}

// depthOf is how many functions in a chain led to a request or event of a tenant, by its payload origin.
func (s *Functions) depthOf(tenant, payloadOrigin string) int {
	parts := strings.Split(payloadOrigin, "/")
	if len(parts) != 4 || parts[0] != "function" {
		return 0
	}
	n, err := strconv.Atoi(parts[2])
	if err != nil {
		return 0
	}
	if _, err := s.Keys.Open(parts[3], originData(tenant, parts[1], parts[2])); err != nil {
		return 0
	}
	return n
}
