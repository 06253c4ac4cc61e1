// Command idp-applications is the applications service as a process of its own.
package main

import (
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/applications"
)

type settings struct {
	service.Config `mapstructure:",squash"`
	Applications   applications.Config    `mapstructure:"applications"`
	Bootstrap      applications.Bootstrap `mapstructure:"bootstrap"`
}

func main() {
	s := settings{Config: service.DefaultConfig("applications", 8082), Applications: applications.DefaultConfig()}
	s.Bootstrap = s.Applications.Bootstrap
	s.Auth.Own = true
	service.Main("applications", &s, &s.Config, func() service.Spec {
		s.Applications.Bootstrap = s.Bootstrap
		return applications.Spec(s.Applications)
	})
}
