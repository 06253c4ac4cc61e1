package browsertest

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

func TestApplications(t *testing.T) {
	play(t, "apps", func(b *browser) {
		b.open("apps")
		b.see("No applications yet")
		b.clickIn(".actions", "New application")
		b.click("Own application")
		b.fill("Name *", "Harbour master")
		b.choose("Category", "Backend service")
		b.click("Create")
		b.see("The secret of Harbour master", "It is shown once")
		b.click("I have stored it")
		b.waitFor("document.querySelector('.panel h2')?.textContent === 'Harbour master'")
		b.fill("Description", "Counts ships")
		b.click("Save")
		b.see("Harbour master was saved")
		b.undo()
		b.see("Undone")
		b.choose("Second factor", "On")
		b.click("Save")
		b.see("Harbour master was saved", "sets it up at the next sign-in")
		b.undo()
		b.see("Undone")
		b.fill("Single logout service", "https://harbour.example/slo")
		b.choose("Binding of its messages", "POST")
		b.click("Save")
		b.see("Harbour master was saved")
		b.fill("Single logout service by SOAP", "no address")
		b.click("Save")
		b.waitFor("document.activeElement === input('Single logout service by SOAP')")
		b.fill("Single logout service by SOAP", "")
		b.see("No changes")
		b.click("Protocols")
		b.see("OpenID Connect")
		b.click("Secrets")
		b.see("Rotate…")
		b.click("More actions")
		b.click("Disable…")
		b.see("Disable Harbour master?", "What it reaches")
		b.clickIn("dialog", "Disable")
		b.see("Harbour master is disabled")
		b.undo()
		b.waitFor("document.querySelector('.panel-head').textContent.includes('Enabled')")
		b.find("harb")
		b.see("1 record")
		b.click("More actions")
		b.click("Delete…")
		b.fill("Type Harbour master to confirm", "Harbour master")
		b.clickIn("dialog", "Delete")
		b.see("Harbour master was deleted")
	})
}

// backend makes an application that gets tokens, as somebody else than the person at the console.
func (b *browser) backend(name string) map[string]any {
	b.t.Helper()
	return b.call(b.t, b.tenant, "POST", "/v1/applications",
		map[string]any{"name": name, "category": "4", "scopes": []string{"users:read"}})
}

// TestSignInAddresses: a protocol that is set up says where the application finds its provider.
func TestSignInAddresses(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "addresses")
	books := map[string]any{"name": "Books", "category": "1"}
	app := b.call(t, b.tenant, "POST", "/v1/applications", books)["id"].(string)
	b.open("apps?tab=protocols&open=" + app)
	b.see("/sign-in/" + b.tenant + "/.well-known/openid-configuration")
	b.gone("/sign-in/" + b.tenant + "/saml/metadata")
	b.clean()
}

// TestRotation: within the grace both secrets give tokens; without one the former end at once.
func TestRotation(t *testing.T) {
	play(t, "rotation", func(b *browser) {
		app := b.backend("Harbour")
		token := func(secret string) int {
			b.t.Helper()
			r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.platform.url+"/v1/oauth2/token",
				strings.NewReader("grant_type=client_credentials"))
			require.NoError(b.t, err)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.SetBasicAuth(app["client_id"].(string), secret)
			answer, err := http.DefaultClient.Do(r)
			require.NoError(b.t, err)
			require.NoError(b.t, answer.Body.Close())
			return answer.StatusCode
		}
		rotate := func(grace, effect, told string) (secret string) {
			b.t.Helper()
			b.click("Rotate…")
			b.choose("Present secrets", grace)
			b.see(effect, "Tokens that the application has now end at once")
			b.clickIn("dialog", "Make a new secret")
			b.see("The secret of Harbour", told)
			eval[bool](b, "(document.activeElement.blur(), true)")
			b.press(strings.Repeat(kb.Escape, 3)) // a browser itself closes a dialog at the second
			secret = eval[string](b, "[...document.querySelectorAll('dialog[open] code.secret')][1].textContent")
			b.clickIn("dialog", "I have stored it")
			b.waitFor("!document.querySelector('dialog[open]')")
			return secret
		}
		secrets := func(n int) {
			b.t.Helper()
			b.waitFor(fmt.Sprintf("document.querySelectorAll('.panel table tbody tr').length === %d", n))
		}
		b.open("apps?tab=secrets&open=" + app["id"].(string))
		secrets(1)
		first := app["client_secret"].(string)
		second := rotate("They work for 7 days more", "works until", "Earlier ones work until")
		secrets(2)
		require.Equal(b.t, []int{200, 200}, []int{token(first), token(second)})
		third := rotate("They end at once", "Present secrets stop working at once", "Earlier ones have ended")
		secrets(1)
		require.Equal(b.t, []int{401, 401, 200}, []int{token(first), token(second), token(third)})
	})
}

