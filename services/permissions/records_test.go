package permissions_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
)

// client starts a service and returns the client that most tests need.
func client(t testing.TB) *testkit.Client { return in(start(t), "acme") }

// addResource makes a data resource of application 9 with the actions read and write.
func addResource(t testing.TB, c *testkit.Client, code string) string {
	t.Helper()
	return c.Post("/v1/resources", object{"application_id": "9", "type": "data", "code": code,
		"actions": []object{{"code": "read"}, {"code": "write"}}}).ID()
}

// addSet makes a resource set of application 9 with resources.
func addSet(t testing.TB, c *testkit.Client, code string, resources ...string) string {
	t.Helper()
	id := c.Post("/v1/resource-sets", object{"application_id": "9", "code": code}).ID()
	for _, r := range resources {
		c.Post("/v1/resource-sets/"+id+"/members", object{"resource_id": r}).OK(nil)
	}
	return id
}

// give grants rules of application 9 to an identity, like node/11.
func give(t testing.TB, c *testkit.Client, identity string, rules ...object) {
	t.Helper()
	kind, id, _ := strings.Cut(identity, "/")
	for i := range rules {
		rules[i]["application_id"] = "9"
	}
	c.Post("/v1/batch/auth-unit-rules", object{"identities": []object{{"identity_id": id, "identity_type": kind}},
		"rules": rules}).OK(nil)
}

// data is a rule about a data resource of application 9.
func data(code string, actions ...string) object {
	return object{"type": "data", "code": code, "actions": actions}
}

// unitOf is the unit of an identity, like node/11.
func unitOf(t testing.TB, c *testkit.Client, identity string) object {
	t.Helper()
	kind, id, _ := strings.Cut(identity, "/")
	items := c.Get("/v1/auth-units?identity_type=" + kind + "&identity_id=" + id).Object()["items"].([]any)
	require.Len(t, items, 1)
	return items[0].(object)
}

// total is the total of a list.
func total(t testing.TB, c *testkit.Client, path string) int {
	t.Helper()
	return int(c.Get(path).Object()["total"].(float64))
}

func TestResources(t *testing.T) {
	t.Parallel()
	c := client(t)
	id := addResource(t, c, "orders")
	at := "/v1/resources/" + id
	for name, row := range map[string]struct {
		do        func() *testkit.Answer
		status    int
		code      string
		locations []string
	}{
		"create, all faults": {func() *testkit.Answer {
			return c.Post("/v1/resources", object{"application_id": "", "type": "data", "code": "a b",
				"uri": "orders/{id", "actions": []object{{"code": "a"}, {"code": "a"}}})
		}, 400, "invalid_parameters", []string{"body.application_id", "body.code", "body.uri", "body.actions[1].code"}},
		"create, another type": {func() *testkit.Answer {
			return c.Post("/v1/resources", object{"application_id": "9", "type": "app", "code": "a"})
		}, 400, "invalid_parameters", []string{"body.type"}},
		"create, taken": {func() *testkit.Answer {
			return c.Post("/v1/resources", object{"application_id": "9", "type": "data", "code": "orders"})
		}, 409, "already_exists", []string{"body.code"}},
		"get, without an application": {func() *testkit.Answer { return c.Get(at) }, 400, "invalid_parameters",
			[]string{"query.application_id"}},
		"get, another application's": {func() *testkit.Answer { return c.Get(at + "?application_id=8") }, 404,
			"not_found", nil},
		"list, no application": {func() *testkit.Answer { return c.Get("/v1/resources") }, 400,
			"invalid_parameters", []string{"query.application_id"}},
		"change, unknown": {func() *testkit.Answer { return c.Patch("/v1/resources/1", object{}) }, 404,
			"not_found", nil},
		"delete, unknown": {func() *testkit.Answer { return c.Delete("/v1/resources/1", nil) }, 404,
			"not_found", nil},
		"batch delete, nothing": {func() *testkit.Answer { return c.Delete("/v1/batch/resources", object{}) },
			400, "invalid_parameters", []string{"body.ids"}},
		"batch delete, both": {func() *testkit.Answer {
			return c.Delete("/v1/batch/resources", object{"ids": []string{"1"}, "codes": []string{"a"},
				"application_id": "9"})
		}, 400, "invalid_parameters", []string{"body.ids"}},
		"batch delete, no application": {func() *testkit.Answer {
			return c.Delete("/v1/batch/resources", object{"codes": []string{"a"}})
		}, 400, "invalid_parameters", []string{"body.application_id"}},
		"change, an earlier version": {func() *testkit.Answer {
			return c.With("If-Match", `"7"`).Patch(at, object{"name": "x"})
		}, 412, "version_mismatch", nil},
	} {
		t.Run(name, func(t *testing.T) { row.do().Problem(row.status, row.code, row.locations...) })
	}

	c.Patch(at, object{"description": "All orders", "free_ext_props": object{"level": 3}}).OK(nil)
	got := c.Get(at + "?application_id=9").Object()
	require.Equal(t, "All orders", got["description"])
	require.EqualValues(t, 2, got["version"])
	require.JSONEq(t, "{}",
		string(put(c, at, object{"name": "Orders", "actions": []object{{"code": "read"}}}).OK(nil).Body))
	require.Empty(t, c.Get(at + "?application_id=9").Object()["description"], "PUT replaces")
}

