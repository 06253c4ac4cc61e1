package browsertest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKeyValue: what is typed is never lost, former states come back, and what goes along is said.
func TestKeyValue(t *testing.T) {
	play(t, "kv", func(b *browser) {
		b.open("kv")
		b.see("No buckets yet")
		b.clickIn(".actions", "New bucket")
		b.fill("Bucket", "settings")
		b.clickIn("dialog", "Create")
		b.see("No objects in this bucket")
		b.clickIn(".actions", "New object")
		b.fill("Key", "console//theme")
		b.fill("Value", `{"dark": `)
		b.see("This is not JSON")
		b.fill("Value", `{"dark": true}`)
		b.clickIn("dialog", "Create")
		b.waitFor("input('Key').getAttribute('aria-invalid') === 'true'")
		b.fill("Key", "console/theme")
		b.clickIn("dialog", "Create")
		b.see("console/theme was created")
		b.waitFor("document.querySelector('.panel h2').textContent === 'console/theme'")
		b.fill("Value", `{"dark": `)
		b.clickIn(".panel-foot", "Save")
		b.waitFor("input('Value').getAttribute('aria-invalid') === 'true'")
		require.Equal(b.t, `{"dark": `, eval[string](b, "input('Value').value"))
		b.fill("Value", `{"dark": false}`)
		b.clickIn(".panel-foot", "Save")
		b.see("console/theme was saved")
		b.undo()
		b.waitFor("input('Value').value.includes('true')")
		b.clickIn(".panel", "History")
		b.clickIn(".cards li:last-child", "Compare")
		b.see("No differences")
		b.clickIn(".cards li:nth-child(2)", "Compare")
		b.see("1 new, 1 gone")
		b.clickIn(".panel", "Write this back")
		b.see("was written back")
		b.undo()
		b.see("Undone")
		b.clickIn(".panel", "Overview")
		b.waitFor(`document.querySelector('.panel').innerText.includes('"5"')`) // loaded anew
		b.fill("Value", `{"id": 9007199254740993, "rate": 0.1}`)
		b.clickIn(".panel-foot", "Save")
		b.see("console/theme was saved")
		b.open("kv/settings?open=console%2Ftheme")
		b.waitFor("input('Value').value.includes('9007199254740993')")
		b.fill("Content type", "application/vnd.acme+json")
		b.clickIn(".panel-foot", "Save")
		b.see("console/theme was saved")
		require.Contains(b.t, eval[string](b, fmt.Sprintf(
			`fetch('/console/api/v1/kv/buckets/settings/objects/console%%2Ftheme', {headers: {'X-Tenant-Id': '%s'}})
				.then((r) => r.text())`, b.tenant)),
			`"value":{"id":9007199254740993,"rate":0.1}`, "a number above 2^53 outlives an edit")
		b.clickIn(".actions", "Settings")
		b.fill("History", "101")
		b.clickIn(".panel-foot", "Save")
		b.waitFor("input('History').getAttribute('aria-invalid') === 'true'")
		b.clickIn(".panel-foot", "Discard")
		b.clickIn(".panel-head", "More actions")
		b.click("Delete the bucket…")
		b.see("1 object and its former states go along")
		b.fill("Type settings to confirm", "settings")
		b.clickIn("dialog", "Delete")
		b.see("settings is being deleted")
	})
}

func TestComponents(t *testing.T) {
	play(t, "components", func(b *browser) {
		b.open("components?create=1")
		b.fill("Name", "Banner")
		b.fill("Code", "banner")
		b.fill("Type", "login_page")
		b.fill("Title", "Welcome")
		b.clickIn("dialog", "Create")
		b.see("Banner was created")
		b.clickIn(".panel", "Publish…")
		b.see("Publish Banner as version 1?")
		b.clickIn("dialog", "Publish")
		b.see("Banner is published as version 1")
		b.waitFor("document.querySelector('.panel').innerText.includes('Version 1,')") // loaded anew
		b.fill("Title", "Hello")
		b.clickIn(".panel-foot", "Save")
		b.see("Banner was saved")
		b.clickIn(".panel", "Versions")
		b.clickIn(".cards", "Compare")
		b.see("1 new, 1 gone")
		b.clickIn(".panel", "Bring this version back")
		b.see("Banner is as in version 1")
		b.see("No differences")
		b.undo()
		b.see("1 new, 1 gone")
	})
}

// TestLoginTemplates: a method is made, a template of it, and neither goes while it is used.
func TestLoginTemplates(t *testing.T) {
	play(t, "login", func(b *browser) {
		b.open("connections/methods?create=1")
		b.fill("Name", "Password")
		b.fill("Code", "pwd")
		b.clickIn("dialog", "Native database")
		b.clickIn("dialog", "Create")
		b.see("Password was created")
		b.open("connections/templates?create=1")
		b.fill("Name", "Staff")
		b.fill("Code", "staff")
		b.waitFor("input('Add a method to step 1')?.options.length === 2")
		b.clickIn("dialog", "Create")
		b.see("must have 1…20 items")
		b.addMethod("Add a method to step 1", "Password")
		b.clickIn("dialog", "Create")
		b.see("Staff was created")
		b.clickIn(".panel-head", "More actions")
		b.click("Make it the default")
		b.see("Staff is the default template")
		b.open("connections/methods")
		b.click("Password")
		b.clickIn(".panel-head", "More actions")
		b.click("Delete…")
		b.see("It is used by 1 template")
		b.clickIn(".toast", "See")
		b.see("While these refer to it, it cannot be deleted")
	})
}

// addMethod is choose for a list that begins anew after each choice.
func (b *browser) addMethod(label, name string) {
	b.t.Helper()
	find := fmt.Sprintf("input(%q)", label)
	b.waitFor(find)
	if _, ok := b.hand.(mouse); ok {
		eval[bool](b, "("+find+".focus(), true)")
	} else {
		b.hand.reach(b, find)
	}
	b.press(name)
	b.waitFor(fmt.Sprintf("labelled(%q)", "Remove "+name))
}
