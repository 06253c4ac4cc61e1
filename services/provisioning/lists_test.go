package provisioning_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// find lists users with a filter and returns their userNames.
func (c *client) find(filter string, more ...string) []string {
	c.t.Helper()
	query := usersPath + "?filter=" + url.QueryEscape(filter) + strings.Join(more, "")
	list := c.want(http.StatusOK, http.MethodGet, query, nil)
	names := []string{}
	for _, u := range list["Resources"].([]any) {
		names = append(names, u.(object)["userName"].(string))
	}
	return names
}

func TestFilters(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	enterprise := "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
	boss := c.addUser("ann", object{"name": object{"familyName": "Ärger"}, "title": "Boss",
		"emails": []any{object{"value": "ann@acme.test", "type": "work"}, object{"value": "a@home.test", "type": "home"}}})
	c.addUser("bob", object{"active": false,
		enterprise: object{"employeeNumber": "A-17", "manager": object{"value": boss}}})
	c.addUser("cid", object{"displayName": "Cid of Spain", enterprise: object{"department": "R&D"}})
	for filter, want := range map[string]string{
		`userName eq "ANN"`: "ann", `userName ne "ann"`: "bob cid", `userName sw "b"`: "bob", `userName gt "ann"`: "bob cid",
		`userName le "bob"`: "ann bob", `userName co "i"`: "cid", `externalId eq "EXT-ann"`: "", `externalId eq "ext-ann"`: "ann",
		`id eq "` + boss + `"`: "ann", `active eq false`: "bob", `active eq "True"`: "ann cid",
		`name.familyName eq "ÄRGER"`: "ann", `emails.value eq "A@home.test"`: "ann", `emails.value sw "ann@"`: "ann",
		`emails[type eq "work" and value sw "a@"]`: "", `emails[type eq "home" and value sw "a@"]`: "ann",
		`title pr`: "ann", `not (title pr)`: "bob cid", `title eq "boss" or userName eq "bob"`: "ann bob",
		enterprise + `:employeeNumber eq "A-17"`: "bob", enterprise + `:manager.value eq "` + boss + `"`: "bob",
		enterprise + `:department sw "r"`: "cid", `meta.created ge "2020-01-01T00:00:00Z"`: "ann bob cid",
		`manager eq "` + boss + `" and userName eq "bob"`: "bob",
		`emails[type eq "home"].value eq "a@home.test"`:   "ann",
		`userName eq "ann" and active eq false`:           "", `displayName ew "spain"`: "cid",
	} {
		require.Equal(t, want, strings.Join(c.find(filter, "&sortBy=userName"), " "), filter)
	}
	for _, filter := range []string{`nosuch eq "x"`, `password eq "x"`, `active gt true`, `userName eq`, `groups.value co "1"`} {
		query := usersPath + "?filter=" + url.QueryEscape(filter)
		c.fault(http.StatusBadRequest, "invalidFilter", http.MethodGet, query, nil)
	}
	c.fault(http.StatusBadRequest, "invalidValue", http.MethodGet, usersPath+"?sortBy=title", nil)
	found := c.want(http.StatusOK, http.MethodPost, usersPath+"/.search", object{
		"schemas": []any{"urn:ietf:params:scim:api:messages:2.0:SearchRequest"}, "filter": `userName eq "bob"`,
		"attributes": []any{"userName", enterprise + ":manager"},
	})
	bob := found["Resources"].([]any)[0].(object)
	require.Equal(t, "Ärger", bob[enterprise].(object)["manager"].(object)["displayName"])
	require.NotContains(t, bob, "active")
}

