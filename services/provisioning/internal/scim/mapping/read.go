package mapping

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// Place says where a resource stands and what the connection knows of it.
type Place struct {
	Base       string // the URI of the service: https://id.example.com/scim/v2
	ExternalID string // "" if it has none
	Version    string // the entity tag: W/"3"; "" means that of the record's version
}

func (p *Place) uri(kind *schema.Resource, id string) string {
	return p.Base + kind.Endpoint + "/" + id
}

// GroupOf is a group that a user is a member of.
type GroupOf struct{ ID, Display string }

// UserView is what a user's resource has beside the record.
type UserView struct {
	Place
	// Manager returns the displayName of a user that the connection sees, and whether it sees one of this id. Nil:
	// none.
	Manager func(id string) (displayName string, is bool)
	Groups  []GroupOf
}

// FromUser makes the resource of a user's record. Lists and what users do not have are as the client sent them, except
// where the record says otherwise: it is the truth about the email and the mobile number. Its error means that the
// record is damaged.
func FromUser(kind *schema.Resource, u *User, view UserView) (resource.Object, error) {
	props, err := props(u)
	if err != nil {
		return nil, err
	}
	enterprise, _ := props[propEnterprise].(resource.Object)
	delete(props, propEnterprise)
	r := resource.Object{}
	for name, v := range props {
		if _, isExtension := kind.Extension(name); isExtension || isProp(kind, name) {
			r[name] = v
		}
	}
	if enterprise == nil {
		enterprise = resource.Object{}
	}
	set(enterprise, "employeeNumber", u.EmployeeNumber)
	view.manager(enterprise)
	if len(enterprise) > 0 {
		r[schema.EnterpriseURN] = enterprise
	}
	set(r, "userName", u.Username)
	set(r, "displayName", u.DisplayName)
	set(r, "locale", u.Locale)
	set(r, "timezone", u.Zoneinfo)
	put(r, "emails", emails(itemsOf(r, "emails"), u.Email))
	put(r, "phoneNumbers", phones(itemsOf(r, "phoneNumbers"), u.Mobile))
	r["active"] = u.Status == Active
	put(r, "groups", view.groups())
	view.common(kind, r, u.ID, u.Version, u.TimeCreated, u.TimeModified)
	return r, nil
}

// props is a copy of the member scim of sys_ext_props.
func props(u *User) (resource.Object, error) {
	var all struct {
		SCIM resource.Object `json:"scim"`
	}
	if len(u.SysExtProps) > 0 {
		d := json.NewDecoder(bytes.NewReader(u.SysExtProps))
		d.UseNumber()
		if err := d.Decode(&all); err != nil {
			return nil, fmt.Errorf("sys_ext_props of user %s: %w", u.ID, err)
		}
	}
	if all.SCIM == nil {
		all.SCIM = resource.Object{}
	}
	return all.SCIM, nil
}

func set(o resource.Object, name, s string) {
	if s != "" {
		o[name] = s
	} else {
		delete(o, name)
	}
}

func put(o resource.Object, name string, items []any) {
	if len(items) > 0 {
		o[name] = items
	} else {
		delete(o, name)
	}
}

// emails are the addresses as sent, with the record's in the place of the one that was the user's.
func emails(sent []any, email string) []any {
	i := chooseEmail(sent)
	if i < 0 && email == "" {
		return sent
	}
	if i < 0 {
		return append(sent, resource.Object{"value": email, "type": "work", "primary": true})
	}
	o, _ := sent[i].(resource.Object)
	return corrected(sent, i, email, sameText(textOf(o, "value"), email))
}

// phones are the numbers as sent, with the record's in the place of the one that was the user's.
func phones(sent []any, mobile string) []any {
	i := chooseMobile(sent)
	if i < 0 && mobile == "" {
		return sent
	}
	if i < 0 {
		return append(sent, resource.Object{"value": mobile, "type": "mobile"})
	}
	o, _ := sent[i].(resource.Object)
	return corrected(sent, i, mobile, E164(textOf(o, "value")) == mobile)
}

func corrected(items []any, i int, value string, same bool) []any {
	o, _ := items[i].(resource.Object)
	switch {
	case same:
	case value == "":
		return append(items[:i:i], items[i+1:]...)
	default:
		o["value"] = value
	}
	return items
}

// manager completes the manager if he is a user that the connection sees. Of another, all is as sent.
func (v *UserView) manager(enterprise resource.Object) {
	m, is := enterprise["manager"].(resource.Object)
	if !is || v.Manager == nil {
		return
	}
	id := textOf(m, "value")
	name, is := v.Manager(id)
	if !is {
		return
	}
	m["$ref"] = v.uri(schema.User, id)
	set(m, "displayName", name)
}

func (v *UserView) groups() []any {
	var items []any
	for _, g := range v.Groups {
		o := resource.Object{"value": g.ID, "$ref": v.uri(schema.Group, g.ID), "type": "direct"}
		set(o, "display", g.Display)
		items = append(items, o)
	}
	return items
}
