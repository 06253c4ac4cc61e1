package browsertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

func TestEvents(t *testing.T) {
	play(t, "events", func(b *browser) {
		b.open("events")
		b.see("Listening for events", "Live")
		id := b.call(b.t, b.tenant, "POST", "/v1/users", map[string]string{"username": "eve"})["id"].(string)
		b.see("User created")
		b.click("Pause")
		b.call(b.t, b.tenant, "PATCH", "/v1/users/"+id, map[string]string{"display_name": "Eve"})
		b.click("Show 1 new event")
		b.see("User updated")
		b.click("User updated")
		b.see("Before", "After", "Display name")
		b.click("Only this type")
		b.see("1 event")
		b.click("Clear filters")
	})
}

// TestEventsGap: where the platform no longer has what a broken stream missed, the tail says so, and goes on.
func TestEventsGap(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "events-gap")
	b.open("events")
	b.see("Live")
	b.call(t, b.tenant, "POST", "/v1/users", map[string]string{"username": "first-one"})
	b.see("first-one")
	hold := make(chan struct{})
	b.proxy.fail(fault{call: "GET /v1/events", stream: true, status: 503, hold: hold, times: 1})
	b.proxy.cutStreams()
	b.call(t, b.tenant, "POST", "/v1/users", map[string]string{"username": "missed-one"})
	var next string
	require.Eventually(t, func() bool { // the feed follows the changes
		page := b.call(t, b.tenant, "GET", "/v1/events?limit=1000", nil)
		next = page["next"].(string)
		return len(page["items"].([]any)) == 2
	}, patience, 50*time.Millisecond)
	b.proxy.fail(fault{call: "GET /v1/events", stream: true, status: 409, code: "invalid_state", next: next, times: 1})
	close(hold)
	b.see("Some events are missing here: the platform no longer has them.")
	b.call(t, b.tenant, "POST", "/v1/users", map[string]string{"username": "last-one"})
	b.waitFor(`[...document.querySelectorAll('.list tbody tr')].map((tr) =>
		['first-one', 'missed-one', 'last-one', 'missing'].find((word) => tr.innerText.includes(word))).join() ===
		'last-one,missing,first-one'`)
	b.clean()
}

// TestEventsLimit: the tail keeps the newest 500 events, also of those that came while it was paused.
func TestEventsLimit(t *testing.T) {
	play(t, "events-limit", func(b *browser) {
		b.open("events")
		b.see("Live")
		b.click("Pause")
		b.call(b.t, b.tenant, "POST", "/v1/users/import", lines(510))
		b.click("Show 510 new events")
		b.see("500 events", "The newest 500 events are kept on this screen")
		b.waitFor("document.querySelector('.list table').ariaRowCount === '501'")
		b.see("Person 509")
		b.call(b.t, b.tenant, "POST", "/v1/users", map[string]string{"username": "newest"})
		b.see("newest", "500 events")
	})
}

func TestAudit(t *testing.T) {
	play(t, "audit", func(b *browser) {
		id := b.call(b.t, b.tenant, "POST", "/v1/users", map[string]string{"username": "olga"})["id"].(string)
		b.call(b.t, b.tenant, "PATCH", "/v1/users/"+id, map[string]string{"display_name": "Olga", "status": "0"})
		b.recorded(id, 2)
		b.open("audit")
		b.see("User updated")
		b.click("User updated")
		b.see("Display name", "application "+clientID)
		b.waitFor(`[...document.querySelectorAll('.panel .diff td')].map((td) => td.innerText).join() ===
			'empty,Olga,Active,Disabled'`)
		b.click("Undo…")
		b.see("Undo this change?", "will be written back")
		b.waitFor("document.querySelector('dialog .diff tbody th').innerText === 'Display name'")
		b.click("Write back 2 fields")
		b.see("The change was undone")
		b.recorded(id, 3)
		b.click("History of the record")
		b.see("created")
		b.click("Change")
		b.click("Only this record")
		b.see("3 entries")
	})
}

