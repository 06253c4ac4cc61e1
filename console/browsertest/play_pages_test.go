package browsertest

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// TestSearches: a search finds what is beyond the first page, on the screen and in the palette.
func TestSearches(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "searches")
	type fields = map[string]any
	for n := range 101 { // a page has 100
		b.call(t, b.tenant, "POST", "/v1/components",
			fields{"code": fmt.Sprintf("part-%03d", n), "name": fmt.Sprintf("Part %03d", n), "type": "page"})
	}
	b.call(t, b.tenant, "POST", "/v1/components", fields{"code": "zebra", "name": "Zebra crossing", "type": "sign"})
	b.open("components")
	b.see("102 records")
	b.find("zebra")
	b.see("1 record", "Zebra crossing")
	b.open("components?type=sign")
	b.see("1 record", "Zebra crossing")

	source := fields{"code": "quagga", "name": "Quagga", "source": "function main() {}"}
	b.call(t, b.tenant, "POST", "/v1/functions", source)
	b.call(t, b.tenant, "POST", "/v1/jobs", fields{"code": "quagga", "name": "Quagga",
		"schedule": fields{"type": "cron", "cron": "30 2 * * *"}, "target": fields{"type": "nats", "subject": "x"}})
	b.call(t, b.tenant, "PUT", "/v1/kv/buckets/quagga", fields{})
	b.call(t, b.tenant, "POST", "/v1/auth-methods", fields{"code": "quagga", "name": "Quagga", "type": "password"})
	b.call(t, b.tenant, "POST", "/v1/auth-templates", fields{"code": "quagga-login", "name": "Quagga login",
		"steps": []fields{{"methods": []string{"quagga"}, "required": true}}})
	for screen, path := range map[string]string{
		"functions": "/v1/functions", "jobs": "/v1/jobs", "kv": "/v1/kv/buckets",
		"connections/methods": "/v1/auth-methods", "connections/templates": "/v1/auth-templates",
		"connections": "/v1/idp/connections",
	} {
		b.proxy.forget()
		b.open(screen + "?q=uagg")
		if screen == "connections" {
			b.see("Nothing matches")
		} else {
			b.see("1 record", "Quagga")
		}
		for _, c := range b.proxy.sent("GET " + path) {
			query, err := url.ParseQuery(c.query)
			require.NoError(t, err)
			if query.Get("count") == "" { // of the list: others name methods by their codes
				require.Equal(t, "uagg", query.Get("keyword"), screen)
			}
		}
	}
	b.press("k", chromedp.KeyModifiers(kb.ModifierCtrl))
	b.waitFor("document.activeElement.matches('.palette input')")
	b.press("uagg")
	b.waitFor("document.querySelectorAll('.palette [role=option]').length === 5")
	b.clean()
}

// TestPaletteActions: the palette does what screens begin with, and what the menu of the open record does.
func TestPaletteActions(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "palette")
	user := b.liWei()
	choose := func(words, option string) {
		b.press("k", chromedp.KeyModifiers(kb.ModifierCtrl))
		b.waitFor("document.activeElement.matches('.palette input')")
		b.press(words)
		chosen := "document.querySelector('.palette [aria-selected=true]')?.textContent"
		b.waitFor(fmt.Sprintf("%s.includes(%q)", chosen, option))
		b.press(kb.Enter)
	}
	b.open("users?open=" + user["id"].(string))
	b.see("General")
	for words, seen := range map[string]string{
		"offboard": "Offboard Li Wei", "lock": "Lock Li Wei?",
		"reset": "Reset the password of Li Wei", "disable": "Disable Li Wei?",
	} {
		choose(words, "li")
		b.see(seen)
		b.press(kb.Escape)
		b.waitFor("!document.querySelector('dialog[open]')")
	}
	for words, seen := range map[string]string{
		"new user": "Username", "new tree": "New tree", "new application": "Own application", "new group": "New group",
		"new job": "New job", "new method": "New method", "new connection": "Choose a provider",
		"signing keys": "Tokens are signed with one key at a time",
	} {
		b.open("start")
		choose(words, "")
		b.see(seen)
	}
	b.clean()
}

