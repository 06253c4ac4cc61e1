// Command idp-applications is the applications service as a process of its own.
package main

import (
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/applications"
)

type settings struct {
	service.Config `mapstructure:",squash"`
	Applications   applications.Config `mapstructure:"applications"`
}

func main() {
	s := settings{service.DefaultConfig("applications"), applications.DefaultConfig()}
	service.Main("applications", &s, &s.Config, func() service.Spec { return applications.Spec(s.Applications) })
}
