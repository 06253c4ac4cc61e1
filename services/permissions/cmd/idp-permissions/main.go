// Command idp-permissions is the permissions service as a process of its own.
package main

import (
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/permissions"
)

func main() {
	config := service.DefaultConfig("permissions", 8085)
	service.Main("permissions", &config, &config, permissions.Spec)
}
