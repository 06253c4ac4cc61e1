// Package index keeps the engine of a replica up to date. At the start it reads the store and asks other services for
// their records; afterwards it follows events, and takes this replica's own writes before their callers are answered.
package index

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
)

// Deps are what an Index needs.
type Deps struct {
	Store   *docstore.Store
	Bus     *bus.Bus
	Log     *slog.Logger
	Metrics prometheus.Registerer
	MaxAge  time.Duration // how long NATS may be away before no answer is given; 0: without limit
}

// Index is the engine of this replica.
type Index struct {
	Deps
	engine engine.Engine
	grants source
	people source

	parked atomic.Int64

	mu        sync.Mutex
	followers []*stream.Follower
}

// source is one half of the index: this service's own records, or those of other services.
type source struct {
	loaded atomic.Bool // the first snapshot is complete

	mu      sync.Mutex
	begun   bool            // a snapshot has begun
	deleted map[record]bool // records that this replica has deleted, until the events of the deletions arrive
	writes  writes
	recent  recent
	ended   recent          // memberships; see update.final
	heard   chan struct{}   // closed at the next change; nil while nobody waits
	seen    map[record]bool // the records that exist, while a snapshot is taken again; nil otherwise
}

// record names a record: ids are unique within a service only.
type record struct{ tenant, entity, id string }

// New makes an empty index. Its followers fill it.
func New(d Deps) *Index {
	x := &Index{Deps: d}
	d.Metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "idp_permissions_parked_events_total",
		Help: "Events and records that the index cannot read and has left out.",
	}, func() float64 { return float64(x.parked.Load()) }))
	return x
}

// Followers keep the index up to date.
func (x *Index) Followers() []stream.FollowerConfig {
	configs := []stream.FollowerConfig{
		{
			Name: "permissions-grants",
			Types: stream.Types{
				"resource.*", "resource_set.*", "resource_set_member.*",
				"auth_unit.*", "auth_unit_member.*", "auth_rule.*",
			},
			Snapshot: x.snapshotGrants, Handle: x.handleGrant,
		},
		{
			Name: "permissions-people",
			Types: stream.Types{
				"user.*", "core_object.*", "node.*", "membership.*",
				"application.*",
			},
			Snapshot: x.snapshotPeople, Handle: x.handlePeople,
		},
	}
	for i := range configs {
		configs[i].MaxAge = x.MaxAge
		configs[i].Started = func(f *stream.Follower) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.followers = append(x.followers, f)
		}
	}
	return configs
}

// Ready is an apperr.Unavailable until the first snapshots are complete, and when NATS has been away for too long:
// answers could be wrong.
func (x *Index) Ready() error {
	if !x.grants.loaded.Load() || !x.people.loaded.Load() {
		return apperr.New(apperr.Unavailable, "the index of permissions is still being built")
	}
	if x.MaxAge == 0 {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.followers {
		if f.Age() >= x.MaxAge {
			return apperr.New(apperr.Unavailable, "this replica has heard nothing of changes for too long: try another")
		}
	}
	return nil
}

// State is the present state of the context's tenant.
func (x *Index) State(ctx context.Context) *engine.State {
	return x.engine.Tenant(request.Tenant(ctx)).State()
}

// Apply adds the changes of this replica's own writes.
func (x *Index) Apply(ctx context.Context, changes []grant.Change) {
	tenant := request.Tenant(ctx)
	updates := make([]update, 0, len(changes))
	for _, c := range changes {
		if c.Known {
			continue
		}
		u, err := readGrant(c)
		if err != nil { // no replica could read the record, at no start
			x.park(tenant, c.Entity, c.ID, err)
			continue
		}
		updates = append(updates, u)
	}
	x.apply(&x.grants, tenant, fromWrite, updates...)
}

// Writing notes that a write of this replica begins; done says that it has ended, and that Apply, if it was called, has
// returned.
func (x *Index) Writing() (done func()) {
	s := &x.grants
	s.mu.Lock()
	defer s.mu.Unlock()
	number := s.writes.begin()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.writes.end(number)
	}
}

// update changes the engine by one record.
type update struct {
	entity, id string
	sequence   int64
	deleted    bool
	// final says that the record does not exist again. Memberships that end together are one event, which is in order
	// with others about the first of them only: older ones about the rest may come later.
	final bool
	apply func(*engine.Change)
}

// origin says where an update comes from.
type origin int

const (
	fromWrite    origin = iota // this replica's own write
	fromStream                 // an event
	fromSnapshot               // a stored record
)

// apply makes updates in the engine. A record that this replica has deleted stays deleted, although older events about
// it arrive before the event of the deletion; and one that another replica has deleted, although this replica's own
// older change of it comes after that event.
func (x *Index) apply(s *source, tenant string, from origin, updates ...update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.engine.Tenant(tenant).Change(func(c *engine.Change) {
		for _, u := range updates {
			r := record{tenant, u.entity, u.id}
			switch {
			case u.deleted && from == fromWrite:
				s.expectDeletion(r)
			case u.deleted:
				delete(s.deleted, r)
				s.writes.ended(r)
				if u.final {
					s.ended.note(r, u.sequence)
				}
			case from == fromStream && s.ended.has(r):
				continue
			case s.deleted[r], from == fromWrite && s.writes.gone[r] > 0:
				continue
			}
			if s.seen != nil && !u.deleted {
				s.seen[r] = true
			}
			if from != fromSnapshot && s == &x.grants {
				s.recent.note(r, u.sequence)
			}
			u.apply(c)
		}
	})
	if s.heard != nil {
		close(s.heard)
		s.heard = nil
	}
}

// expectDeletion notes that this replica has deleted a record, unless the event of the deletion has arrived already.
func (s *source) expectDeletion(r record) {
	if s.writes.gone[r] > 0 {
		return
	}
	if s.deleted == nil {
		s.deleted = map[record]bool{}
	}
	s.deleted[r] = true
}

// park counts and logs a record that cannot be read. The index leaves it out.
func (x *Index) park(tenant, entity, id string, err error) {
	x.parked.Add(1)
	x.Log.Error("the index leaves out a record that it cannot read", "tenant", tenant, "entity", entity, "record", id,
		"error", err)
}

// Warnings tell the number of parked records.
func (x *Index) Warnings() []string {
	n := x.parked.Load()
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the index leaves out records that it cannot read: %d; the log names them", n)}
}

// handleGrant handles an event of this service.
func (x *Index) handleGrant(_ context.Context, e stream.Event) error {
	c, err := changeOf(e)
	if err == nil {
		var u update
		if u, err = readGrant(c); err == nil {
			x.apply(&x.grants, e.Tenant, fromStream, u)
			return nil
		}
	}
	x.park(e.Tenant, e.Type, e.Subject, err)
	return nil
}

// handlePeople handles an event of another service.
func (x *Index) handlePeople(_ context.Context, e stream.Event) error {
	updates, err := readPeople(e)
	if err != nil {
		x.park(e.Tenant, e.Type, e.Subject, err)
		return nil
	}
	x.apply(&x.people, e.Tenant, fromStream, updates...)
	return nil
}
