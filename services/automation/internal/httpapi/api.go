// Package httpapi has the automation service's operations: wire forms and their conversion to the domain's, one file
// for each noun. It contains no rules and no storage.
package httpapi

import (
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
	storage := s.Tagged("Buckets and objects",
		"Key-value storage: JSON values by bucket and key, with compare-and-set, expiry and history.")
	a.registerBuckets(storage)
	a.registerObjects(storage)
	a.registerJobs(s.Tagged("Jobs", "What runs at a time, or again and again: schedules and targets."))
	a.registerSubJobs(s.Tagged("Runs", "Sub-jobs: the runs of jobs, the parts that they split off, and their logs."))
	a.registerComponents(s.Tagged("Components", "Reusable pieces of pages and flows, versioned and published."))
	a.registerFunctions(s.Tagged("Functions", "Code of tenants, run in a sandbox by clients, events and jobs."))
}
