package job

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// turns lists documents that are due, tenants in turn, so that one with many does not keep the others waiting. Only one
// goroutine may use it.
type turns[T any] struct {
	of     *docstore.Collection[T]
	by     string // the index of the times at which they are due
	group  int    // documents of a tenant in each of its turns
	others int    // tenants that are looked at besides when one fills the window
	after  string // the tenant that was looked at last
}

// list returns what is due in groups of one tenant each. It takes the first documents as far as the window reaches. If
// that is not far enough for all, it looks at other tenants too, and takes a group of each.
func (d *turns[T]) list(ctx context.Context, store *docstore.Store, window int) ([][]docstore.Ref, error) {
	refs, err := d.of.Due(ctx, store, window)
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
	for n := 0; len(refs) == window && n < d.others; n++ {
		if d.after, err = d.of.NextTenant(ctx, store, d.after); err != nil {
			return nil, err
		}
		if d.after == "" { // the next list begins with the first tenant
			break
		}
		if byTenant[d.after] != nil {
			continue
		}
		page, err := d.of.Page(request.System(ctx, d.after), store, docstore.Query{
			Filter: docstore.Range(d.by, docstore.Number(0), docstore.Number(store.Now().Millis()+1)),
			Sort:   []docstore.Order{{Index: d.by}}, Limit: d.group,
		})
		if err != nil {
			return nil, err
		}
		for _, doc := range page.Docs {
			add(docstore.Ref{Tenant: d.after, ID: doc.ID})
		}
	}
	var inTurn [][]docstore.Ref
	for len(tenants) > 0 {
		tenants = slices.DeleteFunc(tenants, func(tenant string) bool {
			n := min(d.group, len(byTenant[tenant]))
			inTurn = append(inTurn, byTenant[tenant][:n])
			byTenant[tenant] = byTenant[tenant][n:]
			return len(byTenant[tenant]) == 0
		})
	}
	return inTurn, nil
}
