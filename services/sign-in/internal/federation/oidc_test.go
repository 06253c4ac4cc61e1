package federation

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
)

// Microsoft's metadata for several directories has a placeholder in the issuer, and its tokens have their directory's.
func TestIssuerOfMicrosoft(t *testing.T) {
	t.Parallel()
	const (
		one     = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
		several = "https://login.microsoftonline.com/{tenantid}/v2.0"
	)
	for name, c := range map[string]struct {
		named, directory, want string
		ok                     bool
	}{
		"several directories": {
			several, one, "https://login.microsoftonline.com/" + one + "/v2.0", true,
		},
		"one directory": {
			"https://login.microsoftonline.com/" + one + "/v2.0", one, "https://login.microsoftonline.com/" + one + "/v2.0", true,
		},
		"no directory":      {several, "", "", false},
		"a path":            {several, "../evil", "", false},
		"none of Microsoft": {"https://login.microsoftonline.com.evil.test/{tenantid}/v2.0", one, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			issuer, ok := issuerOf(c.named, c.directory)
			require.Equal(t, c.ok, ok)
			if ok {
				require.Equal(t, c.want, issuer)
			}
		})
	}
}

// An answer names its issuer (RFC 9207).
func TestIssuerOfAnAnswer(t *testing.T) {
	t.Parallel()
	const (
		several = "https://login.microsoftonline.com/{tenantid}/v2.0"
		one     = "https://login.microsoftonline.com/3f2504e0-4f89-11d3-9a0c-0305e82c3301/v2.0"
	)
	for name, c := range map[string]struct {
		code, issuer, named string
		is                  bool
	}{
		"the same":              {"oidc", "https://a.test", "https://a.test", true},
		"another":               {"oidc", "https://a.test", "https://b.test", false},
		"a directory":           {microsoft, several, one, true},
		"the only directory":    {microsoft, one, one, true},
		"another directory":     {microsoft, one, strings.Replace(one, "3f", "4f", 1), false},
		"the placeholder":       {microsoft, several, several, false},
		"elsewhere":             {microsoft, several, strings.Replace(one, "login", "evil", 1), false},
		"a path after the fact": {microsoft, several, one + "/x", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := &oidcClient{code: c.code, metadata: metadata{Issuer: c.issuer}}
			require.Equal(t, c.is, client.isIssuer(c.named))
		})
	}
}

// Of prompt=login and max_age the stricter one decides.
func TestTheOldestSignIn(t *testing.T) {
	t.Parallel()
	now, hour := clock.FromMillis(1_800_000_000_000), int64(3600)
	provider := &oidc.ProviderConfig{AuthURL: "https://a.test/authorize"}
	client := &oidcClient{provider: provider.NewProvider(t.Context())}
	for name, c := range map[string]struct {
		request Request
		oldest  clock.Time
	}{
		"any":   {Request{}, clock.Time{}},
		"fresh": {Request{Fresh: true}, now},
		"age":   {Request{MaxAge: &hour}, now.Add(-time.Hour)},
		"both":  {Request{Fresh: true, MaxAge: &hour}, now},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, kept := client.begin(c.request, now)
			require.Equal(t, c.oldest, kept.Oldest)
		})
	}
}

func TestWhereDiscoveryStarts(t *testing.T) {
	t.Parallel()
	f := fields{Issuer: "https://login.acme.test/", TenantID: "a/b"}
	require.Equal(t, "https://login.acme.test/", f.issuer("oidc"))
	require.Equal(t, "https://login.acme.test/", f.issuer(gitlab))
	require.Equal(t, "https://accounts.google.com", f.issuer(google))
	require.Equal(t, "https://login.microsoftonline.com/a%2Fb/v2.0", f.issuer(microsoft))
	require.Equal(t, "https://gitlab.com", (&fields{}).issuer(gitlab))
}

func TestFailures(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, failure(&url.Error{Op: "Get", URL: "https://x.test", Err: errors.New("no route")}), ErrAway)
	require.ErrorIs(t, failure(errors.New("503 Service Unavailable: maintenance")), ErrAway)
	require.ErrorIs(t, failure(errors.New("404 Not Found: nothing")), ErrRefused)
	long := failure(errors.New(string(make([]byte, 9000))))
	require.Less(t, len(long.Error()), 1000, "what a provider sends does not fill the log")
}

// The word of a provider for an address counts only where the address is its own to give and to take.
func TestVerifiedAddresses(t *testing.T) {
	t.Parallel()
	const acme = "a@acme.test"
	of := func(email, verified, domain string) claims {
		return claims{Email: email, EmailVerified: json.RawMessage(verified), HostedDomain: domain}
	}
	for name, c := range map[string]struct {
		code  string
		told  claims
		email string
	}{
		"said":                         {"oidc", of(acme, "true", ""), acme},
		"said as a string":             {"oidc", of(acme, `"true"`, ""), acme},
		"not said":                     {"oidc", of(acme, "", ""), ""},
		"denied":                       {"oidc", of(acme, `"false"`, ""), ""},
		"by Microsoft":                 {microsoft, of(acme, "true", ""), ""},
		"by Google for a customer":     {google, of(acme, "true", "acme.test"), acme},
		"by Google for itself":         {google, of("A@Gmail.com", "true", ""), "A@Gmail.com"},
		"by Google for googlemail.com": {google, of("a@googlemail.com", "true", ""), "a@googlemail.com"},
		"by Google for somebody":       {google, of(acme, "true", ""), ""},
		"by Google for a like domain":  {google, of("a@notgmail.com", "true", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := &oidcClient{code: c.code}
			require.Equal(t, c.email, one.identity("s", c.told).Email)
		})
	}
}
