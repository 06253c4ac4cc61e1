package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestListFaults: a list that cannot be loaded says why, and goes on as soon as it can.
func TestListFaults(t *testing.T) {
	t.Parallel()
	b := sample(t)
	for _, c := range []struct {
		name string
		f    fault
		see  string
	}{
		{"400", fault{status: 400}, "Something in the request is not valid"},
		{"403", fault{status: 403}, "Not allowed"},
		{"404", fault{status: 404}, "There is no such record"},
		{"409", fault{status: 409, code: "invalid_state"}, "Not possible in this state"},
		{"413", fault{status: 413}, "Too large"},
		{"415", fault{status: 415}, "This kind of file is not taken"},
		{"422", fault{status: 422}, "The request was sent before with other content"},
		{"500", fault{status: 500}, "Something went wrong in the platform"},
		{"502 twice", fault{status: 502}, "It is not known whether the change was made"},
		{"500 of a proxy", fault{status: 500, plain: true}, "Something went wrong in the platform"},
		{"503 without a time", fault{status: 503}, "A part of the platform is away"},
		{"cut", fault{cut: true}, "The platform cannot be reached"},
	} {
		c.f.call = "GET /v1/users"
		mend := b.proxy.fail(c.f)
		b.open("users")
		b.waitFor(fmt.Sprintf("shows(%q) /* %s */", c.see, c.name))
		assert.False(t, eval[bool](b, "!!document.querySelector('.blank')"), "%s: failed is not empty", c.name)
		if c.f.status != 0 && !c.f.plain {
			b.see("made by the test", "request-of-the-test")
		}
		b.picture("fault-" + c.name)
		mend()
		b.click("Try again")
		b.see("200 records")
		b.gone(c.see)
	}
	b.clean()
}

// TestWaiting: 429 and 503 with a time count down, and the call is made again without anybody's doing.
func TestWaiting(t *testing.T) {
	t.Parallel()
	b := sample(t)
	for _, status := range []int{429, 503} {
		b.proxy.fail(fault{call: "GET /v1/users", status: status, retryAfter: 2, times: 1})
		b.open("users")
		b.see("Trying again in")
		b.see("200 records")
		b.gone("Trying again in")
	}
	b.proxy.fail(fault{call: "GET /v1/users", status: 502, times: 1})
	b.proxy.forget()
	b.open("users")
	b.see("The connection was lost on the way", "200 records")
	require.Len(t, b.proxy.sent("GET /v1/users"), 2)
	b.clean()
}

// TestSlow: what is slow shows a skeleton, and old rows stay while new ones load.
func TestSlow(t *testing.T) {
	t.Parallel()
	b := sample(t)
	hold := make(chan struct{})
	mend := b.proxy.fail(fault{call: "GET /v1/users", hold: hold})
	b.load("/console/default/users")
	b.waitFor("document.querySelectorAll('.list .skeleton').length > 5")
	b.picture("slow")
	mend()
	close(hold)
	b.see("200 records")
	b.waitFor("!document.querySelector('.skeleton')")

	hold = make(chan struct{})
	mend = b.proxy.fail(fault{call: "GET /v1/users", hold: hold})
	b.fill("Search", "li we")
	b.waitFor("document.querySelector('.list table.busy') && document.querySelectorAll('.list a.open').length > 10")
	mend()
	close(hold)
	b.see("1 record")

	for path, screen := range map[string]string{
		"/v1/idp/providers": "connections?create=choose", "/v1/application-templates": "apps?create=gallery",
	} {
		b.loadSlowly("GET "+path, screen, "dialog .skeleton", "dialog .gallery")
		require.LessOrEqual(t, b.shift(), maxShift, screen)
	}
	b.clean()
}

// loadSlowly opens a screen, holds back the answer to a call until one element is there, and waits for another.
func (b *browser) loadSlowly(call, screen, meanwhile, then string) {
	b.t.Helper()
	hold := make(chan struct{})
	mend := b.proxy.fail(fault{call: call, hold: hold})
	b.load("/console/default/" + screen)
	b.waitFor(fmt.Sprintf("document.querySelector(%q)", meanwhile))
	mend()
	close(hold)
	b.waitFor(fmt.Sprintf("document.querySelector(%q)", then))
	b.rest()
}

// TestChoicesStay: choices that come while a dialog opens are shown where the list has been since its first frame.
func TestChoicesStay(t *testing.T) {
	t.Parallel()
	b := sample(t)
	b.loadSlowly("GET /v1/users", "grants?grant=1", ".grants-pick-list:popover-open", ".grants-pick-list [role=option]")
	assert.Empty(t, eval[[]string](b,
		"shifts.filter((s) => s.what.includes('grants-pick-list')).map((s) => `${s.value.toFixed(3)} ${s.what}`)"))
	b.clean()
}

