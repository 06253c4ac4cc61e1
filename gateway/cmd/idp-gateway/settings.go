package main

import (
	"errors"
	"log/slog"

	"github.com/idplatform/idplatform/gateway"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

type settings struct {
	Listen         string            `mapstructure:"listen" doc:"Address of the API"`
	AdminListen    string            `mapstructure:"admin_listen" doc:"Address of metrics, pprof and build information; off: none"`
	Upstreams      map[string]string `mapstructure:"upstreams" doc:"The services that are deployed and their base URLs: users=http://users:8081,events=http://events:8081"`
	Log            logSettings       `mapstructure:"log"`
	Tracing        tracingSettings   `mapstructure:"tracing"`
	gateway.Config `mapstructure:",squash"`
}

type logSettings struct {
	Level  slog.Level       `mapstructure:"level" doc:"debug, info, warn or error"`
	Format telemetry.Format `mapstructure:"format" doc:"json, text (logfmt), or auto: lines for people on a terminal, JSON elsewhere"`
}

type tracingSettings struct {
	Endpoint    string  `mapstructure:"endpoint" doc:"OTLP/HTTP collector; empty: no tracing"`
	SampleRatio float64 `mapstructure:"sample_ratio" doc:"Share of the traces that are kept, 0 to 1"`
}

func defaults() settings {
	return settings{
		Listen: "127.0.0.1:8080", AdminListen: "127.0.0.1:9080",
		Log:     logSettings{Level: slog.LevelInfo, Format: telemetry.Auto},
		Tracing: tracingSettings{SampleRatio: 1},
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