// TestAuditByPerson: what a person did is found in both ways in which entries write a person, by one order of time,
// also while they are written.
func TestAuditByPerson(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "by-person")
	add := func(path, member, name string) string {
		return b.call(t, b.tenant, "POST", path, map[string]any{member: name})["id"].(string)
	}
	olga := add("/v1/users", "username", "olga")
	b.recorded(add("/v1/applications", "name", "Oldest"), 1)
	b.call(t, b.tenant, "POST", "/v1/users/import", lines(150))
	b.recorded(add("/v1/applications", "name", "Newest"), 1)
	b.open("start")
	// As if Olga had added the users as a subject of the tenant's issuer, and the applications with a token.
	eval[bool](b, fmt.Sprintf(`(() => {
		const sent = window.fetch;
		window.fetch = (request, ...more) => {
			const url = new URL(request.url ?? request, location);
			const actor = url.searchParams.get('actor') ?? '';
			if (/[#:]%[1]s$/.test(actor)) {
				url.searchParams.set('actor', 'client:%[2]s');
				url.searchParams.set('entity', actor === 'user:%[1]s' ? 'application' : 'user');
				request = new Request(url, request);
			}
			return sent(request, ...more);
		};
		return true;
	})()`, olga, clientID))
	b.screen("Audit")
	b.filterBy("By", "olg")
	b.clickIn("[popover]", "olga")
	b.chip("By: olga")
	names := func(from, to, want string) { // of some rows that are drawn
		t.Helper()
		b.waitFor(fmt.Sprintf(`(document.querySelectorAll('.list, .list *').forEach((e) => {
			if (%[1]s < 0) e.scrollTop = e.scrollHeight;
		}), [...document.querySelectorAll('.list .item-row')].slice(%[1]s, %[2]s)
			.map((tr) => tr.cells[1].innerText.split(' ')[0]).join() === %[3]q)`, from, to, want))
	}
	b.see("153 entries", "Live")                   // of 151 users and two applications
	names("0", "3", "Newest,Person,Person")        // the other application is older than the first page of users
	names("-3", "undefined", "Person,Oldest,olga") // and stands where it belongs
	add("/v1/applications", "name", "Latest")
	add("/v1/users", "username", "pavel")
	b.see("155 entries")
	b.click("Export")
	var times []string
	for line := range strings.Lines(b.saved()) {
		var entry struct{ Time string }
		require.NoError(t, json.Unmarshal([]byte(line), &entry))
		times = append(times, entry.Time)
	}
	require.Len(t, times, 155)
	require.True(t, slices.IsSorted(times))

	// An address may have the other one.
	to := "user:" + olga
	eval[bool](b, fmt.Sprintf(`(history.pushState(null, '', '?actor=%s'), dispatchEvent(new PopStateEvent('popstate')))`, to))
	b.see("155 entries")
	require.Equal(t, to, b.query("actor"))
	b.clean()
}

// TestAuditBegins: what is written after the page was asked for, and before its stream is there, appears as well.
func TestAuditBegins(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "audit-begins")
	hold := make(chan struct{})
	mend := b.proxy.fail(fault{call: "GET /v1/audit-logs", stream: true, hold: hold})
	b.open("audit")
	b.see("Nothing is recorded yet")
	id := b.call(t, b.tenant, "POST", "/v1/users", map[string]string{"username": "olga"})["id"].(string)
	b.recorded(id, 1)
	mend()
	close(hold)
	b.see("User created", "1 entry")
	b.clean()
}

// TestAuditStaysSmall: the newest 2,000 entries stay while others come, and the older ones are at the end as before.
func TestAuditStaysSmall(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "audit-small")
	id := b.call(t, b.tenant, "POST", "/v1/users", map[string]string{"username": "olga"})["id"].(string)
	b.recorded(id, 1)
	b.open("audit")
	b.see("User created", "olga", "1 entry")
	b.call(t, b.tenant, "POST", "/v1/users/import", lines(2500))
	b.see("2,501 entries") // those of the users: the import's own comes with a stream of its own
	const atEnd = `(document.querySelectorAll('.list, .list *').forEach((e) => { e.scrollTop = e.scrollHeight }),
		document.querySelector('main').innerText.slice(-400).includes('olga'))`
	b.waitFor(atEnd)
	require.NotEmpty(t, b.proxy.sent("GET /v1/audit-logs"))
	b.clean()
}

