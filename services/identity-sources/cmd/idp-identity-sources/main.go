// Command idp-identity-sources is the identity-sources service as a process of its own.
package main

import (
	"github.com/idplatform/idplatform/pkg/service"
	identitysources "github.com/idplatform/idplatform/services/identity-sources"
)

type settings struct {
	service.Config `mapstructure:",squash"`
}

func main() {
	s := settings{service.DefaultConfig("identity-sources", 8084)}
	service.Main("identity-sources", &s, &s.Config, identitysources.Spec)
}
