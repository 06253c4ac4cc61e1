package commands

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var automation = answers{
	"GET /v1/jobs": `{"items":[{"id":"81","code":"nightly","name":"N","status":"1","state":"suspended",
		"schedule":{"type":"interval","every_seconds":300},"target":{"type":"nats","subject":"a.b"},
		"next_fire_time":"2026-01-31T09:30:00.000Z"}]}`,
	"POST /v1/jobs": `{"id":"81"}`, "PATCH /v1/jobs/81": `{"id":"81"}`, "DELETE /v1/jobs/81": `{"id":"81"}`,
	"POST /v1/jobs/81/suspend": `{"id":"81"}`, "POST /v1/jobs/81/resume": `{"id":"81"}`,
	"POST /v1/jobs/81/trigger":   `{"id":"92","number":2,"state":"pending"}`,
	"GET /v1/jobs/81/fire-times": `{"fire_times":["2026-01-31T09:30:00.000Z","2026-02-01T09:30:00.000Z"]}`,
	"GET /v1/jobs/81/sub-jobs": `{"items":[{"id":"91","number":1,"state":"failed","error":"no worker"},
		{"id":"92","number":2,"state":"running"},{"id":"93","number":1,"parent_id":"92","state":"running"}]}`,
	"GET /v1/jobs/81/sub-jobs/92/logs":    `{"items":[{"id":"1","level":"info","message":"begins"}]}`,
	"GET /v1/jobs/81/sub-jobs/91/logs":    `{"items":[{"id":"2","level":"error","message":"broke"}]}`,
	"GET /v1/jobs/81/sub-jobs/91":         `{"id":"91","state":"failed","error":"no worker"}`,
	"POST /v1/jobs/81/sub-jobs/92/cancel": `{"id":"92","state":"cancelled"}`,
	"GET /v1/functions": `{"items":[{"id":"71","code":"sync","runtime":"javascript","revision":2,"status":"0",
		"triggers":[{"event_types":["user.*"]}]}]}`,
	"POST /v1/functions": `{"id":"71"}`, "PATCH /v1/functions/71": `{"id":"71"}`,
	"PUT /v1/functions/71/module": `{"id":"71"}`, "POST /v1/functions/71/rollback": `{"id":"71"}`,
	"GET /v1/functions/71/logs": `{"items":[{"id":"1","cause":"invoke","outcome":"failed","duration_ms":3,
		"error":{"message":"no"},"logs":[{"level":"info","text":"a"},{"level":"info","text":"b"}]}]}`,
	"GET /v1/functions/71/revisions": `{"items":[{"revision":2,"runtime":"javascript","entry":"main","bytes":7}]}`,
	"GET /v1/components":             `{"items":[{"id":"61","code":"banner","type":"page","status":"1"}]}`,
	"POST /v1/components":            `{"id":"61"}`, "POST /v1/components/61/publish": `{"id":"61"}`,
	"GET /v1/components/61/versions": `{"items":[{"component_version":1,"name":"B","type":"page"}]}`,
}

func TestJobs(t *testing.T) {
	t.Parallel()
	newPlay(t, automation.serve).play([]step{
		{command: "jobs list", out: "nightly  N     every 300 s  nats a.b  suspended  2026-01-31T09:30:00Z\n"},
		{command: "jobs get nightl", code: 3, err: "near it: nightly"},
		{command: "jobs create j --cron '0 3 * * *' --timezone Asia/Shanghai --function sync --payload '{\"a\":1}'",
			body: `{"code":"j","name":"j","schedule":{"type":"cron","cron":"0 3 * * *","timezone":"Asia/Shanghai"},
			"target":{"type":"function","function_id":"71","payload":{"a":1}}}`},
		{command: "jobs create j --every 5m --url https://a.test --concurrency skip", body: `{"code":"j","name":"j",
			"schedule":{"type":"interval","every_seconds":300},"target":{"type":"webhook","url":"https://a.test"},
			"concurrency":"skip"}`},
		{command: "jobs create j --at 2026-01-31T09:30:00Z --subject a.b", body: `{"code":"j","name":"j",
			"schedule":{"type":"once","at":"2026-01-31T09:30:00Z"},"target":{"type":"nats","subject":"a.b"}}`},
		{command: "jobs create j --subject a.b", body: `{"code":"j","name":"j","schedule":{"type":"manual"},
			"target":{"type":"nats","subject":"a.b"}}`},
		{command: "jobs create j", code: 2, err: "a job needs a target"},
		{command: "jobs create j --subject a.b --payload x", code: 2, err: "must be JSON"},
		{command: "jobs create j --subject a.b --timezone UTC", code: 2, err: "--timezone is for --cron"},
		{command: "jobs create j --subject a.b --every 5m --cron @daily", code: 2, err: "every"},
		{command: "jobs update nightly --cron @daily", request: "PATCH /v1/jobs/81", body: `{"schedule":{"type":"cron",
			"cron":"@daily","timezone":null,"every_seconds":null,"at":null}}`},
		{command: "jobs update nightly --payload 1", body: `{"target":{"payload":1}}`},
		{command: "jobs trigger nightly --payload '{\"day\":1}'", body: `{"payload":{"day":1}}`},
		{command: "jobs fire-times nightly --count 2", out: "FIRES AT\n2026-01-31T09:30:00.000Z\n2026-02-01"},
		{command: "jobs runs nightly", out: "no worker"},
		{command: "jobs logs nightly", out: "begins", request: "GET /v1/jobs/81/sub-jobs/92/logs?page_size=200"},
		{command: "jobs logs nightly 1", out: "broke"},
		{command: "jobs logs nightly 9", code: 3, err: "idp jobs runs nightly"},
		{command: "jobs logs nightly 1 --follow", code: 10, out: "broke", err: "failed: no worker\n"},
		{command: "jobs cancel nightly", request: "POST /v1/jobs/81/sub-jobs/92/cancel"},
		{command: "jobs cancel nightly 1 2", code: 2, err: "idp jobs cancel JOB [RUN]"},
		{command: "jobs suspend nightly", request: "POST /v1/jobs/81/suspend"},
		{command: "jobs delete nightly", code: 2, err: "--yes is needed"},
	})
}

