package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/events/internal/audit"
)

const auditLogs = "/v1/audit-logs"

func (a *api) registerAudit(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "list-audit-logs", Method: http.MethodGet, Path: auditLogs, Scope: auth.EventsRead, Streams: true,
		Summary: "List audit log entries", ContentTypes: []string{"application/json", request.EventStreamType},
		Doc: "Newest first with `page_sort=time[desc]`. With `Accept: text/event-stream` the entries that are " +
			"written from now on, or after the one in `Last-Event-ID`, come as Server-Sent Events: `id` is the " +
			"entry's id, `data` the entry.",
		Response: map[string]any{"items": []any{exampleEntry}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listEntries)
	rest.Handle(s, rest.Op{
		ID: "get-audit-log", Method: http.MethodGet, Path: auditLogs + "/{id}", Scope: auth.EventsRead,
		Summary: "Get an audit log entry", Response: exampleEntry,
	}, rest.One[AuditEntry](a.Audit.Get))
	rest.Handle(s, rest.Op{
		ID: "export-audit-logs", Method: http.MethodGet, Path: auditLogs + "/export", Scope: auth.EventsRead,
		Summary: "Export the audit log", Streams: true, ContentTypes: []string{"application/x-ndjson"},
		Doc: "One entry per line, the oldest first.", Response: string(exampleEntry) + "\n",
	}, a.exportEntries)
}

// AuditFilter selects entries.
type AuditFilter struct {
	Actor    string `query:"actor" maxLength:"1024" doc:"Who made the change, as in an entry" example:"client:4f1c"`
	Entity   string `query:"entity" maxLength:"64" example:"user"`
	Record   string `query:"record" maxLength:"64" doc:"The record's id"`
	Action   string `query:"action" maxLength:"64" example:"created"`
	Outcome  string `query:"outcome" enum:"done,denied"`
	TimeFrom string `query:"time_from" maxLength:"40" doc:"RFC 3339 or a date; included"`
	TimeTo   string `query:"time_to" maxLength:"40" doc:"RFC 3339 or a date; not included"`
}

func (f AuditFilter) read() (audit.Filter, error) {
	var faults apperr.Faults
	filter := audit.Filter{
		Actor: f.Actor, Entity: f.Entity, Record: f.Record, Action: f.Action, Outcome: f.Outcome,
		From: rest.ReadTime(&faults, "time_from", f.TimeFrom), To: rest.ReadTime(&faults, "time_to", f.TimeTo),
	}
	return filter, faults.Err()
}

type listEntriesInput struct {
	AuditFilter
	docstore.Paging
	Accept      string `header:"Accept" hidden:"true"`
	LastEventID string `header:"Last-Event-ID" maxLength:"64" doc:"In an event stream: the entry to continue after"`
}

func (a *api) listEntries(ctx context.Context,
	in *listEntriesInput) (rest.OrEvents[rest.List[AuditEntry]], error) {
	var answer rest.OrEvents[rest.List[AuditEntry]]
	filter, err := in.read()
	if err != nil {
		return answer, err
	}
	if request.WantsEvents(in.Accept) {
		answer.Events, err = a.entryStream(ctx, filter, in.LastEventID)
		return answer, err
	}
	page, err := a.Audit.List(ctx, filter, in.Paging)
	answer.Body, err = rest.ListOf[AuditEntry](in.Paging, page, err)
	return answer, err
}

func (a *api) entryStream(ctx context.Context, filter audit.Filter, after string) (*rest.Events, error) {
	if after == "" {
		var err error
		if after, err = a.Audit.End(ctx); err != nil {
			return nil, err
		}
	}
	return &rest.Events{Run: func(ctx context.Context, send func(...rest.ServerEvent) error) error {
		return a.Audit.Follow(ctx, filter, after, func(place string, docs []audit.Doc) error {
			list := make([]rest.ServerEvent, len(docs), len(docs)+1)
			for i := range docs {
				entry, err := docs[i].JSON()
				if err != nil {
					return err
				}
				list[i] = rest.ServerEvent{ID: docs[i].ID, Name: "audit", Data: entry}
			}
			return send(append(list, rest.ServerEvent{ID: place})...)
		})
	}}, nil
}

const idle = 30 * time.Second // how long the reader of an export may pause

func (a *api) exportEntries(ctx context.Context, in *AuditFilter) (rest.Stream, error) {
	filter, err := in.read()
	if err != nil {
		return rest.Stream{}, err
	}
	return rest.Stream{ContentType: "application/x-ndjson; charset=utf-8", Write: func(w http.ResponseWriter) error {
		return a.Audit.Export(ctx, filter, rest.PatientWriter(w, idle))
	}}, nil
}

// AuditEntry describes audit.Entry for the OpenAPI document.
type AuditEntry struct {
	rest.Meta
	Time      time.Time `json:"time" doc:"When it happened"`
	Actor     string    `json:"actor" doc:"client:<client id>, user:<user id> or <issuer>#<sub>; system for the platform's own work; the token's subject alone in entries of earlier versions"`
	RequestID string    `json:"request_id" doc:"The request that did it"`
	Origin    string    `json:"origin" doc:"X-Payload-Origin"`
	Entity    string    `json:"entity" doc:"The record that it is about" example:"user"`
	Record    string    `json:"record" doc:"The record's id"`
	Action    string    `json:"action" doc:"Of entity access: the operation that was denied" example:"created"`
	Outcome   string    `json:"outcome" enum:"done,denied" doc:"denied: the attempt was refused"`
	Reason    string    `json:"reason" doc:"Why it was denied"`
	Address   string    `json:"address,omitempty" doc:"Where a denied attempt came from"`
	Count     int64     `json:"count" doc:"How many equal attempts within ten seconds it stands for"`
	Changes   []struct {
		Member string `json:"member" doc:"Its name"`
		Before any    `json:"before" doc:"What it was; null: it was not there"`
		After  any    `json:"after" doc:"What it is; null: it is gone"`
	} `json:"changes" doc:"What changed, by member"`
	EventID string `json:"event_id" doc:"Of the event that tells it; empty for a denied attempt"`
}

var exampleEntry = json.RawMessage(`{"id":"1099511627777","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z",` +
	`"time":"2026-01-31T09:30:00.000Z","actor":"admin","request_id":"4mrhvkqtwz5c2d7ba3gxyun6ep","origin":"",` +
	`"entity":"user","record":"1048577","action":"updated","outcome":"done","reason":"","count":1,` +
	`"changes":[{"member":"email","before":"","after":"li.wei@acme.test"}],` +
	`"event_id":"019c1f3e-8a2b-7c4d-9e5f-0123456789ab"}`)
