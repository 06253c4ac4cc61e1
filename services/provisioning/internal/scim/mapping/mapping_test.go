package mapping_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/mapping"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/patch"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

const (
	e    = schema.EnterpriseURN
	acme = "urn:example:acme:2.0:User"
)

var kind = schema.User.With(acme)

func decode(t *testing.T, text string) resource.Object {
	t.Helper()
	o, err := resource.DecodeObject([]byte(text))
	require.NoError(t, err)
	return o
}

func toJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.MarshalIndent(v, "", "  ")
	require.NoError(t, err)
	return append(text, '\n')
}

// stored is the record that a profile makes.
func stored(t *testing.T, p mapping.Profile) mapping.User {
	t.Helper()
	u := mapping.User{
		ID: "1048577", Version: 3,
		TimeCreated: clock.FromMillis(1264222582000), TimeModified: clock.FromMillis(1305261754000),
		Username: p.Username, DisplayName: p.DisplayName, Email: p.Email, Mobile: p.Mobile,
		EmployeeNumber: p.EmployeeNumber, Locale: p.Locale, Zoneinfo: p.Zoneinfo, Status: mapping.Active,
		SysExtProps: json.RawMessage(`{"other":1}`),
	}
	if p.Active != nil && !*p.Active {
		u.Status = mapping.Disabled
	}
	if p.SCIM != nil {
		u.SysExtProps = toJSON(t, resource.Object{"other": 1, "scim": p.SCIM})
	}
	return u
}

// TestExamples: the examples of RFC 7643 §8 as records, and read back as they came.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, section := range []string{"8.1", "8.2", "8.3"} {
		text, err := os.ReadFile("../resource/testdata/rfc7643-" + section + ".json")
		require.NoError(t, err)
		r, err := resource.Read(kind, decode(t, string(text)), nil)
		require.NoError(t, err)
		profile, err := mapping.ToProfile(kind, r)
		require.NoError(t, err)
		u := stored(t, profile)
		basic.Golden(t, "testdata/rfc7643-"+section+".record.json.golden", toJSON(t, u))

		place := mapping.Place{Base: "https://example.com/v2", ExternalID: "701984"}
		back, err := mapping.FromUser(kind, &u, mapping.UserView{Place: place})
		require.NoError(t, err)
		basic.Golden(t, "testdata/rfc7643-"+section+".resource.json.golden", toJSON(t, back))
		again, err := resource.Read(kind, back, nil)
		require.NoError(t, err)
		delete(r, "password")
		for name, v := range r {
			require.Equal(t, v, again[name], name)
		}
	}
}

func TestProfile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sent, want string }{
		"displayName": {`{"userName":"u","displayName":"d","name":{"formatted":"f"}}`, `{"username":"u","display_name":"d"}`},
		"formatted":   {`{"userName":"u","displayName":" ","name":{"formatted":"f","givenName":"g"}}`, `{"username":"u","display_name":"f"}`},
		"given and family name": {
			`{"userName":"u","name":{"givenName":"g","familyName":"f"}}`, `{"username":"u","display_name":"g f"}`,
		},
		"family name alone": {`{"userName":"u","name":{"familyName":"f"}}`, `{"username":"u","display_name":"f"}`},
		"no name":           {`{"userName":"u"}`, `{"username":"u","display_name":"u"}`},
		"primary email": {
			`{"emails":[{"value":"a","type":"work"},{"value":"b","primary":true}]}`, `{"email":"b"}`,
		},
		"email for work":        {`{"emails":[{"value":"a"},{"value":" b ","type":"Work"}]}`, `{"email":"b"}`},
		"first email":           {`{"emails":[{"type":"work"},{"value":"a","type":"home"},{"value":"b"}]}`, `{"email":"a"}`},
		"mobile":                {`{"phoneNumbers":[{"value":"+1 555","type":"work"},{"value":"+49 (170) 123-45","type":"mobile"}]}`, `{"mobile":"+4917012345"}`},
		"primary mobile":        {`{"phoneNumbers":[{"value":"+11","type":"mobile"},{"value":"+22","type":"mobile","primary":true}]}`, `{"mobile":"+22"}`},
		"no mobile of type":     {`{"phoneNumbers":[{"value":"+1 555","primary":true}]}`, `{}`},
		"mobile that is no one": {`{"phoneNumbers":[{"value":"555-555-4444","type":"mobile"}]}`, `{}`},
		"the rest": {
			`{"locale":"en-US","timezone":"Europe/Berlin","` + e + `":{"employeeNumber":"7"}}`,
			`{"locale":"en-US","zoneinfo":"Europe/Berlin","employee_number":"7"}`,
		},
	} {
		p, err := mapping.ToProfile(kind, decode(t, c.sent))
		require.NoError(t, err, name)
		var want mapping.Profile
		require.NoError(t, json.Unmarshal([]byte(c.want), &want))
		p.SCIM = nil
		require.Equal(t, want, p, name)
	}
}

