package browsertest

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// TestFunctions: code that does not compile is marked at its line; what is saved is called, and its revisions compared.
func TestFunctions(t *testing.T) {
	play(t, "functions", func(b *browser) {
		b.open("functions?create=1")
		b.see("Tab leaves the editor")
		b.fill("Name", "Greeting")
		require.Equal(b.t, "greeting", eval[string](b, fieldValue("Code")))
		b.fill("Source", "function main(input) {")
		b.press(kb.Enter + "retur 1;" + kb.Enter + "}")
		b.click("Create")
		b.see("line 2, column 9: Unexpected number")
		// An effect marks it, after the message.
		b.waitFor("document.querySelector('.gutter .bad')?.textContent === '2'")
		require.True(b.t, eval[bool](b, "document.activeElement.matches('.function-editor textarea')"))
		b.fill("Source", "function main(input) {")
		b.press(kb.End + kb.Enter + "console.log('called');" + kb.Enter + "return input.name.length;" + kb.Enter)
		b.press("[", chromedp.KeyModifiers(kb.ModifierCtrl))
		b.press("}")
		const source = "function main(input) {\n  console.log('called');\n  return input.name.length;\n}"
		require.Equal(b.t, source, eval[string](b, fieldValue("Source")), "the editor keeps the indentation")
		b.press(kb.Tab)
		require.False(b.t, eval[bool](b, "document.activeElement.matches('textarea')"), "Tab leaves the editor")
		b.click("Create")
		b.see("Greeting was created")
		b.click("Call")
		b.fill("Input", `{"name": "`)
		b.see("This is not JSON")
		b.fill("Input", `{"name": "李伟"}`)
		b.press(kb.Enter, chromedp.KeyModifiers(kb.ModifierCtrl))
		b.see("Succeeded")
		b.see("called")
		b.fill("Input", "{}")
		b.press(kb.Enter, chromedp.KeyModifiers(kb.ModifierCtrl))
		b.see("Failed")
		b.click("Show line 3, column 21")
		b.waitFor("document.querySelector('.gutter .bad')?.textContent === '3'")
		b.fill("Source", "function main(input) { return (input.name ?? '').length; }")
		b.press("s", chromedp.KeyModifiers(kb.ModifierCtrl))
		b.see("Greeting was saved")
		b.click("Revisions")
		b.see("1 new, 4 gone")
		b.click("Roll back…")
		b.see("This makes revision 3")
		b.click("Roll back")
		b.see("Greeting is back at the code of revision 1")
		b.undo()
		b.see("Revision 4")
	})
}

// TestJobs: a schedule is said in words, and its next times are shown while somebody types; a run fails, and is seen.
func TestJobs(t *testing.T) {
	play(t, "jobs", func(b *browser) {
		b.open("jobs?create=1")
		b.see("Every day at 02:30")
		b.fill("Name", "Nightly import")
		b.fill("Cron expression", "61 * * * *")
		b.see("must be a cron expression")
		b.fill("Cron expression", "15 8 * * MON-FRI")
		b.see("Monday to Friday, at 08:15")
		b.fill("Time zone", "Asia/Shanghai")
		b.waitFor("document.querySelectorAll('dialog .job-times tbody tr').length === 10")
		b.see("Asia/Shanghai")
		b.click("Create")
		b.see("must be an absolute http or https URL")
		b.fill("URL", "http://127.0.0.1:1/import")
		b.click("Create")
		b.see("Nightly import was created")
		b.waitFor("document.querySelector('.panel h2')?.textContent === 'Nightly import'")
		b.click("Run now")
		b.see("Run Nightly import now?")
		b.clickIn("dialog", "Run now")
		b.see("Why it failed")
		b.see("Run 1")
		b.click("All runs")
		b.see("by hand")
		b.click("More actions")
		b.click("Suspend")
		b.see("Nightly import is suspended")
		b.undo()
		b.waitFor("document.querySelector('.panel .status').textContent === 'Scheduled'")
	})
}

// TestRunOfJob: the log follows the worker, unless somebody reads further up; a run is cancelled with its parts.
func TestRunOfJob(t *testing.T) {
	play(t, "run", func(b *browser) {
		type fields = map[string]any
		worker := startReceiver(b.t, http.StatusAccepted)
		made := b.call(b.t, b.tenant, "POST", "/v1/jobs", fields{"code": "sweep", "name": "Sweep",
			"schedule": fields{"type": "manual"}, "target": fields{"type": "webhook", "url": worker.URL}})
		job := "/v1/jobs/" + made["id"].(string)
		b.open("jobs?open=" + made["id"].(string))
		b.click("Run now")
		b.clickIn("dialog", "Run now")
		b.see("Run 1 was started", "What the worker reports appears here")
		run := b.call(b.t, b.tenant, "GET", job+"/sub-jobs", nil)["items"].([]any)[0].(fields)["id"].(string)
		report := func(from, to int) {
			b.t.Helper()
			var lines []fields
			for n := from; n <= to; n++ {
				lines = append(lines, fields{"message": fmt.Sprintf("page %d is done", n)})
			}
			b.call(b.t, b.tenant, "POST", job+"/sub-jobs/"+run+"/logs", fields{"lines": lines})
			b.see(fmt.Sprintf("page %d is done", to))
		}
		const end = `((log) => log.scrollHeight - log.scrollTop - log.clientHeight < 24)
			(document.querySelector('.log'))`
		report(1, 100)
		b.see("100 lines", "Following")
		b.waitFor(end)
		b.waitFor("(document.querySelector('.log').scrollTo(0, 0), shows('Not following'))")
		report(101, 101)
		require.Zero(b.t, eval[float64](b, "document.querySelector('.log').scrollTop"))
		b.click("To the newest")
		b.waitFor(end)
		report(102, 120)
		b.waitFor(end)

		b.call(b.t, b.tenant, "POST", job+"/sub-jobs", fields{"parent_id": run, "name": "Page 121"})
		b.see("1 part", "Page 121")
		b.click("Cancel run")
		b.see("Cancel Run 1?", "One unfinished part is cancelled, too.")
		b.clickIn("dialog", "Cancel run")
		b.see("Run 1 was cancelled", "Run again")
		b.waitFor("[...document.querySelectorAll('.job-tree .status')].every((s) => s.textContent === 'Cancelled')")
	})
}

// fieldValue is what the input with a label has.
func fieldValue(label string) string {
	return "[...document.querySelectorAll('label')].find((l) => l.textContent === '" + label + "').control.value"
}
