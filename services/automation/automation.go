// Package automation is the automation service: key-value storage, scheduled jobs, functions and components. It exports
// what a program needs to run it, and nothing else.
package automation

import (
	"context"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/automation/internal/component"
	"github.com/idplatform/idplatform/services/automation/internal/httpapi"
	"github.com/idplatform/idplatform/services/automation/internal/job"
	"github.com/idplatform/idplatform/services/automation/internal/kv"
	"github.com/idplatform/idplatform/services/automation/internal/target"
)

// Spec describes the service. It has no settings of its own.
func Spec() service.Spec {
	return service.Spec{
		Name:        "automation",
		Collections: slices.Concat(kv.Collections(), job.Collections(), component.Collections()),
		New:         newApp,
	}
}

// lease is how long a replica that has died keeps its runs.
const lease = 30 * time.Second

func newApp(_ context.Context, d service.Deps) (service.App, error) {
	storage := kv.New(d.Store)
	jobs := job.New(job.Deps{
		Store: d.Store, Log: d.Log, PublicURL: d.PublicURL, Lease: lease,
		Runners: map[string]job.Runner{
			job.Webhook: target.Webhook(d.Outbound),
			job.NATS:    target.NATS(d.Bus.JetStream().Conn()),
		},
	})
	server := d.Server("automation")
	httpapi.Register(server, httpapi.Nouns{KV: storage, Jobs: jobs, Components: component.New(d.Store)})
	return service.App{
		Handler: server,
		Tasks:   append(storageTasks(d, storage), jobTasks(d, jobs)...),
	}, nil
}

func storageTasks(d service.Deps, storage *kv.KV) []service.Task {
	return []service.Task{
		d.DueTask(service.DueWork{
			Name: "expire objects", Every: 10 * time.Second, Due: kv.DueObjects, Do: storage.Expire,
		}),
		d.DueTask(service.DueWork{
			Name: "delete buckets", Every: 10 * time.Second, Due: kv.DueBuckets, Do: storage.Purge,
		}),
	}
}

func jobTasks(d service.Deps, jobs *job.Jobs) []service.Task {
	return []service.Task{
		d.DueTask(service.DueWork{
			Name: "fire jobs", Every: 250 * time.Millisecond, Due: job.DueJobs, Do: jobs.Fire, Workers: 8,
		}),
		{Name: "run jobs", Every: 200 * time.Millisecond, Do: jobs.Work},
		d.DueTask(service.DueWork{
			Name: "clear deleted jobs", Every: 10 * time.Second, Due: job.DueLeftovers, Do: jobs.Clear,
		}),
		d.DueTask(service.DueWork{
			Name: "forget runs", Every: time.Minute, Due: job.DueSubJobs, Do: jobs.Forget,
		}),
		d.DueTask(service.DueWork{
			Name: "release job ids", Every: time.Minute, Due: job.DueReservations, Do: jobs.Release,
		}),
	}
}
