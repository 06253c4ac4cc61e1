package browsertest

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSigningIn(t *testing.T) {
	t.Parallel()
	b := openBrowser(t, "signing")
	b.open("users?q=wei")
	b.see("Sign in")
	b.fill("Client id", "nobody")
	b.fill("Client secret", "wrong")
	b.press(kb.Enter)
	b.see("The client id or the secret is wrong")
	b.fill("Client id", clientID)
	b.fill("Client secret", clientSecret)
	b.press(kb.Enter)
	b.see("Nothing matches") // the screen that the address names
	require.Empty(b.t, eval[string](b, "document.cookie"), "scripts see no session")
	b.click("Signed in as")
	b.click("Sign out")
	b.see("Client secret")
	require.Equal(b.t, int64(401), eval[int64](b, "fetch('/console/api/v1/users').then((r) => r.status)"))
	b.clean()
}

// sampleMade makes the sample company in the tenant default once: tests that only look share it.
var sampleMade sync.Mutex

// sample opens a tab in the tenant default, where the sample company is.
func sample(t testing.TB) *browser {
	t.Helper()
	b := signedIn(t, sharedTenant)
	sampleMade.Lock()
	defer sampleMade.Unlock()
	b.open("start")
	b.waitFor("labelled('Remove it') || labelled('Make the sample company')")
	if eval[bool](b, "!labelled('Remove it')") {
		makeSample(b)
		makeAutomation(b)
	}
	return b
}

// makeAutomation makes a function with two revisions and a call, and a job with a run.
func makeAutomation(b *browser) {
	b.t.Helper()
	call := func(path string, body map[string]any) string {
		b.t.Helper()
		id, _ := b.call(b.t, b.tenant, "POST", path, body)["id"].(string)
		return id
	}
	f := "/v1/functions/" + call("/v1/functions", map[string]any{"code": "greet", "name": "Greet",
		"source": "function main(input) { return 1; }"})
	b.call(b.t, b.tenant, "PATCH", f, map[string]any{"source": "function main(input) { return 2; }"})
	call(f+"/invoke", map[string]any{"input": map[string]any{}})
	job := call("/v1/jobs", map[string]any{"code": "nightly", "name": "Nightly import",
		"schedule": map[string]any{"type": "cron", "cron": "30 2 * * *", "timezone": "Europe/Berlin"},
		"target":   map[string]any{"type": "nats", "subject": "imports"}})
	call("/v1/jobs/"+job+"/trigger", map[string]any{})
	makeStorage(b)
}

// makeStorage makes an object with a former state, a component with a version, a method and a template of it.
func makeStorage(b *browser) {
	b.t.Helper()
	type fields = map[string]any
	b.call(b.t, b.tenant, "PUT", "/v1/kv/buckets/settings", fields{"history": 10})
	for _, dark := range []bool{true, false} {
		b.call(b.t, b.tenant, "PUT", "/v1/kv/buckets/settings/objects/theme", fields{"value": fields{"dark": dark}})
	}
	id, _ := b.call(b.t, b.tenant, "POST", "/v1/components", fields{"code": "banner", "name": "Banner",
		"type": "login_page", "config": fields{"title": "Welcome"},
		"schema": fields{"properties": fields{"title": fields{"type": "string", "title": "Title"}}}})["id"].(string)
	b.call(b.t, b.tenant, "POST", "/v1/components/"+id+"/publish", fields{})
	b.call(b.t, b.tenant, "PATCH", "/v1/components/"+id, fields{"config": fields{"title": "Hello"}})
	b.call(b.t, b.tenant, "POST", "/v1/auth-methods", fields{"code": "pwd", "name": "Password", "type": "password"})
	b.call(b.t, b.tenant, "POST", "/v1/auth-templates", fields{"code": "staff", "name": "Staff",
		"steps": []fields{{"methods": []string{"pwd"}, "required": true}}})
}

func makeSample(b *browser) {
	b.t.Helper()
	b.click("Make the sample company")
	b.see("The sample company is here", "200 users", "3 trees")
}

type look struct{ name, path, js string }

