package identitysources_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/questions"
)

func TestAnswerLoginTemplate(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	of := func(tenant, code string) questions.LoginTemplate {
		t.Helper()
		answer, err := questions.LoginTemplateOf.Ask(system(t, tenant), s.Deps.Bus, questions.TemplateCode{Code: code})
		require.NoError(t, err)
		return answer
	}
	none := questions.LoginTemplate{Steps: []questions.LoginStep{}}
	require.Equal(t, none, of("acme", ""), "no default")
	for code, kind := range map[string]string{"pwd": "password", "otp": "otp", "sms": "sms"} {
		policy := object{}
		if kind == "otp" {
			policy["digits"] = 8
		}
		c.Post(methodsPath, object{"code": code, "name": code, "type": kind, "policy": policy,
			"factor": map[bool]string{true: "2", false: "1"}[kind == "otp"]}).OK(nil)
	}
	sms := c.Get(methodsPath + "?code=sms").Object()["items"].([]any)[0].(object)
	c.Post(methodsPath+"/"+id(sms)+"/disable", nil).OK(nil)
	made := c.Post("/v1/auth-templates", object{"code": "strong", "name": "Strong", "steps": []object{
		{"methods": []string{"pwd"}, "required": true}, {"methods": []string{"otp", "sms"}, "required": false},
		{"methods": []string{"otp"}, "required": true, "grace_days": 7, "when": "!known_browser"},
		{"methods": []string{"otp"}, "enrol": "off"},
	}}).Object()
	pwd := []questions.LoginMethod{{Code: "pwd", Type: "password", Policy: json.RawMessage("{}")}}
	otp := []questions.LoginMethod{{
		Code: "otp", Type: "otp", Second: true, Policy: json.RawMessage(`{"digits":8}`),
	}}
	want := questions.LoginTemplate{Found: true, ID: id(made), Code: "strong", Steps: []questions.LoginStep{
		{Required: true, Methods: pwd, Enrol: "demand"},
		{Methods: otp, Enrol: "offer"}, // sms is disabled
		{Required: true, Methods: otp, Enrol: "demand", GraceDays: 7, When: "!known_browser"},
		{Methods: otp, Enrol: "off"},
	}}
	require.Equal(t, want, of("acme", "strong"))
	require.Equal(t, none, of("acme", "weak"))
	require.Equal(t, none, of("globex", "strong"))
	require.Equal(t, none, of("acme", ""))
	c.Post("/v1/auth-templates/"+id(made)+"/default", nil).OK(nil)
	require.Equal(t, want, of("acme", ""))
}

// Of the methods whose sign-in happens elsewhere, the template has the connections that are enabled, in their order.
func TestAnswerLoginTemplateWithConnections(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	var ids []string
	for _, name := range []string{"One", "Two", "Three", ""} {
		made := c.Post(connectionsPath, object{"provider_code": "oidc", "display_name": name, "config_fields": object{
			"Issuer": "https://login.acme.test", "ClientId": "idplatform",
		}}).Object()
		ids = append(ids, id(made))
	}
	c.Post(connectionsPath+"/"+ids[1]+"/disable", nil).OK(nil)
	policy := object{"link": "verified_email", "domains": []string{"acme.test"}}
	c.Post(methodsPath, object{"code": "sso", "name": "SSO", "type": "enterprise", "policy": policy,
		"connection_ids": []string{ids[3], ids[1], ids[0]}}).OK(nil)
	c.Post(methodsPath, object{"code": "pwd", "name": "Password", "type": "password",
		"connection_ids": []string{ids[2]}}).OK(nil)
	c.Post("/v1/auth-templates", object{"code": "staff", "name": "Staff", "steps": []object{
		{"methods": []string{"pwd", "sso"}, "required": true},
	}}).OK(nil)
	answer, err := questions.LoginTemplateOf.Ask(system(t, "acme"), s.Deps.Bus, questions.TemplateCode{Code: "staff"})
	require.NoError(t, err)
	require.Len(t, answer.Steps, 1)
	of := func(id, name string) questions.Connection {
		return questions.Connection{ID: id, ProviderCode: "oidc", Name: name}
	}
	require.Equal(t, []questions.LoginMethod{
		{Code: "pwd", Type: "password", Policy: json.RawMessage("{}")}, {
			Code: "sso", Type: "enterprise",
			Policy:      json.RawMessage(`{"domains":["acme.test"],"link":"verified_email"}`),
			Connections: []questions.Connection{of(ids[3], "OpenID Connect"), of(ids[0], "One")},
		},
	}, answer.Steps[0].Methods)
}

func TestAnswerSettings(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	recipient, err := secret.NewRecipient(bytes.Repeat([]byte{7}, 32))
	require.NoError(t, err)
	ask := func(tenant, provider string) (questions.SealedSettings, error) {
		return questions.SettingsOfConnection.Ask(system(t, tenant), s.Deps.Bus,
			questions.SettingsQuestion{ProviderCode: provider, To: recipient.Key()})
	}
	host := func(answer questions.SealedSettings, err error) string {
		t.Helper()
		require.NoError(t, err)
		plain, err := recipient.Open(answer.Sealed, questions.ForSettings)
		require.NoError(t, err)
		var settings map[string]any
		require.NoError(t, json.Unmarshal([]byte(plain.Reveal()), &settings))
		require.Equal(t, "sesame of "+settings["Host"].(string), settings["Password"])
		return settings["Host"].(string)
	}
	mail := func(host string) object {
		return c.Post(connectionsPath, object{"provider_code": "mfa_mail", "config_fields": object{
			"Host": host, "From": "codes@acme.test", "Username": "codes", "Password": "sesame of " + host,
		}}).Object()
	}
	_, err = ask("acme", "mfa_mail")
	require.True(t, apperr.IsNotFound(err), "no connection: %v", err)
	first := mail("one.test")
	mail("two.test")
	require.Equal(t, "one.test", host(ask("acme", "mfa_mail")))
	c.Post(one(first)+"/disable", nil).OK(nil)
	require.Equal(t, "two.test", host(ask("acme", "mfa_mail")), "the first one is disabled")
	for _, of := range [][2]string{{"globex", "mfa_mail"}, {"acme", "mfa_sms"}, {"acme", ""}, {"acme", "unknown"}} {
		_, err = ask(of[0], of[1])
		require.True(t, apperr.IsNotFound(err), "%v: %v", of, err)
	}
	byID := func(tenant, id string) (questions.SealedSettings, error) {
		return questions.SettingsOfConnection.Ask(system(t, tenant), s.Deps.Bus,
			questions.SettingsQuestion{ConnectionID: id, To: recipient.Key()})
	}
	last := mail("three.test")
	require.Equal(t, "three.test", host(byID("acme", id(last))))
	found, err := byID("acme", id(last))
	require.NoError(t, err)
	require.Equal(t, "mfa_mail", found.ProviderCode)
	for _, of := range [][2]string{{"globex", id(last)}, {"acme", id(first)}, {"acme", "unknown"}} {
		_, err = byID(of[0], of[1])
		require.True(t, apperr.IsNotFound(err), "%v: %v", of, err)
	}
	_, err = questions.SettingsOfConnection.Ask(system(t, "acme"), s.Deps.Bus,
		questions.SettingsQuestion{ProviderCode: "mfa_mail", To: secret.TransitKey{ID: "1", Public: "AA"}})
	require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
}
