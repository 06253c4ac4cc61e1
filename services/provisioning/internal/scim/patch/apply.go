package patch

import (
	"reflect"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/filter"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// User applies the operations of a request to a resource in canonical form, one after the other: all or, with an error,
// none. It returns the new resource and whether it differs; r stays as it is. Members of values that no schema declares
// are noted in ignored, and so are paths into extensions that are not declared.
//
// Its errors are located at the operation and have type invalidPath, noTarget (a filter that selects
// nothing, unless a value can be made from it), mutability (a path to what clients cannot write, or the removal of what
// is required) or invalidValue.
func User(
	kind *schema.Resource, r resource.Object, operations []Operation, ignored *resource.Ignored,
) (changed resource.Object, differs bool, err error) {
	p := patcher{kind: kind, r: resource.Clone(r), ignored: ignored}
	if err := p.all(operations); err != nil {
		return nil, false, err
	}
	return p.r, !reflect.DeepEqual(p.r, r), nil
}

// patcher applies operations to r.
type patcher struct {
	kind    *schema.Resource
	r       resource.Object
	ignored *resource.Ignored
	members *members // of a group
}

func (p *patcher) all(operations []Operation) error {
	for i, op := range operations {
		if err := p.apply(op); err != nil {
			return of(i, err)
		}
	}
	return nil
}

func (p *patcher) apply(op Operation) error {
	if op.Path == "" {
		values, _ := op.Value.(resource.Object)
		return p.each(op.Op, values)
	}
	if p.kind.Undeclared(op.Path) {
		p.ignored.Add(op.Path)
		return nil
	}
	t, err := filter.ParsePath(p.kind, op.Path)
	if err != nil {
		return scim.Relocate(err, func(string) string { return "path" })
	}
	switch readOnly, skipped := p.readOnly(t.Path); {
	case skipped:
		return nil
	case readOnly:
		return scim.Invalid(scim.Mutability, "path", "names what clients cannot change")
	}
	return p.at(t, op)
}

// each applies an operation without a path. Each member is a path: an attribute, one with a dot or a filter, or an
// extension or the core schema, whose members are its attributes.
func (p *patcher) each(op Op, values resource.Object) error {
	for _, name := range sorted(values) {
		if core, is := values[name].(resource.Object); is && strings.EqualFold(name, p.kind.Core.ID) {
			if err := p.each(op, core); err != nil {
				return err
			}
			continue
		}
		t, err := filter.ParsePath(p.kind, name)
		if err != nil {
			attribute, _, filtered := strings.Cut(name, "[")
			if _, known := p.kind.Find(attribute); known && filtered {
				return scim.Relocate(err, func(string) string { return "value" })
			}
			p.ignored.Add(name)
			continue
		}
		if readOnly, _ := p.readOnly(t.Path); readOnly {
			continue
		}
		if err := p.at(t, Operation{Op: op, Path: name, Value: values[name]}); err != nil {
			return err
		}
	}
	return nil
}

// readOnly reports whether clients cannot write what is at a path, and whether they may try: some send these attributes
// back as they read them.
func (p *patcher) readOnly(path schema.Path) (readOnly, skipped bool) {
	a := path.Attribute
	if a == nil {
		s, _ := p.kind.Extension(path.Extension)
		return !s.Open && !slices.ContainsFunc(s.Attributes, func(a *schema.Attribute) bool {
			return a.Mutability != schema.ReadOnly
		}), false
	}
	if path.Leaf().Mutability != schema.ReadOnly && a.Mutability != schema.ReadOnly {
		return false, false
	}
	return true, path.Extension == "" && slices.Contains([]string{"id", "meta", "schemas", "groups"}, a.Name)
}

// at applies an operation at a path.
func (p *patcher) at(t filter.Target, op Operation) error {
	a := t.Path.Attribute
	switch {
	case a == nil:
		return p.extension(t.Path.Extension, op)
	case p.members != nil && a.Name == "members" && t.Path.Extension == "":
		return p.members.apply(t, op)
	}
	if a.Required && t.Path.Extension == "" {
		if op.Op == Remove {
			return scim.Invalid(scim.Mutability, "path", "names a required attribute, which cannot be removed")
		}
		if resource.IsEmpty(op.Value) {
			return scim.Invalid(scim.InvalidValue, a.Name, "is required")
		}
	}
	o := p.r
	if urn := t.Path.Extension; urn != "" {
		if o, _ = p.r[urn].(resource.Object); o == nil {
			o = resource.Object{}
		}
		defer func() { p.put(p.r, urn, o) }()
	}
	v, err := p.value(o[resource.Key(o, a)], t, op)
	if err != nil {
		return err
	}
	p.put(o, resource.Key(o, a), v)
	return nil
}

// put sets a member, or removes it if it is empty: null, an empty list or object.
func (p *patcher) put(o resource.Object, name string, v any) {
	if _, isText := v.(string); !isText && resource.IsEmpty(v) {
		delete(o, name)
	} else {
		o[name] = v
	}
}

// extension applies an operation to an extension as a whole: its other attributes stay.
func (p *patcher) extension(urn string, op Operation) error {
	if op.Op == Remove || op.Value == nil {
		delete(p.r, urn)
		return nil
	}
	values, is := op.Value.(resource.Object)
	if !is {
		return scim.Invalid(scim.InvalidValue, urn, "must be an object")
	}
	named := resource.Object{}
	for name, v := range values {
		if len(name) > 4 && strings.EqualFold(name[:4], "urn:") {
			p.ignored.Add(urn + ":" + name)
			continue
		}
		named[urn+":"+name] = v
	}
	return p.each(op.Op, named)
}

// value returns the new value of an attribute.
func (p *patcher) value(old any, t filter.Target, op Operation) (any, error) {
	a := t.Path.Attribute
	_, isList := old.([]any)
	if a.MultiValued || a.Type == schema.Any && (isList || t.Filter != nil) {
		items, _ := old.([]any)
		l := list{patcher: p, path: t.Path, filter: t.Filter, items: slices.Clone(items)}
		return l.apply(op)
	}
	if t.Filter != nil {
		return nil, scim.Invalid(scim.InvalidPath, "path", "has a filter on an attribute with one value")
	}
	return p.single(old, t.Path, op)
}

// single returns the new value of an attribute that has one value.
func (p *patcher) single(old any, path schema.Path, op Operation) (any, error) {
	a, at := path.Attribute, schema.Path{Extension: path.Extension, Attribute: path.Attribute}.String()
	o, isObject := old.(resource.Object)
	switch {
	case op.Op == Remove && path.Sub == nil:
		return nil, nil //nolint:nilnil // no value is what remains
	case path.Sub != nil:
		if old != nil && !isObject {
			return nil, scim.Invalid(scim.NoTarget, "path", "names a sub-attribute of what has none")
		}
		v := op.Value
		if op.Op == Remove {
			v = nil
		}
		return orNil(p.merge(o, a, at, resource.Object{path.Sub.Name: v}))
	case a.Type == schema.Any && isObject && isMerged(op.Value):
		v, _ := op.Value.(resource.Object)
		return orNil(p.merge(o, a, at, v))
	case a.Type != schema.Complex:
		return resource.Single(a, at, op.Value, p.ignored)
	}
	sent, err := complexValue(a, at, op.Value)
	if sent == nil || err != nil {
		return nil, err
	}
	return orNil(p.merge(o, a, at, sent))
}

func isMerged(v any) bool {
	_, is := v.(resource.Object)
	return is
}

func orNil(o resource.Object, err error) (any, error) {
	if len(o) == 0 || err != nil {
		return nil, err
	}
	return o, nil
}

// complexValue takes the value of a complex attribute as clients send it: an object, a list with one, and if the
// attribute has a sub-attribute "value", that alone. It returns nil for what stands for no value.
func complexValue(a *schema.Attribute, at string, v any) (resource.Object, error) {
	if items, is := v.([]any); is {
		switch len(items) {
		case 0:
			return nil, nil //nolint:nilnil // an empty list stands for no value
		case 1:
			v = items[0]
		}
	}
	switch v := v.(type) {
	case nil:
		return nil, nil //nolint:nilnil // null stands for no value
	case resource.Object:
		return v, nil
	case string:
		if _, has := a.Sub("value"); has && v == "" {
			return nil, nil //nolint:nilnil // an empty text stands for no value
		} else if has {
			return resource.Object{"value": v}, nil
		}
	}
	return nil, scim.Invalid(scim.InvalidValue, at, "must be an object")
}

// merge sets sub-attributes of a complex value and leaves the others. Those that are null are removed. Without its
// "value", which it had or is to get, nothing remains; a new one ends what the old one brought: $ref and so on.
func (p *patcher) merge(old resource.Object, a *schema.Attribute, at string, sent resource.Object,
) (resource.Object, error) {
	merged := resource.Clone(old)
	if merged == nil {
		merged = resource.Object{}
	}
	values := resource.Object{}
	for _, name := range sorted(sent) {
		sub, is := a.Sub(name)
		if !is {
			p.ignored.Add(at + "." + name)
			continue
		}
		if sub.Mutability == schema.ReadOnly {
			continue
		}
		v, err := resource.Value(sub, at+"."+sub.Name, sent[name], p.ignored)
		if err != nil {
			return nil, err
		}
		values[resource.Key(merged, sub)] = v
	}
	value, given := values["value"]
	switch {
	case a.Type == schema.Any || !given:
	case resource.IsEmpty(value):
		return nil, nil //nolint:nilnil // no value is what remains
	case !a.MultiValued && value != old["value"]:
		merged = resource.Object{}
	}
	for name, v := range values {
		p.put(merged, name, v)
	}
	return merged, nil
}

func sorted(o resource.Object) []string {
	names := make([]string, 0, len(o))
	for name := range o {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
