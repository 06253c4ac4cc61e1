package commands

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestChangesCanBeTried runs commands with --dry-run, which changes nothing, and with --curl, which sends nothing.
func TestChangesCanBeTried(t *testing.T) {
	t.Parallel()
	p := newPlay(t, hr)
	for _, command := range []string{
		"apps create hr", "apps rotate crm --grace 1h", "apps disable crm", "apps delete crm", "protocols set crm saml",
		"protocols enable crm saml", "protocols rotate crm oidc", "accounts create crm new --user li.wei",
		"accounts update crm liwei --display-name x", "accounts enable crm liwei", "accounts delete crm liwei",
		"sources create --provider github ClientId=1", "sources update Our ClientId=2", "sources attach Our crm",
		"sources detach Our crm", "credentials create --user li.wei --provider-code github --id1 9",
		"credentials disable o6x", "credentials reset-password li.wei", "subscriptions create new --nats --type *",
		"subscriptions update HR --type *", "subscriptions pause HR", "subscriptions rotate HR",
		"subscriptions reset HR --to now", "subscriptions deliveries redeliver HR e1",
	} {
		words := strings.Fields(command)
		got := p.run(append(words, "--dry-run")...)
		assert.Equal(t, 0, got.code, "%s: %s", command, got.err)
		assert.Contains(t, got.err, "dry run: nothing was changed", command)
		tried := 0
		for _, asked := range p.asked() {
			if asked.method == http.MethodGet || strings.HasPrefix(asked.target, "/v1/batch/") { // finds records
				continue
			}
			tried++
			assert.Contains(t, asked.target, "dry_run=true", command)
		}
		assert.Equal(t, 1, tried, command)

		got = p.run(append(words, "--curl")...)
		assert.Equal(t, 0, got.code, "%s: %s", command, got.err)
		assert.Contains(t, got.out, "curl -X ", command)
		for _, asked := range p.asked() {
			finds := asked.method == http.MethodGet || strings.HasPrefix(asked.target, "/v1/batch/")
			assert.True(t, finds, "%s: %s %s", command, asked.method, asked.target)
		}
	}
}
