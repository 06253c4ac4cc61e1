package user

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/questions"
)

// ManagedBy names the provisioning connection that made or adopted the user, and the members that only it changes.
type ManagedBy = questions.ManagedBy

// scimProps is the member of sys_ext_props that belongs to provisioning; a connection owns it by the name
// questions.OwnedProps.
const scimProps = "scim"

// ownable are the members that a connection can own, with their values.
var ownable = []struct {
	name string
	of   func(*Profile) string
}{
	{"username", func(p *Profile) string { return p.Username }},
	{"display_name", func(p *Profile) string { return p.DisplayName }},
	{"email", func(p *Profile) string { return p.Email }},
	{"mobile", func(p *Profile) string { return p.Mobile }},
	{"employee_number", func(p *Profile) string { return p.EmployeeNumber }},
	{"locale", func(p *Profile) string { return p.Locale }},
	{"zoneinfo", func(p *Profile) string { return p.Zoneinfo }},
	{"status", func(p *Profile) string { return string(p.Status) }},
	{questions.OwnedProps, func(p *Profile) string { return string(propOf(p.SysExtProps, scimProps)) }},
}

// propOf is a member of ext props, compact; nil if there is none.
func propOf(props json.RawMessage, name string) json.RawMessage {
	if !bytes.Contains(props, []byte(name)) {
		return nil
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(props, &members) // of no object there are no members
	var compact bytes.Buffer
	if json.Compact(&compact, members[name]) != nil {
		return nil
	}
	return compact.Bytes()
}

// checkOwned returns apperr.ManagedElsewhere, at the members, if a change is of members that a connection owns.
func checkOwned(m *ManagedBy, was, becomes *Profile) error {
	if m == nil {
		return nil
	}
	var owned []string
	for _, member := range ownable {
		if slices.Contains(m.Members, member.name) && member.of(was) != member.of(becomes) {
			owned = append(owned, member.name)
		}
	}
	if len(owned) == 0 {
		return nil
	}
	return apperr.Managed(owned...)
}
