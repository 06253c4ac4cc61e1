package service

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

const (
	tellDenialsEvery = 10 * time.Second
	maxReason        = 200 // bytes
)

// How many different attempts are gathered for the next events, of all tenants together and of one tenant. When the
// first room is full, further attempts of an actor are counted together by their operation; when the next is, by their
// actor, with the number of each operation; then all of a tenant. So nobody hides an attempt among many others.
var denialRooms = [...]struct{ all, tenant int }{{1000, 100}, {2000, 200}, {3000, 300}}

// denials gathers the denied writes of a service. Equal ones become one event, idp.access.denied, with their number. So
// a client that sends a million requests with a bad token causes a few events a minute.
type denials struct {
	store       *docstore.Store
	auditTenant string // see Deps.AuditTenant
	count       prometheus.Counter

	mu       sync.Mutex
	gathered map[rest.Denial]*denied
	tenants  map[string]int
}

// denied is the record in the event. It is a format that others rely on.
type denied struct {
	ID        string     `json:"id"`
	TenantID  string     `json:"tenant_id"`
	Version   int64      `json:"version"`
	Operation string     `json:"operation"`
	Record    string     `json:"record"` // the id that all of the attempts named; "" if they named several, or none
	Actor     string     `json:"actor"`
	Address   string     `json:"address"` // likewise
	Reason    string     `json:"reason"`
	RequestID string     `json:"-"` // of the first; the event has it
	Count     int64      `json:"count"`
	First     clock.Time `json:"time_first"`
	Last      clock.Time `json:"time_last"`

	operations map[string]int64 // how many attempts there were of each, if Operation is several
}

func newDenials(d Deps) *denials {
	count := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "idp_denied_writes_total", Help: "Writes that were refused because of the credential.",
	})
	if d.Metrics != nil {
		count = telemetry.Register(d.Metrics, count)
	}
	return &denials{
		store: d.Store, auditTenant: d.AuditTenant, count: count,
		gathered: map[rest.Denial]*denied{}, tenants: map[string]int{},
	}
}

// note counts an attempt.
func (d *denials) note(a rest.Denial) {
	d.count.Inc()
	if a.Tenant == "" {
		a.Tenant = d.auditTenant
	}
	if a.Tenant == "" {
		return
	}
	if len(a.Reason) > maxReason {
		a.Reason = strings.ToValidUTF8(a.Reason[:maxReason], "")
	}
	now := d.store.Now()
	d.add(a, denied{
		Operation: a.Operation, Actor: a.Actor, Address: a.Address, Reason: a.Reason, Record: a.Record,
		RequestID: a.RequestID, First: now, Last: now, Count: 1,
	})
}

// several is the operation of attempts that are counted together though their operations differ.
const several = "several"

// add counts equal attempts.
func (d *denials) add(a rest.Denial, more denied) {
	a.Record, a.RequestID = "", "" // attempts that differ in these are equal
	d.mu.Lock()
	defer d.mu.Unlock()
	a = d.countedAs(a)
	seen := d.gathered[a]
	if seen == nil {
		seen = &denied{Operation: a.Operation, Actor: a.Actor, Reason: a.Reason, Address: more.Address,
			Record: more.Record, RequestID: more.RequestID, First: more.First}
		d.gathered[a] = seen
		d.tenants[a.Tenant]++
	}
	if seen.Record != more.Record {
		seen.Record = ""
	}
	if seen.Address != more.Address {
		seen.Address = ""
	}
	if a.Operation == several {
		seen.countOperations(more)
	}
	seen.Count += more.Count
	if more.First.Before(seen.First) {
		seen.First = more.First
	}
	if seen.Last.Before(more.Last) {
		seen.Last = more.Last
	}
}

// countedAs returns what an attempt is counted as: itself as long as there is room.
func (d *denials) countedAs(a rest.Denial) rest.Denial {
	for full, room := range denialRooms {
		switch full {
		case 1:
			a.Address, a.Reason = "", "too many different attempts to tell apart"
		case 2:
			a.Operation = several
		}
		if d.gathered[a] != nil || len(d.gathered) < room.all && d.tenants[a.Tenant] < room.tenant {
			return a
		}
	}
	a.Actor = ""
	return a
}

// countOperations adds the operations of more attempts. There are no more than the service has.
func (a *denied) countOperations(more denied) {
	if a.operations == nil {
		a.operations = map[string]int64{}
	}
	if more.operations == nil {
		a.operations[more.Operation] += more.Count
	}
	for operation, n := range more.operations {
		a.operations[operation] += n
	}
}

// namingOperations is the reason with the operations, the most frequent first.
func (a *denied) namingOperations() string {
	names := slices.SortedFunc(maps.Keys(a.operations), func(x, y string) int {
		return cmp.Or(cmp.Compare(a.operations[y], a.operations[x]), strings.Compare(x, y))
	})
	for i, name := range names {
		names[i] = fmt.Sprint(name, " ", a.operations[name])
	}
	return a.Reason + ": " + strings.Join(names, ", ")
}

// take returns what was gathered, by tenant.
func (d *denials) take() map[string][]*denied {
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := map[string][]*denied{}
	for a, seen := range d.gathered {
		taken[a.Tenant] = append(taken[a.Tenant], seen)
	}
	d.gathered, d.tenants = map[rest.Denial]*denied{}, map[string]int{}
	return taken
}

// tell writes an event for each of the different attempts. If it cannot write the events of a tenant, it keeps the
// attempts for the next time.
func (d *denials) tell(ctx context.Context) (int, error) {
	var failed error
	for tenant, list := range d.take() {
		if err := d.tellTenant(ctx, tenant, list); err != nil {
			failed = err
			d.giveBack(tenant, list)
		}
	}
	return 0, failed
}

// giveBack keeps attempts for the next time.
func (d *denials) giveBack(tenant string, list []*denied) {
	for _, one := range list {
		d.add(rest.Denial{
			Tenant: tenant, Actor: one.Actor, Address: one.Address, Operation: one.Operation, Reason: one.Reason,
		}, *one)
	}
}

func (d *denials) tellTenant(ctx context.Context, tenant string, list []*denied) error {
	ids, err := d.store.NewIDs(ctx, len(list))
	if err != nil {
		return err
	}
	ctx = request.System(ctx, tenant)
	return docstore.Do(ctx, d.store, func(tx *docstore.Tx) error {
		for i, a := range list {
			a.ID, a.TenantID, a.Version = ids[i], tenant, 1
			if err := a.tell(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// tell writes the event about equal attempts, as part of the first of these requests.
func (a *denied) tell(ctx context.Context, tx *docstore.Tx) error {
	told := *a
	if a.operations != nil {
		told.Reason = a.namingOperations()
	}
	record, err := json.Marshal(told)
	if err != nil {
		return err
	}
	info := request.From(ctx)
	info.ID = a.RequestID
	return outbox.Append(request.With(ctx, info), tx, outbox.Event{
		Entity: "access", Action: "denied", Source: "/access", Subject: a.ID, Revision: 1, Record: record,
	})
}
