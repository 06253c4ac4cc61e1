package console

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"

	"github.com/idplatform/idplatform/console/internal/session"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/weburl"
)

// Config holds the settings of the console.
type Config struct {
	Console      string        `mapstructure:"console" doc:"on, or off: the web console is left out"`
	Banner       string        `mapstructure:"console_banner" doc:"A line at the top of every screen that says which environment this is, like Staging; empty: none"`
	Keys         secret.String `mapstructure:"console_keys" doc:"Keys that seal sessions, id:base64 of 32 bytes, joined by commas; the first seals, the others only open; the same on all replicas. Empty: the one program takes its own, a process of the console makes one up, and sessions end with it"`
	OIDC         OIDC          `mapstructure:"console_oidc"`
	ClientSignIn bool          `mapstructure:"console_client_sign_in" doc:"Whether people may sign in with an application's client id and secret"`
}

// OIDC is the issuer at which people sign in to the console.
type OIDC struct {
	Issuer       string            `mapstructure:"issuer" doc:"The OIDC issuer at which people sign in: https://id.example.com/realms/staff; one of auth.oidc of the services. Empty: none"`
	ClientID     string            `mapstructure:"client_id" doc:"As whom the issuer knows the console"`
	ClientSecret secret.String     `mapstructure:"client_secret" doc:"The client's secret; empty: a public client"`
	Scopes       []string          `mapstructure:"scopes" doc:"Scopes to ask for beside openid: offline_access, and those of the platform"`
	Params       map[string]string `mapstructure:"params" doc:"Further parameters of the authorization request, like audience=https://api.example.com"`
	Label        string            `mapstructure:"label" doc:"What the button says after Sign in with; empty: the issuer's host"`
}

// maxLabel is how many characters fit onto the button.
const maxLabel = 40

// maxBanner is how many characters fit into the line on a phone.
const maxBanner = 60

// DefaultConfig has the console on.
func DefaultConfig() Config { return Config{Console: "on", ClientSignIn: true} }

// Off reports whether the console is left out.
func (c Config) Off() bool { return c.Console == "off" }

// Validate is called by config.Load.
func (c Config) Validate() error {
	if c.Console != "on" && c.Console != "off" {
		return fmt.Errorf("console must be on or off")
	}
	if len([]rune(c.Banner)) > maxBanner {
		return fmt.Errorf("console_banner must have at most %d characters", maxBanner)
	}
	if !c.Keys.IsZero() {
		if _, err := secret.ParseKeyring(c.Keys); err != nil {
			return fmt.Errorf("console_keys: %w", err)
		}
	}
	return c.OIDC.validate()
}

// reservedParams are the parameters that the console sets itself.
var reservedParams = []string{
	"client_id", "code_challenge", "code_challenge_method", "max_age", "nonce", "prompt", "redirect_uri", "request",
	"request_uri", "response_mode", "response_type", "scope", "state",
}

var scopeToken = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]+$`) // RFC 6749 §3.3

func (o OIDC) validate() error {
	if o.Issuer == "" {
		if o.ClientID != "" || !o.ClientSecret.IsZero() {
			return errors.New("console_oidc.issuer is needed with console_oidc.client_id and client_secret")
		}
		return nil
	}
	u, err := weburl.HTTP(o.Issuer)
	if err != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme == "http" && !session.Loopback(u.Host) {
		return errors.New("console_oidc.issuer must be an https URL without query and fragment; http on this machine")
	}
	if o.ClientID == "" {
		return errors.New("console_oidc.client_id is needed with console_oidc.issuer")
	}
	for _, scope := range o.Scopes {
		if !scopeToken.MatchString(scope) {
			return errors.New("console_oidc.scopes must be scopes joined by commas")
		}
	}
	for name := range o.Params {
		if slices.Contains(reservedParams, name) {
			return fmt.Errorf("console_oidc.params: the console sets %s itself", name)
		}
	}
	if len([]rune(o.Label)) > maxLabel {
		return fmt.Errorf("console_oidc.label must have at most %d characters", maxLabel)
	}
	return nil
}

// label names the issuer on the button.
func (o OIDC) label() string {
	u, err := url.Parse(o.Issuer)
	if err != nil {
		return o.Label
	}
	return cmp.Or(o.Label, u.Host)
}
