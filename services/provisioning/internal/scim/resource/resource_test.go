package resource_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

func toJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

func read(t *testing.T, kind *schema.Resource, text string) (resource.Object, []string, error) {
	t.Helper()
	o, err := resource.DecodeObject([]byte(text))
	if err != nil {
		return nil, nil, err
	}
	var ignored resource.Ignored
	r, err := resource.Read(kind, o, &ignored)
	return r, ignored.Names(), err
}

// TestExamples: the examples of RFC 7643 §8 are read as they are, save what is read-only, and shown as they are, save
// the password and, unless it is asked for, groups.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file string
		kind *schema.Resource
	}{
		{"8.1", schema.User}, {"8.2", schema.User}, {"8.3", schema.User}, {"8.4", schema.Group},
	} {
		text, err := os.ReadFile("testdata/rfc7643-" + c.file + ".json")
		require.NoError(t, err)
		whole, err := resource.DecodeObject(text)
		require.NoError(t, err)

		r, ignored, err := read(t, c.kind, string(text))
		require.NoError(t, err)
		require.Empty(t, ignored)
		require.NoError(t, resource.Required(c.kind, r))
		written := resource.Clone(whole)
		for _, name := range []string{"id", "meta", "groups", "schemas"} {
			delete(written, name)
		}
		for _, m := range items(written["members"]) {
			delete(m, "$ref")
			delete(m, "display")
		}
		if enterprise, has := written[schema.EnterpriseURN].(resource.Object); has {
			delete(enterprise["manager"].(resource.Object), "displayName")
		}
		require.Equal(t, written, r, c.file)

		shown := resource.Clone(whole)
		delete(shown, "password")
		delete(shown, "groups")
		require.Equal(t, shown, resource.Projection{}.Of(c.kind, whole), c.file)
		require.Equal(t, whole["schemas"], resource.Schemas(c.kind, whole), c.file)
	}
}

func items(v any) []resource.Object {
	list, _ := v.([]any)
	var objects []resource.Object
	for _, item := range list {
		o, _ := item.(resource.Object)
		objects = append(objects, o)
	}
	return objects
}

