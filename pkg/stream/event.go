package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
)

// Event is a CloudEvent of the platform, as its readers see it.
type Event struct {
	ID            string     // unique; the same in every delivery
	Source        string     // the path of the records, without /v1 and ids: /users, /applications/accounts
	Type          string     // idp.user.created
	Subject       string     // the record's id
	Time          clock.Time // when the change was made
	Tenant        string
	Actor         string // who made the change; "" if unknown
	RequestID     string
	TraceParent   string
	PayloadOrigin string
	Sequence      int64           // grows with each event of one record
	Data          json.RawMessage // {"record": …, "previous": …}
	JSON          json.RawMessage // the whole event, as it was published

	Place uint64 // in the stream; 0 for one that is replayed

	input *input // nil for an event that no Log has read
}

// input is an event as the variable of a condition.
type input struct {
	decode sync.Once
	value  map[string]any
	err    error
}

// Input is what decode makes of the event's JSON. All readers of a Log share one result, which they must not change.
func (e *Event) Input(decode func([]byte) (map[string]any, error)) (map[string]any, error) {
	if e.input == nil {
		return decode(e.JSON)
	}
	e.input.decode.Do(func() { e.input.value, e.input.err = decode(e.JSON) })
	return e.input.value, e.input.err
}

// Record identifies the record that the event is about. Events with the same one are handled one after the other.
func (e Event) Record() string { return e.Tenant + e.Source + "/" + e.Subject }

// lenient accepts what encoding/json accepts.
var lenient = jsonv2.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
	jsonv2.MatchCaseInsensitiveNames(true))

// Read decodes the event's data, such as {"record": …, "previous": …}, into a struct.
func (e *Event) Read(into any) error { return ReadJSON(e.Data, into) }

// ReadJSON decodes a part of an event, such as its record, as encoding/json does, but faster. The error names the
// member and not its content.
func ReadJSON(part []byte, into any) error {
	err := jsonv2.Unmarshal(part, into, lenient)
	if wrong, ok := errors.AsType[*jsonv2.SemanticError](err); ok {
		return fmt.Errorf("the event's member %q cannot be read as %v", wrong.JSONPointer, wrong.GoType)
	}
	if err != nil {
		return errors.New("the event's content is not JSON")
	}
	return nil
}

// Decode parses the message of an event. subject is the NATS subject that it came on. Permissions on subjects are given
// by tenant, so Decode refuses an event that claims another tenant.
func Decode(subject string, payload []byte) (Event, error) {
	var wire struct {
		SpecVersion   string         `json:"specversion"`
		ID            string         `json:"id"`
		Source        string         `json:"source"`
		Type          string         `json:"type"`
		Subject       string         `json:"subject"`
		Time          clock.Time     `json:"time"`
		Tenant        string         `json:"tenantid"`
		Actor         string         `json:"actor"`
		RequestID     string         `json:"requestid"`
		TraceParent   string         `json:"traceparent"`
		PayloadOrigin string         `json:"payloadorigin"`
		Sequence      string         `json:"sequence"`
		Data          jsontext.Value `json:"data"`
	}
	if err := jsonv2.Unmarshal(payload, &wire, lenient); err != nil {
		return Event{}, errors.New("not a CloudEvent in JSON") // the decoder's error could repeat the content
	}
	sequence, err := strconv.ParseInt(wire.Sequence, 10, 64)
	switch {
	case wire.SpecVersion != "1.0":
		return Event{}, errors.New("not a CloudEvent of version 1.0")
	case wire.ID == "" || wire.Source == "" || wire.Type == "" || wire.Subject == "" || wire.Tenant == "":
		return Event{}, errors.New("id, source, type, subject or tenantid is missing")
	case err != nil || sequence < 1:
		return Event{}, errors.New("sequence is not a positive number")
	case subject != subjectOf(wire.Tenant, wire.Type):
		return Event{}, fmt.Errorf("the event does not belong on %s", subject)
	}
	return Event{
		ID: wire.ID, Source: wire.Source, Type: wire.Type, Subject: wire.Subject, Time: wire.Time, Tenant: wire.Tenant,
		Actor: wire.Actor, RequestID: wire.RequestID, TraceParent: wire.TraceParent, PayloadOrigin: wire.PayloadOrigin,
		Sequence: sequence, Data: json.RawMessage(wire.Data), JSON: payload,
	}, nil
}

// subjectOf is where the relay publishes an event.
func subjectOf(tenant, eventType string) string {
	return bus.EventsPrefix + tenant + "." + strings.TrimPrefix(eventType, "idp.")
}
