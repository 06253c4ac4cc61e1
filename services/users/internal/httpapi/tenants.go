package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/users/internal/user"
)

func (a *api) registerTenants(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "list-tenants", Method: http.MethodGet, Path: "/v1/tenants", Scope: auth.PlatformAdmin,
		Summary: "List tenants",
		Doc:     "The tenants that have users, in no particular order. They cannot be sorted.",
		Response: map[string]any{
			"items": []any{user.Tenant{ID: "acme"}}, "total": 1, "page_num": 1, "page_size": 20,
		},
	}, a.listTenants)
}

func (a *api) listTenants(ctx context.Context, in *docstore.Paging) (rest.List[user.Tenant], error) {
	page, err := a.users.Tenants(ctx, *in)
	if err != nil {
		return rest.List[user.Tenant]{}, err
	}
	list := rest.List[user.Tenant]{
		Total: page.Total, More: page.More, Num: in.Num, Size: in.Size, Next: page.Next,
	}
	for _, tenant := range page.Items {
		item, err := json.Marshal(tenant)
		if err != nil {
			return list, err
		}
		list.Items = append(list.Items, item)
	}
	return list, nil
}