// TestOwnKeys: an application is given public keys; what is none is refused at the field.
func TestOwnKeys(t *testing.T) {
	play(t, "keys", func(b *browser) {
		const public = `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1",` +
			`"x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`
		const private = `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1",` +
			`"x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}]}`
		app := b.backend("Harbour")
		keys := func() any {
			return b.call(b.t, b.tenant, "GET", "/v1/applications/"+app["id"].(string), nil)["jwks"]
		}
		b.open("apps?tab=secrets&open=" + app["id"].(string))
		b.fill("Public keys (JWKS)", `{"keys": [`)
		b.see("This is not JSON")
		b.fill("Public keys (JWKS)", private)
		b.clickIn(".panel-body", "Save")
		b.see("must be a JWK set")
		b.waitFor("document.activeElement === input('Public keys (JWKS)')")
		b.fill("Public keys (JWKS)", public)
		b.clickIn(".panel-body", "Save")
		b.see("Harbour was saved")
		require.NotNil(b.t, keys())
		b.undo()
		b.see("Undone")
		require.Nil(b.t, keys())
		b.waitFor("!input('Public keys (JWKS)').value")
	})
}

// TestSubAccounts: a person has an account in an application, or several of which one is the default.
func TestSubAccounts(t *testing.T) {
	play(t, "accounts", func(b *browser) {
		b.liWei()
		app := b.backend("Harbour")
		add := func(account string) {
			b.t.Helper()
			b.clickIn(".panel", "Add an account")
			b.fill("User *", "li")
			b.clickIn("dialog .user-picks", "Li Wei")
			b.fill("Account *", account)
			b.clickIn("dialog", "Create")
		}
		menu := func(account, item string) {
			b.t.Helper()
			b.hand.use(b, fmt.Sprintf(`[...document.querySelectorAll('.panel tbody tr')]
				.find((tr) => tr.cells[0].innerText.startsWith(%q)).querySelector('button')`, account))
			b.click(item)
		}
		defaults := func(account string) {
			b.t.Helper()
			b.waitFor(fmt.Sprintf(`[...document.querySelectorAll('.panel tbody tr:has(.tag)')]
				.map((tr) => tr.cells[0].innerText.split(/\s/)[0]).join() === %q`, account))
		}
		b.open("apps?tab=accounts&open=" + app["id"].(string))
		b.see("No sub-accounts yet")
		add("wei")
		b.see("wei was created")
		b.undo()
		b.see("Undone", "No sub-accounts yet")
		add("wei")
		b.see("wei was created")
		defaults("wei")
		add("boss")
		b.see("Already taken")
		b.press(kb.Escape)
		b.click("Leave")
		b.click("One person may have more than one account here.")
		b.see("Harbour was saved")
		add("boss")
		b.see("boss was created")
		defaults("wei")
		menu("boss", "Edit…")
		b.click("The account with which this person signs in")
		b.clickIn("dialog", "Save")
		b.see("boss was saved")
		defaults("boss")
		b.undo()
		b.see("Undone")
		defaults("wei")
		menu("boss", "Delete…")
		b.fill("Type boss to confirm", "boss")
		b.clickIn("dialog", "Delete")
		b.see("boss was deleted", "1 record")
	})
}

