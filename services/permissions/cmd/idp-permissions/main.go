// Command idp-permissions is the permissions service as a process of its own.
package main

import (
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/permissions"
)

type settings struct {
	service.Config `mapstructure:",squash"`
	Permissions    permissions.Config `mapstructure:"permissions"`
}

func main() {
	s := settings{service.DefaultConfig("permissions", 8085), permissions.DefaultConfig()}
	service.Main("permissions", &s, &s.Config, func() service.Spec { return permissions.Spec(s.Permissions) })
}
