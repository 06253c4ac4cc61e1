package index

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
	"github.com/idplatform/idplatform/services/questions"
)

// loader puts the records of a snapshot into the engine, in portions, while the next ones are read. It logs its
// progress every five seconds.
type loader struct {
	portions
	x       *Index
	to      *source
	name    string
	putting sync.WaitGroup

	n      int       // how many records are in the engine
	logged time.Time // when the progress was last logged
}

// portion is the updates of one change of the engine.
type portion struct {
	tenant  string
	updates []update
}

// portions collects the updates of a tenant's records until they are enough for a change.
type portions struct {
	tenant string
	wait   []update
	read   chan<- portion
}

// changeAtOnce is how many records go into one change of the state: few enough, since the tenant's writers wait for a
// change, and enough, since each change has a fixed cost.
const changeAtOnce = 1000

func (p *portions) add(u update) {
	if p.wait = append(p.wait, u); len(p.wait) == changeAtOnce {
		p.flush()
	}
}

func (p *portions) flush() {
	if len(p.wait) > 0 {
		p.read <- portion{p.tenant, p.wait}
		p.wait = make([]update, 0, changeAtOnce)
	}
}

// run calls load, and returns when all records that it has read are in the engine.
func (l *loader) run(load func(*loader) error) error {
	read := make(chan portion)
	l.read, l.logged = read, time.Now()
	l.putting.Go(func() { l.put(read) })
	defer l.putting.Wait()
	defer close(read)
	return load(l)
}

func (l *loader) put(read <-chan portion) {
	for p := range read {
		l.x.apply(l.to, p.tenant, fromSnapshot, p.updates...)
		l.n += len(p.updates)
		if time.Since(l.logged) > 5*time.Second {
			l.logged = time.Now()
			l.x.Log.Info("the index is being built", "of", l.name, "records", l.n)
		}
	}
}

// snapshot runs all loads at once. If a snapshot was begun before, whether it failed or not, sweep then removes the
// records from the engine that no load has found.
func (x *Index) snapshot(s *source, name string, sweep func(*engine.Change, func(entity, id string) bool),
	loads ...func(*loader) error) error {
	again := s.begin()
	defer s.end()
	errs, loaders := make([]error, len(loads)), make([]loader, len(loads))
	var loading sync.WaitGroup
	for i, load := range loads {
		loaders[i] = loader{x: x, to: s, name: name}
		loading.Go(func() { errs[i] = loaders[i].run(load) })
	}
	loading.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	n := 0
	for i := range loaders {
		n += loaders[i].n
	}
	if again {
		s.mu.Lock()
		x.engine.Tenants(func(tenant string, t *engine.Tenant) {
			t.Change(func(c *engine.Change) {
				sweep(c, func(entity, id string) bool { return s.seen[record{tenant, entity, id}] })
			})
		})
		s.mu.Unlock()
	}
	s.loaded.Store(true)
	x.Log.Info("a part of the index is complete", "of", name, "records", n)
	return nil
}

// begin notes that a snapshot begins. It reports whether one was begun before.
func (s *source) begin() (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if again = s.begun; again {
		s.seen = map[record]bool{}
	}
	s.begun = true
	return again
}

func (s *source) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = nil
}

// snapshotGrants reads all of this service's records.
func (x *Index) snapshotGrants(ctx context.Context) error {
	return x.snapshot(&x.grants, "grants", (*engine.Change).SweepGrants, func(l *loader) error {
		return grant.Each(ctx, x.Store, func(tenant string, c grant.Change) error {
			if tenant != l.tenant {
				l.flush()
				l.tenant = tenant
			}
			u, err := readGrant(c)
			if err != nil {
				x.park(tenant, c.Entity, c.ID, err)
				return nil
			}
			l.add(u)
			return nil
		}, l.flush)
	})
}

// snapshotPeople asks the users, the organization and the applications service for their records, all at once.
func (x *Index) snapshotPeople(ctx context.Context) error {
	each := func(next bus.Question[questions.TenantName, questions.TenantName],
		fn func(context.Context, *loader) error) func(*loader) error {
		return func(l *loader) error {
			return x.eachTenant(ctx, next, l, func(ctx context.Context) error { return fn(ctx, l) })
		}
	}
	return x.snapshot(&x.people, "people", (*engine.Change).SweepPeople,
		each(questions.NextUsersTenant, x.users), each(questions.NextOrganizationTenant, x.organization),
		each(questions.NextApplicationsTenant, x.applications))
}

