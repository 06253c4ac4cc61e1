package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/mongostore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/forwarded"
	"github.com/idplatform/idplatform/pkg/outbound"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/telemetry"
	"github.com/idplatform/idplatform/pkg/weburl"
)

// Config holds the settings that every service's process has.
type Config struct {
	Listen         string                  `mapstructure:"listen" doc:"Address of the API"`
	PublicURL      string                  `mapstructure:"public_url" doc:"The platform's address for its clients: iss of its tokens, and where links lead"`
	AdminListen    string                  `mapstructure:"admin_listen" doc:"Address of metrics, pprof and build information; off: none"`
	Log            telemetry.LogConfig     `mapstructure:"log"`
	Mongo          MongoConfig             `mapstructure:"mongo"`
	DataDir        string                  `mapstructure:"data_dir" doc:"Folder of the SQLite file that is used where mongo.uri is empty"`
	Caches         Caches                  `mapstructure:"cache_memory"`
	Answers        Answers                 `mapstructure:"answer_memory"`
	NATS           NATSConfig              `mapstructure:"nats"`
	Auth           AuthConfig              `mapstructure:"auth"`
	EncryptionKeys secret.String           `mapstructure:"encryption_keys" doc:"Keys for secrets at rest, id:base64 of 32 bytes, joined by commas; the first seals, the others only open"`
	GatewaySecret  secret.String           `mapstructure:"gateway_secret" doc:"The same as the gateway's: proves that X-Forwarded-For comes from it"`
	TrustedProxies []string                `mapstructure:"trusted_proxies" doc:"Networks (CIDR) of other proxies whose X-Forwarded-For is believed"`
	Outbound       OutboundConfig          `mapstructure:"outbound"`
	Tracing        telemetry.TracingConfig `mapstructure:"tracing"`
	AuditTenant    string                  `mapstructure:"audit_tenant" doc:"The tenant whose audit log has the denied writes of callers without a valid credential"`
	StuckAfter     time.Duration           `mapstructure:"events_stuck_after" doc:"How long events may wait without NATS accepting any before /readyz answers 503; 0: without limit"`
	DrainDelay     time.Duration           `mapstructure:"drain_delay" doc:"How long /readyz answers 503 before connections are closed, so that the gateway notices"`
	DrainTimeout   time.Duration           `mapstructure:"drain_timeout" doc:"How long requests, and after them tasks and events, may take to end at SIGTERM"`
}

// MongoConfig says where MongoDB is.
type MongoConfig struct {
	URI             secret.String `mapstructure:"uri" doc:"Connection string of a replica set or sharded cluster; TLS by its parameters"`
	Database        string        `mapstructure:"database" doc:"The service's own database"`
	AllowStandalone bool          `mapstructure:"allow_standalone" doc:"Accept a server without transactions; for development only"`
}

// NATSConfig says where NATS is and how to authenticate.
type NATSConfig struct {
	URL         string        `mapstructure:"url" doc:"One or more servers, joined by commas"`
	Credentials string        `mapstructure:"credentials" doc:"File with user JWT and key"`
	User        string        `mapstructure:"user" doc:"User name"`
	Password    secret.String `mapstructure:"password" doc:"Password"`
	Token       secret.String `mapstructure:"token" doc:"Token"`
	TLSCA       string        `mapstructure:"tls_ca" doc:"PEM file of the authority that the server's certificate must be from"`
	TLSCert     string        `mapstructure:"tls_cert" doc:"PEM file of the client certificate"`
	TLSKey      string        `mapstructure:"tls_key" doc:"PEM file of its key"`
	Replicas    int           `mapstructure:"replicas" doc:"Copies of the event stream in the cluster"`
	MaxAge      time.Duration `mapstructure:"max_age" doc:"How long events are kept"`
}

// AuthConfig says whose tokens are accepted.
type AuthConfig struct {
	Issuer []string `mapstructure:"issuer" doc:"Further values of iss in the platform's tokens: public URLs that it had before"`
	JWKS   string   `mapstructure:"jwks" doc:"The platform's public keys: the URL of the applications service's /v1/oauth2/jwks; or a file, and then tokens end when they expire, not earlier"`
	OIDC   []string `mapstructure:"oidc" doc:"Other issuers, each issuer=…;jwks=…;audience=…;scopes=a b (the most that its tokens can have) and tenant=… or tenant_claim=…; scope_claim=… if it is not scope"`

	// Own is set by the service that signs the platform's tokens, which has the keys and knows which tokens have ended.
	Own bool `mapstructure:"-"`
}

// OutboundConfig restricts requests that leave the platform.
type OutboundConfig struct {
	AllowPrivate bool `mapstructure:"allow_private" doc:"Allow requests to private and loopback addresses"`
}

