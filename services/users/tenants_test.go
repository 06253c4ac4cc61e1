package users_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
)

func TestTenants(t *testing.T) {
	t.Parallel()
	s := start(t)
	admin := s.As("root", auth.PlatformAdmin)
	require.Empty(t, admin.Items("/v1/tenants", "id"))
	var all []any
	for _, tenant := range []string{"acme", "acme-2", "globex", "a", "z"} {
		for i := range 2 {
			addUser(t, in(s, tenant), fmt.Sprint("user", i))
		}
		all = append(all, tenant)
	}
	require.ElementsMatch(t, all, admin.Items("/v1/tenants", "id"))
	require.ElementsMatch(t, all, admin.With("X-Tenant-Id", "acme").Items("/v1/tenants", "id"))

	var seen []any
	for num := 1; num <= 3; num++ {
		page := admin.Get(fmt.Sprintf("/v1/tenants?page_size=2&page_num=%d", num)).Object()
		require.EqualValues(t, 5, page["total"])
		require.Equal(t, num < 3, page["next_page_token"] != nil)
		for _, item := range page["items"].([]any) {
			seen = append(seen, item.(object)["id"])
		}
	}
	require.ElementsMatch(t, all, seen)
	page := admin.Get("/v1/tenants?page_size=2&count=false").Object()
	require.NotContains(t, page, "total")
	next := "/v1/tenants?page_size=4&page_token=" + page["next_page_token"].(string)
	require.Equal(t, seen[2:], admin.Items(next, "id"))
	require.Empty(t, admin.Items("/v1/tenants?page_num=9", "id"))

	for query, location := range map[string]string{
		"page_sort=id": "query.page_sort", "page_token=x": "query.page_token", "page_size=201": "query.page_size",
		"page_num=10001": "query.page_num", "page_num=100&page_size=200": "query.page_num",
	} {
		admin.Get("/v1/tenants?"+query).Problem(http.StatusBadRequest, "invalid_parameters", location)
	}
	in(s, "acme").Get("/v1/tenants").Problem(http.StatusForbidden, "forbidden")
	s.Stranger().Get("/v1/tenants").Problem(http.StatusUnauthorized, "unauthenticated")
}