// TestPanelFault: a panel that fails fails alone, and a screen whose code does not come can be asked for again.
func TestPanelFault(t *testing.T) {
	t.Parallel()
	b := sample(t)
	b.open("users?q=li%20we")
	mend := b.proxy.fail(fault{call: "GET /v1/users/*", status: 500})
	b.click("Li Wei")
	b.waitFor("document.querySelector('.panel [role=alert]')")
	b.see("Something went wrong in the platform", "1 record")
	b.picture("panel-fault")
	mend()
	b.clickIn(".panel", "Try again")
	b.waitFor("document.querySelector('.panel h2')?.textContent === 'Li Wei'")

	mend = b.proxy.fail(fault{call: "GET /v1/audit-logs", status: 503})
	b.click("Audit")
	b.see("A part of the platform is away")
	b.click("Overview")
	b.waitFor("input('E-mail').value.includes('li.wei')")
	mend()

	mend = b.proxy.fail(fault{call: "GET /console/~/assets/*", status: 500, plain: true})
	b.clickIn("nav", "Explorer")
	b.see("The screen could not be loaded")
	mend()
	b.click("Try again")
	b.see("Fill in the gaps")
}

// TestSaveFaults: whatever a save meets, nothing that was typed is lost.
func TestSaveFaults(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "save-faults")
	user := b.liWei()
	save := "PATCH /v1/users/" + user["id"].(string)
	b.open("users?open=" + user["id"].(string))
	b.see("General")
	b.fill("Mobile", "+15550001111")
	at := []map[string]any{{"location": "body.mobile", "message": "is not a number of this world"}}
	for _, c := range []struct {
		f   fault
		see string
	}{
		{fault{status: 400, errors: at}, "is not a number of this world"},
		{fault{status: 409, errors: at}, "is not a number of this world"},
		{fault{status: 403}, "Not allowed"},
		{fault{status: 404}, "There is no such record"},
		{fault{status: 413}, "Too large"},
		{fault{status: 415}, "This kind of file is not taken"},
		{fault{status: 422}, "The request was sent before with other content"},
		{fault{status: 429, retryAfter: 3}, "Too many requests"},
		{fault{status: 500}, "Something went wrong in the platform"},
		{fault{status: 502}, "the change was not made"},
		{fault{status: 503, retryAfter: 3}, "A part of the platform is away"},
		{fault{status: 503, retryAfter: 30}, "Nothing is lost. Try again in"},
		{fault{status: 500, plain: true}, "Something went wrong in the platform"},
	} {
		c.f.call = save
		mend := b.proxy.fail(c.f)
		b.click("Save")
		b.see(c.see)
		mend()
		require.Equal(t, "+15550001111", eval[string](b, "input('Mobile').value"), c.see)
		b.see("1 change")
		if len(c.f.errors) > 0 {
			b.waitFor("document.activeElement === input('Mobile') && document.activeElement.ariaInvalid === 'true'")
			said := "document.querySelector('.panel').innerText.split('is not a number of this world').length - 1"
			b.waitFor(said + " === 1") // at its input, and nowhere else
		}
	}
	b.proxy.fail(fault{call: save, cut: true, times: 1}) // made, but its answer is lost
	b.click("Save")
	b.see("Li Wei was saved")
	b.clean()
}

// TestEqualFaults: a fault stands at its input, or above the form with its place, whatever another one says.
func TestEqualFaults(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "equal-faults")
	user := b.liWei()
	b.open("users?open=" + user["id"].(string))
	b.see("General")
	b.fill("Mobile", "+15550001111")
	at := func(location string) map[string]any {
		return map[string]any{"location": "body." + location, "message": "is too odd"}
	}
	for _, c := range []struct {
		errors  []map[string]any
		above   string
		atInput int
	}{
		{[]map[string]any{at("mobile"), at("avatar_url")}, "avatar_url is too odd", 1},
		{[]map[string]any{at("mobile"), at("email")}, "", 2},
	} {
		mend := b.proxy.fail(fault{call: "PATCH /v1/users/*", status: 400, errors: c.errors})
		b.click("Save")
		b.waitFor(fmt.Sprintf("document.querySelectorAll('.panel .field > .error').length === %d", c.atInput))
		b.waitFor(fmt.Sprintf(`[...document.querySelectorAll('.panel .faults li')]
			.map((li) => li.textContent.trim()).join() === %q`, c.above))
		mend()
	}
	b.clean()
}

