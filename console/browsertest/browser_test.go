package browsertest

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// patience is how long a step may take on a busy machine.
const patience = 2 * time.Minute

var errNoChromium = errors.New("there is no Chromium: apt-get install chromium, or IDP_TEST_BROWSER")

// browser is one tab of Chromium with cookies and storage of its own, behind a proxy of its own.
type browser struct {
	t      testing.TB
	ctx    context.Context
	url    string // the proxy's
	tenant string
	hand   hand
	moved  float64 // how far the layout of the last look moved by itself (CLS)
	proxy  *proxy
	*platform
}

// openBrowser opens a tab in which nobody is signed in. When the test ends, nothing may have been refused by the page's
// policy, no error may be left, and all calls must have been of the API's document.
func openBrowser(t testing.TB, tenant string) *browser {
	t.Helper()
	return thePlatform(t).openBrowser(t, tenant)
}

func (p *platform) openBrowser(t testing.TB, tenant string) *browser {
	t.Helper()
	parent, err := sharedTabs()
	if errors.Is(err, errNoChromium) && os.Getenv("IDP_TEST_BROWSER_REQUIRED") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	x := startProxy(t, p)
	ctx, cancel := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx, url: x.url, tenant: ownTenant(tenant), hand: mouse{}, proxy: x, platform: p}
	// The first step opens the tab, which lives as long as that step's context.
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate("about:blank")))
	_, err = chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: watch + fingers})
	require.NoError(t, err)
	b.size(1280, 800)
	t.Cleanup(func() {
		if t.Failed() {
			b.picture("failed-" + strings.ReplaceAll(t.Name(), "/", "-"))
		}
		for unknown := range x.unknown {
			t.Errorf("the console sent what the API's document lacks: %s", unknown)
		}
	})
	return b
}

// sharedTenant has the sample company, and is there for all tests that only look.
const sharedTenant = "default"

var (
	tenants   = map[string]int{}
	tenantsMu sync.Mutex
)

// ownTenant is the name of a tenant that nobody has used, so that a test can be played several times (-count).
func ownTenant(name string) string {
	if name == sharedTenant {
		return name
	}
	tenantsMu.Lock()
	defer tenantsMu.Unlock()
	if tenants[name]++; tenants[name] > 1 {
		return fmt.Sprintf("%s-%d", name, tenants[name])
	}
	return name
}

// signedIn opens a tab whose person is signed in as the platform's administrator.
func signedIn(t testing.TB, tenant string) *browser {
	t.Helper()
	b := openBrowser(t, tenant)
	body, err := json.Marshal(map[string]string{"client_id": clientID, "client_secret": clientSecret})
	require.NoError(t, err)
	answer, err := http.Post(b.url+"/console/~/session", "application/json", strings.NewReader(string(body)))
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	for _, c := range answer.Cookies() {
		_, err := chromedp.Call(b.ctx, network.SetCookie, network.SetCookieParams{
			Name: c.Name, Value: c.Value, URL: b.url + c.Path, HTTPOnly: &c.HttpOnly,
			SameSite: network.CookieSameSiteStrict,
		})
		require.NoError(t, err)
	}
	return b
}

//go:embed fingers.js
var fingers string

// watch notes what the policy of the page refused, errors that nobody caught, and how far things moved by themselves.
const watch = `window.faults = []; window.shifts = [];
addEventListener('securitypolicyviolation', (e) => faults.push('policy: ' + e.violatedDirective + ' ' + e.blockedURI));
addEventListener('error', (e) => faults.push('error: ' + e.message));
addEventListener('unhandledrejection', (e) => faults.push('rejection: ' + (e.reason && e.reason.stack || e.reason)));
new PerformanceObserver((list) => { for (const e of list.getEntries()) if (!e.hadRecentInput) shifts.push({
	value: e.value, what: e.sources.map((s) => s.node && (s.node.className || s.node.nodeName)).join(', ')}); })
	.observe({type: 'layout-shift', buffered: true});
`

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, steps...))
}

func (b *browser) size(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}

// open opens a screen of the tenant, "users?q=li", and waits until it is there.
func (b *browser) open(screen string) {
	b.t.Helper()
	b.load("/console/" + b.tenant + "/" + screen)
	b.waitFor(`document.querySelector('.screen h1, .screen-head h1, .gate h1')`)
}

// speak chooses the language of the pages that are opened from now on, as the menu does.
func (b *browser) speak(language string) {
	b.t.Helper()
	eval[bool](b, fmt.Sprintf(`(localStorage.setItem('idp.lang', %q),
		document.cookie = 'idp_console_lang=%s; Path=/console', true)`, language, language))
}

// load opens a path as the address bar does.
func (b *browser) load(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.url + path))
}

func eval[T any](b *browser, js string) T {
	b.t.Helper()
	v, err := tryEval[T](b, js)
	require.NoError(b.t, err, js)
	return v
}