func TestGrants(t *testing.T) {
	play(t, "grants", func(b *browser) {
		b.call(b.t, b.tenant, "POST", "/v1/users", map[string]string{"username": "nina", "display_name": "Nina Krag"})
		b.call(b.t, b.tenant, "POST", "/v1/applications", map[string]string{"name": "Ledger", "category": "4"})
		b.open("grants")
		b.see("No rules yet")
		b.click("Resources")
		b.see("Ledger has no resources")
		b.clickIn(".corner", "New resource")
		b.fill("Code", "invoices")
		b.fill("Name", "Invoices")
		b.fill("Actions", "read, write")
		b.clickIn("dialog", "Create")
		b.see("invoices is created")
		b.click("Add an action")
		b.fill("Action", "approve")
		b.click("Remove write")
		b.click("Save")
		b.see("Invoices was saved")
		b.clickIn(".panel", "Close")
		b.see("read, approve")

		b.click("Rules")
		b.clickIn(".actions", "New rule")
		b.pick("Who", "nina", "Nina Krag")
		b.pick("Application", "ledger", "Ledger")
		b.pick("Resource", "inv", "invoices")
		b.fill("Actions", "read")
		b.see("Nina Krag may read on invoices of Ledger")
		b.clickIn("dialog", "Allow")
		b.see("The rule is made")
		b.undo()
		b.see("Nothing matches")
		b.click("Clear search and filters")
		b.see("No rules yet")
		b.clickIn(".actions", "New rule")
		b.pick("Who", "nina", "Nina Krag")
		b.pick("Application", "ledger", "Ledger")
		b.pick("Resource", "inv", "invoices")
		b.fill("Actions", "read")
		b.clickIn("dialog", "Allow")
		b.see("Allows")

		b.hand.use(b, "document.querySelector('.list a.open')")
		b.choose("Effect", "Denies")
		b.click("Save")
		b.see("The rule was saved", "Nina Krag must not read")
		b.undo()
		b.see("Undone")
		b.click("Take the rule away")
		b.clickIn("dialog", "Take the rule away")
		b.see("No rules yet")
	})
}

// TestConditionFaults: a fault of a condition is shown at its place, in the text that was refused.
func TestConditionFaults(t *testing.T) {
	play(t, "condition", func(b *browser) {
		b.liWei()
		app := b.backend("Ledger")
		b.call(b.t, b.tenant, "POST", "/v1/resources", map[string]any{"application_id": app["id"], "type": "data",
			"code": "invoices", "actions": []any{map[string]any{"code": "read"}}})
		marked := func(within, place, word string) {
			b.t.Helper()
			b.waitFor(fmt.Sprintf(`document.querySelector('%s .grants-cel-mark').ariaLabel === %q &&
				document.querySelector('%s .grants-cel-mark mark').innerText === %q`, within, place, within, word))
			b.waitFor("document.activeElement === input('Condition (CEL)')")
		}
		b.open("grants?grant=1")
		b.pick("Who", "li", "Li Wei")
		b.pick("Application", "ledger", "Ledger")
		b.pick("Resource", "inv", "invoices")
		b.fill("Actions", "read")
		b.click("Condition, time, description")
		b.fill("Condition (CEL)", "context.ip == '10.0.0.1' &&\n  nope.level > 3")
		b.clickIn("dialog", "Allow")
		marked("dialog", "The fault is in line 2, column 3", "nope.level")
		b.fill("Condition (CEL)", "context.ip == '10.0.0.1'")
		marked("dialog", "The fault is in line 2, column 3", "nope.level")
		b.clickIn("dialog", "Allow")
		b.see("The rule is made")
		b.hand.use(b, "document.querySelector('.list a.open')")
		b.see("Li Wei may read")
		b.fill("Condition (CEL)", "7")
		b.click("Save")
		marked(".panel", "The fault is in line 1, column 1", "7")
		b.fill("Condition (CEL)", "")
		b.click("Save")
		b.see("The rule was saved")
	})
}

// TestExplorer: no, because; the smallest change; yes, because.
func TestExplorer(t *testing.T) {
	play(t, "explorer", func(b *browser) {
		b.open("start")
		makeSample(b)
		b.screen("Explorer")
		b.see("Fill in the gaps")
		b.pick("somebody", "li.wei", "Li Wei")
		b.pick("to something", "invo", "invoices")
		b.pick("do something", "write", "write")
		b.see("No", "Li Wei may not write invoices in Sample books.", "The nearest way to a yes")
		b.waitFor(`[...document.querySelectorAll('.grants-pick-big')].every((gap) => {
			const word = document.createRange();
			word.selectNodeContents(gap.querySelector('.ghost'));
			return gap.offsetWidth - word.getBoundingClientRect().width < 12; // the line under a word is as long as it
		})`)
		b.click("Preview the membership")
		b.see("Tried: it would work")
		b.clickIn("dialog", "Add the member")
		b.see("Li Wei may write invoices in Sample books.", "is a member of")
		b.undo()
		b.see("Undone", "Li Wei may not write invoices")
		b.click("Who can?")
		b.see("found")
		b.click("What can somebody do?")
		b.see("invoices")
	})
}