// DefaultConfig returns the default settings of a service's process. It listens on port, and serves its metrics on port
// + 1000. Each service has a port of its own, so that all can run on one machine.
func DefaultConfig(name string, port int) Config {
	return Config{
		Listen: fmt.Sprintf("127.0.0.1:%d", port), AdminListen: fmt.Sprintf("127.0.0.1:%d", port+1000),
		PublicURL: "http://127.0.0.1:8080", DataDir: "data",
		Log:    telemetry.DefaultLog(),
		Mongo:  MongoConfig{Database: "idp_" + strings.ReplaceAll(name, "-", "_")},
		Caches: Caches{MiB: 64}, Answers: Answers{MiB: 128},
		NATS:    NATSConfig{URL: "nats://127.0.0.1:4222", Replicas: 1, MaxAge: 7 * 24 * time.Hour},
		Tracing: telemetry.TracingConfig{SampleRatio: 1}, AuditTenant: "default",
		// Long, because it takes all replicas out of service at the same time; until then writes continue without NATS.
		StuckAfter: 5 * time.Minute,
		// A stop takes DrainDelay and at most twice DrainTimeout: less than the 30 s that Kubernetes allows.
		DrainDelay: 2 * time.Second, DrainTimeout: 12 * time.Second,
	}
}

// Validate is called by config.Load.
func (c Config) Validate() error {
	var faults []error
	if c.EncryptionKeys.IsZero() {
		faults = append(faults, errors.New("encryption_keys is needed"))
	} else if _, err := secret.ParseKeyring(c.EncryptionKeys); err != nil {
		faults = append(faults, fmt.Errorf("encryption_keys: %w", err))
	}
	if err := CheckPublicURL(c.PublicURL); err != nil {
		faults = append(faults, err)
	}
	if _, err := forwarded.ParseProxies(c.TrustedProxies); err != nil {
		faults = append(faults, err)
	}
	if !c.GatewaySecret.IsZero() {
		if err := secret.CheckChosen(c.GatewaySecret); err != nil {
			faults = append(faults, fmt.Errorf("gateway_secret %w", err))
		}
	}
	if c.Auth.JWKS == "" && len(c.Auth.OIDC) == 0 && !c.Auth.Own {
		faults = append(faults,
			errors.New("auth.jwks or auth.oidc is needed: without a token issuer every request is refused"))
	}
	for _, text := range c.Auth.OIDC {
		if _, err := parseIssuer(text, nil); err != nil {
			faults = append(faults, err)
		}
	}
	if c.DrainDelay < 0 || c.DrainTimeout <= 0 {
		faults = append(faults, errors.New("drain_delay must not be negative, drain_timeout must be positive"))
	}
	if err := errors.Join(c.Caches.Check(Spec{}), c.Answers.Check()); err != nil {
		faults = append(faults, err)
	}
	if !auth.ValidTenant(c.AuditTenant) {
		faults = append(faults, errors.New("audit_tenant must be 1…63 of a-z, 0-9, _ and -"))
	}
	if c.StuckAfter < 0 {
		faults = append(faults, errors.New("events_stuck_after must not be negative"))
	}
	return errors.Join(faults...)
}

// openStore opens MongoDB if it is configured, otherwise SQLite in the data folder.
func (c Config) openStore(ctx context.Context, spec Spec, keys *secret.Keyring, log *slog.Logger) (*docstore.Store,
	error) {
	if !c.Mongo.URI.IsZero() {
		return c.awaitMongo(ctx, spec, keys, log)
	}
	engine, err := sqlitestore.Open(ctx, sqlitestore.Options{
		Path: c.DataDir + "/" + spec.Name + ".db", Log: log, Cache: c.Caches.Share(spec, []Spec{spec}),
	})
	if err != nil {
		return nil, err
	}
	return spec.Open(ctx, engine, clock.System, keys)
}

// mongoPause is the time between two attempts to reach MongoDB. Each attempt lasts several seconds.
const mongoPause = time.Second

