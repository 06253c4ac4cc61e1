package service

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"
)

// tasks are the running Tasks, a goroutine each.
type tasks struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func startTasks(ctx context.Context, log *slog.Logger, list []Task) *tasks {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t := &tasks{cancel: cancel}
	for _, task := range list {
		t.running.Go(func() { repeat(ctx, log, task) })
	}
	return t
}

func (t *tasks) stop() {
	t.cancel()
	t.running.Wait()
}

// repeat runs the task at an interval, with some jitter so that replicas do not all run it at the same time. A failure
// is logged once, and the task runs again at its next time.
func repeat(ctx context.Context, log *slog.Logger, task Task) {
	failing := false
	for {
		pause := time.NewTimer(task.Every + rand.N(task.Every/4+1))
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
		var err error
		for n := 1; n > 0 && err == nil && ctx.Err() == nil; {
			n, err = do(ctx, task)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing {
			log.ErrorContext(ctx, "task fails", "task", task.Name, "error", err)
		}
		failing = err != nil
	}
}

// do turns a panic into a failure like any other: the process must go on answering requests.
func do(ctx context.Context, task Task) (n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return task.Do(ctx)
}