// TestFaultsOnce: what is wrong with a field is said once, at the field, in plain words of the language.
func TestFaultsOnce(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "faults-once")
	b.liWei()
	for _, c := range []struct{ lang, create, username, email, taken, invalid string }{
		{"en", "Create", "Username", "E-mail", "Already taken", "Not an e-mail address"},
		{"zh", "创建", "用户名", "邮箱", "已被占用", "不是有效的邮箱地址"},
	} {
		b.open("start")
		b.speak(c.lang)
		b.show("/console/"+b.tenant+"/users", "document.querySelectorAll('.screen-head .btn.primary')[0].click()")
		b.fill(c.username, "li")
		for _, step := range []struct{ email, says string }{{"nowhere", c.invalid}, {"li@example.com", c.taken}} {
			b.fill(c.email, step.email)
			b.clickIn("dialog", c.create)
			b.see(step.says)
			require.Equal(t, []string{step.says}, eval[[]string](b,
				"[...document.querySelectorAll('dialog .error, dialog .note')].map((e) => e.textContent)"))
		}
		b.press(kb.Escape)
		b.waitFor("document.querySelectorAll('dialog[open]').length === 2")
		eval[bool](b, "([...document.querySelectorAll('dialog .danger')].at(-1).click(), true)")
		b.waitFor("!document.querySelector('dialog[open]')")
	}
	b.clean()
}

// TestToastsAside: what is told covers no button of the form that it is about.
func TestToastsAside(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "toasts-aside")
	user := b.liWei()
	for i, width := range []int64{1280, 1120, 800, 390} {
		b.size(width, 800)
		b.open("users?open=" + user["id"].(string))
		b.see("General")
		b.fill("Mobile", fmt.Sprintf("+1555000111%d", i))
		b.click("Save")
		b.waitFor("document.querySelector('.toast')")
		require.True(t, eval[bool](b, "[...document.querySelectorAll('.panel-foot .btn')].every((e) => "+
			"e.contains(document.elementFromPoint(...middle(e))))"), "%d", width)
	}
	b.clean()
}

// TestSessionEnds: 401 signs in over the page, and goes on with what was typed. The first asks for a renewal alone.
func TestSessionEnds(t *testing.T) {
	play(t, "session", func(b *browser) {
		user := b.liWei()
		b.open("users?open=" + user["id"].(string))
		b.see("General")
		b.fill("Mobile", "+15550002222")
		b.proxy.fail(fault{call: "PATCH /v1/users/*", status: 401, times: 2})
		b.click("Save")
		b.see("Your session has ended", "Nothing that you have typed is lost")
		b.picture("session-ended-" + b.tenant)
		b.press(kb.Escape)
		b.see("Your session has ended")
		b.fill("Client id", clientID)
		b.fill("Client secret", clientSecret)
		b.clickIn("dialog", "Sign in")
		b.see("Li Wei was saved", "No changes")
		require.Equal(b.t, "+15550002222", eval[string](b, "input('Mobile').value"))
	})
}

// TestLinkInAnotherTab: who came by a link has no secret to type. A new link in another tab lets this one go on.
func TestLinkInAnotherTab(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "another-tab")
	user := b.liWei()
	b.open("users?open=" + user["id"].(string))
	b.see("General")
	b.fill("Mobile", "+15550003333")
	b.proxy.fail(fault{call: "PATCH /v1/users/*", status: 401, times: 2})
	b.click("Save")
	b.see("Your session has ended", "idp-standalone console", "This tab then goes on by itself")
	link, err := b.link()
	require.NoError(t, err)
	tab, cancel := chromedp.NewContext(b.ctx)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(tab, chromedp.Navigate(b.url+link[len(b.platform.url):])))
	b.see("Li Wei was saved")
	require.Equal(t, "+15550003333", eval[string](b, "input('Mobile').value"))
	b.clean()
}

