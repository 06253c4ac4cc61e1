package directory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim/filter"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/mapping"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// Resource makes the user's resource in canonical form, with what view has beside the record.
func (u *User) Resource(kind *schema.Resource, view mapping.UserView) (resource.Object, error) {
	view.ExternalID, view.Version = u.ExternalID, u.Tag()
	record := u.Record
	record.TimeModified = u.TimeModified
	return mapping.FromUser(kind, &record, view)
}

// Plain returns the resource of a user without a manager, of a connection without extensions, as answers have it by
// default; nil of others. base is the URI of the service.
func (u *User) Plain(base string) []byte {
	if u.Terms.Manager != "" || len(u.Body) < len("{}") {
		return nil
	}
	end, err := Encode(resource.Object{"meta": resource.Object{
		"resourceType": schema.User.Name, "created": u.Record.TimeCreated.String(),
		"lastModified": u.TimeModified.String(), "location": base + schema.User.Endpoint + "/" + u.ID,
		"version": u.Tag(),
	}})
	if err == nil && u.ExternalID != "" {
		var id []byte
		if id, err = Encode(resource.Object{"externalId": u.ExternalID}); err == nil {
			end = append(append(id[:len(id)-1], ','), end[1:]...)
		}
	}
	if err != nil {
		return nil
	}
	plain := make([]byte, 0, len(u.Body)+len(end))
	return append(append(append(plain, u.Body[:len(u.Body)-1]...), ','), end[1:]...)
}

// Encode makes the JSON of a resource.
func Encode(r resource.Object) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(r)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// index sets the terms and the body.
func (u *User) index() error {
	r, err := mapping.FromUser(schema.User, &u.Record, mapping.UserView{})
	if err != nil {
		return err
	}
	body := maps.Clone(r)
	delete(body, "meta")
	delete(body, "externalId")
	if u.Body, err = Encode(body); err != nil {
		return err
	}
	key := func(path string) string {
		keys := keysAt(schema.User, r, path)
		if len(keys) == 0 {
			return ""
		}
		return keys[0]
	}
	u.Terms = Terms{
		UserName: key("userName"), Display: key("displayName"), Formatted: key("name.formatted"),
		Family: key("name.familyName"), Given: key("name.givenName"),
		Employee:   key(schema.EnterpriseURN + ":employeeNumber"),
		Department: key(schema.EnterpriseURN + ":department"), Manager: key(schema.EnterpriseURN + ":manager.value"),
		Values: []string{},
	}
	for _, path := range valued {
		for _, k := range keysAt(schema.User, r, path) {
			u.Terms.Values = append(u.Terms.Values, path+"="+k)
		}
	}
	return nil
}

// keysAt are the keys of the values at a path.
func keysAt(kind *schema.Resource, r resource.Object, path string) []string {
	p, ok := kind.Find(path)
	if !ok {
		panic("directory: no path " + path)
	}
	of := p
	of.Sub = nil
	values, isList := resource.Get(r, of).([]any)
	if !isList {
		values = []any{resource.Get(r, of)}
	}
	var keys []string
	for _, v := range values {
		if p.Sub != nil {
			o, _ := v.(resource.Object)
			v = resource.Member(o, p.Sub)
		}
		switch v := v.(type) {
		case string:
			keys = append(keys, filter.Key(p.Leaf(), v))
		case bool:
			keys = append(keys, fmt.Sprint(v))
		}
	}
	return keys
}
