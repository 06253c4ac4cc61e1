package rest

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// Most bodies are plain: valid JSON as the schema wants it, with no escapes and no constraints that need more than a
// look. One pass over the bytes finds that out, and such a body needs no other check. Every other body, also one that
// is valid, takes the way through checkJSON and huma, which finds and names all its faults.

// plain describes the values that are recognized at one place of a body. nil recognizes none, like plainNone.
type plain struct {
	kind     plainKind
	enum     []string
	min, max int // of an integer; or of a text's length in characters or a list's items, where max −1 means no limit
	members  []plainMember
	required uint64 // a bit for each member that must be there
	others   *plain // of an object's other members
	items    *plain
}

type plainKind int

const (
	plainAny plainKind = iota
	plainText
	plainInteger
	plainBool
	plainArray
	plainObject
	plainNone // recognizes no value
)

type plainMember struct {
	name string
	of   *plain
}

const (
	plainMembers = 64 // a schema's members, one for each bit of required
	plainOthers  = 16 // members of a free-form object, which are compared one by one
	plainDigits  = 15 // of an integer, which is then exact in every type
	plainDepth   = 20
)

// plainOf returns what is recognized of a schema.
func plainOf(r huma.Registry, s *huma.Schema, seen map[*huma.Schema]*plain) *plain {
	for s != nil && s.Ref != "" {
		s = r.SchemaFromRef(s.Ref)
	}
	if s == nil || s.OneOf != nil || s.AnyOf != nil || s.AllOf != nil || s.Not != nil || s.Const != nil ||
		len(s.DependentRequired) > 0 {
		return nil
	}
	if known, ok := seen[s]; ok {
		return known
	}
	p := &plain{max: -1}
	seen[s] = p
	if !p.describes(r, s, seen) {
		*p = plain{kind: plainNone} // other schemas may refer to it already
	}
	return p
}

// describes fills p in; it reports whether it can.
func (p *plain) describes(r huma.Registry, s *huma.Schema, seen map[*huma.Schema]*plain) bool {
	switch s.Type {
	case "":
		return len(s.Enum) == 0
	case huma.TypeString:
		p.kind = plainText
		p.bounds(s.MinLength, s.MaxLength)
		for _, value := range s.Enum {
			text, ok := value.(string)
			if !ok {
				return false
			}
			p.enum = append(p.enum, text)
		}
		return s.Pattern == "" && s.Format == "" && s.ContentEncoding == ""
	case huma.TypeInteger:
		p.kind = plainInteger
		if s.Minimum != nil {
			p.min = int(math.Ceil(*s.Minimum))
		} else {
			p.min = math.MinInt
		}
		if p.max = math.MaxInt; s.Maximum != nil {
			p.max = int(math.Floor(*s.Maximum))
		}
		return s.ExclusiveMinimum == nil && s.ExclusiveMaximum == nil && s.MultipleOf == nil && len(s.Enum) == 0
	case huma.TypeBoolean:
		p.kind = plainBool
		return len(s.Enum) == 0
	case huma.TypeArray:
		p.kind, p.items = plainArray, plainOf(r, s.Items, seen)
		p.bounds(s.MinItems, s.MaxItems)
		return !s.UniqueItems && len(s.Enum) == 0
	case huma.TypeObject:
		return p.describesObject(r, s, seen)
	}
	return false
}

func (p *plain) bounds(least, most *int) {
	if least != nil {
		p.min = *least
	}
	if most != nil {
		p.max = *most
	}
}

func (p *plain) describesObject(r huma.Registry, s *huma.Schema, seen map[*huma.Schema]*plain) bool {
	p.kind = plainObject
	for name, member := range s.Properties {
		p.members = append(p.members, plainMember{name, plainOf(r, member, seen)})
	}
	for i, m := range p.members {
		for _, name := range s.Required {
			if name == m.name && !s.Properties[name].ReadOnly {
				p.required |= 1 << i
			}
		}
	}
	if others, ok := s.AdditionalProperties.(*huma.Schema); ok {
		p.others = plainOf(r, others, seen)
	}
	return len(p.members) <= plainMembers && s.MinProperties == nil && s.MaxProperties == nil && len(s.Enum) == 0
}

// accepts reports whether a whole body is plain.
func (p *plain) accepts(body []byte) bool {
	if p == nil || !utf8.Valid(body) {
		return false
	}
	s := scanner{body, 0}
	return s.value(p, 0) && s.next() == 0 && s.at == len(body)
}

// scanner goes over a body. Its methods report false for what is not plain.
type scanner struct {
	body []byte
	at   int
}