func TestProps(t *testing.T) {
	t.Parallel()
	r := decode(t, `{"userName":"u","displayName":"d","active":false,"locale":"de","timezone":"UTC","password":"p",
		"externalId":"x","id":"9","meta":{},"schemas":[],"groups":[{"value":"1"}],"title":"t","name":{"givenName":"g"},
		"emails":[{"value":"a"}],"`+e+`":{"employeeNumber":"7","department":"D"},"`+acme+`":{"big":12345678901234567890}}`)
	p, err := mapping.ToProfile(kind, r)
	require.NoError(t, err)
	require.False(t, *p.Active)
	require.Equal(t, "p", p.Password)
	require.Equal(t, decode(t, `{"title":"t","name":{"givenName":"g"},"emails":[{"value":"a"}],"enterprise":{"department":"D"},
		"`+acme+`":{"big":12345678901234567890}}`), p.SCIM)

	p, err = mapping.ToProfile(kind, decode(t, `{"userName":"u","`+e+`":{"employeeNumber":"7"}}`))
	require.NoError(t, err)
	require.Nil(t, p.SCIM)
	require.Nil(t, p.Active)

	_, err = mapping.ToProfile(kind, resource.Object{"title": strings.Repeat("a", mapping.MaxProps)})
	require.Equal(t, scim.InvalidValue, scim.TypeOf(err))
	_, err = mapping.ToProfile(kind, resource.Object{"title": strings.Repeat("a", mapping.MaxProps-20)})
	require.NoError(t, err)
}

