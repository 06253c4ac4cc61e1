package rest

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ifMatch parses If-Match (RFC 9110 §13.1.1): "*", or entity tags, which are compared strongly. Of a tag like "7-3"
// only the version 7 matters: the rest changes with other records. A tag that this package did not make matches
// nothing.
func ifMatch(values []string) func(version int64) bool {
	tags := entityTags(values)
	if slices.Contains(tags, "*") {
		return func(int64) bool { return true }
	}
	versions := map[int64]bool{}
	for _, tag := range tags {
		if m := versionTag.FindStringSubmatch(tag); m != nil {
			if version, err := strconv.ParseInt(m[1], 10, 64); err == nil {
				versions[version] = true
			}
		}
	}
	return func(version int64) bool { return versions[version] }
}

var versionTag = regexp.MustCompile(`^"([1-9][0-9]*)(?:-[0-9]+)?"$`)

// notModified reports whether If-None-Match (RFC 9110 §13.1.2) names the tag. Tags are compared weakly.
func notModified(r *http.Request, tag string) bool {
	values := r.Header.Values("If-None-Match")
	if tag == "" || len(values) == 0 {
		return false
	}
	for _, t := range entityTags(values) {
		if t == "*" || strings.TrimPrefix(t, "W/") == strings.TrimPrefix(tag, "W/") {
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

// targetOf returns the path parameter that If-Match is about. It panics if several could be meant: an If-Match that is
// not looked at would let a client overwrite what it has not seen.
func (op *Op) targetOf() string {
	switch {
	case op.IfMatchParam == NoRecord:
		return ""
	case op.IfMatchParam != "":
		if !strings.Contains(op.Path, "{"+op.IfMatchParam+"}") && op.writes() {
			panic(op.ID + ": the path has no parameter " + op.IfMatchParam)
		}
		return op.IfMatchParam
	case strings.Contains(op.Path, "{id}"):
		return "id"
	case strings.Contains(op.Path, "{") && op.writes():
		panic(op.ID + ": Record must say which record If-Match is about")
	}
	return ""
}
