package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// workerVariable in the environment makes the program a worker.
const workerVariable = "IDP_SANDBOX_WORKER"

// RunIfWorker does not return if a Pool has started the process as a worker. It must be the first statement of main in
// every program that has a Pool, and of TestMain in its tests.
func RunIfWorker() {
	if os.Getenv(workerVariable) == "" {
		return
	}
	// A terminal sends these to workers too. The Pool's process decides when a worker ends.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	w := &worker{frames: newFrames(os.Stdin, os.Stdout), received: make(chan frame)}
	lacks, err := confine()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(exitBroken)
	}
	go w.receive()
	w.work(lacks)
}

// The exit codes of a worker that ends itself.
const (
	exitMemory = 92 // the call used more memory than it may
	exitBroken = 93 // the connection is broken, or the limits cannot be set
)

type frame struct {
	kind    frameKind
	payload []byte
}

// worker is the state of a worker process.
type worker struct {
	*frames
	received chan frame
	programs programs
}

// receive reads messages all the time, so that the worker ends with the process that started it even while code runs.
func (w *worker) receive() {
	for {
		kind, payload, err := w.read()
		if errors.Is(err, io.EOF) {
			os.Exit(0)
		}
		if err != nil {
			os.Exit(exitBroken)
		}
		w.received <- frame{kind, payload}
	}
}

// next waits for the next message, which must be of the kind.
func (w *worker) next(kind frameKind) []byte {
	f := <-w.received
	if f.kind != kind {
		os.Exit(exitBroken)
	}
	return f.payload
}

func (w *worker) send(kind frameKind, v any) {
	if w.writeJSON(kind, v) != nil {
		os.Exit(exitBroken)
	}
}

func (w *worker) work(lacks []string) {
	w.send(frameReady, lacks)
	for {
		var r workerRequest
		if json.Unmarshal(w.next(frameCall), &r) != nil {
			os.Exit(exitBroken)
		}
		v := w.handle(&r)
		v.Fault = v.Fault.shortened()
		w.send(frameDone, v)
		tidy()
	}
}

// program is compiled code.
type program interface {
	// check returns why the entry cannot be called; nil if it can.
	check(entry string) *Fault
	run(r *workerRequest, h *host) verdict
	close()
}

func compile(r *workerRequest, code []byte) (program, *Fault) {
	switch r.Runtime {
	case JavaScript:
		return compileJavaScript(code)
	case WebAssembly:
		return compileModule(code, r.Memory)
	}
	return nil, &Fault{Message: "there is no such runtime"}
}

// handle serves a request. A panic is a fault of a runtime that the code has triggered.
func (w *worker) handle(r *workerRequest) (v verdict) {
	defer func() {
		if p := recover(); p != nil {
			v = verdict{Outcome: Crashed, Fault: &Fault{Message: "the runtime failed"}}
			w.programs.remove(r)
		}
	}()
	p, fault := w.programs.get(r, func() []byte {
		w.send(frameNeed, nil)
		return w.next(frameCode)
	})
	if fault == nil {
		fault = p.check(r.Entry)
	}
	if fault != nil {
		return verdict{Outcome: Failed, Fault: fault}
	}
	if r.Check {
		return verdict{Outcome: Succeeded}
	}
	w.send(frameBegin, nil)
	defer watch(r.Memory, r.Runtime == WebAssembly)()
	return p.run(r, &host{worker: w})
}

// programs keeps compiled code, in the order of its last use.
type programs struct{ kept []keptProgram }

type keptProgram struct {
	hash    string
	runtime Runtime
	memory  int64 // of a module, which is compiled for one limit of memory; otherwise 0
	program
}

// maxPrograms is how many compiled programs a worker keeps.
const maxPrograms = 32

// get returns a program, which it compiles unless it is kept.
func (p *programs) get(r *workerRequest, load func() []byte) (program, *Fault) {
	if i := p.index(r); i >= 0 {
		found := p.kept[i]
		p.kept = append(append(p.kept[:i:i], p.kept[i+1:]...), found)
		return found.program, nil
	}
	code := load()
	stop := watch(compileMemory, false)
	made, fault := compile(r, code)
	stop()
	if fault != nil {
		return nil, fault
	}
	if len(p.kept) == maxPrograms {
		p.kept[0].close()
		p.kept = p.kept[1:]
	}
	p.kept = append(p.kept, keptProgram{r.Hash, r.Runtime, memoryOf(r), made})
	return made, nil
}

func memoryOf(r *workerRequest) int64 {
	if r.Runtime == WebAssembly {
		return r.Memory
	}
	return 0
}

func (p *programs) index(r *workerRequest) int {
	for i, k := range p.kept {
		if k.hash == r.Hash && k.runtime == r.Runtime && k.memory == memoryOf(r) {
			return i
		}
	}
	return -1
}

func (p *programs) remove(r *workerRequest) {
	if i := p.index(r); i >= 0 {
		p.kept = append(p.kept[:i:i], p.kept[i+1:]...)
	}
}

// tidy frees the memory of a call that used much, so that the next call has it.
func tidy() {
	if heap() > tidyAbove {
		runtime.GC()
	}
}

// tidyAbove is the size of the heap, in bytes, above which tidy collects garbage. The compiled code of usual functions
// takes less.
const tidyAbove = 48 << 20

// host is what code can use outside its runtime during one call.
type host struct {
	*worker
	lines, logged, fetches int // logged are bytes
}

// log sends a line. When a limit is reached, a last line says so, and further lines are dropped.
func (h *host) log(level, text string) {
	if h.lines > MaxLogLines || h.logged > MaxLogBytes {
		return
	}
	text = shorten(text, MaxLogBytes-h.logged)
	h.lines++
	if h.logged += len(text) + 1; h.lines > MaxLogLines || h.logged > MaxLogBytes {
		h.lines = MaxLogLines + 1
		level, text = "warn", "further lines are left out"
	}
	h.send(frameLog, Line{level, text})
}

// fetchRequest and fetchResponse are also the JSON that WebAssembly modules send and receive.
type fetchRequest struct {
	URL     string            `json:"url"`
	Method  string            `json:"method,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    []byte            `json:"body,omitempty"` // base64 in JSON
}

type fetchResponse struct {
	Error   string            `json:"error,omitempty"`
	Status  int               `json:"status,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    []byte            `json:"body,omitempty"`
}

// fetch has the process that started the worker send a request.
func (h *host) fetch(r fetchRequest) (response fetchResponse) {
	if h.fetches++; h.fetches > MaxFetches {
		return fetchResponse{Error: fmt.Sprintf("a call can fetch %d times", MaxFetches)}
	}
	if len(r.Body) > maxFetchBody || len(r.URL) > maxURL {
		return fetchResponse{Error: "the request is too large"}
	}
	h.send(frameFetch, r)
	if json.Unmarshal(h.next(frameAnswer), &response) != nil {
		os.Exit(exitBroken)
	}
	return response
}
