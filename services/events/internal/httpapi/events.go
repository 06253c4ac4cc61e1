package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/events/internal/catalogue"
)

func (a *api) registerEvents(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "list-events", Method: http.MethodGet, Path: "/v1/events", Scope: auth.EventsRead, Streams: true,
		Summary:      "Follow the events",
		ContentTypes: []string{"application/json", request.EventStreamType}, Errors: []apperr.Kind{apperr.InvalidState},
		Doc: "The tenant's events in the order of the stream, after the cursor `after`. Without `after` the feed " +
			"starts with the oldest event that is kept, with `now` at its end. `next` is the cursor for the next " +
			"request. A page ends early at 4 MiB: `more` says whether there are further events. 409 means that " +
			"events after the cursor are no longer kept, or that the stream has lost events in a power cut; its " +
			"member `next` is the cursor to continue with.\n\nWith " +
			"`Accept: text/event-stream` the events come as Server-Sent Events, without end: " +
			"`id` is the cursor, `event` the type, `data` the event; `Last-Event-ID` resumes.",
		Response: map[string]any{"items": []any{exampleEvent}, "next": "tsp8xk.4711", "more": false},
	}, a.listEvents)
	rest.Handle(s, rest.Op{
		ID: "list-event-types", Method: http.MethodGet, Path: "/v1/event-types", Scope: auth.EventsRead,
		Summary: "List event types", Doc: "All types of events that the platform emits, with the JSON Schema of " +
			"`data` and an example.",
		Response: []any{exampleType},
	}, a.listTypes)
}

type listEventsInput struct {
	After       string `query:"after" maxLength:"64" doc:"The next of an earlier page, now, or a time (RFC 3339, or a date): the events that the stream took then or later"`
	Types       string `query:"types" maxLength:"4096" doc:"Types or patterns, joined by commas; each selects a type of GET /v1/event-types" example:"user.*,node.moved"`
	Limit       int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	Accept      string `header:"Accept" hidden:"true"`
	LastEventID string `header:"Last-Event-ID" maxLength:"64" doc:"Instead of after, in an event stream"`
}

func (a *api) listEvents(ctx context.Context, in *listEventsInput) (rest.OrEvents[rest.Pieces[EventPage]], error) {
	var answer rest.OrEvents[rest.Pieces[EventPage]]
	types := stream.Types(docstore.Items(in.Types))
	for _, pattern := range types {
		if !stream.ValidType(pattern) {
			return answer, apperr.Invalid("types", "must be types or patterns, joined by commas")
		}
		if !catalogue.Exists(pattern) {
			return answer, apperr.Invalid("types", "has one that selects no type of events that the platform has; "+
				"GET /v1/event-types lists them")
		}
	}
	streams := request.WantsEvents(in.Accept)
	from := in.After
	if streams && in.LastEventID != "" {
		from = in.LastEventID
	}
	after, err := a.Stream.Start(ctx, from)
	if err != nil {
		return answer, err
	}
	if streams {
		if err := a.Stream.Has(ctx, after); err != nil {
			return answer, err
		}
		answer.Events = a.eventStream(after, types)
		return answer, nil
	}
	answer.Body = rest.Pieces[EventPage]{Holds: rest.EventsAtOnce, Write: func(ctx context.Context, w io.Writer) error {
		return a.writePage(ctx, w, after, types, in.Limit)
	}}
	return answer, nil
}

// writePage writes an EventPage. The events are JSON already.
func (a *api) writePage(ctx context.Context, w io.Writer, after uint64, types stream.Types, limit int) error {
	separator := `{"items":[`
	next, more, err := a.Stream.Page(ctx, after, types, limit, func(events []*stream.Event) error {
		for _, e := range events {
			if _, err := io.WriteString(w, separator); err != nil {
				return err
			}
			if _, err := w.Write(e.JSON); err != nil {
				return err
			}
			separator = ","
		}
		return nil
	})
	if err != nil {
		return err
	}
	if separator == "," {
		separator = ""
	}
	_, err = fmt.Fprintf(w, `%s],"next":"%s","more":%t}`, separator, next, more)
	return err
}

func (a *api) eventStream(after uint64, types stream.Types) *rest.Events {
	return &rest.Events{Run: func(ctx context.Context, send func(...rest.ServerEvent) error) error {
		return a.Stream.Watch(ctx, after, types, func(cursor string, events []*stream.Event) error {
			epoch, _, _, _ := stream.ParseCursor(cursor)
			list := make([]rest.ServerEvent, len(events), len(events)+1)
			for i, e := range events {
				list[i] = rest.ServerEvent{ID: stream.Cursor(epoch, e.Place, e.ID), Name: e.Type, Data: e.JSON}
			}
			return send(append(list, rest.ServerEvent{ID: cursor})...)
		})
	}}
}

func (a *api) listTypes(context.Context, *struct{}) ([]catalogue.Type, error) {
	return catalogue.All(), nil
}

// EventPage is a part of the feed.
type EventPage struct {
	Items []rest.Raw[Event] `json:"items" nullable:"false" doc:"In the order of the feed"`
	Next  string            `json:"next" doc:"The cursor for the next request" example:"tsp8xk.4711"`
	More  bool              `json:"more" doc:"There are further events already"`
}

// Event describes a CloudEvent for the OpenAPI document.
type Event struct {
	SpecVersion     string `json:"specversion" enum:"1.0" doc:"CloudEvents: 1.0"`
	ID              string `json:"id" doc:"CloudEvents: unique for ever" example:"019c1f3e-8a2b-7c4d-9e5f-0123456789ab"`
	Source          string `json:"source" doc:"CloudEvents: the service that it is of" example:"/users"`
	Type            string `json:"type" doc:"CloudEvents: noun.verb" example:"idp.user.created"`
	Subject         string `json:"subject" doc:"The record's id" example:"1048577"`
	Time            string `json:"time" format:"date-time" doc:"CloudEvents: when it happened"`
	DataContentType string `json:"datacontenttype" doc:"CloudEvents: application/json" example:"application/json"`
	TenantID        string `json:"tenantid" doc:"The tenant that it is of" example:"acme"`
	Actor           string `json:"actor,omitempty" doc:"Who did it: issuer and subject of the token, or system"`
	RequestID       string `json:"requestid,omitempty" doc:"The request that did it"`
	TraceParent     string `json:"traceparent,omitempty" doc:"W3C Trace Context of the request"`
	PayloadOrigin   string `json:"payloadorigin,omitempty" doc:"X-Payload-Origin of the request"`
	Sequence        string `json:"sequence" doc:"A decimal number that grows with each event of one record"`
	Data            struct {
		Record   map[string]any `json:"record" doc:"The record as it is now, without secrets; as it was, of a delete"`
		Previous map[string]any `json:"previous,omitempty" doc:"The former values of changed members"`
	} `json:"data" doc:"What happened"`
}

var exampleEvent = json.RawMessage(`{"specversion":"1.0","id":"019c1f3e-8a2b-7c4d-9e5f-0123456789ab",` +
	`"source":"/users","type":"idp.user.created","subject":"1048577","time":"2026-01-31T09:30:00.000Z",` +
	`"datacontenttype":"application/json","tenantid":"acme","actor":"admin","sequence":"10",` +
	`"data":{"record":{"id":"1048577","username":"li.wei"}}}`)

var exampleType = json.RawMessage(`{"type":"user.created","description":"A user was created.",` +
	`"schema":{"type":"object"},"example":{"record":{"id":"1048577","username":"li.wei"}}}`)
