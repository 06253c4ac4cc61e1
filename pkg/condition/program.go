package condition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

var (
	// ErrUndecided means that a condition is neither true nor false for an input: it reads a member that does not
	// exist, compares values that cannot be compared, divides by zero, or costs too much. The caller decides what
	// follows.
	ErrUndecided = errors.New("the condition cannot be decided")
	// ErrCost is the ErrUndecided of a condition that would cost more than MaxCost for an input.
	ErrCost = fmt.Errorf("%w: it costs too much", ErrUndecided)
)

// Program is a compiled condition. It is safe for concurrent use.
type Program struct {
	program cel.Program
	tracker *cost.Tracker // copied for each evaluation
	loops   bool
	cost    int64
}

// Cost estimates the most that one evaluation can cost, in the units of MaxCost, with lists and texts of the size
// assumed there. Services limit the sum of these costs for a tenant; fair.TenantQueue shares out what the evaluations
// really take.
func (p *Program) Cost() int64 { return p.cost }

// Eval reports whether a condition holds for an input, which has a value for each variable of the Environment. It
// costs at most MaxCost and never panics. Its error is ErrUndecided, unless ctx ends during a loop: then it is the
// context's, which says nothing about the condition. The text of an error may quote the input.
func (p *Program) Eval(ctx context.Context, input map[string]any) (bool, error) {
	holds, _, err := p.Measure(ctx, input, nil)
	return holds, err
}

// Measure is Eval that also returns the cost of the evaluation, in the units of MaxCost, with an error too. pause,
// which may be nil, is called each time that the evaluation has cost about PauseCost more, so that it can let other
// work go first. Its error ends the evaluation and is returned.
func (p *Program) Measure(ctx context.Context, input map[string]any, pause func() error) (
	holds bool, cost int64, err error,
) {
	result, cost, err := p.eval(ctx, input, pause)
	if err != nil {
		return false, cost, err
	}
	if holds, ok := result.(types.Bool); ok {
		return bool(holds), cost, nil
	}
	return false, cost, wrongType(result, "a bool")
}

// Text returns the result of an expression of NewTexts for an input, up to 64 KiB. The error is as Eval's.
func (p *Program) Text(ctx context.Context, input map[string]any) (string, error) {
	result, _, err := p.eval(ctx, input, nil)
	if err != nil {
		return "", err
	}
	text, ok := result.(types.String)
	if !ok {
		return "", wrongType(result, "a text")
	}
	if len(text) > maxText {
		return "", fmt.Errorf("%w: its result is longer than %d bytes", ErrUndecided, maxText)
	}
	return string(text), nil
}

func wrongType(result ref.Val, want string) error {
	return fmt.Errorf("%w: its result is not %s but of type %s", ErrUndecided, want, result.Type().TypeName())
}

// eval is Measure with whatever the result is.
func (p *Program) eval(ctx context.Context, input map[string]any, pause func() error) (
	result ref.Val, cost int64, err error,
) {
	frame, err := interpreter.NewExecutionFrame(input)
	if err != nil {
		return nil, 0, err
	}
	defer frame.Close()
	if p.loops { // without loops there is nothing to interrupt
		if err := frame.SetContext(ctx, interruptEvery); err != nil {
			return nil, 0, err
		}
	}
	tracker, err := p.tracker.Clone()
	if err != nil {
		return nil, 0, err
	}
	frame.SetCostTracker(tracker)
	var rests *pauses
	if p.loops && pause != nil {
		rests = &pauses{tracker: tracker, pause: pause, next: PauseCost}
		tracker.Estimator = rests
	}
	result, _, err = p.program.Eval(frame)
	cost = int64(min(tracker.ActualCost(), MaxCost)) //nolint:gosec // bounded
	switch {
	case rests != nil && rests.failed != nil:
		return nil, cost, rests.failed
	case err != nil:
		if err = reason(ctx, err); errors.Is(err, ErrCost) {
			cost = MaxCost
		}
		return nil, cost, err
	}
	return result, cost, nil
}

// nowhere is the node id of an error that belongs to no place in the text.
const nowhere = -1

// All evaluations share two errors of CEL, and the first evaluation that meets one labels it with its node, without a
// lock. Labelled here in advance, they are not written again.
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
	text := err.Error()
	if member, ok := strings.CutPrefix(text, "no such key: "); ok {
		text = "there is no member " + member
	}
	return fmt.Errorf("%w: %s", ErrUndecided, shorten(text))
}

// shorten limits how much of a record can get into logs: an error quotes the value that it could not convert.
func shorten(s string) string {
	const limit = 200
	if len(s) <= limit {
		return s
	}
	end := limit
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
