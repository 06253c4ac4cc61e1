package engine

import "strings"

// route is where the URIs of an application's api resources are looked up: by the segments before the first that is
// variable.
type route struct{ application, prefix string }

// maxSegments bounds what looking up a URI costs.
const maxSegments = 64

// routeOf tells where a resource's URI is looked up; false if it has none.
func routeOf(r *Resource) (route, bool) {
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

func variable(segment string) bool { return strings.ContainsAny(segment, "{*") }

// byURI finds the api resource whose URI a path matches; of several the one with the most fixed segments at its
// beginning, then the one that is not open-ended, then the one with more segments, then the one made first.
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

func closer(a, b *Resource) bool {
	openA, openB := strings.HasSuffix(a.URI, "**"), strings.HasSuffix(b.URI, "**")
	fixedA, fixedB := strings.Count(a.URI, "/"), strings.Count(b.URI, "/")
	switch {
	case openA != openB:
		return openB
	case fixedA != fixedB:
		return fixedA > fixedB
	}
	return len(a.ID) < len(b.ID) || len(a.ID) == len(b.ID) && a.ID < b.ID
}

// matchesURI: {name} and * stand for one segment, ** for all that follows, also for nothing.
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
