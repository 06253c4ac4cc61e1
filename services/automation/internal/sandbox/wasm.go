package sandbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// module is a compiled WebAssembly module with its own runtime, because a runtime has one limit of memory. Every call
// gets its own instance.
type module struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

const (
	pageSize    = 64 << 10
	hostModule  = "idp"
	startExport = "_start"
	initExport  = "_initialize"
)

// compileModule compiles a module whose memory is limited to memory bytes.
func compileModule(code []byte, memory int64) (program, *Fault) {
	ctx := context.Background()
	m := &module{runtime: wazero.NewRuntimeWithConfig(ctx,
		wazero.NewRuntimeConfig().WithMemoryLimitPages(uint32(memory/pageSize)))}
	err := m.compile(ctx, code)
	if err != nil {
		m.close()
		return nil, &Fault{Message: err.Error()}
	}
	return m, nil
}

func (m *module) compile(ctx context.Context, code []byte) (err error) {
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, m.runtime); err != nil {
		return err
	}
	if _, err := m.runtime.NewHostModuleBuilder(hostModule).
		NewFunctionBuilder().WithFunc(fetchForModule).Export("fetch").
		NewFunctionBuilder().WithFunc(readResponse).Export("read").
		Instantiate(ctx); err != nil {
		return err
	}
	if m.compiled, err = m.runtime.CompileModule(ctx, code); err != nil {
		return err
	}
	return m.checkImports()
}

// checkImports returns an error for imports that would make each call fail.
func (m *module) checkImports() error {
	for _, f := range m.compiled.ImportedFunctions() {
		from, name, _ := f.Import()
		given := m.runtime.Module(from)
		if given == nil || given.ExportedFunctionDefinitions()[name] == nil {
			return fmt.Errorf("there is no import %s.%s", from, name)
		}
	}
	if len(m.compiled.ImportedMemories()) > 0 {
		return errors.New("the memory must not be imported")
	}
	return nil
}

func (m *module) close() { _ = m.runtime.Close(context.Background()) }

func (m *module) check(entry string) *Fault {
	f := m.compiled.ExportedFunctions()[entry]
	if f == nil || len(f.ParamTypes()) > 0 || len(f.ResultTypes()) > 0 {
		return &Fault{Message: "the entry must be an exported function without parameters and results"}
	}
	return nil
}

func (m *module) run(r *workerRequest, h *host) verdict {
	c := &moduleCall{host: h}
	ctx := context.WithValue(context.Background(), moduleCallKey{}, c)
	output, err := c.run(ctx, m, r)
	if err != nil && strings.Contains(err.Error(), "stack overflow") { // wazero does not export this error
		return verdict{Outcome: OutOfMemory, Fault: &Fault{Message: tooDeep}}
	}
	if err != nil {
		return verdict{Outcome: Failed, Fault: &Fault{Message: err.Error()}}
	}
	return verdict{Outcome: Succeeded, Output: output}
}

// moduleCall is one call: what the module has written, and the response to its last fetch.
type moduleCall struct {
	host     *host
	stdout   bytes.Buffer
	stderr   lineWriter
	response []byte
}

type moduleCallKey struct{}

func (c *moduleCall) run(ctx context.Context, m *module, r *workerRequest) (json.RawMessage, error) {
	c.stderr.log = func(line string) { c.host.log("info", line) }
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithArgs("function").
		WithStdin(bytes.NewReader(r.Input)).WithStdout(limitedWriter{&c.stdout}).WithStderr(&c.stderr).
		WithSysWalltime().WithSysNanotime().WithRandSource(rand.Reader)
	for name, value := range r.Env {
		config = config.WithEnv(name, value)
	}
	instance, err := m.runtime.InstantiateModule(ctx, m.compiled, config)
	if err == nil {
		defer instance.Close(ctx)
		err = start(ctx, instance, r.Entry)
	}
	c.stderr.end()
	if exit, ok := errors.AsType[*sys.ExitError](err); ok {
		if err = nil; exit.ExitCode() != 0 {
			err = fmt.Errorf("the module ended with exit code %d", exit.ExitCode())
		}
	}
	if err != nil {
		return nil, err
	}
	return c.output()
}

// start calls the entry: _start of a command, or another export of a reactor after its initialization.
func start(ctx context.Context, instance api.Module, entry string) error {
	if initialize := instance.ExportedFunction(initExport); initialize != nil && entry != startExport {
		if _, err := initialize.Call(ctx); err != nil {
			return err
		}
	}
	_, err := instance.ExportedFunction(entry).Call(ctx)
	return err
}

// output is what the module has written to its standard output, null if that is nothing.
func (c *moduleCall) output() (json.RawMessage, error) {
	text := bytes.TrimSpace(c.stdout.Bytes())
	switch {
	case len(text) == 0:
		return json.RawMessage("null"), nil
	case len(text) > MaxOutput:
		return nil, errTooMuchOutput
	case !utf8.Valid(text) || !json.Valid(text):
		return nil, errors.New("the output is not JSON")
	}
	return text, nil
}

// limitedWriter keeps one byte more than an output may have, so that output finds out, and drops the rest.
type limitedWriter struct{ b *bytes.Buffer }

func (w limitedWriter) Write(p []byte) (int, error) {
	w.b.Write(p[:min(len(p), MaxOutput+1-w.b.Len())])
	return len(p), nil
}

// lineWriter logs each line. It cuts lines of more than maxLine bytes.
type lineWriter struct {
	log  func(string)
	rest []byte
}

const maxLine = 8 << 10 // bytes

func (w *lineWriter) Write(p []byte) (int, error) {
	for _, b := range p {
		if b == '\n' || len(w.rest) == maxLine {
			w.end()
		}
		if b != '\n' {
			w.rest = append(w.rest, b)
		}
	}
	return len(p), nil
}

func (w *lineWriter) end() {
	if len(w.rest) > 0 {
		w.log(strings.TrimRight(string(w.rest), "\r"))
	}
	w.rest = w.rest[:0]
}

// fetchForModule is the import idp.fetch: it takes a request in JSON and returns the length of the response in JSON,
// which idp.read copies. If the request cannot be read, the response is an error.
func fetchForModule(ctx context.Context, m api.Module, at, length uint32) uint32 {
	c := ctx.Value(moduleCallKey{}).(*moduleCall)
	response := fetchResponse{Error: "the request is not a JSON object with url, method, headers and body"}
	var request fetchRequest
	if m.Memory() == nil {
		return 0
	}
	if text, ok := m.Memory().Read(at, length); ok && json.Unmarshal(text, &request) == nil {
		response = c.host.fetch(request)
	}
	c.response, _ = json.Marshal(response) // cannot fail with these members
	return uint32(len(c.response))
}

// readResponse is the import idp.read: it copies the response of the last fetch to an address. It returns 1, or 0 if
// the memory ends before the response does.
func readResponse(ctx context.Context, m api.Module, at uint32) uint32 {
	c := ctx.Value(moduleCallKey{}).(*moduleCall)
	if m.Memory() == nil || !m.Memory().Write(at, c.response) {
		return 0
	}
	return 1
}