// users asks for a tenant's users.
func (x *Index) users(ctx context.Context, l *loader) error {
	return x.inParts(ctx, questions.UserPlaces, l, func(p *portions, after, last string) error {
		return eachPage(500, func(q questions.RecordsPage) (string, error) {
			page, err := questions.UserRecords.Ask(ctx, x.Bus,
				questions.UsersPage{RecordsPage: q, AfterID: after, Members: userMembers})
			if err == nil && len(page.Sequences) != len(page.Users) {
				return "", fmt.Errorf("%d users with %d sequences", len(page.Users), len(page.Sequences))
			}
			for i, raw := range page.Users {
				u, err := readUser(raw, page.Sequences[i], update{entity: "user"})
				if err != nil {
					x.park(p.tenant, "user", "", err)
					continue
				}
				p.add(u)
				if u.id == last {
					return "", nil
				}
			}
			return page.Next, err
		})
	})
}

// atOnce is how many parts of a tenant's users or memberships are read at the same time.
const atOnce = 4

// inParts calls read for each part of a tenant's records, for all at the same time: a part begins after one id and ends
// with another, "" for the first and the last record of all. If the last record of a part is deleted before it is read,
// the part's reader goes on into the next one, whose records then come twice. That does no harm.
func (x *Index) inParts(ctx context.Context, of bus.Question[questions.PartsOf, questions.Places], l *loader,
	read func(p *portions, after, last string) error) error {
	l.flush() // what came before, such as the nodes of the memberships
	places, err := of.Ask(ctx, x.Bus, questions.PartsOf{Parts: atOnce})
	if err != nil && apperr.KindOf(err) != apperr.Unavailable {
		return err
	}
	errs := make([]error, len(places.IDs)+1)
	var reading sync.WaitGroup
	for i := range errs {
		part := portions{tenant: l.tenant, read: l.read}
		var after, last string
		if i > 0 {
			after = places.IDs[i-1]
		}
		if i < len(places.IDs) {
			last = places.IDs[i]
		}
		reading.Go(func() {
			errs[i] = read(&part, after, last)
			part.flush()
		})
	}
	reading.Wait()
	return errors.Join(errs...)
}

// applications asks for a tenant's applications.
func (x *Index) applications(ctx context.Context, l *loader) error {
	return eachPage(500, func(q questions.RecordsPage) (string, error) {
		page, err := questions.ApplicationRecords.Ask(ctx, x.Bus, q)
		for _, a := range page.Applications {
			l.add(update{entity: "application", id: a.ID, apply: putCaller(a)})
		}
		return page.Next, err
	})
}

// organization asks for a tenant's core objects, nodes and memberships.
func (x *Index) organization(ctx context.Context, l *loader) error {
	err := eachPage(500, func(q questions.RecordsPage) (string, error) {
		page, err := questions.CoreObjectRecords.Ask(ctx, x.Bus, q)
		for _, o := range page.CoreObjects {
			l.add(update{entity: "core_object", id: o.ID, apply: putTree(o)})
		}
		return page.Next, err
	})
	if err != nil {
		return err
	}
	err = eachPage(500, func(q questions.RecordsPage) (string, error) {
		page, err := questions.NodeRecords.Ask(ctx, x.Bus, q)
		for _, n := range page.Nodes {
			l.add(update{entity: "node", id: n.ID, apply: putNode(n)})
		}
		return page.Next, err
	})
	if err != nil {
		return err
	}
	return x.inParts(ctx, questions.MembershipPlaces, l, func(p *portions, after, last string) error {
		return eachPage(2000, func(q questions.RecordsPage) (string, error) {
			page, err := questions.MembershipRecords.Ask(ctx, x.Bus,
				questions.MembershipsPage{RecordsPage: q, AfterID: after})
			for _, m := range page.Memberships {
				p.add(update{entity: "membership", id: m.ID, apply: putMembership(m)})
				if m.ID == last {
					return "", nil
				}
			}
			return page.Next, err
		})
	})
}

// eachTenant calls fn for each tenant that a service has.
func (x *Index) eachTenant(
	ctx context.Context, next bus.Question[questions.TenantName, questions.TenantName], l *loader,
	fn func(context.Context) error,
) error {
	for q := (questions.TenantName{}); ; {
		answer, err := next.Ask(request.System(ctx, request.Platform), x.Bus, q)
		if err != nil || answer.Tenant == "" {
			return err
		}
		l.tenant = answer.Tenant
		if err := fn(request.System(ctx, answer.Tenant)); err != nil {
			return err
		}
		l.flush()
		q = answer
	}
}

// eachPage asks for one page after the other.
func eachPage(limit int, ask func(questions.RecordsPage) (next string, err error)) error {
	for q := (questions.RecordsPage{Limit: limit}); ; {
		next, err := ask(q)
		if err != nil || next == "" {
			return err
		}
		q.After = next
	}
}
