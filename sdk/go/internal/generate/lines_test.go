package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFit(t *testing.T) {
	t.Parallel()
	words := strings.TrimSpace(strings.Repeat("word ", 24)) // 119 columns
	path := `"/v1/users/" + url.PathEscape(id) + "/a-path-of-many-words/one"`
	filling := strings.Repeat("a", 95)
	for name, c := range map[string]struct{ long, want string }{
		"a comment": {
			"// A " + words + " end.\ntype A struct{}",
			"// A " + words[:114] + "\n// word end.\ntype A struct{}",
		},
		"a comment of a field": {
			"type A struct {\n\t// " + words + "\n\tName string\n}",
			"type A struct {\n\t// " + words[:109] + "\n\t// word word\n\tName string\n}",
		},
		"a comment that fills its line": {
			"// " + words[:117] + "\ntype A struct{}",
			"// " + words[:117] + "\ntype A struct{}",
		},
		"a signature": {
			"func (c *Client) ListAccounts(ctx context.Context, id string, params ListAccountsParams, " +
				"options ...Option) ([]Account, error) {\n}",
			"func (c *Client) ListAccounts(\n\tctx context.Context, id string, params ListAccountsParams, " +
				"options ...Option,\n) ([]Account, error) {\n}",
		},
		"a signature whose parameters need two lines": {
			"func (c *Client) Change(ctx context.Context, application string, account string, " +
				"params ChangeAccountsParams, body ChangeAccountsBody, options ...Option) error {\n}",
			"func (c *Client) Change(\n\tctx context.Context, application string, account string, " +
				"params ChangeAccountsParams, body ChangeAccountsBody,\n\toptions ...Option,\n) error {\n}",
		},
		"members of which two would fill a line but for their comma": {
			"func f() {\n\trequest := Request{\n\t\tMethod: m, Path: " + filling + ", Open: true,\n\t}\n}",
			"func f() {\n\trequest := Request{\n\t\tMethod: m,\n\t\tPath:   " + filling +
				",\n\t\tOpen:   true,\n\t}\n}",
		},
		"members of a literal": {
			"func f() {\n\trequest := Request{\n\t\tMethod: http.MethodGet, Path: " + path +
				", Query: queryOf(parameters), Open: true,\n\t}\n}",
			"func f() {\n\trequest := Request{\n\t\tMethod: http.MethodGet, Path: " + path +
				",\n\t\tQuery: queryOf(parameters), Open: true,\n\t}\n}",
		},
		"what cannot be broken": {
			"type A struct {\n\t" + strings.Repeat("A", 120) + " string `json:\"a\"`\n}",
			"type A struct {\n\t" + strings.Repeat("A", 120) + " string `json:\"a\"`\n}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := fit([]byte("package idp\n\n" + c.long + "\n"))
			require.NoError(t, err)
			assert.Equal(t, "package idp\n\n"+c.want+"\n", string(got))
			again, err := fit(got)
			require.NoError(t, err)
			assert.Equal(t, string(got), string(again), "what fits stays")
		})
	}
}
