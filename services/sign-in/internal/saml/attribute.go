package saml

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/beevik/etree"

	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// record is a user's record by its members.
type record map[string]json.RawMessage

func recordOf(p protocol.Person) (record, error) {
	var r record
	if err := json.Unmarshal(p.User, &r); err != nil {
		return nil, fmt.Errorf("the record of a user: %w", err)
	}
	return r, nil
}

// text is a member's text; empty if it has none.
func (r record) text(name string) string {
	var s string
	_ = json.Unmarshal(r[name], &s)
	return s
}

// members are the members of a user that a value of response_attr may name. They have no secrets.
var members = []string{
	"id", "username", "display_name", "email", "email_verified", "mobile", "mobile_verified", "employee_number",
	"gender", "locale", "zoneinfo", "status", "avatar_url", "real_name", "sys_ext_props", "free_ext_props",
}

// The values that come from elsewhere than the record.
const (
	ofUserID     = "user_id"
	ofGroups     = "groups"
	ofSubAccount = "sub_account"
)

// valuesOf returns the values of an attribute: of the member that its value names, or the value itself. A list gives
// several; a member without a value gives none.
func valuesOf(value string, p protocol.Person, user record, groups []string) []string {
	name, path, _ := strings.Cut(value, ".")
	switch {
	case value == ofUserID:
		return []string{p.UserID}
	case value == ofGroups:
		return groups
	case value == ofSubAccount && p.SubAccount == nil, value == ofSubAccount+".display_name" && p.SubAccount == nil:
		return nil
	case value == ofSubAccount:
		return []string{p.SubAccount.Account}
	case value == ofSubAccount+".display_name":
		return []string{p.SubAccount.DisplayName}
	case !slices.Contains(members, name):
		return []string{value}
	case path == "":
		return texts(user[name])
	case name == "sys_ext_props" || name == "free_ext_props":
		return texts(below(user[name], path))
	}
	return []string{value} // a literal with a dot
}

// below returns the member of an object at a path. Names may have dots themselves.
func below(object json.RawMessage, path string) json.RawMessage {
	var r record
	if json.Unmarshal(object, &r) != nil {
		return nil
	}
	if value, has := r[path]; has {
		return value
	}
	for i := range len(path) {
		if path[i] != '.' {
			continue
		}
		if inner, has := r[path[:i]]; has {
			if value := below(inner, path[i+1:]); value != nil {
				return value
			}
		}
	}
	return nil
}

// texts are the values of a member: its text or number, or those of a list. An object is its JSON.
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

// valueOf is what an attribute names: its value, or without one its name.
func valueOf(a questions.SAMLAttribute) string { return cmp.Or(a.Value, a.Attribute) }

// tellsGroups reports whether an application is told a person's groups.
func tellsGroups(c questions.Client) bool {
	return slices.ContainsFunc(c.SAML.ResponseAttributes,
		func(a questions.SAMLAttribute) bool { return valueOf(a) == ofGroups })
}

// statement is the AttributeStatement; nil without attributes, because it must not be empty (SAML core §2.7.3). Values
// have no xsi:type: its prefix would be in a text, where canonicalization does not see it and drops its declaration.
func statement(c questions.Client, p protocol.Person, user record, groups []string) *etree.Element {
	all := etree.NewElement("saml:AttributeStatement")
	for _, a := range c.SAML.ResponseAttributes {
		name := cmp.Or(a.Attribute, a.Value)
		values := valuesOf(valueOf(a), p, user, groups)
		if len(values) == 0 {
			continue
		}
		el := all.CreateElement("saml:Attribute")
		el.CreateAttr("Name", name)
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
