package user

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Tenant is a tenant that has users.
type Tenant struct {
	ID string `json:"id" doc:"Its name, as X-Tenant-Id takes it" example:"acme"`
}

// TenantPage is one page of tenants.
type TenantPage struct {
	Items []Tenant
	Total int64  // −1 if it was not asked for
	More  bool   // there are more than Total
	Next  string // continues after the page; "" after the last
}

// tenantList names the list in its page tokens.
const tenantList = "tenants"

// Tenants returns a page of the tenants that have users, in the store's order. Each tenant, also one that is only
// counted, costs one look-up in an index: there are few. The error is apperr.InvalidParameters at page_num, page_sort
// or page_token.
func (s *Users) Tenants(ctx context.Context, p docstore.Paging) (TenantPage, error) {
	page := TenantPage{Items: []Tenant{}, Total: -1}
	if p.Sort != "" {
		return page, apperr.Invalid("page_sort", "tenants cannot be sorted by a field")
	}
	skip, after := (p.Num-1)*p.Size, ""
	if p.Num > docstore.MaxCounted || skip >= docstore.MaxCounted {
		return page, apperr.Invalid("page_num", "is too far into the list; continue with page_token instead")
	}
	if p.After != "" {
		var err error
		if after, err = docstore.ReadPageToken(ctx, p.After, tenantList); err != nil {
			return page, err
		}
		skip = 0
	}
	for len(page.Items) <= p.Size {
		next, err := s.NextTenant(ctx, after)
		if err != nil {
			return page, err
		}
		if next == "" {
			break
		}
		if after = next; skip > 0 {
			skip--
			continue
		}
		page.Items = append(page.Items, Tenant{next})
	}
	if len(page.Items) > p.Size {
		page.Items = page.Items[:p.Size]
		page.Next = docstore.PageToken(ctx, page.Items[p.Size-1].ID, tenantList)
	}
	if !p.Count.Or(true) {
		return page, nil
	}
	var err error
	page.Total, page.More, err = s.countTenants(ctx)
	return page, err
}

// countTenants counts up to docstore.MaxCounted tenants.
func (s *Users) countTenants(ctx context.Context) (total int64, more bool, err error) {
	for after := ""; ; total++ {
		if after, err = s.NextTenant(ctx, after); err != nil || after == "" {
			return total, false, err
		}
		if total == docstore.MaxCounted {
			return total, true, nil
		}
	}
}