// TestPagesOfMembers: a group, a set and a node with more members than a page has show all of them.
func TestPagesOfMembers(t *testing.T) {
	t.Parallel()
	const many = 201 // a page of a panel has 200
	b := signedIn(t, "pages")
	type fields = map[string]any
	id := func(path string, body fields) string {
		t.Helper()
		made, _ := b.call(t, b.tenant, "POST", path, body)["id"].(string)
		return made
	}
	b.call(t, b.tenant, "POST", "/v1/users/import", lines(many))
	var people []string
	for page := 1; len(people) < many; page++ {
		list := b.call(t, b.tenant, "GET", fmt.Sprintf("/v1/users?page_size=200&page_num=%d", page), nil)
		for _, item := range list["items"].([]any) {
			people = append(people, item.(fields)["id"].(string))
		}
	}

	group := id("/v1/auth-units", fields{"identity_type": "group", "identity_id": "crew", "identity_name": "Crew"})
	b.call(t, b.tenant, "POST", "/v1/auth-units/"+group+"/members", fields{"user_ids": people})
	b.open("grants/units?tab=members&open=" + group)
	b.waitFor("document.querySelectorAll('.panel .grants-rules li').length === 200")
	b.clickIn(".panel", "Show more")
	b.waitFor(fmt.Sprintf("document.querySelectorAll('.panel .grants-rules li').length === %d", many))
	b.waitFor("!labelled('Show more', '.panel')")

	app := id("/v1/applications", fields{"name": "Ledger", "category": "4"})
	set := id("/v1/resource-sets", fields{"application_id": app, "code": "books", "name": "Books"})
	members := make([]fields, many)
	for n := range many {
		code := fmt.Sprintf("book-%03d", n)
		id("/v1/resources", fields{"application_id": app, "type": "data", "code": code,
			"actions": []fields{{"code": "read"}}})
		members[n] = fields{"resource_type": "data", "resource_code": code}
	}
	b.call(t, b.tenant, "POST", "/v1/resource-sets/"+set+"/members", fields{"members": members})
	b.open("grants/sets?app=" + app + "&open=" + set)
	b.waitFor("document.querySelectorAll('.panel .grants-rules li').length === 200")
	b.clickIn(".panel", "Show more")
	b.waitFor(fmt.Sprintf("document.querySelectorAll('.panel .grants-rules li').length === %d", many))

	tree := b.call(t, b.tenant, "POST", "/v1/core-objects", fields{"code": "team", "name": "Team"})
	in := make([]fields, many)
	for n, person := range people {
		in[n] = fields{"node_id": tree["root_node_id"], "user_id": person}
	}
	b.call(t, b.tenant, "POST", "/v1/batch/tree-users", fields{"items": in})
	b.open("members/" + tree["root_node_id"].(string))
	b.see("201 in it")
	b.waitFor(fmt.Sprintf(`(document.querySelector('.list').scrollTo(0, 1e6),
		document.querySelector('.list table').ariaRowCount === '%d' && !document.querySelector('.list-foot'))`, many+1))
	b.clean()
}

// TestUndoOfMany: a change of more people than one call takes is undone as it was made, in batches.
func TestUndoOfMany(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "undo-many")
	b.call(t, b.tenant, "POST", "/v1/users/import", lines(1001))
	b.open("users")
	b.see("1,001 records")
	b.press("j")
	b.press("x")
	b.click("Select all 1,001 that match")
	b.clickIn(".bulk", "Lock…")
	b.see("The platform would do it for all 1,001")
	b.clickIn("dialog", "Lock 1,001 users")
	b.see("1,001 users changed")
	b.undo()
	b.see("1,001 users changed")
	require.Len(t, b.proxy.sent("POST /v1/batch/users-unlock"), 2)
	b.open("users?locked=true")
	b.see("Nothing matches")
	b.clean()
}

// TestConflictOfCode: somebody else changes the code of a function while it is edited; lines say what each has changed.
func TestConflictOfCode(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "code-conflict")
	source := func(first, last string) string {
		return "function main() {\n  " + first + "\n  return " + last + ";\n}\n"
	}
	made := b.call(t, b.tenant, "POST", "/v1/functions",
		map[string]any{"code": "greet", "name": "Greet", "source": source("let a = 1;", "a")})
	path := "/v1/functions/" + made["id"].(string)
	b.open("functions?open=" + made["id"].(string))
	b.waitFor("input('Source').value.includes('let a = 1')")
	b.fill("Source", "")
	b.press("function main() {\rlet a = 1;\rreturn 'mine';\r}\r")
	b.call(t, b.tenant, "PATCH", path, map[string]any{"source": source("let a = 'theirs';", "a")})
	b.click("Save")
	b.see("Somebody else changed this record")
	b.waitFor("document.querySelectorAll('dialog .linediff').length === 2")
	side := func(n int) string {
		return eval[string](b, fmt.Sprintf("document.querySelectorAll('dialog .linediff')[%d].innerText", n))
	}
	require.Contains(t, side(0), "1 new, 1 gone")
	require.Contains(t, side(0), "let a = 'theirs';")
	require.NotContains(t, side(0), "mine")
	require.Contains(t, side(1), "return 'mine';")
	require.NotContains(t, side(1), "theirs")
	b.click("Theirs")
	b.click("Use these")
	b.waitFor("input('Source').value.includes('theirs') && !input('Source').value.includes('mine')")
	b.clean()
}
