// Package deadletter shows operators the events that a service could not handle, and replays or removes them.
package deadletter

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
)

// Letter is an event that a consumer could not handle, as clients see it.
type Letter struct {
	docstore.Meta
	Consumer string          `json:"consumer" doc:"Who could not take it" example:"permissions-users"`
	Error    string          `json:"error" doc:"Why the last try failed" example:"the store does not answer"`
	Tries    int             `json:"tries" doc:"0 if it is not an event at all" example:"10"`
	Event    json.RawMessage `json:"event" nullable:"true" doc:"The CloudEvent; null if it is no JSON, or too large for the list" example:"{\"specversion\":\"1.0\",\"id\":\"019c1f3e-8a2b-7c4d-9e5f-0123456789ab\",\"source\":\"/users\",\"type\":\"idp.user.created\"}"`
}

// Letters are the use cases. All are for operators: letters belong to the platform, whatever the tenant of the event.
type Letters struct {
	Store *docstore.Store
	Bus   *bus.Bus
}

// Filter selects letters of a consumer that were parked at a time or later.
type Filter struct {
	Consumer string `query:"consumer" maxLength:"63" doc:"The consumer's name" example:"permissions-users"`
	From     time.Time
}

// Page is a page of a list.
type Page struct {
	Letters []Letter
	Total   int64
	Next    string
}

const (
	list    = "dead-letters"
	byTime  = "time_created"
	maxSkip = 100_000
	// maxBytes is how much of a page's events is shown; one event can have 4 MiB.
	maxBytes = 4 << 20
)

// List returns a page, the oldest first. The error is apperr.InvalidParameters or Unavailable.
func (l *Letters) List(ctx context.Context, f Filter, p docstore.Paging) (Page, error) {
	if strings.ContainsAny(f.Consumer, ".*> \t\r\n") {
		return Page{}, apperr.Invalid("consumer", "is not the name of a consumer")
	}
	query, err := p.Query(docstore.Filter{}, byTime)
	if err != nil {
		return Page{}, err
	}
	if query.Sort[0].Desc {
		return Page{}, apperr.Invalid("page_sort", "must be time_created[asc]")
	}
	if query.Offset > maxSkip {
		return Page{}, apperr.Invalid("page_num", "is too far into the list; continue with page_token instead")
	}
	about := []string{list, f.Consumer, f.From.UTC().Format(time.RFC3339Nano)}
	ask := bus.DeadLetters{
		Consumer: f.Consumer, From: f.From, Skip: query.Offset, Limit: query.Limit, MaxBytes: maxBytes,
	}
	if p.After != "" {
		after, err := docstore.ReadPageToken(ctx, p.After, about...)
		if err != nil {
			return Page{}, err
		}
		if ask.After, err = strconv.ParseUint(after, 10, 63); err != nil {
			return Page{}, apperr.Invalid("page_token", "is not a page token of this list")
		}
		ask.Skip = 0
	}
	found, total, more, err := l.Bus.DeadLetters(ctx, ask)
	if err != nil {
		return Page{}, err
	}
	page := Page{Letters: make([]Letter, len(found)), Total: total}
	for i, one := range found {
		page.Letters[i] = letterOf(one)
	}
	if more && len(found) > 0 {
		page.Next = docstore.PageToken(ctx, page.Letters[len(found)-1].ID, about...)
	}
	return page, nil
}

// letterOf makes the form that clients see.
func letterOf(d bus.DeadLetter) Letter {
	at := clock.FromMillis(d.Parked.UnixMilli())
	parts := strings.Split(d.Subject, ".")
	l := Letter{
		Meta: docstore.Meta{
			ID: strconv.FormatUint(d.Place, 10), Version: 1, TimeCreated: at, TimeModified: at,
		},
		Consumer: d.Consumer, Error: d.Error, Tries: d.Tries, Event: json.RawMessage("null"),
	}
	if len(parts) > 2 {
		l.TenantID = parts[2] // idp.events.<tenant>
	}
	if json.Valid(d.Payload) {
		l.Event = d.Payload
	}
	return l
}

// Get returns a letter with its whole event. The error is apperr.NotFound or Unavailable.
func (l *Letters) Get(ctx context.Context, id string) (Letter, error) {
	place, err := strconv.ParseUint(id, 10, 63)
	if err != nil {
		return Letter{}, apperr.Missing("dead letter")
	}
	found, err := l.Bus.DeadLetter(ctx, place)
	if err != nil {
		return Letter{}, err
	}
	return letterOf(found), nil
}

// Replay delivers the event to its consumer again, which may fail again: it is then another letter. A dry run only
// looks whether it is there. The error is apperr.NotFound, VersionMismatch or Unavailable.
func (l *Letters) Replay(ctx context.Context, id string) (Letter, error) {
	return l.remove(ctx, id, "replayed", l.Bus.ReplayDeadLetter)
}

// Delete removes a letter. The error is apperr.NotFound, VersionMismatch or Unavailable.
func (l *Letters) Delete(ctx context.Context, id string) (docstore.Deleted, error) {
	_, err := l.remove(ctx, id, "deleted", l.Bus.DeleteDeadLetter)
	return docstore.Deleted{ID: id}, err
}

func (l *Letters) remove(ctx context.Context, id, action string,
	do func(context.Context, uint64) error) (Letter, error) {
	letter, err := l.Get(ctx, id)
	if err != nil {
		return Letter{}, err
	}
	if err := docstore.CheckExpected(ctx, id, letter.Version); err != nil || docstore.IsDryRun(ctx) {
		return letter, err
	}
	place, _ := strconv.ParseUint(id, 10, 63) // Get has read it
	if err := do(ctx, place); err != nil {
		return Letter{}, err
	}
	return letter, docstore.Do(ctx, l.Store, func(tx *docstore.Tx) error { return tell(ctx, tx, action, letter) })
}

// tell notes who did it, in the caller's tenant; the event itself is another tenant's.
func tell(ctx context.Context, tx *docstore.Tx, action string, letter Letter) error {
	record, err := json.Marshal(map[string]any{"id": letter.ID, "consumer": letter.Consumer, "tries": letter.Tries})
	if err != nil {
		return err
	}
	return outbox.Append(ctx, tx, outbox.Event{
		Entity: "dead_letter", Action: action, Source: "/dead-letters", Subject: letter.ID, Revision: 1, Record: record,
	})
}
