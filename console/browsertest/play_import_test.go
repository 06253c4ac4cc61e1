package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// give puts a file into the box that a selector finds, as a file dialog does.
func (b *browser) give(selector, name, text string) {
	b.t.Helper()
	b.waitFor(fmt.Sprintf("document.querySelector(%q)", selector))
	eval[bool](b, fmt.Sprintf(`(() => {
		const files = new DataTransfer(), box = document.querySelector(%q);
		files.items.add(new File([%q], %q));
		box.files = files.files;
		return box.dispatchEvent(new Event('change', {bubbles: true}));
	})()`, selector, text, name))
}

// TestImport: a file of people is mapped, tried, and written; what is wrong is told line by line.
func TestImport(t *testing.T) {
	play(t, "import", func(b *browser) {
		b.liWei()
		b.open("users")
		b.clickIn(".actions", "Import…")
		b.give("dialog input[type=file]", "people.csv",
			"Login,Full name,Mail,Shoe size\nada,Ada Lovelace,ada@example.org,38\nli,Li Wei,li@example.org,40\n"+
				"bad,Bad Mail,no mail,41\n")
		b.see("people.csv", "3 lines")
		chosen := eval[[]string](b, "[...document.querySelectorAll('dialog .grid-2 select')].map((s) => "+
			"s.selectedOptions[0].text)")
		require.Equal(b.t, []string{"Username", "Display name", "E-mail", "Leave out"}, chosen)
		b.click("Try 3 lines")
		b.see("Tried, nothing is written yet", "1 created, 0 updated, 0 skipped, 2 failed", "email")
		b.choose("If a username, e-mail or mobile is taken", "The user with that username is updated")
		b.click("Try 3 lines")
		b.see("1 created, 1 updated, 0 skipped, 1 failed")
		b.click("Import 3 lines")
		b.see("3 / 3", "1 created, 1 updated, 0 skipped, 1 failed", "Failed lines as a file")
		b.click("Done")
		b.see("2 records", "Ada Lovelace", "li@example.org")
	})
}

// TestImportGoesOn: whoever chooses the same file after an interruption goes on, and nobody is made twice.
func TestImportGoesOn(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "import-goes-on")
	var file strings.Builder
	file.WriteString("username\n")
	for n := range 600 { // two batches
		fmt.Fprintf(&file, "person.%03d\n", n)
	}
	start := func(meanwhile func()) {
		t.Helper()
		b.open("users?import=1")
		b.give("dialog input[type=file]", "people.csv", file.String())
		b.click("Try 100 lines")
		b.see("Tried, nothing is written yet")
		meanwhile()
		b.click("Import 600 lines")
	}
	start(func() { b.proxy.fail(fault{call: "POST /v1/users/import", cut: true, times: 1}) })
	b.see("The platform cannot be reached", "0 / 600") // the first batch is made, but nobody knows
	start(func() {})
	b.see("600 / 600", "600 created, 0 updated, 0 skipped, 0 failed")
	b.open("users")
	b.see("600 records")
	b.clean()
}