func TestFromUser(t *testing.T) {
	t.Parallel()
	read := func(u mapping.User, view mapping.UserView) resource.Object {
		r, err := mapping.FromUser(kind, &u, view)
		require.NoError(t, err)
		return r
	}
	lists := func(scim, email, mobile string) (emails, phones any) {
		props := json.RawMessage(`{"scim":` + scim + `}`)
		r := read(mapping.User{Email: email, Mobile: mobile, SysExtProps: props}, mapping.UserView{})
		return r["emails"], r["phoneNumbers"]
	}
	for name, c := range map[string]struct{ scim, email, mobile, emails, phones string }{
		"as sent": {
			`{"emails":[{"value":"A@x","type":"work"},{"value":"b@x"}],"phoneNumbers":[{"value":"+1 (5)","type":"mobile"},{"value":"x"}]}`,
			"a@x", "+15", `[{"value":"A@x","type":"work"},{"value":"b@x"}]`, `[{"value":"+1 (5)","type":"mobile"},{"value":"x"}]`,
		},
		"changed by others": {
			`{"emails":[{"value":"a@x","type":"work"},{"value":"b@x"}],"phoneNumbers":[{"value":"x"},{"value":"+15","type":"mobile"}]}`,
			"c@x", "+16", `[{"value":"c@x","type":"work"},{"value":"b@x"}]`, `[{"value":"x"},{"value":"+16","type":"mobile"}]`,
		},
		"removed by others": {
			`{"emails":[{"value":"a@x","type":"work"},{"value":"b@x"}],"phoneNumbers":[{"value":"+15","type":"mobile"}]}`,
			"", "", `[{"value":"b@x"}]`, `null`,
		},
		"never sent":        {`{}`, "a@x", "+15", `[{"value":"a@x","type":"work","primary":true}]`, `[{"value":"+15","type":"mobile"}]`},
		"none":              {`{}`, "", "", `null`, `null`},
		"no E.164, so kept": {`{"phoneNumbers":[{"value":"5-5","type":"mobile"}]}`, "", "", `null`, `[{"value":"5-5","type":"mobile"}]`},
		"no mobile sent":    {`{"phoneNumbers":[{"value":"1","type":"work"}]}`, "", "+15", `null`, `[{"value":"1","type":"work"},{"value":"+15","type":"mobile"}]`},
	} {
		emails, phones := lists(c.scim, c.email, c.mobile)
		require.JSONEq(t, c.emails, string(toJSON(t, emails)), name)
		require.JSONEq(t, c.phones, string(toJSON(t, phones)), name)
	}

	for status, want := range map[string]bool{"1": true, "0": false, "resigned": false} {
		require.Equal(t, want, read(mapping.User{Status: status}, mapping.UserView{})["active"])
	}
	view := mapping.UserView{
		Place:   mapping.Place{Base: "https://id/scim/v2", Version: `W/"7"`},
		Groups:  []mapping.GroupOf{{ID: "5", Display: "G"}, {ID: "6"}},
		Manager: func(id string) (string, bool) { return "Boss", id == "2" },
	}
	r := read(mapping.User{ID: "1", SysExtProps: json.RawMessage(`{"scim":{"enterprise":{"manager":{"value":"2","$ref":"old"}}}}`)}, view)
	require.JSONEq(t, `[{"value":"5","$ref":"https://id/scim/v2/Groups/5","display":"G","type":"direct"},
		{"value":"6","$ref":"https://id/scim/v2/Groups/6","type":"direct"}]`, string(toJSON(t, r["groups"])))
	require.JSONEq(t, `{"manager":{"value":"2","$ref":"https://id/scim/v2/Users/2","displayName":"Boss"}}`, string(toJSON(t, r[e])))
	require.Equal(t, []any{schema.UserURN, e}, r["schemas"])
	meta, _ := r["meta"].(resource.Object)
	require.Equal(t, `W/"7"`, meta["version"])
	require.Equal(t, "https://id/scim/v2/Users/1", meta["location"])
	r = read(mapping.User{SysExtProps: json.RawMessage(`{"scim":{"enterprise":{"manager":{"value":"x","$ref":"as sent"}}}}`)}, view)
	require.JSONEq(t, `{"manager":{"value":"x","$ref":"as sent"}}`, string(toJSON(t, r[e])))

	r = read(mapping.User{Username: "u", SysExtProps: json.RawMessage(`{"scim":{"userName":"forged","id":"9","groups":[],"hat":1,"urn:x":{}}}`)},
		mapping.UserView{})
	require.Equal(t, "u", r["userName"])
	for _, name := range []string{"groups", "hat", "urn:x"} {
		require.NotContains(t, r, name)
	}
	_, err := mapping.FromUser(kind, &mapping.User{SysExtProps: json.RawMessage(`{"scim":7}`)}, mapping.UserView{})
	require.Error(t, err)
}

// TestPatchOfNothingChangesNothing: what is read and patched without effect gives the same profile.
func TestPatchOfNothingChangesNothing(t *testing.T) {
	t.Parallel()
	p, err := mapping.ToProfile(kind, decode(t, `{"userName":"u","active":true,"emails":[{"value":"a@x","type":"home"}],
		"phoneNumbers":[{"value":"+1 5","type":"mobile"}],"title":"t","`+e+`":{"employeeNumber":"7","manager":{"value":"2"}}}`))
	require.NoError(t, err)
	u := stored(t, p)
	before, err := mapping.FromUser(kind, &u, mapping.UserView{})
	require.NoError(t, err)
	after, differs, err := patch.User(kind, before, []patch.Operation{
		{Op: patch.Replace, Path: "title", Value: "t"}, {Op: patch.Replace, Path: "id", Value: "8"},
		{Op: patch.Add, Path: "emails", Value: []any{resource.Object{"value": "a@x", "type": "home"}}},
	}, nil)
	require.NoError(t, err)
	require.False(t, differs)
	again, err := mapping.ToProfile(kind, after)
	require.NoError(t, err)
	require.Equal(t, p, again)
}

