package commands

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSecretVariables gives each secret of an export a variable of its own, whatever the records are called. What
// cannot be told apart is an error.
func TestSecretVariables(t *testing.T) {
	t.Parallel()
	connection := func(provider, name, fields string) string {
		return `{"id":"1","version":1,"provider_code":"` + provider + `","display_name":"` + name + `","config_fields":{` +
			fields + `}}`
	}
	const password = `"BindPassword":"******"`
	for _, c := range []struct {
		connections []string
		want        string
	}{
		{[]string{connection("ldap", "目录", password), connection("ldap", "总部", password)}, ""},
		{[]string{connection("ldap", "a-b", password), connection("ldap", "a b", password)}, ""},
		{[]string{connection("ldap", "Our", password), connection("ldap", "our", password)}, ""},
		{[]string{connection("ldap", "a", `"k":["******","******"]`)}, ""},
		{[]string{connection("ldap", "a", `"x-y":"******","x_y":"******"`)}, "CONNECTION_LDAP_A_CONFIG_FIELDS_X_Y"},
	} {
		list := "[" + strings.Join(c.connections, ",") + "]"
		p := newPlay(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, list)
		})
		folder := t.TempDir()
		got := p.run("export", "-f", folder, "--kind", "Connection")
		if c.want != "" {
			assert.Equal(t, 2, got.code, list)
			assert.Contains(t, got.err, c.want)
			continue
		}
		require.Equal(t, 0, got.code, got.err)
		var names []string
		require.NoError(t, filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			names = append(names, regexp.MustCompile(`env:[A-Z0-9_]+\n`).FindAllString(string(text), -1)...)
			return err
		}))
		secrets := strings.Count(list, "******")
		assert.Len(t, names, secrets, list)
		slices.Sort(names)
		assert.Len(t, slices.Compact(names), secrets, "each has its own: %s", list)
	}
}
