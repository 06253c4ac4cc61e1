package architecture

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/telemetry"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

const logsIntro = `# Log lines

<!-- Made from the code by TestLogsGolden; "make generate" writes it. -->

Programs write short lines to standard error where it is a terminal, and a JSON object a line elsewhere; ` +
	"`IDP_LOG_FORMAT` (`json`, `text`) sets one form for both, `IDP_LOG_LEVEL=debug`" + ` tells every request.
No line has a body, a header, a query string or a credential. In JSON, durations are seconds.

## Members of many lines

`

// commonMembers says what the members are that lines have beside those of their message.
var commonMembers = map[string]string{
	"time":       "when, in the zone of the process",
	"level":      "`DEBUG`, `INFO`, `WARN`: it goes on by itself; `ERROR`: somebody should look",
	"msg":        "what happened, always the same text",
	"service":    "whose line it is: the name of a service, `gateway` or `console`",
	"request_id": "the request, as in the header `X-Request-Id` of its answer",
	"tenant":     "the request's tenant",
	"operation":  "the request's operation, as in the OpenAPI document",
	"trace_id":   "the request's trace, if it is traced",
	"span_id":    "the span in it",
}

// logLine is a call that writes a line.
type logLine struct{ level, message, members, from string }

var levels = map[string]string{"Debug": "DEBUG", "Info": "INFO", "Warn": "WARN", "Error": "ERROR"}

// logLines finds the calls that write lines in a file: those of a method of slog.Logger on something called log or
// logger.
func logLines(file string, source *ast.File) (all []logLine) {
	ast.Inspect(source, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !isLogger(method.X) {
			return true
		}
		level, args := levels[strings.TrimSuffix(method.Sel.Name, "Context")], call.Args
		switch name := method.Sel.Name; {
		case name == "Log" || name == "LogAttrs":
			level, args = levelOf(args[1]), args[2:]
		case level == "":
			return true
		case strings.HasSuffix(name, "Context"):
			args = args[1:]
		}
		all = append(all, logLine{level, textOf(args[0]), strings.Join(members(args[1:]), ", "), path.Dir(file)})
		return true
	})
	return all
}

func isLogger(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return strings.EqualFold(x.Name, "log") || x.Name == "logger"
	case *ast.SelectorExpr:
		return strings.EqualFold(x.Sel.Name, "log") || x.Sel.Name == "logger"
	}
	return false
}

// levelOf reads slog.LevelWarn.
func levelOf(x ast.Expr) string {
	if level, ok := x.(*ast.SelectorExpr); ok {
		return strings.ToUpper(strings.TrimPrefix(level.Sel.Name, "Level"))
	}
	return "any"
}

// textOf evaluates a text; what is known only at run time is an ellipsis.
func textOf(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(x.Value)
		return text
	case *ast.BinaryExpr:
		return textOf(x.X) + textOf(x.Y)
	}
	return "…"
}

// members reads the names of "name", value, … and of slog.String("name", value), …
func members(args []ast.Expr) (names []string) {
	for i := 0; i < len(args); i++ {
		if attr, ok := args[i].(*ast.CallExpr); ok {
			names = append(names, textOf(attr.Args[0]))
			continue
		}
		names = append(names, textOf(args[i]))
		i++ // its value
	}
	return names
}

// ofPrograms leaves out tests, tools, and the command line, which logs nothing.
func ofPrograms(file string) bool {
	return !isTest(file) && !slices.ContainsFunc([]string{
		"cli/", "sdk/", "console/issuertest/", "console/browsertest/", "console/web/", "pkg/service/example/", "tools/",
	}, func(folder string) bool { return below(folder)(file) })
}

// lineMembers are the members of a line that is written during a request, in their order.
func lineMembers(t *testing.T) (names []string) {
	t.Helper()
	ctx := request.With(context.Background(), request.Info{ID: "r", Tenant: "t", Operation: "get-user"})
	ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(
		trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}}))
	var line bytes.Buffer
	telemetry.NewLogger(&line, slog.LevelInfo, telemetry.JSON).With("service", "users").InfoContext(ctx, "message")
	decoder := json.NewDecoder(&line)
	for depth := 0; decoder.More() || depth == 0; depth++ {
		name, err := decoder.Token()
		require.NoError(t, err)
		if depth > 0 {
			names = append(names, name.(string))
			_, err = decoder.Token()
			require.NoError(t, err)
		}
	}
	return names
}

func TestLogsGolden(t *testing.T) {
	t.Parallel()
	rows := map[logLine]bool{}
	eachSource(t, func(file string, text []byte) {
		if !ofPrograms(file) {
			return
		}
		source, err := parser.ParseFile(gotoken.NewFileSet(), file, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, line := range logLines(file, source) {
			rows[line] = true
		}
	})
	require.Greater(t, len(rows), 80)

	text := bytes.NewBufferString(logsIntro)
	fmt.Fprint(text, "| member | what it is |\n|---|---|\n")
	names := lineMembers(t)
	require.Len(t, names, len(commonMembers))
	for _, name := range names {
		require.NotEmpty(t, commonMembers[name], name)
		fmt.Fprintf(text, "| `%s` | %s |\n", name, commonMembers[name])
	}
	fmt.Fprint(text, "\n## Lines and their own members\n\n",
		"An ellipsis is a part that is known only at run time. The line of any level ",
		"is that of a request: `request` (DEBUG), or `request failed` (ERROR) with a status of 500 and more.\n\n",
		"| level | message | members | from |\n|---|---|---|---|\n")
	sorted := slices.SortedFunc(maps.Keys(rows), func(a, b logLine) int {
		return strings.Compare(a.from+a.message+a.level+a.members, b.from+b.message+b.level+b.members)
	})
	for _, l := range sorted {
		fmt.Fprintf(text, "| %s | %s | %s | %s |\n", l.level, l.message, l.members, l.from)
	}
	basic.Golden(t, "../../deploy/logs.md", text.Bytes())
}
