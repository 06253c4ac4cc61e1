// Command idp-provisioning is the provisioning service as a process of its own.
package main

import (
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/provisioning"
)

type settings struct {
	service.Config `mapstructure:",squash"`
}

func main() {
	s := settings{service.DefaultConfig("provisioning", 8089)}
	service.Main("provisioning", &s, &s.Config, provisioning.Spec)
}
