package gateway

import (
	"errors"
	"fmt"
	"time"

	"github.com/idplatform/idplatform/pkg/forwarded"
	"github.com/idplatform/idplatform/pkg/secret"
)

// Config holds the settings of the gateway. DefaultConfig returns the defaults.
type Config struct {
	TLS            TLSConfig       `mapstructure:"tls"`
	CORSOrigins    []string        `mapstructure:"cors_origins" doc:"Origins whose pages may use the API, like https://console.example.com; * for all; empty: none"`
	TrustedProxies []string        `mapstructure:"trusted_proxies" doc:"Networks (CIDR) of load balancers whose X-Forwarded-* headers are trusted"`
	GatewaySecret  secret.String   `mapstructure:"gateway_secret" doc:"The same as the services': proves to them that X-Forwarded-For comes from the gateway; empty: they take the gateway's own address for the client's"`
	Required       []string        `mapstructure:"required" doc:"Services without which /readyz answers 503; empty: none"`
	RateLimit      RateLimitConfig `mapstructure:"rate_limit"`

	MaxConcurrent int   `mapstructure:"max_concurrent" doc:"Requests served at once, without event streams; more are answered 503"`
	MaxPerCaller  int   `mapstructure:"max_per_caller" doc:"How many of max_concurrent, and of max_streams, one caller may have; more are answered 429. 0: a quarter"`
	MaxStreams    int   `mapstructure:"max_streams" doc:"Event streams (Server-Sent Events) open at once, beside max_concurrent; more are answered 503"`
	MaxBodyBytes  int64 `mapstructure:"max_body_bytes" doc:"Largest Content-Length of a request that is not a stream (imports are)"`

	RequestTimeout    time.Duration `mapstructure:"request_timeout" doc:"Total time of a request that is not a stream"`
	StreamIdleTimeout time.Duration `mapstructure:"stream_idle_timeout" doc:"A stream (import, export) is ended after this time without a byte in either direction, or 15 times this if its request was sent to the end and the service has yet to answer"`
	IdleTimeout       time.Duration `mapstructure:"idle_timeout" doc:"An unused client connection is closed after this time"`
	DrainDelay        time.Duration `mapstructure:"drain_delay" doc:"At stop: how long /readyz answers 503 while requests are still accepted, so that load balancers notice"`
	DrainTimeout      time.Duration `mapstructure:"drain_timeout" doc:"At stop: how long running requests may take after drain_delay"`
}

// TLSConfig names the certificate's files. They are read again when they change.
type TLSConfig struct {
	CertFile string `mapstructure:"cert_file" doc:"PEM certificate chain; empty: plain HTTP"`
	KeyFile  string `mapstructure:"key_file" doc:"PEM private key"`
}

// RateLimitConfig limits requests. Each replica limits by itself, in memory.
type RateLimitConfig struct {
	PerSecond             float64 `mapstructure:"per_second" doc:"Requests per second of one caller; those with a credential that no service has accepted yet count for their address; 0: no limit"`
	Burst                 int     `mapstructure:"burst" doc:"Requests that may come at once within the limit"`
	UnauthorizedPerMinute float64 `mapstructure:"unauthorized_per_minute" doc:"401 answers per minute to one address before its requests are answered 429 for a while, but for those of callers that are known; 0: no limit"`
	UnauthorizedBurst     int     `mapstructure:"unauthorized_burst" doc:"401 answers that may come at once within the limit"`
}

// DefaultConfig returns a configuration without TLS, CORS and rate limits.
func DefaultConfig() Config {
	return Config{
		RateLimit:         RateLimitConfig{Burst: 100, UnauthorizedBurst: 20},
		MaxConcurrent:     1024,
		MaxStreams:        1024,
		MaxBodyBytes:      16 << 20,
		RequestTimeout:    60 * time.Second,
		StreamIdleTimeout: 60 * time.Second,
		IdleTimeout:       120 * time.Second,
		DrainDelay:        3 * time.Second,
		DrainTimeout:      30 * time.Second,
	}
}

// Validate returns all faults, joined.
func (c Config) Validate() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault((c.TLS.CertFile == "") != (c.TLS.KeyFile == ""), "tls.cert_file and tls.key_file must be set together")
	fault(c.RateLimit.PerSecond < 0, "rate_limit.per_second must not be negative")
	fault(c.RateLimit.PerSecond > 0 && c.RateLimit.Burst < 1, "rate_limit.burst must be at least 1")
	fault(c.RateLimit.UnauthorizedPerMinute < 0, "rate_limit.unauthorized_per_minute must not be negative")
	fault(c.RateLimit.UnauthorizedPerMinute > 0 && c.RateLimit.UnauthorizedBurst < 1,
		"rate_limit.unauthorized_burst must be at least 1")
	fault(c.MaxConcurrent < 1, "max_concurrent must be at least 1")
	fault(c.MaxStreams < 1, "max_streams must be at least 1")
	fault(c.MaxPerCaller < 0, "max_per_caller must not be negative")
	fault(c.MaxBodyBytes < 1, "max_body_bytes must be at least 1")
	for name, d := range map[string]time.Duration{
		"request_timeout": c.RequestTimeout, "stream_idle_timeout": c.StreamIdleTimeout,
		"idle_timeout": c.IdleTimeout, "drain_timeout": c.DrainTimeout,
	} {
		fault(d <= 0, "%s must be above 0", name)
	}
	fault(c.DrainDelay < 0, "drain_delay must not be negative")
	if !c.GatewaySecret.IsZero() {
		err := secret.CheckChosen(c.GatewaySecret)
		fault(err != nil, "gateway_secret %v", err)
	}
	_, err := forwarded.ParseProxies(c.TrustedProxies)
	return errors.Join(append(errs, err)...)
}

// share is how many of these places one caller may use at once.
func (c Config) share(places int) int {
	if c.MaxPerCaller > 0 {
		return c.MaxPerCaller
	}
	return max(1, places/4)
}
