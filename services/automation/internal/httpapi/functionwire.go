package httpapi

import (
	"encoding/json"
	"time"

	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/automation/internal/function"
	"github.com/idplatform/idplatform/services/automation/internal/sandbox"
)

// Function describes function.Function, with its code, for the OpenAPI document.
type Function struct {
	rest.Meta
	Code         string             `json:"code" doc:"1…64 lower-case letters, digits, _ or -; unique" example:"welcome"`
	Name         string             `json:"name" doc:"1…128 characters" example:"Welcome mail"`
	Description  string             `json:"description" doc:"Up to 1024 characters"`
	Runtime      string             `json:"runtime" enum:"javascript,wasm" doc:"What runs its code"`
	Entry        string             `json:"entry" doc:"The function that is called; main if absent, _start for wasm" example:"main"`
	Env          map[string]string  `json:"env" doc:"Every value is shown as ******"`
	AllowedHosts []string           `json:"allowed_hosts" nullable:"false" doc:"The hosts that fetch may send requests to, at most 20: api.example.com, *.example.com, api.example.com:8443"`
	Limits       FunctionLimits     `json:"limits" doc:"Of one call"`
	Triggers     []FunctionTrigger  `json:"triggers" nullable:"false" doc:"Events that it runs for; at most 10"`
	Status       string             `json:"status" enum:"1,0" doc:"1: it can be called"`
	Revision     int64              `json:"revision" readOnly:"true" doc:"The current revision of the code; 0 while there is none"`
	Revisions    []FunctionRevision `json:"revisions" readOnly:"true" nullable:"false" doc:"Those whose code is kept, latest first"`
	Source       string             `json:"source,omitempty" doc:"Of javascript; not in lists"`
	Module       []byte             `json:"module_base64,omitempty" doc:"Of wasm; not in lists"`
}

// FunctionInput is a function to be created or changed. Read-only members may be sent back and do not count.
type FunctionInput struct {
	rest.MembersOf[Function]
	Code    string              `json:"code" doc:"1…64 lower-case letters, digits, _ or -"`
	Name    string              `json:"name"`
	Runtime string              `json:"runtime,omitempty" enum:"javascript,wasm" default:"javascript"`
	Env     map[string]string   `json:"env,omitempty" writeOnly:"true" doc:"At most 50 variables of 4 KiB; ****** keeps a value"`
	Limits  FunctionLimitsInput `json:"limits,omitzero"`
	Status  string              `json:"status,omitempty" enum:"1,0" default:"1"`
	Source  *string             `json:"source,omitempty" doc:"JavaScript, at most 256 KiB; it stays if absent"`
	Module  *string             `json:"module_base64,omitempty" doc:"A WebAssembly module; it stays if absent" contentEncoding:"base64"`
}

// FunctionLimitsInput are the limits of one call.
type FunctionLimitsInput struct {
	TimeoutMS int64 `json:"timeout_ms,omitempty" doc:"10…25000, default 3000; waiting for fetch counts"`
	CPUMS     int64 `json:"cpu_ms,omitempty" doc:"10…10000, default 1000; processor time"`
	MemoryMB  int64 `json:"memory_mb,omitempty" doc:"4…128, default 32"`
}

// FunctionTrigger names the events that the function is run for.
type FunctionTrigger struct {
	EventTypes []string `json:"event_types" nullable:"false" doc:"1…20 types such as user.created, or the patterns user.*, *.deleted and *"`
}

// FunctionLimits describes function.Limits for the OpenAPI document.
type FunctionLimits struct {
	TimeoutMS int64 `json:"timeout_ms" doc:"The longest a call takes; waiting for fetch counts"`
	CPUMS     int64 `json:"cpu_ms" doc:"The most processor time of a call"`
	MemoryMB  int64 `json:"memory_mb" doc:"The most memory of a call, in MiB"`
}

// FunctionRevision describes function.Revision for the OpenAPI document.
type FunctionRevision struct {
	Revision    int64     `json:"revision" doc:"Counts the revisions from 1"`
	Runtime     string    `json:"runtime" enum:"javascript,wasm" doc:"What runs the code"`
	Entry       string    `json:"entry" doc:"The function that is called"`
	Bytes       int64     `json:"bytes" doc:"Size of the code"`
	SHA256      string    `json:"sha256" doc:"Of the code"`
	Actor       string    `json:"actor" doc:"Who created the revision"`
	TimeCreated time.Time `json:"time_created" doc:"When it was deployed"`
}

