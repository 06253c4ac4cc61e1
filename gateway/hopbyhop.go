package gateway

import (
	"net/http"
	"slices"
	"strings"
)

// dropHopByHop takes out what Connection names (RFC 9110 §7.6.1), for both kinds of hop alike, but nothing that is
// meant for the service: a client that names X-Tenant-Id there must not have it overlooked.
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
