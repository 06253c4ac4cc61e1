// Command idp-events is the events service as a process of its own. With the argument dead-letters it shows, replays or
// removes events that a service could not handle.
package main

import (
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/events"
)

type settings struct {
	Service service.Config `mapstructure:",squash"`
	Events  events.Config  `mapstructure:",squash"`
}

func main() {
	s := settings{service.DefaultConfig("events", 8086), events.DefaultConfig()}
	service.Main("events", &s, &s.Service, func() service.Spec { return events.Spec(s.Events) },
		service.Command{Name: "dead-letters", Run: events.DeadLetters})
}