// TestAuditNames: each row names its record, by one call for each kind of records, whatever they are.
func TestAuditNames(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "audit-names")
	var people []string
	for n, name := range []string{"Olga", "Pavel", "Quan"} {
		id := b.call(t, b.tenant, "POST", "/v1/users", map[string]string{"username": strconv.Itoa(n)})["id"].(string)
		b.call(t, b.tenant, "PATCH", "/v1/users/"+id, map[string]string{"display_name": name})
		b.call(t, b.tenant, "PATCH", "/v1/users/"+id, map[string]string{"employee_number": name + "-1"})
		people = append(people, id)
	}
	app := b.call(t, b.tenant, "POST", "/v1/applications", map[string]any{"name": "Books"})["id"].(string)
	b.call(t, b.tenant, "PATCH", "/v1/applications/"+app, map[string]any{"descr": "Accounts"})
	b.call(t, b.tenant, "DELETE", "/v1/users/"+people[2], nil)
	for _, id := range people[:2] {
		b.recorded(id, 3)
	}
	b.recorded(people[2], 4)
	b.recorded(app, 2)
	b.proxy.forget()
	b.open("audit")
	b.see("User updated", "Application updated")
	b.waitFor(`[...document.querySelectorAll('.list td:nth-child(2)')].every((td) => !/^[0-9]{5,}$/.test(td.innerText))`)
	rows := func(what, name string, n int) { // names come after the entries
		t.Helper()
		b.waitFor(fmt.Sprintf(`[...document.querySelectorAll('.list tr')].filter((tr) =>
			tr.cells[0].innerText === %q && tr.cells[1].innerText === %q).length === %d`, what, name, n))
	}
	rows("User updated", "Olga", 2)
	rows("User updated", "Quan", 2) // who is gone is called as when it went
	rows("Application updated", "Books", 1)
	require.False(t, eval[bool](b, "!!labelled('Quan')"), "who is gone cannot be opened")
	b.rest()
	require.Len(t, b.proxy.sent("GET /v1/users"), 1)
	require.Len(t, b.proxy.sent("GET /v1/applications"), 1)
	require.Len(t, b.proxy.sent("GET /*"), 5, "the page, its stream, the types of events, and two kinds of names")
	b.click("Pavel")
	b.waitFor(fmt.Sprintf("location.pathname.endsWith('/users') && location.search === '?open=%s'", people[1]))
	b.clean()
}

// TestAuditWords: every kind of record and everything that happens to one has a word in Chinese, and no two are alike.
func TestAuditWords(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "audit-words")
	b.open("start")
	b.speak("zh")
	b.open("audit")
	for _, filter := range []string{"种类", "操作"} {
		b.waitFor(fmt.Sprintf("labelled(%q)", filter))
		b.click(filter)
		b.waitFor("document.querySelectorAll('[popover]:popover-open [role=menuitemradio]').length > 30")
		words := eval[[]string](b, `[...document.querySelectorAll('[popover]:popover-open [role=menuitemradio]')]
			.map((o) => o.textContent)`)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(words))), len(words), "two are alike: %v", words)
		for _, word := range words {
			require.Regexp(t, `\p{Han}`, word)
		}
		b.press(kb.Escape)
	}
	id := b.call(t, b.tenant, "POST", "/v1/users", map[string]string{"username": "olga"})["id"].(string)
	b.call(t, b.tenant, "PATCH", "/v1/users/"+id,
		map[string]any{"employee_number": "7", "sys_ext_props": map[string]string{"desk": "4"}})
	b.see("工号", "sys_ext_props") // what no form has a label for is called as in the API

	b.click("种类")
	b.waitFor("document.activeElement.matches('[popover] input')")
	b.press("用户\r")
	b.waitFor("new URLSearchParams(location.search).get('entity') === 'user'")
	b.clean()
}

