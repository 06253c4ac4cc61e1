package resource

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// Ignored are the members of requests that no schema declares. They change nothing, and a log tells of them.
type Ignored struct{ names []string }

// The log keeps this much of what a request has.
const (
	maxIgnored     = 50
	maxIgnoredName = 128 // bytes
)

// Add notes an ignored member, once.
func (i *Ignored) Add(name string) {
	if i == nil || len(i.names) == maxIgnored {
		return
	}
	if len(name) > maxIgnoredName {
		name = strings.ToValidUTF8(name[:maxIgnoredName], "")
	}
	if !slices.Contains(i.names, name) {
		i.names = append(i.names, name)
	}
}

// Names are the paths of the ignored members, in the order of names within each object.
func (i *Ignored) Names() []string { return i.names }

// Read brings a resource that a client sent into canonical form: names and URNs in the case of the schema, "True" and
// "False" as booleans, null and empty lists absent. Attributes that are read-only are left out, as RFC 7644 §3.3 says;
// so are undeclared ones, which it notes in ignored. A value of a wrong type is 400 invalidValue, with the path of the
// attribute, and so is a list with two primary values. Required reports what is missing.
func Read(kind *schema.Resource, sent Object, ignored *Ignored) (Object, error) {
	r := Object{}
	for _, name := range sorted(sent) {
		v := sent[name]
		if s, is := kind.Extension(name); is {
			if err := readExtension(s, v, r, ignored); err != nil {
				return nil, err
			}
			continue
		}
		a, is := kind.Attribute(name)
		if !is {
			ignored.Add(name)
			continue
		}
		if a.Name == "schemas" {
			if err := checkSchemas(v); err != nil {
				return nil, err
			}
		}
		if err := put(r, a, a.Name, v, ignored); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Required refuses (400 invalidValue) a resource that lacks an attribute that clients must give, and names all of them.
func Required(kind *schema.Resource, r Object) error {
	var missing []string
	for _, a := range kind.Core.Attributes {
		if a.Required && IsEmpty(r[a.Name]) {
			missing = append(missing, a.Name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return scim.Invalid(scim.InvalidValue, missing[0],
		"is required (of those that are required, the resource lacks %s)", strings.Join(missing, ", "))
}

// IsEmpty reports whether a value is as good as absent: null, an empty text, list or object.
func IsEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case Object:
		return len(v) == 0
	}
	return false
}

// put reads one member of an object into it.
func put(o Object, a *schema.Attribute, at string, v any, ignored *Ignored) error {
	if a.Mutability == schema.ReadOnly {
		return nil
	}
	if _, twice := o[a.Name]; twice {
		return scim.Invalid(scim.InvalidSyntax, at, "is there twice, in different case")
	}
	v, err := Value(a, at, v, ignored)
	if err != nil || v == nil {
		return err
	}
	o[a.Name] = v
	return nil
}

func readExtension(s *schema.Schema, v any, r Object, ignored *Ignored) error {
	if v == nil {
		return nil
	}
	sent, is := v.(Object)
	if !is {
		return wrongType(s.ID, "an object")
	}
	if _, twice := r[s.ID]; twice {
		return scim.Invalid(scim.InvalidSyntax, s.ID, "is there twice, in different case")
	}
	o := Object{}
	for _, name := range sorted(sent) {
		a, is := s.Attribute(name)
		if !is {
			ignored.Add(s.ID + ":" + name)
			continue
		}
		if err := put(o, a, s.ID+":"+a.Name, sent[name], ignored); err != nil {
			return err
		}
	}
	if len(o) > 0 {
		r[s.ID] = o
	}
	return nil
}

// checkSchemas checks the type of what a client sends as schemas. Which schemas a resource has follows from its
// attributes, so the values do not matter.
func checkSchemas(v any) error {
	list, is := v.([]any)
	if !is && v != nil {
		return wrongType("schemas", "a list")
	}
	for _, urn := range list {
		if _, is := urn.(string); !is {
			return wrongType("schemas", "a list of URNs")
		}
	}
	return nil
}

// Value reads a value of an attribute: of a multi-valued one the whole list. It returns nil for null and what is empty.
func Value(a *schema.Attribute, at string, v any, ignored *Ignored) (any, error) {
	if v == nil || a.Type == schema.Any {
		return v, nil
	}
	if !a.MultiValued {
		return Single(a, at, v, ignored)
	}
	sent, is := v.([]any)
	if !is {
		return nil, wrongType(at, "a list")
	}
	if err := CheckLength(a, at, len(sent)); err != nil {
		return nil, err
	}
	list := make([]any, 0, len(sent))
	for i, item := range sent {
		item, err := Single(a, fmt.Sprintf("%s[%d]", at, i), item, ignored)
		if err != nil {
			return nil, err
		}
		if item != nil {
			list = append(list, item)
		}
	}
	if len(list) == 0 {
		return nil, nil //nolint:nilnil // an empty list is as good as absent
	}
	return list, onePrimary(at, list)
}

// MaxValues is how many values a list has at most, unless it is unbounded.
const MaxValues = 500

// CheckLength refuses (400 invalidValue) a list that is too long.
func CheckLength(a *schema.Attribute, at string, n int) error {
	if n > MaxValues && !a.Unbounded {
		return scim.Invalid(scim.InvalidValue, at, "has more than %d values", MaxValues)
	}
	return nil
}

func onePrimary(at string, list []any) error {
	primaries := 0
	for _, item := range list {
		if o, is := item.(Object); is && o["primary"] == true {
			primaries++
		}
	}
	if primaries > 1 {
		return scim.Invalid(scim.InvalidValue, at, "has more than one primary value")
	}
	return nil
}

// Single reads one value of an attribute: of a multi-valued one an item of the list.
func Single(a *schema.Attribute, at string, v any, ignored *Ignored) (any, error) {
	if v == nil {
		return nil, nil //nolint:nilnil // null is as good as absent
	}
	switch a.Type {
	case schema.Any:
		return v, nil
	case schema.Complex:
		return readComplex(a, at, v, ignored)
	case schema.Boolean:
		if b, is := Boolean(inList(v)); is {
			return b, nil
		}
		return nil, wrongType(at, "true or false")
	case schema.Integer, schema.Decimal:
		if n, is := v.(json.Number); is && (a.Type == schema.Decimal || !strings.ContainsAny(n.String(), ".eE")) {
			return n, nil
		}
		return nil, wrongType(at, "a number")
	}
	s, is := v.(string)
	if !is {
		return nil, wrongType(at, "a text")
	}
	if a.Type == schema.DateTime {
		if _, is := Time(s); !is {
			return nil, wrongType(at, "a time: 2026-01-31T09:30:00Z")
		}
	}
	return s, nil
}

func readComplex(a *schema.Attribute, at string, v any, ignored *Ignored) (any, error) {
	sent, is := v.(Object)
	if !is {
		return nil, wrongType(at, "an object")
	}
	o := Object{}
	for _, name := range sorted(sent) {
		sub, is := a.Sub(name)
		if !is {
			ignored.Add(at + "." + name)
			continue
		}
		if err := put(o, sub, at+"."+sub.Name, sent[name], ignored); err != nil {
			return nil, err
		}
	}
	if len(o) == 0 {
		return nil, nil //nolint:nilnil // an empty object is as good as absent
	}
	return o, nil
}

// inList returns the value of a list with one object, as which Entra sends booleans, too: [{"value":"False"}]. It
// returns anything else as it is.
func inList(v any) any {
	if list, is := v.([]any); is && len(list) == 1 {
		if o, is := list[0].(Object); is && len(o) == 1 {
			return o["value"]
		}
	}
	return v
}

// Boolean reads a boolean, also as the texts "True" and "False" in any case, which Entra sends.
func Boolean(v any) (value, is bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case string:
		if strings.EqualFold(v, "true") {
			return true, true
		}
		return false, strings.EqualFold(v, "false")
	}
	return false, false
}

// Time reads a dateTime (RFC 7643 §2.3.5), also without a zone, which is taken as UTC, and a date alone.
func Time(s string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

func wrongType(at, what string) error {
	return scim.Invalid(scim.InvalidValue, at, "must be %s", what)
}

func sorted(o Object) []string {
	names := make([]string, 0, len(o))
	for name := range o {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
