package dnsname

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKey(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"":                           "",
		"Acme.Test":                  "acme.test",
		"例子.广告":                      "xn--fsqu00a.xn--4rr70v",
		"例子。广告":                      "xn--fsqu00a.xn--4rr70v", // the ideographic full stop is a dot
		"XN--fsqu00a.xn--4RR70V":     "xn--fsqu00a.xn--4rr70v",
		"straße.test":                "xn--strae-oqa.test",
		"ＡＣＭＥ.test":                  "acme.test",
		"bücher.test":                "xn--bcher-kva.test",
		"bu\u0308cher.test":          "xn--bcher-kva.test",
		"_dmarc.acme.test":           "_dmarc.acme.test",
		"192.0.2.1":                  "192.0.2.1",
		"\u04c00":                    "xn--0-b2b", // UTS 46 has no capital palochka
		"xn--zzzzzzzzzzzzzzzz9.test": "xn--zzzzzzzzzzzzzzzz9.test",
	} {
		require.Equal(t, want, Key(name), name)
		require.Equal(t, want, Key(Key(name)), name)
		require.Equal(t, "a@"+want, EmailKey("a@"+name))
		require.Equal(t, want, HostKey(name))
		if want != "" {
			require.Equal(t, want+":8443", HostKey(name+":8443"))
		}
	}
	require.Equal(t, "no address", EmailKey("no address"))
	require.Equal(t, "[::1]:80", HostKey("[::1]:80"))
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://app.example.com/callback?a=b#c": "https://app.example.com",
		"HTTPS://App.Example.com:443":            "https://app.example.com",
		"http://app.example.com:80/":             "http://app.example.com",
		"http://app.example.com:443":             "http://app.example.com:443",
		"https://例子.test:8443/":                  "https://xn--fsqu00a.test:8443",
		"https://app.example.com:/":              "https://app.example.com",
		"http://[::1]:5173/":                     "http://[::1]:5173",
		"http://127.0.0.1":                       "http://127.0.0.1",
		"null":                                   "",
		"":                                       "",
		"com.example.app:/callback":              "",
		"https:///callback":                      "",
		"https://a@b.test":                       "",
		`https://a.test\@b.test`:                 "",
	} {
		got, ok := Origin(address)
		require.Equal(t, want, got, address)
		require.Equal(t, want != "", ok, address)
	}
}

func FuzzKey(f *testing.F) {
	for _, seed := range []string{"例子.广告", "xn--a", "A.B", "\u200d", "a..b", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) { require.Equal(t, Key(name), Key(Key(name)), name) })
}