// FunctionInvocation describes function.Invocation for the OpenAPI document.
type FunctionInvocation struct {
	Outcome    string         `json:"outcome" enum:"succeeded,failed,timed_out,out_of_memory,crashed" doc:"How the call ended"`
	Output     any            `json:"output" doc:"What the function returned; null unless it succeeded"`
	Error      *FunctionFault `json:"error,omitempty" doc:"Why it did not succeed"`
	Logs       []FunctionLine `json:"logs" nullable:"false" doc:"Up to 200 lines with 16 KiB together"`
	DurationMS int64          `json:"duration_ms" doc:"Without waiting for a worker and compiling"`
	Revision   int64          `json:"revision" doc:"The revision that ran"`
}

// FunctionFault describes sandbox.Fault for the OpenAPI document.
type FunctionFault struct {
	Message string `json:"message" doc:"What went wrong"`
	Line    int    `json:"line,omitempty" doc:"Of the source, from 1"`
	Column  int    `json:"column,omitempty" doc:"Of the line, from 1"`
}

// FunctionLine describes sandbox.Line for the OpenAPI document.
type FunctionLine struct {
	Level string `json:"level" enum:"debug,info,warn,error" doc:"As it was logged"`
	Text  string `json:"text" doc:"What was logged"`
}

// FunctionCall is the body of an invocation.
type FunctionCall struct {
	Input any `json:"input,omitempty" doc:"Any JSON; null if absent"`
}

// FunctionRollback is the body of a rollback.
type FunctionRollback struct {
	Revision int64 `json:"revision,omitempty" minimum:"1" doc:"The one before the current revision if absent"`
}

// FunctionLog describes function.LogEntry for the OpenAPI document.
type FunctionLog struct {
	rest.Meta
	FunctionID string         `json:"function_id" doc:"The function"`
	Cause      string         `json:"cause" enum:"invoke,job,event" doc:"Why it ran"`
	EventID    string         `json:"event_id" doc:"Of the event that triggered it"`
	Attempt    int64          `json:"attempt" doc:"Of a run that an event triggered; 0 for other causes"`
	Revision   int64          `json:"revision" doc:"The revision that ran"`
	Outcome    string         `json:"outcome" enum:"succeeded,failed,timed_out,out_of_memory,crashed" doc:"How the call ended"`
	Error      *FunctionFault `json:"error,omitempty" doc:"Why it did not succeed"`
	Logs       []FunctionLine `json:"logs" nullable:"false" doc:"What it logged"`
	DurationMS int64          `json:"duration_ms" doc:"Without waiting for a worker and compiling"`
	TimeEnd    time.Time      `json:"time_end" doc:"When the entry is deleted"`
}

var exampleFunctionInput = map[string]any{
	"code": "welcome", "name": "Welcome", "runtime": "javascript",
	"source":   "function main(input, context) { return {greeting: 'Hello ' + input.name} }",
	"triggers": []any{map[string]any{"event_types": []any{"user.created"}}},
}

var exampleFunction = json.RawMessage(`{"id":"1048577","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z","code":"welcome",` +
	`"name":"Welcome","description":"","runtime":"javascript","entry":"main","env":{"API_KEY":"******"},` +
	`"allowed_hosts":["api.example.com"],"limits":{"timeout_ms":3000,"cpu_ms":1000,"memory_mb":32},` +
	`"triggers":[{"event_types":["user.created"]}],"status":"1","revision":1,"revisions":[{"revision":1,` +
	`"runtime":"javascript","entry":"main","bytes":75,"actor":"admin","time_created":"2026-01-31T09:30:00.000Z",` +
	`"sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}],` +
	`"source":"function main(input, context) { return {greeting: 'Hello ' + input.name} }"}`)

var exampleRevisions = json.RawMessage(`{"items":[{"revision":1,"runtime":"javascript","entry":"main","bytes":75,` +
	`"sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","actor":"admin",` +
	`"time_created":"2026-01-31T09:30:00.000Z"}],"total":1,"page_num":1,"page_size":20}`)

var exampleInvocation = function.Invocation{
	Outcome: sandbox.Succeeded, Output: json.RawMessage(`{"greeting":"Hello 李伟"}`),
	Logs: []sandbox.Line{{Level: "info", Text: "greeted"}}, DurationMS: 1, Revision: 1,
}

var exampleEntry = json.RawMessage(`{"id":"1048590","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z","function_id":"1048577",` +
	`"cause":"invoke","event_id":"","attempt":0,"revision":1,"outcome":"failed",` +
	`"error":{"message":"Error: no name","line":2,"column":9},"logs":[],"duration_ms":1,` +
	`"time_end":"2026-02-07T09:30:00.000Z"}`)