func TestPages(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	c.people(25)
	page := c.want(http.StatusOK, http.MethodGet, usersPath+"?startIndex=21&count=10&sortBy=userName", nil)
	require.Equal(t, []any{25.0, 21.0, 5.0}, []any{page["totalResults"], page["startIndex"], page["itemsPerPage"]})
	require.Empty(t, c.want(http.StatusOK, http.MethodGet, usersPath+"?count=0", nil)["Resources"])
	require.Empty(t, c.want(http.StatusOK, http.MethodGet, usersPath+"?startIndex=99", nil)["Resources"])
	for _, filter := range []string{"", `userName sw "user"`, `displayName co "user"`} {
		seen, cursor := []string{}, ""
		for {
			query := usersPath + "?count=10&sortBy=userName&sortOrder=descending&filter=" + url.QueryEscape(filter) +
				"&cursor=" + url.QueryEscape(cursor)
			page := c.want(http.StatusOK, http.MethodGet, query, nil)
			for _, u := range page["Resources"].([]any) {
				seen = append(seen, u.(object)["userName"].(string))
			}
			require.Equal(t, 25.0, page["totalResults"])
			next, more := page["nextCursor"].(string)
			if !more {
				break
			}
			cursor = next
		}
		require.Len(t, seen, 25, filter)
		require.Equal(t, "user024", seen[0])
		require.Equal(t, "user000", seen[24])
		c.fault(http.StatusBadRequest, "invalidCursor", http.MethodGet, usersPath+"?count=10&cursor="+cursor, nil)
	}
	c.fault(http.StatusBadRequest, "invalidCursor", http.MethodGet, usersPath+"?cursor=forged", nil)
	first := c.want(http.StatusOK, http.MethodGet, usersPath+"?count=10&cursor=", nil)["nextCursor"].(string)
	c.fault(http.StatusBadRequest, "invalidCount", http.MethodGet, usersPath+"?count=9&cursor="+first, nil)
}

// A walk by cursor loses nobody while others are deleted.
func TestACursorWalkDuringDeletions(t *testing.T) {
	t.Parallel()
	c := connect(t, object{"gate": object{"percent": 100, "min": 1000, "hours": 1}})
	const n = 200
	ids := c.people(n)
	stay, seen, cursor := map[string]bool{}, map[string]bool{}, ""
	for i, id := range ids {
		stay[id] = i%2 == 0
	}
	for done := 0; ; {
		page := c.want(http.StatusOK, http.MethodGet, usersPath+"?count=10&sortBy=userName&cursor="+cursor, nil)
		for _, u := range page["Resources"].([]any) {
			id := u.(object)["id"].(string)
			require.False(t, seen[id], "nobody comes twice")
			seen[id] = true
		}
		for k := 0; k < 10 && done < n; done++ {
			if !stay[ids[done]] {
				c.want(http.StatusNoContent, http.MethodDelete, usersPath+"/"+ids[done], nil)
				k++
			}
		}
		next, more := page["nextCursor"].(string)
		if !more {
			break
		}
		cursor = next
	}
	for id, stays := range stay {
		require.True(t, !stays || seen[id], "%s was lost", id)
	}
}

