package httpapi

import (
	"context"
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
	rest.Named[audit.Entry](s, "AuditEntry")
	rest.Named[audit.Change](s, "Item")
	rest.Handle(s, rest.Op{
		ID: "list-audit-logs", Method: http.MethodGet, Path: auditLogs, Scope: auth.EventsRead, Streams: true,
		Summary: "List audit log entries", ContentTypes: []string{"application/json", request.EventStreamType},
		Doc: "Newest first with `page_sort=time[desc]`. With `Accept: text/event-stream` the entries that are " +
			"written from now on, or after the one in `Last-Event-ID`, come as Server-Sent Events: `id` is the " +
			"entry's id, `data` the entry.",
	}, a.listEntries)
	rest.Handle(s, rest.Op{
		ID: "get-audit-log", Method: http.MethodGet, Path: auditLogs + "/{id}", Scope: auth.EventsRead,
		Summary: "Get an audit log entry",
	}, rest.One[audit.Entry](a.Audit.Get))
	rest.Handle(s, rest.Op{
		ID: "export-audit-logs", Method: http.MethodGet, Path: auditLogs + "/export", Scope: auth.EventsRead,
		Summary: "Export the audit log", Streams: true, ContentTypes: []string{"application/x-ndjson"},
		Doc: "One entry per line, the oldest first.", Response: exampleLine,
	}, a.exportEntries)
}

// AuditFilter selects entries.
type AuditFilter struct {
	audit.Filter
	TimeFrom string `query:"time_from" maxLength:"40" doc:"RFC 3339 or a date; included"`
	TimeTo   string `query:"time_to" maxLength:"40" doc:"RFC 3339 or a date; not included"`
}

func (f AuditFilter) read() (audit.Filter, error) {
	var faults apperr.Faults
	f.From, f.To = rest.ReadTime(&faults, "time_from", f.TimeFrom), rest.ReadTime(&faults, "time_to", f.TimeTo)
	return f.Filter, faults.Err()
}

type listEntriesInput struct {
	AuditFilter
	docstore.Paging
	Accept      string `header:"Accept" hidden:"true"`
	LastEventID string `header:"Last-Event-ID" maxLength:"64" doc:"In an event stream: the entry to continue after"`
}

func (a *api) listEntries(ctx context.Context, in *listEntriesInput) (rest.OrEvents[rest.List[audit.Entry]], error) {
	var answer rest.OrEvents[rest.List[audit.Entry]]
	filter, err := in.read()
	if err != nil {
		return answer, err
	}
	if request.WantsEvents(in.Accept) {
		answer.Events, err = a.entryStream(ctx, filter, in.LastEventID)
		return answer, err
	}
	page, err := a.Audit.List(ctx, filter, in.Paging)
	answer.Body, err = rest.ListOf[audit.Entry](in.Paging, page, err)
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

const exampleLine = `{"id":"1099511627777","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z",` +
	`"time":"2026-01-31T09:30:00.000Z","actor":"admin","request_id":"4mrhvkqtwz5c2d7ba3gxyun6ep","origin":"",` +
	`"entity":"user","record":"1048577","action":"updated","outcome":"done","reason":"","count":1,` +
	`"changes":[{"member":"email","before":"","after":"li.wei@acme.test"}],` +
	`"event_id":"019c1f3e-8a2b-7c4d-9e5f-0123456789ab"}` + "\n"
