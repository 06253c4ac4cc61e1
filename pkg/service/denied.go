package service

import (
	"context"
	"encoding/json"
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
	// The most different attempts that are gathered for the next events, of all tenants together and of one tenant.
	// Further ones of a tenant are counted together for each actor, up to another bound; beyond it, together.
	maxDenials      = 1000
	tenantDenials   = 100
	maxSummaries    = 2000
	tenantSummaries = 200
	maxReason       = 200 // bytes
)

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
	Address   string     `json:"address"`
	Reason    string     `json:"reason"`
	RequestID string     `json:"-"` // of the first; the event has it
	Count     int64      `json:"count"`
	First     clock.Time `json:"time_first"`
	Last      clock.Time `json:"time_last"`
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
	d.add(a, now, now, 1)
}

// add counts equal attempts.
func (d *denials) add(a rest.Denial, first, last clock.Time, count int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	record, requestID := a.Record, a.RequestID
	a.Record, a.RequestID = "", "" // attempts that differ in these are equal
	seen := d.gathered[a]
	if seen == nil && (len(d.gathered) >= maxDenials || d.tenants[a.Tenant] >= tenantDenials) {
		a = d.summary(a)
		seen = d.gathered[a]
	}
	if seen == nil {
		seen = &denied{Operation: a.Operation, Actor: a.Actor, Address: a.Address, Reason: a.Reason, First: first,
			Record: record, RequestID: requestID}
		d.gathered[a] = seen
		d.tenants[a.Tenant]++
	}
	if seen.Record != record {
		seen.Record = ""
	}
	seen.Count += count
	if first.Before(seen.First) {
		seen.First = first
	}
	if seen.Last.Before(last) {
		seen.Last = last
	}
}

// several is the operation of attempts that are told together.
const several = "several"

// summary is what an attempt is counted as that cannot be told apart: those of its actor, so that nobody with a
// credential can hide among the attempts of others.
func (d *denials) summary(a rest.Denial) rest.Denial {
	sum := rest.Denial{
		Tenant: a.Tenant, Actor: a.Actor, Operation: several, Reason: "too many different attempts to tell apart",
	}
	if d.gathered[sum] == nil && (len(d.gathered) >= maxSummaries || d.tenants[a.Tenant] >= tenantSummaries) {
		sum.Actor = ""
	}
	return sum
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
			Record: one.Record, RequestID: one.RequestID,
		}, one.First, one.Last, one.Count)
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
	record, err := json.Marshal(a)
	if err != nil {
		return err
	}
	info := request.From(ctx)
	info.ID = a.RequestID
	return outbox.Append(request.With(ctx, info), tx, outbox.Event{
		Entity: "access", Action: "denied", Source: "/access", Subject: a.ID, Revision: 1, Record: record,
	})
}
