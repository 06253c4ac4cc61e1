package flow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/questions"
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
	e := &Engine{}
	for name, c := range map[string]struct {
		steps steps
		mfa   bool
		only  []string // the factors that count
		want  []string
	}{
		"no steps":                      {nil, false, nil, nil},
		"a password":                    {steps{step(true, "password")}, false, nil, nil},
		"a password, or something else": {steps{step(true, "otp", "password")}, false, nil, nil},
		"nothing that says who it is":   {steps{step(true, "otp")}, false, nil, []string{"password"}},
		"something else":                {steps{step(true, "social")}, false, nil, []string{"social"}},
		"a second step":                 {steps{step(true, "password"), step(true, "otp", "mail")}, false, nil, nil},
		"a second step that nobody can show": {
			steps{step(true, "password"), step(true, "sms", "mail")}, false, nil, []string{"mail", "sms"},
		},
		"a second step that is optional": {steps{step(true, "password"), step(false, "mail")}, false, nil, nil},
		"a password twice": {
			steps{step(true, "password"), step(true, "password")}, false, nil, []string{"password"},
		},
		"an optional password, and one":   {steps{step(false, "password"), step(true, "password")}, false, nil, nil},
		"nothing but optional steps":      {steps{step(false, "otp")}, false, nil, []string{"password"}},
		"a step without methods":          {steps{step(true, "password"), step(true)}, false, nil, []string{"none"}},
		"two factors of an application":   {steps{step(true, "password")}, true, nil, nil},
		"two factors, one of them an app": {steps{step(true, "password")}, true, []string{"otp", "mail"}, nil},
		"two factors, one of them a mail": {steps{step(true, "password")}, true, []string{"mail"}, []string{"mail"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := demandOf(stepsOf(questions.LoginTemplate{Found: true, Steps: c.steps}),
				questions.Client{MFA: c.mfa, MFAMethods: c.only})
			require.Equal(t, append([]string{}, c.want...), append([]string{}, d.Impossible(e.known(&View{}))...))
		})
	}
}
