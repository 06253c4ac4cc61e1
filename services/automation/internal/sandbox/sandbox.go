// Package sandbox runs the code of tenants: JavaScript (goja) and WebAssembly (wazero).
//
// Code runs in worker processes, which are this program started again. A worker runs the code of one tenant. It has no
// files, no network, no environment and no descriptors but its pipes. Time, memory, output and logs of a call are
// limited. Code that exceeds a limit ends its own call and at most its worker, never the process that started the
// worker. deploy/adr/0037 says why this takes processes, 0048 what confines them, and both what systems other than
// Linux enforce.
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

// Limits of every call, beside the function's own Limits.
const (
	MaxInput     = 1 << 20 // bytes of JSON
	MaxOutput    = 1 << 20 // bytes of JSON
	MaxLogLines  = 200
	MaxLogBytes  = 16 << 10
	MaxCode      = 4 << 20 // bytes of source or module
	MaxFetches   = 20
	maxFetched   = 4 << 20   // bytes of all responses of a call
	maxFetchBody = 256 << 10 // bytes of a request
	maxURL       = 8 << 10   // bytes
	maxMessage   = 2 << 10   // bytes of a fault's message
)

// compileTimes limit the processor time of compiling. The time of goja's parser grows with the square of the depth of
// brackets; a 4 MiB module takes about three seconds.
var compileTimes = map[Runtime]time.Duration{JavaScript: 2 * time.Second, WebAssembly: 10 * time.Second}

// compileTimeout limits the time that passes meanwhile, for a worker that stands still. On a busy machine, compiling
// takes many times its processor time; who calls the function may give up earlier.
const compileTimeout = 2 * time.Minute

// Code is what a function consists of.
type Code struct {
	Runtime Runtime
	// Entry is the function that is called: a JavaScript identifier, or the name of an export of the module.
	Entry string
	// Hash identifies the code. Workers keep compiled code by it.
	Hash string
	// Load returns the source or the module. It is called only if the worker does not keep the code.
	Load func() ([]byte, error)
}

// Limits are the function's own limits of one call.
type Limits struct {
	Timeout time.Duration // of the function, without compiling; waiting for fetch counts
	CPU     time.Duration // processor time
	Memory  int64         // bytes
}

// Call is one call of a function.
type Call struct {
	Code
	Limits
	Input json.RawMessage
	Env   map[string]string
	// Hosts are those that fetch may send requests to: names such as api.example.com, or *.example.com for all names
	// below example.com.
	Hosts []string
	// Header is sent with every fetch. It replaces headers that the code sets.
	Header map[string]string
	// NoFetch, unless it is empty, makes every fetch fail with this message.
	NoFetch string
}

// Outcome says how a call ended.
type Outcome string

// The outcomes.
const (
	Succeeded   Outcome = "succeeded"
	Failed      Outcome = "failed"        // the code threw or does not compile, or its output is too large or not JSON
	TimedOut    Outcome = "timed_out"     // the code exceeded Limits.Timeout or Limits.CPU
	OutOfMemory Outcome = "out_of_memory" // the code exceeded Limits.Memory, or its recursion is too deep
	Crashed     Outcome = "crashed"       // the code made its runtime fail
)

const tooDeep = "the recursion is too deep"

// Fault says what is wrong with code, or why a call did not succeed. A Line or Column of 0 means unknown.
type Fault struct {
	Message string `json:"message" doc:"What went wrong" example:"Error: no name"`
	Line    int    `json:"line,omitempty" doc:"Of the source, from 1" example:"2"`
	Column  int    `json:"column,omitempty" doc:"Of the line, from 1" example:"9"`
}

// Line is a line that the code logged.
type Line struct {
	Level string `json:"level" enum:"debug,info,warn,error" doc:"As it was logged"`
	Text  string `json:"text" doc:"What was logged" example:"greeted"`
}

// Result is the result of a call.
type Result struct {
	Outcome  Outcome
	Output   json.RawMessage // null unless it succeeded
	Fault    *Fault          // nil if it succeeded
	Logs     []Line
	Duration time.Duration // of the function, without the start of a worker and compiling
	CPU      time.Duration // processor time of the function; 0 if its worker has ended
}

// shortened limits the length of the message.
func (f *Fault) shortened() *Fault {
	if f != nil && len(f.Message) > maxMessage {
		f.Message = shorten(f.Message, maxMessage)
	}
	return f
}
