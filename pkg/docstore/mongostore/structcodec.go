package mongostore

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// structCodec encodes structs as encoding/json does: json tags, inlined embedded structs, omitempty and omitzero. The
// driver's own use of json tags does not inline and does not know omitzero.
type structCodec struct {
	plans sync.Map // reflect.Type → *plan
}

type plan struct {
	members []member
	byName  map[string]*member
}

type member struct {
	name                string
	index               []int
	typ                 reflect.Type
	omitEmpty, omitZero bool
}

func (c *structCodec) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
	p, err := c.plan(v.Type())
	if err != nil {
		return err
	}
	document, err := vw.WriteDocument()
	if err != nil {
		return err
	}
	for i := range p.members {
		m := &p.members[i]
		value := v.FieldByIndex(m.index)
		if (m.omitEmpty && isEmpty(value)) || (m.omitZero && isZero(value)) {
			continue
		}
		element, err := document.WriteDocumentElement(m.name)
		if err != nil {
			return err
		}
		encoder, err := ec.LookupEncoder(m.typ)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if err := encoder.EncodeValue(ec, element, value); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return document.WriteDocumentEnd()
}

func (c *structCodec) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
	if vr.Type() == bson.TypeNull {
		v.SetZero()
		return vr.ReadNull()
	}
	p, err := c.plan(v.Type())
	if err != nil {
		return err
	}
	document, err := vr.ReadDocument()
	if err != nil {
		return err
	}
	for {
		name, element, err := document.ReadElement()
		if errors.Is(err, bson.ErrEOD) {
			return nil
		}
		if err != nil {
			return err
		}
		m := p.byName[name]
		if m == nil {
			if err := element.Skip(); err != nil {
				return err
			}
			continue
		}
		decoder, err := dc.LookupDecoder(m.typ)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := decoder.DecodeValue(dc, element, v.FieldByIndex(m.index)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

func (c *structCodec) plan(t reflect.Type) (*plan, error) {
	if p, ok := c.plans.Load(t); ok {
		return p.(*plan), nil
	}
	p, err := newPlan(t)
	if err != nil {
		return nil, err
	}
	c.plans.Store(t, p)
	return p, nil
}

func newPlan(t reflect.Type) (*plan, error) {
	members, err := membersOf(t, nil)
	if err != nil {
		return nil, err
	}
	p := &plan{members: members, byName: map[string]*member{}}
	for i := range p.members {
		m := &p.members[i]
		if p.byName[m.name] != nil {
			return nil, fmt.Errorf("%s has two members %q", t, m.name)
		}
		p.byName[m.name] = m
	}
	return p, nil
}

// membersOf lists the members of a struct at index, with those of structs that it embeds. It does not use Go's promoted
// fields: two embedded structs can each have a field ID, with names of their own in JSON.
func membersOf(t reflect.Type, index []int) ([]member, error) {
	var all []member
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		here := append(slices.Clone(index), f.Index...)
		if f.Anonymous && name == "" {
			if f.Type.Kind() != reflect.Struct {
				return nil, fmt.Errorf("%s embeds %s, which is not a struct", t, f.Type)
			}
			inner, err := membersOf(f.Type, here)
			if err != nil {
				return nil, err
			}
			all = append(all, inner...)
			continue
		}
		if f.Anonymous && !f.IsExported() {
			return nil, fmt.Errorf("%s embeds %s as a member, but it is not exported", t, f.Type)
		}
		if !f.IsExported() || tag == "-" {
			continue
		}
		m := member{name: cmp.Or(name, f.Name), index: here, typ: f.Type}
		for option := range strings.SplitSeq(options, ",") {
			m.omitEmpty = m.omitEmpty || option == "omitempty"
			m.omitZero = m.omitZero || option == "omitzero"
		}
		all = append(all, m)
	}
	return all, nil
}

// isEmpty is what omitempty means in encoding/json.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	default:
		return v.IsZero()
	}
}

// isZero is what omitzero means in encoding/json.
func isZero(v reflect.Value) bool {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return true
	}
	if v.CanAddr() {
		if z, ok := v.Addr().Interface().(interface{ IsZero() bool }); ok {
			return z.IsZero()
		}
	}
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok {
		return z.IsZero()
	}
	return v.IsZero()
}
