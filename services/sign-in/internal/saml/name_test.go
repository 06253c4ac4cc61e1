package saml_test

import (
	"fmt"
	"strings"
	"testing"

	crewjam "github.com/crewjam/saml"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

const statusPrefix = "urn:oasis:names:tc:SAML:2.0:status:"

// name signs in with a NameIDPolicy and returns the name and the assertion.
func (w *world) name(policy string, edit func(*protocol.Person)) *crewjam.NameID {
	w.t.Helper()
	in := post(w.authn(`ID="n`+fmt.Sprint(w.counter())+`"`, policy))
	r := w.sso(in)
	a := w.grant(r, edit)
	assertion, err := accept(w.sp(func(sp *crewjam.ServiceProvider) { sp.AllowIDPInitiated = true }), a)
	require.NoError(w.t, err)
	return assertion.Subject.NameID
}

func policy(format string) string { return `<samlp:NameIDPolicy Format="` + format + `"/>` }

func TestNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sub := func(p *protocol.Person) { p.SubAccount = &protocol.SubAccount{Account: "shop-li", DisplayName: "Li"} }
	for _, c := range []struct {
		policy, configured string
		edit               func(*protocol.Person)
		format, value      string // the value is a regular expression
	}{
		{"", unspecified, nil, unspecified, "li.wei"},
		{"", "", nil, unspecified, "li.wei"},
		{"", unspecified, sub, unspecified, "shop-li"},
		{policy(""), email, nil, email, "Li@example.com"},
		{policy(unspecified), email, nil, email, "Li@example.com"},
		{policy("urn:oasis:names:tc:SAML:2.0:nameid-format:unspecified"), persistent, nil, persistent, "_[0-9a-f]{40}"},
		{policy(email), unspecified, sub, email, "Li@example.com"},
		{policy(persistent), unspecified, nil, persistent, "_[0-9a-f]{40}"},
		{policy(transient), unspecified, nil, transient, "_[0-9a-f]{40}"},
		{
			`<samlp:NameIDPolicy SPNameQualifier="` + entity + `" AllowCreate="true"/>`, email, nil,
			email, "Li@example.com",
		},
	} {
		w.client.SAML.NameIDFormat = c.configured
		got := w.name(c.policy, c.edit)
		require.Equal(t, c.format, got.Format, "%s %s", c.policy, c.configured)
		require.Regexp(t, "^"+c.value+"$", got.Value)
	}
}

func TestOpaqueNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session2 := func(p *protocol.Person) { p.SessionID = "session-2" }
	other := func(p *protocol.Person) { p.UserID, p.SessionID = "1048578", "session-3" }
	sub := func(p *protocol.Person) { p.SubAccount = &protocol.SubAccount{Account: "shop-li"} }
	first := w.name(policy(persistent), nil)
	require.Equal(t, []string{issuer + "/saml/metadata", entity}, []string{first.NameQualifier, first.SPNameQualifier})
	require.Equal(t, first.Value, w.name(policy(persistent), session2).Value, "the same for ever")
	require.NotEqual(t, first.Value, w.name(policy(persistent), other).Value)
	require.NotEqual(t, first.Value, w.name(policy(persistent), sub).Value, "an account of its own")
	passing := w.name(policy(transient), nil)
	require.Equal(t, passing.Value, w.name(policy(transient), nil).Value, "the same in a session")
	require.NotEqual(t, passing.Value, w.name(policy(transient), session2).Value)
	require.NotEqual(t, first.Value, passing.Value)

	w.client.SAML.SPEntity = "https://sp.example.com/another"
	r, err := w.provider.Start(w.ctx, "2001", "")
	require.NoError(t, err)
	w.client.SAML.NameIDFormat = persistent
	require.NotContains(t, response(t, w.grant(r, nil)), first.Value, "another application, another name")
}

func TestNamesThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, policy := range []string{
		policy("urn:oasis:names:tc:SAML:1.1:nameid-format:X509SubjectName"),
		policy("urn:oasis:names:tc:SAML:1.1:nameid-format:WindowsDomainQualifiedName"),
		policy("urn:oasis:names:tc:SAML:2.0:nameid-format:kerberos"),
		policy("urn:oasis:names:tc:SAML:2.0:nameid-format:encrypted"), policy("x"),
		`<samlp:NameIDPolicy SPNameQualifier="https://other.example"/>`,
	} {
		_, err := w.provider.SSO(w.ctx, issuer, post(w.authn("", policy)))
		requireAnswer(t, err, "Requester", "InvalidNameIDPolicy")
	}
	nobody := func(p *protocol.Person) { p.User = []byte(`{"username":"li.wei","email":""}`) }
	a := w.grant(w.sso(post(w.authn("", policy(email)))), nobody)
	requireStatus(t, a, "Responder", "InvalidNameIDPolicy")
	w.client.SAML.NameIDFormat = "urn:example:unknown"
	requireStatus(t, w.grant(w.sso(post(w.authn("", ""))), nil), "Responder", "InvalidNameIDPolicy")
}

