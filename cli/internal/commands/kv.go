package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/operations"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

var bucketView = output.View{
	Columns: columns("name", "description", "state", "history", "ttl_seconds", "max_object_bytes"),
	Wide:    columns("id", "time_created", "time_modified", "version"),
	Name:    "name",
}

var objectView = output.View{
	Columns: append(columns("key", "size", "content_type", "version"), timeColumn("MODIFIED", "time_modified"),
		timeColumn("EXPIRES", "time_expires")),
	Wide: columns("kept_versions", "id", "value"),
	Name: "key",
}

var objectVersionView = output.View{
	Columns: append(columns("version", "size", "content_type"), timeColumn("MODIFIED", "time_modified"),
		output.MemberColumn("value")),
	Name: "version",
}

// knownBuckets completes a bucket.
var knownBuckets = kind{noun: "bucket", list: "list-kv-buckets", name: "name"}.known()

// kv makes the commands for buckets and the objects in them.
func kv(a *App) *cobra.Command {
	of := a.like(operation{
		view: objectView, arguments: 2, path: bucketAnd, complete: a.words(knownBuckets, known{"no", noWords}),
	})
	return group("kv", "Keys and values: buckets, ls, get, put",
		buckets(a),
		a.operation(operation{
			use: "ls BUCKET", short: "List the keys of a bucket", operation: "list-kv-objects", view: objectView,
			arguments: 1, path: bucketAnd, complete: a.words(knownBuckets),
			example: "  idp kv ls settings\n  idp kv ls settings --prefix theme/ --include-values -o jsonl",
		}),
		getObject(a), putObject(a),
		of(operation{
			use: "delete BUCKET KEY", short: "Delete an object, with its history", operation: "delete-kv-object",
			example: "  idp kv delete settings theme/dark --yes",
		}),
		of(operation{
			use: "history BUCKET KEY", short: "List the kept versions of an object, latest first",
			operation: "get-kv-object-history", view: objectVersionView,
			example: "  idp kv history settings theme/dark",
		}),
	)
}

// buckets makes the command that lists buckets, with those that change them below it.
func buckets(a *App) *cobra.Command {
	of := a.like(operation{view: bucketView, arguments: 1, path: bucketAnd, complete: a.words(knownBuckets)})
	command := of(operation{
		use: "buckets", short: "List buckets", operation: "list-kv-buckets", path: noPath, example: "  idp kv buckets",
	})
	command.AddCommand(
		of(operation{
			use: "get BUCKET", short: "Show a bucket", operation: "get-kv-bucket",
			example: "  idp kv buckets get settings",
		}),
		of(operation{
			use: "put BUCKET", short: "Create a bucket, or change its settings", operation: "put-kv-bucket",
			keeps:     true,
			arguments: 1, path: asTheyAre,
			example: "  idp kv buckets put settings --history 5 --description 'of the portal'",
		}),
		of(operation{
			use: "delete BUCKET", short: "Delete a bucket; with --force also one that has objects",
			operation: "delete-kv-bucket", example: "  idp kv buckets delete settings --force --yes",
		}),
	)
	return command
}

// asTheyAre is of arguments that are the parameters of the path.
func asTheyAre(_ context.Context, _ *session.Session, args []string) ([]string, error) {
	return args, nil
}

// bucketAnd checks that the bucket is there, and leaves a key as it is.
func bucketAnd(ctx context.Context, s *session.Session, args []string) ([]string, error) {
	client, err := s.Client()
	if err != nil {
		return nil, err
	}
	o := session.Operation("get-kv-bucket")
	_, err = get(ctx, client, strings.Replace(o.Path, "{bucket}", url.PathEscape(args[0]), 1), nil, o.Scope)
	if idp.CodeOf(err) != idp.CodeNotFound {
		return args, err
	}
	like, err := knownBuckets.list(ctx, client, "")
	if err != nil {
		return nil, err
	}
	return nil, none("bucket", args[0], near(args[0], values(like)))
}

