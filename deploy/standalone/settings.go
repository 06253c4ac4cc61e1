package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/idplatform/idplatform/console"
	"github.com/idplatform/idplatform/gateway"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/config"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/telemetry"
	"github.com/idplatform/idplatform/services/applications"
	"github.com/idplatform/idplatform/services/automation"
	"github.com/idplatform/idplatform/services/events"
	"github.com/idplatform/idplatform/services/permissions"
	signin "github.com/idplatform/idplatform/services/sign-in"
	"github.com/idplatform/idplatform/services/users"
)

// settings are all settings of the platform. A setting of the gateway or of a service has the same name as in the
// process of its own.
type settings struct {
	Listen         string                  `mapstructure:"listen" doc:"Address of the API"`
	AdminListen    string                  `mapstructure:"admin_listen" doc:"Address of metrics, pprof and build information; off: none"`
	PublicURL      string                  `mapstructure:"public_url" doc:"The platform's address for its clients: iss of its tokens, and where links lead; empty: the address it listens on"`
	DataDir        string                  `mapstructure:"data_dir" doc:"The folder with everything that the platform keeps"`
	NATSListen     string                  `mapstructure:"nats_listen" doc:"Address for event subscribers; off: none; empty: 127.0.0.1:4222, or a free port if that is in use"`
	AcceptLoss     []string                `mapstructure:"accept_loss" doc:"Stores (users, applications, organization, permissions, nats …) that were lost and without whose content the platform may start; for one start"`
	Tenant         string                  `mapstructure:"tenant" doc:"The administrator's tenant, and that of tokens that name none"`
	Bootstrap      applications.Bootstrap  `mapstructure:"bootstrap"`
	EncryptionKeys secret.String           `mapstructure:"encryption_keys" doc:"Keys for secrets at rest, id:base64 of 32 bytes, joined by commas; the first seals, the others only open; empty: made at the first start and kept in the data folder"`
	Log            telemetry.LogConfig     `mapstructure:"log"`
	Auth           authConfig              `mapstructure:"auth"`
	Outbound       service.OutboundConfig  `mapstructure:"outbound"`
	Tracing        telemetry.TracingConfig `mapstructure:"tracing"`
	Caches         service.Caches          `mapstructure:"cache_memory"`
	Answers        service.Answers         `mapstructure:"answer_memory"`
	StuckAfter     time.Duration           `mapstructure:"events_stuck_after" doc:"How long events may wait without the event store accepting any before /readyz answers 503; 0: without limit"`
	gateway.Config `mapstructure:",squash"`

	Users        users.Config        `mapstructure:"users"`
	Applications applications.Config `mapstructure:"applications"`
	Permissions  permissions.Config  `mapstructure:"permissions"`
	Events       events.Config       `mapstructure:",squash"`
	Automation   automation.Config   `mapstructure:"automation"`
	SignIn       signin.Config       `mapstructure:"sign_in"`
	Web          console.Config      `mapstructure:",squash"`
}

// authConfig says who is trusted besides the platform itself.
type authConfig struct {
	Issuer []string `mapstructure:"issuer" doc:"Further values of iss in the platform's tokens: public URLs that it had before"`
	OIDC   []string `mapstructure:"oidc" doc:"Other issuers, each issuer=…;jwks=…;tenant=…;audience=…;scopes=a b"`
}

func defaults() settings {
	s := settings{
		Listen: "127.0.0.1:8080", AdminListen: "127.0.0.1:9090", DataDir: "data", Tenant: "default",
		Log:     telemetry.DefaultLog(),
		Tracing: telemetry.TracingConfig{SampleRatio: 1},
		// Short, because the event store is in this process: if it accepts nothing, something is wrong here.
		StuckAfter: 30 * time.Second,
		Config:     gateway.DefaultConfig(),
		Caches:     service.Caches{MiB: 192}, // 16 MiB for each CacheWeight
		Answers:    service.Answers{MiB: 128},
		Users:      users.DefaultConfig(), Applications: applications.DefaultConfig(), Events: events.DefaultConfig(),
		Permissions: permissions.DefaultConfig(),
		Automation:  automation.DefaultConfig(),
		SignIn:      signin.DefaultConfig(),
		Web:         console.DefaultConfig(),
	}
	s.DrainDelay = 0 // there is no load balancer that must notice
	s.DrainTimeout = 20 * time.Second
	return s
}

// Validate is called by config.Load.
func (s settings) Validate() error {
	if !auth.ValidTenant(s.Tenant) {
		return fmt.Errorf("tenant must be 1…63 of a-z, 0-9, _ and -")
	}
	if s.PublicURL != "" {
		if err := service.CheckPublicURL(s.PublicURL); err != nil {
			return err
		}
	}
	if !s.EncryptionKeys.IsZero() {
		if _, err := secret.ParseKeyring(s.EncryptionKeys); err != nil {
			return fmt.Errorf("encryption_keys: %w", err)
		}
	}
	if s.StuckAfter < 0 {
		return fmt.Errorf("events_stuck_after must not be negative")
	}
	return errors.Join(s.Caches.Check(specs(s)...), s.Answers.Check(), s.Config.Validate(), s.Web.Validate())
}

// load reads the settings from file, environment and args.
func load(args []string, out io.Writer) (settings, error) {
	s := defaults()
	err := config.Load(&s, config.Options{Program: "idp-standalone", Environ: os.Environ(), Args: args})
	if err == config.ErrHelp { // config returns ErrHelp itself
		fmt.Fprint(out, config.Usage("idp-standalone serve", &s))
	}
	return s, err
}
