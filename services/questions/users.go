package questions

import (
	"encoding/json"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
)

// UserIDs is a list of user ids.
type UserIDs struct {
	IDs []string `json:"ids"`
}

// ExistingUsers asks which of the ids are users who have not resigned. Without an answer, nothing that refers to them
// is added.
var ExistingUsers = bus.Question[UserIDs, UserIDs]{Service: "users", Name: "existing"}

// TenantName names a tenant; an empty one is before the first and after the last.
type TenantName struct {
	Tenant string `json:"tenant"`
}

// NextUsersTenant asks which tenant follows a tenant among those that have users. It is asked for the platform, not for
// a tenant. Without an answer, the asking service tries again later.
var NextUsersTenant = bus.Question[TenantName, TenantName]{Service: "users", Name: "next-tenant"}

// RecordsPage asks for records of the tenant in the order of their ids: the first Limit (of users 1…500), or those
// after an earlier page, whose Next is given as After.
type RecordsPage struct {
	After string `json:"after"`
	Limit int    `json:"limit"`
}

// Records are user records in the form that events carry. There may be fewer than Limit; Next is empty on the last
// page.
type Records struct {
	Users []json.RawMessage `json:"users"`
	// Sequences has, for each user, the sequence of the first event with the user's present state: events with a
	// lower sequence are outdated. An older version of the service, which has no sequences, leaves it out; then the
	// versions of the records count.
	Sequences []int64 `json:"sequences"`
	Next      string  `json:"next"`
}

// UserRecords asks for user records, so that the asking service can build up its copy of all users. Without an
// answer, it tries again later.
var UserRecords = bus.Question[RecordsPage, Records]{
	Service: "users", Name: "records", Refusals: []apperr.Kind{apperr.InvalidParameters},
}

// Search describes a full-text search for Keyword among the users with these IDs (at most 1000), or among all users
// if IDs is null. The answer has at most Limit (1…1000) ids.
type Search struct {
	Keyword string   `json:"keyword"`
	IDs     []string `json:"ids"`
	Limit   int      `json:"limit"`
}

// Found has the ids of the users found, in the order of ids, and says whether there are more.
type Found struct {
	IDs  []string `json:"ids"`
	More bool     `json:"more"`
}

// MatchingUsers asks for a full-text search. Without an answer, the list that the asking service was making fails.
var MatchingUsers = bus.Question[Search, Found]{
	Service: "users", Name: "matching", Refusals: []apperr.Kind{apperr.InvalidParameters},
}

// ConnectionNumber names a connection of the identity-sources service in the form that stored credentials use.
type ConnectionNumber struct {
	ID int64 `json:"id"`
}

// Count is a number of records.
type Count struct {
	Count int64 `json:"count"`
}

// CredentialsOfConnection asks how many stored credentials refer to a connection. Without an answer, the connection is
// not deleted.
var CredentialsOfConnection = bus.Question[ConnectionNumber, Count]{
	Service: "users", Name: "credentials-of-connection",
}
