package browsertest

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// TestNewcomer goes the way of the first five minutes: from the printed link to an answer with its reason.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]hand{"mouse": mouse{}, "keyboard": keyboard{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openBrowser(t, "newcomer-"+name)
			b.hand = h
			link, err := b.link()
			require.NoError(t, err)
			b.load(link[len(b.platform.url):])
			b.see("Who exists, who belongs where")
			require.Equal(t, "/console/default/start", eval[string](b, "location.pathname + location.hash"))
			b.otherTenant(b.tenant)
			b.see("Make the sample company")
			makeSample(b)
			b.click("May Li Wei read invoices?")
			b.see("Yes", "Li Wei may read invoices in Sample books.", "is a member of", "which has this rule:")
			b.screen("Events")
			b.see("Rule created")
			b.click("See what happened before")
			b.see("Rule created")
			b.screen("Start")
			b.click("Remove it")
			b.see("Remove the sample company?")
			b.clickIn("dialog", "Remove it")
			b.see("The sample company is gone")
			b.clean()
		})
	}
}

// otherTenant opens another tenant by the button above the navigation.
func (b *browser) otherTenant(name string) {
	b.t.Helper()
	b.hand.use(b, "document.querySelector('button.brand')")
	b.fill("Name of the tenant", name)
	b.press(kb.Enter)
	b.waitFor("location.pathname.startsWith('/console/" + name + "/')")
}

func TestUsers(t *testing.T) {
	play(t, "users", func(b *browser) {
		b.open("start")
		b.screen("Users")
		b.see("No users yet")
		b.click("New user")
		b.click("Create")
		b.waitFor("document.activeElement === input('Username') && document.activeElement.ariaInvalid === 'true'")
		b.fill("Username", "ada")
		b.fill("Display name", "Ada Lovelace")
		b.fill("E-mail", "ada@example.org")
		b.click("Create")
		b.see("Ada Lovelace was created")
		b.waitFor("document.querySelector('.panel h2')?.textContent === 'Ada Lovelace'")

		b.fill("E-mail", "no address")
		b.press("s", chromedp.KeyModifiers(kb.ModifierCtrl))
		b.waitFor("document.activeElement.ariaInvalid === 'true'")
		b.fill("E-mail", "countess@example.org")
		b.fill("Employee number", "1815")
		b.see("2 changes")
		b.press(kb.Escape)
		b.see("Leave without saving?")
		b.click("Stay")
		b.click("Save")
		b.see("Ada Lovelace was saved", "No changes")
		b.click("Audit")
		b.see("countess@example.org", "Console: Users")
		b.undo()
		b.see("Undone")
		b.click("Overview")
		b.waitFor("input('E-mail').value === 'ada@example.org'")

		b.clickIn(".panel", "Close")
		b.waitFor("!document.querySelector('.panel')")
		b.back()
		b.waitFor("document.querySelector('.panel h2')")
		b.click("More actions")
		b.click("Lock")
		b.fill("Reason", "travels")
		b.clickIn("dialog", "Lock")
		b.see("Ada Lovelace is locked", "travels")
		b.undo()
		b.gone("travels")

		b.find("ada")
		b.see("1 record")
		b.find("nobody")
		b.see("Nothing matches")
		b.click("Clear search and filters")
		b.see("1 record")

		b.click("More actions")
		b.click("Delete…")
		b.see("Delete Ada Lovelace?")
		b.clickIn("dialog", "Download the record")
		require.Contains(b.t, b.saved(), `"username": "ada"`)
		b.fill("Type ada to confirm", "ada")
		b.clickIn("dialog", "Delete")
		b.see("Ada Lovelace was deleted", "No users yet")
	})
}

