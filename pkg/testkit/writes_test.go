package testkit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUncountedOperations(t *testing.T) {
	t.Parallel()
	all := []operation{
		{Method: "GET", Path: "/v1/pagers/{id}", OperationID: "get-pager", Scope: "kv:read"},
		{Method: "POST", Path: "/v1/pagers", OperationID: "create-pager", Scope: "kv:write"},
		{Method: "POST", Path: "/v1/pagers-check", OperationID: "check-pagers", Scope: "kv:read"},
		{Method: "POST", Path: "/v1/pagers/import", OperationID: "import-pagers", Scope: "kv:write kv:read"},
		{Method: "DELETE", Path: "/v1/pagers/{id}", OperationID: "delete-pager", Scope: "kv:write"},
		{Method: "POST", Path: "/v1/pagers/{id}", OperationID: "call-pager"},
		{Method: "POST", Path: "/v1/pagers/{id}/call", OperationID: "call-pager-loudly"},
	}
	require.Equal(t, "import-pagers", operationOf(all, "POST", "/v1/pagers/import").OperationID)
	require.Equal(t, "call-pager", operationOf(all, "POST", "/v1/pagers/7%2f8").OperationID)
	require.Equal(t, "call-pager-loudly", operationOf(all, "POST", "/v1/pagers/7/call").OperationID)
	for _, path := range []string{"/v1/pagers/", "/v1/pagers/7/call/8", "/v1"} {
		require.Empty(t, operationOf(all, "POST", path).OperationID, path)
	}

	called := map[string]bool{"create-pager": true, "call-pager": true, "get-pager": true}
	require.Equal(t, []string{
		"call-pager has a row of commands, and a reason for none",
		"call-pager-loudly (POST /v1/pagers/{id}/call) writes and has no row of commands",
		"delete-pager (DELETE /v1/pagers/{id}) writes and has no row of commands",
		"get-pager has a reason for no row of commands, and needs none",
	}, uncounted(all, called, map[string]string{
		"import-pagers": "streams", "call-pager": "…", "get-pager": "…",
	}))
}
