// Command idp-users is the users service as a process of its own.
package main

import (
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/users"
)

type settings struct {
	service.Config `mapstructure:",squash"`
	Users          users.Config `mapstructure:"users"`
}

func main() {
	s := settings{service.DefaultConfig("users", 8081), users.DefaultConfig()}
	service.Main("users", &s, &s.Config, func() service.Spec { return users.Spec(s.Users) })
}
