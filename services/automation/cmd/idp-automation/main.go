// Command idp-automation is the automation service as a process of its own.
package main

import (
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/automation"
)

type settings struct {
	service.Config `mapstructure:",squash"`
	Automation     automation.Config `mapstructure:"automation"`
}

func main() {
	automation.RunIfWorker()
	s := settings{service.DefaultConfig("automation", 8087), automation.DefaultConfig()}
	service.Main("automation", &s, &s.Config, func() service.Spec { return automation.Spec(s.Automation) })
}
