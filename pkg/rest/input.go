package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// readBody reads a JSON body before huma does: completely, once, within the operation's time. So every fault in a
// body's bytes is refused in one place, and the fingerprint of a repeated request is that of the body that the
// operation gets. The body is in the call's buffer, without unknown members, which are among the call's faults.
func readBody(op *Op, call *call, w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if op.jsonBody == required && !op.takes(r.Header.Get("Content-Type")) {
		if op.Lenient {
			return nil, apperr.New(apperr.InvalidParameters, "the body must be application/json")
		}
		return nil, apperr.New(apperr.UnsupportedMediaType, "the body must be application/json")
	}
	if r.ContentLength > maxBody {
		return nil, errTooLarge
	}
	call.buffer = bodyBuffers.Get().(*[]byte)
	body, err := receive(*call.buffer, newSteadyBody(w, r.Body, op.Timeout), maxBody)
	*call.buffer = body
	// The deadline stays for a body that is not read, because net/http reads a little of it after the answer. In the
	// other cases huma resets it.
	switch {
	case err != nil:
		return nil, unreadable(err)
	case len(body) > maxBody:
		return nil, errTooLarge
	}
	if op.jsonBody == optional && !op.takes(r.Header.Get("Content-Type")) {
		if isEmptyForm(r.Header.Get("Content-Type"), body) {
			return nil, nil
		}
		return nil, apperr.New(apperr.UnsupportedMediaType, "the body must be application/json")
	}
	r.Header.Set("Content-Type", "application/json") // huma accepts no other spelling
	if call.plain = op.plain.accepts(body); call.plain {
		return body, nil
	}
	unknown, err := checkJSON(body, op.shape)
	if len(unknown) > 0 {
		body = op.shape.without(body)
	}
	if err == nil && len(body) > 0 && fractional.Match(body) {
		body, _ = op.shape.integers(body)
	}
	if op.Lenient {
		return body, err
	}
	for _, location := range unknown {
		call.faults = append(call.faults, apperr.Fault{Location: location, Message: "is not a known member"})
	}
	return body, err
}

// fractional matches bodies that may have a number with a point or an exponent.
var fractional = regexp.MustCompile(`[0-9][.eE]`)

var errTooLarge = apperr.New(apperr.TooLarge, "the body has more than %d bytes", maxBody)

func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(media), "application/json")
}

// isEmptyForm recognizes the bodies of clients that always send a form: nothing, or a multipart form that ends before
// its first part.
func isEmptyForm(contentType string, body []byte) bool {
	if len(body) == 0 {
		return true
	}
	media, params, err := mime.ParseMediaType(contentType)
	return err == nil && media == "multipart/form-data" && string(bytes.TrimSpace(body)) == "--"+params["boundary"]+"--"
}

// keeper is a body that only keeps a copy of its text. The operation decodes it later, so decoding it here would read
// the text twice.
type keeper interface{ keep(text []byte) }

// decodeJSON decodes a checked body for huma. Unlike those of encoding/json, its errors contain nothing of the body.
func decodeJSON(body []byte, v any) error {
	if k, ok := v.(keeper); ok {
		k.keep(bytes.TrimSpace(body))
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if _, onlyToCheck := v.(*any); onlyToCheck {
		dec.UseNumber() // members of any JSON accept numbers beyond float64
	}
	err := dec.Decode(v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return fmt.Errorf("has a value of the wrong type at %s", wrong.Field)
	}
	if err != nil {
		return errors.New("has a value of the wrong type")
	}
	return nil
}

// checkJSON refuses what encoding/json would accept. A repeated member is the dangerous case: of two objects,
// validation sees the last, but decoding into a struct mixes both. It returns the locations of members that the shape
// does not have.
func checkJSON(body []byte, of *shape) (unknown []string, err error) {
	switch {
	case len(body) == 0: // huma knows whether a body is required
		return nil, nil
	case !utf8.Valid(body):
		return nil, apperr.Invalid("body", "must be UTF-8")
	case !json.Valid(body):
		return nil, apperr.Invalid("body", "is not valid JSON")
	}
	return checkStructure(body, of)
}

// maxDepth bounds the nesting of arrays and objects in a body. The cost of walking through them grows with its square.
const maxDepth = 100

// checkStructure refuses a valid JSON text that is nested too deep, or in which an object has a member twice.
func checkStructure(body []byte, of *shape) (unknown []string, err error) {
	levels := make([]level, 0, 8)
	for i := 0; i < len(body); i++ {
		if len(levels) > maxDepth {
			return nil, apperr.Invalid("body", "has more than %d levels", maxDepth)
		}
		top := len(levels) - 1
		switch body[i] {
		case '{':
			levels = append(levels, level{object: true, awaitsName: true, shape: inside(levels, of)})
		case '[':
			levels = append(levels, level{shape: inside(levels, of)})
		case '}', ']':
			levels = levels[:top]
		case ',':
			levels[top].awaitsName = levels[top].object
			levels[top].index++
		case '"':
			end := endOfText(body, i)
			if top >= 0 && levels[top].awaitsName {
				repeated, known := levels[top].take(body[i : end+1])
				if repeated {
					return nil, apperr.Invalid(shortened(locationOf(levels)), "is given twice")
				}
				if !known && len(unknown) <= maxFaults {
					unknown = append(unknown, shortened(locationOf(levels)))
				}
			}
			i = end
		}
	}
	return unknown, nil
}

// inside is the shape of the value that begins.
func inside(levels []level, of *shape) *shape {
	if len(levels) == 0 {
		return of
	}
	top := &levels[len(levels)-1]
	switch {
	case top.object:
		return top.value
	case top.shape != nil:
		return top.shape.items
	}
	return nil
}

// level is an object or array that is not closed yet.
type level struct {
	object     bool
	awaitsName bool
	name       string // the member whose value is being read
	index      int    // the item that is being read
	names      map[string]struct{}
	shape      *shape
	value      *shape // shape of the value that is being read
}

// take notes the name of a member, a JSON text. It reports whether the object had it before, and whether the object may
// have it.
func (l *level) take(text []byte) (repeated, known bool) {
	l.awaitsName = false
	l.name = string(text[1 : len(text)-1])
	if strings.IndexByte(l.name, '\\') >= 0 {
		_ = json.Unmarshal(text, &l.name) // text is valid JSON
	}
	if l.names == nil {
		l.names = map[string]struct{}{}
	}
	_, repeated = l.names[l.name]
	l.names[l.name] = struct{}{}
	l.value, known = l.shape.member(l.name)
	return repeated, known
}

// endOfText returns the index of the quote that closes the text starting at i.
func endOfText(body []byte, i int) int {
	for i++; body[i] != '"'; i++ {
		if body[i] == '\\' {
			i++
		}
	}
	return i
}

func locationOf(levels []level) string {
	location := []byte("body")
	for _, l := range levels {
		if l.object {
			location = append(append(location, '.'), l.name...)
		} else {
			location = fmt.Appendf(location, "[%d]", l.index)
		}
	}
	return string(location)
}

// ByID is the path of one record, to be embedded. It is exported because huma overlooks the members of unexported
// embedded types.
type ByID struct {
	ID string `path:"id" maxLength:"64" doc:"The record's id" example:"1048577"`
}

// Deleted is the answer to the deletion of one record.
type Deleted = docstore.Deleted

// Removed is the answer to a delete by a list or a filter. Records that do not exist are no error.
type Removed struct {
	Removed int `json:"removed" doc:"How many records were deleted" example:"1"`
}
