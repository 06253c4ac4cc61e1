package mongostore

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// structCodec writes structs as encoding/json does: json tags, embedded structs inlined, omitempty and omitzero. The driver's
// own fallback to json tags does not inline and knows no omitzero.
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
	p := &plan{byName: map[string]*member{}}
	var named [][]int // embedded structs that are members of their own
	for _, f := range reflect.VisibleFields(t) {
		if within(f.Index, named) {
			continue
		}
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if f.Anonymous && name == "" {
			if f.Type.Kind() == reflect.Struct {
				continue // its members follow
			}
			return nil, fmt.Errorf("%s embeds %s, which is no struct", t, f.Type)
		}
		if f.Anonymous {
			if !f.IsExported() {
				return nil, fmt.Errorf("%s embeds %s as a member, but it is not exported", t, f.Type)
			}
			named = append(named, f.Index)
		}
		if !f.IsExported() || tag == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		m := member{name: name, index: f.Index, typ: f.Type}
		for option := range strings.SplitSeq(options, ",") {
			m.omitEmpty = m.omitEmpty || option == "omitempty"
			m.omitZero = m.omitZero || option == "omitzero"
		}
		p.members = append(p.members, m)
	}
	for i := range p.members {
		m := &p.members[i]
		if p.byName[m.name] != nil {
			return nil, fmt.Errorf("%s has two members %q", t, m.name)
		}
		p.byName[m.name] = m
	}
	return p, nil
}

func within(index []int, prefixes [][]int) bool {
	for _, p := range prefixes {
		if len(index) > len(p) && reflect.DeepEqual(index[:len(p)], p) {
			return true
		}
	}
	return false
}

// isEmpty is encoding/json's notion of omitempty.
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

// isZero is encoding/json's notion of omitzero.
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
