package httpapi

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/automation/internal/function"
)

// Function is a function with its code.
type Function struct {
	function.Function
	Source string `json:"source,omitempty" doc:"Of javascript; not in lists"`
	Module []byte `json:"module_base64,omitempty" doc:"Of wasm; not in lists"`
}

// FunctionInput is a function to be created or changed. Read-only members may be sent back and do not count.
type FunctionInput struct {
	rest.MembersOf[Function]
	Code    string              `json:"code"`
	Name    string              `json:"name"`
	Runtime string              `json:"runtime,omitempty" enum:"javascript,wasm" default:"javascript"`
	Env     map[string]string   `json:"env,omitempty" writeOnly:"true" doc:"At most 50 variables of 4 KiB; ****** keeps a value"`
	Limits  FunctionLimitsInput `json:"limits,omitzero"`
	Status  string              `json:"status,omitempty" enum:"1,0" default:"1"`
	Source  *string             `json:"source,omitempty" doc:"JavaScript, at most 256 KiB; it stays if absent" example:"function main(input, context) { return {greeting: 'Hello ' + input.name} }"`
	Module  *string             `json:"module_base64,omitempty" doc:"A WebAssembly module; it stays if absent" contentEncoding:"base64"`
}

// FunctionLimitsInput are the limits of one call.
type FunctionLimitsInput struct {
	TimeoutMS int64 `json:"timeout_ms,omitempty" doc:"10…25000, default 3000; waiting for fetch counts"`
	CPUMS     int64 `json:"cpu_ms,omitempty" doc:"10…10000, default 1000; processor time"`
	MemoryMB  int64 `json:"memory_mb,omitempty" doc:"4…128, default 32"`
}

// FunctionCall is the body of an invocation.
type FunctionCall struct {
	Input jsontext.Value `json:"input,omitempty" doc:"Any JSON; null if absent" example:"{\"name\":\"李伟\"}"`
}

// FunctionRollback is the body of a rollback.
type FunctionRollback struct {
	Revision int64 `json:"revision,omitempty" minimum:"1" doc:"The one before the current revision if absent" example:"3"`
}
