package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"
)

// script is compiled JavaScript. Every call runs it from its beginning in its own runtime, so that no call sees what
// another has changed.
type script struct{ program *goja.Program }

const (
	scriptName = "function.js"
	maxDepth   = 10_000 // nested calls of JavaScript functions
)

// compileJavaScript ignores source map comments: goja would open the files that they name.
func compileJavaScript(source []byte) (program, *Fault) {
	tree, err := parser.ParseFile(nil, scriptName, string(source), 0, parser.WithDisableSourceMaps)
	if err != nil {
		return nil, syntaxFault(err)
	}
	compiled, err := goja.CompileAST(tree, false)
	if err != nil {
		return nil, syntaxFault(err)
	}
	return &script{compiled}, nil
}

func syntaxFault(err error) *Fault {
	if list, ok := errors.AsType[parser.ErrorList](err); ok && len(list) > 0 {
		return &Fault{list[0].Message, list[0].Position.Line, list[0].Position.Column}
	}
	if e, ok := errors.AsType[*goja.CompilerSyntaxError](err); ok && e.File != nil {
		at := e.File.Position(e.Offset)
		return &Fault{e.Message, at.Line, at.Column}
	}
	return &Fault{Message: err.Error()}
}

var identifier = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]{0,63}$`)

func (s *script) check(entry string) *Fault {
	if !identifier.MatchString(entry) {
		return &Fault{Message: "the entry must be the name of a function"}
	}
	return nil
}

func (s *script) close() {}

// jsCall is one call.
type jsCall struct {
	vm               *goja.Runtime
	host             *host
	parse, stringify goja.Callable // JSON.parse and JSON.stringify, which the code could replace
}

// errRejected has the reason of a rejected promise.
type errRejected struct{ value goja.Value }

func (errRejected) Error() string { return "the promise was rejected" }

func (s *script) run(r *workerRequest, h *host) verdict {
	vm := goja.New()
	vm.SetMaxCallStackSize(maxDepth)
	vm.SetParserOptions(parser.WithDisableSourceMaps) // of eval and Function
	c := &jsCall{vm: vm, host: h}
	output, err := c.run(s, r)
	if deep, ok := errors.AsType[*goja.StackOverflowError](err); ok {
		fault := &Fault{Message: tooDeep}
		fault.Line, fault.Column = position(deep.Stack())
		return verdict{Outcome: OutOfMemory, Fault: fault}
	}
	if err != nil {
		return verdict{Outcome: Failed, Fault: c.fault(err)}
	}
	return verdict{Outcome: Succeeded, Output: json.RawMessage(output)}
}

func (c *jsCall) run(s *script, r *workerRequest) (output string, err error) {
	if err := c.globals(); err != nil {
		return "", err
	}
	if _, err := c.vm.RunProgram(s.program); err != nil {
		return "", err
	}
	// A function that is declared with const is in scope, but not a property of the global object.
	value, err := c.vm.RunScript(scriptName, "typeof "+r.Entry+" === 'function' ? "+r.Entry+" : undefined")
	if err != nil {
		return "", err
	}
	entry, ok := goja.AssertFunction(value)
	if !ok {
		return "", fmt.Errorf("there is no function %s", r.Entry)
	}
	input, err := c.parse(goja.Undefined(), c.vm.ToValue(string(r.Input)))
	if err != nil {
		return "", err
	}
	env := map[string]any{}
	for name, value := range r.Env {
		env[name] = value
	}
	answer, err := entry(goja.Undefined(), input, c.vm.ToValue(map[string]any{"env": c.vm.ToValue(env)}))
	if err != nil {
		return "", err
	}
	return c.json(answer)
}

// json encodes the answer, or the value of a promise. This runs getters, toJSON and proxies of the code.
func (c *jsCall) json(answer goja.Value) (string, error) {
	if promise, ok := answer.Export().(*goja.Promise); ok {
		switch promise.State() { // no job that could settle it is left
		case goja.PromiseStateRejected:
			return "", errRejected{promise.Result()}
		case goja.PromiseStatePending:
			return "", errors.New("the function returned a promise that is never settled")
		}
		answer = promise.Result()
	}
	if answer == nil || goja.IsUndefined(answer) {
		return "null", nil
	}
	text, err := c.stringify(goja.Undefined(), answer)
	if err != nil {
		return "", err
	}
	if goja.IsUndefined(text) {
		return "", errors.New("the function returned a value that JSON cannot represent, such as a function")
	}
	output := text.String()
	if len(output) > MaxOutput {
		return "", errTooMuchOutput
	}
	return output, nil
}

var errTooMuchOutput = fmt.Errorf("the output has more than %d bytes", MaxOutput)

// position is the innermost place of a stack that is in the source; zeros if there is none.
func position(stack []goja.StackFrame) (line, column int) {
	for _, frame := range stack {
		if at := frame.Position(); frame.SrcName() == scriptName && at.Line > 0 {
			return at.Line, at.Column
		}
	}
	return 0, 0
}

// fault describes an error. The code may have thrown any value, and making text of it may run the code again.
func (c *jsCall) fault(err error) *Fault {
	f := &Fault{}
	var thrown goja.Value
	if e, ok := errors.AsType[*goja.Exception](err); ok {
		thrown = e.Value()
		f.Line, f.Column = position(e.Stack())
	}
	if e, ok := errors.AsType[errRejected](err); ok {
		thrown = e.value
	}
	if thrown != nil {
		f.Message = c.text(thrown)
	} else {
		f.Message = err.Error()
	}
	return f
}

// globals adds console and fetch to what the language has.
func (c *jsCall) globals() error {
	builtin := c.vm.GlobalObject().Get("JSON").ToObject(c.vm)
	c.parse, _ = goja.AssertFunction(builtin.Get("parse"))
	c.stringify, _ = goja.AssertFunction(builtin.Get("stringify"))
	console := c.vm.NewObject()
	for name, level := range map[string]string{
		"log": "info", "info": "info", "debug": "debug", "warn": "warn", "error": "error",
	} {
		if err := console.Set(name, func(call goja.FunctionCall) goja.Value {
			words := make([]string, len(call.Arguments))
			for i, argument := range call.Arguments {
				words[i] = c.text(argument)
			}
			c.host.log(level, strings.Join(words, " "))
			return goja.Undefined()
		}); err != nil {
			return err
		}
	}
	if err := c.vm.Set("console", console); err != nil {
		return err
	}
	return c.vm.Set("fetch", c.fetch)
}

// text is the text of a value in the logs and in faults.
func (c *jsCall) text(v goja.Value) string {
	object, isObject := v.(*goja.Object)
	if !isObject {
		return v.String()
	}
	text := "an object"
	_ = c.vm.Try(func() {
		if object.ClassName() == "Error" {
			text = v.String()
		} else if encoded, err := c.stringify(goja.Undefined(), v); err == nil && !goja.IsUndefined(encoded) {
			text = encoded.String()
		} else {
			text = v.String()
		}
	})
	return text
}

// fetch has a part of what fetch has in browsers: it takes a URL and the options method, headers and body, and returns
// a promise of a response, which is already settled.
func (c *jsCall) fetch(call goja.FunctionCall) goja.Value {
	promise, resolve, reject := c.vm.NewPromise()
	request := fetchRequest{URL: call.Argument(0).String(), Headers: map[string]string{}}
	if options, ok := call.Argument(1).(*goja.Object); ok {
		if v := options.Get("method"); v != nil && !goja.IsUndefined(v) {
			request.Method = v.String()
		}
		if v := options.Get("body"); v != nil && !goja.IsUndefined(v) && !goja.IsNull(v) {
			request.Body = []byte(v.String())
		}
		if headers, ok := options.Get("headers").(*goja.Object); ok {
			for _, name := range headers.Keys() {
				request.Headers[name] = headers.Get(name).String()
			}
		}
	}
	if response := c.host.fetch(request); response.Error != "" {
		_ = reject(c.vm.NewTypeError(response.Error))
	} else {
		_ = resolve(c.response(&response))
	}
	return c.vm.ToValue(promise)
}

func (c *jsCall) response(r *fetchResponse) *goja.Object {
	body := strings.ToValidUTF8(string(r.Body), "�")
	settled := func(make func() (goja.Value, error)) func(goja.FunctionCall) goja.Value {
		return func(goja.FunctionCall) goja.Value {
			promise, resolve, reject := c.vm.NewPromise()
			if v, err := make(); err == nil {
				_ = resolve(v)
			} else if e, ok := errors.AsType[*goja.Exception](err); ok {
				_ = reject(e.Value())
			}
			return c.vm.ToValue(promise)
		}
	}
	headers := c.vm.NewObject()
	_ = headers.Set("get", func(call goja.FunctionCall) goja.Value {
		if v, ok := r.Headers[strings.ToLower(call.Argument(0).String())]; ok {
			return c.vm.ToValue(v)
		}
		return goja.Null()
	})
	object := c.vm.NewObject()
	for name, value := range map[string]any{
		"status": r.Status, "ok": r.Status >= 200 && r.Status < 300, "headers": headers,
		"text": settled(func() (goja.Value, error) { return c.vm.ToValue(body), nil }),
		"json": settled(func() (goja.Value, error) { return c.parse(goja.Undefined(), c.vm.ToValue(body)) }),
	} {
		_ = object.Set(name, value)
	}
	return object
}