// TestResourceBatch: a batch makes all of its resources or none, and names each fault by its item.
func TestResourceBatch(t *testing.T) {
	t.Parallel()
	c := client(t)
	addResource(t, c, "orders")
	batch := func(items ...object) *testkit.Answer {
		for i := range items {
			items[i]["application_id"], items[i]["type"] = "9", "data"
		}
		return c.Post("/v1/batch/resources", object{"items": items})
	}
	for name, row := range map[string]struct {
		items     []object
		status    int
		code      string
		locations []string
	}{
		"none": {nil, 400, "invalid_parameters", []string{"body.items"}},
		"all faults": {[]object{{"code": "a"}, {"code": "a b"}, {"code": "b", "uri": "x"}}, 400, "invalid_parameters",
			[]string{"body.items[1].code", "body.items[2].uri"}},
		"unknown member": {[]object{{"code": "a", "cod": "b"}}, 400, "invalid_parameters",
			[]string{"body.items[0].cod"}},
		"wrong type": {[]object{{"code": "a", "actions": "read"}}, 400, "invalid_parameters",
			[]string{"body.items[0].actions"}},
		"taken": {[]object{{"code": "a"}, {"code": "orders"}}, 409, "already_exists", []string{"body.items[1].code"}},
		"twice": {[]object{{"code": "a"}, {"code": "a"}}, 409, "already_exists", []string{"body.items[1].code"}},
	} {
		t.Run(name, func(t *testing.T) { batch(row.items...).Problem(row.status, row.code, row.locations...) })
	}
	require.Equal(t, 1, total(t, c, "/v1/resources?application_id=9"), "all or none")

	var made struct{ Items []object }
	batch(object{"code": "b"}, object{"code": "a", "actions": []object{{"code": "read"}}}).OK(&made)
	require.Len(t, made.Items, 2)
	for i, code := range []string{"b", "a"} { // in the order of the request
		at := "/v1/resources/" + made.Items[i]["id"].(string) + "?application_id=9"
		require.Equal(t, code, made.Items[i]["code"])
		require.Equal(t, made.Items[i], c.Get(at).Object())
	}
	give(t, c, "user/20", data("a", "read")) // checks know them at once
	answer := c.Post("/v1/auth-check", object{"identity_id": "20", "identity_type": "user", "application_id": "9",
		"object_type": "data", "object_code": "a", "action": "read"}).Object()
	require.Equal(t, true, answer["allowed"])
}

func TestListsOfResources(t *testing.T) {
	t.Parallel()
	c := client(t)
	for i := range 3 {
		addResource(t, c, "r"+strconv.Itoa(i))
	}
	c.Post("/v1/resources", object{"application_id": "9", "type": "api", "code": "r0"}).OK(nil)
	c.Post("/v1/resources", object{"application_id": "8", "type": "data", "code": "shared", "is_global": "1"}).OK(nil)
	c.Post("/v1/resource-sets", object{"application_id": "9", "code": "own"}).OK(nil)
	c.Post("/v1/resource-sets", object{"application_id": "8", "code": "shared", "is_global": "1"}).OK(nil)
	for path, want := range map[string]int{
		"/v1/resources?application_id=9":                           4,
		"/v1/resources?application_id=9&type=data":                 3,
		"/v1/resources?application_id=9&code=r0":                   2,
		"/v1/resources?application_id=9&code=r0&type=api":          1,
		"/v1/resources?application_id=9&include_global=true":       5,
		"/v1/resources?application_id=8&include_global=1":          1,
		"/v1/resources?application_id=7":                           0,
		"/v1/resource-sets?application_id=9":                       1,
		"/v1/resource-sets?application_id=9&include_global=true":   2,
		"/v1/resource-sets?application_id=9&code=shared":           0,
		"/v1/resources?application_id=9&page_sort=code[desc]":      4,
		"/v1/resources?application_id=9&page_sort=name,code[desc]": 4,
	} {
		require.Equal(t, want, total(t, c, path), path)
	}
	c.Get("/v1/resources?application_id=9&page_sort=uri").Problem(400, "invalid_parameters", "query.page_sort")
	c.Get("/v1/resources?application_id=9&include_global=yes").Problem(400, "invalid_parameters",
		"query.include_global")
}

