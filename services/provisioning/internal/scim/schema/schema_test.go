package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

const urnOfNobody = "urn:example:acme:2.0:User"

func TestFind(t *testing.T) {
	t.Parallel()
	user := schema.User.With(urnOfNobody, schema.EnterpriseURN, strings.ToUpper(urnOfNobody), schema.UserURN, "acme")
	require.Len(t, user.Extensions, 2, "what is known or no URN is no new extension")
	require.Len(t, schema.User.Extensions, 1)
	for path, want := range map[string]string{
		"userName":                             "userName",
		"USERNAME":                             "userName",
		"Name.GivenName":                       "name.givenName",
		"emails.$ref":                          "",
		"members":                              "",
		"meta.lastmodified":                    "meta.lastModified",
		"id":                                   "id",
		"schemas":                              "schemas",
		"groups.$REF":                          "groups.$ref",
		schema.UserURN + ":userName":           "userName",
		strings.ToLower(schema.UserURN):        "",
		schema.UserURN + ":id":                 "id",
		schema.UserURN + ":name.givenname":     "name.givenName",
		schema.EnterpriseURN:                   schema.EnterpriseURN,
		strings.ToUpper(schema.EnterpriseURN):  schema.EnterpriseURN,
		schema.EnterpriseURN + ":DEPARTMENT":   schema.EnterpriseURN + ":department",
		schema.EnterpriseURN + ":manager.$ref": schema.EnterpriseURN + ":manager.$ref",
		schema.EnterpriseURN + ":userName":     "",
		schema.EnterpriseURN + "s:department":  "",
		schema.EnterpriseURN + ":":             "",
		"department":                           "",
		urnOfNobody + ":Shoe-Size":             urnOfNobody + ":Shoe-Size",
		urnOfNobody + ":a.b":                   urnOfNobody + ":a.b",
		urnOfNobody + ":a.b.c":                 "",
		urnOfNobody + ":1a":                    "",
		"":                                     "",
		"name.":                                "",
		".name":                                "",
		"name.givenName.x":                     "",
		"userName.x":                           "",
		"urn:":                                 "",
	} {
		found, is := user.Find(path)
		require.Equal(t, want != "", is, path)
		if is {
			require.Equal(t, want, found.String(), path)
			again, is := user.Find(found.String())
			require.True(t, is)
			require.Equal(t, found.String(), again.String())
		}
	}
}

// TestSchemasAreComplete compares with the attributes of RFC 7643 §4.
func TestSchemasAreComplete(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  *schema.Resource
		paths string
	}{
		{schema.User, `userName name.formatted name.familyName name.givenName name.middleName name.honorificPrefix
			name.honorificSuffix displayName nickName profileUrl title userType preferredLanguage locale timezone active
			password emails.value emails.display emails.type emails.primary phoneNumbers.value phoneNumbers.display
			phoneNumbers.type phoneNumbers.primary ims.value ims.display ims.type ims.primary photos.value photos.display
			photos.type photos.primary addresses.formatted addresses.streetAddress addresses.locality addresses.region
			addresses.postalCode addresses.country addresses.type groups.value groups.$ref groups.display groups.type
			entitlements.value entitlements.display entitlements.type entitlements.primary roles.value roles.display
			roles.type roles.primary x509Certificates.value x509Certificates.display x509Certificates.type
			x509Certificates.primary schemas id externalId meta.resourceType meta.created meta.lastModified meta.location
			meta.version urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:employeeNumber
			urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:costCenter
			urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:organization
			urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:division
			urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department
			urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager.value
			urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager.$ref
			urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager.displayName`},
		{schema.Group, `displayName members.value members.$ref members.type members.display
			urn:idplatform:scim:2.0:Node:code urn:idplatform:scim:2.0:Node:parent urn:idplatform:scim:2.0:Node:path`},
	} {
		for path := range strings.FieldsSeq(c.paths) {
			found, is := c.kind.Find(path)
			require.True(t, is, path)
			require.Equal(t, path, found.String())
		}
	}
}

func TestReadOnlyReachesSubAttributes(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"meta.version", "groups.value", "groups"} {
		found, _ := schema.User.Find(path)
		require.Equal(t, schema.ReadOnly, found.Leaf().Mutability, path)
	}
	groups, _ := schema.User.Find("groups")
	require.Equal(t, schema.Request, groups.Attribute.Returned)
	password, _ := schema.User.Find("password")
	require.True(t, password.Attribute.Hidden())
}

// TestDocuments: clients build on what these documents say.
func TestDocuments(t *testing.T) {
	t.Parallel()
	const base = "https://id.example.com/scim/v2"
	limits := schema.Limits{BulkOperations: 1000, BulkSize: 1 << 20, DefaultCount: 100, MaxCount: 200}
	for name, document := range map[string]any{
		"config":         schema.NewConfig(base, limits, false),
		"resource-types": schema.TypeDocuments(base, schema.User),
		"schemas":        schema.Documents(base, schema.User),
	} {
		got, err := json.MarshalIndent(document, "", "  ")
		require.NoError(t, err)
		basic.Golden(t, "testdata/"+name+".json.golden", append(got, '\n'))
	}
	found, is := schema.Named(schema.Documents(base, schema.User), strings.ToUpper(schema.NodeURN),
		func(d *schema.Document) string { return d.ID })
	require.True(t, is)
	require.Equal(t, "Node", found.Name)
	_, is = schema.Named(schema.TypeDocuments(base, schema.User), "Device",
		func(d *schema.TypeDocument) string { return d.ID })
	require.False(t, is)
}
