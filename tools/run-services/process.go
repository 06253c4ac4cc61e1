//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	restartPause = time.Second      // before a process that ended is started again
	stopLimit    = 30 * time.Second // after which a process that does not stop is killed
	readyLimit   = 2 * time.Minute
	readyPause   = 50 * time.Millisecond
)

// process is a program that is kept running.
type process struct {
	name    string
	address string // host:port
	path    string // of the program
	args    []string
	env     []string
	log     string // file of its output
	ready   func(ctx context.Context) error

	pid  atomic.Int64
	stop context.CancelFunc
	done chan struct{} // closed when it has stopped
}

// keepRunning starts the program, and again whenever it ends by itself, until stop is called. It calls ended each time.
func (p *process) keepRunning(ended func(*process, error)) {
	ctx, stop := context.WithCancel(context.Background())
	p.stop, p.done = stop, make(chan struct{})
	_ = os.Remove(p.log)
	go func() {
		defer close(p.done)
		for {
			err := p.run(ctx)
			if ctx.Err() != nil {
				return
			}
			ended(p, err)
			select {
			case <-time.After(restartPause):
			case <-ctx.Done():
				return
			}
		}
	}()
}

// run runs the program once. When ctx ends, the program is told to stop.
func (p *process) run(ctx context.Context) error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, p.path, p.args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopLimit
	// Ctrl-C goes to all processes of a group. In a group of its own, the process only stops when run-services tells it
	// to.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.pid.Store(int64(cmd.Process.Pid))
	return cmd.Wait()
}

// awaitReady waits until the process is ready, or ctx ends.
func (p *process) awaitReady(ctx context.Context) error {
	late := fmt.Errorf("%s is not ready after %s: see %s", p.name, readyLimit, p.log)
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, late)
	defer cancel()
	for p.ready(ctx) != nil {
		select {
		case <-time.After(readyPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// lastLines are the end of the process's log.
func (p *process) lastLines() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
