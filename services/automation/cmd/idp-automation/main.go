// Command idp-automation is the automation service as a process of its own.
package main

import (
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/automation"
)

func main() {
	config := service.DefaultConfig("automation", 8087)
	service.Main("automation", &config, &config, automation.Spec)
}
