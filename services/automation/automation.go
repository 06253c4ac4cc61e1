// Package automation is the automation service: key-value storage, scheduled jobs, functions and components. It exports
// what a program needs to run it, and nothing else.
package automation

import (
	"context"
	"time"

	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/automation/internal/httpapi"
	"github.com/idplatform/idplatform/services/automation/internal/kv"
)

// Spec describes the service. It has no settings of its own.
func Spec() service.Spec {
	return service.Spec{Name: "automation", Collections: kv.Collections(), New: newApp}
}

func newApp(_ context.Context, d service.Deps) (service.App, error) {
	storage := kv.New(d.Store)
	server := d.Server("automation")
	httpapi.Register(server, httpapi.Nouns{KV: storage})
	return service.App{
		Handler: server,
		Tasks: []service.Task{
			d.DueTask(service.DueWork{
				Name: "expire objects", Every: 10 * time.Second, Due: kv.DueObjects, Do: storage.Expire,
			}),
			d.DueTask(service.DueWork{
				Name: "delete buckets", Every: 10 * time.Second, Due: kv.DueBuckets, Do: storage.Purge,
			}),
		},
	}, nil
}
