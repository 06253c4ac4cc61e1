package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func TestTree(t *testing.T) {
	play(t, "tree", func(b *browser) {
		b.open("tree")
		b.see("No trees yet")
		b.click("New tree")
		b.fill("Name", "Ministry")
		b.fill("Code", "Not A Code")
		b.click("Create")
		b.waitFor("document.activeElement === input('Code') && document.activeElement.ariaInvalid === 'true'")
		b.fill("Code", "ministry")
		b.click("Create")
		b.see("Ministry was created")
		for _, name := range []string{"North", "South"} {
			b.click("New node")
			b.fill("Name", name)
			b.clickIn("dialog", "Create")
			b.see(name + " was created")
			b.waitFor(fmt.Sprintf("document.querySelector('.panel h2')?.textContent === %q", name))
			b.clickIn(".panel", "Close")
			b.waitFor("!document.querySelector('.panel')") // a new node goes below the open one
		}
		b.node("North")
		b.click("New node below")
		b.fill("Name", "Harbour")
		b.clickIn("dialog", "Create")
		b.waitFor("document.querySelector('.panel h2')?.textContent === 'Harbour'")

		b.fill("Tag", "quay")
		b.click("Save")
		b.see("Harbour was saved")
		b.undo()
		b.see("Undone")
		b.waitFor("input('Tag').value === ''")

		b.click("Move…")
		b.see("Choose the node below which it shall be")
		b.fill("New parent", "south")
		b.clickIn("dialog", "South")
		b.see("What will happen", "Ministry / South / Harbour")
		b.clickIn("dialog", "Move")
		b.see("Harbour is now below South")
		b.nodes("Ministry", "South", "Harbour", "Show 1 other")
		b.undo()
		b.see("Undone")
		b.waitFor("document.querySelector('.crumbs').textContent.includes('North')")
		b.nodes("Ministry", "North", "Harbour", "Show 1 other")

		b.find("harb")
		b.see("Ministry / North")
		b.find("nowhere")
		b.see("Nothing matches")
		b.click("Clear the search")

		b.node("North")
		b.click("More actions")
		b.click("Disable with all below")
		b.see("The platform would do it: 1 node below changes as well")
		b.see("Who gains and loses access", "Nobody gains or loses access.")
		b.clickIn("dialog", "Disable with all below")
		b.see("North is disabled")
		b.waitFor(`document.querySelector(".panel-head").textContent.includes("Disabled")`) // it was loaded anew
		b.click("More actions")
		b.click("Enable")
		b.see("Rules reach its members again.", "Who gains and loses access", "Nobody gains or loses access.")
		b.clickIn("dialog", "Enable")
		b.see("North is enabled")
		b.waitFor(`!document.querySelector(".panel-head").textContent.includes("Disabled")`)
		b.click("More actions")
		b.click("Delete…")
		b.see("There is 1 node below it")
		b.clickIn(".toast", "See")
		b.nodes("Ministry", "North", "Harbour", "South")
		b.node("Harbour")
		b.click("More actions")
		b.click("Delete…")
		b.fill("Type Harbour to confirm", "Harbour")
		b.clickIn("dialog", "Delete")
		b.see("Harbour was deleted")
	})
}

// node opens a node of the tree on the screen.
func (b *browser) node(name string) {
	b.t.Helper()
	b.hand.use(b, fmt.Sprintf(`[...document.querySelectorAll('[role=treeitem]')]
		.find((e) => e.querySelector('.name')?.textContent === %q)`, name))
	b.waitFor(fmt.Sprintf("document.querySelector('.panel h2')?.textContent === %q", name))
}

// nodes waits until the tree shows these rows.
func (b *browser) nodes(names ...string) {
	b.t.Helper()
	b.waitFor(fmt.Sprintf(`[...document.querySelectorAll('[role=treeitem]')].map((e) =>
		(e.querySelector('.name') ?? e).textContent.trim()).join() === %q`, strings.Join(names, ",")))
}

