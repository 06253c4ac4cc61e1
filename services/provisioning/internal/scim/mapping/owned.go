package mapping

import (
	"reflect"
	"slices"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// OwnedProps names, among the members that a connection owns, all attributes that are in sys_ext_props.
const OwnedProps = "sys_ext_props.scim"

// attributes are the paths of the attributes from which members of a user come.
var attributes = map[string]string{
	"username":        "userName",
	"display_name":    "displayName",
	"email":           "emails",
	"mobile":          "phoneNumbers",
	"status":          "active",
	"locale":          "locale",
	"zoneinfo":        "timezone",
	"employee_number": schema.EnterpriseURN + ":employeeNumber",
}

// Owned are the members of users that SCIM maps, which a connection owns unless it says otherwise.
func Owned() []string {
	return []string{
		"username", "display_name", "email", "mobile", "status", "locale", "zoneinfo", "employee_number", OwnedProps,
	}
}

// AttributeOf returns the path of the attribute from which a member of a user record comes; the member itself if there
// is none, so that faults of a record can be told to clients.
func AttributeOf(member string) string {
	if path, has := attributes[member]; has {
		return path
	}
	return member
}

// Restrict gives the attributes of a changed resource that the connection does not own their values before the change.
// It returns the paths of those that would have changed; changed stays as it is. externalId and password are always the
// client's.
func Restrict(kind *schema.Resource, before, changed resource.Object, owns []string) (resource.Object, []string) {
	r := resource.Clone(changed)
	var ignored []string
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range changed {
		names[name] = true
	}
	for name := range names {
		if name == schema.EnterpriseURN {
			ignored = append(ignored, restrictEnterprise(before, r, owns)...)
			continue
		}
		a, is := kind.Attribute(name)
		if is && (a.Mutability == schema.ReadOnly || name == "externalId" || name == "password") ||
			slices.Contains(owns, owner(name)) || reflect.DeepEqual(before[name], r[name]) {
			continue
		}
		ignored = append(ignored, name)
		revert(r, before, name)
	}
	slices.Sort(ignored)
	return r, ignored
}

// owner is the member with which an attribute is owned.
func owner(attribute string) string {
	for member, path := range attributes {
		if path == attribute {
			return member
		}
	}
	return OwnedProps
}

func restrictEnterprise(before, r resource.Object, owns []string) []string {
	old, _ := before[schema.EnterpriseURN].(resource.Object)
	now, _ := r[schema.EnterpriseURN].(resource.Object)
	if now == nil {
		now = resource.Object{}
	}
	var ignored []string
	for _, a := range enterprise() {
		path := schema.EnterpriseURN + ":" + a.Name
		if slices.Contains(owns, owner(path)) || reflect.DeepEqual(old[a.Name], now[a.Name]) {
			continue
		}
		ignored = append(ignored, path)
		revert(now, old, a.Name)
	}
	if len(now) > 0 {
		r[schema.EnterpriseURN] = now
	} else {
		delete(r, schema.EnterpriseURN)
	}
	return ignored
}

func enterprise() []*schema.Attribute {
	s, _ := schema.User.Extension(schema.EnterpriseURN)
	return s.Attributes
}

func revert(r, before resource.Object, name string) {
	if v, has := before[name]; has {
		r[name] = resource.Clone(v)
	} else {
		delete(r, name)
	}
}
