package rest

import (
	"net/http"
	"strconv"
	"strings"
)

// ifMatch reads If-Match (RFC 9110 §13.1.1): "*", or entity tags compared strongly. A tag that is none of ours matches nothing.
func ifMatch(values []string) func(version int64) bool {
	var versions []int64
	for _, tag := range entityTags(values) {
		if tag == "*" {
			return func(int64) bool { return true }
		}
		if v, err := strconv.ParseInt(strings.Trim(tag, `"`), 10, 64); err == nil && len(tag) > 2 && tag[0] == '"' {
			versions = append(versions, v)
		}
	}
	return func(version int64) bool {
		for _, v := range versions {
			if v == version {
				return true
			}
		}
		return false
	}
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