func TestBulk(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	operation := func(method, path, id string, data any) object {
		return object{"method": method, "path": path, "bulkId": id, "data": data}
	}
	bulk := func(fail int, operations ...object) []any {
		return c.want(http.StatusOK, http.MethodPost, "/scim/v2/Bulk", object{
			"schemas": []any{"urn:ietf:params:scim:api:messages:2.0:BulkRequest"}, "failOnErrors": fail, "Operations": operations,
		})["Operations"].([]any)
	}
	results := bulk(0,
		operation("POST", "/Groups", "g", object{"displayName": "Platform", "members": valued([]string{"bulkId:a", "bulkId:b"})}),
		operation("POST", "/Users", "a", person("a", nil)), operation("POST", "/Users", "b", person("b", nil)),
		operation("POST", "/Users", "c", person("a", nil)),
		operation("PATCH", "/Users/bulkId:a", "", patchOf(object{"op": "add", "path": "title", "value": "Boss"})),
		operation("DELETE", "/Users/999", "", nil),
	)
	statuses := []string{}
	for _, r := range results {
		statuses = append(statuses, r.(object)["status"].(string))
	}
	require.Equal(t, []string{"201", "201", "201", "409", "200", "404"}, statuses)
	require.Nil(t, results[3].(object)["location"], "a failed POST has none")
	require.Equal(t, results[1].(object)["location"], results[4].(object)["location"])
	require.Regexp(t, "^http.*/scim/v2/Users/999$", results[5].(object)["location"])
	group := c.want(http.StatusOK, http.MethodGet, groupsPath, nil)["Resources"].([]any)[0].(object)
	require.Len(t, group["members"], 2)
	circle := bulk(0,
		operation("POST", "/Users", "x", person("x", object{"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": object{
			"manager": object{"value": "bulkId:y"}}})),
		operation("POST", "/Users", "y", person("y", object{"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": object{
			"manager": object{"value": "bulkId:x"}}})))
	require.Equal(t, "409", circle[0].(object)["status"])
	require.Len(t, bulk(1, operation("POST", "/Nothing", "n", object{}),
		operation("POST", "/Users", "z", person("z", nil))), 1)
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	open := &client{Client: c.service.Stranger(), t: t}
	config := open.want(http.StatusOK, http.MethodGet, "/scim/v2/ServiceProviderConfig", nil)
	require.Equal(t, true, config["bulk"].(object)["supported"])
	require.Equal(t, 2.0, open.want(http.StatusOK, http.MethodGet, "/scim/v2/ResourceTypes", nil)["totalResults"])
	require.Equal(t, "User", open.want(http.StatusOK, http.MethodGet, "/scim/v2/ResourceTypes/User", nil)["id"])
	require.Equal(t, 7.0, open.want(http.StatusOK, http.MethodGet, "/scim/v2/Schemas", nil)["totalResults"])
	for _, kind := range []string{"Schema", "ResourceType", "ServiceProviderConfig"} {
		id := "urn:ietf:params:scim:schemas:core:2.0:" + kind
		require.Equal(t, id, open.want(http.StatusOK, http.MethodGet, "/scim/v2/Schemas/"+id, nil)["id"])
	}
	for _, path := range []string{"/Schemas", "/ResourceTypes", "/ServiceProviderConfig", "/ResourceTypes/User"} {
		open.fault(http.StatusForbidden, "", http.MethodGet, "/scim/v2"+path+"?filter="+url.QueryEscape(`id pr`), nil)
		open.fault(http.StatusForbidden, "", http.MethodGet, "/scim/v2"+path+"?FILTER=", nil)
	}
	id := "urn:ietf:params:scim:schemas:core:2.0:Group"
	require.Equal(t, id, open.want(http.StatusOK, http.MethodGet, "/scim/v2/Schemas/"+id, nil)["id"])
	open.fault(http.StatusNotFound, "", http.MethodGet, "/scim/v2/Schemas/urn:x", nil)
	open.fault(http.StatusUnauthorized, "", http.MethodGet, usersPath, nil)
	c.fault(http.StatusNotImplemented, "", http.MethodPost, "/scim/v2/.search", nil)
	c.fault(http.StatusBadRequest, "invalidSyntax", http.MethodPost, usersPath, "{")
	c.fault(http.StatusBadRequest, "invalidValue", http.MethodPost, usersPath, object{"displayName": "x"})
}

// A client that shows its credential learns what its own connection takes.
func TestDiscoveryOfAConnection(t *testing.T) {
	t.Parallel()
	c := connect(t, object{"extensions": []any{"urn:acme:badge"}, "accept_password": "1"})
	open := &client{Client: c.service.Stranger(), t: t}
	wrong := &client{Client: c.service.Stranger().With("Authorization", "Bearer scim_wrong"), t: t}
	other := another(t, c.service, c.world, "entra", nil)
	const schemas, badge = "/scim/v2/Schemas", "/scim/v2/Schemas/urn:acme:badge"
	for _, without := range []*client{open, wrong, other} {
		require.Equal(t, 7.0, without.want(http.StatusOK, http.MethodGet, schemas, nil)["totalResults"])
		without.fault(http.StatusNotFound, "", http.MethodGet, badge, nil)
		config := without.want(http.StatusOK, http.MethodGet, "/scim/v2/ServiceProviderConfig", nil)
		require.Equal(t, object{"supported": false}, config["changePassword"])
	}
	require.Equal(t, 8.0, c.want(http.StatusOK, http.MethodGet, schemas, nil)["totalResults"])
	require.Equal(t, []any{}, c.want(http.StatusOK, http.MethodGet, badge, nil)["attributes"])
	extensions := c.want(http.StatusOK, http.MethodGet, "/scim/v2/ResourceTypes/User", nil)["schemaExtensions"]
	require.Contains(t, extensions, object{"schema": "urn:acme:badge", "required": false})
	config := c.want(http.StatusOK, http.MethodGet, "/scim/v2/ServiceProviderConfig", nil)
	require.Equal(t, object{"supported": true}, config["changePassword"])
	require.Equal(t, "public, max-age=3600", open.Get(schemas).Header.Get("Cache-Control"))
	require.NotContains(t, c.Get(schemas).Header.Get("Cache-Control"), "public")
}

