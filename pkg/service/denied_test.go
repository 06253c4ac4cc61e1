package service

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/rest"
)

func newTestDenials(t *testing.T) *denials {
	t.Helper()
	engine, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: t.TempDir() + "/test.db", Log: quiet()})
	require.NoError(t, err)
	store, err := docstore.Open(t.Context(), engine, clock.System)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return newDenials(Deps{Store: store, AuditTenant: "operators"})
}

// told returns the attempts for which there are events, by tenant.
func (d *denials) told(t *testing.T) map[string][]denied {
	t.Helper()
	messages, err := d.store.Pending(t.Context(), 0, 10_000)
	require.NoError(t, err)
	all := map[string][]denied{}
	for _, m := range messages {
		var e struct {
			TenantID string
			Data     struct{ Record denied }
		}
		require.NoError(t, json.Unmarshal(m.Payload, &e))
		require.True(t, utf8.Valid(m.Payload))
		all[e.TenantID] = append(all[e.TenantID], e.Data.Record)
	}
	return all
}

func countOf(list []denied) (n int64) {
	for _, one := range list {
		n += one.Count
	}
	return n
}

func TestEqualDenialsAreOneEvent(t *testing.T) {
	t.Parallel()
	d := newTestDenials(t)
	attempt := rest.Denial{Address: "192.0.2.1", Operation: "create-user", Reason: strings.Repeat("理由", maxReason)}
	const many = 1_000_000
	for range many {
		d.note(attempt)
	}
	_, err := d.tell(t.Context())
	require.NoError(t, err)
	told := d.told(t)
	require.Len(t, told, 1)
	require.Len(t, told["operators"], 1, "attempts without a valid credential are the operators'")
	require.EqualValues(t, many, told["operators"][0].Count)
	require.LessOrEqual(t, len(told["operators"][0].Reason), maxReason)
}

// However many different attempts there are, a limited number gets events of its own, every attempt is counted, and one
// tenant's attempts do not take the places of another's.
func TestDifferentDenialsAreBounded(t *testing.T) {
	t.Parallel()
	d := newTestDenials(t)
	const tenants, each = 30, 5000
	attempt := func(tenant, n int) rest.Denial {
		return rest.Denial{Tenant: fmt.Sprint("tenant-", tenant), Address: fmt.Sprintf("2001:db8::%x", n)}
	}
	for n := range each {
		d.note(attempt(0, n))
	}
	d.note(attempt(1, 0))
	require.Len(t, d.gathered, denialRooms[0].tenant+2)
	for tenant := 1; tenant < tenants; tenant++ {
		for n := range each {
			d.note(attempt(tenant, n))
		}
	}
	require.LessOrEqual(t, len(d.gathered), denialRooms[0].all+tenants)
	_, err := d.tell(t.Context())
	require.NoError(t, err)
	require.Empty(t, d.gathered)
	told := d.told(t)
	require.Len(t, told, tenants)
	require.EqualValues(t, each, countOf(told["tenant-0"]))
	require.EqualValues(t, each+1, countOf(told["tenant-1"]))
	require.EqualValues(t, each, countOf(told["tenant-29"]))
}

// Nobody hides an attempt among many: what is told together has its actor and its operation, or the number of each
// operation. Very many actors are bounded.
func TestManyDenialsKeepTheirActors(t *testing.T) {
	t.Parallel()
	d := newTestDenials(t)
	for n := range 5000 {
		d.note(rest.Denial{Tenant: "acme", Actor: "noisy", Operation: fmt.Sprint("operation-", n)})
		d.note(rest.Denial{Tenant: "acme", Address: fmt.Sprint("192.0.2.", n), Operation: "create-user"})
	}
	d.note(rest.Denial{Tenant: "acme", Actor: "noisy", Operation: "delete-user"})
	d.note(rest.Denial{Tenant: "acme", Actor: "quiet", Operation: "delete-user", Record: "7", Address: "192.0.2.1"})
	require.Len(t, d.gathered, denialRooms[1].tenant+2)
	_, err := d.tell(t.Context())
	require.NoError(t, err)
	counts, reasons := map[string]int64{}, map[string]string{}
	for _, one := range d.told(t)["acme"] {
		counts[one.Actor] += one.Count
		if one.Operation == several {
			reasons[one.Actor] = one.Reason
		}
		if one.Actor == "quiet" {
			require.Equal(t, []string{"7", "192.0.2.1"}, []string{one.Record, one.Address})
		}
		if one.Actor == "" && one.Count > 1 {
			require.Equal(t, []string{"create-user", ""}, []string{one.Operation, one.Address})
		}
	}
	require.Equal(t, map[string]int64{"noisy": 5001, "": 5000, "quiet": 1}, counts)
	require.Equal(t, "too many different attempts to tell apart: delete-user 1", reasons["quiet"])
	require.Contains(t, reasons["noisy"], ": delete-user 1, operation-")

	for n := range 5000 {
		d.note(rest.Denial{Tenant: "acme", Actor: fmt.Sprint("actor-", n), Operation: "create-user"})
	}
	require.Len(t, d.gathered, denialRooms[2].tenant+1)
}

// Operations that were counted together stay so when their event can only be written later.
func TestOperationsAreToldLater(t *testing.T) {
	t.Parallel()
	d := newTestDenials(t)
	for n := range 5000 {
		d.note(rest.Denial{Tenant: "acme", Actor: fmt.Sprint("actor-", n), Operation: fmt.Sprint("operation-", n%3)})
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := d.tell(ended)
	require.Error(t, err)
	d.note(rest.Denial{Tenant: "acme", Actor: "late", Operation: "delete-user"})
	_, err = d.tell(t.Context())
	require.NoError(t, err)
	list := d.told(t)["acme"]
	require.EqualValues(t, 5001, countOf(list))
	several := slices.IndexFunc(list, func(one denied) bool { return one.Actor == "" })
	require.Regexp(t, `: operation-\d \d+, operation-\d \d+, operation-\d \d+, delete-user 1$`, list[several].Reason)
}

// Attempts whose events cannot be written, because the store does not answer, get them later, together with new ones.
func TestDenialsAreToldLater(t *testing.T) {
	t.Parallel()
	d := newTestDenials(t)
	attempt := rest.Denial{Tenant: "acme", Actor: "ann", Operation: "create-user"}
	d.note(attempt)
	d.note(attempt)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := d.tell(ended)
	require.Error(t, err)
	d.note(attempt)
	_, err = d.tell(t.Context())
	require.NoError(t, err)
	told := d.told(t)
	require.Len(t, told["acme"], 1)
	require.EqualValues(t, 3, told["acme"][0].Count)
	require.False(t, told["acme"][0].Last.Before(told["acme"][0].First))
}
