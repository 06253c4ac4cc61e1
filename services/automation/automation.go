// Package automation is the automation service: key-value storage, scheduled jobs, functions and components. It exports
// what a program needs to run it, and nothing else.
package automation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/automation/internal/component"
	"github.com/idplatform/idplatform/services/automation/internal/function"
	"github.com/idplatform/idplatform/services/automation/internal/httpapi"
	"github.com/idplatform/idplatform/services/automation/internal/job"
	"github.com/idplatform/idplatform/services/automation/internal/kv"
	"github.com/idplatform/idplatform/services/automation/internal/sandbox"
	"github.com/idplatform/idplatform/services/automation/internal/target"
	"github.com/idplatform/idplatform/services/questions"
)

// Config holds the service's own settings.
type Config struct {
	FunctionWorkers int           `mapstructure:"function_workers" doc:"Processes that run functions, at most; each may use about 500 MiB of memory for a short time"`
	FunctionIdle    time.Duration `mapstructure:"function_idle" doc:"How long a process without calls stays"`
	FunctionHosts   []string      `mapstructure:"function_hosts" doc:"The only hosts that functions may fetch from, such as api.example.com or *.example.com; empty: all that a function lists"`
}

// DefaultConfig suits a machine with a few processors.
func DefaultConfig() Config { return Config{FunctionWorkers: 4, FunctionIdle: time.Minute} }

// RunIfWorker must be the first statement of main in every program that runs the service, because functions run in
// worker processes, which are this program started again. It returns at once unless this process is a worker.
func RunIfWorker() { sandbox.RunIfWorker() }

// Spec describes the service with a configuration.
func Spec(c Config) service.Spec {
	return service.Spec{
		Name: "automation",
		Collections: slices.Concat(kv.Collections(), job.Collections(), function.Collections(),
			component.Collections()),
		EventMemory: 4 << 20, // an import triggers functions in bursts
		New:         c.new,
	}
}

// maxWorkers is far more than the processors of a machine.
const maxWorkers = 256

func (c Config) new(_ context.Context, d service.Deps) (service.App, error) {
	if c.FunctionWorkers < 1 || c.FunctionWorkers > maxWorkers || c.FunctionIdle <= 0 {
		return service.App{}, fmt.Errorf("function_workers must lie in 1…%d, function_idle must be positive",
			maxWorkers)
	}
	storage := kv.New(d.Store)
	pool := sandbox.NewPool(sandbox.Config{
		Workers: c.FunctionWorkers, Idle: c.FunctionIdle, Hosts: c.FunctionHosts, Client: d.Outbound, Log: d.Log,
		Metrics: d.Metrics,
	})
	functions := function.New(function.Deps{
		Store: d.Store, Pool: pool, Stream: d.Stream, Log: d.Log, Keys: d.Keys, Jobs: job.CountFor,
		UnknownTypes: func(ctx context.Context, types []string) ([]string, error) {
			unknown, err := questions.UnknownEventTypes.Ask(ctx, d.Bus, questions.EventTypes{Types: types})
			return unknown.Types, err
		},
	})
	jobs := job.New(job.Deps{
		Store: d.Store, Keys: d.Keys, Functions: functions, Log: d.Log, Metrics: d.Metrics, PublicURL: d.PublicURL,
		Runners: map[string]job.Runner{
			job.Webhook:  target.Webhook(d.Outbound),
			job.NATS:     target.NATS(d.Bus),
			job.Function: job.FunctionRunner(functions),
		},
	})
	server := d.Server("automation")
	httpapi.Register(server, httpapi.Nouns{
		KV: storage, Jobs: jobs, Functions: functions, Components: component.New(d.Store),
	})
	return service.App{
		Handler: server,
		Readers: []*stream.Reader{functions.Reader(d.Stream, d.Group)},
		Tasks:   slices.Concat(storageTasks(d, storage), jobTasks(d, jobs), c.functionTasks(d, functions)),
		Close:   pool.Close,
	}, nil
}

func storageTasks(d service.Deps, storage *kv.KV) []service.Task {
	return []service.Task{
		d.DueTask(service.DueWork{
			Name: "expire objects", Every: 10 * time.Second, Due: kv.DueObjects, Do: storage.Expire,
		}),
		d.DueTask(service.DueWork{
			Name: "forget removed objects", Every: time.Minute, Due: kv.DueRemovals,
			Do:    func(ctx context.Context, id string) error { return storage.Forget(ctx, []string{id}) },
			DoAll: storage.Forget, AtOnce: 100,
		}),
		d.DueTask(service.DueWork{
			Name: "delete buckets", Every: 10 * time.Second, Due: kv.DueBuckets, Do: storage.Purge,
		}),
	}
}

func jobTasks(d service.Deps, jobs *job.Jobs) []service.Task {
	return []service.Task{
		d.DueTask(service.DueWork{
			Name: "fire jobs", Every: 250 * time.Millisecond, Due: jobs.DueJobs, Page: job.DuePage,
			Do: jobs.Fire, DoAll: jobs.FireAll, AtOnce: job.FiresAtOnce,
		}),
		service.QueueTask("run jobs", jobs.Queue),
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

func (c Config) functionTasks(d service.Deps, functions *function.Functions) []service.Task {
	runner := function.NewRunner(functions, c.FunctionWorkers, d.Metrics)
	return []service.Task{
		service.Lasting("run triggered functions", runner.Run),
		d.DueTask(service.DueWork{
			Name: "forget function logs", Every: time.Minute, Due: function.DueLogs, Do: functions.ForgetLog,
		}),
	}
}
