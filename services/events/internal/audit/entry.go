// Package audit is the log of all changes and denied attempts, made of the events of all services.
package audit

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/events/internal/feed"
)

// The outcomes.
const (
	Done   = "done"
	Denied = "denied"
)

// Entry is an entry of the log. Its JSON form is the API's.
type Entry struct {
	docstore.Meta            // the id is made by place.id: ids grow in the order of the log
	Time          clock.Time `json:"time"`
	Actor         string     `json:"actor"`
	RequestID     string     `json:"request_id"`
	Origin        string     `json:"origin"` // X-Payload-Origin
	Entity        string     `json:"entity"`
	Record        string     `json:"record"`
	Action        string     `json:"action"`
	Outcome       string     `json:"outcome"`
	Reason        string     `json:"reason"`
	Address       string     `json:"address,omitempty"` // of a denied attempt
	Count         int64      `json:"count"`             // how many equal attempts it is about
	Changes       []Change   `json:"changes"`
	EventID       string     `json:"event_id"`
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

// entryOf makes the entry of an event.
func entryOf(e *feed.Event) *Entry {
	entity, action, _ := strings.Cut(strings.TrimPrefix(e.Type, "idp."), ".")
	entry := &Entry{
		Meta: docstore.Meta{TimeCreated: e.Time}, Time: e.Time, Actor: e.Actor, RequestID: e.RequestID,
		Origin: e.PayloadOrigin, Entity: entity, Record: e.Subject, Action: action, Outcome: Done, Count: 1,
		Changes: []Change{}, EventID: e.ID,
	}
	switch {
	case entity == "access" && action == "denied":
		entry.denied(e.Data)
	case strings.HasSuffix(action, "_failed"): // a login, or the authentication of a client
		entry.Outcome, entry.Reason = Denied, strings.ReplaceAll(action, "_", " ")
	default:
		entry.Changes = changesOf(action, e.Data)
	}
	return entry
}

// denied fills in the data of an event about denied attempts.
func (e *Entry) denied(data json.RawMessage) {
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
	e.Outcome, e.Reason, e.Actor, e.Address, e.Count = Denied, r.Reason, r.Actor, r.Address, r.Count
	e.Action, e.Record = r.Operation, r.Record
}
