package request

import (
	"mime"
	"strings"
)

// EventStreamType is the content type of Server-Sent Events (HTML Living Standard §9.2).
const EventStreamType = "text/event-stream"

// WantsEvents reports whether an Accept header names the event stream type; a wildcard does not count.
func WantsEvents(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		if name, params, err := mime.ParseMediaType(part); err == nil && name == EventStreamType && params["q"] != "0" {
			return true
		}
	}
	return false
}