func TestSubject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	subject := func(format, value string) string {
		return `<saml:Subject><saml:NameID Format="` + format + `">` + value + `</saml:NameID></saml:Subject>`
	}
	for elements, second := range map[string]string{
		subject(unspecified, "li.wei"):                        "",
		subject(email, "someone@example.com"):                 "", // another format: only proposed
		subject(unspecified, "admin"):                         "UnknownPrincipal",
		subject("", "admin"):                                  "UnknownPrincipal",
		subject(email, "li@EXAMPLE.com") + policy(email):      "",
		subject(email, "someone@example.com") + policy(email): "UnknownPrincipal",
	} {
		r := w.sso(post(w.authn("", elements)))
		require.NotEmpty(t, r.LoginHint)
		a := w.grant(r, nil)
		if second == "" {
			require.Equal(t, statusPrefix+"Success", statusOf(t, a).Value, elements)
		} else {
			requireStatus(t, a, "Responder", second)
		}
	}
}

func TestAttributes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sub := func(p *protocol.Person) { p.SubAccount = &protocol.SubAccount{Account: "shop-li", DisplayName: "Li"} }
	for _, c := range []struct {
		value string
		edit  func(*protocol.Person)
		want  []string
	}{
		{"email", nil, []string{"Li@example.com"}},
		{"user_id", nil, []string{"1048577"}},
		{"id", nil, []string{"1048577"}},
		{"email_verified", nil, []string{"true"}},
		{"employee_number", nil, nil}, // has no value
		{"mobile", nil, nil},          // is not in the record
		{"groups", nil, []string{"company/rd", "company"}},
		{"sub_account", nil, nil},
		{"sub_account.display_name", nil, nil},
		{"sub_account", sub, []string{"shop-li"}},
		{"sub_account.display_name", sub, []string{"Li"}},
		{"free_ext_props.n", nil, []string{"9007199254740993"}},
		{"free_ext_props.x.y", nil, []string{"a", "b"}},
		{"free_ext_props.x", nil, []string{`{"y":["a","b"]}`}},
		{"free_ext_props.d.e", nil, []string{"dotted"}},
		{"free_ext_props.none", nil, nil},
		{"free_ext_props.x.none", nil, nil},
		{"sys_ext_props.x", nil, nil},
		{"email.x", nil, []string{"email.x"}},
		{"Email", nil, []string{"Email"}},
		{"password", nil, []string{"password"}},
		{"arn:aws:iam::1:role/x", nil, []string{"arn:aws:iam::1:role/x"}},
	} {
		w.client.SAML.ResponseAttributes = []questions.Attribute{{Attribute: "a", Value: c.value}}
		r, err := w.provider.Start(w.ctx, "2001", "")
		require.NoError(t, err)
		sp := w.sp(func(sp *crewjam.ServiceProvider) { sp.AllowIDPInitiated = true })
		assertion, err := accept(sp, w.grant(r, c.edit))
		require.NoError(t, err)
		if c.want == nil {
			require.Empty(t, assertion.AttributeStatements, c.value) // an empty one breaks the schema
			continue
		}
		var got []string
		for _, v := range assertion.AttributeStatements[0].Attributes[0].Values {
			got = append(got, v.Value)
		}
		require.Equal(t, c.want, got, c.value)
	}
}

func TestAttributesWithOneNameOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.client.SAML.ResponseAttributes = []questions.Attribute{
		{Attribute: "email"}, {Value: "username", NameFormat: "uri"},
	}
	r, err := w.provider.Start(w.ctx, "2001", "")
	require.NoError(t, err)
	text := response(t, w.grant(r, nil))
	require.Contains(t, text, `<saml:Attribute Name="email"><saml:AttributeValue>Li@example.com</saml:AttributeValue>`)
	require.Contains(t, text, `<saml:Attribute Name="username" `+
		`NameFormat="urn:oasis:names:tc:SAML:2.0:attrname-format:uri">`)
}

