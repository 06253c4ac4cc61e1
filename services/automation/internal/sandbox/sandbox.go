// Package sandbox runs the code of tenants: JavaScript (goja) and WebAssembly (wazero).
//
// Code runs in worker processes, which are this program started again. A worker has no files, no network, no
// environment and no descriptors but its pipes; time, memory, output and logs of a call are limited. Code that goes
// beyond a limit ends its own call and at most its worker, never this process: neither a Go heap nor a Go stack can be
// limited for a part of a process. deploy/adr/0037 has the reasons and what other systems than Linux enforce.
package sandbox

import (
	"encoding/json"
	"time"
)

// Runtime is the language of a function's code.
type Runtime string

// The runtimes.
const (
	JavaScript  Runtime = "javascript"
	WebAssembly Runtime = "wasm"
)

// Limits of every call, whatever the function's own limits are.
const (
	MaxInput     = 1 << 20 // bytes of JSON
	MaxOutput    = 1 << 20 // bytes of JSON
	MaxLogLines  = 200
	MaxLogBytes  = 16 << 10
	MaxCode      = 4 << 20 // bytes of source or module
	MaxFetches   = 20
	maxFetched   = 4 << 20 // bytes of all responses of a call
	maxFetchBody = 256 << 10
	maxURL       = 8 << 10
	maxMessage   = 2 << 10 // bytes of a fault's message
)

// compileTimes bound the processor time of compiling, compileTimeout the time that passes meanwhile. goja's parser
// takes time that grows with the square of nested brackets; a 4 MiB module takes some three seconds.
var compileTimes = map[Runtime]time.Duration{JavaScript: 2 * time.Second, WebAssembly: 10 * time.Second}

var compileTimeout = 20 * time.Second

// Code is what a function consists of.
type Code struct {
	Runtime Runtime
	// Entry is the function that is called: a JavaScript identifier, or the name of an export of the module.
	Entry string
	// Hash names the code: the same Hash always means the same code. Workers keep compiled code under it.
	Hash string
	// Load returns the source or the module. It is called only if the worker does not have it.
	Load func() ([]byte, error)
}

// Limits are those of one call.
type Limits struct {
	Timeout time.Duration // from the beginning of the function to its end; waiting for fetch counts
	CPU     time.Duration // processor time
	Memory  int64         // bytes
}

// Call is one call of a function.
type Call struct {
	Code
	Limits
	Input json.RawMessage
	Env   map[string]string
	// Hosts may be reached by fetch: names such as api.example.com, or *.example.com for all names below.
	Hosts []string
	// Header is sent with every fetch, such as the trace of the call.
	Header map[string]string
	// NoFetch, if set, is why fetch is refused.
	NoFetch string
}

// Outcome says how a call ended.
type Outcome string

// The outcomes.
const (
	Succeeded   Outcome = "succeeded"
	Failed      Outcome = "failed"        // the code threw, has no such entry, or its output is not JSON or too large
	TimedOut    Outcome = "timed_out"     // Limits.Timeout or Limits.CPU
	OutOfMemory Outcome = "out_of_memory" // Limits.Memory, or too deep a recursion
	Crashed     Outcome = "crashed"       // the code made its runtime fail
)

const tooDeep = "the recursion is too deep"

// Fault is what is wrong with code, or why a call ended. Line and Column count from 1; 0 means unknown.
type Fault struct {
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
}

// Line is a line that the code logged.
type Line struct {
	Level string `json:"level"` // debug, info, warn or error
	Text  string `json:"text"`
}

// Result is what came of a call.
type Result struct {
	Outcome  Outcome
	Output   json.RawMessage // null unless it succeeded
	Fault    *Fault          // nil if it succeeded
	Logs     []Line
	Duration time.Duration // of the function, without the start of a worker and compiling
	CPU      time.Duration
}

func (f *Fault) shortened() *Fault {
	if f != nil && len(f.Message) > maxMessage {
		f.Message = shorten(f.Message, maxMessage)
	}
	return f
}