func tryEval[T any](b *browser, js string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
}

// waitFor waits until an expression is true, also past pages that lead to others.
func (b *browser) waitFor(js string) {
	b.t.Helper()
	const wait = `new Promise((done) => {
		const until = performance.now() + %d;
		const look = () => { try { if (%s) return done(''); } catch (e) { /* not yet */ }
			if (performance.now() > until) return done(document.body.innerText.slice(0, 2000) || 'an empty page');
			setTimeout(look, 25); };
		look(); })`
	script := fmt.Sprintf(wait, (patience - 5*time.Second).Milliseconds(), js)
	shown, err := tryEval[string](b, script)
	for pages := 0; err != nil && strings.Contains(err.Error(), "navigated") && pages < 10; pages++ {
		shown, err = tryEval[string](b, script)
	}
	require.NoError(b.t, err, js)
	if shown != "" {
		require.FailNow(b.t, "it did not come", "waited for %s\nlast keys: %s\nthe page shows: %s", js,
			strings.Join(eval[[]string](b, "lately"), ", "), shown)
	}
}

// see waits for texts on the page.
func (b *browser) see(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		b.waitFor(fmt.Sprintf(`shows(%q)`, text))
	}
}

// gone waits until texts are not on the page any more.
func (b *browser) gone(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		b.waitFor(fmt.Sprintf(`!onPage(%q)`, text))
	}
}

// press presses keys as a person does: "j", "\r", "\x1b". A key that the page takes for itself types nothing, which is
// why a letter goes along with its key.
func (b *browser) press(keys string, options ...chromedp.KeyOption) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for _, key := range keys {
		var down, up *input.DispatchKeyEventParams
		for _, e := range kb.Encode(key) {
			switch e.Type {
			case kb.KeyChar:
				down.Text, down.UnmodifiedText = e.Text, e.UnmodifiedText
			case kb.KeyUp:
				up = e
			default:
				e.Type = input.DispatchKeyEventTypeKeyDown
				down = e
			}
		}
		for _, o := range options {
			o(down)
			o(up)
		}
		if down.Modifiers&int64(kb.ModifierCtrl) != 0 {
			down.Text, down.UnmodifiedText = "", ""
		}
		for _, e := range []*input.DispatchKeyEventParams{down, up} {
			_, err := chromedp.Call(ctx, input.DispatchKeyEvent, *e)
			require.NoError(b.t, err)
		}
	}
}

// rest waits until nothing is loaded any more, and nothing moves.
func (b *browser) rest() {
	b.t.Helper()
	for until := time.Now().Add(patience); ; {
		before, _ := b.proxy.quiet()
		still := eval[bool](b, "still()")
		if after, quiet := b.proxy.quiet(); still && quiet && before == after {
			break
		}
		if time.Now().After(until) {
			require.FailNow(b.t, "the page does not come to rest", eval[string](b, "document.body.innerText"))
		}
	}
	eval[bool](b, `Promise.all(document.getAnimations()
		.filter((a) => a.effect.getComputedTiming().endTime < 5000)
		.map((a) => a.finished.catch(() => 0))).then(() => true)`)
}

// back goes back in the history.
func (b *browser) back() {
	b.t.Helper()
	eval[bool](b, "(history.back(), true)")
}

// query returns a parameter of the address.
func (b *browser) query(name string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf("new URLSearchParams(location.search).get(%q) ?? ''", name))
}

// picture saves what is seen into the folder IDP_TEST_SCREENSHOTS, for people.
func (b *browser) picture(name string) {
	b.t.Helper()
	folder := os.Getenv("IDP_TEST_SCREENSHOTS")
	if folder == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Errorf("no picture of %s: %v", name, err)
	}
}

// writeSheet writes index.html into the folder of the pictures: all of them on one page.
func writeSheet() error {
	folder := os.Getenv("IDP_TEST_SCREENSHOTS")
	if folder == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.png"))
	if err != nil || len(files) == 0 {
		return err
	}
	slices.Sort(files)
	var page strings.Builder
	page.WriteString("<!doctype html><meta charset=utf-8><title>Pictures of the console</title><style>" +
		"body{font:14px system-ui;display:grid;grid-template-columns:repeat(auto-fill,minmax(360px,1fr));gap:20px}" +
		"figure{margin:0}img{max-width:100%;max-height:420px;border:1px solid #8888}</style>\n")
	for _, file := range files {
		name := filepath.Base(file)
		fmt.Fprintf(&page, `<figure><a href=%q><img src=%q alt=""></a><figcaption>%s</figcaption></figure>`,
			name, name, strings.TrimSuffix(name, ".png"))
	}
	return os.WriteFile(filepath.Join(folder, "index.html"), []byte(page.String()), 0o644)
}

// clean requires that nothing was refused by the policy, and no error was left.
func (b *browser) clean() {
	b.t.Helper()
	require.Empty(b.t, eval[[]string](b, "window.faults"))
}
