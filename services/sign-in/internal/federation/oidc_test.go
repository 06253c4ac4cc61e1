package federation

import (
	"encoding/json"
	"errors"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// Microsoft's metadata for several directories has a placeholder in the issuer, and its tokens have their directory's.
func TestIssuerOfMicrosoft(t *testing.T) {
	t.Parallel()
	const one = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
	for name, c := range map[string]struct {
		named, directory, want string
		ok                     bool
	}{
		"several directories": {
			"https://login.microsoftonline.com/{tenantid}/v2.0", one, "https://login.microsoftonline.com/" + one + "/v2.0", true,
		},
		"one directory": {
			"https://login.microsoftonline.com/" + one + "/v2.0", one, "https://login.microsoftonline.com/" + one + "/v2.0", true,
		},
		"no directory":      {"https://login.microsoftonline.com/{tenantid}/v2.0", "", "", false},
		"a path":            {"https://login.microsoftonline.com/{tenantid}/v2.0", "../evil", "", false},
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
		"said":                        {"oidc", of(acme, "true", ""), acme},
		"said as a string":            {"oidc", of(acme, `"true"`, ""), acme},
		"not said":                    {"oidc", of(acme, "", ""), ""},
		"denied":                      {"oidc", of(acme, `"false"`, ""), ""},
		"by Microsoft":                {microsoft, of(acme, "true", ""), ""},
		"by Google for a customer":    {google, of(acme, "true", "acme.test"), acme},
		"by Google for itself":        {google, of("A@Gmail.com", "true", ""), "A@Gmail.com"},
		"by Google for somebody":      {google, of(acme, "true", ""), ""},
		"by Google for a like domain": {google, of("a@notgmail.com", "true", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := &oidcClient{code: c.code}
			require.Equal(t, c.email, one.identity("s", c.told).Email)
		})
	}
}
