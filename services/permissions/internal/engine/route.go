package engine

import "strings"

// route is the key under which an application's api resources are found by URI: the segments before the first variable
// one.
type route struct{ application, prefix string }

// maxSegments bounds the cost of finding a resource by URI.
const maxSegments = 64

// routeOf is the route of a resource. ok is false if it has no URI that a check can name.
func routeOf(r *Resource) (at route, ok bool) {
	segments := r.path
	for i, segment := range segments {
		if variable(segment) {
			segments = segments[:i]
			break
		}
	}
	return route{r.ApplicationID, strings.Join(segments, "/")}, len(r.path) > 0
}

// variable reports whether a segment of a pattern can match several texts.
func variable(segment string) bool { return segment == "*" || segment == "**" || placeholder(segment) }

// byURI finds the api resource whose URI matches a path in its normal form. Of several it is the one with the most
// fixed segments at the beginning, then one that does not end with **, then the one with more segments, then the one
// with the smaller id.
func (s *State) byURI(applicationID string, path []string) *Resource {
	if len(path) > maxSegments {
		return nil
	}
	for n := len(path); n > 0; n-- {
		var best *Resource
		for _, r := range s.routes.Get(route{applicationID, strings.Join(path[:n], "/")}) {
			if matchesURI(r.path, path) && (best == nil || closer(r, best)) {
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

// matchesURI reports whether a path in its normal form matches a pattern: {name} and * match one segment that is not
// empty, ** all segments that follow, also none. A path that ends with a slash matches only a pattern that does, but
// the path / matches /** too: a program may take /a/ for /a, about which there can be other rules.
func matchesURI(pattern, path []string) bool {
	for i, part := range pattern {
		switch {
		case part == "**":
			return path[len(path)-1] != "" || len(path) == 2
		case i >= len(path), variable(part) && path[i] == "", !variable(part) && part != path[i]:
			return false
		}
	}
	return len(pattern) == len(path)
}
