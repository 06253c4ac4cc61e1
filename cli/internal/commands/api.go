package commands

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/operations"
	"github.com/idplatform/idplatform/cli/internal/session"
)

// fromServer is the flag that tableFor looks for.
const fromServer = "from-server"

var methods = []string{"GET", "POST", "PUT", "PATCH", "DELETE"}

// api makes the command that calls any operation. Its subcommands are made of the table of operations.
func api(a *App) *cobra.Command {
	command := &cobra.Command{
		Use: "api OPERATION [ARGUMENT...] | api METHOD PATH", Short: "Call any operation",
		Long: "Call any operation by its id. The parameters of its path are arguments, all else is flags.\n\n" +
			"A method and a path work too: the path may have a query, and the body is --data and -F.",
		Example: "  idp api list-users --keyword li\n" +
			"  idp api create-user --username li.wei -F free_ext_props.team=平台\n" +
			"  idp api PATCH /v1/users/1048577 -F email=null\n  idp api GET '/v1/users?keyword=li' -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) == 2 && slices.Contains(methods, strings.ToUpper(args[0])) {
				return nil
			}
			return a.unknownOperation(args[0])
		},
	}
	rest := &parameters{command: command, flags: map[string]operations.Parameter{}}
	command.Flags().StringVar(&rest.data, "data", "", "the body: JSON, @file, or - for standard input")
	command.Flags().StringArrayVarP(&rest.fields, "field", "F", nil, "a member of the body: a.b=value")
	command.Flags().StringVar(&rest.contentType, "content-type", "", "of --data")
	command.PersistentFlags().Bool(fromServer, false,
		"read the operations from the platform, which may be newer than idp")
	command.RunE = a.run(func(ctx context.Context, s *session.Session, args []string) error {
		if len(args) == 0 {
			return command.Help()
		}
		return rest.byPath(ctx, s, a.table, strings.ToUpper(args[0]), args[1])
	})
	tags := map[string]bool{}
	for _, o := range a.table.All {
		if !tags[o.Tag] {
			tags[o.Tag] = true
			command.AddGroup(&cobra.Group{ID: o.Tag, Title: o.Tag + ":"})
		}
		command.AddCommand(a.anyOperation(o))
	}
	return command
}

// anyOperation makes the command of one operation.
func (a *App) anyOperation(o *operations.Operation) *cobra.Command {
	use, example := o.ID, "  idp api "+o.ID
	for _, p := range o.In("path") {
		use += " " + strings.ToUpper(p.Name)
		example += " 1048577"
	}
	command := &cobra.Command{
		Use: use, Short: o.Summary, GroupID: o.Tag, Example: example + exampleFlag(o),
		Long: strings.TrimSpace(fmt.Sprintf("%s.\n\n%s", o.Summary, o.Description)) +
			fmt.Sprintf("\n\n%s %s%s", o.Method, o.Path, scopeLine(o)),
		Args: exactly(len(o.In("path"))),
	}
	values := addParameters(command, o, nil)
	command.RunE = a.run(func(ctx context.Context, s *session.Session, args []string) error {
		call, err := values.call(s)
		if err != nil {
			return err
		}
		call.Path = args
		return s.Run(ctx, call)
	})
	return command
}

func exampleFlag(o *operations.Operation) string {
	for _, p := range o.Members {
		if p.Required && p.Type == "string" {
			return " --" + flagOf(p.Name) + " …"
		}
	}
	switch {
	case len(o.Body) > 0 && !o.TakesJSON():
		return " --data @file"
	case o.Method == "DELETE":
		return " --yes"
	}
	return ""
}

// byPath calls an operation that is named by its method and path, also one that the table does not have.
func (p *parameters) byPath(
	ctx context.Context, s *session.Session, table *operations.Table, method, target string,
) error {
	parsed, err := url.Parse(target)
	if err != nil || parsed.Host != "" || !strings.HasPrefix(parsed.Path, "/") {
		return failure.Usagef("the path must begin with /, such as /v1/users")
	}
	path := parsed.EscapedPath()
	p.operation = &operations.Operation{
		ID: method + " " + path, Method: method, Answer: []string{operations.JSON}, Matches: method != "GET",
	}
	if known := table.Match(method, path); known != nil {
		copied := *known
		p.operation = &copied
	} else if method != "GET" {
		p.operation.Body = []string{operations.JSON}
	}
	p.operation.Path, p.operation.Parameters = path, nil // the caller has filled in the path
	call := &session.Call{Operation: p.operation, Query: parsed.Query()}
	if err := p.setBody(s, call, nil); err != nil {
		return err
	}
	return s.Run(ctx, call)
}

const mostOperations = 8 // that an error suggests

// unknownOperation names the operations that the caller may have meant: those with the most of its words.
func (a *App) unknownOperation(name string) error {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' })
	common := map[string]int{}
	var near []string
	for _, o := range a.table.All {
		for _, word := range words {
			if len(word) > 2 && strings.Contains(o.ID, strings.TrimSuffix(word, "s")) {
				common[o.ID]++
			}
		}
		if common[o.ID] > 0 {
			near = append(near, o.ID)
		}
	}
	if len(near) == 0 {
		return failure.Usagef("there is no operation %q: idp api --help lists all", name)
	}
	slices.SortStableFunc(near, func(a, b string) int {
		return cmp.Or(common[b]-common[a], len(a)-len(b))
	})
	near = near[:min(mostOperations, len(near))]
	return failure.Usagef("there is no operation %q; near it: %s", name, strings.Join(near, ", "))
}
