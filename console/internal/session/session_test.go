package session

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// Cookies have the strict name wherever browsers keep it, and the plain one on this machine's http alone.
func TestWhereCookiesAreSafe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		host, proto   string
		secure, plain bool
	}{
		{"127.0.0.1:8080", "http", true, true},
		{"localhost:8080", "", true, true},
		{"[::1]:8080", "http", true, true},
		{"localhost.evil.example", "http", false, false},
		{"127.0.0.1:8443", "https", true, false},
		{"idp.example", "https", true, false},
		{"idp.example", "http", false, false},
		{"10.0.0.7:8080", "", false, false},
	} {
		r := httptest.NewRequest("GET", "/console", nil)
		r.Host = c.host
		if c.proto != "" {
			r.Header.Set("X-Forwarded-Proto", c.proto)
		}
		require.Equal(t, c.secure, Secure(r), c.host)
		require.Equal(t, c.plain, plain(r), c.host)
	}
}

// A remnant of a longer session is not read as part of a shorter one.
func TestPartsAreCounted(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("GET", "http://localhost/console", nil)
	for _, value := range []string{"", "x", "0.a", "9.a", "2.a", "-1.a"} {
		r.Header.Set("Cookie", "idp_console="+value)
		_, ok := join(r)
		require.False(t, ok, value)
	}
	r.Header.Set("Cookie", "idp_console=1.a; idp_console_1=b")
	text, ok := join(r)
	require.True(t, ok)
	require.Equal(t, "a", text)
}
