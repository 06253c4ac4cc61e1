package applications_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestKeywords(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	testkit.Searches(t, c, testkit.Searched{
		Path: "/v1/applications", Make: func(c *testkit.Client, name, code string) string {
			return addApp(t, c, name, object{"domain_sn": code})["id"].(string)
		},
	})
	app := addApp(t, c, "By its client id")
	client := app["client_id"].(string)
	require.Equal(t, []any{app["id"]}, c.Items("/v1/applications?keyword="+client[2:20], "id"))
}

func TestListByIDs(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	fresh := testkit.Names()
	testkit.SelectsByIDs(t, c, in(s, "globex"), "/v1/applications",
		func(c *testkit.Client) string { return addApp(t, c, fresh())["id"].(string) })
}