// TestFollow follows a run that ends when its log is asked for the second time.
func TestFollow(t *testing.T) {
	t.Parallel()
	for state, code := range map[string]int{"succeeded": 0, "failed": 10, "cancelled": 10, "timed_out": 10} {
		var looked atomic.Int64
		p := newPlay(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/v1/jobs/81/sub-jobs/92":
				if looked.Add(1) == 1 {
					_, _ = io.WriteString(w, `{"id":"92","state":"running","progress":40}`)
					return
				}
				_, _ = io.WriteString(w, `{"id":"92","progress":100,"state":"`+state+`"}`)
			case "/v1/jobs/81/sub-jobs/92/logs":
				last := ""
				if looked.Load() > 1 {
					last = `,{"id":"2","level":"warn","message":"ends"}`
				}
				_, _ = io.WriteString(w, `{"items":[{"id":"1","level":"info","message":"begins"}`+last+`]}`)
			default:
				automation.serve(w, r)
			}
		})
		got := p.run("jobs", "trigger", "nightly", "--follow", "-o", "template={{.message}}")
		assert.Equal(t, code, got.code, got.err)
		assert.Equal(t, "begins\nends\n", got.out)
		assert.Contains(t, got.err, "running 40%\n"+state+"\n")
	}
}

// A platform that goes away while a run is followed has begun it: a script that begins it again would run it twice.
func TestFollowWithoutThePlatform(t *testing.T) {
	t.Parallel()
	p := newPlay(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/jobs/81/sub-jobs/92" {
			refuse(w, http.StatusServiceUnavailable, "unavailable")
			return
		}
		automation.serve(w, r)
	})
	got := p.run("jobs", "trigger", "nightly", "--follow", "--wait", "0")
	assert.Equal(t, 8, got.code, got.err)
	assert.Contains(t, got.err, "the run goes on; idp jobs logs 81 92 --follow")
	assert.Equal(t, 7, p.run("jobs", "logs", "nightly", "92", "--follow", "--wait", "0").code, "it only reads")
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	outcome := "succeeded"
	p := newPlay(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/functions/71/invoke" {
			automation.serve(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"outcome":"`+outcome+`","output":{"n":1},"error":{"message":"no luck"},
			"logs":[{"level":"info","text":"hi"}]}`)
	})
	script, module := filepath.Join(t.TempDir(), "a.js"), filepath.Join(t.TempDir(), "a.wasm")
	require.NoError(t, os.WriteFile(script, []byte("function main(){}"), 0o600))
	require.NoError(t, os.WriteFile(module, []byte("\x00asm"), 0o600))
	p.play([]step{
		{command: "functions list", out: "71  sync        javascript  2         user.*     disabled\n"},
		{command: "functions create f -f " + script, body: `{"code":"f","name":"f","runtime":"javascript",
			"source":"function main(){}"}`},
		{command: "functions create f -f " + module, body: `{"code":"f","name":"f","runtime":"wasm",
			"module_base64":"AGFzbQ=="}`},
		{command: "functions create f -f /none.js", code: 2, err: "/none.js"},
		{command: "functions deploy sync -f " + script, request: "PATCH /v1/functions/71",
			body: `{"runtime":"javascript","source":"function main(){}"}`},
		{command: "functions deploy sync -f " + module, request: "PUT /v1/functions/71/module"},
		{command: "functions deploy sync", code: 2, err: "--file is needed"},
		{command: "functions rollback sync --revision 1", body: `{"revision":1}`},
		{command: "functions logs sync", out: "failed   3   no     a | b\n",
			request: "GET /v1/functions/71/logs?page_size=200&page_sort=time_created%5Bdesc%5D"},
		{command: "functions revisions sync", out: "2         javascript"},
		{command: "functions invoke sync --data '{\"x\":1}'", out: "{\"n\":1}\n", err: "info  hi\n",
			body: `{"input":{"x":1}}`},
		{command: "functions invoke sync -o json", out: `"outcome": "succeeded"`, body: `{}`},
		{command: "functions invoke sink", code: 3, err: "no function"},
		{command: "components list", out: "61  banner        page"},
		{command: "components create b --type page --config '{\"a\":1}'",
			body: `{"code":"b","name":"b","type":"page","config":{"a":1}}`},
		{command: "components create b --type page --config @/none.json", code: 2, err: "/none.json"},
		{command: "components publish banner", request: "POST /v1/components/61/publish"},
		{command: "components versions banner", out: "1                  B"},
		{command: "components get bann", code: 3, err: "near it: banner"},
	})
	outcome = "timed_out"
	got := p.run("functions", "invoke", "sync")
	assert.Equal(t, 10, got.code)
	assert.Empty(t, got.out)
	assert.Contains(t, got.err, "timed out: no luck\n")
}

func TestKV(t *testing.T) {
	t.Parallel()
	p := newPlay(t, answers{
		"GET /v1/kv/buckets":          `{"items":[{"name":"settings","state":"active"}]}`,
		"GET /v1/kv/buckets/settings": `{"name":"settings"}`, "PUT /v1/kv/buckets/new": `{"name":"new"}`,
		"DELETE /v1/kv/buckets/settings":      `{"id":"1"}`,
		"GET /v1/kv/buckets/settings/objects": `{"items":[{"key":"a/b","size":7,"version":2}]}`,
		"GET /v1/kv/buckets/settings/objects/a/b": `{"key":"a/b","version":2,"content_type":"application/json",
			"value":{"n":12345678901234567890}}`,
		"GET /v1/kv/buckets/settings/objects/text":        `{"key":"text","content_type":"text/plain","value":"two\nlines"}`,
		"PUT /v1/kv/buckets/settings/objects/a/b":         `{"key":"a/b"}`,
		"DELETE /v1/kv/buckets/settings/objects/a/b":      `{"id":"1"}`,
		"GET /v1/kv/buckets/settings/objects/a/b/history": `{"items":[{"version":1,"value":{"n":1}}]}`,
	}.serve)
	p.play([]step{
		{command: "kv buckets", out: "settings"},
		{command: "kv buckets put new --history 5", body: `{"history":5}`},
		{command: "kv buckets delete settings --force --yes", request: "DELETE /v1/kv/buckets/settings?force=true"},
		{command: "kv ls settings --prefix a/", out: "a/b",
			request: "GET /v1/kv/buckets/settings/objects?page_size=200&prefix=a%2F"},
		{command: "kv ls setting", code: 3, err: "near it: settings"},
		{command: "kv get settings a/b", out: "{\"n\":12345678901234567890}\n"},
		{command: "kv get settings text", out: "two\nlines"},
		{command: "kv get settings a/b --jq .version", out: "2\n"},
		{command: "kv get settings a/c", code: 3, err: `there is no key "a/c"; near it: a/b`},
		{command: "kv history settings a/b", out: `{"n":1}`},
		{command: "kv put settings a/b '{\"n\":12345678901234567890}' --ttl 10m --if-version 2",
			body: `{"value":{"n":12345678901234567890},"ttl_seconds":600}`},
		{command: "kv put settings a/b x", code: 2, err: "--content-type text/plain"},
		{command: "kv put settings a/b x --content-type text/plain", body: `{"value":"x","content_type":"text/plain"}`},
		{command: "kv put settings a/b 1 --ttl 1ms", code: 2, err: "a second or more"},
		{command: "kv put settings a/b @/none", code: 2, err: "/none"},
		{command: "kv delete settings a/b", code: 2, err: "--yes is needed"},
		{command: "kv delete settings a/b --yes"},
	})
	p.input = `[1]`
	require.Equal(t, 0, p.run("kv", "put", "settings", "a/b", "-", "--if-absent").code)
	assert.Equal(t, "*", p.last().header.Get("If-None-Match"))
	assert.JSONEq(t, `{"value":[1]}`, p.last().body)
	p.input = "\xff"
	got := p.run("kv", "put", "settings", "a/b", "-", "--content-type", "image/png")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.err, "not text in UTF-8")
}

// TestAutomationStory runs jobs, functions, components and objects on the real platform.
func TestAutomationStory(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	script := filepath.Join(t.TempDir(), "sync.js")
	require.NoError(t, os.WriteFile(script, []byte(`function main(i) {
		console.log("day", i && i.day);
		if (i && i.fail) throw new Error("no luck");
		return {done: true};
	}`), 0o600))
	broken := filepath.Join(t.TempDir(), "broken.js")
	require.NoError(t, os.WriteFile(broken, []byte("function main("), 0o600))
	p.play([]step{
		{command: "functions create sync -f " + script + " --dry-run", out: "+ code: sync"},
		{command: "functions create sync -f " + script},
		{command: "functions create sync -f " + script, code: 5, err: "already_exists"},
		{command: "functions invoke sync --data '{\"day\":1}'", out: "{\"done\":true}\n", err: "day 1"},
		{command: "functions invoke sync --data '{\"fail\":true}'", code: 10, err: "no luck"},
		{command: "functions deploy sync -f " + broken, code: 5, err: "body.source"},
		{command: "functions update sync --name 同步 --if-version 1 --dry-run", out: "+ name: 同步"},
		{command: "functions logs sync", out: "no luck"},
		{command: "jobs create nightly --cron '0 3 * * *' --timezone Asia/Shanghai --function sync"},
		{command: "jobs create worse --subject nobody.listens"},
		{command: "jobs create bad --cron nonsense --subject a.b", code: 5, err: "cron"},
		{command: "jobs list", out: "0 3 * * * Asia/Shanghai"},
		{command: "jobs fire-times nightly --count 3", out: "T19:00:00"},
		{command: "jobs update nightly --every 5m --dry-run", out: `"every_seconds":300`},
		{command: "jobs update nightly --every 5m"},
		{command: "jobs trigger nightly --payload '{\"day\":2}' --dry-run"},
		{command: "jobs trigger nightly --payload '{\"day\":2}' --follow", err: "succeeded\n"},
		{command: "jobs trigger nightly --payload '{\"fail\":true}' --follow", code: 10, err: "no luck"},
		{command: "jobs trigger worse --follow", code: 10, err: "no worker"},
		{command: "jobs runs nightly --state succeeded -o json --jq '.items | length'", out: "1\n"},
		{command: "jobs logs nightly 2 --follow", code: 10},
		{command: "jobs cancel nightly", code: 3, err: "no run of nightly is unfinished"},
		{command: "jobs suspend nightly"}, {command: "jobs list", out: "suspended"}, {command: "jobs resume nightly"},
		{command: "functions delete sync --yes", code: 5, err: "in_use"},
		{command: "jobs delete nightly --yes"}, {command: "functions delete sync --yes"},
		{command: "components create banner --type page --config '{\"color\":\"red\"}'"},
		{command: "components update banner -F config.color=blue --dry-run", out: `+ config: {"color":"blue"}`},
		{command: "components publish banner"},
		{command: "components versions banner -o name", out: "1\n"},
		{command: "components delete banner --yes"}, {command: "components get banner", code: 3},
		{command: "kv put settings theme/dark '{\"color\":\"red\"}' --dry-run", out: "+ key: theme/dark"},
		{command: "kv put settings theme/dark '{\"color\":\"red\"}'"},
		{command: "kv buckets put settings --history 3"},
		{command: "kv put settings theme/dark '{\"color\":\"blue\"}' --if-version 7", code: 6},
		{command: "kv put settings theme/dark '{\"color\":\"blue\"}' --if-version 1"},
		{command: "kv put settings theme/dark 1 --if-absent", code: 6, err: "exists"},
		{command: "kv get settings theme/dark", out: "{\"color\":\"blue\"}\n"},
		{command: "kv history settings theme/dark", out: `{"color":"red"}`},
		{command: "kv ls settings --prefix theme/ -o name", out: "theme/dark\n"},
		{command: "kv put settings note @" + script + " --content-type text/javascript"},
		{command: "kv get settings note", out: "function main(i) {\n"},
		{command: "kv delete settings note --dry-run", out: "- key: note"},
		{command: "kv delete settings note --yes"}, {command: "kv get settings note", code: 3},
		{command: "kv buckets delete settings --yes", code: 5, err: "in_use"},
		{command: "kv buckets delete settings --force --yes"},
	})
	assert.Equal(t, 1, strings.Count(p.run("kv", "buckets", "-o", "json").out, `"active"`), "the first one of the play")
}