// TestFilterByRecord: whom or what entries and events are about, and who made a change, is found by name. The address
// has the id, so that it shows the same later; an id that is pasted is understood.
func TestFilterByRecord(t *testing.T) {
	play(t, "by-record", func(b *browser) {
		olga := map[string]string{"username": "olga", "display_name": "Olga"}
		id := b.call(b.t, b.tenant, "POST", "/v1/users", olga)["id"].(string)
		b.call(b.t, b.tenant, "POST", "/v1/users", map[string]string{"username": "pavel"})
		b.call(b.t, b.tenant, "POST", "/v1/applications", map[string]any{"name": "Books", "category": "1"})
		b.recorded(id, 1)
		rows := func(n int) {
			b.t.Helper()
			b.waitFor(fmt.Sprintf("document.querySelectorAll('.list .item-row').length === %d", n))
		}
		find := func(filter, words, option string) {
			b.t.Helper()
			b.filterBy(filter, words)
			b.clickIn("[popover]", option)
		}
		b.open("audit")
		b.see("Application created")
		find("Record", "olg", "Olga")
		b.chip("Record: Olga")
		rows(1)
		require.Equal(b.t, []string{"user", id}, []string{b.query("entity"), b.query("record")})

		b.open("audit?entity=user&record=" + id) // as a bookmark
		b.chip("Record: Olga")
		rows(1)

		b.open("audit")
		b.filterBy("Record", id)
		b.waitFor(`labelled("Olga", "[popover]")`)
		b.press(kb.Enter)
		b.chip("Record: Olga")

		b.open("audit")
		find("By", "olg", "Olga")
		b.chip("By: Olga")
		require.Regexp(b.t, "^https?://.+/sign-in/"+b.tenant+"#"+id+"$", b.query("actor"))
		b.see("No entry fits the filters")

		b.open("events")
		b.see("Application created")
		find("Record", "boo", "Books")
		b.chip("Record: Books")
		b.chip("Type: Application: all")
		rows(1)
	})
}

// filterBy opens a filter, and types into its field.
func (b *browser) filterBy(filter, words string) {
	b.t.Helper()
	b.click(filter)
	b.hand.reach(b, fmt.Sprintf("input(%q)", "Search: "+filter))
	b.press(words)
}

// chip waits until a filter says what it is set to.
func (b *browser) chip(says string) {
	b.t.Helper()
	b.waitFor(fmt.Sprintf("[...document.querySelectorAll('.chip')].some((c) => c.textContent === %q)", says))
}

// TestEnterAtOnce: Enter before a filter has found something takes what it finds; an id that is pasted is taken also
// where nothing is answered.
func TestEnterAtOnce(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "enter-at-once")
	olga := map[string]string{"username": "olga", "display_name": "Olga"}
	id := b.call(t, b.tenant, "POST", "/v1/users", olga)["id"].(string)
	b.recorded(id, 1)

	b.open("audit")
	b.see("User created")
	hold := make(chan struct{})
	mend := b.proxy.fail(fault{call: "GET /v1/users", hold: hold})
	b.filterBy("Record", "olg"+kb.Enter)
	b.waitForCall("GET /v1/users", "keyword=olg")
	mend()
	close(hold)
	b.chip("Record: Olga")
	require.Equal(t, []string{"user", id}, []string{b.query("entity"), b.query("record")})

	for _, screen := range []string{"audit", "events"} {
		b.open(screen)
		b.see("User created")
		b.filterBy("Record", id+kb.Enter)
		b.waitFor(fmt.Sprintf("[...new URLSearchParams(location.search).values()].includes(%q)", id))
	}

	b.open("audit")
	b.see("User created")
	hold = make(chan struct{})
	mend = b.proxy.fail(fault{call: "GET /v1/users", hold: hold})
	b.filterBy("Record", id+kb.Enter)
	b.waitFor(fmt.Sprintf("new URLSearchParams(location.search).get('record') === %q", id))
	mend()
	close(hold)
	b.clean()
}

// waitForCall waits until the console has sent a call with something in its query.
func (b *browser) waitForCall(which, query string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return b.asked(which, query) > 0 }, patience, 20*time.Millisecond)
}

// asked counts the calls that had something in their query.
func (b *browser) asked(which, query string) (n int) {
	for _, c := range b.proxy.sent(which) {
		if strings.Contains(c.query, query) {
			n++
		}
	}
	return n
}

