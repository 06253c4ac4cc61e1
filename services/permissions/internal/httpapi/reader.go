package httpapi

import (
	"encoding/json"
	"strings"

	"github.com/idplatform/idplatform/pkg/rest"
)

// Decoding a batch of checks with a general decoder takes longer than answering them. So bodies without escapes, which
// are nearly all, are read by a reader that knows only checks; every other body is decoded with rest.JSON.Into. Both
// rely on what rest has checked: the body is valid JSON as the schema wants it, without repeated members.

// read fills the check in from a request's body.
func (c *asked) read(body rest.JSON[Check]) error {
	if r, ok := newReader(body.Text()); ok && r.check(c) {
		return nil
	}
	*c = asked{}
	return body.Into(c)
}

// read fills the batch in from a request's body.
func (b *batch) read(body rest.JSON[Checks]) error {
	if r, ok := newReader(body.Text()); ok && r.batch(b) {
		return nil
	}
	clear(b.Checks)
	b.Checks = b.Checks[:0]
	return body.Into(b)
}

// reader reads a body without escapes from the beginning to the end. Its methods return false for what they do not
// expect.
type reader struct {
	body string
	at   int
}

func newReader(body string) (*reader, bool) {
	return &reader{body, 0}, strings.IndexByte(body, '\\') < 0
}

// next skips white space and then c. It returns false, and skips nothing but white space, if another byte follows.
func (r *reader) next(c byte) bool {
	for ; r.at < len(r.body); r.at++ {
		switch r.body[r.at] {
		case ' ', '\t', '\n', '\r':
			continue
		case c:
			r.at++
			return true
		}
		return false
	}
	return false
}

// text reads a text.
func (r *reader) text() (text string, ok bool) {
	if !r.next('"') {
		return "", false
	}
	n := strings.IndexByte(r.body[r.at:], '"')
	if n < 0 {
		return "", false
	}
	text = r.body[r.at : r.at+n]
	r.at += n + 1
	return text, true
}

// object reads an object and returns its JSON.
func (r *reader) object() (text json.RawMessage, ok bool) {
	if !r.next('{') {
		return nil, false
	}
	start := r.at - 1
	for depth := 1; depth > 0; {
		n := strings.IndexAny(r.body[r.at:], `"{}`)
		if n < 0 {
			return nil, false
		}
		r.at += n
		switch r.body[r.at] {
		case '"':
			if _, ok := r.text(); !ok {
				return nil, false
			}
			continue
		case '{':
			depth++
		case '}':
			depth--
		}
		r.at++
	}
	return json.RawMessage(r.body[start:r.at]), true
}

// batch reads Checks.
func (r *reader) batch(b *batch) bool {
	if !r.next('{') {
		return false
	}
	if name, ok := r.text(); !ok || name != "checks" || !r.next(':') || !r.next('[') {
		return false
	}
	for !r.next(']') {
		if len(b.Checks) > 0 && !r.next(',') {
			return false
		}
		b.Checks = append(b.Checks, asked{})
		if !r.check(&b.Checks[len(b.Checks)-1]) {
			return false
		}
	}
	return r.next('}')
}

// check reads a Check.
func (r *reader) check(c *asked) bool {
	if !r.next('{') {
		return false
	}
	for first := true; !r.next('}'); first = false {
		if !first && !r.next(',') {
			return false
		}
		name, ok := r.text()
		if !ok || !r.next(':') {
			return false
		}
		if text := c.text(name); text != nil {
			*text, ok = r.text()
		} else if object := c.object(name); object != nil {
			*object, ok = r.object()
		} else {
			return false
		}
		if !ok {
			return false
		}
	}
	return true
}

// text returns the text member with a name; nil if there is none.
func (c *asked) text(name string) *string {
	switch name {
	case "identity_id":
		return &c.IdentityID
	case "identity_type":
		return &c.IdentityType
	case "application_id":
		return &c.ApplicationID
	case "object_type":
		return &c.ObjectType
	case "object_code":
		return &c.ObjectCode
	case "object_id":
		return &c.ObjectID
	case "uri":
		return &c.URI
	case "method":
		return &c.Method
	case "action":
		return &c.Action
	}
	return nil
}

// object returns the object member with a name; nil if there is none.
func (c *asked) object(name string) *json.RawMessage {
	switch name {
	case "context":
		return &c.Context
	case "subject_properties":
		return &c.Subject
	case "resource_properties":
		return &c.Resource
	case "action_properties":
		return &c.ActionProps
	}
	return nil
}
