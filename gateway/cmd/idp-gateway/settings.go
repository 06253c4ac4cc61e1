package main

import (
	"errors"

	"github.com/idplatform/idplatform/gateway"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

type settings struct {
	Listen         string                  `mapstructure:"listen" doc:"Address of the API"`
	AdminListen    string                  `mapstructure:"admin_listen" doc:"Address of metrics, pprof and build information; off: none"`
	Upstreams      map[string]string       `mapstructure:"upstreams" doc:"The services that are deployed and their base URLs: users=http://users:8081,events=http://events:8081"`
	Log            telemetry.LogConfig     `mapstructure:"log"`
	Tracing        telemetry.TracingConfig `mapstructure:"tracing"`
	gateway.Config `mapstructure:",squash"`
}

func defaults() settings {
	return settings{
		Listen: "127.0.0.1:8080", AdminListen: "127.0.0.1:9080",
		Log:     telemetry.DefaultLog(),
		Tracing: telemetry.TracingConfig{SampleRatio: 1},
		Config:  gateway.DefaultConfig(),
	}
}

// Validate is called by config.Load, after Validate of the embedded Config.
func (s settings) Validate() error {
	_, err := gateway.Remotes(s.Upstreams)
	if len(s.Upstreams) == 0 {
		err = errors.New("upstreams must name at least one service")
	}
	return err
}
