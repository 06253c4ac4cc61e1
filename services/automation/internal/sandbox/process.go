package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// process is a worker as its pool has it: the process, and this end of its pipes.
type process struct {
	*frames
	cmd    *exec.Cmd
	ends   []*os.File // this process's ends of the pipes
	stderr firstBytes
	exited chan struct{} // closed when the process has ended

	lacks  []string // what the kernel lacks to confine it
	tenant string   // the only one whose code it runs

	// Only the goroutine that has taken the worker from the pool uses these.
	known  map[string]bool // hashes of the code that it has run
	spent  bool            // the worker must not be used again
	expiry *time.Timer     // while it is idle
}

const (
	startTimeout = 20 * time.Second // enough on a very busy machine

	// lifetime is the processor time after which a worker is replaced, long before maxProcessorTime.
	lifetime = maxProcessorTime / 4
)

// startProcess starts a worker for a tenant and waits until it is ready. It calls ended when the process has ended.
func startProcess(tenant string, ended func(*process)) (_ *process, err error) {
	if os.Getenv(workerVariable) != "" {
		return nil, errors.New("sandbox: a worker cannot start workers; does main begin with RunIfWorker?")
	}
	w := &process{tenant: tenant, exited: make(chan struct{}), known: map[string]bool{}}
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirIn.Close(), ourOut.Close())
	}
	w.frames, w.ends = newFrames(ourIn, ourOut), []*os.File{ourIn, ourOut}
	w.cmd = command(workerVariable)
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = theirIn, theirOut, &w.stderr
	err = w.cmd.Start()
	_, _ = theirIn.Close(), theirOut.Close()
	if err != nil {
		w.closePipes()
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	go func() {
		_ = w.cmd.Wait() // ProcessState has the result
		close(w.exited)
		ended(w)
	}()
	late := time.AfterFunc(startTimeout, w.kill)
	defer late.Stop()
	kind, lacks, err := w.read()
	if err != nil || kind != frameReady || json.Unmarshal(lacks, &w.lacks) != nil {
		w.kill()
		<-w.exited
		w.closePipes()
		return nil, fmt.Errorf("a worker did not start: %v: %s", w.cmd.ProcessState, w.stderr.text)
	}
	return w, nil
}

// command starts this program again, as the worker that the variable makes it.
func command(variable string) *exec.Cmd {
	cmd := &exec.Cmd{
		Path: executable(), Args: []string{"idp-function-worker"},
		Env: []string{variable + "=1", "GOMAXPROCS=2", "GOTRACEBACK=none", "TZ=UTC"},
	}
	apart(cmd)
	return cmd
}

func (w *process) closePipes() {
	for _, end := range w.ends {
		_ = end.Close()
	}
}

// kill ends the process at once.
func (w *process) kill() { killGroup(w.cmd.Process) }

// end kills a process that no call uses.
func (w *process) end() {
	w.kill()
	w.closePipes()
}

// firstBytes keeps the beginning of what a worker writes to its standard error.
type firstBytes struct{ text []byte }

func (f *firstBytes) Write(p []byte) (int, error) {
	f.text = append(f.text, p[:min(len(p), 1024-len(f.text))]...)
	return len(p), nil
}

var (
	// errNotBegun means that the worker ended before the call began.
	errNotBegun = errors.New("sandbox: the worker ended before the call began")
	errTimedOut = errors.New("sandbox: the call took too long")
	errSpent    = errors.New("sandbox: the call used up its processor time")
	errProtocol = errors.New("sandbox: the worker violated the protocol")
)

// running is one call in a worker.
type running struct {
	*process
	pool    *Pool
	call    *Call
	late    *time.Timer // ends the call after Limits.Timeout
	budget  *budget     // ends the call after Limits.CPU
	began   time.Time   // zero until the code begins
	logs    []Line
	logged  int // bytes of logs
	fetches int
	fetched int64 // bytes of responses
}

// call sends a request to the worker and serves what the code asks for, until the call has ended.
func (w *process) call(ctx context.Context, p *Pool, c *Call, message []byte) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	keep := context.AfterFunc(ctx, w.kill) // returns false if ctx has ended
	run := &running{process: w, pool: p, call: c}
	run.late = time.AfterFunc(compileTimeout, func() { cancel(errTimedOut) })
	defer run.late.Stop()
	run.budget = newBudget(ctx, compileTimes[c.Runtime], w.processorTime, func() { cancel(errSpent) })
	v, err := run.converse(ctx, message)
	if !keep() || err != nil {
		w.spent = true
		w.kill()
		<-w.exited
		w.closePipes()
	}
	result := Result{Logs: run.logs, CPU: run.budget.used()}
	if !run.began.IsZero() {
		result.Duration = time.Since(run.began)
	}
	switch {
	case err == nil:
		w.spent = w.spent || w.processorTime() > lifetime
		w.known[c.Hash] = true
		result.Outcome, result.Output, result.Fault = v.Outcome, v.Output, v.Fault
		return result, nil
	case errors.Is(err, errLoad):
		return Result{}, err
	}
	return run.ended(ctx, result, err)
}