func TestContexts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const (
		mfa      = "https://refeds.org/profile/mfa"
		classes  = "urn:oasis:names:tc:SAML:2.0:ac:classes:"
		password = classes + "PasswordProtectedTransport"
		aal1     = "urn:idplatform:aal:1"
		aal2     = "urn:idplatform:aal:2"
	)
	for _, c := range []struct {
		comparison string
		asked      []string
		acr        string   // of the person
		needs      []string // of the flow
		class      string   // "" if it is not met; "-" if it can never be
	}{
		{"", []string{password}, aal1, nil, password},
		{"exact", []string{password}, aal2, nil, password},
		{"exact", []string{classes + "Password", password}, aal1, nil, classes + "Password"},
		{"exact", []string{classes + "X509", password}, aal1, nil, password},
		{"exact", []string{classes + "unspecified"}, aal1, nil, classes + "unspecified"},
		{"exact", []string{mfa}, aal1, []string{aal2, "phr"}, ""},
		{"exact", []string{mfa}, aal2, []string{aal2, "phr"}, mfa},
		{"exact", []string{mfa}, "phr", []string{aal2, "phr"}, mfa},
		{"exact", []string{mfa, password}, aal1, nil, password},
		{"exact", []string{mfa, password}, aal2, nil, mfa},
		{"exact", []string{"phr"}, aal2, []string{"phr"}, ""},
		{"exact", []string{"phr"}, "phr", []string{"phr"}, "phr"},
		{"minimum", []string{password}, aal2, nil, password},
		{"minimum", []string{aal2}, "phr", []string{aal2, "phr"}, aal2},
		{"maximum", []string{password}, aal2, nil, password},
		{"better", []string{password}, aal1, []string{aal2, "phr"}, ""},
		{"better", []string{password}, aal2, []string{aal2, "phr"}, mfa},
		{"better", []string{"phr"}, "phr", nil, "-"},
		{"exact", []string{classes + "X509"}, aal1, nil, "-"},
		{"exact", nil, aal1, nil, "-"},
		{"worse", []string{password}, aal1, nil, "-"},
	} {
		elements := `<samlp:RequestedAuthnContext>`
		if c.comparison != "" {
			elements = `<samlp:RequestedAuthnContext Comparison="` + c.comparison + `">`
		}
		for _, class := range c.asked {
			elements += "<saml:AuthnContextClassRef>" + class + "</saml:AuthnContextClassRef>"
		}
		r, err := w.provider.SSO(w.ctx, issuer, post(w.authn("", elements+"</samlp:RequestedAuthnContext>")))
		if c.class == "-" {
			requireAnswer(t, err, "Requester", "NoAuthnContext")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.needs, r.ACR, elements)
		require.Equal(t, len(c.needs) > 0, r.ACREssential)
		a := w.grant(r, func(p *protocol.Person) { p.ACR = c.acr })
		if c.class == "" {
			requireStatus(t, a, "Responder", "NoAuthnContext")
			continue
		}
		require.Contains(t, response(t, a), ">"+c.class+"</saml:AuthnContextClassRef>", elements)
	}
}

func TestConfiguredContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const classes, mfa = "urn:oasis:names:tc:SAML:2.0:ac:classes:", "https://refeds.org/profile/mfa"
	for _, c := range []struct {
		configured string
		amr        []string
		acr, class string
	}{
		{"", []string{"pwd"}, "urn:idplatform:aal:1", classes + "PasswordProtectedTransport"},
		{"", []string{"swk"}, "phr", classes + "unspecified"},
		{"urn:example:own", []string{"pwd"}, "", "urn:example:own"},
		{mfa, []string{"pwd", "otp"}, "urn:idplatform:aal:2", mfa},
		{mfa, []string{"pwd"}, "urn:idplatform:aal:1", classes + "PasswordProtectedTransport"},
	} {
		w.client.SAML.AuthnContextClassRef = c.configured
		a := w.grant(w.sso(post(w.authn("", ""))), func(p *protocol.Person) { p.ACR, p.AMR = c.acr, c.amr })
		require.Contains(t, response(t, a), ">"+c.class+"</saml:AuthnContextClassRef>", c.configured)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for attributes, want := range map[string][2]bool{
		"": {}, `ForceAuthn="true"`: {true, false}, `ForceAuthn="1" IsPassive="1"`: {true, true},
		`IsPassive="true"`: {false, true}, `ForceAuthn="false" IsPassive="0"`: {},
	} {
		r := w.sso(post(w.authn(attributes, "")))
		require.Equal(t, want, [2]bool{r.Fresh, r.Passive}, attributes)
	}
	for binding, good := range map[string]bool{"HTTP-POST": true, "HTTP-Artifact": false, "PAOS": false} {
		_, err := w.provider.SSO(w.ctx, issuer, post(w.authn(
			`ProtocolBinding="urn:oasis:names:tc:SAML:2.0:bindings:`+binding+`"`, "")))
		if good {
			require.NoError(t, err)
		} else {
			requireAnswer(t, err, "Requester", "UnsupportedBinding")
		}
	}
}

func requireStatus(t testing.TB, a protocol.Answer, first, second string) {
	t.Helper()
	got := statusOf(t, a)
	require.Equal(t, statusPrefix+first, got.Value)
	require.NotNil(t, got.StatusCode)
	require.Equal(t, statusPrefix+second, got.StatusCode.Value)
	require.False(t, strings.Contains(response(t, a), "<saml:Assertion"))
}