// TestLeaving: who leaves while something is saved is not asked, and who has chosen to leave is not asked again. What
// could not be saved is asked about.
func TestLeaving(t *testing.T) {
	play(t, "leaving", func(b *browser) {
		user := b.liWei()
		b.open("users")
		b.click("Li Wei")
		b.see("General")
		held := func(what, then string) {
			b.t.Helper()
			hold := make(chan struct{})
			mend := b.proxy.fail(fault{call: what, hold: hold})
			b.clickIn(".panel, dialog", then)
			b.waitFor("document.querySelector('.btn[aria-busy=true]')")
			b.press(kb.Escape)
			mend()
			close(hold)
		}
		b.fill("Mobile", "+15550001111")
		held("PATCH /v1/users/"+user["id"].(string), "Save")
		b.waitFor("!document.querySelector('.panel, dialog[open]')")
		b.see("Li Wei was saved")

		b.clickIn(".actions", "New user")
		b.fill("Username", "ada")
		held("POST /v1/users", "Create")
		b.see("ada was created")
		b.waitFor("!document.querySelector('dialog[open]')")

		b.open("users")
		b.click("Li Wei")
		b.see("General")
		b.fill("Mobile", "+15550002222")
		b.back()
		b.see("Leave without saving?")
		b.click("Leave")
		b.waitFor("!document.querySelector('.panel, dialog[open]')")
		b.screen("Explorer")

		b.open("users?open=" + user["id"].(string))
		b.see("General")
		b.fill("Mobile", "+15550003333")
		mend := b.proxy.fail(fault{call: "PATCH /v1/users/*", status: 400})
		b.clickIn(".panel", "Save")
		b.see("Something in the request is not valid")
		mend()
		b.press(kb.Escape)
		b.see("Leave without saving?")
		b.click("Leave")
	})
}

// TestCreateFaults: a create whose outcome is not known is sent again with the same key, and made once.
func TestCreateFaults(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "create-faults")
	b.open("users")
	b.see("No users yet")
	b.clickIn(".actions", "New user")
	b.fill("Username", "once")
	b.proxy.fail(fault{call: "POST /v1/users", status: 502, times: 1})
	b.press(kb.Enter)
	b.see("The connection was lost on the way", "once was created")
	sent := b.proxy.sent("POST /v1/users")
	require.Len(t, sent, 2)
	require.NotEmpty(t, sent[0].key)
	require.Equal(t, sent[0].key, sent[1].key)

	b.open("users")
	b.clickIn(".actions", "New user")
	b.fill("Username", "cut")
	b.proxy.fail(fault{call: "POST /v1/users", cut: true, times: 1})
	b.press(kb.Enter)
	b.see("The platform cannot be reached")
	require.Equal(t, "cut", eval[string](b, "input('Username').value"))
	b.clickIn("dialog", "Create")
	b.see("cut was created") // with the same key, so not "a unique value is taken"
	b.clean()
}

// TestAddFaults: what was added before a fault, or before somebody left, can be undone; what was not can be sent again.
func TestAddFaults(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "add-faults")
	b.call(t, b.tenant, "POST", "/v1/users/import", lines(1002))
	root := b.call(t, b.tenant, "POST", "/v1/core-objects",
		map[string]string{"code": "team", "name": "Team"})["root_node_id"].(string)
	var list strings.Builder
	for i := range 1002 {
		fmt.Fprintf(&list, "person.%03d\n", i)
	}
	choose := func() {
		b.open("members/" + root)
		b.clickIn(".actions", "Add people")
		b.click("Paste a list")
		b.waitFor("input('List of people')")
		eval[bool](b, fmt.Sprintf(`(input('List of people').value = %q,
			input('List of people').dispatchEvent(new Event('input', {bubbles: true})))`, list.String()))
		b.click("Find 1,002 entries")
		b.see("1,002 people chosen")
	}
	const add = "POST /v1/batch/tree-users"
	for then, added := range map[string]string{"Cancel": "1,000", "Add": "1,002"} {
		choose()
		b.proxy.fail(fault{call: add, status: 503, after: 1, times: 1})
		b.clickIn("dialog", "Add")
		b.see("A part of the platform is away")
		b.clickIn("dialog", then)
		b.see(added+" people added", added+" in it")
		b.undo()
		b.see("Nobody here yet")
	}

	choose()
	held := make(chan struct{})
	b.proxy.fail(fault{call: add, hold: held, times: 1})
	b.clickIn("dialog", "Add")
	b.waitFor("document.querySelector('dialog [aria-busy=true]')")
	b.clickIn("dialog", "Cancel")
	close(held)
	b.see("1,000 people added", "1,000 in it")
	b.clean()
}

// TestStreamFaults: a live tail that breaks goes on after the event that it saw last.
func TestStreamFaults(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "stream-faults")
	mend := b.proxy.fail(fault{call: "GET /v1/events", status: 503, retryAfter: 1})
	b.open("events")
	b.waitFor("document.querySelector('.screen-head').textContent.match(/again|wait/i)")
	mend()
	b.see("Listening for events", "Live")
	b.call(t, b.tenant, "POST", "/v1/users", map[string]string{"username": "eve"})
	b.see("User created")
	b.clean()
}
