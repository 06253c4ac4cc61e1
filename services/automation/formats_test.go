package automation_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/pkg/webhook"
)

var unsteady = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|x{100,}|"(duration_ms|request_?id)": [^,]+`)

// steady replaces parts of a document that differ from run to run or are long.
func steady(document []byte) []byte {
	return unsteady.ReplaceAllFunc(document, func(b []byte) []byte {
		if member, _, found := strings.Cut(string(b), ":"); found {
			return []byte(member + `: "…"`)
		}
		return []byte("…")
	})
}

// Later versions must be able to read stored documents. A change of a golden file needs code that reads the old form.
func TestGoldenDocuments(t *testing.T) {
	t.Parallel()
	s := start(t)
	testkit.Stored(t, s, "acme", "jobs") // skips the test on MongoDB
	began := s.Clock.Now()
	documents := storeObjects(s)
	documents = append(documents, storeJobs(s)...)
	documents = append(documents, storeFunctions(t, s)...)
	for _, d := range documents {
		testkit.GoldenDocument(t, s, began, d.name, d.collection, d.id, steady)
	}
}

// stored names a stored document. An id of "" stands for the only one of the collection.
type stored struct{ name, collection, id string }

func storeObjects(s *testkit.Service) []stored {
	c := kvOf(s, "acme")
	bucket := put(c, boxPath, object{"description": "Boxes", "ttl_seconds": 3600, "history": 3}).ID()
	theme := put(c, at("console/theme"), object{"value": object{"dark": true, "<&>": "é"}}).ID()
	s.Clock.Advance(time.Second)
	put(c, at("console/theme"), object{"value": nil, "content_type": "text/x"}).OK(nil)
	large := put(c, at("large"), object{"value": strings.Repeat("x", 20_000), "ttl_seconds": 0}).ID()
	put(c, at("gone"), object{"value": 1}).OK(nil)
	c.Delete(at("gone"), nil).OK(nil)
	return []stored{
		{"bucket", "kv_buckets", ""}, {"object", "kv_objects", theme}, {"object_large", "kv_objects", large},
		{"value", "kv_values", ""}, {"object_version", "kv_versions", ""}, {"removal", "kv_removals", ""},
		{"gate", "kv_gates", bucket + ".0"},
	}
}

func storeJobs(s *testkit.Service) []stored {
	c := jobsOf(s, "acme")
	signed := c.Post(jobsPath, object{
		"code": "signed", "name": "Signed <&>", "description": "d",
		"schedule": object{"type": "cron", "cron": "30 2 * * *", "timezone": "Europe/Berlin"},
		"target": object{"type": "webhook", "url": "https://jobs.acme.test/run", "payload": object{"a": 1},
			"secret": webhook.NewSecret()},
		"concurrency": "queue", "misfire": "skip", "timeout_seconds": 30,
	}).ID()
	c.Post(jobsPath+"/"+signed+"/suspend", nil).OK(nil) // its next_fire_time would differ from day to day
	nats := c.Post(jobsPath, object{
		"code": "report", "name": "Report", "schedule": object{"type": "interval", "every_seconds": 3600},
		"target": object{"type": "nats", "subject": "reports"}, "retry": object{"max": 2, "backoff_seconds": 60},
	}).ID()
	run := jobsPath + "/" + nats + "/sub-jobs/" + c.Post(jobsPath+"/"+nats+"/trigger", object{"payload": []any{1}}).ID()
	s.RunTask("run jobs") // no worker listens to the subject: the run waits for its next attempt
	c.Post(run+"/logs", object{"lines": []any{object{"message": "line <&>", "level": "warn"}}}).OK(nil)
	part := c.Post(jobsPath+"/"+nats+"/sub-jobs", object{"parent_id": idIn(run), "name": "Part"}).ID()
	c.Post(jobsPath+"/pre-created-id", nil).OK(nil)
	return []stored{
		{"job", "jobs", signed}, {"job_nats", "jobs", nats}, {"sub_job", "sub_jobs", idIn(run)},
		{"sub_job_part", "sub_jobs", part}, {"job_run", "job_runs", idIn(run)}, {"job_run_part", "job_runs", part},
		{"job_log", "job_logs", ""}, {"job_reservation", "job_reservations", ""},
	}
}

func storeFunctions(t *testing.T, s *testkit.Service) []stored {
	c := s.As("acme", auth.FunctionsRead, auth.FunctionsWrite)
	made := c.Post(functionsPath, javascript(`function main(event) { console.log("<&>"); throw new Error(event.type) }`,
		object{"description": "d", "env": object{"KEY": "hidden"}, "allowed_hosts": []any{"api.acme.test"}},
		on("component.created"))).Object()
	component := componentsPath + "/" + c.Post(componentsPath, banner(nil)).ID()
	c.Post(component+"/publish", nil).OK(nil)
	waits := func() bool { // for its second attempt
		for _, run := range testkit.Stored(t, s, "acme", "function_runs") {
			return strings.Contains(run, `"version":3,`)
		}
		return false
	}
	wait.Until(t, waits)
	return []stored{
		{"function", "functions", idIn(oneFunction(made))}, {"function_code", "function_codes", ""},
		{"function_log", "function_logs", ""}, {"function_run", "function_runs", ""},
		{"component", "components", idIn(component)}, {"component_version", "component_versions", ""},
	}
}
