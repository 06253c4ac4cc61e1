package monogram_test

import (
	"encoding/xml"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/monogram"
)

func TestDataURI(t *testing.T) {
	t.Parallel()
	for name, initials := range map[string]string{
		"GitLab": "G", "GitLab (OpenID Connect)": "GO", "AWS IAM Identity Center": "AI", "飞书 Feishu": "飞F",
		"<script>&amp;": "SA", "1Password": "1", "": "", "—": "",
	} {
		uri := monogram.DataURI(name)
		require.Equal(t, uri, monogram.DataURI(name))
		require.Less(t, len(uri), 300)
		require.NotRegexp(t, `[<>"#\s]`, uri)
		parsed, err := url.Parse(uri)
		require.NoError(t, err)
		require.Equal(t, "data", parsed.Scheme)
		text, err := url.PathUnescape(strings.TrimPrefix(uri, "data:image/svg+xml,"))
		require.NoError(t, err)
		var svg struct {
			XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
			Text    string   `xml:"text"`
		}
		require.NoError(t, xml.Unmarshal([]byte(text), &svg))
		require.Equal(t, initials, svg.Text, name)
	}
	require.NotEqual(t, monogram.DataURI("Google"), monogram.DataURI("GitHub"))
}