func TestRead(t *testing.T) {
	t.Parallel()
	acme := "urn:example:acme:2.0:User"
	kind := schema.User.With(acme)
	for name, c := range map[string]struct{ sent, want, ignored string }{
		"names in any case": {
			`{"SCHEMAS":["urn:x"],"USERNAME":"a","Name":{"GIVENNAME":"b"},"emails":[{"VALUE":"c","Primary":"True"}]}`,
			`{"userName":"a","name":{"givenName":"b"},"emails":[{"value":"c","primary":true}]}`, "",
		},
		"URNs in any case": {
			`{"URN:IETF:params:scim:schemas:extension:enterprise:2.0:user":{"Department":"d"}}`,
			`{"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"department":"d"}}`, "",
		},
		"booleans as texts": {`{"active":"False"}`, `{"active":false}`, ""},
		"null, empty lists and objects are absent": {
			`{"title":null,"emails":[],"name":{},"addresses":[null,{}],"roles":null,"` + schema.EnterpriseURN + `":null}`, `{}`, "",
		},
		"empty texts stay": {`{"title":""}`, `{"title":""}`, ""},
		"read-only attributes of any type": {
			`{"id":1,"meta":"x","groups":{"a":1},"schemas":null}`, `{}`, "",
		},
		"undeclared members": {
			`{"userName":"a","shoe":{"size":1},"name":{"nick":"b"},"emails":[{"value":"c","operation":"x"}],"urn:x:y":{},"` +
				schema.EnterpriseURN + `":{"floor":3}}`,
			`{"userName":"a","emails":[{"value":"c"}]}`,
			"emails[0].operation name.nick shoe " + schema.EnterpriseURN + ":floor urn:x:y",
		},
		"a declared extension is kept as sent": {
			`{"` + strings.ToUpper(acme) + `":{"Big":12345678901234567890123,"nothing":[],"deep":{"a":[1.50,true]}}}`,
			`{"` + acme + `":{"Big":12345678901234567890123,"nothing":[],"deep":{"a":[1.50,true]}}}`, "",
		},
	} {
		r, ignored, err := read(t, kind, c.sent)
		require.NoError(t, err, name)
		require.Equal(t, c.ignored, strings.Join(ignored, " "), name)
		want, err := resource.DecodeObject([]byte(c.want))
		require.NoError(t, err)
		require.Equal(t, want, r, name)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]struct {
		scimType scim.Type
		location string
	}{
		`{"userName":1}`:                                    {scim.InvalidValue, "userName"},
		`{"userName":["a"]}`:                                {scim.InvalidValue, "userName"},
		`{"active":"yes"}`:                                  {scim.InvalidValue, "active"},
		`{"active":1}`:                                      {scim.InvalidValue, "active"},
		`{"name":"a"}`:                                      {scim.InvalidValue, "name"},
		`{"name":{"givenName":false}}`:                      {scim.InvalidValue, "name.givenName"},
		`{"emails":{"value":"a"}}`:                          {scim.InvalidValue, "emails"},
		`{"emails":["a"]}`:                                  {scim.InvalidValue, "emails[0]"},
		`{"emails":[{"value":"a"},{"value":2}]}`:            {scim.InvalidValue, "emails[1].value"},
		`{"emails":[{"primary":true},{"primary":"true"}]}`:  {scim.InvalidValue, "emails"},
		`{"schemas":"urn:x"}`:                               {scim.InvalidValue, "schemas"},
		`{"schemas":[1]}`:                                   {scim.InvalidValue, "schemas"},
		`{"userName":"a","username":"b"}`:                   {scim.InvalidSyntax, "userName"},
		`{"userName":"a","userName":"b"}`:                   {scim.InvalidSyntax, ""},
		`{"name":{"a":1,"a":2}}`:                            {scim.InvalidSyntax, ""},
		`{"` + schema.EnterpriseURN + `":"x"}`:              {scim.InvalidValue, schema.EnterpriseURN},
		`{"` + schema.EnterpriseURN + `":{"department":1}}`: {scim.InvalidValue, schema.EnterpriseURN + ":department"},
		`[]`:         {scim.InvalidSyntax, ""},
		`{"a":1} {}`: {scim.InvalidSyntax, ""},
		`{"a":`:      {scim.InvalidSyntax, ""},
		``:           {scim.InvalidSyntax, ""},
		strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40): {scim.InvalidSyntax, ""},
	} {
		_, _, err := read(t, schema.User, sent)
		require.Equal(t, want.scimType, scim.TypeOf(err), sent)
		e, is := errors.AsType[*apperr.Error](err)
		require.True(t, is)
		require.Equal(t, apperr.InvalidParameters, e.Kind)
		require.Equal(t, want.location, e.Faults[0].Location, sent)
	}
	require.Equal(t, scim.InvalidValue, scim.TypeOf(resource.Required(schema.User, resource.Object{"userName": ""})))
	require.ErrorContains(t, resource.Required(schema.Group, resource.Object{}), "displayName")
}

func TestIgnoredIsBounded(t *testing.T) {
	t.Parallel()
	var ignored resource.Ignored
	for i := range 1000 {
		ignored.Add(strings.Repeat("ü", 100) + string(rune('a'+i)))
		ignored.Add(string(rune('a' + i)))
	}
	require.Len(t, ignored.Names(), 50)
	require.Equal(t, strings.Repeat("ü", 64), ignored.Names()[0])
	(*resource.Ignored)(nil).Add("x")
}

