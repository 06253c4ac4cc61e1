package fair

import (
	"context"
	"maps"
	"slices"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// RoundRobin lists documents that are due. Tenants take turns. Only one goroutine may use it.
type RoundRobin[T any] struct {
	Of       *docstore.Collection[T]
	By       string    // the index of the times at which they are due
	Group    int       // documents of a tenant in one turn
	Others   int       // how many other tenants each list looks at
	InFlight *InFlight // what is in progress already; nil means nothing

	after string // the tenant that was looked at last
}

// List returns due documents in groups of one tenant each: the first limit documents of all tenants and, if more than
// these are due, a group of each of some tenants that have none among them.
func (d *RoundRobin[T]) List(ctx context.Context, store *docstore.Store, limit int) ([][]docstore.Ref, error) {
	refs, err := d.Of.Due(ctx, store, limit)
	if err != nil {
		return nil, err
	}
	byTenant := map[string][]docstore.Ref{}
	var tenants []string
	add := func(ref docstore.Ref) {
		if byTenant[ref.Tenant] == nil {
			tenants = append(tenants, ref.Tenant)
		}
		byTenant[ref.Tenant] = append(byTenant[ref.Tenant], ref)
	}
	for _, ref := range refs {
		add(ref)
	}
	for n := 0; len(refs) == limit && n < d.Others; n++ {
		if d.after, err = d.Of.NextTenant(ctx, store, d.after); err != nil {
			return nil, err
		}
		if d.after == "" { // the next list begins with the first tenant
			break
		}
		if byTenant[d.after] != nil {
			continue
		}
		page, err := d.Of.Page(request.System(ctx, d.after), store, docstore.Query{
			Filter: docstore.Range(d.By, docstore.Number(0), docstore.Number(store.Now().Millis()+1)),
			Sort:   []docstore.Order{{Index: d.By}}, Limit: d.Group,
		})
		if err != nil {
			return nil, err
		}
		for _, doc := range page.Docs {
			add(docstore.Ref{Tenant: d.after, ID: doc.ID})
		}
	}
	return d.inTurn(tenants, byTenant), nil
}

// inTurn cuts the documents of each tenant into groups. The first group of every tenant comes before the second of any,
// and a tenant's documents in progress have taken its first turns: otherwise tenants with much that is due would take
// each place that becomes free.
func (d *RoundRobin[T]) inTurn(tenants []string, byTenant map[string][]docstore.Ref) [][]docstore.Ref {
	turns := map[int][][]docstore.Ref{}
	for _, tenant := range tenants {
		turn := d.InFlight.CountOf(tenant) / d.Group
		for group := range slices.Chunk(byTenant[tenant], d.Group) {
			turns[turn] = append(turns[turn], group)
			turn++
		}
	}
	var all [][]docstore.Ref
	for _, turn := range slices.Sorted(maps.Keys(turns)) {
		all = append(all, turns[turn]...)
	}
	return all
}
