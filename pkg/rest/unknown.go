package rest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// shape describes which members the objects of a JSON value may have. A nil shape does not restrict them.
type shape struct {
	integer bool
	object  bool
	members map[string]*shape
	open    bool   // members with other names are allowed, too
	others  *shape // the shape of members with other names
	items   *shape // the shape of an array's items
}

func shapeOf(r huma.Registry, s *huma.Schema, seen map[*huma.Schema]*shape) *shape {
	if s != nil && s.Ref != "" {
		s = r.SchemaFromRef(s.Ref)
	}
	if s == nil {
		return nil
	}
	if known, ok := seen[s]; ok {
		return known
	}
	found := &shape{integer: s.Type == huma.TypeInteger}
	seen[s] = found
	switch {
	case s.Items != nil:
		found.items = shapeOf(r, s.Items, seen)
	case s.Properties != nil || s.AdditionalProperties != nil:
		found.object, found.open = true, true
		found.members = make(map[string]*shape, len(s.Properties))
		for name, member := range s.Properties {
			found.members[name] = shapeOf(r, member, seen)
		}
		switch others := s.AdditionalProperties.(type) {
		case bool:
			found.open = others
		case *huma.Schema:
			found.others = shapeOf(r, others, seen)
		}
	}
	return found
}

// item returns the shape of an array's items.
func (s *shape) item() *shape {
	if s == nil {
		return nil
	}
	return s.items
}

// member returns the shape of an object's member, and whether the object may have it.
func (s *shape) member(name string) (of *shape, known bool) {
	if s == nil || !s.object {
		return nil, true
	}
	if of, known = s.members[name]; known {
		return of, true
	}
	return s.others, s.open
}

// maxDepth bounds the nesting of arrays and objects in a body.
const maxDepth = 100

// checkJSON refuses what encoding/json would accept. A repeated member is the dangerous case: of two objects,
// validation sees the last, but decoding into a struct mixes both. It returns the locations of members that the shape
// does not have, and the body without them, so that the rest of the request can be looked at (faults.go). Integers in
// it are digits alone. A body in which nothing changes is returned as it is.
func checkJSON(body []byte, of *shape) (left []byte, unknown []string, err error) {
	switch {
	case len(body) == 0: // huma knows whether a body is required
		return body, nil, nil
	case !utf8.Valid(body):
		return body, nil, apperr.Invalid("body", "must be UTF-8")
	}
	var out bytes.Buffer
	lone := jsontext.AllowInvalidUTF8(true) // in escapes of lone surrogates
	w := walker{
		in: jsontext.NewDecoder(bytes.NewBuffer(body), lone), // which neither copies nor changes the bytes
		out: jsontext.NewEncoder(&out, lone, jsontext.AllowDuplicateNames(true),
			jsontext.PreserveRawStrings(true)),
	}
	if err := w.value(of, true); err != nil {
		return body, nil, w.fault(err)
	}
	if _, more := w.in.ReadToken(); !errors.Is(more, io.EOF) {
		return body, nil, w.fault(more)
	}
	if w.changed {
		body = out.Bytes()
	}
	return body, w.unknown, nil
}

// walker reads a JSON text and writes it again.
type walker struct {
	in      *jsontext.Decoder // which refuses an object with a member twice
	out     *jsontext.Encoder
	changed bool
	unknown []string
}

var errTooDeep = errors.New("too many levels")

// value reads a value, without the members that its shape does not have. It writes the value if it is wanted.
func (w *walker) value(of *shape, wanted bool) error {
	token, err := w.in.ReadToken()
	if err != nil {
		return err
	}
	kind := token.Kind()
	if of != nil && of.integer && kind == jsontext.KindNumber {
		if integer, ok := digits(token.String()); ok {
			w.changed = true
			return w.out.WriteValue(integer)
		}
	}
	if err := w.write(token, wanted); err != nil {
		return err
	}
	switch kind {
	case jsontext.KindBeginObject:
		return w.inside(jsontext.KindEndObject, wanted, func() error { return w.member(of, wanted) })
	case jsontext.KindBeginArray:
		return w.inside(jsontext.KindEndArray, wanted, func() error { return w.value(of.item(), wanted) })
	}
	return nil
}

// inside reads the rest of an object or array, whose parts each reads.
func (w *walker) inside(end jsontext.Kind, wanted bool, each func() error) error {
	if w.in.StackDepth() > maxDepth {
		return errTooDeep
	}
	for w.in.PeekKind() != end {
		if err := each(); err != nil {
			return err
		}
	}
	token, err := w.in.ReadToken()
	if err != nil {
		return err
	}
	return w.write(token, wanted)
}

func (w *walker) member(of *shape, wanted bool) error {
	name, err := w.in.ReadToken()
	if err != nil {
		return err
	}
	value, known := of.member(name.String())
	if !known {
		w.changed = true
		if len(w.unknown) <= maxFaults {
			w.unknown = append(w.unknown, w.location(w.in.StackPointer()))
		}
	}
	if err := w.write(name, wanted && known); err != nil {
		return err
	}
	return w.value(value, wanted && known)
}

func (w *walker) write(token jsontext.Token, wanted bool) error {
	if !wanted {
		return nil
	}
	return w.out.WriteToken(token)
}

// location writes a pointer to the last member as the place of a fault, such as body.items[1].name.
func (w *walker) location(last jsontext.Pointer) string {
	location := []byte("body")
	level := 0
	for token := range last.Tokens() {
		level++
		if kind, _ := w.in.StackIndex(level); kind == jsontext.KindBeginArray {
			location = fmt.Appendf(location, "[%s]", token)
		} else {
			location = append(append(location, '.'), token...)
		}
	}
	return shortened(string(location))
}

// fraction matches what an integer has if it is not digits alone, with an exponent that is no trap.
var fraction = regexp.MustCompile(`^-?[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?$`)

// digits is a number as digits alone if it is an integer: 1.0 and 3.6e3 are integers, too (JSON Schema 2020-12,
// validation §4.3 and core §6.3).
func digits(number string) (_ jsontext.Value, ok bool) {
	if !strings.ContainsAny(number, ".eE") || !fraction.MatchString(number) {
		return nil, false
	}
	n, ok := new(big.Rat).SetString(number)
	if !ok || !n.IsInt() {
		return nil, false
	}
	return jsontext.Value(n.Num().String()), true
}

// fault is what a client reads of an error. Those of jsontext contain parts of the body.
func (w *walker) fault(err error) error {
	wrong, _ := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return apperr.Invalid(w.location(wrong.JSONPointer), "is given twice")
	case errors.Is(err, errTooDeep):
		return apperr.Invalid("body", "has more than %d levels", maxDepth)
	}
	return apperr.Invalid("body", "is not valid JSON")
}
