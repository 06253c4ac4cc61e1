package application

import (
	"encoding/json"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/applications/internal/toggle"
)

// ConfigProp is an application's configuration. Objects are stored exactly as sent.
type ConfigProp struct {
	Status                     string          `json:"status,omitempty"`
	TenantID                   string          `json:"tenant_id,omitempty"`
	MFAConfig                  json.RawMessage `json:"mfa_config,omitempty"`
	RegPolicy                  []string        `json:"reg_policy,omitempty"`
	MFAEnabled                 string          `json:"mfa_enabled"`
	SSOEnabled                 string          `json:"sso_enabled"`
	DeveloperID                string          `json:"developer_id,omitempty"`
	AccessPolicy               json.RawMessage `json:"access_policy,omitempty"`
	AllowedRegMethod           json.RawMessage `json:"allowed_reg_method,omitempty"`
	DefaultRegMethod           string          `json:"default_reg_method,omitempty"`
	AllowedLoginMethod         json.RawMessage `json:"allowed_login_method,omitempty"`
	DefaultLoginMethod         string          `json:"default_login_method,omitempty"`
	AllowedSocialLoginProvider json.RawMessage `json:"allowed_social_login_provider,omitempty"`
}

// Limits of the configuration.
const (
	maxConfigText = 256 // characters
	maxPolicies   = 100
)

// check reports every fault.
func (c *ConfigProp) check(faults *apperr.Faults, tenant string) {
	if c.Status != "" {
		faults.Switch("status", &c.Status, toggle.On)
	}
	faults.Check(c.TenantID == "" || c.TenantID == tenant, "tenant_id", "must be the application's tenant")
	faults.Check(len(c.RegPolicy) <= maxPolicies, "reg_policy", "must have at most %d items", maxPolicies)
	for _, policy := range c.RegPolicy {
		faults.Name("reg_policy", policy, maxConfigText)
	}
	for _, m := range []struct{ name, text string }{
		{"developer_id", c.DeveloperID}, {"default_reg_method", c.DefaultRegMethod},
		{"default_login_method", c.DefaultLoginMethod},
	} {
		faults.Text(m.name, m.text, maxConfigText)
	}
	faults.Switch("mfa_enabled", &c.MFAEnabled, toggle.Off)
	faults.Switch("sso_enabled", &c.SSOEnabled, toggle.On)
	for _, m := range []struct {
		name  string
		props json.RawMessage
	}{
		{"mfa_config", c.MFAConfig}, {"access_policy", c.AccessPolicy}, {"allowed_reg_method", c.AllowedRegMethod},
		{"allowed_login_method", c.AllowedLoginMethod}, {"allowed_social_login_provider", c.AllowedSocialLoginProvider},
	} {
		faults.Props(m.name, &m.props)
	}
}

// syncSwitches sets defaults, and makes the switches in the record equal to those in config_prop: a request may change
// either. was is the application before the request.
func (a *Application) syncSwitches(faults *apperr.Faults, was *Application) {
	config := a.ConfigProp // as in the request
	a.normalize()
	for _, m := range []struct {
		name                     string
		view, stored             *string // in the record, in config_prop
		viewBefore, storedBefore string
		inRequest                string // config_prop's
	}{
		{
			"sso_enabled", &a.SSOEnabled, &a.ConfigProp.SSOEnabled, was.SSOEnabled, was.ConfigProp.SSOEnabled,
			config.SSOEnabled,
		},
		{
			"mfa_enabled", &a.MFAEnabled, &a.ConfigProp.MFAEnabled, was.MFAEnabled, was.ConfigProp.MFAEnabled,
			config.MFAEnabled,
		},
	} {
		if *m.view != "" && *m.view != m.viewBefore && *m.view != *m.stored {
			faults.Check(m.inRequest == "" || m.inRequest == m.storedBefore, m.name,
				"must not differ from the member of config_prop")
			*m.stored = *m.view
		}
		*m.view = *m.stored
	}
}
