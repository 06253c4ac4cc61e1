package engine

import "strings"

// route is the key under which an application's api resources are found by URI: the segments before the first variable
// one.
type route struct{ application, prefix string }

// maxSegments bounds the cost of finding a resource by URI.
const maxSegments = 64

// routeOf is the route of a resource. ok is false if it has no URI.
func routeOf(r *Resource) (at route, ok bool) {
	if r.Type != API || r.URI == "" {
		return route{}, false
	}
	var fixed []string
	for _, segment := range strings.Split(r.URI, "/") {
		if variable(segment) {
			break
		}
		fixed = append(fixed, segment)
	}
	return route{r.ApplicationID, strings.Join(fixed, "/")}, true
}

// variable reports whether a segment of a pattern can match several texts.
func variable(segment string) bool { return strings.ContainsAny(segment, "{*") }

// byURI finds the api resource whose URI matches a path. Of several it is the one with the most fixed segments at the
// beginning, then one that does not end with **, then the one with more segments, then the one with
// the smaller id.
func (s *State) byURI(applicationID, path string) *Resource {
	segments := strings.Split(path, "/")
	if len(segments) > maxSegments {
		return nil
	}
	for n := len(segments); n > 0; n-- {
		var best *Resource
		for _, r := range s.routes.Get(route{applicationID, strings.Join(segments[:n], "/")}) {
			if matchesURI(r.URI, segments) && (best == nil || closer(r, best)) {
				best = r
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

// closer reports whether byURI prefers a to b, if both have the same fixed segments at the beginning.
func closer(a, b *Resource) bool {
	openA, openB := strings.HasSuffix(a.URI, "**"), strings.HasSuffix(b.URI, "**")
	segmentsA, segmentsB := strings.Count(a.URI, "/"), strings.Count(b.URI, "/")
	switch {
	case openA != openB:
		return openB
	case segmentsA != segmentsB:
		return segmentsA > segmentsB
	}
	return compareIDs(a.ID, b.ID) < 0
}

// matchesURI reports whether a path matches a pattern: {name} and * match one segment that is not empty, ** matches all
// segments that follow, also none.
func matchesURI(pattern string, segments []string) bool {
	parts := strings.Split(pattern, "/")
	for i, part := range parts {
		if part == "**" {
			return i == len(parts)-1
		}
		if i >= len(segments) {
			return false
		}
		if variable(part) {
			if segments[i] == "" {
				return false
			}
		} else if part != segments[i] {
			return false
		}
	}
	return len(parts) == len(segments)
}
