package commands

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/operations"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

// operation describes a command that is one operation of the platform, with names instead of ids. Its flags are the
// parameters of the operation, and the members of its body.
type operation struct {
	use, short, example string
	operation           string // its id
	view                output.View
	arguments           int  // how many there are; or oneOrTwo
	more                bool // further ones may follow

	// path makes the parameters of the path of the arguments; nil: they are the arguments.
	path func(ctx context.Context, s *session.Session, args []string) ([]string, error)
	// body adds members; nil: none. Flags come before.
	body func(ctx context.Context, s *session.Session, args []string, body members) error
	// query adds parameters.
	query func(ctx context.Context, s *session.Session, args []string, query url.Values) error
	// without are parameters and members that are no flags, because body and query make them.
	without []string
	// reads makes what reading the record takes in its query; nil: nothing.
	reads func() url.Values
	// references are flags that name records.
	references []reference
	// join adds to the items of a list, for tables, what the answer lacks; nil: nothing.
	join func(ctx context.Context, s *session.Session, items []output.Object) error
	// verb is what the question before a deletion begins with; "": Delete.
	verb string
	// keeps makes an operation that replaces a record change the given members alone: the others are sent as they are,
	// if nobody has changed the record meanwhile.
	keeps bool
	// once are the secrets that only this answer has; nil: none.
	once *once
	// answer makes what is printed of the answer; an error comes after it. nil: the answer itself.
	answer func(s *session.Session, body []byte) ([]byte, error)
	// complete completes the first argument; nil: not.
	complete cobra.CompletionFunc
	// flags adds flags of the command's own.
	flags func(*cobra.Command)
}

// like makes commands that have in common what base says, unless they say otherwise.
func (a *App) like(base operation) func(operation) *cobra.Command {
	return func(spec operation) *cobra.Command {
		if spec.path == nil {
			spec.path, spec.arguments = base.path, base.arguments
		}
		if spec.complete == nil {
			spec.complete = base.complete
		}
		if spec.view.Columns == nil {
			spec.view = base.view
		}
		return a.operation(spec)
	}
}

// reference is a flag that names a record, whose id becomes a parameter or a member of the body.
type reference struct {
	flag, usage string
	id          string // the parameter or the member
	find        finder
	known       known
	required    bool
}

// operation makes the command.
func (a *App) operation(spec operation) *cobra.Command {
	o := session.Operation(spec.operation)
	command := &cobra.Command{
		Use: spec.use, Short: spec.short, Example: spec.example, Args: takes(spec.arguments, spec.more),
		ValidArgsFunction: spec.complete,
		Long:              strings.TrimSpace(spec.short + ".\n\n" + o.Description + scopeLine(o)),
	}
	for _, r := range spec.references {
		spec.without = append(spec.without, r.id)
	}
	values := addParameters(command, o, spec.without)
	a.addReferences(command, spec.references)
	if spec.flags != nil {
		spec.flags(command)
	}
	secrets := spec.once.flag(command)
	command.RunE = a.run(func(ctx context.Context, s *session.Session, args []string) error {
		call, err := spec.call(ctx, s, values, args)
		if err != nil {
			return err
		}
		return spec.once.run(ctx, s, call, *secrets)
	})
	return command
}

// call makes the call of a command's flags and arguments.
func (spec *operation) call(
	ctx context.Context, s *session.Session, values *parameters, args []string,
) (call *session.Call, err error) {
	path := args
	if spec.path != nil {
		if path, err = spec.path(ctx, s, args); err != nil {
			return nil, err
		}
	}
	if spec.keeps {
		if err := values.keep(ctx, s, path); err != nil {
			return nil, err
		}
	}
	if call, err = values.call(s); err != nil {
		return nil, err
	}
	call.View, call.What, call.Verb, call.Path = spec.view, strings.Join(args, " "), spec.verb, path
	if spec.join != nil {
		call.Join = func(ctx context.Context, items []output.Object) error { return spec.join(ctx, s, items) }
	}
	if spec.answer != nil {
		call.Answer = func(body []byte) ([]byte, error) { return spec.answer(s, body) }
	}
	if spec.reads != nil {
		call.Reads = spec.reads()
	}
	if err := values.refer(ctx, s, call, spec.references); err != nil {
		return nil, err
	}
	if spec.query != nil {
		if err := spec.query(ctx, s, args, call.Query); err != nil {
			return nil, err
		}
	}
	if spec.body != nil {
		err = values.add(call, func(body members) error { return spec.body(ctx, s, args, body) })
	}
	return call, err
}

// addReferences adds the flags that name records.
func (a *App) addReferences(command *cobra.Command, all []reference) {
	for _, r := range all {
		usage := r.usage
		if r.required {
			usage += " (required)"
		}
		command.Flags().String(r.flag, "", usage)
		a.completeFlag(command, r.flag, r.known)
	}
}

// refer sets the ids of the records that flags name.
func (p *parameters) refer(ctx context.Context, s *session.Session, call *session.Call, all []reference) error {
	for _, r := range all {
		if r.required && p.command.Flags().Lookup(r.flag).Value.String() == "" {
			return failure.Usagef("--%s is needed: %s", r.flag, r.usage)
		}
	}
	for _, r := range all {
		name := p.command.Flags().Lookup(r.flag).Value.String()
		if name == "" {
			continue
		}
		id, err := r.find(ctx, s, name)
		if err != nil {
			return err
		}
		if p.operation.Has("query", r.id) {
			call.Query.Set(r.id, id)
			continue
		}
		value, err := p.member(r.id, id)
		if err != nil {
			return err
		}
		if err := p.add(call, func(body members) error { body[r.id] = value; return nil }); err != nil {
			return err
		}
	}
	return nil
}