func TestAnActionInUseStays(t *testing.T) {
	t.Parallel()
	c := client(t)
	id := addResource(t, c, "orders")
	give(t, c, "user/20", data("orders", "write"))
	at := "/v1/resources/" + id
	c.Patch(at, object{"actions": []object{{"code": "read"}}}).Problem(http.StatusConflict, "in_use", "auth_rules")
	c.Patch(at, object{"actions": []object{{"code": "write"}}}).OK(nil)
	set := addSet(t, c, "s")
	c.Post("/v1/resource-sets/"+set+"/members", object{"resource_id": id, "actions": []string{"write"}}).OK(nil)
	c.Patch(at, object{"actions": []object{{"code": "read"}}}).Problem(http.StatusConflict, "in_use", "auth_rules",
		"resource_set_members")
}

func TestResourceSets(t *testing.T) {
	t.Parallel()
	c := client(t)
	id := addSet(t, c, "sales")
	at := "/v1/resource-sets/" + id
	c.With("X-Tenant-Id", "").Post("/v1/resource-sets", object{"application_id": "9", "code": "x"}).Problem(400,
		"invalid_parameters", "header.X-Tenant-Id")
	put(c.With("X-Tenant-Id", ""), at, object{"code": "x"}).Problem(400, "invalid_parameters", "header.X-Tenant-Id")
	c.Post("/v1/resource-sets", object{"application_id": "9", "code": "sales"}).Problem(409, "already_exists",
		"body.code")
	c.Post("/v1/resource-sets", object{"application_id": "9", "code": "a b"}).Problem(400, "invalid_parameters",
		"body.code")
	put(c, at, object{"code": "sales", "name": "Sales"}).OK(nil)
	require.Equal(t, "Sales", c.Get(at).Object()["name"])
	put(c, at, object{"code": "sale"}).OK(nil)
	put(c, at, object{"code": "sales"}).OK(nil)
	give(t, c, "user/20", object{"type": "res_set", "code": "sales", "actions": []string{"read"}})
	put(c, at, object{"code": "sale"}).Problem(409, "in_use", "auth_rules") // rules name it by its code
	put(c, at, object{"code": "sales", "name": "Sold"}).OK(nil)
	put(c, "/v1/resource-sets/1", object{"code": "a"}).Problem(404, "not_found")
	c.Delete(at, nil).OK(nil)
	c.Get(at).Problem(404, "not_found")
}

func TestMembersOfSets(t *testing.T) {
	t.Parallel()
	c := client(t)
	set := "/v1/resource-sets/" + addSet(t, c, "sales")
	orders, invoices := addResource(t, c, "orders"), addResource(t, c, "invoices")
	foreign := c.Post("/v1/resources", object{"application_id": "8", "type": "data", "code": "foreign"}).ID()
	global := c.Post("/v1/resources", object{"application_id": "8", "type": "data", "code": "global",
		"is_global": "1"}).ID()

	member := c.Post(set+"/members", object{"resource_code": "orders", "resource_type": "data",
		"actions": []string{"read"}}).Object()
	require.Equal(t, orders, member["resource_id"])
	at := set + "/members/" + member["id"].(string)
	added := c.Post(set+"/members",
		object{"members": []object{{"resource_id": invoices}, {"resource_id": global}}}).Object()["items"].([]any)
	require.Equal(t, []any{"*"}, added[0].(object)["actions"])
	require.EqualValues(t, 3, c.Get(set).Object()["member_count"])

	c.Post(set+"/members", object{"resource_id": orders}).Problem(409, "already_exists", "body.resource_id")
	c.Post(set+"/members", object{"resource_id": foreign}).Problem(400, "invalid_parameters", "body.resource_id")
	c.Post(set+"/members",
		object{"members": []object{{"resource_id": "1"}, {"resource_code": "nothing", "resource_type": "data"}}}).
		Problem(400, "invalid_parameters", "body.members[0].resource_id", "body.members[1].resource_code")
	c.Post("/v1/resource-sets/1/members", object{"resource_id": orders}).Problem(404, "not_found")
	put(c, at, object{"actions": []string{"burn"}}).Problem(400, "invalid_parameters", "body.actions[0]")
	put(c, at, object{"actions": []string{"write"}}).OK(nil)
	require.Equal(t, []any{"write"}, c.Get(at).Object()["actions"])
	require.Equal(t, 1, total(t, c, set+"/members?resource_code=orders"))
	require.Equal(t, 0, total(t, c, set+"/members?resource_type=ui"))
	other := "/v1/resource-sets/" + addSet(t, c, "other")
	page := c.Post("/v1/resources", object{"application_id": "9", "type": "ui", "code": "orders"}).ID()
	byCode := object{"resource_code": "orders", "resource_type": "ui"}
	require.Equal(t, page, c.Post(other+"/members", byCode).Object()["resource_id"], "of several with the same code")
	c.Get(other+strings.TrimPrefix(at, set)).Problem(404, "not_found")
	c.Delete(at, nil).OK(nil)
	require.EqualValues(t, 2, c.Get(set).Object()["member_count"])
	c.Delete("/v1/resources/"+invoices, nil).OK(nil)
	require.EqualValues(t, 1, c.Get(set).Object()["member_count"], "a resource leaves its sets")
}