// What the documents say of contact values is what the tenant's settings of users say.
func TestUniquenessOfContacts(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	open := &client{Client: c.service.Stranger(), t: t}
	uniqueness := func(c *client) (all []any) {
		const schema = "/scim/v2/Schemas/urn:ietf:params:scim:schemas:core:2.0:User"
		for _, a := range c.want(http.StatusOK, http.MethodGet, schema, nil)["attributes"].([]any) {
			switch a := a.(object); a["name"] {
			case "userName":
				all = append(all, a["uniqueness"])
			case "emails", "phoneNumbers":
				all = append(all, a["subAttributes"].([]any)[0].(object)["uniqueness"])
			}
		}
		return all
	}
	require.Equal(t, []any{"server", "server", "server"}, uniqueness(c))
	c.world.mu.Lock()
	c.world.sharing = true
	c.world.mu.Unlock()
	require.Equal(t, []any{"server", "none", "none"}, uniqueness(c))
	require.Equal(t, []any{"server", "server", "server"}, uniqueness(open))
}

func TestTheLog(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	c.addUser("li.wei", object{"nonsense": 1, "urn:acme:badge": object{"colour": "red"}})
	c.fault(http.StatusBadRequest, "invalidFilter", http.MethodGet, usersPath+"?filter=x", nil)
	c.service.RunTask("store the log")
	log := c.admin().Get(c.path("/log?page_sort=time[asc]")).Object()
	first := log["items"].([]any)[0].(object)
	require.Equal(t, []any{"POST", 201.0, []any{"nonsense", "urn:acme:badge"}},
		[]any{first["method"], first["status"], first["ignored"]})
	second := log["items"].([]any)[1].(object)
	require.Equal(t, []any{400.0, "invalidFilter"}, []any{second["status"], second["scim_type"]})
	connection := c.admin().Get(c.path("")).Object()
	require.NotNil(t, connection["time_last_request"])
	require.Equal(t, []any{2.0, 1.0, 1.0}, []any{connection["counters"].(object)["requests"],
		connection["counters"].(object)["refused"], connection["counters"].(object)["created"]})
	require.Equal(t, 1.0, connection["version"])
	c.service.Clock.Advance(31 * 24 * 3600e9)
	c.service.RunTask("forget the log")
	require.Empty(t, c.admin().Get(c.path("/log")).Object()["items"])
}

func TestTokens(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	for n := range 4 {
		c.admin().Post(c.path("/tokens"), object{"name": fmt.Sprint("t", n)}).OK(nil)
	}
	c.admin().Post(c.path("/tokens"), object{"name": "sixth"}).Problem(http.StatusConflict, "invalid_state")
	var list []object
	c.admin().Get(c.path("/tokens")).OK(&list)
	require.Len(t, list, 5)
	require.NotContains(t, list[0], "token")
	c.want(http.StatusOK, http.MethodGet, usersPath, nil)
	c.admin().Delete(c.path("/tokens/"+list[0]["id"].(string)), nil).OK(nil)
	c.fault(http.StatusUnauthorized, "", http.MethodGet, usersPath, nil)
	soon := object{"name": "short", "time_expires": c.service.Clock.Now().Add(60e9)}
	expires := c.admin().Post(c.path("/tokens"), soon).Object()["token"].(string)
	short := &client{Client: c.service.Stranger().With("Authorization", "Bearer "+expires), t: t}
	short.want(http.StatusOK, http.MethodGet, usersPath, nil)
	c.service.Clock.Advance(61e9)
	short.fault(http.StatusUnauthorized, "", http.MethodGet, usersPath, nil)

	other := c.admin().Post(c.path("/tokens"), object{"name": "other"}).Object()["token"].(string)
	disabled := &client{Client: c.service.Stranger().With("Authorization", "Bearer "+other), t: t}
	c.admin().Post(c.path("/disable"), nil).OK(nil)
	disabled.fault(http.StatusForbidden, "", http.MethodGet, usersPath, nil)
}
