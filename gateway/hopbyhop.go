package gateway

import (
	"net/http"
	"slices"
	"strings"
)

// dropHopByHop removes the headers that Connection names (RFC 9110 §7.6.1), for services in this process and in
// others alike. It keeps headers meant for the service, so that a client cannot make the gateway drop X-Tenant-Id.
func dropHopByHop(h http.Header) {
	values, ok := h["Connection"]
	if !ok {
		return
	}
	for _, value := range values {
		for option := range strings.SplitSeq(value, ",") {
			name := http.CanonicalHeaderKey(strings.TrimSpace(option))
			if !slices.Contains(requestHeaders, name) {
				delete(h, name)
			}
		}
	}
	delete(h, "Connection")
}
