// Package resource reads resources leniently, brings them into canonical form, and selects the attributes of answers.
//
// A resource is a JSON object in Go's generic form, with json.Number for numbers, so that large integers survive.
package resource

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
)

// Object is a JSON object. Attributes of the core schema are its members, extensions are objects under their URNs.
type Object = map[string]any

const maxDepth = 32 // of a body's arrays and objects

var errDepth, errTwice = errors.New("too deep"), errors.New("twice")

// Decode reads one JSON value (RFC 8259). Values of different members of one name are refused, since programs differ in
// which of them they take. Its errors have type invalidSyntax.
func Decode(body []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	v, err := decode(d, 0)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	switch {
	case errors.Is(err, errDepth):
		return nil, scim.Invalid(scim.InvalidSyntax, "", "the JSON is nested more than %d deep", maxDepth)
	case errors.Is(err, errTwice):
		return nil, scim.Invalid(scim.InvalidSyntax, "", "the JSON has a member twice")
	case err != nil:
		return nil, scim.Invalid(scim.InvalidSyntax, "", "the body is not JSON")
	}
	return v, nil
}

// DecodeObject is Decode for a JSON object.
func DecodeObject(body []byte) (Object, error) {
	v, err := Decode(body)
	if err != nil {
		return nil, err
	}
	if o, is := v.(Object); is {
		return o, nil
	}
	return nil, scim.Invalid(scim.InvalidSyntax, "", "the body must be a JSON object")
}

func decode(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	delim, is := token.(json.Delim)
	if !is {
		return token, nil
	}
	if depth == maxDepth {
		return nil, errDepth
	}
	if delim == '{' {
		return decodeObject(d, depth)
	}
	a := []any{}
	for d.More() {
		v, err := decode(d, depth+1)
		if err != nil {
			return nil, err
		}
		a = append(a, v)
	}
	_, err = d.Token()
	return a, err
}

func decodeObject(d *json.Decoder, depth int) (any, error) {
	o := Object{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		if _, twice := o[name]; twice {
			return nil, errTwice
		}
		if o[name], err = decode(d, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return o, err
}

// Clone copies a value deeply.
func Clone[T any](v T) T {
	copied, _ := clone(v).(T)
	return copied
}

func clone(v any) any {
	switch v := v.(type) {
	case Object:
		if v == nil {
			return v
		}
		o := make(Object, len(v))
		for name, member := range v {
			o[name] = clone(member)
		}
		return o
	case []any:
		if v == nil {
			return v
		}
		a := make([]any, len(v))
		for i, item := range v {
			a[i] = clone(item)
		}
		return a
	}
	return v
}
