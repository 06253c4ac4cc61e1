package filter

import (
	"errors"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// Target is what a path of a PATCH operation names (RFC 7644 §3.5.2, figure 7).
type Target struct {
	Path   schema.Path // with a filter its sub-attribute is that after the filter
	Filter Node        // on the values of the attribute; nil for all of them
}

// ParsePath reads a path: userName, name.givenName, emails[type eq "work"], emails[type eq "work"].value, each with the
// URN of its schema before it or not, or the URN of an extension. Its errors have type invalidPath, also for what is in
// brackets.
func ParsePath(kind *schema.Resource, text string) (Target, error) {
	t, err := parsePath(kind, text)
	if scim.TypeOf(err) == scim.InvalidFilter {
		if e, is := errors.AsType[*apperr.Error](err); is {
			err = scim.With(scim.InvalidPath, e)
		}
	}
	return t, err
}

func parsePath(kind *schema.Resource, text string) (Target, error) {
	var t Target
	text = strings.TrimSpace(text)
	if tooLong(text) {
		return t, badPath("has more than %d characters", MaxLength)
	}
	name, _, filtered := strings.Cut(text, "[")
	var found bool
	if t.Path, found = kind.Find(strings.TrimSpace(name)); !found {
		return t, badPath("names no attribute")
	}
	if !filtered {
		return t, nil
	}
	p := &parser{resource: kind, lexer: lexer{text: text, at: len(name)}}
	if err := p.advance(); err != nil {
		return t, err
	}
	each, err := p.each(strings.TrimSpace(name), 0)
	if err != nil {
		return t, err
	}
	t.Filter = each.Filter
	if p.token.kind == end {
		return t, nil
	}
	sub, is := strings.CutPrefix(p.token.text, ".")
	if is && p.token.kind == word && text[p.token.at-1] == ']' {
		if t.Path.Sub, found = t.Path.Attribute.Sub(sub); found {
			if err := p.advance(); err == nil && p.token.kind == end {
				return t, nil
			}
		}
	}
	return t, badPath("names no sub-attribute after ]")
}

func badPath(format string, args ...any) error {
	return scim.Invalid(scim.InvalidPath, "path", format, args...)
}

// Equals returns the values that a filter demands, if it is nothing but comparisons by eq that are joined by "and":
// those of a value that satisfies it.
func Equals(n Node) (map[string]any, bool) {
	values := map[string]any{}
	parts, is := n.(And)
	if !is {
		parts = And{n}
	}
	for _, part := range parts {
		c, is := part.(*Compare)
		if !is || c.Op != Equal || c.Value == nil || c.Path.Sub != nil {
			return nil, false
		}
		name := c.Path.Attribute.Name
		if v, twice := values[name]; twice && v != c.Value {
			return nil, false
		}
		values[name] = c.Value
	}
	return values, true
}