// TestOffboarding: what keeps somebody out says first what ends, and afterwards what does not come back.
func TestOffboarding(t *testing.T) {
	play(t, "offboarding", func(b *browser) {
		user := b.liWei()
		b.call(b.t, b.tenant, "POST", "/v1/users", map[string]any{"username": "bob", "display_name": "Bob"})
		b.open("users?open=" + user["id"].(string))
		b.click("More actions")
		b.click("Disable…")
		b.see("Disable Li Wei?", "What ends", "Lasting access of applications")
		b.clickIn("dialog", "Disable")
		b.see("Li Wei is disabled")
		b.waitFor("document.querySelector('.panel-head').textContent.includes('Disabled')")
		b.undo()
		b.see("Undone. Sessions, tokens and lasting access that ended stay ended")
		b.waitFor("document.querySelector('.panel-head').textContent.includes('Active')")

		b.click("More actions")
		b.click("Offboard…")
		b.see("Offboard Li Wei", "Memberships", "Sub-accounts")
		b.fill("Successor", "li")
		b.clickIn("dialog .user-picks", "Li Wei")
		b.clickIn("dialog", "Offboard")
		b.see("must be another user")
		b.clickIn("dialog", "Choose another user")
		b.fill("Successor", "bob")
		b.clickIn("dialog .user-picks", "Bob")
		b.fill("Reason", "moves away")
		b.clickIn("dialog", "Offboard")
		b.see("Li Wei has left")
		b.waitFor("document.querySelector('.panel-head').textContent.includes('Resigned')")
		b.click("More actions")
		b.click("Reinstate")
		b.see("Li Wei is reinstated")
		b.waitFor("document.querySelector('.panel-head').textContent.includes('Active')")

		b.click("More actions")
		b.click("Offboard…")
		b.choose("When", "At a time")
		eval[bool](b, `((i) => {
			i.value = '2999-12-31T18:00';
			return i.dispatchEvent(new Event('input', {bubbles: true}));
		})(input('Last moment'))`)
		b.clickIn("dialog", "Offboard")
		b.see("Li Wei leaves on 31 Dec 2999")
		b.click("More actions")
		b.click("Cancel the offboarding")
		b.see("Li Wei stays")
	})
}

// find types into the search of a list.
func (b *browser) find(words string) {
	b.t.Helper()
	if _, ok := b.hand.(keyboard); ok {
		for eval[bool](b, "document.activeElement.matches('input, textarea, select')") {
			b.press(kb.Tab) // where "/" is a letter
		}
		b.press("/")
		b.waitFor("document.activeElement.closest('[role=search]')")
	} else {
		b.hand.reach(b, "document.querySelector('[role=search] input')")
	}
	b.press("a", chromedp.KeyModifiers(kb.ModifierCtrl))
	b.press(words)
	b.waitFor("new URLSearchParams(location.search).get('q') === '" + words + "'")
	b.rest()
}

func TestUsersTogether(t *testing.T) {
	play(t, "together", func(b *browser) {
		b.call(b.t, b.tenant, "POST", "/v1/users/import", lines(300))
		b.open("users")
		b.see("300 records")
		for range 3 {
			b.press("j")
		}
		b.press("x")
		b.press("j")
		b.press("x")
		b.see("2 selected")
		b.clickIn(".bulk", "Lock…")
		b.see("The platform would do it for all 2")
		b.clickIn("dialog", "Lock 2 users")
		b.see("2 users changed")
		b.click("Locked")
		b.clickIn("[popover]", "Locked")
		b.see("2 records")
		require.Equal(b.t, "true", b.query("locked"))
		b.click("Clear search and filters")
		b.see("300 records")
		b.click("Sort by Username")
		b.waitFor("document.querySelector('.list a.open')?.textContent.endsWith('Person 000')")
		b.waitFor("document.querySelector('.list').scrollTo(0, 1e6) ?? shows('Person 299')")
	})
}

// TestUsersReset: new passwords are shown once, and the dialog stays until their file was taken.
func TestUsersReset(t *testing.T) {
	play(t, "reset", func(b *browser) {
		b.call(b.t, b.tenant, "POST", "/v1/users/import", lines(3))
		b.open("users")
		b.see("3 records")
		b.press("jx")
		b.see("1 selected")
		b.clickIn(".bulk", "More actions")
		b.click("Reset passwords…")
		b.see("The platform would do it")
		b.clickIn("dialog", "Reset the password of 1 user")
		b.see("1 user changed", "The passwords are shown only now", "Passwords as a file")
		b.press(kb.Escape)
		b.see("The passwords are shown only now")
		b.click("Passwords as a file")
		b.click("I have stored them")
		b.waitFor("!document.querySelector('dialog[open]')")
	})
}

// TestInvitations: one user is invited from the record, many from the list, and who cannot be invited is named before.
func TestInvitations(t *testing.T) {
	play(t, "invite", func(b *browser) {
		b.call(b.t, b.tenant, "POST", "/v1/users/import", lines(2)+`{"username":"person.none"}`)
		b.open("users?q=person.000")
		b.click("Person 000")
		b.see("General")
		b.clickIn(".panel", "More actions")
		b.click("Invite by email…")
		b.see("An email with a link goes to the user’s address")
		b.click("Send the invitation")
		b.see("Person 000 is invited by email to person.000@example.org")
		b.open("users?q=person")
		b.see("3 records")
		b.press("jxjxjx")
		b.see("3 selected")
		b.clickIn(".bulk", "More actions")
		b.click("Invite by email…")
		b.see("The platform would do it for 2 of 3", "has no email address")
		b.clickIn("dialog", "Invite 2 users")
		b.see("2 users invited")
		require.Len(b.t, b.call(b.t, b.tenant, "GET", "/v1/invitations?status=pending", nil)["items"], 2)
	})
}