// TestFewSearches: a filter by a record asks few screens at a time, none for what was typed before, and where a kind is
// chosen, those that have it.
func TestFewSearches(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "few-searches")
	olga := map[string]string{"username": "olga", "display_name": "Olga"}
	id := b.call(t, b.tenant, "POST", "/v1/users", olga)["id"].(string)
	b.call(t, b.tenant, "POST", "/v1/applications", map[string]any{"name": "Books"})
	b.recorded(id, 1)
	b.open("audit")
	b.see("User created")
	hold := make(chan struct{})
	mend := b.proxy.fail(fault{call: "GET /v1/*", hold: hold})
	b.filterBy("Record", "o")
	b.waitForCall("GET /v1/users", "keyword=o&")
	b.press("lga")
	b.waitForCall("GET /v1/users", "keyword=olga&")
	mend()
	close(hold)
	b.waitFor(`labelled("Olga", "[popover]")`)
	b.rest()
	require.LessOrEqual(t, b.asked("GET /v1/*", "keyword=o&"), 3, "users, applications and groups")
	require.Positive(t, b.asked("GET /v1/jobs", "keyword=olga&"))

	b.open("audit?entity=user")
	b.see("User created")
	b.rest()
	b.proxy.forget()
	b.filterBy("Record", "olga")
	b.waitFor(`labelled("Olga", "[popover]")`)
	b.rest()
	require.Len(t, b.proxy.sent("GET /*"), 1, "of the kind that is chosen")
	b.press("\b\b\b\bbooks")
	b.waitFor(`labelled("Books", "[popover]")`) // no user is called so
	b.clean()
}

// TestEventsOfRecord: of the types that are chosen, a record leaves those that its kind has.
func TestEventsOfRecord(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "events-of-record")
	olga := map[string]string{"username": "olga", "display_name": "Olga"}
	id := b.call(t, b.tenant, "POST", "/v1/users", olga)["id"].(string)
	for types, then := range map[string]string{
		"": "user.*", "*": "user.*", "*.deleted": "user.deleted", "user.created": "user.created",
		"user.created,*.deleted": "user.created,user.deleted", "user.*,*.deleted": "user.*",
		"job.created": "user.*", "*.stepped_up": "user.*",
	} {
		b.open("events?types=" + types)
		b.see("Live")
		b.rest() // the types are known
		b.filterBy("Record", "olg")
		b.clickIn("[popover]", "Olga")
		b.waitFor(fmt.Sprintf("new URLSearchParams(location.search).get('subject') === %q", id))
		require.Equal(t, then, b.query("types"), types)
		b.chip("Record: Olga")
	}
	b.open("events?types=*.deleted&subject=" + id)
	b.see("Live")
	b.call(t, b.tenant, "DELETE", "/v1/users/"+id, nil)
	b.see("User deleted")
	b.clean()
}

// TestUnknownWords: words of a newer platform are shown as it says them.
func TestUnknownWords(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "unknown-words")
	id := b.call(t, b.tenant, "POST", "/v1/users", map[string]string{"username": "olga"})["id"].(string)
	b.recorded(id, 1)
	b.open("start")
	b.rewriteAudit(`text.replace('"user"', '"gadget"').replace('"created"', '"polished"')`)
	b.screen("Audit")
	b.see("gadget polished")
	b.clean()
}

// rewriteAudit gives the page other entries than the platform has: what a script makes of their text.
func (b *browser) rewriteAudit(script string) {
	b.t.Helper()
	eval[bool](b, `(() => {
		const sent = window.fetch;
		window.fetch = async (...what) => {
			const answer = await sent(...what);
			const entries = answer.url.includes('/v1/audit-logs');
			if (!entries || /event-stream/.test(answer.headers.get('Content-Type'))) return answer;
			const text = await answer.text();
			return new Response(`+script+`, answer);
		};
		return true;
	})()`)
}

// recorded waits until the audit log has entries of a record. It is written behind all changes, those of other tests
// among them: 20,000 nodes take a busy machine a while.
func (b *browser) recorded(id string, entries int) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		page := b.call(b.t, b.tenant, "GET", "/v1/audit-logs?record="+id, nil)
		items, _ := page["items"].([]any)
		return len(items) >= entries
	}, 3*time.Minute, 100*time.Millisecond)
}

