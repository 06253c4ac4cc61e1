package rest

import (
	"net/http"
	"slices"
	"strings"
)

// ifMatch reads If-Match (RFC 9110 §13.1.1): "*", or entity tags compared strongly. A tag that is none of ours matches nothing.
func ifMatch(values []string) func(version int64) bool {
	tags := entityTags(values)
	if slices.Contains(tags, "*") {
		return func(int64) bool { return true }
	}
	return func(version int64) bool { return slices.Contains(tags, etag(version)) }
}

// notModified tells whether If-None-Match (RFC 9110 §13.1.2) names the tag; compared weakly.
func notModified(r *http.Request, tag string) bool {
	values := r.Header.Values("If-None-Match")
	if tag == "" || len(values) == 0 {
		return false
	}
	for _, t := range entityTags(values) {
		if t == "*" || strings.TrimPrefix(t, "W/") == tag {
			return true
		}
	}
	return false
}

func entityTags(values []string) []string {
	var tags []string
	for _, v := range values {
		for tag := range strings.SplitSeq(v, ",") {
			tags = append(tags, strings.TrimSpace(tag))
		}
	}
	return tags
}
