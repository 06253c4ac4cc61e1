package filter

import (
	"strings"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// Parse reads a filter on resources of a kind. Its errors have type invalidFilter: syntax, an attribute that is unknown
// or that no client may see, a comparison that the attribute's type does not have, and a filter over a limit.
func Parse(kind *schema.Resource, text string) (Node, error) {
	p := &parser{resource: kind, lexer: lexer{text: text}}
	if tooLong(text) {
		return nil, fault("has more than %d characters", MaxLength)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.or()
	if err == nil && p.token.kind != end {
		err = syntax(p.token.at, "and, or or the end")
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

// parser is a recursive descent parser: "not" binds most, then "and", then "or".
type parser struct {
	lexer    lexer
	token    token
	resource *schema.Resource
	within   *schema.Attribute // of a value path that is being read: its attribute
	depth    int
	terms    int
}

func (p *parser) advance() (err error) {
	p.token, err = p.lexer.next()
	return err
}

func (p *parser) is(what string) bool {
	return p.token.kind == punctuation && p.token.text == what ||
		p.token.kind == word && strings.EqualFold(p.token.text, what)
}

func (p *parser) need(what string) error {
	if !p.is(what) {
		return syntax(p.token.at, what)
	}
	return p.advance()
}

func (p *parser) or() (Node, error) {
	return p.joined("or", p.and, func(parts []Node) Node { return join(Or(nil), parts) })
}

func (p *parser) and() (Node, error) {
	return p.joined("and", p.term, func(parts []Node) Node { return join(And(nil), parts) })
}

// join makes one node of parts, and of parts of its own type one too.
func join[T interface {
	Node
	~[]Node
}](joined T, parts []Node) Node {
	for _, part := range parts {
		if same, is := part.(T); is {
			joined = append(joined, same...)
		} else {
			joined = append(joined, part)
		}
	}
	return joined
}

func (p *parser) joined(by string, part func() (Node, error), join func([]Node) Node) (Node, error) {
	first, err := part()
	if err != nil || !p.is(by) {
		return first, err
	}
	parts := []Node{first}
	for p.is(by) {
		if err := p.advance(); err != nil {
			return nil, err
		}
		next, err := part()
		if err != nil {
			return nil, err
		}
		parts = append(parts, next)
	}
	return join(parts), nil
}

func (p *parser) term() (Node, error) {
	switch {
	case p.is("("):
		return p.group(")")
	case p.token.kind != word:
		return nil, syntax(p.token.at, "an attribute")
	}
	name, at := p.token.text, p.token.at
	if err := p.advance(); err != nil {
		return nil, err
	}
	switch {
	case strings.EqualFold(name, "not") && p.is("("):
		n, err := p.group(")")
		return Not{n}, err
	case p.is("["):
		return p.compareEach(name, at)
	}
	return p.compare(name, at)
}

// group reads what is in brackets, from the opening to the closing one.
func (p *parser) group(closing string) (Node, error) {
	if p.depth++; p.depth > MaxDepth {
		return nil, fault("is nested more than %d deep", MaxDepth)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	p.depth--
	return n, p.need(closing)
}

// each reads a value path, without the sub-attribute after it that a path of PATCH may have.
func (p *parser) each(name string, at int) (*Each, error) {
	path, err := p.find(name, at)
	if err != nil {
		return nil, err
	}
	if p.within != nil || path.Attribute == nil || path.Sub != nil || path.Attribute.Hidden() ||
		path.Attribute.Type != schema.Complex && path.Attribute.Type != schema.Any {
		return nil, syntax(at, "a complex attribute before [")
	}
	p.within = path.Attribute
	n, err := p.group("]")
	p.within = nil
	if err != nil {
		return nil, err
	}
	return &Each{path, n}, nil
}

// compareEach reads a value path, and the comparison after it that Entra sends, as emails[type eq "work"].value eq "a":
// RFC 7644 has a sub-attribute there in paths of PATCH only. A value that matches has to compare so.
func (p *parser) compareEach(name string, at int) (Node, error) {
	each, err := p.each(name, at)
	sub, compares := strings.CutPrefix(p.token.text, ".")
	if err != nil {
		return nil, err
	}
	if !compares || p.token.kind != word {
		return each, nil
	}
	at = p.token.at
	if err := p.advance(); err != nil {
		return nil, err
	}
	p.within = each.Path.Attribute
	compared, err := p.compare(sub, at)
	p.within = nil
	each.Filter = join(And(nil), []Node{each.Filter, compared})
	return each, err
}

// find looks a path up: within a value path a sub-attribute. Entra compares manager, an attribute of an extension,
// without the URN.
func (p *parser) find(name string, at int) (schema.Path, error) {
	if p.within != nil {
		if sub, is := p.within.Sub(name); is {
			return schema.Path{Attribute: sub}, nil
		}
	} else {
		if path, is := p.resource.Find(name); is {
			return path, nil
		}
		for _, extension := range p.resource.Extensions {
			if path, is := p.resource.Find(extension.ID + ":" + name); is && !extension.Open {
				return path, nil
			}
		}
	}
	return schema.Path{}, fault("has an unknown attribute at position %d", at+1)
}

func (p *parser) compare(name string, at int) (Node, error) {
	path, err := p.find(name, at)
	if err != nil {
		return nil, err
	}
	if p.terms++; p.terms > MaxTerms {
		return nil, fault("has more than %d comparisons", MaxTerms)
	}
	op, known := ops[Op(strings.ToLower(p.token.text))]
	if p.token.kind != word || !known {
		return nil, syntax(p.token.at, "an operator")
	}
	c := &Compare{Path: path, Op: op}
	if err := p.advance(); err != nil {
		return nil, err
	}
	var value token
	if op != Present {
		value = p.token
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	return c, c.resolve(value, at)
}

var ops = map[Op]Op{
	Equal: Equal, NotEqual: NotEqual, Contains: Contains, StartsWith: StartsWith, EndsWith: EndsWith, Present: Present,
	Greater: Greater, GreaterOrEqual: GreaterOrEqual, Less: Less, LessOrEqual: LessOrEqual,
}
