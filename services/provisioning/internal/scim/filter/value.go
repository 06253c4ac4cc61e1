package filter

import (
	"encoding/json"
	"strings"

	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// ordered and textual are the operators that not all types have.
func (op Op) ordered() bool {
	return op == Greater || op == GreaterOrEqual || op == Less || op == LessOrEqual
}

func (op Op) textual() bool { return op == Contains || op == StartsWith || op == EndsWith }

// resolve gives a comparison its value, and refuses what the attribute's type does not have.
func (c *Compare) resolve(value token, at int) error {
	leaf := c.Path.Leaf()
	switch {
	case leaf == nil && c.Op != Present:
		return fault("compares an extension as a whole at position %d", at+1)
	case leaf == nil:
		return nil
	case leaf.Hidden():
		return fault("has an attribute at position %d that cannot be read", at+1)
	case c.Op == Present:
		return nil
	}
	if isNull(value) {
		if c.Op != Equal && c.Op != NotEqual {
			return fault("orders null at position %d", value.at+1)
		}
		return nil
	}
	if leaf.Type == schema.Complex {
		sub, has := leaf.Sub("value")
		if !has || c.Path.Sub != nil || sub.Hidden() {
			return fault("compares a complex attribute at position %d; name a sub-attribute", at+1)
		}
		c.Path.Sub, leaf = sub, sub
	}
	v, is := literal(value)
	if !is {
		return syntax(value.at, "a text in double quotes, a number, true, false or null")
	}
	if c.Value, is = c.convert(leaf, v); !is {
		return fault("compares with %s a value at position %d that the attribute cannot have", c.Op, value.at+1)
	}
	if s, is := c.Value.(string); is {
		c.key = Key(leaf, s)
	}
	return nil
}

func isNull(t token) bool { return t.kind == word && strings.EqualFold(t.text, "null") }

func literal(t token) (any, bool) {
	switch t.kind {
	case quoted:
		return t.text, true
	case number:
		return json.Number(t.text), true
	case word:
		b, is := resource.Boolean(t.text)
		return b, is
	}
	return nil, false
}

// convert brings a value into the type of the attribute, if its type has the operator.
func (c *Compare) convert(a *schema.Attribute, v any) (any, bool) {
	s, isText := v.(string)
	switch a.Type {
	case schema.Any:
		_, isBoolean := v.(bool)
		return v, isText || !c.Op.textual() && !(isBoolean && c.Op.ordered())
	case schema.Boolean:
		b, is := resource.Boolean(v)
		return b, is && !c.Op.ordered() && !c.Op.textual()
	case schema.Integer, schema.Decimal:
		n, is := v.(json.Number)
		return n, is && !c.Op.textual()
	case schema.DateTime:
		if c.Op.textual() {
			return v, isText
		}
		t, is := resource.Time(s)
		return t, is && isText
	case schema.Binary:
		return v, isText && !c.Op.ordered()
	}
	return v, isText
}

// Key is the form in which texts of an attribute are compared: indexes that serve filters must have it.
func Key(a *schema.Attribute, s string) string {
	if a.CaseExact {
		return s
	}
	return textindex.Key(s)
}

// Key is the form in which the comparison's text is compared; "" if its value is no text.
func (c *Compare) Key() string { return c.key }
