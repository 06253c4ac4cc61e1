package commands

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

var functionView = output.View{
	Columns: append(columns("id", "code", "name", "runtime", "revision"),
		output.Column{Title: "ON EVENTS", Of: triggersOf}, statusColumn),
	Wide: columns("entry", "limits", "allowed_hosts", "time_modified"),
	Name: "code",
}

var revisionView = output.View{
	Columns: append(columns("revision", "runtime", "entry", "bytes", "actor"), timeColumn("CREATED", "time_created")),
	Wide:    columns("sha256"),
	Name:    "revision",
}

var callView = output.View{
	Columns: []output.Column{
		timeColumn("TIME", "time_created"), output.MemberColumn("cause"), output.MemberColumn("outcome"),
		{Title: "MS", Of: func(o output.Object) string { return o.Text("duration_ms") }},
		{Title: "ERROR", Of: func(o output.Object) string { return o.Text("error.message") }},
		{Title: "LOG", Of: linesOf},
	},
	Wide: columns("id", "revision", "attempt", "event_id"),
	Name: "id",
}

// triggersOf are the types of events that call a function.
func triggersOf(function output.Object) string {
	var types []string
	list, _ := function.Get("triggers").([]any)
	for _, item := range list {
		if trigger, isObject := item.(output.Object); isObject {
			types = append(types, trigger.Text("event_types"))
		}
	}
	return strings.Join(types, ", ")
}

func linesOf(call output.Object) string {
	var texts []string
	list, _ := call.Get("logs").([]any)
	for _, item := range list {
		if line, isObject := item.(output.Object); isObject {
			texts = append(texts, line.Text("text"))
		}
	}
	return strings.Join(texts, " | ")
}

// functions makes the commands for functions.
func functions(a *App) *cobra.Command {
	of := a.like(operation{
		view: functionView, arguments: 1, path: firstOf(functionKind.id), complete: a.words(functionKind.known()),
	})
	return group("functions", "Functions in JavaScript and WebAssembly: create, deploy, invoke, roll back",
		of(operation{
			use: "list", short: "List functions", operation: "list-functions", path: noPath,
			example: "  idp functions list\n  idp functions list --runtime wasm",
		}),
		of(operation{
			use: "get FUNCTION", short: "Show a function, with its code", operation: "get-function",
			example: "  idp functions get sync\n  idp functions get sync --jq .source > sync.js",
		}),
		createFunction(a), deployFunction(a),
		of(operation{
			use: "update FUNCTION", short: "Change members of a function", operation: "update-function",
			without: codeMembers,
			example: "  idp functions update sync --status 0\n  idp functions update sync -F env.TOKEN=@token.txt",
		}),
		of(operation{
			use: "delete FUNCTION", short: "Delete a function that no job calls", operation: "delete-function",
			example: "  idp functions delete sync --yes",
		}),
		invokeFunction(a),
		of(operation{
			use: "logs FUNCTION", short: "List calls that logged something, failed, or came of events, latest first",
			operation: "list-function-logs", view: callView,
			query: func(_ context.Context, _ *session.Session, _ []string, query url.Values) error {
				if !query.Has("page_sort") {
					query.Set("page_sort", "time_created[desc]")
				}
				return nil
			},
			example: "  idp functions logs sync",
		}),
		of(operation{
			use: "revisions FUNCTION", short: "List the revisions whose code is kept", view: revisionView,
			operation: "list-function-revisions", example: "  idp functions revisions sync",
		}),
		of(operation{
			use: "rollback FUNCTION", short: "Make an earlier revision the current one again",
			operation: "rollback-function", example: "  idp functions rollback sync --revision 3 --dry-run",
		}),
	)
}

// codeMembers are the members that hold code: they come from a file.
var codeMembers = []string{"source", "module_base64"}

const largestModule = 700 << 10 // whose text in base 64 fits into a body of 1 MiB

func fileFlag(command *cobra.Command, file *string) {
	command.Flags().StringVarP(file, "file", "f", "", "the code: a .js or .wasm file, or - for JavaScript")
	_ = command.MarkFlagFilename("file", "js", "mjs", "wasm") // the flag is there
}

// readCode reads code, and tells its runtime.
func readCode(s *session.Session, file string) (code []byte, runtime string, err error) {
	if file == "-" {
		code, err = read(s, "-")
		return code, "javascript", err
	}
	if code, err = os.ReadFile(file); err != nil {
		return nil, "", failure.Usagef("--file: %w", err)
	}
	if strings.EqualFold(filepath.Ext(file), ".wasm") {
		return code, "wasm", nil
	}
	return code, "javascript", nil
}

