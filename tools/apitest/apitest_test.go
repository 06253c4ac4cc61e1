// Package apitest validates the platform's OpenAPI documents against the official schemas, generates a client from
// them with a third-party generator, and calls the running platform with that client and with an OAuth library. It is a
// module of its own, so that no program depends on its libraries.
package apitest

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	_ "github.com/oapi-codegen/nullable" // imported by the generated code
	"github.com/oapi-codegen/oapi-codegen/v2/pkg/codegen"
	_ "github.com/oapi-codegen/runtime" // imported by the generated code
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// platform is a running platform.
type platform struct{ url, token string }

// standalone is the platform's program: it is built, unless IDP_TEST_PROGRAMS is the folder in which "make services"
// has just done so.
func standalone(t *testing.T) string {
	t.Helper()
	if made := os.Getenv("IDP_TEST_PROGRAMS"); made != "" {
		return filepath.Join(made, "idp-standalone")
	}
	program := filepath.Join(t.TempDir(), "idp-standalone")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = "../../deploy/standalone"
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// startPlatform runs the platform on an empty folder.
func startPlatform(t *testing.T) platform {
	t.Helper()
	program, folder := standalone(t), t.TempDir()
	env := append(os.Environ(), "IDP_DATA_DIR="+folder, "IDP_LISTEN=127.0.0.1:0", "IDP_ADMIN_LISTEN=off",
		"IDP_NATS_LISTEN=off", "IDP_DRAIN_DELAY=0s")
	run := exec.Command(program, "serve")
	run.Env = env
	log, err := os.Create(filepath.Join(folder, "log"))
	require.NoError(t, err)
	defer log.Close()
	run.Stderr = log
	stdout, err := run.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, run.Start())
	t.Cleanup(func() {
		_ = run.Process.Signal(syscall.SIGTERM)
		_ = run.Wait()
	})
	p := platform{}
	for lines := bufio.NewScanner(stdout); p.url == "" && lines.Scan(); {
		if _, rest, ok := strings.Cut(lines.Text(), "http://"); ok {
			address, _, _ := strings.Cut(rest, "/")
			p.url = "http://" + address
		}
	}
	text, _ := os.ReadFile(log.Name())
	require.NotEmpty(t, p.url, "%s", text)
	go func() { _, _ = io.Copy(io.Discard, stdout) }()

	token := exec.Command(program, "token", "--tenant", "acme")
	token.Env = env
	out, err := token.Output()
	require.NoError(t, err)
	lines := strings.Fields(string(out))
	p.token = lines[len(lines)-1]
	return p
}

// get reads a path that needs no credential.
func (p platform) get(t *testing.T, path string) []byte {
	t.Helper()
	response, err := http.Get(p.url + path)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode, path)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return body
}

func TestTheRunningPlatform(t *testing.T) {
	p := startPlatform(t)
	document, older := p.get(t, "/openapi.json"), p.get(t, "/openapi-3.0.json")
	t.Run("version 3.1", func(t *testing.T) { require.NoError(t, schema31(t).Validate(parse(t, document))) })
	t.Run("version 3.0", func(t *testing.T) {
		require.NoError(t, schema30(t).Validate(parse(t, older)))
		loaded, err := openapi3.NewLoader().LoadFromData(older)
		require.NoError(t, err)
		require.NoError(t, loaded.Validate(t.Context()), "examples must match their schemas too")
	})
	t.Run("client", func(t *testing.T) { useClient(t, p, older) })
	t.Run("OAuth client", func(t *testing.T) { useOAuth(t, p) })
}

// The schemas find the faults that they are used for.
func TestTheSchemasFindFaults(t *testing.T) {
	for name, document := range map[string]string{
		"no title": `{"openapi":"3.1.0","info":{"version":"1"},"paths":{}}`,
		"no type": `{"openapi":"3.1.0","info":{"title":"x","version":"1"},` +
			`"components":{"schemas":{"A":{"type":["","null"]}}}}`,
		"nested": `{"openapi":"3.1.0","info":{"title":"x","version":"1"},` +
			`"components":{"schemas":{"A":{"properties":{"b":{"type":"text"}}}}}}`,
	} {
		require.Error(t, schema31(t).Validate(parse(t, []byte(document))), name)
	}
	newer := `{"openapi":"3.0.3","info":{"title":"x","version":"1"},"paths":{},` +
		`"components":{"schemas":{"A":{"type":["string","null"]}}}}`
	require.Error(t, schema30(t).Validate(parse(t, []byte(newer))))
}

func parse(t *testing.T, document []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(document)))
	require.NoError(t, err)
	return v
}

// base31 joins the schema of OpenAPI documents, which leaves the JSON Schemas inside them open, with the schema of
// JSON Schemas.
const base31 = `{"$schema":"https://json-schema.org/draft/2020-12/schema",
	"$ref":"https://spec.openapis.org/oas/3.1/schema/2022-10-07",
	"$defs":{"schema":{"$dynamicAnchor":"meta","$ref":"https://json-schema.org/draft/2020-12/schema"}}}`

func schema31(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	official, err := os.ReadFile("testdata/openapi-3.1.schema.json")
	require.NoError(t, err)
	require.NoError(t, c.AddResource("https://spec.openapis.org/oas/3.1/schema/2022-10-07", parse(t, official)))
	base := parse(t, []byte(base31))
	require.NoError(t, c.AddResource("https://spec.openapis.org/oas/3.1/schema-base/2022-10-07", base))
	return c.MustCompile("https://spec.openapis.org/oas/3.1/schema-base/2022-10-07")
}

func schema30(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	official, err := os.ReadFile("testdata/openapi-3.0.schema.json")
	require.NoError(t, err)
	require.NoError(t, c.AddResource("https://spec.openapis.org/oas/3.0/schema/2021-09-28", parse(t, official)))
	return c.MustCompile("https://spec.openapis.org/oas/3.0/schema/2021-09-28")
}

// useClient generates a client and runs a program that uses it. An overlay shows the generated file to the compiler
// as a file next to the program.
func useClient(t *testing.T, p platform, document []byte) {
	loaded, err := openapi3.NewLoader().LoadFromData(document)
	require.NoError(t, err)
	code, err := codegen.Generate(loaded, codegen.Configuration{
		PackageName: "api", Generate: codegen.GenerateOptions{Client: true, Models: true},
		OutputOptions: codegen.OutputOptions{NullableType: true}, // a patch distinguishes absent members from null
	})
	require.NoError(t, err)
	generated := filepath.Join(t.TempDir(), "api.go")
	require.NoError(t, os.WriteFile(generated, []byte(code), 0o600))
	program, err := filepath.Abs("testdata/client")
	require.NoError(t, err)
	overlay, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(program, "api", "api.go"): generated},
	})
	require.NoError(t, err)
	overlayFile := filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.WriteFile(overlayFile, overlay, 0o600))
	out, err := exec.Command("go", "run", "-overlay", overlayFile, "./testdata/client", p.url, p.token).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "all operations answered")
}
