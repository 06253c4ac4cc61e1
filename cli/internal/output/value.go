// Package output prints answers: as tables for people, and in the forms that programs read.
package output

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Object is a JSON object whose members keep their order.
type Object []Member

// Member is a member of an Object.
type Member struct {
	Name  string
	Value any // Object, []any, string, json.Number, bool or nil
}

// Get returns a member, also one of an inner object: "delivery.url". It returns nil if there is none.
func (o Object) Get(name string) any {
	for _, m := range o {
		if m.Name == name {
			return m.Value
		}
	}
	if outer, inner, ok := strings.Cut(name, "."); ok {
		if within, ok := o.Get(outer).(Object); ok {
			return within.Get(inner)
		}
	}
	return nil
}

// With returns the object with another value of a member, also of one of an inner object: "delivery.secret".
func (o Object) With(name string, value any) Object {
	out := slices.Clone(o)
	outer, inner, isInner := strings.Cut(name, ".")
	if within, ok := o.Get(outer).(Object); ok && isInner && !o.has(name) {
		name, value = outer, within.With(inner, value)
	}
	for i := range out {
		if out[i].Name == name {
			out[i].Value = value
			return out
		}
	}
	return append(out, Member{name, value})
}

// Text returns a member as Text does.
func (o Object) Text(name string) string { return Text(o.Get(name)) }

// List returns the items of an answer that is a list, or that has one as a member.
func List(value any, member string) ([]any, bool) {
	if object, isObject := value.(Object); isObject {
		value = object.Get(cmp.Or(member, "items"))
	}
	items, isList := value.([]any)
	return items, isList
}

// Parse reads JSON and keeps the order of members and the digits of numbers.
func Parse(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return parse(decoder)
}

func parse(decoder *json.Decoder) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		object := Object{}
		for decoder.More() {
			name, err := decoder.Token()
			if err != nil {
				return nil, err
			}
			value, err := parse(decoder)
			if err != nil {
				return nil, err
			}
			object = append(object, Member{name.(string), value})
		}
		_, err := decoder.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for decoder.More() {
			value, err := parse(decoder)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err := decoder.Token()
		return list, err
	}
	return token, nil
}

// MarshalJSON writes the members in their order.
func (o Object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		name, err := encode(m.Name)
		if err != nil {
			return nil, err
		}
		value, err := encode(m.Value)
		if err != nil {
			return nil, err
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// encode writes JSON, with < and & as they are.
func encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// Text writes a value for a cell: a string as it is, nothing for null, lists of plain values with commas, all else as
// JSON.
func Text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return fmt.Sprint(v)
	case []any:
		var parts []string
		for _, item := range v {
			switch item.(type) {
			case Object, []any:
				text, _ := encode(v)
				return string(text)
			}
			parts = append(parts, Text(item))
		}
		return strings.Join(parts, ", ")
	}
	text, _ := encode(value)
	return string(text)
}

// plain makes ordinary maps of objects, for templates and jq, whose own form each scalar gets.
func plain(value any, scalar func(any) any) any {
	switch v := value.(type) {
	case Object:
		out := make(map[string]any, len(v))
		for _, m := range v {
			out[m.Name] = plain(m.Value, scalar)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = plain(item, scalar)
		}
		return out
	}
	return scalar(value)
}

// forTemplate makes null an empty text, which a template would print as <nil>.
func forTemplate(value any) any {
	if value == nil {
		return ""
	}
	return value
}

// forJQ makes the numbers that gojq calculates with: large integers stay exact.
func forJQ(value any) any {
	n, isNumber := value.(json.Number)
	if !isNumber {
		return value
	}
	if whole, err := strconv.Atoi(n.String()); err == nil {
		return whole
	}
	if whole, ok := new(big.Int).SetString(n.String(), 10); ok {
		return whole
	}
	number, _ := n.Float64()
	return number
}