func TestSubscriptions(t *testing.T) {
	play(t, "subscriptions", func(b *browser) {
		b.open("subscriptions")
		b.see("No subscriptions yet")
		b.clickIn(".actions", "New subscription")
		b.fill("Name", "Ledger")
		b.click("Create")
		b.waitFor("document.activeElement.ariaInvalid === 'true'")
		b.click("NATS")
		b.fill("Event types", "user.*")
		b.click("Create")
		b.see("Store the secret now")
		b.click("I have stored it")
		b.waitFor("document.querySelector('.panel h2')?.textContent === 'Ledger'")
		b.click("Test delivery")
		b.see("The test event was published")
		b.click("More actions")
		b.click("Pause")
		b.see("Ledger is paused")
		b.waitFor("document.querySelector('.panel-head').textContent.includes('Paused')")
		b.undo()
		b.waitFor("document.querySelector('.panel-head').textContent.includes('Active')")
		b.fill("Name", "Ledger 2")
		b.click("Save")
		b.see("Ledger 2 was saved")
		b.undo()
		b.waitFor("document.querySelector('.panel h2')?.textContent === 'Ledger'")
		b.click("More actions")
		b.click("Rotate the secret…")
		b.see("Events that wait stay, until the receiver comes with the new one.")
		b.clickIn("dialog", "Rotate")
		b.see("Store the secret now")
		b.click("I have stored it")
		b.click("More actions")
		b.click("Reset…")
		b.see("Where should Ledger go on?")
		b.clickIn("dialog", "Reset")
		b.see("Ledger was reset")
		b.find("Ledger")
		b.see("1 record")
		b.click("More actions")
		b.click("Delete…")
		b.fill("Type Ledger to confirm", "Ledger")
		b.clickIn("dialog", "Delete")
		b.see("Ledger was deleted")
	})
}

// receiver is a server that webhooks go to.
type receiver struct {
	*httptest.Server
	status atomic.Int32 // of its answers

	mu  sync.Mutex
	ids []string // of the messages, in their order
}

func startReceiver(t testing.TB, status int) *receiver {
	t.Helper()
	r := &receiver{}
	r.status.Store(int32(status))
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, got *http.Request) {
		r.mu.Lock()
		r.ids = append(r.ids, got.Header.Get("webhook-id"))
		r.mu.Unlock()
		w.WriteHeader(int(r.status.Load()))
	}))
	t.Cleanup(r.Close)
	return r
}

// TestRedeliver: an event of the delivery log goes to its receiver again.
func TestRedeliver(t *testing.T) {
	play(t, "redeliver", func(b *browser) {
		r := startReceiver(b.t, http.StatusOK)
		made := b.call(b.t, b.tenant, "POST", "/v1/event-subscriptions", map[string]any{"name": "Ledger",
			"event_types": []string{"user.created"}, "delivery": map[string]any{"type": "webhook", "url": r.URL}})
		b.liWei()
		b.open("subscriptions?tab=deliveries&open=" + made["id"].(string))
		logged := func(states, answer string) {
			b.t.Helper()
			b.waitFor(fmt.Sprintf(`[...document.querySelectorAll('.subscriptions-deliveries .status')]
				.map((e) => e.textContent).join() === %q`, states))
			b.see(answer)
		}
		again := func(status int) {
			b.t.Helper()
			r.status.Store(int32(status))
			b.click("Deliver again")
			b.see("The event is delivered again")
		}
		logged("Delivered", "Answer 200")
		again(http.StatusInternalServerError)
		logged("Retrying,Delivered", "Answer 500")
		again(http.StatusOK)
		// Whatever came first: the retry of the second delivery, or the click, which then makes a third one.
		b.waitFor(`[...document.querySelectorAll('.subscriptions-deliveries .status')]
			.every((e) => e.textContent === 'Delivered')`)
		b.see("Answer 200")
		r.mu.Lock()
		defer r.mu.Unlock()
		require.GreaterOrEqual(b.t, len(r.ids), 3)
		require.Len(b.t, slices.Compact(r.ids), 1, "all of one event")
	})
}