func TestRestrict(t *testing.T) {
	t.Parallel()
	before := decode(t, `{"userName":"a","displayName":"b","active":true,"title":"t","emails":[{"value":"c"}],
		"`+e+`":{"employeeNumber":"1","department":"d"},"`+acme+`":{"x":1}}`)
	changed := decode(t, `{"userName":"A","active":false,"emails":[{"value":"C"}],"externalId":"x","password":"p",
		"nickName":"n","`+e+`":{"employeeNumber":"2"},"`+acme+`":{"x":2}}`)
	for owns, want := range map[string]struct{ r, ignored string }{
		strings.Join(mapping.Owned(), " "): {string(toJSON(t, changed)), ""},
		"": {`{"userName":"a","displayName":"b","active":true,"title":"t","emails":[{"value":"c"}],"externalId":"x","password":"p",
			"` + e + `":{"employeeNumber":"1","department":"d"},"` + acme + `":{"x":1}}`,
			"active displayName emails nickName title " + acme + " userName " +
				e + ":department " + e + ":employeeNumber"},
		"username email employee_number status": {`{"userName":"A","displayName":"b","active":false,"title":"t",
			"emails":[{"value":"C"}],"externalId":"x","password":"p","` + e + `":{"employeeNumber":"2","department":"d"},"` + acme + `":{"x":1}}`,
			"displayName nickName title " + acme + " " + e + ":department"},
		"sys_ext_props.scim": {`{"userName":"a","displayName":"b","active":true,"nickName":"n","emails":[{"value":"c"}],
			"externalId":"x","password":"p","` + e + `":{"employeeNumber":"1"},"` + acme + `":{"x":2}}`,
			"active displayName emails userName " + e + ":employeeNumber"},
	} {
		r, ignored := mapping.Restrict(kind, before, changed, strings.Fields(owns))
		require.JSONEq(t, want.r, string(toJSON(t, r)), owns)
		require.ElementsMatch(t, strings.Fields(want.ignored), ignored, owns)
	}
	none, ignored := mapping.Restrict(kind, resource.Object{}, decode(t, `{"`+e+`":{"department":"d"}}`), nil)
	require.Empty(t, none)
	require.Len(t, ignored, 1)
}

func TestAttributeOf(t *testing.T) {
	t.Parallel()
	for member, want := range map[string]string{
		"username": "userName", "mobile": "phoneNumbers", "employee_number": e + ":employeeNumber", "gender": "gender",
	} {
		require.Equal(t, want, mapping.AttributeOf(member))
	}
	for _, member := range mapping.Owned() {
		require.NotContains(t, member, ":")
	}
}

func TestFromNode(t *testing.T) {
	t.Parallel()
	n := mapping.Node{
		ID: "9", Version: 2, Code: "c", Name: "N", ParentID: "5", Path: []string{"1", "5", "9"}, IsPointer: "0",
	}
	view := mapping.GroupView{
		Place:   mapping.Place{Base: "https://id/scim/v2", ExternalID: "x"},
		Members: []mapping.Member{{ID: "7", Display: "D"}, {ID: "8"}},
	}
	basic.Golden(t, "testdata/group.json.golden", toJSON(t, mapping.FromNode(schema.Group, &n, view)))
	require.True(t, n.IsGroup())

	n.Path, n.ParentID, view.Members = []string{"1", "9"}, "1", nil
	r := mapping.FromNode(schema.Group, &n, view)
	require.NotContains(t, r, "members")
	require.Equal(t, resource.Object{"code": "c", "path": []any{"9"}}, r[schema.NodeURN], "the root is no group")
	require.True(t, n.IsGroup())

	n.IsPointer = "1"
	require.False(t, n.IsGroup())
	require.False(t, (&mapping.Node{Path: []string{"1"}}).IsGroup())
	require.NotPanics(t, func() { mapping.FromNode(schema.Group, &mapping.Node{}, view) })
}

func TestE164(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		"+8613800000000": "+8613800000000", "+1 (555) 010-9999": "+15550109999", "tel:+1-201-555-0123": "+12015550123",
		"+1\u00a0555": "+1555", "[+49] 170": "+49170",
		"": "", "555-555-4444": "", "+0123": "", "+1": "", "+1234567890123456": "", "+1.555": "", "+1 555 x9": "", "++15": "",
	} {
		require.Equal(t, want, mapping.E164(sent), sent)
	}
}
