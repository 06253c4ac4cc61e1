package saml

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/beevik/etree"

	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/attribute"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// texts are the values of an attribute: a text or number, or those of a list. An object is its JSON.
func texts(value json.RawMessage) []string {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || string(value) == "null" {
		return nil
	}
	switch value[0] {
	case '"':
		var s string
		if json.Unmarshal(value, &s) != nil || s == "" {
			return nil
		}
		return []string{s}
	case '[':
		var list []json.RawMessage
		var all []string
		if json.Unmarshal(value, &list) != nil {
			return nil
		}
		for _, item := range list {
			if item = bytes.TrimSpace(item); len(item) > 0 && item[0] == '[' {
				all = append(all, string(item)) // deeper lists stay JSON
				continue
			}
			all = append(all, texts(item)...)
		}
		return all
	}
	return []string{string(value)}
}

// nameFormats are short for those of SAML core §8.2.
var nameFormats = map[string]string{
	"basic":       "urn:oasis:names:tc:SAML:2.0:attrname-format:basic",
	"uri":         "urn:oasis:names:tc:SAML:2.0:attrname-format:uri",
	"unspecified": "urn:oasis:names:tc:SAML:2.0:attrname-format:unspecified",
}

// statement is the AttributeStatement; nil without attributes, because it must not be empty (SAML core §2.7.3). Values
// have no xsi:type: its prefix would be in a text, where canonicalization does not see it and drops its declaration.
func statement(c questions.Client, p protocol.Person, user attribute.Record, groups []string) *etree.Element {
	all := etree.NewElement("saml:AttributeStatement")
	for _, a := range c.SAML.ResponseAttributes {
		values := texts(attribute.Value(a, p, user, groups))
		if len(values) == 0 {
			continue
		}
		el := all.CreateElement("saml:Attribute")
		el.CreateAttr("Name", attribute.Name(a))
		if format := a.NameFormat; format != "" {
			if full, short := nameFormats[format]; short {
				format = full
			}
			el.CreateAttr("NameFormat", format)
		}
		for _, text := range values {
			el.CreateElement("saml:AttributeValue").SetText(clean(text))
		}
	}
	if len(all.Child) == 0 {
		return nil
	}
	return all
}

// clean replaces the characters that XML 1.0 does not have, in any encoding (§2.2).
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD ||
			r >= 0x10000 {
			return r
		}
		return 0xFFFD
	}, text)
}