// looks are the screens as people see them. With js they have something open, by which it is opened.
var looks = []look{
	{"start", "/console/default/start", ""},
	{"users", "/console/default/users", ""},
	{"user", "/console/default/users?q=li%20we", "document.querySelector('a.open').click()"},
	{"audit", "/console/default/users?q=li%20we&tab=audit", "document.querySelector('a.open').click()"},
	{"user-sign-in", "/console/default/users?q=li%20we&tab=sign-in", "document.querySelector('a.open').click()"},
	{"empty", "/console/default/users?q=zzzzzz", ""},
	{"import", "/console/default/users?import=1", "true"},
	{"create", "/console/default/users", "document.querySelectorAll('.screen-head .btn.primary')[0].click()"},
	{"palette", "/console/default/users", "dispatchEvent(new KeyboardEvent('keydown', {key: 'k', ctrlKey: true}))"},
	{"help", "/console/default/start", "dispatchEvent(new KeyboardEvent('keydown', {key: '?'}))"},
	{"trees", "/console/default/tree", ""},
	{"tree", "/console/default/tree/sample-company", ""},
	{"node", "/console/default/tree/sample-company", "document.querySelector('[role=treeitem] .name').click()"},
	{"new-tree", "/console/default/tree?new=1", "true"},
	{"members", "/console/default/members", ""},
	{"apps", "/console/default/apps", ""},
	{"app", "/console/default/apps", "document.querySelector('a.open').click()"},
	{"protocols", "/console/default/apps?tab=protocols", "document.querySelector('a.open').click()"},
	{"secrets", "/console/default/apps?tab=secrets", "document.querySelector('a.open').click()"},
	{"accounts", "/console/default/apps?tab=accounts", "document.querySelector('a.open').click()"},
	{"templates", "/console/default/apps?create=choose", "true"},
	{"grants", "/console/default/grants", ""},
	{"rule", "/console/default/grants", "document.querySelector('a.open').click()"},
	{"grant", "/console/default/grants?grant=1", "true"},
	{"resources", "/console/default/grants/resources", ""},
	{"resource", "/console/default/grants/resources", "document.querySelector('a.open').click()"},
	{"explorer", "/console/default/explorer", ""},
	{"answer", "/console/default/explorer", "document.querySelector('.screen .blank a').click()"},
	{"events", "/console/default/events", ""},
	{"event", "/console/default/events", "document.querySelector('a.open').click()"},
	{"trail", "/console/default/audit", ""},
	{"entry", "/console/default/audit", "document.querySelector('a.open').click()"},
	{"subscriptions", "/console/default/subscriptions", ""},
	{"new-subscription", "/console/default/subscriptions?create=1",
		"document.querySelector('dialog .chips button').scrollIntoView()"}, // the types come after the form
	{"jobs", "/console/default/jobs", ""},
	{"job", "/console/default/jobs", "document.querySelector('a.open').click()"},
	{"new-job", "/console/default/jobs?create=1", "true"},
	{"runs", "/console/default/jobs?tab=runs", "document.querySelector('a.open').click()"},
	{"job-empty", "/console/default/jobs?q=zzzzzz", ""},
	{"functions", "/console/default/functions", ""},
	{"function", "/console/default/functions", "document.querySelector('a.open').click()"},
	{"new-function", "/console/default/functions?create=1", "true"},
	{"call", "/console/default/functions?tab=invoke", "document.querySelector('a.open').click()"},
	{"calls", "/console/default/functions?tab=logs", "document.querySelector('a.open').click()"},
	{"revisions", "/console/default/functions?tab=revisions", "document.querySelector('a.open').click()"},
	{"connections", "/console/default/connections", ""},
	{"connection", "/console/default/connections", "document.querySelector('a.open').click()"},
	{"new-connection", "/console/default/connections?create=choose", "true"},
	{"methods", "/console/default/connections/methods", ""},
	{"new-method", "/console/default/connections/methods?create=1", "true"},
	{"login-templates", "/console/default/connections/templates", ""},
	{"new-login-template", "/console/default/connections/templates?create=1", "true"},
	{"method", "/console/default/connections/methods", "document.querySelector('a.open').click()"},
	{"login-template", "/console/default/connections/templates", "document.querySelector('a.open').click()"},
	{"kv", "/console/default/kv", ""},
	{"new-bucket", "/console/default/kv?create=1", "true"},
	{"bucket", "/console/default/kv/settings?settings=1", "true"},
	{"objects", "/console/default/kv/settings", ""},
	{"object", "/console/default/kv/settings", "document.querySelector('a.open').click()"},
	{"new-object", "/console/default/kv/settings?create=1", "true"},
	{"history", "/console/default/kv/settings?tab=history&v=1", "document.querySelector('a.open').click()"},
	{"components", "/console/default/components", ""},
	{"component", "/console/default/components", "document.querySelector('a.open').click()"},
	{"versions", "/console/default/components?tab=versions&v=1", "document.querySelector('a.open').click()"},
	{"new-component", "/console/default/components?create=1", "true"},
	{"settings", "/console/default/settings", ""},
	{"settings-browser", "/console/default/settings/browser", ""},
	{"settings-platform", "/console/default/settings/platform", ""},
	{"settings-users", "/console/default/settings/users", ""},
	{"settings-share", "/console/default/settings/users", "document.querySelector('.settings-page input').click()"},
	{"settings-keys", "/console/default/settings/keys", ""},
	{"settings-tenants", "/console/default/settings/tenants", ""},
	{"dead-letters", "/console/default/settings/letters", ""},
	{"nowhere", "/console/default/nothing", ""},
}

