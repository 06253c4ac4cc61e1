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

// What a condition may be. MaxCost is explained in cost.go.
const (
	MaxLength  = 4096 // bytes
	maxDepth   = 64   // of operators, members, calls and brackets within one another
	maxNodes   = 10_000
	maxPattern = 200 // instructions of a compiled regular expression
)

// Error says what is wrong with a condition's text, and where: Line and Column count from 1, Column in characters.
type Error struct {
	Line, Column int
	Message      string
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// Compile checks a condition and makes it ready to evaluate. Whatever is wrong with text is an *Error.
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
	if t := checked.OutputType(); t.Kind() != types.BoolKind && t.Kind() != types.DynKind {
		return nil, faultAt(start, fmt.Sprintf("must be true or false; it is of type %s", t))
	}
	loops, err := inspect(checked.NativeRep())
	if err != nil {
		return nil, err
	}
	estimate, err := e.env.EstimateCost(checked, estimator{})
	if err != nil {
		return nil, faultAt(start, err.Error())
	}
	if estimate.Max > MaxCost {
		return nil, faultAt(start, fmt.Sprintf("could take too long: lists of %d entries would cost %d, at most %d may be", assumedSize, estimate.Max, MaxCost))
	}
	program, err := e.env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(MaxCost), cel.CostTracking(pricer{}),
		cel.CustomDecoratorV2(priceConstructors), cel.OptimizeRegex(patterns...), cel.InterruptCheckFrequency(64))
	if err != nil { // a constant that can't be converted
		var fault *types.Err
		if errors.As(err, &fault) && fault.NodeID() > 0 {
			start = checked.NativeRep().SourceInfo().GetStartLocation(fault.NodeID())
		}
		return nil, faultAt(start, err.Error())
	}
	return &Program{program: program, loops: loops, cost: int64(estimate.Max)}, nil
}

// inspect refuses what CEL has and conditions have not.
func inspect(a *ast.AST) (loops bool, err error) {
	refuse := func(id int64, message string) {
		if err == nil {
			err = faultAt(a.SourceInfo().GetStartLocation(id), message)
		}
	}
	ast.PreOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.ComprehensionKind:
			loops = true
		case ast.StructKind: // protocol buffers
			refuse(e.ID(), "types can't be made here")
		case ast.CallKind:
			call := e.AsCall()
			switch call.FunctionName() {
			case "format", "join", "replace", "strings.quote", // one call could make a hundred megabytes of a text or a list
				"indexOf", "lastIndexOf": // quadratic: one call could take minutes; contains is not
				refuse(e.ID(), call.FunctionName()+" can't be used here")
			case overloads.Matches: // a pattern out of a record could be any size, and would be compiled each time
				if pattern := call.Args()[len(call.Args())-1]; pattern.Kind() != ast.LiteralKind {
					refuse(pattern.ID(), "matches needs its pattern written here")
				}
			}
		}
	}))
	return loops, err
}

func faultAt(at common.Location, message string) *Error {
	return &Error{Line: max(at.Line(), 1), Column: max(at.Column()+1, 1), Message: shorten(message)}
}

// firstOf gives the first fault in the text's order of reading, without the tails that say nothing to its author.
func firstOf(issues *cel.Issues) error {
	faults := issues.Errors()
	if len(faults) == 0 {
		return nil
	}
	first := faults[0]
	message, _, _ := strings.Cut(first.Message, " expecting {") // all tokens there are
	if strings.HasPrefix(message, "Syntax error:") {
		message = "syntax error" // what follows repeats the text, which could be anything; names that are not declared are told
	}
	return faultAt(first.Location, strings.TrimSuffix(message, " (in container '')"))
}
