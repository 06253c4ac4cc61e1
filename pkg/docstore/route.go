package docstore

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/secret"
)

// Sealed is a secret member of a document. Make one with Seal.
type Sealed struct {
	name, at string
	text     *secret.Text
	route    Route
}

// Route holds the members of a document, by name, that say where a secret is sent and how it is protected on its way:
// host, port, URL, TLS, issuer. A stored secret is kept only while they stay as they are: otherwise whoever may write
// the document, but not read the secret, could have it sent to himself. The values are compared with reflect.DeepEqual.
type Route map[string]any

// NotSent is the Route of a secret that never leaves the platform, such as a key that only signs.
var NotSent = Route{}

// Seal declares a secret member. The name is that of Reveal. It panics without a Route, so that no member can be
// declared without one.
func Seal(name string, text *secret.Text, route Route) Sealed {
	if route == nil {
		panic("docstore: the sealed member " + name + " does not say where it is sent")
	}
	return Sealed{name: name, at: name, text: text, route: route}
}

// At sets where the member is in the document, if that is not its name. Faults are reported there.
func (s Sealed) At(location string) Sealed {
	s.at = location
	return s
}

// checkRoutes reports a fault at each of the members, whose stored values are to be kept, if its Route has changed.
func (c *collection) checkRoutes(kept []Sealed, former func() (any, error)) error {
	if len(kept) == 0 {
		return nil
	}
	was, err := former()
	if err != nil {
		return err
	}
	before := map[string]Route{}
	for _, member := range c.sealed(was) {
		before[member.name] = member.route
	}
	var faults apperr.Faults
	for _, member := range kept {
		changed := member.route.changes(before[member.name])
		faults.Check(len(changed) == 0, member.at, "must be given again, because the change sends it elsewhere: %s",
			strings.Join(changed, ", "))
	}
	return faults.Err()
}

// changes are the names of the members that differ, sorted.
func (r Route) changes(before Route) (names []string) {
	all := maps.Clone(r)
	maps.Copy(all, before)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !reflect.DeepEqual(r[name], before[name]) {
			names = append(names, name)
		}
	}
	return names
}
