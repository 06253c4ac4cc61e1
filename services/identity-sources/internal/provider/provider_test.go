package provider_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/identity-sources/internal/provider"
)

type object = map[string]any

func open(t *testing.T) *provider.Catalogue {
	t.Helper()
	c, err := provider.Open()
	require.NoError(t, err)
	return c
}

// check returns the locations of the faults of config_fields.
func check(t *testing.T, p *provider.Provider, fields any) []string {
	t.Helper()
	text, err := json.Marshal(fields)
	require.NoError(t, err)
	var faults apperr.Faults
	p.Validate(&faults, text)
	refusal, ok := errors.AsType[*apperr.Error](faults.Err())
	if !ok {
		return nil
	}
	var at []string
	for _, fault := range refusal.Faults {
		at = append(at, fault.Location)
	}
	return at
}

// The example of every provider is valid, and each way to break one of its members is a fault at that member.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	c := open(t)
	var codes []string
	for i, p := range c.List() {
		codes = append(codes, p.ProviderCode)
		t.Run(p.ProviderCode, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, i+1, mustInt(t, p.ProviderID))
			require.NotEmpty(t, p.Name)
			require.Contains(t, p.Logo, "data:image/svg+xml,")
			require.Empty(t, p.OwnLogo())
			require.Contains(t, []string{"social", "database", "mfa", "enterprise"}, p.Type)
			documentation, err := url.Parse(p.Documentation)
			require.NoError(t, err)
			require.Equal(t, "https", documentation.Scheme)
			require.Empty(t, check(t, p, p.Example), "the example")
			wellDescribed(t, p)
			broken(t, p)
		})
	}
	for _, code := range []string{
		"wechat_scan_qr", "dingding_scan_qr", "qywechat_scan_qr", "feishu_scan_qr", "alipay", "github", "gitlab",
		"google",
		"microsoft", "apple", "oidc", "saml", "ldap", "active_directory", "cas", "idp_native_db", "mfa_mail", "mfa_sms",
		"mfa_otp", "mfa_webauthn",
	} {
		require.Contains(t, codes, code)
	}
	_, found := c.Find("no_such_provider")
	require.False(t, found)
}

func mustInt(t *testing.T, text string) (n int) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &n))
	return n
}

type property struct {
	Type        string         `json:"type"`
	Title       string         `json:"title"`
	Description string         `json:"description"`
	Enum        []any          `json:"enum"`
	Default     any            `json:"default"`
	MaxLength   int            `json:"maxLength"`
	Pattern     string         `json:"pattern"`
	WriteOnly   bool           `json:"writeOnly"`
	Items       map[string]any `json:"items"`
}

func schemaOf(t *testing.T, p *provider.Provider) (s struct {
	Schema     string              `json:"$schema"`
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required"`
	Additional *bool               `json:"additionalProperties"`
},
) {
	t.Helper()
	require.NoError(t, json.Unmarshal(p.ConfigSchema, &s))
	return s
}

// wellDescribed checks that a form can be generated from the schema, and that every text is bounded.
func wellDescribed(t *testing.T, p *provider.Provider) {
	t.Helper()
	s := schemaOf(t, p)
	require.Equal(t, "https://json-schema.org/draft/2020-12/schema", s.Schema)
	require.NotNil(t, s.Additional)
	require.False(t, *s.Additional)
	var secrets []string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		m := s.Properties[name]
		require.NotEmpty(t, m.Title, name)
		if m.Type == "string" && m.Enum == nil {
			require.Positive(t, m.MaxLength, name)
			require.LessOrEqual(t, m.MaxLength, 256<<10, name)
		}
		if m.Default != nil {
			require.Empty(t, slices.DeleteFunc(check(t, p, with(p.Example, name, m.Default)),
				func(at string) bool { return at != name }), name)
		}
		if m.WriteOnly {
			secrets = append(secrets, name)
			require.True(t, p.IsSecret(name))
			require.Equal(t, "string", m.Type, "a secret is a text")
		}
	}
	require.Equal(t, secrets, p.Secrets)
	for name, shape := range p.Shapes {
		require.NotEmpty(t, shape.Hint, name)
		var value string
		if given, ok := p.Example[name]; ok {
			require.NoError(t, json.Unmarshal(given, &value))
			require.Regexp(t, shape.Pattern, value, name)
		}
	}
}

// with is a copy of fields with one changed.
func with(fields map[string]json.RawMessage, name string, value any) object {
	changed := object{}
	for member, v := range fields {
		changed[member] = v
	}
	changed[name] = value
	return changed
}

// broken checks that each way to break a member of the example is a fault.
func broken(t *testing.T, p *provider.Provider) {
	t.Helper()
	s := schemaOf(t, p)
	require.Contains(t, check(t, p, with(p.Example, "Unknown", "x")), "Unknown")
	require.Contains(t, check(t, p, []any{}), "")
	for _, name := range s.Required {
		without := with(p.Example, name, nil)
		delete(without, name)
		require.Equal(t, []string{name}, check(t, p, without), "without %s", name)
	}
	for name, m := range s.Properties {
		require.Contains(t, check(t, p, with(p.Example, name, nil)), name, "null")
		require.Contains(t, check(t, p, with(p.Example, name, object{"a": object{"b": 1}}))[0], name, "an object")
		if m.Type == "string" || m.Enum != nil {
			require.Contains(t, check(t, p, with(p.Example, name, 17.5)), name, "a number")
		}
		if m.Enum != nil {
			require.Contains(t, check(t, p, with(p.Example, name, "no such choice")), name)
		}
		if m.Pattern != "" {
			require.Contains(t, check(t, p, with(p.Example, name, "not: \n this")), name, m.Pattern)
		}
		if m.MaxLength > 0 {
			require.Contains(t, check(t, p, with(p.Example, name, string(make([]rune, m.MaxLength+1)))), name)
		}
	}
	for _, name := range p.Secrets {
		require.NotContains(t, string(p.Example[name]), secret.Mask)
	}
}