// TestTreeMoves: what is dragged, or cut and pasted, is moved after a preview.
func TestTreeMoves(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "tree-moves")
	b.call(t, b.tenant, "POST", "/v1/core-objects", map[string]string{"code": "ministry", "name": "Ministry"})
	for _, name := range []string{"North", "South"} {
		b.call(t, b.tenant, "POST", "/v1/tree-nodes",
			map[string]string{"object_code": "ministry", "parent_id": "", "name": name})
	}
	moved := func() {
		t.Helper()
		b.see("What will happen", "Ministry / South / North")
		b.clickIn("dialog", "Move")
		b.see("North is now below South")
	}
	b.open("tree/ministry")
	b.nodes("Ministry", "North", "South")
	eval[bool](b, `(() => {
		const row = (name) => [...document.querySelectorAll('[role=treeitem]')]
			.find((e) => e.querySelector('.name')?.textContent === name);
		const dataTransfer = new DataTransfer();
		for (const [name, what] of [['North', 'dragstart'], ['South', 'dragover'], ['South', 'drop']])
			row(name).dispatchEvent(new DragEvent(what, {bubbles: true, cancelable: true, dataTransfer}));
		return true;
	})()`)
	moved()
	b.undo()
	b.see("Undone")

	b.open("tree/ministry")
	b.nodes("Ministry", "North", "South")
	b.press(kb.Tab)
	keyboard{}.reach(b, "document.querySelector('[role=tree]')")
	b.press("n")
	b.activeNode("North")
	b.press("x", chromedp.KeyModifiers(kb.ModifierCtrl))
	b.see("Cut: choose a node and press Ctrl V")
	b.press(kb.ArrowDown)
	b.activeNode("South")
	b.press("v", chromedp.KeyModifiers(kb.ModifierCtrl))
	moved()
	b.clean()
}

// TestTreeKeys is the keyboard of the ARIA tree pattern.
func TestTreeKeys(t *testing.T) {
	t.Parallel()
	b := sample(t)
	b.open("tree/sample-company")
	b.see("Research")
	b.hand = keyboard{}
	b.hand.reach(b, "document.querySelector('[role=tree]')")
	active := b.activeNode
	b.press(kb.Home)
	active("Sample company")
	b.press(kb.ArrowDown)
	active("Research")
	b.press(kb.ArrowRight)
	b.press(kb.ArrowRight) // before its children are there
	active("Platform")
	b.press(kb.ArrowLeft)
	active("Research")
	b.press(kb.ArrowLeft)
	b.gone("Mobile")
	b.press(kb.End)
	active("Support")
	b.press("f")
	active("Finance")
	b.press(kb.Enter)
	b.waitFor("document.querySelector('.panel h2')?.textContent === 'Finance'")
	b.back()
	b.waitFor("!document.querySelector('.panel')")
	b.clean()
}

// activeNode waits until the cursor of the tree is on a node.
func (b *browser) activeNode(name string) {
	b.t.Helper()
	b.waitFor(fmt.Sprintf(`document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))
		?.querySelector('.name')?.textContent === %q`, name))
}

func TestMembers(t *testing.T) {
	play(t, "members", func(b *browser) {
		b.call(b.t, b.tenant, "POST", "/v1/users/import", lines(12))
		made := b.call(b.t, b.tenant, "POST", "/v1/core-objects", map[string]string{"code": "team", "name": "Team"})
		root := made["root_node_id"].(string)
		b.call(b.t, b.tenant, "POST", "/v1/tree-nodes",
			map[string]string{"object_code": "team", "parent_id": root, "name": "Blue"})
		b.open("members")
		b.see("People are members of nodes")
		b.hand.use(b, "[...document.querySelectorAll('[role=treeitem]')].find((e) => e.textContent.includes('Blue'))")
		b.see("Nobody here yet")
		b.clickIn(".actions", "Add people")
		b.fill("Find people", "person 007")
		b.waitFor("document.querySelectorAll('.candidates label').length === 1")
		b.clickIn("dialog .candidates", "Person 007")
		b.see("1 person chosen")
		b.click("Add")
		b.see("1 person added", "Person 007")

		b.clickIn(".actions", "Add people")
		b.click("Paste a list")
		b.fill("List of people", "person.001\nperson.002@example.org\nnobody.at.all")
		b.click("Find 3 entries")
		b.see("1 entry was not found", "2 people chosen")
		b.click("Add")
		b.see("2 people added", "3 in it")
		b.undo()
		b.see("1 in it")

		b.click("Person 007")
		b.see("All memberships of this person")
		b.fill("Title", "Captain")
		b.click("Save")
		b.see("The membership was saved")
		b.clickIn(".panel", "Remove")
		b.see("1 membership ended", "Nobody here yet")
		b.undo()
		b.see("Person 007", "Captain")
	})
}
