package permissions_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrivileges(t *testing.T) {
	t.Parallel()
	c := client(t)
	ledger, journal := addResource(t, c, "ledger"), addResource(t, c, "journal")
	set := addSet(t, c, "books", journal)
	c.Post("/v1/resource-sets/"+set+"/members", object{"resource_id": ledger, "actions": []string{"read"}}).OK(nil)
	give(t, c, "user/20", data("ledger", "write"))
	give(t, c, "node/11", object{"type": "res_set", "code": "books", "actions": []string{"*"}})
	denied := data("ledger", "read")
	denied["affect"] = "deny"
	give(t, c, "user/21", denied)
	lines := func(query string) (list []string) {
		t.Helper()
		for token := ""; ; {
			page := c.Get("/v1/privileges?application_id=9&page_size=1&page_token=" + token + query).Object()
			for _, item := range page["items"].([]any) {
				p := item.(object)
				line := p["identity_type"].(string) + " " + p["object_type"].(string) + " " + p["object_code"].(string)
				for _, action := range p["actions"].([]any) {
					line += " " + action.(string)
				}
				if p["inherited_from"] != "" {
					line += " inherited"
				}
				list = append(list, line)
			}
			if token, _ = page["next_page_token"].(string); token == "" {
				return list
			}
		}
	}
	require.Equal(t, []string{"user data ledger write", "node res_set books *", "user data ledger read"}, lines(""))
	require.Equal(t, []string{"user data ledger write", "user res_set books * inherited"},
		lines("&identity_id=20&identity_type=user"))
	require.Equal(t, []string{"user data ledger write", "user data ledger read inherited",
		"user data journal * inherited"},
		lines("&identity_id=20&identity_type=user&expand=true"))
	require.Equal(t, []string{"user data ledger read"}, lines("&affect=deny"))
	require.Equal(t, []string{"node res_set books *"}, lines("&object_type=res_set"))
	require.Equal(t, []string{"node res_set books *"}, lines("&identity_type=node"))
	require.Len(t, lines("&object_code=ledger"), 2)
	c.Get("/v1/privileges").Problem(400, "invalid_parameters", "query.application_id")
	c.Get("/v1/privileges?application_id=9&identity_id=20").Problem(400, "invalid_parameters", "query.identity_type")
}

func TestApplicationAuthorizations(t *testing.T) {
	t.Parallel()
	c := client(t)
	authorizations := func(affect string, who string, applications ...string) object {
		return object{"application_ids": applications, "affect": affect,
			"identities": []object{{"identity_id": who, "identity_type": "node"}}}
	}
	list := func() (ids []string) {
		page := c.Get("/v1/authorized-applications?identity_id=20&identity_type=user").Object()
		for _, item := range page["items"].([]any) {
			ids = append(ids, item.(object)["application_id"].(string))
		}
		return ids
	}
	c.Post("/v1/application-authorizations", authorizations("affect", "11", "7", "8", "9")).OK(nil)
	require.Equal(t, []string{"7", "8", "9"}, list())
	c.Post("/v1/application-authorizations", authorizations("deny", "12", "8")).OK(nil)
	require.Equal(t, []string{"7", "9"}, list())
	c.Delete("/v1/application-authorizations", authorizations("affect", "11", "7", "6")).OK(nil)
	c.Delete("/v1/application-authorizations", authorizations("deny", "12", "8")).OK(nil)
	require.Equal(t, []string{"8", "9"}, list())
	c.Post("/v1/application-authorizations", authorizations("affect", "11", "7", "")).Problem(400, "invalid_parameters",
		"body.application_ids[1]")
	c.Get("/v1/authorized-applications").Problem(400, "invalid_parameters", "query.identity_id", "query.identity_type")
}
