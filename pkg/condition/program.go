package condition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

var (
	// ErrUndecided means that a condition is neither true nor false for an input: it asks for a member that isn't there, compares
	// what can't be compared, divides by zero, or costs too much. What follows from that is the caller's to say.
	ErrUndecided = errors.New("the condition can't be decided")
	// ErrCost is the ErrUndecided of a condition that costs more than MaxCost for an input.
	ErrCost = fmt.Errorf("%w: it costs too much", ErrUndecided)
)

// Program is a compiled condition. It is safe for concurrent use.
type Program struct {
	program cel.Program
	loops   bool
	cost    int64
}

// Cost is what one evaluation is estimated to cost at most, in the units of MaxCost, with lists and texts of the size
// that is assumed there. It is what a tenant's conditions are summed up by: see fair.Rota for what they then really
// take.
func (p *Program) Cost() int64 { return p.cost }

// Eval answers whether a condition holds for an input, a value for each variable of its Environment. It is done within MaxCost and
// never panics. An error is ErrUndecided, unless ctx ended in the midst of a loop: then it is the context's, and says nothing about
// the condition. The text of an error may quote the input.
func (p *Program) Eval(ctx context.Context, input map[string]any) (bool, error) {
	holds, _, err := p.Measure(ctx, input)
	return holds, err
}

// Measure is Eval and tells what the evaluation cost, in the units of MaxCost, also where it failed.
func (p *Program) Measure(ctx context.Context, input map[string]any) (holds bool, cost int64, err error) {
	var (
		result  ref.Val
		details *cel.EvalDetails
	)
	if p.loops {
		result, details, err = p.program.ContextEval(ctx, input)
	} else { // nothing to interrupt, and a third of the time saved
		result, details, err = p.program.Eval(input)
	}
	if details != nil {
		if actual := details.ActualCost(); actual != nil {
			cost = int64(min(*actual, MaxCost)) //nolint:gosec // bounded
		}
	}
	if err != nil {
		if err = reason(ctx, err); errors.Is(err, ErrCost) {
			cost = MaxCost
		}
		return false, cost, err
	}
	if holds, ok := result.(types.Bool); ok {
		return bool(holds), cost, nil
	}
	return false, cost, fmt.Errorf("%w: its result is not a bool but of type %s", ErrUndecided, result.Type().TypeName())
}

// nowhere is the place of an error that has none.
const nowhere = -1

// Two errors of CEL are shared by all evaluations, and marked by the first one with its place, without a lock. Marked here, they stay
// as they are.
func init() {
	types.LabelErrNode(nowhere, types.NoSuchOverloadErr())
	types.LabelErrNode(nowhere, types.Int(math.MaxInt64).ConvertToType(types.TimestampType))
}

func reason(ctx context.Context, err error) error {
	var stopped interpreter.EvalCancelledError
	switch {
	case errors.As(err, &stopped) && stopped.Cause == interpreter.CostLimitExceeded:
		return ErrCost
	case ctx.Err() != nil && errors.Is(err, interpreter.InterruptError{}):
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %s", ErrUndecided, shorten(err.Error()))
}

// shorten keeps records out of logs: an error quotes what it could not convert, however long.
func shorten(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	end := most
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
