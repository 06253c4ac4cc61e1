// Package httpapi has the automation service's operations: wire forms and their conversion to the domain's, one file
// for each noun. It contains no rules and no storage.
package httpapi

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/automation/internal/component"
	"github.com/idplatform/idplatform/services/automation/internal/function"
	"github.com/idplatform/idplatform/services/automation/internal/job"
	"github.com/idplatform/idplatform/services/automation/internal/kv"
)

// Nouns are the use cases that the operations call.
type Nouns struct {
	KV         *kv.KV
	Jobs       *job.Jobs
	Components *component.Components
	Functions  *function.Functions
}

type api struct{ Nouns }

// Register adds all operations to the server.
func Register(s *rest.Server, nouns Nouns) {
	a := &api{nouns}
	rest.DescribedAs[jsontext.Value, any](s) // any JSON; json.RawMessage is an object
	storage := s.Tagged("Buckets and objects",
		"Key-value storage: JSON values by bucket and key, with compare-and-set, expiry and history.")
	a.registerBuckets(storage)
	a.registerObjects(storage)
	a.registerJobs(s.Tagged("Jobs", "Work that is done once or again and again: each job has a schedule and a target."))
	a.registerSubJobs(s.Tagged("Runs",
		"Sub-jobs: the runs of jobs, the parts that workers split off from runs, and their logs."))
	a.registerComponents(s.Tagged("Components", "Reusable pieces of pages and flows, versioned and published."))
	a.registerFunctions(s.Tagged("Functions",
		"Code of the tenant, which runs in a sandbox: called by clients and jobs, and triggered by events."))
}
