package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestCompleteFlags: flags whose values are known are completed.
func TestCompleteFlags(t *testing.T) {
	t.Parallel()
	p := newPlay(t, answers{
		"GET /v1/tenants":                      `{"items":[{"id":"acme"},{"id":"globex"},{"id":"alpha"}]}`,
		"GET /v1/kv/buckets/idp-apply/objects": `{"items":[{"key":"set.crm"},{"key":"set.hr"}]}`,
	}.serve)
	for _, c := range []struct{ words, want string }{
		{"users list -o ", "table\nwide\njson\njsonl\nyaml\ncsv\nname\n"},
		{"export --kind ", "Application\nConnection\nResource\nResourceSet\nRule\nSubscription\nTree\n"},
		{"apply --set ", "crm\nhr\n"},
		{"diff --set ", "crm\nhr\n"},
		{"users list --tenant a", "acme\nalpha\n"},
	} {
		got := p.run(append([]string{"__complete"}, strings.Split(c.words, " ")...)...)
		list, _, _ := strings.Cut(got.out, ":4\n")
		assert.Equal(t, c.want, list, c.words+got.err)
	}
}