// next is the next byte that is not white space; 0 at the end.
func (s *scanner) next() byte {
	for ; s.at < len(s.body); s.at++ {
		switch c := s.body[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take goes past a byte if it is the next one.
func (s *scanner) take(c byte) bool {
	if s.next() != c {
		return false
	}
	s.at++
	return true
}

func (s *scanner) value(p *plain, depth int) bool {
	if p == nil || depth > plainDepth {
		return false
	}
	switch p.kind {
	case plainText:
		text, ok := s.text()
		return ok && p.hasText(text)
	case plainInteger:
		n, ok := s.integer()
		return ok && n >= p.min && n <= p.max
	case plainBool:
		return s.word("true") || s.word("false")
	case plainArray:
		return s.array(p, depth)
	case plainObject:
		return s.object(p, depth)
	case plainAny:
		return s.anything(depth)
	}
	return false
}

var (
	anything  = &plain{max: -1}
	anyArray  = &plain{kind: plainArray, max: -1, items: anything}
	anyObject = &plain{kind: plainObject, max: -1, others: anything}
)

// anything goes past a value without a schema. Of numbers it takes only integers.
func (s *scanner) anything(depth int) bool {
	switch c := s.next(); c {
	case '{':
		return s.object(anyObject, depth)
	case '[':
		return s.array(anyArray, depth)
	case '"':
		_, ok := s.text()
		return ok
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	_, ok := s.integer()
	return ok
}

// hasText reports whether a text meets the constraints.
func (p *plain) hasText(text []byte) bool {
	if len(p.enum) > 0 {
		for _, value := range p.enum {
			if string(text) == value {
				return true
			}
		}
		return false
	}
	n := len(text)
	if p.max >= 0 && n > p.max || n < utf8.UTFMax*p.min { // the number of characters matters
		n = utf8.RuneCount(text)
	}
	return n >= p.min && (p.max < 0 || n <= p.max)
}

// text goes past a text without escapes, and returns what is between its quotes.
func (s *scanner) text() ([]byte, bool) {
	if !s.take('"') {
		return nil, false
	}
	for at := s.at; at < len(s.body); at++ {
		c := s.body[at]
		if c == '"' {
			text := s.body[s.at:at]
			s.at = at + 1
			return text, true
		}
		if c < ' ' || c == '\\' {
			break
		}
	}
	return nil, false
}

func (s *scanner) integer() (int, bool) {
	s.next()
	start := s.at
	if s.at < len(s.body) && s.body[s.at] == '-' {
		s.at++
	}
	digits := s.at
	for s.at < len(s.body) && s.body[s.at] >= '0' && s.body[s.at] <= '9' {
		s.at++
	}
	n := s.at - digits
	if n == 0 || n > plainDigits || s.body[digits] == '0' && s.at-start > 1 {
		return 0, false
	}
	if s.at < len(s.body) && bytes.IndexByte([]byte(".eE"), s.body[s.at]) >= 0 {
		return 0, false
	}
	value, err := strconv.Atoi(string(s.body[start:s.at]))
	return value, err == nil
}

// word goes past one of the literals.
func (s *scanner) word(word string) bool {
	s.next()
	if !bytes.HasPrefix(s.body[s.at:], []byte(word)) {
		return false
	}
	s.at += len(word)
	return true
}

func (s *scanner) array(p *plain, depth int) bool {
	if !s.take('[') {
		return false
	}
	n := 0
	for !s.take(']') {
		if n > 0 && !s.take(',') || !s.value(p.items, depth+1) {
			return false
		}
		n++
	}
	return n >= p.min && (p.max < 0 || n <= p.max)
}

func (s *scanner) object(p *plain, depth int) bool {
	if !s.take('{') {
		return false
	}
	var seen uint64
	var others [plainOthers][]byte
	n := 0
	for first := true; !s.take('}'); first = false {
		if !first && !s.take(',') {
			return false
		}
		name, ok := s.text()
		if !ok || !s.take(':') {
			return false
		}
		of, bit := p.member(name)
		if bit == 0 { // a name that the schema does not have
			for _, other := range others[:n] {
				if bytes.Equal(name, other) {
					return false
				}
			}
			if n == plainOthers {
				return false
			}
			others[n] = name
			n++
		}
		if seen&bit != 0 || !s.value(of, depth+1) {
			return false
		}
		seen |= bit
	}
	return seen&p.required == p.required
}

// member returns what is recognized of a member, and its bit; 0 for one that the schema does not name.
func (p *plain) member(name []byte) (of *plain, bit uint64) {
	for i := range p.members {
		if p.members[i].name == string(name) {
			return p.members[i].of, 1 << i
		}
	}
	return p.others, 0
}
