package browsertest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestScale works with 100,000 users and a tree of 20,000 nodes, tells how long a person waits, and looks at every
// screen there. It runs where IDP_TEST_CONSOLE_SCALE is set, alone: other tests count the users of the sample company.
func TestScale(t *testing.T) {
	if os.Getenv("IDP_TEST_CONSOLE_SCALE") == "" {
		t.Skip("IDP_TEST_CONSOLE_SCALE=1 runs it")
	}
	const users, departments, teams = 100_000, 200, 99
	b := sample(t)
	told := func(what string, do func()) {
		start := time.Now()
		do()
		t.Logf("%-50s %6d ms", what, time.Since(start).Milliseconds())
	}
	told("100,000 users are imported", func() {
		for from := 0; from < users; from += 20_000 {
			var text strings.Builder
			for i := from; i < from+20_000; i++ {
				fmt.Fprintf(&text, `{"username":"a%06d","display_name":"Person %06d"}`+"\n", i, i)
			}
			b.call(t, b.tenant, "POST", "/v1/users/import", text.String())
		}
	})
	told("20,000 nodes are made", func() { makeDepartments(b, departments, teams) })

	told("users: first rows", func() {
		b.load("/console/default/users")
		b.waitFor("document.querySelectorAll('.list a.open').length > 10")
	})
	told("users: the total", func() { b.see("100,200 records") })
	told("users: search while typing, to the only hit", func() {
		b.press("/")
		b.press("person 077777")
		b.see("1 record")
	})
	b.press("\x1b")
	b.see("100,200 records")
	told("users: sorted by username", func() {
		b.click("Username")
		b.waitFor("document.querySelector('.list a.open')?.textContent.endsWith('Person 000000')")
	})
	told("users: ten pages scrolled", func() {
		for page := 1; page <= 10; page++ {
			b.waitFor(fmt.Sprintf(`(document.querySelector('.list').scrollTop = 1e7,
				document.querySelector('.list').scrollHeight > %d)`, page*100*40))
		}
	})
	told("tree: open", func() {
		b.load("/console/default/tree/big")
		b.see("Department 000")
	})
	told("tree: a department is opened", func() {
		b.hand.use(b, "[...document.querySelectorAll('[role=treeitem]')].find((e) => "+
			"e.textContent.includes('Department 003')).querySelector('.twist')")
		b.see("Team 003-00")
	})
	told("tree: scrolled to the end", func() {
		b.waitFor(`(document.querySelector('[role=tree]').scrollTop = 1e7, shows('Department 199'))`)
	})
	told("tree: search, to the only hit", func() {
		b.press("/")
		b.press("team 123-45")
		b.waitFor("document.querySelectorAll('.hits li').length === 1")
	})
	b.clean()
	told("the audit log has all of it", func() { // rows that still arrive would move the screens that show them
		for path, record := range map[string]map[string]string{
			"/v1/users": {"username": "last"}, "/v1/core-objects": {"code": "last", "name": "Last"},
		} {
			b.recorded(b.call(t, b.tenant, "POST", path, record)["id"].(string), 1)
		}
	})
	axe := axeScript(b)
	told("every screen", func() {
		for _, look := range looks {
			b.lookAt(look, axe, look.name+"-scale")
		}
	})
}

func makeDepartments(b *browser, departments, teams int) {
	b.t.Helper()
	b.call(b.t, b.tenant, "POST", "/v1/core-objects", map[string]string{"code": "big", "name": "Big"})
	const at = 9 // departments in a batch, of at most 1000 nodes
	for from := 0; from < departments; from += at {
		var items []map[string]string
		for d := from; d < min(from+at, departments); d++ {
			ref := fmt.Sprint("d", d)
			name := fmt.Sprintf("Department %03d", d)
			items = append(items, map[string]string{"ref": ref, "name": name, "parent_id": ""})
			for team := range teams {
				items = append(items, map[string]string{
					"name": fmt.Sprintf("Team %03d-%02d", d, team), "parent_ref": ref,
				})
			}
		}
		b.call(b.t, b.tenant, "POST", "/v1/batch/tree-nodes", map[string]any{"object_code": "big", "items": items})
	}
}