// TestUsersExport: the file has the users of the list, with its search and filters.
func TestUsersExport(t *testing.T) {
	play(t, "export", func(b *browser) {
		b.call(b.t, b.tenant, "POST", "/v1/users/import", lines(12))
		people := b.call(b.t, b.tenant, "GET", "/v1/users?page_sort=username", nil)["items"].([]any)
		locked := []any{people[3].(map[string]any)["id"], people[11].(map[string]any)["id"]}
		b.call(b.t, b.tenant, "POST", "/v1/batch/users-lock", map[string]any{"ids": locked})
		b.open("users?locked=true")
		b.see("2 records")
		b.find("person.00")
		b.see("1 record")
		b.click("Export…")
		b.clickIn("dialog", "Export")
		b.see("1 user exported")
		rows, err := csv.NewReader(strings.NewReader(b.saved())).ReadAll()
		require.NoError(b.t, err)
		require.Len(b.t, rows, 2)
		require.Equal(b.t, "person.003", rows[1][slices.Index(rows[0], "username")])

		b.click("Clear search and filters")
		b.see("12 records")
		b.click("Export…")
		b.choose("Form", "JSON Lines, for programs: one user a line")
		b.clickIn("dialog", "Export")
		b.see("12 users exported")
		require.Equal(b.t, 12, strings.Count(b.saved(), `"username":"person.`))
	})
}

// TestUsersMove: a change of organization is tried, made and undone. Who leaves no node is only added.
func TestUsersMove(t *testing.T) {
	play(t, "move", func(b *browser) {
		nodes := b.teams(12)
		inside := func(node string, people float64) {
			b.t.Helper()
			require.Eventually(b.t, func() bool {
				path := "/v1/tree-nodes/" + nodes[node] + "/users?page_size=1"
				return b.call(b.t, b.tenant, "GET", path, nil)["total"] == people
			}, patience, 50*time.Millisecond)
		}
		b.open("users")
		b.see("12 records")
		b.changeOrganization(12, "", "Blue")
		inside("Blue", 12)
		b.changeOrganization(12, "Blue", "Green")
		inside("Blue", 0)
		inside("Green", 12)
		b.undo()
		b.see("Undone")
		inside("Blue", 12)
		inside("Green", 0)
	})
}

// TestUsersMoveMany: more people than one call takes change their organization in batches.
func TestUsersMoveMany(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "move-many")
	b.teams(1001)
	b.open("users")
	b.see("1,001 records")
	b.changeOrganization(1001, "", "Blue")
	made := slices.DeleteFunc(b.proxy.sent("POST /v1/batch/users-change-organization"),
		func(c call) bool { return strings.Contains(c.query, "dry_run") })
	require.Len(t, made, 2)
	b.clean()
}

// teams makes people, and two nodes for them.
func (b *browser) teams(people int) (nodes map[string]string) {
	b.t.Helper()
	b.call(b.t, b.tenant, "POST", "/v1/users/import", lines(people))
	b.call(b.t, b.tenant, "POST", "/v1/core-objects", map[string]string{"code": "team", "name": "Team"})
	nodes = map[string]string{}
	for _, name := range []string{"Blue", "Green"} {
		nodes[name] = b.call(b.t, b.tenant, "POST", "/v1/tree-nodes",
			map[string]string{"object_code": "team", "parent_id": "", "name": name})["id"].(string)
	}
	return nodes
}

// changeOrganization moves everybody in the list of users; from no node, they are added.
func (b *browser) changeOrganization(people int, from, to string) {
	b.t.Helper()
	count := fmt.Sprint(people)
	if people > 999 {
		count = fmt.Sprintf("%d,%03d", people/1000, people%1000)
	}
	b.press("jx")
	b.click("Select all " + count + " that match")
	b.clickIn(".bulk", "More actions")
	b.click("Change organization…")
	for _, step := range [][2]string{{"They leave", from}, {"They join", to}} {
		if label, node := step[0], step[1]; node != "" {
			b.fill(label, node)
			b.clickIn("dialog .hits", node)
		}
	}
	b.see("The platform would do it for all " + count)
	b.clickIn("dialog", "Change organization")
	b.see(count + " users changed")
	b.waitFor("!document.querySelector('dialog[open]')")
}

// TestUsersConflict: somebody else changes the record while its form is open.
func TestUsersConflict(t *testing.T) {
	play(t, "conflict", func(b *browser) {
		user := b.liWei()
		b.open("users")
		b.click("Li Wei")
		b.see("General")
		b.fill("Mobile", "+15550001111")
		b.fill("Display name", "May L.")
		b.call(b.t, b.tenant, "PATCH", "/v1/users/"+user["id"].(string), map[string]string{"mobile": "+15559998888"})
		b.click("Save")
		b.see("Somebody else changed this record", "+15559998888")
		b.picture("conflict-" + b.tenant)
		b.click("+15559998888")
		b.click("Use these")
		b.see("1 change")
		b.click("Save")
		b.see("May L. was saved")
		b.waitFor("input('Mobile').value === '+15559998888'")
	})
}

