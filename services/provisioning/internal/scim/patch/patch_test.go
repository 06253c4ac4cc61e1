package patch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/patch"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

func decode(t testing.TB, text string) resource.Object {
	t.Helper()
	o, err := resource.DecodeObject([]byte(text))
	require.NoError(t, err)
	return o
}

func toJSON(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// TestPublishedRequests: the requests that vendors publish, and the examples of RFC 7644 §3.5.2, do what they say.
func TestPublishedRequests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*/*.json")
	require.NoError(t, err)
	require.Greater(t, len(files), 30)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var c struct {
			Kind          string
			Members       patch.Members
			Before, After json.RawMessage
			Request       json.RawMessage
			Source        string
		}
		require.NoError(t, json.Unmarshal(text, &c))
		operations, err := patch.Parse(c.Request)
		require.NoError(t, err, file)
		var ignored resource.Ignored
		before, after := decode(t, string(c.Before)), decode(t, string(c.After))
		kept := resource.Clone(before)
		var got resource.Object
		var differs bool
		var members patch.Members
		if c.Kind == "User" {
			got, differs, err = patch.User(schema.User, before, operations, &ignored)
		} else {
			got, differs, members, err = patch.Group(schema.Group, before, operations, &ignored)
		}
		require.NoError(t, err, file)
		require.Equal(t, after, got, file)
		require.Equal(t, c.Members, members, file)
		require.Equal(t, kept, before, file)
		require.NotEqual(t, string(c.Before) == string(c.After), differs, file)
		require.Empty(t, ignored.Names(), file)
	}
}

func apply(t *testing.T, before, operations string) (resource.Object, bool, []string, error) {
	t.Helper()
	ops, err := patch.Parse([]byte(`{"schemas":["` + patch.URN + `"],"Operations":` + operations + `}`))
	if err != nil {
		return nil, false, nil, err
	}
	var ignored resource.Ignored
	r, differs, err := patch.User(schema.User.With("urn:example:acme"), decode(t, before), ops, &ignored)
	return r, differs, ignored.Names(), err
}

const (
	e    = schema.EnterpriseURN
	acme = "urn:example:acme"
)

func TestUser(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, operations, after, ignored string }{
		"names, ops and paths in any case": {
			`{"userName":"a"}`, `[{"OP":"REPLACE","Path":"USERNAME","VALUE":"b"},{"op":"aDD","path":"NAME.givenname","value":"c"}]`,
			`{"userName":"b","name":{"givenName":"c"}}`, "",
		},
		"a complex attribute keeps its other parts": {
			`{"name":{"givenName":"a","familyName":"b"}}`, `[{"op":"replace","path":"name","value":{"GivenName":"c","middleName":null}}]`,
			`{"name":{"givenName":"c","familyName":"b"}}`, "",
		},
		"null removes": {
			`{"title":"a","emails":[{"value":"b"}],"name":{"givenName":"c"},"active":true}`,
			`[{"op":"replace","value":{"title":null,"emails":null,"name":null}},{"op":"replace","path":"active","value":null}]`, `{}`, "",
		},
		"an empty text stays": {`{"title":"a"}`, `[{"op":"replace","path":"title","value":""}]`, `{"title":""}`, ""},
		"remove": {
			`{"title":"a","name":{"givenName":"b","familyName":"c"},"` + e + `":{"department":"d","division":"e"}}`,
			`[{"op":"remove","path":"title"},{"op":"remove","path":"name.givenName"},{"op":"remove","path":"` + e + `:department"},
				{"op":"remove","path":"nickName"},{"op":"remove","path":"name.middleName"},{"op":"remove","path":"emails[type eq \"x\"]"}]`,
			`{"name":{"familyName":"c"},"` + e + `":{"division":"e"}}`, "",
		},
		"the last part of a complex attribute": {
			`{"name":{"givenName":"b"},"` + e + `":{"department":"d"}}`,
			`[{"op":"remove","path":"name.givenName"},{"op":"remove","path":"` + e + `:department"}]`, `{}`, "",
		},
		"an extension as a whole": {
			`{"` + e + `":{"department":"d","division":"e"}}`,
			`[{"op":"replace","path":"` + e + `","value":{"Department":"f","costCenter":"g","floor":1}}]`,
			`{"` + e + `":{"department":"f","division":"e","costCenter":"g"}}`, e + ":floor",
		},
		"an extension removed": {`{"` + e + `":{"department":"d"}}`, `[{"op":"remove","path":"` + e + `"}]`, `{}`, ""},
		"keys without a path": {
			`{}`, `[{"op":"add","value":{"` + strings.ToUpper(e) + `":{"department":"d","manager":"m"},"emails[type eq \"work\"].value":"a",
				"` + schema.UserURN + `:name.givenName":"b","` + schema.UserURN + `":{"title":"t","shoe":1},"hat":2,"x.y":3,"name.z":4,
				"urn:x:y:z":5,"id":"7","meta":{},"schemas":[],"groups":[{"value":"8"}]}}]`,
			`{"` + e + `":{"department":"d","manager":{"value":"m"}},"emails":[{"type":"work","value":"a"}],"name":{"givenName":"b"},"title":"t"}`,
			"hat name.z shoe urn:x:y:z x.y",
		},
		"what clients echo is left alone": {
			`{"title":"a"}`, `[{"op":"replace","path":"id","value":"7"},{"op":"add","path":"groups","value":[{"value":"8"}]},
				{"op":"remove","path":"meta.version"},{"op":"add","path":"schemas","value":["urn:x"]},{"op":"replace","path":"ID","value":{}}]`,
			`{"title":"a"}`, "",
		},
		"a value that is there already": {
			`{"emails":[{"value":"a","type":"work"}],"roles":[{"value":"r"}]}`,
			`[{"op":"add","path":"emails","value":[{"value":"a","type":"work","display":"A"},{"value":"a","type":"home"}]},
				{"op":"add","path":"roles","value":{"value":"r"}}]`,
			`{"emails":[{"value":"a","type":"work","display":"A"},{"value":"a","type":"home"}],"roles":[{"value":"r"}]}`, "",
		},
		"a new primary value ends the old one's primacy": {
			`{"emails":[{"value":"a","primary":true},{"value":"b"}]}`,
			`[{"op":"add","path":"emails","value":[{"value":"c","primary":"True"}]},{"op":"replace","path":"emails[value eq \"b\"].primary","value":true}]`,
			`{"emails":[{"value":"a","primary":false},{"value":"b","primary":true},{"value":"c","primary":false}]}`, "",
		},
		"remove with a value": {
			`{"emails":[{"value":"a","type":"work"},{"value":"a","type":"home"},{"value":"b"}],"addresses":[{"locality":"x","type":"work"},{"locality":"y"}]}`,
			`[{"op":"remove","path":"emails","value":[{"value":"a","type":"home"},{"value":"zz"}]},{"op":"remove","path":"emails","value":{"value":"b"}},
				{"op":"remove","path":"addresses","value":[{"locality":"x"}]}]`,
			`{"emails":[{"value":"a","type":"work"}],"addresses":[{"locality":"y"}]}`, "",
		},
		"a sub-attribute of all values": {
			`{"emails":[{"value":"a","type":"work"},{"value":"b"}]}`, `[{"op":"replace","path":"emails.type","value":"home"},{"op":"remove","path":"emails.display"}]`,
			`{"emails":[{"value":"a","type":"home"},{"value":"b","type":"home"}]}`, "",
		},
		"without its value nothing of a value remains": {
			`{"emails":[{"value":"a","type":"work","primary":true},{"value":"b"}],"addresses":[{"locality":"x","type":"work"}]}`,
			`[{"op":"remove","path":"emails[type eq \"work\"].value"},{"op":"replace","path":"emails[value eq \"b\"].value","value":""},
				{"op":"remove","path":"addresses[type eq \"work\"].locality"}]`,
			`{"addresses":[{"type":"work"}]}`, "",
		},
		"a selected value is removed by null": {
			`{"emails":[{"value":"a","type":"work"}]}`, `[{"op":"replace","path":"emails[type eq \"work\"]","value":null}]`, `{}`, "",
		},
		"made from the filter": {
			`{}`, `[{"op":"replace","path":"addresses[type eq \"work\" and primary eq true].locality","value":"x"},
				{"op":"add","path":"phoneNumbers[type eq \"mobile\"]","value":{"value":"1"}}]`,
			`{"addresses":[{"type":"work","primary":true,"locality":"x"}],"phoneNumbers":[{"type":"mobile","value":"1"}]}`, "",
		},
		"a declared extension": {
			`{"` + acme + `":{"Size":1,"List":[1],"nest":{"a":1,"b":2}}}`,
			`[{"op":"replace","path":"urn:EXAMPLE:acme:size","value":12345678901234567890},{"op":"add","path":"` + acme + `:list","value":2},
				{"op":"add","path":"` + acme + `:list","value":[2,3]},{"op":"remove","path":"` + acme + `:nest.a"},{"op":"add","path":"` + acme + `:nest","value":{"c":3}},
				{"op":"add","path":"` + acme + `:new.x","value":"y"}]`,
			`{"` + acme + `":{"Size":12345678901234567890,"List":[1,2,3],"nest":{"b":2,"c":3},"new":{"x":"y"}}}`, "",
		},
		"members that nothing declares": {
			`{}`, `[{"op":"add","path":"emails","value":[{"value":"a","shoe":1}]},{"op":"add","path":"name","value":{"hat":1,"givenName":"b"}}]`,
			`{"emails":[{"value":"a"}],"name":{"givenName":"b"}}`, "emails[0].shoe name.hat",
		},
	} {
		r, differs, ignored, err := apply(t, c.before, c.operations)
		require.NoError(t, err, name)
		require.Equal(t, decode(t, c.after), r, name)
		require.Equal(t, strings.Fields(c.ignored), append([]string{}, ignored...), name)
		require.Equal(t, c.before != c.after, differs, name)
	}
}

func TestUserRefuses(t *testing.T) {
	t.Parallel()
	before := `{"userName":"a","name":{"givenName":"b"},"emails":[{"value":"c","type":"work"},{"value":"d","type":"home"}],"` + acme + `":{"size":1}}`
	for _, c := range []struct {
		operations string
		err        scim.Type
		location   string
	}{
		{`[]`, scim.InvalidSyntax, "Operations"},
		{`{}`, scim.InvalidSyntax, "Operations"},
		{`[1]`, scim.InvalidSyntax, "Operations[0]"},
		{`[{"op":"move","path":"title"}]`, scim.InvalidSyntax, "Operations[0].op"},
		{`[{"path":"title","value":"x"}]`, scim.InvalidSyntax, "Operations[0].op"},
		{`[{"op":"add","path":"title"}]`, scim.InvalidValue, "Operations[0].value"},
		{`[{"op":"add","value":"x"}]`, scim.InvalidValue, "Operations[0].value"},
		{`[{"op":"add","value":[{}]}]`, scim.InvalidValue, "Operations[0].value"},
		{`[{"op":"add"}]`, scim.InvalidValue, "Operations[0].value"},
		{`[{"op":"remove"}]`, scim.NoTarget, "Operations[0].path"},
		{`[{"op":"remove","path":""}]`, scim.NoTarget, "Operations[0].path"},
		{`[{"op":"remove","path":7}]`, scim.InvalidPath, "Operations[0].path"},
		{`[{"op":"remove","path":"hat"}]`, scim.InvalidPath, "Operations[0].path"},
		{`[{"op":"add","path":"department","value":"x"}]`, scim.InvalidPath, "Operations[0].path"},
		{`[{"op":"add","path":"name[givenName eq \"b\"]","value":{}}]`, scim.InvalidPath, "Operations[0].path"},
		{`[{"op":"add","path":"emails[type eq work]","value":{}}]`, scim.InvalidPath, "Operations[0].path"},
		{`[{"op":"add","path":"emails[hat eq \"x\"]","value":{}}]`, scim.InvalidPath, "Operations[0].path"},
		{`[{"op":"add","value":{"emails[type eq].value":"x"}}]`, scim.InvalidPath, "Operations[0].value"},
		{`[{"op":"replace","path":"emails[type ne \"work\" and type ne \"home\"].value","value":"x"}]`, scim.NoTarget, "Operations[0].path"},
		{`[{"op":"replace","path":"emails[type eq \"a\" or type eq \"b\"]","value":{"value":"x"}}]`, scim.NoTarget, "Operations[0].path"},
		{`[{"op":"replace","path":"` + acme + `:size.x","value":1}]`, scim.NoTarget, "Operations[0].path"},
		{`[{"op":"remove","path":"userName"}]`, scim.Mutability, "Operations[0].path"},
		{`[{"op":"replace","path":"userName","value":""}]`, scim.InvalidValue, "Operations[0].userName"},
		{`[{"op":"replace","value":{"userName":null}}]`, scim.InvalidValue, "Operations[0].userName"},
		{`[{"op":"add","path":"title","value":"x"},{"op":"add","path":"title","value":1}]`, scim.InvalidValue, "Operations[1].title"},
		{`[{"op":"add","path":"name","value":"x"}]`, scim.InvalidValue, "Operations[0].name"},
		{`[{"op":"add","path":"name","value":{"givenName":1}}]`, scim.InvalidValue, "Operations[0].name.givenName"},
		{`[{"op":"add","path":"emails","value":"x"}]`, scim.InvalidValue, "Operations[0].emails[0]"},
		{`[{"op":"add","path":"emails","value":[{"value":"x","primary":true},{"value":"y","primary":true}]}]`, scim.InvalidValue, "Operations[0].emails"},
		{`[{"op":"replace","path":"emails.primary","value":true}]`, scim.InvalidValue, "Operations[0].emails"},
		{`[{"op":"replace","path":"` + e + `","value":"x"}]`, scim.InvalidValue, "Operations[0]." + e},
		{`[{"op":"replace","path":"` + e + `:manager","value":7}]`, scim.InvalidValue, "Operations[0]." + e + ":manager"},
		{`[{"op":"replace","path":"active","value":"maybe"}]`, scim.InvalidValue, "Operations[0].active"},
	} {
		r, _, _, err := apply(t, before, c.operations)
		require.Equal(t, c.err, scim.TypeOf(err), c.operations)
		require.Nil(t, r)
		refusal, is := errors.AsType[*apperr.Error](err)
		require.True(t, is)
		require.Equal(t, c.location, refusal.Faults[0].Location, c.operations)
	}
	roles := make([]string, 501)
	for i := range roles {
		roles[i] = fmt.Sprintf(`{"value":"%d"}`, i)
	}
	for _, operations := range []string{
		`[{"op":"add","path":"roles","value":[` + strings.Join(roles, ",") + `]}]`,
		`[{"op":"add","path":"roles","value":[` + strings.Join(roles[1:], ",") + `]},{"op":"add","path":"roles","value":[{"value":"x"}]}]`,
		`[{"op":"add","path":"roles","value":[` + strings.Join(roles[1:], ",") + `]},{"op":"add","path":"roles[value eq \"x\"].type","value":"y"}]`,
		`[{"op":"add","path":"` + acme + `:list","value":[1]},{"op":"add","path":"` + acme + `:list","value":[` + strings.Join(roles, ",") + `]}]`,
	} {
		_, _, _, err := apply(t, before, operations)
		require.Equal(t, scim.InvalidValue, scim.TypeOf(err))
		require.ErrorContains(t, err, "500 values")
	}
	_, everyone, err := group(t, `[{"op":"add","path":"members","value":[`+strings.Join(roles, ",")+`]}]`)
	require.NoError(t, err)
	require.Len(t, everyone.Add, 501, "a group has any number of members")
	ids, err := patch.MemberIDs(nil)
	require.NoError(t, err)
	require.Empty(t, ids)

	many := `[` + strings.TrimSuffix(strings.Repeat(`{"op":"remove","path":"title"},`, 1001), ",") + `]`
	_, _, _, err = apply(t, before, many)
	require.Equal(t, scim.TooMany, scim.TypeOf(err))
	for _, body := range []string{
		`{"schemas":["urn:x"],"Operations":[{"op":"remove","path":"title"}]}`, `{"schemas":"` + patch.URN + `"}`, `[]`, `{`,
	} {
		_, err := patch.Parse([]byte(body))
		require.Equal(t, scim.InvalidSyntax, scim.TypeOf(err), body)
	}
	_, err = patch.Parse([]byte(`{"operations":[{"op":"remove","path":"title"}]}`))
	require.NoError(t, err, "schemas may be absent")
}

func group(t *testing.T, operations string) (resource.Object, patch.Members, error) {
	t.Helper()
	ops, err := patch.Parse([]byte(`{"Operations":` + operations + `}`))
	if err != nil {
		return nil, patch.Members{}, err
	}
	r, _, members, err := patch.Group(schema.Group, resource.Object{"displayName": "g"}, ops, nil)
	return r, members, err
}

func TestGroup(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		operations string
		want       patch.Members
	}{
		{`[{"op":"add","value":{"members":[{"value":"1"},{"Value":"2","TYPE":"user"}]}}]`, patch.Members{Add: []string{"1", "2"}}},
		{`[{"op":"add","path":"members","value":{"value":"1"}}]`, patch.Members{Add: []string{"1"}}},
		{`[{"op":"add","path":"members","value":[{"value":"1"}]},{"op":"remove","path":"members[value eq \"1\"]"}]`, patch.Members{Remove: []string{"1"}}},
		{`[{"op":"remove","path":"members","value":{"value":"1"}},{"op":"add","path":"members","value":{"value":"1"}}]`, patch.Members{Add: []string{"1"}}},
		{`[{"op":"remove","path":"members"},{"op":"add","path":"members","value":{"value":"1"}}]`, patch.Members{All: true, Add: []string{"1"}}},
		{`[{"op":"add","path":"members","value":{"value":"1"}},{"op":"remove","path":"members"}]`, patch.Members{All: true}},
		{`[{"op":"replace","path":"members","value":[{"value":"1"},{"value":"2"}]},{"op":"remove","path":"members[value eq \"1\"]"}]`, patch.Members{
			All: true, Add: []string{"2"},
		}},
		{`[{"op":"replace","value":{"members":[]}}]`, patch.Members{All: true}},
		{`[{"op":"replace","value":{"members":null}}]`, patch.Members{All: true}},
		{`[{"op":"remove","path":"members","value":[]}]`, patch.Members{}},
		{`[{"op":"add","path":"members","value":[]}]`, patch.Members{}},
		{`[{"op":"remove","path":"members","value":null}]`, patch.Members{All: true}},
		{`[{"op":"remove","path":"members[value eq \"1\" or value eq \"2\"]"}]`, patch.Members{Remove: []string{"1", "2"}}},
		{`[{"op":"remove","path":"members[type eq \"User\" and value eq \"1\"]"}]`, patch.Members{Remove: []string{"1"}}},
		{`[{"op":"remove","path":"members[type eq \"Group\" and value eq \"1\"]"}]`, patch.Members{}},
		{`[{"op":"remove","path":"members[type eq \"User\"]"}]`, patch.Members{All: true}},
		{`[{"op":"remove","path":"members[type eq \"Group\"]"}]`, patch.Members{}},
		{`[{"op":"replace","value":{"` + schema.NodeURN + `":{"code":"x"},"displayName":"g"}}]`, patch.Members{}},
	} {
		r, members, err := group(t, c.operations)
		require.NoError(t, err, c.operations)
		require.Equal(t, c.want, members, c.operations)
		require.Equal(t, resource.Object{"displayName": "g"}, r)
	}
	for operations, want := range map[string]scim.Type{
		`[{"op":"add","path":"members","value":[{"value":"1","type":"Group"}]}]`:    scim.InvalidValue,
		`[{"op":"add","path":"members","value":[{"value":"1","type":1}]}]`:          scim.InvalidValue,
		`[{"op":"add","path":"members","value":[{"display":"x"}]}]`:                 scim.InvalidValue,
		`[{"op":"add","path":"members","value":["1"]}]`:                             scim.InvalidValue,
		`[{"op":"add","path":"members","value":[{"value":1}]}]`:                     scim.InvalidValue,
		`[{"op":"remove","path":"members[value ne \"1\"]"}]`:                        scim.InvalidFilter,
		`[{"op":"remove","path":"members[not (value eq \"1\")]"}]`:                  scim.InvalidFilter,
		`[{"op":"remove","path":"members[value pr]"}]`:                              scim.InvalidFilter,
		`[{"op":"remove","path":"members[display eq \"x\"]"}]`:                      scim.InvalidFilter,
		`[{"op":"remove","path":"members[value sw \"1\"]"}]`:                        scim.InvalidFilter,
		`[{"op":"replace","path":"members[value eq \"1\"]","value":{"value":"2"}}]`: scim.Mutability,
		`[{"op":"remove","path":"members.value"}]`:                                  scim.InvalidPath,
		`[{"op":"replace","path":"displayName","value":""}]`:                        scim.InvalidValue,
		`[{"op":"remove","path":"displayName"}]`:                                    scim.Mutability,
		`[{"op":"replace","path":"` + schema.NodeURN + `:code","value":"x"}]`:       scim.Mutability,
		`[{"op":"remove","path":"` + schema.NodeURN + `"}]`:                         scim.Mutability,
		`[{"op":"add","path":"userName","value":"x"}]`:                              scim.InvalidPath,
	} {
		_, _, err := group(t, operations)
		require.Equal(t, want, scim.TypeOf(err), operations)
	}
}