// getObject makes the command that prints a value: a text as it is, all else as JSON.
func getObject(a *App) *cobra.Command {
	command := a.operation(operation{
		use: "get BUCKET KEY", short: "Print the value of an object", operation: "get-kv-object", view: objectView,
		arguments: 2, path: bucketAnd, complete: a.words(knownBuckets, known{"no", noWords}),
		example: "  idp kv get settings theme/dark\n  idp kv get settings theme/dark -o json --fields version,value",
	})
	whole := command.RunE
	value := a.run(func(ctx context.Context, s *session.Session, args []string) error {
		if _, err := bucketAnd(ctx, s, args); err != nil {
			return err
		}
		body, err := s.Body(ctx, &session.Call{Operation: session.Operation("get-kv-object"), Path: args})
		if idp.CodeOf(err) == idp.CodeNotFound {
			return noKey(ctx, s, args[0], args[1])
		}
		if err != nil {
			return err
		}
		var object idp.KVObject
		if err := json.Unmarshal(body, &object); err != nil {
			return fmt.Errorf("the answer is not as documented: %w", err)
		}
		out := s.Stored()
		var text string
		if !isJSON(object.ContentType) && json.Unmarshal(object.Value, &text) == nil {
			_, err = fmt.Fprint(out, text)
			return err
		}
		_, err = fmt.Fprintf(out, "%s\n", object.Value)
		return err
	})
	command.RunE = func(command *cobra.Command, args []string) error {
		if a.options.Format == "table" && a.options.JQ == "" && len(a.options.Fields) == 0 && !a.options.Curl {
			return value(command, args)
		}
		return whole(command, args)
	}
	return command
}

// noKey is the error of a key that a bucket does not have, with keys that begin like it.
func noKey(ctx context.Context, s *session.Session, bucket, key string) error {
	client, err := s.Client()
	if err != nil {
		return err
	}
	begin := []rune(key)
	page, err := client.ListKVObjects(ctx, bucket, idp.ListKVObjectsParams{
		Prefix: string(begin[:(len(begin)+1)/2]), PageSize: completeSize,
	})
	if err != nil {
		return err
	}
	var keys []string
	for _, object := range page.Items {
		keys = append(keys, object.Key)
	}
	return none("key", key, near(key, keys))
}

func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return contentType == "" || err == nil && (kind == operations.JSON || strings.HasSuffix(kind, "+json"))
}

func putObject(a *App) *cobra.Command {
	kind, ttl, ifAbsent := "", time.Duration(0), false
	command := &cobra.Command{
		Use: "put BUCKET KEY VALUE|@FILE|-", Short: "Write an object", Args: exactly(3),
		Long: "Write an object: create it, or replace its value. The value is JSON, of the command line, a file or\n" +
			"standard input; with a --content-type that is not JSON it is a text. --if-version replaces only this\n" +
			"version, --if-absent only creates; else the exit code is 6.\n\nScope: kv:write",
		Example: "  idp kv put settings theme/dark '{\"color\":\"#222\"}'\n" +
			"  idp kv put settings greeting @greeting.txt --content-type text/plain\n" +
			"  idp kv put locks nightly '{}' --if-absent --ttl 10m",
		ValidArgsFunction: a.words(knownBuckets, known{"no", noWords}),
	}
	command.Flags().StringVar(&kind, "content-type", "", "of the value; application/json if absent")
	command.Flags().DurationVar(&ttl, "ttl", 0, "after which it expires: 30s, 10m; absent: as the bucket says")
	command.Flags().BoolVar(&ifAbsent, "if-absent", false, "only if there is no such object")
	command.RunE = a.run(func(ctx context.Context, s *session.Session, args []string) error {
		text, err := read(s, args[2])
		if err != nil {
			return err
		}
		body := members{}
		switch {
		case isJSON(kind) && !json.Valid(text):
			return failure.Usagef("the value is not JSON; --content-type text/plain stores it as a text")
		case isJSON(kind):
			body["value"] = json.RawMessage(text)
		case !utf8.Valid(text):
			return failure.Usagef("the value is not text in UTF-8; the platform keeps JSON and texts")
		default:
			body["value"] = string(text)
		}
		if kind != "" {
			body["content_type"] = kind
		}
		if command.Flags().Changed("ttl") {
			if ttl < time.Second && ttl != 0 {
				return failure.Usagef("--ttl must be a second or more, or 0 for never")
			}
			body["ttl_seconds"] = int64(ttl.Seconds())
		}
		call := &session.Call{
			Operation: session.Operation("put-kv-object"), Path: args[:2], View: objectView, Header: http.Header{},
		}
		if ifAbsent {
			call.Header.Set("If-None-Match", "*")
		}
		if call.Body, err = json.Marshal(body); err != nil {
			return err
		}
		return s.Run(ctx, call)
	})
	return command
}
