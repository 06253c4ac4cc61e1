package main

import (
	"errors"
	"net/url"
	"time"

	"github.com/idplatform/idplatform/console"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/telemetry"
	"github.com/idplatform/idplatform/pkg/weburl"
)

type settings struct {
	Listen         string              `mapstructure:"listen" doc:"Address of the console"`
	AdminListen    string              `mapstructure:"admin_listen" doc:"Address of metrics, pprof and build information; off: none"`
	Gateway        string              `mapstructure:"gateway" doc:"The gateway's base URL, where calls go: http://gateway:8080"`
	GatewaySecret  secret.String       `mapstructure:"gateway_secret" doc:"The same as the gateway's: proves to it whose the client's address is"`
	TrustedProxies []string            `mapstructure:"trusted_proxies" doc:"Networks (CIDR) of load balancers whose X-Forwarded-* headers are trusted, where the console has a host of its own"`
	DrainTimeout   time.Duration       `mapstructure:"drain_timeout" doc:"At stop: how long running requests may take"`
	Log            telemetry.LogConfig `mapstructure:"log"`
	console.Config `mapstructure:",squash"`
}

func defaults() settings {
	return settings{
		Listen: "127.0.0.1:8090", AdminListen: "127.0.0.1:9090", Gateway: "http://127.0.0.1:8080",
		DrainTimeout: 20 * time.Second, Log: telemetry.DefaultLog(),
		Config: console.DefaultConfig(),
	}
}

// Validate is called by config.Load, after Validate of the embedded Config.
func (s settings) Validate() error {
	_, err := s.gatewayURL()
	return err
}

func (s settings) gatewayURL() (*url.URL, error) {
	u, err := weburl.HTTP(s.Gateway)
	if err != nil || u.Path != "" && u.Path != "/" {
		return nil, errors.New("gateway must be http(s)://host[:port]")
	}
	return u, nil
}
