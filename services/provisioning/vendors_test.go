package provisioning_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	userURN       = "urn:ietf:params:scim:schemas:core:2.0:User"
	groupURN      = "urn:ietf:params:scim:schemas:core:2.0:Group"
	enterpriseURN = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
)

// body fills the ids into a request that a vendor has published.
func body(text string, ids ...string) string {
	for i, id := range ids {
		text = strings.ReplaceAll(text, "$"+string(rune('1'+i)), id)
	}
	return text
}

// The requests that Microsoft publishes for Entra's provisioning ("Develop a SCIM endpoint"), and those of its older
// dialect.
func TestEntra(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	query := usersPath + "?filter=" + url.QueryEscape(`userName eq "Test_User_dfeef4c5"`)
	none := c.want(http.StatusOK, http.MethodGet, query, nil)
	require.Equal(t, 0.0, none["totalResults"])
	made := c.want(http.StatusCreated, http.MethodPost, usersPath, `{"schemas":["`+userURN+`","`+enterpriseURN+`"],
		"externalId":"0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef","userName":"Test_User_ab6490ee","active":true,
		"emails":[{"primary":true,"type":"work","value":"Test_User_fd0ea19b@testuser.com"}],"meta":{"resourceType":"User"},
		"name":{"formatted":"givenName familyName","familyName":"familyName","givenName":"givenName"},"roles":[]}`)
	id := made["id"].(string)
	path := usersPath + "/" + id
	boss := c.addUser("boss", nil)
	changed := c.want(http.StatusOK, http.MethodPatch, path, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
		"Operations":[{"op":"Replace","path":"emails[type eq \"work\"].value","value":"updatedEmail@microsoft.com"},
		{"op":"Replace","path":"name.familyName","value":"updatedFamilyName"}]}`)
	require.Equal(t, "updatedFamilyName", changed["name"].(object)["familyName"])
	require.Equal(t, "updatedEmail@microsoft.com", c.world.user("acme", id)["email"])

	for name, row := range map[string]struct{ operation, want string }{
		"manager":         {`{"op":"Add","path":"` + enterpriseURN + `:manager","value":"$1"}`, `"value":"$1"`},
		"manager in list": {`{"op":"Add","path":"` + enterpriseURN + `:manager","value":[{"value":"$1"}]}`, `"value":"$1"`},
		"optscim": {`{"op":"replace","value":{"displayName":"New","name.givenName":"N","` + enterpriseURN +
			`:employeeNumber":"77"}}`, `"employeeNumber":"77"`},
		"phone that is not there": {`{"op":"Add","path":"phoneNumbers[type eq \"mobile\"].value","value":"+1 425 555 0100"}`,
			`+1 425 555 0100`},
	} {
		a := c.Patch(path, body(`{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[`+row.operation+`]}`, boss))
		require.Equal(t, http.StatusOK, a.Status, "%s: %s", name, a.Body)
		require.Contains(t, string(a.Body), body(row.want, boss), name)
	}
	require.Equal(t, "77", c.world.user("acme", id)["employee_number"])
	require.Equal(t, "+14255550100", c.world.user("acme", id)["mobile"])
	off := c.want(http.StatusOK, http.MethodPatch, path, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
		"Operations":[{"op":"Replace","path":"active","value":"False"}]}`)
	require.Equal(t, false, off["active"])
	require.Equal(t, "0", c.world.user("acme", id)["status"])

	group := c.want(http.StatusCreated, http.MethodPost, groupsPath, `{"schemas":["`+groupURN+`",
		"http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group"],
		"externalId":"8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159","displayName":"displayName","members":[],
		"meta":{"resourceType":"Group"}}`)["id"].(string)
	at := groupsPath + "/" + group
	none = c.want(http.StatusOK, http.MethodGet, groupsPath+"?excludedAttributes=members&filter="+
		url.QueryEscape(`displayName eq "displayName"`), nil)
	require.Equal(t, 1.0, none["totalResults"])
	const head = `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[`
	for _, row := range []struct {
		operation string
		want      []string
	}{
		{`{"op":"Replace","path":"displayName","value":"1879db59-3bdf-4490-ad68-ab880a269474updatedDisplayName"}`, nil},
		{`{"op":"Add","path":"members","value":[{"$ref":null,"value":"$1"}]}`, []string{id}},
		{`{"op":"Add","path":"members","value":[{"$ref":null,"value":"$1"},{"$ref":null,"value":"$2"}]}`, []string{id, boss}},
		{`{"op":"Remove","path":"members","value":[{"$ref":null,"value":"$1"}]}`, []string{boss}},
		{`{"op":"Remove","path":"members"}`, []string{}},
	} {
		a := c.Patch(at, body(head+row.operation+"]}", id, boss))
		require.Equal(t, http.StatusNoContent, a.Status, "%s: %s", row.operation, a.Body)
		if row.want != nil {
			require.ElementsMatch(t, row.want, c.members(group), row.operation)
		}
	}
	c.want(http.StatusNoContent, http.MethodDelete, at, nil)
	c.want(http.StatusNoContent, http.MethodDelete, path, nil)
}

// The requests that Okta publishes ("SCIM 2.0 protocol reference").
func TestOkta(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	query := usersPath + "?filter=" + url.QueryEscape(`userName eq "test.user@okta.local"`) + "&startIndex=1&count=100"
	require.Equal(t, 0.0, c.want(http.StatusOK, http.MethodGet, query, nil)["totalResults"])
	create := `{"schemas":["` + userURN + `"],"userName":"test.user@okta.local","name":{"givenName":"Test","familyName":"User"},
		"emails":[{"primary":true,"value":"test.user@okta.local","type":"work"}],"displayName":"Test User","locale":"en-US",
		"externalId":"00ujl29u0le5T6Aj10h7","groups":[],"password":"1mz050nq","active":true}`
	id := c.want(http.StatusCreated, http.MethodPost, usersPath, create)["id"].(string)
	path := usersPath + "/" + id
	put := c.want(http.StatusOK, http.MethodPut, path, body(`{"schemas":["`+userURN+`"],"id":"$1",
		"userName":"test.user@okta.local","name":{"givenName":"Another","middleName":"Excited","familyName":"User"},
		"emails":[{"primary":true,"value":"test.user@okta.local","type":"work","display":"test.user@okta.local"}],
		"active":true,"groups":[{"value":"9","display":"x"}],"meta":{"resourceType":"User","version":"W/\"9\""}}`, id))
	require.Equal(t, "Excited", put["name"].(object)["middleName"])
	require.Equal(t, "00ujl29u0le5T6Aj10h7", put["externalId"])
	off := `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[{"op":"replace","value":{"active":false}}]}`
	require.Equal(t, false, c.want(http.StatusOK, http.MethodPatch, path, off)["active"])
	require.Equal(t, id, c.want(http.StatusCreated, http.MethodPost, usersPath, create)["id"], "it is revived")

	group := c.want(http.StatusCreated, http.MethodPost, groupsPath,
		`{"schemas":["`+groupURN+`"],"displayName":"Test SCIMv2","members":[]}`)["id"].(string)
	at := groupsPath + "/" + group
	const head = `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[`
	for _, operations := range []string{
		`{"op":"replace","value":{"id":"$2","displayName":"Test SCIMv2 renamed"}}`,
		`{"op":"add","path":"members","value":[{"value":"$1","display":"test.user@okta.local"}]}`,
		`{"op":"remove","path":"members[value eq \"$1\"]"},{"op":"add","path":"members","value":[{"value":"$1"}]}`,
		`{"op":"replace","path":"members","value":[{"value":"$1"}]}`,
	} {
		a := c.Patch(at, body(head+operations+"]}", id, group))
		require.Equal(t, http.StatusNoContent, a.Status, "%s: %s", operations, a.Body)
	}
	require.Equal(t, []string{id}, c.members(group))
	require.Equal(t, "Test SCIMv2 renamed", c.want(http.StatusOK, http.MethodGet, at, nil)["displayName"])
	c.want(http.StatusConflict, http.MethodPost, groupsPath,
		`{"schemas":["`+groupURN+`"],"displayName":"Test SCIMv2 renamed"}`)
}