// TestLogo: a picture is shown before it is sent, and what is none is refused here and by the platform.
func TestLogo(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "logo")
	app := b.call(t, b.tenant, "POST", "/v1/applications", map[string]any{
		"name": "Harbour", "category": "4", "protocol_type": "oidc"})
	b.open("apps?open=" + app["id"].(string))
	b.see("up to 2 MiB")
	give := func(name, kind, content string) {
		eval[bool](b, fmt.Sprintf(`(async () => {
			const files = new DataTransfer();
			files.items.add(new File([%s], %q, {type: %q}));
			const box = input('Picture');
			box.files = files.files;
			return box.dispatchEvent(new Event('change', {bubbles: true}));
		})()`, content, name, kind))
	}
	const script = "'<svg xmlns=\"http://www.w3.org/2000/svg\"><script>document.title = \"owned\"</script></svg>'"
	const drawn = `await (async () => { const c = new OffscreenCanvas(%d, 8); c.getContext('2d').fillRect(0, 0, 8, 8);
		return c.convertToBlob(); })()`
	give("logo.svg", "image/svg+xml", script)
	b.see("This is not a PNG, JPEG, WebP or GIF.")
	give("logo.png", "image/png", script)
	b.see("This file cannot be read as a picture.")
	give("logo.png", "image/png", "new Uint8Array((2 << 20) + 1)")
	b.see("2 MiB are the most")
	give("logo.png", "image/png", fmt.Sprintf(drawn, 4097))
	b.see("4,097 × 8 pixels")
	b.proxy.fail(fault{call: "PUT /v1/applications/*", status: 415, times: 1})
	give("logo.png", "image/png", fmt.Sprintf(drawn, 8))
	b.waitFor("document.querySelector('.apps-logo img')?.src.startsWith('blob:')")
	b.click("Upload the logo")
	b.waitFor("document.querySelector('.apps-logo .error')")
	b.click("Upload the logo")
	b.see("Harbour has a new logo")
	b.waitFor("document.querySelector('.apps-logo img')?.naturalWidth === 8")
	b.click("Remove the logo")
	b.clickIn("dialog", "Remove the logo")
	b.see("Harbour has no logo any more")
	b.waitFor("document.querySelector('.apps-logo .avatar svg')")
	require.NotEqual(t, "owned", eval[string](b, "document.title"))
	b.clean()
}

// TestPictures: people and applications of another tenant than the administrator's own have their pictures in lists.
func TestPictures(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "pictures")
	app := b.call(t, b.tenant, "POST", "/v1/applications", map[string]any{"name": "Harbour", "category": "4"})
	user := b.call(t, b.tenant, "POST", "/v1/users", map[string]any{"username": "wei"})
	var drawn bytes.Buffer
	require.NoError(t, png.Encode(&drawn, image.NewRGBA(image.Rect(0, 0, 8, 8))))
	for screen, path := range map[string]string{
		"apps":  "/v1/applications/" + app["id"].(string) + "/logo",
		"users": "/v1/users/" + user["id"].(string) + "/avatar",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, b.platform.url+path,
			bytes.NewReader(drawn.Bytes()))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+b.token)
		r.Header.Set("X-Tenant-Id", b.tenant)
		r.Header.Set("Content-Type", "image/png")
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode)
		b.open(screen)
		b.waitFor("document.querySelector('.list .avatar img')?.naturalWidth > 0")
	}
	b.clean()
}

// TestCallsOfGrants: names of a page of rules for many people are asked for together.
func TestCallsOfGrants(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "grants-calls")
	type body = map[string]any
	app := b.call(b.t, b.tenant, "POST", "/v1/applications", body{"name": "Ledger", "category": "4"})["id"]
	b.call(b.t, b.tenant, "POST", "/v1/resources", body{
		"application_id": app, "type": "data", "code": "invoices", "actions": []body{{"code": "read"}},
	})
	var people []body
	for n := range 15 {
		person := b.call(b.t, b.tenant, "POST", "/v1/users",
			body{"username": fmt.Sprintf("u%d", n), "display_name": fmt.Sprintf("Person %d", n)})
		people = append(people, body{"identity_id": person["id"], "identity_type": "user", "identity_name": "old"})
	}
	b.call(b.t, b.tenant, "POST", "/v1/batch/auth-unit-rules", body{"identities": people, "rules": []body{
		{"application_id": app, "type": "data", "code": "invoices", "actions": []string{"read"}},
	}})
	b.proxy.forget()
	b.open("grants")
	b.see("Person 0", "Person 14", "Ledger") // as they are called now
	calls := b.proxy.sent("GET /v1/*")
	require.LessOrEqual(t, len(calls), 5, "rules, units, people, their applications, those to filter by: %v", calls)
	b.clean()
}