// TestAxe checks every look by the rules of WCAG 2.2 AA, and takes its picture.
func TestAxe(t *testing.T) {
	t.Parallel()
	for _, variant := range variants() {
		t.Run(fmt.Sprintf("%s-%s-%d", variant.theme, variant.lang, variant.width), func(t *testing.T) {
			t.Parallel()
			b := sample(t)
			axe := axeScript(b)
			if axe == "" {
				t.Skip("axe is not installed: npm ci --prefix console/web")
			}
			b.size(variant.width, variant.height)
			b.speak(variant.lang)
			eval[bool](b, fmt.Sprintf(`(localStorage.setItem('idp.theme', %q), true)`, variant.theme))
			for _, look := range looks {
				b.lookAt(look, axe, fmt.Sprintf("%s-%s-%s-%d", look.name, variant.theme, variant.lang, variant.width))
				spoken := eval[string](b, "document.documentElement.lang")
				assert.True(t, strings.HasPrefix(spoken, variant.lang), "%s is in %s", look.name, spoken)
				assert.LessOrEqual(t, eval[int64](b, "document.documentElement.scrollWidth"), variant.width, look.name)
				if variant.width < 400 { // a window of 1280 at 400 percent, WCAG 1.4.10
					b.size(320, variant.height)
					assert.LessOrEqual(t, eval[int64](b, "document.documentElement.scrollWidth"), int64(320), look.name)
					b.picture(look.name + "-320-" + variant.lang)
					b.size(variant.width, variant.height)
				}
			}
		})
	}
}

// lookAt opens a look, which must not move by itself, and checks it.
func (b *browser) lookAt(l look, axe, name string) {
	b.t.Helper()
	b.show(l.path, l.js)
	b.check(axe, name)
	assert.LessOrEqual(b.t, b.moved, maxShift, "%s: the layout moves by itself: %v", l.name,
		eval[[]string](b, "shifts.map((s) => `${s.value.toFixed(3)} ${s.what}`)"))
	assert.True(b.t, eval[bool](b, "uncovered('.panel h2')"), "%s: something is before the panel", l.name)
}

// axeScript returns the source of axe; nothing if it is not installed.
func axeScript(b *browser) string {
	script, err := os.ReadFile("../web/node_modules/axe-core/axe.min.js")
	if err != nil && os.Getenv("IDP_TEST_BROWSER_REQUIRED") == "" {
		return ""
	}
	require.NoError(b.t, err)
	return string(script)
}

// check checks what is seen, and takes its picture.
func (b *browser) check(axe, name string) {
	b.t.Helper()
	b.picture(name)
	b.clean()
	if axe == "" {
		return
	}
	b.do(chromedp.Evaluate[chromedp.Void](axe + ";({})"))
	found := eval[[]string](b, `axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})
		.then((r) => r.violations.flatMap((v) =>
			v.nodes.map((n) => v.id + ': ' + n.html + ' ' + n.failureSummary)))`)
	assert.Empty(b.t, found, name)
}

// variant is how a person sees the console.
type variant struct {
	theme, lang   string
	width, height int64
}

// variants have each pair of theme, language and width; with IDP_TEST_CONSOLE_VARIANTS=all, all eight.
func variants() []variant {
	some := []variant{
		{"light", "en", 1280, 800}, {"dark", "zh", 1280, 800}, {"dark", "en", 390, 844}, {"light", "zh", 390, 844},
	}
	if os.Getenv("IDP_TEST_CONSOLE_VARIANTS") != "all" {
		return some
	}
	return append(some, variant{"dark", "en", 1280, 800}, variant{"light", "zh", 1280, 800},
		variant{"light", "en", 390, 844}, variant{"dark", "zh", 390, 844})
}

// show opens a look, and waits until it has come to rest.
func (b *browser) show(path, js string) {
	b.t.Helper()
	b.load(path)
	b.rest()
	b.moved = b.shift()
	if js == "" {
		return
	}
	for _, act := range []string{".click()", ".scrollIntoView()"} {
		if found, _, acts := strings.Cut(js, act); acts {
			b.waitFor(found)
		}
	}
	eval[bool](b, "("+js+", true)")
	b.waitFor("document.querySelector('.panel h2, dialog[open], .explorer-answer')")
	b.rest()
}
