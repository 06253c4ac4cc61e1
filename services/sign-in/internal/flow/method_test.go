package flow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// What a login demands and nobody can prove is told, and nothing else.
func TestMissingMethods(t *testing.T) {
	t.Parallel()
	type steps []questions.LoginStep
	step := func(required bool, types ...string) questions.LoginStep {
		s := questions.LoginStep{Required: required}
		for _, name := range types {
			s.Methods = append(s.Methods, questions.LoginMethod{Code: name, Type: name})
		}
		return s
	}
	e := &Engine{methods: map[string]Method{proof.Password: passwords{}}}
	for name, c := range map[string]struct {
		steps steps
		mfa   bool
		want  []string
	}{
		"no steps":                      {nil, false, nil},
		"a password":                    {steps{step(true, "password")}, false, nil},
		"a password, or something else": {steps{step(true, "otp", "password")}, false, nil},
		"something else":                {steps{step(true, "otp")}, false, []string{"otp"}},
		"a second step": {
			steps{step(true, "password"), step(true, "otp", "mail")}, false, []string{"mail", "otp"},
		},
		"a second step that is optional": {steps{step(true, "password"), step(false, "otp")}, false, nil},
		"a password twice": {
			steps{step(true, "password"), step(true, "password")}, false, []string{"password"},
		},
		"an optional password, and one": {
			steps{step(false, "password"), step(true, "password")}, false, nil,
		},
		"nothing but optional steps": {steps{step(false, "otp")}, false, []string{"password"}},
		"a step without methods": {
			steps{step(true, "password"), step(true)}, false, []string{"none"},
		},
		"two factors of an application":              {steps{step(true, "password")}, true, []string{"mfa"}},
		"two factors, and a step that lacks another": {steps{step(true, "otp")}, true, []string{"otp"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := e.missing(questions.LoginTemplate{Found: true, Steps: c.steps}, c.mfa)
			require.Equal(t, c.want, got)
		})
	}
}
