// Package audit is the log of all changes and denied attempts, made of the events of all services.
package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	docstore.Meta            // the id is firstID and the place of the event: it grows in the order of the log
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
	Count         int64      `json:"count"`             // how many equal attempts it stands for
	Changes       []Change   `json:"changes"`
	EventID       string     `json:"event_id"`
}

// Change is a member's value before and after.
type Change struct {
	Member string          `json:"member"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

const (
	maxValue = 8 << 10 // bytes of a value that are kept

	byEvent  = "event_id"
	byTime   = "time"
	byNumber = "number"
	byActor  = "actor"
	byRecord = "record"
	byEntity = "entity"
	byAction = "action"
	byKind   = "kind" // entity and action
	byDenied = "denied"
)

// Each filter has an index of its own, with the time behind the value: whatever is asked for, a page is a walk along
// one index.
var entries = docstore.Define(docstore.Schema[Entry]{
	Name: "audit_log", Noun: "audit log entry", Sortable: []string{byTime},
	Indexes: []docstore.Index[Entry]{
		docstore.ByText(byEvent, func(e *Entry) string { return e.EventID }),
		docstore.ByNumber(byTime, func(e *Entry) docstore.Value { return docstore.Moment(e.Time) }),
		docstore.ByNumber(byNumber, func(e *Entry) docstore.Value { return docstore.Number(numberOf(e.ID)) }),
		docstore.ByText(byActor, func(e *Entry) string { return timed(e.Actor, e.Time) }),
		docstore.ByText(byRecord, func(e *Entry) string { return timed(e.Record, e.Time) }),
		docstore.ByText(byEntity, func(e *Entry) string { return timed(e.Entity, e.Time) }),
		docstore.ByText(byAction, func(e *Entry) string { return timed(e.Action, e.Time) }),
		docstore.ByText(byKind, func(e *Entry) string { return timed(e.Entity+"."+e.Action, e.Time) }),
		docstore.ByText(byDenied, func(e *Entry) string {
			if e.Outcome != Denied {
				return ""
			}
			return timed(Denied, e.Time)
		}),
	},
})

// timed is a value with a time behind it, which sorts by both.
func timed(value string, t clock.Time) string {
	if value == "" {
		return ""
	}
	return fmt.Sprintf("%s\x00%014d", value, max(0, t.Millis()))
}

// entryOf makes the entry of an event.
func entryOf(e *feed.Event) *Entry {
	entity, action, _ := strings.Cut(strings.TrimPrefix(e.Type, "idp."), ".")
	entry := &Entry{
		Meta: docstore.Meta{TimeCreated: e.Time}, Time: e.Time, Actor: e.Actor, RequestID: e.RequestID,
		Origin: e.PayloadOrigin, Entity: entity, Record: e.Subject, Action: action, Outcome: Done, Count: 1,
		Changes: []Change{}, EventID: e.ID,
	}
	var data struct {
		Record   map[string]json.RawMessage `json:"record"`
		Previous map[string]json.RawMessage `json:"previous"`
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return entry
	}
	switch {
	case entity == "access" && action == "denied":
		entry.denied(e.Data)
	case strings.HasSuffix(action, "_failed"): // a login, or the authentication of a client
		entry.Outcome, entry.Reason = Denied, strings.ReplaceAll(action, "_", " ")
	case action == "created":
		entry.Changes = changes(nil, data.Record)
	case action == "deleted":
		entry.Changes = changes(data.Record, nil)
	default:
		after := map[string]json.RawMessage{}
		for member := range data.Previous {
			after[member] = data.Record[member]
		}
		entry.Changes = changes(data.Previous, after)
	}
	return entry
}

// denied fills in what the event of denied attempts tells.
func (entry *Entry) denied(data json.RawMessage) {
	var told struct {
		Record struct {
			Operation string `json:"operation"`
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
	entry.Outcome, entry.Reason, entry.Actor, entry.Address, entry.Count = Denied, r.Reason, r.Actor, r.Address, r.Count
	entry.Action, entry.Record = r.Operation, ""
}

// kept are the members that every record has and that follow from the change itself.
var kept = []string{"id", "tenant_id", "version", "time_created", "time_modified"}

// changes lists the members of before and after by name. Members with the same value in both are left out.
func changes(before, after map[string]json.RawMessage) []Change {
	members := map[string]bool{}
	for member := range before {
		members[member] = true
	}
	for member := range after {
		members[member] = true
	}
	list := []Change{}
	for _, member := range slices.Sorted(maps.Keys(members)) {
		c := Change{member, bounded(before[member]), bounded(after[member])}
		same := bytes.Equal(c.Before, c.After) || isEmpty(c.Before) && isEmpty(c.After)
		if !same && !slices.Contains(kept, member) {
			list = append(list, c)
		}
	}
	return list
}

// isEmpty reports whether a value says nothing: a member that a record is created with, and that nobody set.
func isEmpty(value json.RawMessage) bool {
	switch string(value) {
	case "null", `""`, "{}", "[]":
		return true
	}
	return false
}

// bounded replaces a large value by its size.
func bounded(value json.RawMessage) json.RawMessage {
	if len(value) > maxValue {
		return json.RawMessage(fmt.Sprintf(`"(%d bytes)"`, len(value)))
	}
	if value == nil {
		return json.RawMessage("null")
	}
	return value
}
