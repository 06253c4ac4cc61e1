package browsertest

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// TestScopes: who may only read users sees what the token lacks by its name, and cannot type into the form of a user.
func TestScopes(t *testing.T) {
	t.Parallel()
	b := openBrowser(t, "scopes")
	app := b.call(t, b.tenant, "POST", "/v1/applications", map[string]any{"name": "Reader", "category": "4",
		"scopes": []string{"users:read"}})
	b.liWei()
	b.open("users")
	b.fill("Client id", app["client_id"].(string))
	b.fill("Client secret", app["client_secret"].(string))
	b.press(kb.Enter)
	b.see("1 record")
	lacking := `[...document.querySelectorAll('main button[aria-disabled=true]')].map(
		(e) => e.innerText + ': ' + e.title)`
	require.Equal(t, []string{"Import…: Needs the scope users:write", "New user: Needs the scope users:write"},
		eval[[]string](b, lacking))
	b.click("Li Wei")
	b.see("General")
	b.waitFor("input('E-mail').readOnly && !labelled('Save')")
	b.clickIn(".panel", "Close")
	b.open("settings/users")
	b.waitFor("document.querySelector('.settings-page input:disabled')?.closest('label').title === " +
		"'Needs the scope users:write'")
	b.open("start")
	b.rest()
	for _, label := range []string{"Make the sample company", "Import a file…"} {
		require.True(t, eval[bool](b, `!labelled("`+label+`")`), label)
	}
	b.open("apps")
	b.see("Not allowed", "the scope applications:read is needed")
	b.clean()
}
