// Package mapping turns SCIM resources into records of the platform and back: users, and groups, which are nodes of a
// tree.
package mapping

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// The statuses of users.
const (
	Active   = "1"
	Disabled = "0"
	Resigned = "resigned"
)

// User has the members of a user record that SCIM shows. It is read from the record's JSON.
type User struct {
	ID             string          `json:"id"`
	Version        int64           `json:"version"`
	TimeCreated    clock.Time      `json:"time_created"`
	TimeModified   clock.Time      `json:"time_modified"`
	Username       string          `json:"username"`
	DisplayName    string          `json:"display_name"`
	Email          string          `json:"email"`
	Mobile         string          `json:"mobile"`
	EmployeeNumber string          `json:"employee_number"`
	Locale         string          `json:"locale"`
	Zoneinfo       string          `json:"zoneinfo"`
	Status         string          `json:"status"`
	SysExtProps    json.RawMessage `json:"sys_ext_props"`
}

// Profile is what a resource says about a user's record.
type Profile struct {
	Username       string `json:"username"`
	DisplayName    string `json:"display_name"`
	Email          string `json:"email"`
	Mobile         string `json:"mobile"`
	EmployeeNumber string `json:"employee_number"`
	Locale         string `json:"locale"`
	Zoneinfo       string `json:"zoneinfo"`
	// SCIM is the member scim of sys_ext_props: all that users do not have. Nil if there is nothing.
	SCIM resource.Object `json:"-"`
	// Active is nil if the resource does not say.
	Active *bool `json:"-"`
	// Password is "" if the resource has none.
	Password string `json:"-"`
}

// MaxProps is the size of sys_ext_props.scim as JSON.
const MaxProps = 64 << 10 // bytes

// propEnterprise is the member of sys_ext_props.scim with the Enterprise User extension.
const propEnterprise = "enterprise"

// ToProfile makes the profile of a resource in canonical form. Its error has type invalidValue: too much for
// sys_ext_props.
func ToProfile(kind *schema.Resource, r resource.Object) (Profile, error) {
	enterprise, _ := r[schema.EnterpriseURN].(resource.Object)
	p := Profile{
		Username: textOf(r, "userName"), DisplayName: displayName(r), Email: email(r), Mobile: mobile(r),
		EmployeeNumber: textOf(enterprise, "employeeNumber"), Locale: textOf(r, "locale"),
		Zoneinfo: textOf(r, "timezone"), Password: textOf(r, "password"),
	}
	if active, is := r["active"].(bool); is {
		p.Active = &active
	}
	props := resource.Object{}
	for name, v := range r {
		switch _, isExtension := kind.Extension(name); {
		case name == schema.EnterpriseURN:
			if rest := without(enterprise, "employeeNumber"); len(rest) > 0 {
				props[propEnterprise] = rest
			}
		case isExtension || isProp(kind, name):
			props[name] = v
		}
	}
	if len(props) == 0 {
		return p, nil
	}
	p.SCIM = props
	body, err := json.Marshal(props)
	if err != nil {
		return p, fmt.Errorf("attributes to JSON: %w", err)
	}
	if len(body) > MaxProps {
		return p, scim.Invalid(scim.InvalidValue, "",
			"the attributes that are kept as sent have more than %d bytes", MaxProps)
	}
	return p, nil
}

// isProp reports whether an attribute is kept in sys_ext_props.
func isProp(kind *schema.Resource, name string) bool {
	switch name {
	case "userName", "displayName", "active", "locale", "timezone", "password", "externalId":
		return false
	}
	a, is := kind.Attribute(name)
	return is && a.Mutability != schema.ReadOnly
}

func without(o resource.Object, name string) resource.Object {
	rest := resource.Object{}
	for n, v := range o {
		if n != name {
			rest[n] = v
		}
	}
	return rest
}

func textOf(o resource.Object, name string) string {
	s, _ := o[name].(string)
	return s
}

// displayName is that of a resource; without one, its formatted name, else the given and family name, else userName.
func displayName(r resource.Object) string {
	name, _ := r["name"].(resource.Object)
	both := strings.TrimSpace(textOf(name, "givenName") + " " + textOf(name, "familyName"))
	for _, s := range []string{textOf(r, "displayName"), textOf(name, "formatted"), both} {
		if strings.TrimSpace(s) != "" {
			return s
		}
	}
	return textOf(r, "userName")
}

func itemsOf(r resource.Object, name string) []any {
	items, _ := r[name].([]any)
	return items
}

// choose returns the index of the value of a list that one of the rules holds for: the first rule that holds for any.
// Those without a value are none. It is -1 if no rule holds.
func choose(items []any, rules ...func(resource.Object) bool) int {
	for _, rule := range rules {
		for i, item := range items {
			if o, is := item.(resource.Object); is && textOf(o, "value") != "" && rule(o) {
				return i
			}
		}
	}
	return -1
}

func isPrimary(o resource.Object) bool { return o["primary"] == true }

func isOf(kind string) func(resource.Object) bool {
	return func(o resource.Object) bool { return strings.EqualFold(textOf(o, "type"), kind) }
}

func isAny(resource.Object) bool { return true }

func chooseEmail(items []any) int { return choose(items, isPrimary, isOf("work"), isAny) }

func chooseMobile(items []any) int {
	isMobile := isOf("mobile")
	return choose(items, func(o resource.Object) bool { return isMobile(o) && isPrimary(o) }, isMobile)
}

// email is the primary address, else that of type work, else the first.
func email(r resource.Object) string {
	items := itemsOf(r, "emails")
	i := chooseEmail(items)
	if i < 0 {
		return ""
	}
	o, _ := items[i].(resource.Object)
	return strings.TrimSpace(textOf(o, "value"))
}

// mobile is the number of type mobile, if it is one of E.164.
func mobile(r resource.Object) string {
	items := itemsOf(r, "phoneNumbers")
	i := chooseMobile(items)
	if i < 0 {
		return ""
	}
	o, _ := items[i].(resource.Object)
	return E164(textOf(o, "value"))
}

// E164 returns a phone number without spaces, dashes and brackets, if what remains is one of E.164: + and up to 15
// digits, the first of which is not 0. Otherwise it returns "".
func E164(s string) string {
	s = strings.TrimPrefix(s, "tel:")
	s = strings.Map(func(r rune) rune {
		switch r {
		case ' ', '\u00a0', '-', '‐', '‑', '–', '(', ')', '[', ']':
			return -1
		}
		return r
	}, s)
	digits, plus := strings.CutPrefix(s, "+")
	if !plus || len(digits) < 2 || len(digits) > 15 || digits[0] == '0' || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return s
}

// sameText reports whether the platform takes two names or addresses for the same one.
func sameText(a, b string) bool { return textindex.Key(a) == textindex.Key(b) }