func createFunction(a *App) *cobra.Command {
	file := ""
	return a.operation(operation{
		use: "create CODE --file FILE", short: "Create a function of a file", operation: "create-function",
		view: functionView, arguments: 1, path: noPath, without: append([]string{"code"}, codeMembers...),
		flags: func(command *cobra.Command) { fileFlag(command, &file) },
		body: func(ctx context.Context, s *session.Session, args []string, body members) error {
			if file != "" {
				code, runtime, err := readCode(s, file)
				if err != nil {
					return err
				}
				body.otherwise("runtime", runtime)
				if runtime == "javascript" {
					body["source"] = string(code)
				} else if len(code) > largestModule {
					return failure.Usagef("the module is too large here: create the function with --runtime wasm, "+
						"then idp functions deploy %s -f %s", args[0], file)
				} else {
					body["module_base64"] = base64.StdEncoding.EncodeToString(code)
				}
			}
			return codeAndName(ctx, s, args, body)
		},
		example: "  idp functions create sync -f sync.js --name 同步\n" +
			"  idp functions create sync -f sync.js --allowed-hosts api.acme.test -F limits.timeout_ms=5000",
	})
}

// deployFunction replaces the code alone, which makes a new revision.
func deployFunction(a *App) *cobra.Command {
	file := ""
	command := &cobra.Command{
		Use: "deploy FUNCTION --file FILE", Short: "Replace the code, as a new revision", Args: exactly(1),
		Long: "Replace the code of a function, as a new revision. It is compiled and checked first.\n\n" +
			"Scope: functions:write",
		Example:           "  idp functions deploy sync -f sync.js\n  idp functions deploy filter -f filter.wasm",
		ValidArgsFunction: a.words(functionKind.known()),
	}
	fileFlag(command, &file)
	command.RunE = a.run(func(ctx context.Context, s *session.Session, args []string) error {
		if file == "" {
			return failure.Usagef("--file is needed: the code")
		}
		code, runtime, err := readCode(s, file)
		if err != nil {
			return err
		}
		id, err := functionKind.id(ctx, s, args[0])
		if err != nil {
			return err
		}
		call := &session.Call{Path: []string{id}, View: functionView}
		if runtime == "wasm" {
			call.Operation = session.Operation("put-function-module")
			call.Upload, call.Type = strings.NewReader(string(code)), call.Operation.Body[0]
			return s.Run(ctx, call)
		}
		call.Operation = session.Operation("update-function")
		if call.Body, err = json.Marshal(map[string]string{"runtime": runtime, "source": string(code)}); err != nil {
			return err
		}
		return s.Run(ctx, call)
	})
	return command
}

func invokeFunction(a *App) *cobra.Command {
	data := ""
	command := &cobra.Command{
		Use: "invoke FUNCTION", Short: "Call a function and print what it returns", Args: exactly(1),
		Long: "Call a function and print what it returns; its log goes to standard error. The exit code is 10 if it\n" +
			"does not succeed.\n\nScope: functions:invoke",
		Example: "  idp functions invoke sync --data '{\"full\":true}'\n" +
			"  idp functions invoke sync --data @input.json -o json",
		ValidArgsFunction: a.words(functionKind.known()),
	}
	command.Flags().StringVar(&data, "data", "", "the input: JSON, @file, or - for standard input; absent: null")
	command.RunE = a.run(func(ctx context.Context, s *session.Session, args []string) error {
		body := members{}
		if data != "" {
			input, err := jsonValue(s, "--data", data)
			if err != nil {
				return err
			}
			body["input"] = input
		}
		id, err := functionKind.id(ctx, s, args[0])
		if err != nil {
			return err
		}
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		call := &session.Call{Operation: session.Operation("invoke-function"), Path: []string{id}, Body: text}
		if s.DryRun || s.Curl {
			return s.Run(ctx, call)
		}
		answer, err := s.Body(ctx, call)
		if err != nil {
			return err
		}
		return showCall(s, answer)
	})
	return command
}

// showCall prints what a call returned.
func showCall(s *session.Session, answer []byte) error {
	var call idp.FunctionInvocation
	if err := json.Unmarshal(answer, &call); err != nil {
		return fmt.Errorf("the answer is not as documented: %w", err)
	}
	printer, err := s.Printer()
	if err != nil {
		return err
	}
	if !printer.ForPeople() || len(s.Fields) > 0 {
		err = printer.Body(answer, output.View{Name: "outcome"})
	} else {
		for _, line := range call.Logs {
			s.Notef("%-5s %s", line.Level, output.Printable(line.Text))
		}
		if call.Outcome == "succeeded" {
			_, err = fmt.Fprintf(s.Stored(), "%s\n", call.Output)
		}
	}
	if err != nil || call.Outcome == "succeeded" {
		return err
	}
	if call.Error != nil {
		s.Notef("%s: %s", strings.ReplaceAll(call.Outcome, "_", " "), output.Printable(call.Error.Message))
	}
	return failure.ErrNo
}
