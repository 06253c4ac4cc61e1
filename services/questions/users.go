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

// ExistingUsers asks which of the ids are users who have not resigned. Without an answer nothing is added that refers
// to them.
var ExistingUsers = bus.Question[UserIDs, UserIDs]{Service: "users", Name: "existing"}

// RecordsPage asks for the users of the tenant in the order of their ids: the first Limit (1…500), or those that follow
// an earlier page, whose Next is After.
type RecordsPage struct {
	After string `json:"after"`
	Limit int    `json:"limit"`
}

// Records are user records as events carry them. There may be fewer than the limit; Next is empty after the last of
// all.
type Records struct {
	Users []json.RawMessage `json:"users"`
	// Sequences has, for each of the users, the sequence of the first event that told of its present state: events with
	// a lower one are outdated. A service of before there were such sequences leaves it out; it counts by the records'
	// versions.
	Sequences []int64 `json:"sequences"`
	Next      string  `json:"next"`
}

// UserRecords asks for user records, to build up what an asker keeps of all users. Without an answer it tries again
// later.
var UserRecords = bus.Question[RecordsPage, Records]{
	Service: "users", Name: "records", Refusals: []apperr.Kind{apperr.InvalidParameters},
}

// Search asks whom the full-text search for Keyword finds among IDs (at most 1000), or among all users where IDs is
// null. The answer has at most Limit (1…1000) ids.
type Search struct {
	Keyword string   `json:"keyword"`
	IDs     []string `json:"ids"`
	Limit   int      `json:"limit"`
}

// Found are the ids of the users found, in their order, and whether there are more.
type Found struct {
	IDs  []string `json:"ids"`
	More bool     `json:"more"`
}

// MatchingUsers asks for a full-text search. Without an answer the asker's list fails.
var MatchingUsers = bus.Question[Search, Found]{
	Service: "users", Name: "matching", Refusals: []apperr.Kind{apperr.InvalidParameters},
}

// ConnectionNumber names a connection of the identity-sources service as stored credentials do.
type ConnectionNumber struct {
	ID int64 `json:"id"`
}

// Count says how many records there are.
type Count struct {
	Count int64 `json:"count"`
}

// CredentialsOfConnection asks how many stored credentials refer to a connection. Without an answer the connection is
// not deleted.
var CredentialsOfConnection = bus.Question[ConnectionNumber, Count]{Service: "users", Name: "credentials-of-connection"}
