package patch

import (
	"reflect"
	"slices"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/filter"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// list applies one operation to the values of a multi-valued attribute.
type list struct {
	*patcher
	path   schema.Path
	filter filter.Node
	items  []any
}

func (l *list) at() string {
	return schema.Path{Extension: l.path.Extension, Attribute: l.path.Attribute}.String()
}

// apply returns the new values.
func (l *list) apply(op Operation) (any, error) {
	if op.Op != Remove && op.Value == nil {
		op.Op = Remove // null stands for no value
	}
	var err error
	switch whole := l.filter == nil && l.path.Sub == nil; {
	case whole && op.Op == Replace:
		err = l.replace(op.Value)
	case whole && op.Op == Add:
		err = l.add(op.Value)
	case whole && op.Value == nil:
		l.items = nil
	case whole:
		err = l.removeValues(op.Value)
	case op.Op == Remove:
		err = l.removeSelected()
	default:
		err = l.set(op.Value)
	}
	if len(l.items) == 0 || err != nil {
		return nil, err
	}
	return l.items, nil
}

// sent are the values that a client sends: a list, or one value.
func (l *list) sent(v any) ([]any, error) {
	items := listOf(v)
	if l.path.Attribute.Type == schema.Any {
		return items, resource.CheckLength(l.path.Attribute, l.at(), len(items))
	}
	v, err := resource.Value(l.path.Attribute, l.at(), items, l.ignored)
	items, _ = v.([]any)
	return items, err
}

func listOf(v any) []any {
	if items, is := v.([]any); is {
		return items
	}
	return []any{v}
}

func (l *list) replace(v any) error {
	items, err := l.sent(v)
	if err != nil {
		return err
	}
	l.items = nil
	return l.append(items)
}

func (l *list) add(v any) error {
	items, err := l.sent(v)
	if err != nil {
		return err
	}
	return l.append(items)
}

// append adds values. One that is there already, with the same value and type, gets the sub-attributes of the new one
// instead (RFC 7643 §2.4).
func (l *list) append(items []any) error {
	touched := map[int]bool{}
	for _, item := range items {
		i := slices.IndexFunc(l.items, func(old any) bool { return same(old, item) })
		if i < 0 {
			i = len(l.items)
			l.items = append(l.items, resource.Clone(item))
		} else if o, is := item.(resource.Object); is {
			merged, err := l.merge(asObject(l.items[i]), l.path.Attribute, l.at(), o)
			if err != nil {
				return err
			}
			l.items[i] = merged
		}
		touched[i] = true
	}
	return l.finish(touched)
}

// finish checks the changed list and removes empty items.
func (l *list) finish(touched map[int]bool) error {
	if err := resource.CheckLength(l.path.Attribute, l.at(), len(l.items)); err != nil {
		return err
	}
	if err := l.onePrimary(touched); err != nil {
		return err
	}
	l.items = slices.DeleteFunc(l.items, func(item any) bool {
		o, is := item.(resource.Object)
		return is && len(o) == 0
	})
	return nil
}

// same reports whether two values of a list are the same one.
func same(a, b any) bool {
	x, isX := a.(resource.Object)
	y, isY := b.(resource.Object)
	if isX && isY && x["value"] != nil && y["value"] != nil {
		return equal(x["value"], y["value"]) && equal(x["type"], y["type"])
	}
	return reflect.DeepEqual(a, b)
}

// equal is reflect.DeepEqual, which takes longer for texts.
func equal(a, b any) bool {
	s, isText := a.(string)
	other, isOther := b.(string)
	if isText && isOther {
		return s == other
	}
	return reflect.DeepEqual(a, b)
}

// removeValues removes the values that have what one of those that a client sends has. The type of what is sent matters
// only if it is sent.
func (l *list) removeValues(v any) error {
	items, err := l.sent(v)
	if err != nil {
		return err
	}
	l.items = slices.DeleteFunc(l.items, func(old any) bool {
		return slices.ContainsFunc(items, func(item any) bool { return includes(old, item) })
	})
	return nil
}

func includes(old, sent any) bool {
	o, isO := old.(resource.Object)
	s, isS := sent.(resource.Object)
	if !isO || !isS {
		return reflect.DeepEqual(old, sent)
	}
	for _, name := range []string{"value", "type"} {
		if v, has := s[name]; has && !equal(v, o[name]) {
			return false
		}
	}
	if s["value"] != nil {
		return true
	}
	for name, v := range s {
		if !reflect.DeepEqual(v, o[name]) {
			return false
		}
	}
	return true
}

// selects reports whether the filter selects a value. Without one, all are selected.
func (l *list) selects(item any) bool {
	o, is := item.(resource.Object)
	return l.filter == nil || is && filter.Match(l.filter, o)
}

// removeSelected removes the selected values, or a sub-attribute of each. If that is "value", the rest says nothing and
// goes too. To remove what is not there changes nothing.
func (l *list) removeSelected() error {
	sub := l.path.Sub
	kept := l.items[:0]
	for _, item := range l.items {
		o, is := item.(resource.Object)
		switch {
		case !l.selects(item) || sub != nil && !is:
			kept = append(kept, item)
		case sub != nil && sub.Name != "value":
			o = resource.Clone(o)
			delete(o, resource.Key(o, sub))
			if len(o) > 0 {
				kept = append(kept, o)
			}
		}
	}
	l.items = kept
	return nil
}

// set sets sub-attributes of the selected values. If none is selected, it makes one that the filter selects.
func (l *list) set(v any) error {
	sent := resource.Object{}
	if l.path.Sub != nil {
		sent[l.path.Sub.Name] = v
	} else {
		var err error
		if sent, err = complexValue(l.path.Attribute, l.at(), v); err != nil || sent == nil {
			return err
		}
	}
	touched := map[int]bool{}
	for i, item := range l.items {
		if l.selects(item) {
			o, err := l.merge(asObject(item), l.path.Attribute, l.at(), sent)
			if err != nil {
				return err
			}
			l.items[i] = o
			touched[i] = true
		}
	}
	if len(touched) == 0 {
		o, err := l.make(sent)
		if err != nil {
			return err
		}
		touched[len(l.items)] = true
		l.items = append(l.items, o)
	}
	return l.finish(touched)
}

// make makes a value that the filter selects.
func (l *list) make(sent resource.Object) (resource.Object, error) {
	o := resource.Object{}
	if l.filter != nil {
		values, is := filter.Equals(l.filter)
		if !is {
			return nil, scim.Invalid(scim.NoTarget, "path", "selects no value")
		}
		for name, v := range values {
			o[name] = v
		}
	}
	return l.merge(o, l.path.Attribute, l.at(), sent)
}

// onePrimary ends the primacy of other values if one that was written is primary (RFC 7644 §3.5.2).
func (l *list) onePrimary(touched map[int]bool) error {
	primaries := 0
	for i := range touched {
		if asObject(l.items[i])["primary"] == true {
			primaries++
		}
	}
	if primaries > 1 {
		return scim.Invalid(scim.InvalidValue, l.at(), "would have more than one primary value")
	}
	if primaries == 0 || l.path.Attribute.Type == schema.Any {
		return nil
	}
	for i, item := range l.items {
		if o := asObject(item); !touched[i] && o["primary"] == true {
			o = resource.Clone(o)
			o["primary"] = false
			l.items[i] = o
		}
	}
	return nil
}

func asObject(v any) resource.Object {
	o, _ := v.(resource.Object)
	return o
}
