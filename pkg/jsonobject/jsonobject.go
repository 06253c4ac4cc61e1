// Package jsonobject reads the members of a JSON object (RFC 8259, section 4) without decoding their values.
package jsonobject

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

var errNoObject = errors.New("jsonobject: not a JSON object")

// Each calls each for the members of an object, in their order. A value is a part of the object's bytes and must not be
// changed. Names may occur twice, and strings may have bytes that are not UTF-8. If the object has a syntax error, Each
// returns it, after the members before it.
func Each(object []byte, each func(name string, value []byte)) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(object), // which it neither copies nor changes
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	begin, err := d.ReadToken()
	if err != nil {
		return err
	}
	if begin.Kind() != '{' {
		return errNoObject
	}
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		end := d.InputOffset()
		each(name, object[end-int64(len(value)):end])
	}
	_, err = d.ReadToken()
	return err
}
