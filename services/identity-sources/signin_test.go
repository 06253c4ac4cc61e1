package identitysources_test

import (
	"testing"

	"github.com/stretchr/testify/require"

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
		c.Post(methodsPath, object{"code": code, "name": code, "type": kind}).OK(nil)
	}
	sms := c.Get(methodsPath + "?code=sms").Object()["items"].([]any)[0].(object)
	c.Post(methodsPath+"/"+id(sms)+"/disable", nil).OK(nil)
	made := c.Post("/v1/auth-templates", object{"code": "strong", "name": "Strong", "steps": []object{
		{"methods": []string{"pwd"}, "required": true}, {"methods": []string{"otp", "sms"}, "required": false},
	}}).Object()
	want := questions.LoginTemplate{Found: true, Code: "strong", Steps: []questions.LoginStep{
		{Required: true, Methods: []questions.LoginMethod{{Code: "pwd", Type: "password"}}},
		{Methods: []questions.LoginMethod{{Code: "otp", Type: "otp"}}}, // sms is disabled
	}}
	require.Equal(t, want, of("acme", "strong"))
	require.Equal(t, none, of("acme", "weak"))
	require.Equal(t, none, of("globex", "strong"))
	require.Equal(t, none, of("acme", ""))
	c.Post("/v1/auth-templates/"+id(made)+"/default", nil).OK(nil)
	require.Equal(t, want, of("acme", ""))
}
