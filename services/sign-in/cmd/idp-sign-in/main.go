// Command idp-sign-in is the sign-in service as a process of its own.
package main

import (
	"github.com/idplatform/idplatform/pkg/service"
	signin "github.com/idplatform/idplatform/services/sign-in"
)

type settings struct {
	service.Config `mapstructure:",squash"`
	SignIn         signin.Config `mapstructure:"sign_in"`
}

func main() {
	s := settings{service.DefaultConfig("sign-in", 8088), signin.DefaultConfig()}
	service.Main("sign-in", &s, &s.Config, func() service.Spec { return signin.Spec(s.SignIn) })
}