// errLoad wraps an error of Code.Load.
var errLoad = errors.New("sandbox: the code cannot be loaded")

// converse exchanges messages until the worker's verdict.
func (r *running) converse(ctx context.Context, message []byte) (v verdict, err error) {
	if err := r.write(frameCall, message); err != nil {
		return v, err
	}
	for {
		kind, payload, err := r.read()
		if err != nil {
			return v, err
		}
		switch kind {
		case frameNeed:
			var code []byte
			if code, err = r.call.Load(); err != nil {
				return v, fmt.Errorf("%w: %w", errLoad, err)
			}
			err = r.write(frameCode, code)
		case frameBegin:
			r.began = time.Now()
			r.late.Reset(r.call.Timeout)
			r.budget.reset(r.call.CPU)
		case frameLog:
			err = r.note(payload)
		case frameFetch:
			err = r.fetch(ctx, payload)
		case frameDone:
			return r.verdict(payload)
		default:
			err = errProtocol
		}
		if err != nil {
			return v, err
		}
	}
}

// verdict checks a verdict: code that has taken the worker over could send anything.
func (r *running) verdict(payload []byte) (v verdict, err error) {
	if err := json.Unmarshal(payload, &v); err != nil {
		return v, errProtocol
	}
	outcomes := []Outcome{Succeeded, Failed, TimedOut, OutOfMemory, Crashed}
	if len(v.Output) > MaxOutput+1 || !utf8.Valid(v.Output) || !slices.Contains(outcomes, v.Outcome) ||
		(v.Outcome == Succeeded) != (v.Fault == nil) {
		return v, errProtocol
	}
	if len(v.Output) == 0 {
		v.Output = json.RawMessage("null")
	}
	v.Fault = v.Fault.shortened()
	return v, nil
}

// note keeps a line that the code logged.
func (r *running) note(payload []byte) error {
	var line Line
	levels := []string{"debug", "info", "warn", "error"}
	if json.Unmarshal(payload, &line) != nil || !slices.Contains(levels, line.Level) {
		return errProtocol
	}
	if r.logged += len(line.Text) + 1; len(r.logs) > MaxLogLines || r.logged > 2*MaxLogBytes {
		return errProtocol
	}
	r.logs = append(r.logs, line)
	return nil
}

// ended finds out why a worker has ended during a call.
func (r *running) ended(ctx context.Context, result Result, err error) (Result, error) {
	set := func(o Outcome, message string) (Result, error) {
		result.Outcome, result.Output, result.Fault = o, json.RawMessage("null"), &Fault{Message: message}
		return result, nil
	}
	if r.began.IsZero() {
		return r.endedBefore(ctx, set)
	}
	exit, stderr := r.cmd.ProcessState.ExitCode(), string(r.stderr.text)
	switch {
	case errors.Is(context.Cause(ctx), errTimedOut):
		return set(TimedOut, "it ran longer than timeout_ms")
	case errors.Is(context.Cause(ctx), errSpent):
		return set(TimedOut, "it used more processor time than cpu_ms")
	case exit == exitMemory:
		return set(OutOfMemory, "it used more memory than memory_mb")
	case ctx.Err() != nil:
		return Result{}, apperr.Unknown(ctx.Err())
	case strings.Contains(stderr, "stack overflow") || strings.Contains(stderr, "goroutine stack exceeds"):
		return set(OutOfMemory, tooDeep)
	case slices.ContainsFunc(noMemory, func(text string) bool { return strings.Contains(stderr, text) }):
		return set(OutOfMemory, "it used more memory than memory_mb")
	case exit > 0 || errors.Is(err, errProtocol): // nobody else has killed it
		r.pool.Log.ErrorContext(ctx, "a function made its worker fail", "exit", exit, "stderr", stderr, "error", err)
		return set(Crashed, "the runtime failed")
	}
	return Result{}, apperr.Unknown(fmt.Errorf("a worker was killed: %v: %w", r.cmd.ProcessState, err))
}

// noMemory is what the runtimes of Go and of the race detector write when the system gives them no more memory.
var noMemory = []string{"out of memory", "cannot allocate memory", "failed to allocate"}

// endedBefore is ended for a worker that has ended before the code began.
func (r *running) endedBefore(ctx context.Context, set func(Outcome, string) (Result, error)) (Result, error) {
	exit, cause := r.cmd.ProcessState.ExitCode(), context.Cause(ctx)
	switch {
	case errors.Is(cause, errTimedOut), errors.Is(cause, errSpent):
		return set(Failed, "it takes too long to compile")
	case exit > 0:
		return set(Failed, "it is too large or too deeply nested to compile")
	case ctx.Err() != nil:
		return Result{}, apperr.Away("the function runtime", ctx.Err())
	}
	return Result{}, fmt.Errorf("%w: %v", errNotBegun, r.cmd.ProcessState)
}