// member is an id as the member of the body wants it: some are numbers.
func (p *parameters) member(name, id string) (any, error) {
	for _, m := range p.operation.Members {
		if m.Name == name {
			return typed(m, id)
		}
	}
	return id, nil
}

const oneOrTwo = -1 // arguments

func exactly(arguments int) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		switch {
		case arguments == oneOrTwo && len(args) != 1 && len(args) != 2:
			return failure.Usagef("%s takes one argument or two: %s", command.CommandPath(), synopsis(command))
		case arguments != oneOrTwo && len(args) != arguments:
			return failure.Usagef("%s takes %s: %s", command.CommandPath(),
				output.Counted(arguments, "argument", "arguments"), synopsis(command))
		}
		return nil
	}
}

func synopsis(command *cobra.Command) string {
	return command.Parent().CommandPath() + " " + command.Use
}

func atLeast(arguments int) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) < arguments {
			return failure.Usagef("%s takes at least %s: %s", command.CommandPath(),
				output.Counted(arguments, "argument", "arguments"), synopsis(command))
		}
		return nil
	}
}

// takes checks the number of arguments, after which further ones may follow.
func takes(arguments int, more bool) cobra.PositionalArgs {
	if !more {
		return exactly(arguments)
	}
	return atLeast(arguments)
}

func scopeLine(o *operations.Operation) string {
	if o.Scope == "" {
		return ""
	}
	return "\n\nScope: " + o.Scope
}

// parameters are the flags of an operation.
type parameters struct {
	operation   *operations.Operation
	command     *cobra.Command
	flags       map[string]operations.Parameter // by flag
	fields      []string
	data        string
	kept        []byte // the record as it is, where the operation would replace it
	contentType string
}

// flagOf is the flag for a parameter or a member.
func flagOf(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "-")) }

// addParameters adds flags for what an operation takes in its query, its header and its body.
func addParameters(command *cobra.Command, o *operations.Operation, without []string) *parameters {
	p := &parameters{operation: o, command: command, flags: map[string]operations.Parameter{}}
	for _, parameter := range slices.Concat(o.In("query"), o.In("header"), o.Members) {
		if slices.Contains(without, parameter.Name) {
			continue
		}
		flag := flagOf(parameter.Name)
		if _, taken := p.flags[flag]; taken || slices.Contains(reserved, flag) {
			flag = cmp.Or(parameter.In, "body") + "-" + flag
		}
		p.flags[flag] = parameter
		if isList(parameter) {
			command.Flags().StringArray(flag, nil, describe(parameter))
			continue
		}
		command.Flags().String(flag, "", describe(parameter))
		if isFlag(parameter) {
			command.Flags().Lookup(flag).NoOptDefVal = "true"
		}
		if len(parameter.Values) > 0 {
			values := cobra.FixedCompletions(parameter.Values, cobra.ShellCompDirectiveNoFileComp)
			_ = command.RegisterFlagCompletionFunc(flag, values) // the flag is there
		}
	}
	if len(o.Body) > 0 {
		command.Flags().StringVar(&p.data, "data", "", "the body: JSON, @file, or - for standard input")
	}
	if o.TakesJSON() {
		command.Flags().StringArrayVarP(&p.fields, "field", "F", nil,
			"a member of the body: a.b=value; null removes it, @file reads it")
	} else if len(o.Body) > 0 {
		command.Flags().StringVar(&p.contentType, "content-type", "", "of --data: "+strings.Join(o.Body, ", "))
	}
	return p
}

// reserved are the flags of all commands.
var reserved = []string{
	"context", "tenant", "output", "jq", "fields", "all", "dry-run", "if-version", "idempotency-key", "yes", "curl",
	"verbose", "wait", "timeout", "help", "data", "field", "content-type", "from-server",
}

func isFlag(p operations.Parameter) bool {
	return p.Type == "boolean" || len(p.Values) == 4 && p.Values[0] == "true"
}

func isList(p operations.Parameter) bool {
	return p.In == "" && p.Type == "array" && p.Items == "string"
}

func describe(p operations.Parameter) string {
	text := p.Description
	if len(p.Values) > 0 && !isFlag(p) {
		text = strings.TrimSpace(text + " (" + strings.Join(p.Values, ", ") + ")")
	}
	if p.Required {
		text = strings.TrimSpace(text + " (required)")
	}
	return strings.ReplaceAll(text, "`", "") // pflag takes a word between backquotes for a type
}

// call makes a call of the flags. The parameters of the path are not set.
func (p *parameters) call(s *session.Session) (*session.Call, error) {
	call := &session.Call{Operation: p.operation, Query: url.Values{}, Header: http.Header{}}
	body := members{}
	for flag, parameter := range p.flags {
		if !p.command.Flags().Changed(flag) {
			continue
		}
		if isList(parameter) {
			list, err := p.command.Flags().GetStringArray(flag)
			if err != nil {
				return nil, err
			}
			body[parameter.Name] = list
			continue
		}
		text := p.command.Flags().Lookup(flag).Value.String()
		switch parameter.In {
		case "query":
			call.Query.Set(parameter.Name, text)
		case "header":
			call.Header.Set(parameter.Name, text)
		default:
			value, err := typed(parameter, text)
			if err != nil {
				return nil, failure.Usagef("--%s: %w", flag, err)
			}
			body[parameter.Name] = value
		}
	}
	return call, p.setBody(s, call, body)
}

// queryOf finds a record by the first argument, whose id becomes a parameter.
func queryOf(
	parameter string, find finder,
) func(ctx context.Context, s *session.Session, args []string, query url.Values) error {
	return func(ctx context.Context, s *session.Session, args []string, query url.Values) error {
		id, err := find(ctx, s, args[0])
		query.Set(parameter, id)
		return err
	}
}
