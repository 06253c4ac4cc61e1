// Command idp-organization is the organization service as a process of its own.
package main

import (
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/organization"
)

func main() {
	config := service.DefaultConfig("organization", 8083)
	service.Main("organization", &config, &config, organization.Spec)
}
