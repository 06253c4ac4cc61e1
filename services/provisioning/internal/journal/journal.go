// Package journal keeps what the clients of connections asked for, and what they got, for 30 days.
package journal

import (
	"context"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
)

// Entry is one request.
type Entry struct {
	docstore.Meta
	ConnectionID string     `json:"connection_id" doc:"Whose request it was" example:"1048577"`
	Time         clock.Time `json:"time" doc:"When it was answered"`
	Method       string     `json:"method" doc:"Of the request" example:"PATCH"`
	Path         string     `json:"path" doc:"With its query" example:"/scim/v2/Users/1048577"`
	Status       int64      `json:"status" doc:"The HTTP status of the answer" example:"200"`
	SCIMType     string     `json:"scim_type" doc:"Of an error"`
	Detail       string     `json:"detail" doc:"Of an error"`
	Ignored      []string   `json:"ignored" doc:"Members of the body that changed nothing" example:"[\"urn:acme:badge\"]"`
	RequestID    string     `json:"request_id" doc:"X-Request-Id" example:"4mrhvkqtwz5c2d7ba3gxyun6ep"`
}

const (
	kept         = 30 * 24 * time.Hour
	byConnection = "connection_id"
	byTime       = "time"
	maxPath      = 1024 // bytes
	maxWaiting   = 10_000
	readsASecond = 50 // of one connection; more successful reads are only counted
)

var entries = docstore.Define(docstore.Schema[Entry]{
	Name: "requests", Noun: "request", NoIfMatch: true, Sortable: []string{byTime},
	Due: func(e *Entry) clock.Time { return e.Time.Add(kept) },
	Indexes: []docstore.Index[Entry]{
		docstore.ByText(byConnection, func(e *Entry) string { return e.ConnectionID }),
		docstore.ByNumber(byTime, func(e *Entry) docstore.Value { return docstore.Moment(e.Time) }),
	},
})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{entries.Def()} }

// Journal collects entries and stores them every second: a request does not wait for its entry. A crash loses those of
// the last second.
type Journal struct {
	store   *docstore.Store
	mu      sync.Mutex
	waiting map[of]*batch
	n       int
}

type of struct{ tenant, connection string }

type batch struct {
	entries []Entry
	reads   int
	add     connection.Counters
	last    clock.Time
}

// New makes a journal.
func New(s *docstore.Store) *Journal { return &Journal{store: s, waiting: map[of]*batch{}} }

// Note adds the entry of a request. changed says what it did: created, updated or removed; "" for nothing.
func (j *Journal) Note(ctx context.Context, e Entry, changed string) {
	e.Time, e.RequestID = j.store.Now(), request.From(ctx).ID
	if len(e.Path) > maxPath {
		e.Path = e.Path[:maxPath]
	}
	if e.Ignored == nil {
		e.Ignored = []string{}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	key := of{request.Tenant(ctx), e.ConnectionID}
	b := j.waiting[key]
	if b == nil {
		b = &batch{}
		j.waiting[key] = b
	}
	b.last = e.Time
	b.add.Requests++
	switch {
	case e.Status >= 400:
		b.add.Refused++
	case changed == "created":
		b.add.Created++
	case changed == "updated":
		b.add.Updated++
	case changed == "removed":
		b.add.Removed++
	}
	if e.Status < 400 && (e.Method == "GET" || e.Method == "HEAD") {
		b.reads++
	}
	if b.reads > readsASecond && e.Status < 400 && changed == "" || j.n >= maxWaiting {
		b.add.Unlogged++
		return
	}
	j.n++
	b.entries = append(b.entries, e)
}

// Flush stores what has been noted.
func (j *Journal) Flush(ctx context.Context) (int, error) {
	j.mu.Lock()
	waiting := j.waiting
	j.waiting, j.n = map[of]*batch{}, 0
	j.mu.Unlock()
	var failed error
	for key, b := range waiting {
		if err := j.flush(request.System(ctx, key.tenant), key.connection, b); err != nil {
			failed = err
		}
	}
	return 0, failed
}

const atOnce = 500 // entries of one transaction

func (j *Journal) flush(ctx context.Context, connectionID string, b *batch) error {
	ids, err := j.store.NewIDs(ctx, max(1, len(b.entries)))
	if err != nil {
		return err
	}
	for from := 0; from == 0 || from < len(b.entries); from += atOnce {
		part := b.entries[from:min(from+atOnce, len(b.entries))]
		if err := docstore.Do(ctx, j.store, func(tx *docstore.Tx) error {
			all := make([]*Entry, len(part))
			for i := range part {
				e := part[i]
				e.Meta = docstore.Meta{ID: ids[from+i]}
				all[i] = &e
			}
			if len(all) > 0 {
				if _, err := entries.InsertMany(ctx, tx, func(int) string { return "" }, all...); err != nil {
					return err
				}
			}
			if from > 0 {
				return nil
			}
			return connection.Count(ctx, tx, connectionID, func(c *connection.Connection) {
				n, add := &c.Counters, b.add
				n.Requests, n.Refused = n.Requests+add.Requests, n.Refused+add.Refused
				n.Created, n.Updated, n.Removed = n.Created+add.Created, n.Updated+add.Updated, n.Removed+add.Removed
				n.Unlogged += add.Unlogged
				c.TimeLastRequest = b.last
			})
		}); err != nil {
			return err
		}
	}
	return nil
}

// List returns a page of the entries of a connection. The error is apperr.NotFound or InvalidParameters.
func (j *Journal) List(ctx context.Context, connectionID string, p docstore.Paging) (docstore.Page[Entry], error) {
	if _, err := connection.Find(ctx, j.store, connectionID); err != nil {
		return docstore.Page[Entry]{}, err
	}
	if p.Sort == "" {
		p.Sort = byTime + "[desc]"
	}
	return entries.List(ctx, j.store, docstore.Eq(byConnection, docstore.Text(connectionID)), p)
}

// Due lists entries that are too old.
func Due(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return entries.Due(ctx, s, limit)
}

// Forget deletes old entries.
func Forget(ctx context.Context, s *docstore.Store, ids ...string) error {
	return docstore.Do(ctx, s, func(tx *docstore.Tx) error {
		return entries.DeleteWhere(ctx, tx, docstore.ID(ids...), nil)
	})
}

// ForgetAll deletes the entries of a deleted connection, some at a time.
func ForgetAll(ctx context.Context, s *docstore.Store, connectionID string) error {
	for {
		page, err := entries.Page(ctx, s, docstore.Query{
			Filter: docstore.Eq(byConnection, docstore.Text(connectionID)), Limit: atOnce,
		})
		if err != nil || len(page.Docs) == 0 {
			return err
		}
		ids := make([]string, len(page.Docs))
		for i := range page.Docs {
			ids[i] = page.Docs[i].ID
		}
		if err := Forget(ctx, s, ids...); err != nil {
			return err
		}
	}
}