// awaitMongo opens MongoDB, and repeats that while MongoDB does not answer.
func (c Config) awaitMongo(ctx context.Context, spec Spec, keys *secret.Keyring, log *slog.Logger) (*docstore.Store,
	error) {
	for {
		store, err := c.openMongo(ctx, spec, keys, log)
		if apperr.KindOf(err) != apperr.Unavailable || ctx.Err() != nil {
			return store, err
		}
		log.Warn("MongoDB does not answer; the service waits for it", "error", secret.MaskError(err))
		select {
		case <-time.After(mongoPause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (c Config) openMongo(ctx context.Context, spec Spec, keys *secret.Keyring, log *slog.Logger) (*docstore.Store,
	error) {
	engine, err := mongostore.Open(ctx, mongostore.Options{
		URI: c.Mongo.URI.Reveal(), Database: c.Mongo.Database, AllowStandalone: c.Mongo.AllowStandalone, Log: log,
	})
	if err != nil {
		return nil, err
	}
	return spec.Open(ctx, engine, clock.System, keys)
}

// connect connects to NATS, which may become available later.
func (c NATSConfig) connect(ctx context.Context, name string, log *slog.Logger) (*bus.Bus, error) {
	b, err := c.open(ctx, name, log)
	if err == nil {
		b.EnsureStreams(ctx)
	}
	return b, err
}

// open connects without looking after the streams.
func (c NATSConfig) open(ctx context.Context, name string, log *slog.Logger) (*bus.Bus, error) {
	return bus.Connect(ctx, bus.Config{
		URL: c.URL, Name: name, CredentialsFile: c.Credentials, User: c.User, Password: c.Password.Reveal(),
		Token: c.Token.Reveal(),
		TLSCA: c.TLSCA, TLSCert: c.TLSCert, TLSKey: c.TLSKey, Replicas: c.Replicas, MaxAge: c.MaxAge, Log: log,
	})
}

// Dialer returns the dialer for connections that leave the platform and are not HTTP.
func (c OutboundConfig) Dialer() *net.Dialer {
	return outbound.NewDialer(outbound.Config{AllowPrivate: c.AllowPrivate})
}

// Client returns the client for all HTTP requests that leave the platform.
func (c OutboundConfig) Client() *http.Client {
	return outbound.New(outbound.Config{AllowPrivate: c.AllowPrivate})
}

// CheckPublicURL accepts only an address that the platform can have: scheme, host and port, as for an issuer (RFC 8414
// §2).
func CheckPublicURL(text string) error {
	u, err := weburl.HTTP(text)
	if err != nil || u.Scheme+"://"+u.Host != text {
		return errors.New("public_url must be http:// or https://, a host, and nothing after that but a port")
	}
	return nil
}

// Verifier makes a verifier that trusts the configured OIDC issuers. They may have private addresses: only those who
// run the platform choose them.
func (c AuthConfig) Verifier(log *slog.Logger) (*auth.Verifier, error) {
	var issuers []auth.Issuer
	client := outbound.New(outbound.Config{AllowPrivate: true})
	for _, text := range c.OIDC {
		issuer, err := parseIssuer(text, client)
		if err != nil {
			return nil, err
		}
		issuers = append(issuers, issuer)
	}
	return auth.New(auth.Config{Issuers: issuers, Clock: clock.System, Log: log})
}

// platformKeys is the source of the platform's keys. Unlike those of other issuers, its address is inside the platform.
func (c AuthConfig) platformKeys() auth.KeySource {
	return keySource(c.JWKS, &http.Client{Timeout: 5 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true}})
}

// asksForEnded reports whether the service asks the applications service which tokens have ended. It does if the keys
// come from there, too.
func (c AuthConfig) asksForEnded() bool { return !c.Own && isURL(c.JWKS) }

func isURL(where string) bool {
	return strings.HasPrefix(where, "http://") || strings.HasPrefix(where, "https://")
}

func keySource(where string, client *http.Client) auth.KeySource {
	if isURL(where) {
		return auth.KeyURL{URL: where, Client: client}
	}
	return auth.KeyFile(where)
}

// parseIssuer parses an entry of AuthConfig.OIDC.
func parseIssuer(text string, client *http.Client) (auth.Issuer, error) {
	issuer := auth.Issuer{Algorithms: []string{"RS256", "ES256", "EdDSA"}}
	jwks := ""
	for part := range strings.SplitSeq(text, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch key {
		case "issuer":
			issuer.Name = value
		case "jwks":
			jwks = value
		case "tenant":
			issuer.Tenant = value
		case "tenant_claim":
			issuer.TenantClaim = value
		case "scope_claim":
			issuer.ScopeClaim = value
		case "audience":
			issuer.Audience = value
		case "scopes":
			scopes, unknown := auth.ParseScopes(value)
			if len(unknown) > 0 {
				return issuer, fmt.Errorf("auth.oidc: there is no scope %s", unknown[0])
			}
			issuer.Scopes = scopes
		default:
			return issuer, fmt.Errorf("auth.oidc: there is no setting %q of an issuer", key)
		}
	}
	if issuer.Name == auth.Platform || strings.Contains(issuer.Name, "#") { // actors are <issuer>#<sub>
		return issuer, errors.New("auth.oidc: an issuer is a URL without a fragment")
	}
	if issuer.Name == "" || jwks == "" || issuer.Scopes == 0 {
		return issuer, errors.New("auth.oidc: issuer, jwks and scopes are needed")
	}
	issuer.Keys = keySource(jwks, client)
	return issuer, nil
}
