package permissions_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestKeywords(t *testing.T) {
	t.Parallel()
	made := func(path string, more object) func(*testkit.Client, string, string) string {
		return func(c *testkit.Client, name, code string) string {
			body := object{"application_id": "2001", "name": name, "code": code}
			for member, value := range more {
				body[member] = value
			}
			return c.Post(path, body).ID()
		}
	}
	unit := func(c *testkit.Client, name, code string) string {
		return c.Post("/v1/auth-units", object{
			"identity_type": "group", "identity_id": code, "identity_name": name,
		}).ID()
	}
	for what, list := range map[string]testkit.Searched{
		"units":     {Path: "/v1/auth-units", Make: unit},
		"groups":    {Path: "/v1/auth-units?identity_type=group", Make: unit},
		"resources": {Path: "/v1/resources?application_id=2001", Make: made("/v1/resources", object{"type": "data"})},
		"resource sets": {
			Path: "/v1/resource-sets?application_id=2001&include_global=true",
			Make: func(c *testkit.Client, name, code string) string {
				return made("/v1/resource-sets", nil)(c.With("X-Tenant-Id", "acme"), name, code)
			},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			testkit.Searches(t, start(t).As("acme", auth.PermissionsRead, auth.PermissionsWrite), list)
		})
	}
}

func TestListByIDs(t *testing.T) {
	t.Parallel()
	fresh := testkit.Names()
	for path, create := range map[string]func(*testkit.Client) string{
		unitsPath: func(c *testkit.Client) string {
			return c.Post(unitsPath, object{"identity_type": "group", "identity_id": fresh()}).ID()
		},
		resourcesPath: func(c *testkit.Client) string { return addResource(t, c, fresh()) },
		setsPath:      func(c *testkit.Client) string { return addSet(t, c, fresh()) },
	} {
		s := start(t)
		testkit.SelectsByIDs(t, in(s, "acme"), in(s, "globex"), path, create)
	}
}

// TestIDsAndApplication: resources and sets are selected by an application, by ids, or by both.
func TestIDsAndApplication(t *testing.T) {
	t.Parallel()
	c := client(t)
	for path, body := range map[string]object{resourcesPath: {"type": "data"}, setsPath: {}} {
		create := func(application, code, global string) string {
			body["application_id"], body["code"], body["is_global"] = application, code, global
			return c.Post(path, body).ID()
		}
		own, other, global := create("9", "own", "0"), create("8", "other", "0"), create("8", "global", "1")
		all := "?ids=" + own + "," + other + "," + global
		require.Equal(t, []any{own, other, global}, c.Items(path+all, "id"))
		require.Equal(t, []any{own, other, global}, c.Items(path+all+"&include_global=true", "id"))
		require.Equal(t, []any{own}, c.Items(path+all+"&application_id=9", "id"))
		require.Equal(t, []any{own, global}, c.Items(path+all+"&application_id=9&include_global=true", "id"))
		for _, query := range []string{"", "?application_id=", "?ids=", "?include_global=true"} {
			c.Get(path+query).Problem(http.StatusBadRequest, "invalid_parameters", "query.application_id")
		}
	}
}