// TestNumbersStay: a number that JavaScript cannot hold is shown as it is, and outlives a change of its neighbour.
func TestNumbersStay(t *testing.T) {
	play(t, "numbers", func(b *browser) {
		user := b.call(b.t, b.tenant, "POST", "/v1/users", map[string]any{
			"username": "li", "display_name": "Li Wei", "free_ext_props": json.RawMessage(`{"badge":9007199254740993}`),
		})
		b.open("users?open=" + user["id"].(string))
		b.waitFor("input('Own properties').value.includes('9007199254740993')")
		b.fill("Own properties", `{"badge": 9007199254740993, "floor": 3}`)
		b.clickIn(".panel-foot", "Save")
		b.see("Li Wei was saved")
		b.clickIn(".panel", "JSON")
		b.see("9007199254740993")
		require.Contains(b.t, eval[string](b, fmt.Sprintf(`fetch('/console/api/v1/users/%s', {headers: {'X-Tenant-Id': '%s'}})
			.then((r) => r.text())`, user["id"], b.tenant)), `{"badge":9007199254740993,"floor":3}`)
	})
}

// liWei makes a user, as somebody else than the person at the console.
func (b *browser) liWei() map[string]any {
	b.t.Helper()
	return b.call(b.t, b.tenant, "POST", "/v1/users", map[string]string{"username": "li", "display_name": "Li Wei"})
}

// lines are users as an import takes them: Person 000, Person 001 …
func lines(n int) string {
	const line = `{"username":"person.%03d","display_name":"Person %03d","email":"person.%03d@example.org"}` + "\n"
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, line, i, i, i)
	}
	return text.String()
}

// TestShowAs: a change is a command before it is sent, and after.
func TestShowAs(t *testing.T) {
	play(t, "show-as", func(b *browser) {
		user := b.liWei()
		b.open("users?open=" + user["id"].(string))
		b.see("General")
		b.fill("Employee number", "1815")
		b.clickIn(".panel", "Show as idp or curl")
		b.see("Not sent yet", "idp api update-user "+user["id"].(string), "--if-version 1", "--employee-number 1815")
		b.clickIn("dialog", "curl")
		b.see("curl -X PATCH", "/v1/users/"+user["id"].(string), "If-Match", `{"employee_number":"1815"}`)
		b.clickIn("dialog", "Close")
		require.Empty(b.t, b.proxy.sent("PATCH /*"))
		b.click("Save")
		b.see("Li Wei was saved")
		b.clickIn(".toast:last-of-type", "Command")
		b.see("Sent at", "1815")
		b.clickIn("dialog", "Close")
	})
}

// TestPlaceInList: Back shows the rows, the place and the focus that were left, and a change of a row moves none.
func TestPlaceInList(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "place")
	b.call(t, b.tenant, "POST", "/v1/users/import", lines(300))
	b.open("users?sort=username")
	b.see("300 records")
	b.waitFor("(document.querySelector('.list').scrollTo(0, 8000), shows('Person 205'))")
	b.rest()
	const top = "document.querySelector('.list').scrollTop"
	at := eval[float64](b, top)
	person := func(what string) string {
		return "[...document.querySelectorAll('.list a.open')].find((e) => e.textContent.endsWith('Person 205'))" + what
	}
	b.hand.use(b, person(""))
	b.fill("Employee number", "205")
	b.click("Save")
	b.see("Person 205 was saved")
	b.rest()
	require.Equal(t, at, eval[float64](b, top))
	b.waitFor(person(""))
	b.screen("Explorer")
	b.back()
	b.see("General")
	b.rest()
	require.Equal(t, at, eval[float64](b, top))
	b.waitFor(person(" === document.activeElement"))
	b.back()
	b.waitFor("!document.querySelector('.panel')")
	b.rest()
	require.Equal(t, at, eval[float64](b, top))
	b.waitFor(person(""))
	b.clean()
}

// TestFocusOfRecords: who opens a record by a key goes on in its panel, and comes back to its row.
func TestFocusOfRecords(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "focus")
	b.liWei()
	b.open("users")
	b.see("1 record")
	b.press("j")
	b.waitFor("document.activeElement.matches('.item-row a.open')")
	b.press("\r")
	b.waitFor("document.activeElement.matches('.panel h2')")
	b.press("\x1b")
	b.waitFor("!document.querySelector('.panel') && document.activeElement.matches('.item-row a.open')")
	b.clean()
}
