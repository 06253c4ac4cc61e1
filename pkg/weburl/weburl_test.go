package weburl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"https://app.test", "HTTPS://app.test/cb?a=%20#f", "http://[::1]:8080/", "https://例子.广告:65535/路径", "https://a:1",
	} {
		u, err := HTTP(text)
		require.NoError(t, err, text)
		require.NotEmpty(t, u.Hostname())
	}
	for _, text := range []string{
		"", "app.test", "//app.test", "/cb", "ftp://app.test", "https:app.test", "https://", "https:///cb", "https://:443/",
		" https://app.test", "https://app.test/cb\n", "https://app.test/c b", "https://app.test/\u3000", "https://a\u200b.test",
		"https://app.test/\x7f", "https://app.test/\u00a0", "https://app.test:0/", "https://app.test:65536/",
		"https://app.test:99999", "https://app.test:-1", "https://app.test:http", "https://u@app.test", "https://u:p@app.test",
		"https://%zz/", "https://[::1",
	} {
		_, err := HTTP(text)
		require.Error(t, err, text)
	}
	_, err := Parse("ldaps://dc.acme.test:636", "ldap", "ldaps")
	require.NoError(t, err)
	_, err = Parse("https://dc.acme.test", "ldap", "ldaps")
	require.EqualError(t, err, "must be an absolute ldap or ldaps URL")
}
