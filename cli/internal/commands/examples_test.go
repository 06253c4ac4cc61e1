package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/idplatform/idplatform/cli/internal/operations"
	"github.com/idplatform/idplatform/cli/internal/output"
)

// documented is what the services' OpenAPI documents say of an operation, by its example.
type documented struct {
	OperationID string `yaml:"operationId"`
	Parameters  []struct {
		In, Name string
		Example  any
		Schema   struct {
			Examples, Enum []any
			Type           any
		}
	}
	RequestBody struct {
		Content map[string]struct{ Example any }
	} `yaml:"requestBody"`
	Responses map[string]struct {
		Content map[string]struct{ Example any }
	}
}

// examples reads the documents of all services.
func examples(t *testing.T) map[string]documented {
	t.Helper()
	files, err := filepath.Glob("../../../services/*/api/openapi.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := map[string]documented{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var document struct {
			Paths map[string]map[string]yaml.Node
		}
		require.NoError(t, yaml.Unmarshal(text, &document))
		for _, of := range document.Paths {
			for method, node := range of {
				var d documented
				if slices.Contains(methods, strings.ToUpper(method)) {
					require.NoError(t, node.Decode(&d), file)
					all[d.OperationID] = d
				}
			}
		}
	}
	return all
}

// value is an example of a parameter.
func (d documented) value(p operations.Parameter) string {
	for _, one := range d.Parameters {
		if one.Name != p.Name || one.In != p.In {
			continue
		}
		for _, candidate := range append(append([]any{one.Example}, one.Schema.Examples...), one.Schema.Enum...) {
			if candidate != nil && candidate != "" {
				return fmt.Sprint(candidate)
			}
		}
	}
	switch {
	case len(p.Values) > 0:
		return p.Values[0]
	case p.Type == "integer":
		return "7"
	case p.Type == "boolean":
		return "true"
	}
	return "研发/a b&c?"
}

// answer is the example of the answer, and its type.
func (d documented) answer() (string, []byte, error) {
	content := d.Responses["200"].Content
	if usual := content[operations.JSON]; usual.Example != nil {
		text, err := json.Marshal(usual.Example)
		return operations.JSON, text, err
	}
	for kind, one := range content {
		if text, isText := one.Example.(string); isText {
			return kind, []byte(text), nil
		}
		if one.Example != nil {
			text, err := json.Marshal(one.Example)
			return kind, text, err
		}
	}
	return operations.JSON, []byte("{}"), nil
}

// TestEveryExample calls each operation with the example of its body, and all its parameters by flags. What is sent is
// what the document says, and the example of the answer is printed in every form.
func TestEveryExample(t *testing.T) {
	t.Parallel()
	all := examples(t)
	for _, o := range operations.CompiledIn().All {
		t.Run(o.ID, func(t *testing.T) {
			t.Parallel()
			d, known := all[o.ID]
			require.True(t, known, "no service has a document with it")
			kind, answer, err := d.answer()
			require.NoError(t, err)
			p := newPlay(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", kind)
				_, _ = w.Write(answer)
			})
			args, path, query := exampleArguments(o, d)
			for _, media := range d.RequestBody.Content {
				if media.Example != nil && o.TakesJSON() {
					body, err := json.Marshal(media.Example)
					require.NoError(t, err)
					args = append(args, "--data", string(body))
				}
			}
			if len(o.Body) > 0 && !slices.Contains(args, "--data") {
				args = append(args, "--data", `{"grant_type":"client_credentials","token":"t"}`)
			}
			got := p.run(append(args, "-o", "json")...)
			require.Equal(t, 0, got.code, got.err)
			asked := p.last()
			sent, err := url.Parse(asked.target)
			require.NoError(t, err)
			assert.Equal(t, o.Method+" "+path, asked.method+" "+sent.EscapedPath())
			if o.Paged && !query.Has("page_size") {
				query.Set("page_size", "200")
			}
			assert.Equal(t, query, sent.Query())
			if o.TakesJSON() {
				assert.JSONEq(t, args[slices.Index(args, "--data")+1], asked.body)
			}
			if slices.Contains(o.Answer, operations.JSON) {
				assert.JSONEq(t, string(answer), got.out, "JSON is the API's own")
				printInEveryForm(t, answer)
			}
		})
	}
}

// printInEveryForm prints an answer as idp api does.
func printInEveryForm(t *testing.T, answer []byte) {
	t.Helper()
	forms := []output.Form{{Format: "template={{.}}"}, {Format: "table", JQ: "."}}
	for _, format := range output.Formats {
		forms = append(forms, output.Form{Format: format}, output.Form{Format: format, Fields: []string{"id"}})
	}
	for _, form := range forms {
		var out bytes.Buffer
		printer, err := output.New(&out, form)
		require.NoError(t, err)
		require.NoError(t, printer.Body(answer, output.View{}), "%+v", form)
	}
}

// exampleArguments makes the arguments of an operation, and the path and the query that they stand for.
func exampleArguments(o *operations.Operation, d documented) ([]string, string, url.Values) {
	args, path, query := []string{"api", o.ID}, o.Path, url.Values{}
	for _, parameter := range o.In("path") {
		value := d.value(parameter)
		args = append(args, value)
		path = strings.Replace(path, "{"+parameter.Name+"}", url.PathEscape(value), 1)
	}
	for _, parameter := range o.In("query") {
		flag := strings.ToLower(strings.ReplaceAll(parameter.Name, "_", "-"))
		if slices.Contains(reserved, flag) {
			flag = "query-" + flag
		}
		value := d.value(parameter)
		query.Set(parameter.Name, value)
		args = append(args, "--"+flag+"="+value)
	}
	return append(args, "--yes"), path, query
}
