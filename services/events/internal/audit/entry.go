// Package audit is the log of all changes and denied attempts, made of the events of all services.
package audit

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/stream"
)

// The outcomes.
const (
	Done   = "done"
	Denied = "denied"
)

// Entry is an entry of the log. Its JSON form is the API's.
type Entry struct {
	docstore.Meta            // the id is made by place.id: ids grow in the order of the log
	Time          clock.Time `json:"time" doc:"When it happened" example:"2026-01-31T09:30:00.000Z"`
	Actor         string     `json:"actor" doc:"client:<client id>, user:<user id> or <issuer>#<sub>; system for the platform's own work; the token's subject alone in entries of earlier versions" example:"client:4f1c"`
	RequestID     string     `json:"request_id" doc:"The request that did it" example:"4mrhvkqtwz5c2d7ba3gxyun6ep"`
	Origin        string     `json:"origin" doc:"X-Payload-Origin"`
	Entity        string     `json:"entity" doc:"The record that it is about" example:"user"`
	Record        string     `json:"record" doc:"The record's id" example:"1048577"`
	Action        string     `json:"action" doc:"Of entity access: the operation that was denied" example:"updated"`
	Outcome       string     `json:"outcome" enum:"done,denied" doc:"denied: the attempt was refused"`
	Reason        string     `json:"reason" doc:"Why it was denied"`
	Address       string     `json:"address,omitempty" doc:"Where a sign-in or a denied attempt came from, if that is known"`
	Count         int64      `json:"count" doc:"How many equal attempts within ten seconds it stands for" example:"1"`
	Changes       []Change   `json:"changes" doc:"What changed, by member"`
	EventID       string     `json:"event_id" doc:"Of the event that tells it; empty for a denied attempt" example:"019c1f3e-8a2b-7c4d-9e5f-0123456789ab"`
}

const (
	byEvent     = "event_id"
	byTime      = "time"
	byKind      = "kind"
	byActorKind = "actor_kind"
	byRecord    = "record"
)

// The indexes cost most of what an entry costs, so there are only those that make a page cheap: see Filter.where.
var entries = docstore.Define(docstore.Schema[Entry]{
	Name: "audit_log", Noun: "audit log entry", Sortable: []string{byTime}, Revision: 1,
	Indexes: []docstore.Index[Entry]{
		docstore.ByText(byEvent, func(e *Entry) string { return e.EventID }),
		docstore.ByNumber(byTime, func(e *Entry) docstore.Value { return docstore.Moment(e.Time) }),
		docstore.Counted(docstore.Grouped(docstore.ByText(byKind, func(e *Entry) string {
			return e.kind().name()
		}), byTime)),
		docstore.Counted(docstore.Grouped(docstore.ByText(byActorKind, func(e *Entry) string {
			return actorKind(e.Actor, e.kind())
		}), byTime)),
		docstore.Grouped(docstore.ByText(byRecord, func(e *Entry) string { return e.Record }), byTime),
	},
})

func (e *Entry) kind() kind { return kind{e.Entity, e.Action, e.Outcome} }

func actorKind(actor string, k kind) string { return actor + "\x00" + k.name() }

// AppendJSON appends what encoding/json makes of the entry, in a fraction of the time.
func (e *Entry) AppendJSON(b []byte) []byte {
	member := func(name string) { b = append(append(append(b, ',', '"'), name...), '"', ':') }
	text := func(name, value string) {
		member(name)
		b, _ = jsontext.AppendQuote(b, value) // invalid UTF-8 is replaced, which is all that can fail
	}
	moment := func(name string, t clock.Time) {
		member(name)
		quoted, _ := t.MarshalJSON() // it never fails
		b = append(b, quoted...)
	}
	number := func(name string, n int64) {
		member(name)
		b = strconv.AppendInt(b, n, 10)
	}
	size := 700 // usually enough for the other members
	for i := range e.Changes {
		size += len(e.Changes[i].Member) + len(e.Changes[i].Before) + len(e.Changes[i].After) + 40
	}
	b = slices.Grow(b, size)
	begin := len(b)
	text("id", e.ID)
	b[begin] = '{'
	text("tenant_id", e.TenantID)
	number("version", e.Version)
	moment("time_created", e.TimeCreated)
	moment("time_modified", e.TimeModified)
	moment("time", e.Time)
	text("actor", e.Actor)
	text("request_id", e.RequestID)
	text("origin", e.Origin)
	text("entity", e.Entity)
	text("record", e.Record)
	text("action", e.Action)
	text("outcome", e.Outcome)
	text("reason", e.Reason)
	if e.Address != "" {
		text("address", e.Address)
	}
	number("count", e.Count)
	member("changes")
	b = appendChanges(b, e.Changes)
	text("event_id", e.EventID)
	return append(b, '}')
}

// attempts are the events about attempts that were denied. An attempt names its reason in the record, or is its own:
// "login failed".
var attempts = map[string]bool{
	"access.denied": true, "client.authentication_failed": true, "sign_in.failed": true, "sign_in.refused": true,
	"user.login_failed": true,
}

// entryOf makes the entry of an event.
func entryOf(e *stream.Event) *Entry {
	name := strings.TrimPrefix(e.Type, "idp.")
	entity, action, _ := strings.Cut(name, ".")
	entry := &Entry{
		Meta: docstore.Meta{TimeCreated: e.Time}, Time: e.Time, Actor: e.Actor, RequestID: e.RequestID,
		Origin: e.PayloadOrigin, Entity: entity, Record: e.Subject, Action: action, Outcome: Done, Count: 1,
		Changes: []Change{}, EventID: e.ID,
	}
	switch {
	case entity == "access" || entity == "client":
	case entity == "sign_in": // each tells of a new attempt: who, where to, from where
		entry.attempt(e.Data)
	case !attempts[name]:
		entry.Changes = changesOf(action, e.Data)
	}
	if attempts[name] {
		entry.denied(e.Data)
	}
	return entry
}

// attempt fills in the data of an event about a person at the door of an application. Address and reason have members
// of their own.
func (e *Entry) attempt(data json.RawMessage) {
	for _, c := range changesOf("created", data) {
		switch c.Member {
		case "address":
			_ = json.Unmarshal(c.After, &e.Address) // it is text
		case "reason":
		default:
			e.Changes = append(e.Changes, c)
		}
	}
}

// denied fills in the data of an event about denied attempts.
func (e *Entry) denied(data json.RawMessage) {
	e.Outcome, e.Reason = Denied, strings.ReplaceAll(e.Action, "_", " ")
	var told struct {
		Record struct {
			Operation string `json:"operation"`
			Record    string `json:"record"`
			Actor     string `json:"actor"`
			Address   string `json:"address"`
			Reason    string `json:"reason"`
			Count     int64  `json:"count"`
		} `json:"record"`
	}
	if json.Unmarshal(data, &told) != nil {
		return
	}
	r := told.Record
	e.Address, e.Reason = r.Address, cmp.Or(r.Reason, e.Reason)
	if e.Entity == "access" { // several equal attempts are one event; the count of a client is of all its failures
		e.Actor, e.Action, e.Record, e.Count = r.Actor, r.Operation, r.Record, r.Count
	}
}
