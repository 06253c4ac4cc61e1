package filter

import (
	"cmp"
	"encoding/json"
	"math/big"
	"strings"
	"time"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// Match reports whether a filter holds for a resource in canonical form.
func Match(n Node, r resource.Object) bool {
	switch n := n.(type) {
	case And:
		for _, part := range n {
			if !Match(part, r) {
				return false
			}
		}
		return true
	case Or:
		for _, part := range n {
			if Match(part, r) {
				return true
			}
		}
		return false
	case Not:
		return !Match(n.Of, r)
	case *Each:
		return len(n.matches(r)) > 0
	case *Compare:
		return n.match(r)
	}
	return false
}

// matches are the values for which the filter holds.
func (e *Each) matches(r resource.Object) []resource.Object {
	var found []resource.Object
	for _, v := range valuesOf(resource.Get(r, e.Path)) {
		if o, is := v.(resource.Object); is && Match(e.Filter, o) {
			found = append(found, o)
		}
	}
	return found
}

func valuesOf(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return []any{v}
}

func (c *Compare) match(r resource.Object) bool {
	values := c.values(r)
	switch {
	case c.Op == Present:
		return len(values) > 0
	case c.Value == nil:
		return (len(values) == 0) == (c.Op == Equal)
	case len(values) == 0:
		return c.Op == NotEqual
	}
	for _, v := range values {
		if c.holds(v) {
			return true
		}
	}
	return false
}

// values are the values of what is compared: of sub-attributes those of all values of the attribute. For pr, what is
// empty is no value.
func (c *Compare) values(r resource.Object) []any {
	of := c.Path
	of.Sub = nil
	values := valuesOf(resource.Get(r, of))
	if sub := c.Path.Sub; sub != nil {
		var subs []any
		for _, v := range values {
			o, _ := v.(resource.Object)
			subs = append(subs, valuesOf(resource.Member(o, sub))...)
		}
		values = subs
	}
	var full []any
	for _, v := range values {
		if c.Path.Leaf() != nil && c.Path.Leaf().Type == schema.Any {
			if o, is := v.(resource.Object); is && c.Op != Present && o["value"] != nil {
				v = o["value"]
			}
		}
		if v != nil && !(c.Op == Present && resource.IsEmpty(v)) {
			full = append(full, v)
		}
	}
	return full
}

// holds compares one value.
func (c *Compare) holds(v any) bool {
	switch want := c.Value.(type) {
	case string:
		s, is := v.(string)
		return is && c.text(Key(c.Path.Leaf(), s), c.key) || !is && c.Op == NotEqual
	case bool:
		b, is := resource.Boolean(v)
		return (is && b == want) == (c.Op == Equal)
	case json.Number:
		n, is := v.(json.Number)
		return is && c.order(compareNumbers(n, want)) || !is && c.Op == NotEqual
	case time.Time:
		s, _ := v.(string)
		t, is := resource.Time(s)
		return is && c.order(t.Compare(want)) || !is && c.Op == NotEqual
	}
	return false
}

func (c *Compare) text(s, want string) bool {
	switch c.Op {
	case Contains:
		return strings.Contains(s, want)
	case StartsWith:
		return strings.HasPrefix(s, want)
	case EndsWith:
		return strings.HasSuffix(s, want)
	}
	return c.order(cmp.Compare(s, want))
}

func (c *Compare) order(sign int) bool {
	switch c.Op {
	case Equal:
		return sign == 0
	case NotEqual:
		return sign != 0
	case Greater:
		return sign > 0
	case GreaterOrEqual:
		return sign >= 0
	case Less:
		return sign < 0
	case LessOrEqual:
		return sign <= 0
	}
	return false
}

// compareNumbers compares numbers of JSON, with as many digits as the exact value of a 64-bit integer or float has.
func compareNumbers(a, b json.Number) int {
	const bits = 256
	x, _, errX := big.ParseFloat(a.String(), 10, bits, big.ToNearestEven)
	y, _, errY := big.ParseFloat(b.String(), 10, bits, big.ToNearestEven)
	if errX != nil || errY != nil {
		return strings.Compare(a.String(), b.String())
	}
	return x.Cmp(y)
}