// The first answer is stored with the change, so a repeat of the request gets it.
func TestMembersAreAddedOnceForAKey(t *testing.T) {
	t.Parallel()
	c := client(t)
	set := "/v1/resource-sets/" + addSet(t, c, "sales")
	group := c.Post("/v1/auth-units", object{"identity_id": "auditors", "identity_type": "group"}).ID()
	for key, ask := range map[string]struct {
		path string
		body object
	}{
		"one":   {set + "/members", object{"resource_id": addResource(t, c, "a")}},
		"many":  {set + "/members", object{"members": []object{{"resource_id": addResource(t, c, "b")}}}},
		"users": {"/v1/auth-units/" + group + "/members", object{"user_ids": []string{"20"}}},
	} {
		keyed := c.With("Idempotency-Key", key)
		first, again := keyed.Post(ask.path, ask.body), keyed.Post(ask.path, ask.body)
		first.OK(nil)
		require.JSONEq(t, string(first.Body), string(again.Body))
		require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
	}
}

// A code names the application's own resource, otherwise the only global one; as many as a request can have.
func TestGlobalResourcesByCode(t *testing.T) {
	t.Parallel()
	c := client(t)
	add := func(application, code string) string {
		return c.Post("/v1/resources", object{"application_id": application, "type": "data", "code": code,
			"is_global": "1"}).ID()
	}
	byCode := func(code string) object { return object{"resource_code": code, "resource_type": "data"} }
	var all []object
	for i := range 450 {
		code := "shared-" + strconv.Itoa(i)
		add("8", code)
		all = append(all, byCode(code))
	}
	set := "/v1/resource-sets/" + addSet(t, c, "many")
	c.Post(set+"/members", object{"members": all}).OK(nil)
	require.EqualValues(t, 450, c.Get(set).Object()["member_count"])

	own := add("9", "orders")
	add("8", "orders")
	require.Equal(t, own, c.Post(set+"/members", byCode("orders")).Object()["resource_id"])
	add("8", "invoices")
	add("7", "invoices")
	c.Post(set+"/members", byCode("invoices")).Problem(400, "invalid_parameters", "body.resource_code")
}

func TestGroups(t *testing.T) {
	t.Parallel()
	c := client(t)
	group := "/v1/auth-units/" + c.Post("/v1/auth-units",
		object{"identity_id": "auditors", "identity_type": "group"}).ID()
	user := "/v1/auth-units/" + c.Post("/v1/auth-units", object{"identity_id": "20", "identity_type": "user"}).ID()
	require.Len(t, c.Post(group+"/members", object{"user_ids": []string{"20", "21", "20"}}).Object()["items"], 2)
	require.Empty(t, c.Post(group+"/members", object{"user_ids": []string{"20"}}).Object()["items"])
	require.Equal(t, 2, total(t, c, group+"/members"))
	c.Post(user+"/members", object{"user_ids": []string{"21"}}).Problem(409, "invalid_state")
	c.Post(group+"/members", object{"user_ids": []string{}}).Problem(400, "invalid_parameters", "body.user_ids")
	c.Post("/v1/auth-units/1/members", object{"user_ids": []string{"21"}}).Problem(404, "not_found")
	longest := strings.Repeat("组", 64)
	c.Post("/v1/auth-units", object{"identity_id": longest, "identity_type": "group"}).OK(nil)
	c.Post("/v1/auth-units", object{"identity_id": longest + "x", "identity_type": "group"}).Problem(400,
		"invalid_parameters", "body.identity_id")
	require.EqualValues(t, 1, c.Delete(group+"/members", object{"user_ids": []string{"21", "99"}}).Object()["removed"])
	require.Equal(t, 1, total(t, c, group+"/members"))
	c.Post("/v1/auth-units", object{"identity_id": "1", "identity_type": "everyone"}).Problem(400, "invalid_parameters",
		"body.identity_id")
}

func put(c *testkit.Client, path string, body any) *testkit.Answer {
	return c.Do(http.MethodPut, path, body)
}