func TestProjection(t *testing.T) {
	t.Parallel()
	kind := schema.User.With("urn:example:acme")
	r, err := resource.DecodeObject([]byte(`{"schemas":["urn:x"],"id":"1","externalId":"e","userName":"a","password":"s",
		"name":{"givenName":"b","familyName":"c"},"emails":[{"value":"d","type":"work"},{"value":"e"}],"active":false,
		"groups":[{"value":"7","display":"g"}],"meta":{"resourceType":"User","version":"1"},"` + schema.EnterpriseURN + `":
		{"department":"f","manager":{"value":"2","displayName":"h"}},"urn:example:acme":{"Shoe":{"Size":1,"Red":true}}}`))
	require.NoError(t, err)
	const all = `"schemas":["urn:x"],"id":"1"`
	for _, c := range []struct{ attributes, excluded, want string }{
		{"userName", "", `{` + all + `,"userName":"a"}`},
		{"USERNAME,externalid", "", `{` + all + `,"userName":"a","externalId":"e"}`},
		{" name.givenName , emails.type", "", `{` + all + `,"name":{"givenName":"b"},"emails":[{"type":"work"}]}`},
		{"name", "name.givenName", `{` + all + `,"name":{"familyName":"c"}}`},
		{"groups,password", "", `{` + all + `,"groups":[{"value":"7","display":"g"}]}`},
		{"groups.value", "", `{` + all + `,"groups":[{"value":"7"}]}`},
		{"nobody", "", `{` + all + `}`},
		{"id", "", `{` + all + `}`},
		{schema.EnterpriseURN + ":department", "", `{` + all + `,"` + schema.EnterpriseURN + `":{"department":"f"}}`},
		{
			schema.EnterpriseURN + ":manager.value", "",
			`{` + all + `,"` + schema.EnterpriseURN + `":{"manager":{"value":"2"}}}`,
		},
		{
			strings.ToLower(schema.EnterpriseURN), schema.EnterpriseURN + ":manager",
			`{` + all + `,"` + schema.EnterpriseURN + `":{"department":"f"}}`,
		},
		{"urn:example:acme:shoe.size", "", `{` + all + `,"urn:example:acme":{"Shoe":{"Size":1}}}`},
		{"active,name", "name", `{` + all + `,"active":false}`},
		{"", "id,schemas,externalId,userName,meta,emails,active,name," + schema.EnterpriseURN + ",urn:example:acme",
			`{` + all + `}`},
		{"", "emails.value,name.givenName,meta.version,externalId,active,userName,urn:example:acme:Shoe,groups," +
			schema.EnterpriseURN, `{` + all + `,"name":{"familyName":"c"},"emails":[{"type":"work"}],"meta":{"resourceType":"User"}}`},
	} {
		p := resource.Project(kind, []string{c.attributes}, []string{c.excluded})
		require.JSONEq(t, c.want, toJSON(t, p.Of(kind, r)), "%s | %s", c.attributes, c.excluded)
	}
	whole := resource.Projection{}.Of(kind, r)
	require.NotContains(t, whole, "password")
	require.NotContains(t, whole, "groups")
	require.Len(t, whole, len(r)-2)

	groups, _ := kind.Find("groups")
	require.False(t, resource.Projection{}.Has(groups))
	require.True(t, resource.Project(kind, []string{"groups.display"}, nil).Has(groups))
	members, _ := schema.Group.Find("members")
	require.True(t, resource.Projection{}.Has(members))
	require.False(t, resource.Project(schema.Group, nil, []string{"displayName,MEMBERS"}).Has(members))
	require.False(t, resource.Project(schema.Group, []string{"displayName"}, nil).Has(members))
	require.True(t, resource.Projection{}.IsDefault())
	require.True(t, resource.Project(kind, nil, nil).IsDefault())
	require.False(t, resource.Project(kind, []string{"id"}, nil).IsDefault())
}

func TestClone(t *testing.T) {
	t.Parallel()
	r := resource.Object{"a": []any{resource.Object{"b": "c"}}}
	copied := resource.Clone(r)
	copied["a"].([]any)[0].(resource.Object)["b"] = "d" //nolint:forcetypeassert // a test
	require.Equal(t, resource.Object{"a": []any{resource.Object{"b": "c"}}}, r)
	require.Nil(t, resource.Clone(resource.Object(nil)))
}
