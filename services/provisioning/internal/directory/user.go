// Package directory keeps the links of connections to users and groups, with an indexed copy of each linked record, so
// that filters need no other service. What the connection's own client writes is in the copy before the answer; what
// others change follows by events.
package directory

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/mapping"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
	"github.com/idplatform/idplatform/services/questions"
)

// User links a user to a connection. Its id is the user's.
type User struct {
	docstore.Meta
	ConnectionID string `json:"connection_id"`
	ExternalID   string `json:"external_id"`
	Gone         bool   `json:"gone"`    // deleted by the client: it is not shown until it is revived
	Deleted      bool   `json:"deleted"` // the user itself is deleted
	// Record is the user's record as far as SCIM shows it. What changes with each sign-in is not in it, so that the
	// link's version is that of the resource.
	Record mapping.User `json:"record"`
	Terms  Terms        `json:"terms"`
	// Body is the resource as most answers have it, without externalId and meta, so that it need not be made again.
	Body json.RawMessage `json:"body"`
	// UserVersion is the version of the record, and Sequence that of the last event or answer about it.
	UserVersion int64 `json:"user_version"`
	Sequence    int64 `json:"sequence"`
}

// Terms are the texts by which users are found, in the form of filter.Key.
type Terms struct {
	UserName   string   `json:"user_name"`
	Display    string   `json:"display_name"`
	Formatted  string   `json:"formatted"`
	Family     string   `json:"family_name"`
	Given      string   `json:"given_name"`
	Employee   string   `json:"employee_number"`
	Department string   `json:"department"`
	Manager    string   `json:"manager"`
	Values     []string `json:"values"` // path=key of what has several values, or is only looked up
}

// UserDoc is a link to a user as read or written.
type UserDoc = docstore.Doc[User]

// The indexes of users and groups. Each value begins with the connection and a slash.
const (
	byLive     = "live"     // the connection, of what is not gone
	byActive   = "active"   // the connection, of active users
	byLinked   = "linked"   // the connection, also of what is gone
	byExternal = "external" // the externalId, also of what is gone
	byValue    = "value"    // Terms.Values
	byShown    = "shown"    // displayName as it is
	byGone     = "gone"     // userName or displayName, of what is gone

	// Those that a list can be sorted by, and ranges are looked up in. Of what is gone they have nothing.
	byID         = "id"
	byExternalID = "external_id"
	byUserName   = "user_name"
	byDisplay    = "display_name"
	byFormatted  = "formatted"
	byFamily     = "family_name"
	byGiven      = "given_name"
	byEmployee   = "employee_number"
	byDepartment = "department"
	byManager    = "manager"
	byCreated    = "created"
	byModified   = "modified"
)

func within(connectionID, text string) string {
	if text == "" {
		return ""
	}
	return connectionID + "/" + text
}

// MomentText is a time as text with the same order.
func MomentText(t time.Time) string { return fmt.Sprintf("%015d", t.UnixMilli()) }

func momentText(t clock.Time) string {
	if t.IsZero() {
		return ""
	}
	return MomentText(t.Std())
}

var users = docstore.Define(docstore.Schema[User]{
	Name: "scim_users", Noun: "user", NoIfMatch: true,
	Counts: func(u *User) []*int64 { return []*int64{&u.UserVersion, &u.Sequence} },
	Indexes: slices.Concat([]docstore.Index[User]{
		docstore.Counted(docstore.ByText(byLive, func(u *User) string {
			if u.Gone {
				return ""
			}
			return u.ConnectionID
		})),
		docstore.ByText(byLinked, func(u *User) string { return u.ConnectionID }),
		docstore.Counted(docstore.ByText(byActive, func(u *User) string {
			if u.Gone || u.Record.Status != mapping.Active {
				return ""
			}
			return u.ConnectionID
		})),
		docstore.Unique(docstore.ByText(byExternal, func(u *User) string {
			return within(u.ConnectionID, u.ExternalID)
		}), "externalId"),
		docstore.ByText(byGone, func(u *User) string {
			if !u.Gone {
				return ""
			}
			return within(u.ConnectionID, u.Terms.UserName)
		}),
		docstore.ByList(byValue, func(u *User) []string {
			if u.Gone {
				return nil
			}
			return prefixed(u.ConnectionID, u.Terms.Values)
		}),
		liveText(byShown, func(u *User) string { return u.Record.DisplayName + "\x00" }),
	}, liveTexts(userTexts)),
})

// userTexts are the attributes of users that ranges are looked up in.
var userTexts = []text[User]{
	{byID, "id", func(u *User) string { return u.ID }},
	{byExternalID, "externalId", func(u *User) string { return u.ExternalID }},
	{byUserName, "userName", func(u *User) string { return u.Terms.UserName }},
	{byDisplay, "displayName", func(u *User) string { return u.Terms.Display }},
	{byFormatted, "name.formatted", func(u *User) string { return u.Terms.Formatted }},
	{byFamily, "name.familyName", func(u *User) string { return u.Terms.Family }},
	{byGiven, "name.givenName", func(u *User) string { return u.Terms.Given }},
	{byEmployee, schema.EnterpriseURN + ":employeeNumber", func(u *User) string { return u.Terms.Employee }},
	{byDepartment, schema.EnterpriseURN + ":department", func(u *User) string { return u.Terms.Department }},
	{byManager, schema.EnterpriseURN + ":manager.value", func(u *User) string { return u.Terms.Manager }},
	{byCreated, "meta.created", func(u *User) string { return momentText(u.Record.TimeCreated) }},
	{byModified, "meta.lastModified", func(u *User) string { return momentText(u.TimeModified) }},
}

func (u *User) where() (connectionID string, live bool) { return u.ConnectionID, !u.Gone }

func prefixed(connectionID string, values []string) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = within(connectionID, v)
	}
	return all
}

// valued are the paths that Terms.Values has.
var valued = []string{
	"emails.value", "phoneNumbers.value", "name.middleName", "name.honorificPrefix", "name.honorificSuffix", "active",
}

// Tag is the entity tag of the user's resource.
func (u *User) Tag() string { return fmt.Sprintf(`W/"%d"`, u.Version) }

// Live reports whether clients see the user.
func (u *User) Live() bool { return !u.Gone }

// read takes over a record that an answer or event has brought, unless the link has a later one. It reports whether it
// has.
func (u *User) read(state questions.UserState) (bool, error) {
	if state.Sequence < u.Sequence {
		return false, nil
	}
	var record mapping.User
	if err := json.Unmarshal(state.User, &record); err != nil {
		return false, fmt.Errorf("the record of user %s: %w", u.ID, err)
	}
	props, err := scimProps(record.SysExtProps)
	if err != nil {
		return false, fmt.Errorf("the record of user %s: %w", u.ID, err)
	}
	u.UserVersion, u.Sequence = record.Version, state.Sequence
	record.Version, record.TimeModified, record.SysExtProps = 0, clock.Time{}, props
	u.Record = record
	return true, u.index()
}

// scimProps leaves of sys_ext_props only what belongs to SCIM.
func scimProps(all json.RawMessage) (json.RawMessage, error) {
	var props struct {
		SCIM json.RawMessage `json:"scim,omitempty"`
	}
	if len(all) > 0 {
		if err := json.Unmarshal(all, &props); err != nil {
			return nil, err
		}
	}
	return json.Marshal(props)
}
