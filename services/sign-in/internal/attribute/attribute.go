// Package attribute finds what an application is told about a person by its settings (response_attr): values of members
// of the user, the groups, the sub-account, or literals. SAML and OpenID Connect write them each in its own form.
package attribute

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// Record is a user's record by its members.
type Record map[string]json.RawMessage

// RecordOf returns the record of a person.
func RecordOf(p protocol.Person) (Record, error) {
	var r Record
	if err := json.Unmarshal(p.User, &r); err != nil {
		return nil, fmt.Errorf("the record of a user: %w", err)
	}
	return r, nil
}

// Text is a member's text; empty if it has none.
func (r Record) Text(name string) string {
	var s string
	_ = json.Unmarshal(r[name], &s)
	return s
}

// members are the members of a user that an attribute may name. They have no secrets.
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

// Name is the name under which the application is told an attribute.
func Name(a questions.Attribute) string { return cmp.Or(a.Attribute, a.Value) }

// named is what an attribute names: its value, or without one its name.
func named(a questions.Attribute) string { return cmp.Or(a.Value, a.Attribute) }

// TellGroups reports whether any of the attributes are a person's groups.
func TellGroups(all []questions.Attribute) bool {
	return slices.ContainsFunc(all, IsGroups)
}

// IsGroups reports whether an attribute is a person's groups.
func IsGroups(a questions.Attribute) bool { return named(a) == ofGroups }

// Value returns the value of an attribute as JSON: that of the member that it names, or what it names as a text. It is
// nil for a member without a value. groups are needed only if it IsGroups.
func Value(a questions.Attribute, p protocol.Person, user Record, groups []string) json.RawMessage {
	value := named(a)
	name, path, _ := strings.Cut(value, ".")
	switch {
	case value == ofUserID:
		return asJSON(p.UserID)
	case value == ofGroups:
		return asJSON(groups)
	case value == ofSubAccount && p.SubAccount == nil, value == ofSubAccount+".display_name" && p.SubAccount == nil:
		return nil
	case value == ofSubAccount:
		return asJSON(p.SubAccount.Account)
	case value == ofSubAccount+".display_name":
		return asJSON(p.SubAccount.DisplayName)
	case !slices.Contains(members, name):
		return asJSON(value)
	case path == "":
		return present(user[name])
	case name == "sys_ext_props" || name == "free_ext_props":
		return present(Below(user[name], path))
	}
	return asJSON(value) // a literal with a dot
}

func asJSON(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil { // texts and lists of texts have JSON forms
		return nil
	}
	return present(text)
}

// present returns a value that says something: not null, an empty text or an empty list.
func present(value json.RawMessage) json.RawMessage {
	value = bytes.TrimSpace(value)
	switch string(value) {
	case "", "null", `""`, "[]":
		return nil
	}
	return value
}

// Below returns the member of an object at a path. Names may have dots themselves.
func Below(object json.RawMessage, path string) json.RawMessage {
	var r Record
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
			if value := Below(inner, path[i+1:]); value != nil {
				return value
			}
		}
	}
	return nil
}
