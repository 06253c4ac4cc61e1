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

// RunIfWorker turns the process into a worker, and does not return, if a Pool started it as one. It must be the first
// statement of main of every program that has a Pool, and of TestMain.
func RunIfWorker() {
	if os.Getenv(workerVariable) == "" {
		return
	}
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // a terminal sends them to this process, too; the Pool decides
	w := &worker{frames: newFrames(os.Stdin, os.Stdout), received: make(chan frame)}
	if err := confine(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(exitBroken)
	}
	go w.receive()
	w.work()
}

// How a worker ends by itself.
const (
	exitMemory = 92 // the call used more memory than it may
	exitBroken = 93 // the connection is broken, or the limits cannot be set
)

type frame struct {
	kind    frameKind
	payload []byte
}

// worker is this process, if it is one.
type worker struct {
	*frames
	received chan frame
	programs programs
}

// receive ends the process with the one that started it, even while code runs.
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

// next waits for a message of the kind.
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

func (w *worker) work() {
	w.send(frameReady, nil)
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
	// check says what keeps the entry from being called; nil if nothing does.
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

// handle does what a request asks for. A panic is a bug of a runtime that the code has found.
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

// programs are compiled code, the latest used last.
type programs struct{ kept []keptProgram }

type keptProgram struct {
	hash    string
	runtime Runtime
	memory  int64 // of a module, which is compiled for its memory
	program
}

// maxPrograms bounds what a worker keeps compiled.
const maxPrograms = 32

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

// tidy frees the memory of a call that used much, so that it does not count for the next one.
func tidy() {
	if heap() > tidyAbove {
		runtime.GC()
	}
}

// tidyAbove is more than the compiled code of usual functions.
const tidyAbove = 48 << 20

// host is what code can reach outside its runtime, during one call.
type host struct {
	*worker
	lines, logged, fetches int
}

// log sends a line. Beyond the limits, one line says so and the others are dropped.
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

// fetchRequest and fetchResponse are also what WebAssembly modules send and get.
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

// fetch asks the process that started this one to send a request.
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
