package condition

import (
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
)

// Limits of a condition's text. MaxCost is in cost.go.
const (
	MaxLength  = 4096 // bytes
	maxDepth   = 64   // levels of nested operators, members, calls and brackets
	maxNodes   = 10_000
	maxPattern = 200 // instructions of a compiled regular expression
)

// Error describes the first fault in a condition's text and where it is. Line and Column count from 1, Column in
// characters.
type Error struct {
	Line, Column int
	Message      string
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// Compile checks a condition and prepares it for evaluation. Its error is always an *Error.
func (e *Environment) Compile(text string) (*Program, error) {
	start := common.NewLocation(1, 0)
	if len(text) > MaxLength {
		return nil, faultAt(start, fmt.Sprintf("must be at most %d bytes long", MaxLength))
	}
	parsed, issues := e.env.Parse(text)
	if err := firstOf(issues); err != nil {
		return nil, err
	}
	if ast.ExceedsDepth(parsed.NativeRep(), maxDepth) {
		return nil, faultAt(start, "is nested too deeply")
	}
	checked, issues := e.env.Check(parsed)
	if err := firstOf(issues); err != nil {
		return nil, err
	}
	if t := checked.OutputType(); t.Kind() != e.result.Kind() && t.Kind() != types.DynKind {
		want := "true or false"
		if e.result == cel.StringType {
			want = "a text"
		}
		return nil, faultAt(start, fmt.Sprintf("must be %s; it is of type %s", want, t))
	}
	steps, err := inspect(checked.NativeRep())
	if err != nil {
		return nil, err
	}
	estimate, err := e.env.EstimateCost(checked, estimator{})
	if err != nil {
		return nil, faultAt(start, err.Error())
	}
	if estimate.Max > MaxCost {
		return nil, faultAt(start, fmt.Sprintf(
			"could take too long: lists of %d entries would cost %d, the limit is %d",
			assumedSize, estimate.Max, MaxCost))
	}
	program, err := e.env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CustomDecoratorV2(priced(steps)),
		cel.OptimizeRegex(patterns...), cel.InterruptCheckFrequency(interruptEvery))
	if err != nil { // a constant that cannot be converted
		var fault *types.Err
		if errors.As(err, &fault) && fault.NodeID() > 0 {
			start = checked.NativeRep().SourceInfo().GetStartLocation(fault.NodeID())
		}
		return nil, faultAt(start, err.Error())
	}
	return &Program{program: program, tracker: e.tracker, loops: len(steps) > 0, cost: int64(estimate.Max)}, nil
}

// inspect refuses the parts of CEL that conditions must not use. It returns the ids of the expressions that loops
// evaluate for each entry.
func inspect(a *ast.AST) (steps map[int64]bool, err error) {
	steps = map[int64]bool{}
	refuse := func(id int64, message string) {
		if err == nil {
			err = faultAt(a.SourceInfo().GetStartLocation(id), message)
		}
	}
	ast.PreOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.ComprehensionKind:
			steps[e.AsComprehension().LoopStep().ID()] = true
		case ast.StructKind: // protocol buffers
			refuse(e.ID(), "types cannot be constructed here")
		case ast.CallKind:
			call := e.AsCall()
			switch call.FunctionName() {
			// One call could build a text or list of a hundred megabytes.
			case "format", "join", "replace", "strings.quote",
				"indexOf", "lastIndexOf": // their time is quadratic: one call could take minutes (contains is linear)
				refuse(e.ID(), call.FunctionName()+" cannot be used here")
			// A pattern from a record could have any size, and would be compiled in each evaluation.
			case overloads.Matches:
				if pattern := call.Args()[len(call.Args())-1]; pattern.Kind() != ast.LiteralKind {
					refuse(pattern.ID(), "matches needs a pattern that is written in the condition")
				}
			}
		}
	}))
	return steps, err
}

func faultAt(at common.Location, message string) *Error {
	return &Error{Line: max(at.Line(), 1), Column: max(at.Column()+1, 1), Message: shorten(message)}
}

// firstOf returns the first fault in the text, or nil. It cuts off the parts of CEL's message that do not help the
// author.
func firstOf(issues *cel.Issues) error {
	faults := issues.Errors()
	if len(faults) == 0 {
		return nil
	}
	first := faults[0]
	message, _, _ := strings.Cut(first.Message, " expecting {") // drops the list of all tokens
	if strings.HasPrefix(message, "Syntax error:") {
		// What follows repeats the text, which may hold anything.
		message = "syntax error"
	}
	return faultAt(first.Location, strings.TrimSuffix(message, " (in container '')"))
}
