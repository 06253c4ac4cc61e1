package condition

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// MaxCost bounds the cost of one evaluation. An operation or the look-up of a member costs 1; what reads a whole text
// or list costs more with its size. Compile refuses a condition that would cost more with lists of assumedSize
// entries and texts of assumedSize characters; Eval stops one that costs more with the real input.
const (
	MaxCost     = 200_000 // a few milliseconds
	assumedSize = 50
)

// PauseCost is what an evaluation costs between two pauses: some tens of microseconds.
const PauseCost = 500

// interruptEvery is how many entries loops read between looks at the context.
const interruptEvery = 64

type estimator struct{}

func (estimator) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}

func (estimator) EstimateSize(node cost.AstNode) *cost.SizeEstimate {
	switch node.Type().Kind() {
	case types.DynKind, types.ListKind, types.MapKind, types.StringKind, types.BytesKind:
		return &cost.SizeEstimate{Max: assumedSize}
	}
	return nil
}

// pricer corrects CEL's own cost model, which is too cheap in four places: it does not count the entries that a loop
// skips, it does not know the operands of a call on values of unknown type (all that comes out of a record), it does
// not look at the size of patterns, and it counts only the outer entries of a list. Lists that share entries can stand
// for far more values than were read or written: [[x, x, x]].all(y, [[y, y, y]].all(z, z == z)) compares nine x, and
// with a few more levels it would never end. So the construction of a list is charged for all values inside it, and a
// comparison for all values on both sides. Then no value can be larger than what was charged for it.
type pricer struct{}

// newTracker makes a tracker that knows the costs of all functions of an environment. CEL tells them only to programs.
func newTracker(env *cel.Env) (*cost.Tracker, error) {
	constant, issues := env.Compile("true")
	if err := issues.Err(); err != nil {
		return nil, err
	}
	program, err := env.Program(constant, cel.CostLimit(MaxCost), cel.CostTracking(pricer{}))
	if err != nil {
		return nil, err
	}
	frame, err := interpreter.NewExecutionFrame(interpreter.EmptyActivation())
	if err != nil {
		return nil, err
	}
	defer frame.Close()
	if _, _, err := program.Eval(frame); err != nil {
		return nil, err
	}
	return frame.CostTracker(), nil
}

// pauses is the pricer of an evaluation that pauses.
type pauses struct {
	pricer
	tracker *cost.Tracker
	pause   func() error
	next    uint64 // the cost at which to pause
	failed  error  // of pause
}

func (p *pauses) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	if spent := p.tracker.ActualCost(); spent >= p.next {
		p.next = spent + PauseCost
		if p.failed = p.pause(); p.failed != nil {
			panic(interpreter.EvalCancelledError{Message: "a pause failed", Cause: interpreter.ContextCancelled})
		}
	}
	return p.pricer.CallCost(function, overload, args, result)
}

func (pricer) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	switch function {
	case operators.Equals, operators.NotEquals:
		return price(comparison(args[0], args[1]))
	case operators.In:
		return price(membership(args[0], args[1]))
	case operators.Add:
		return price(addition(args[0], result))
	case construction:
		return price(sizeOf(result))
	case iteration:
		return price(1)
	case overloads.Matches:
		// A pattern of a few characters can have 200 instructions.
		return price(texts(args[:1]) * (12 + texts(args[1:])*10/4))
	case overloads.TimeGetFullYear, overloads.TimeGetMonth, overloads.TimeGetDayOfYear, overloads.TimeGetDate,
		overloads.TimeGetDayOfMonth, overloads.TimeGetDayOfWeek, overloads.TimeGetHours, overloads.TimeGetMinutes,
		overloads.TimeGetSeconds, overloads.TimeGetMilliseconds:
		if len(args) == 2 { // with a time zone, which is read from a file
			return price(500)
		}
	case overloads.Size, overloads.TypeConvertBool, overloads.TypeConvertInt, overloads.TypeConvertUint,
		overloads.TypeConvertDouble, overloads.TypeConvertString, overloads.TypeConvertBytes,
		overloads.TypeConvertTimestamp, overloads.TypeConvertDuration:
		return price(texts(args))
	}
	if overload == "" { // CEL's model needs the overload to know the operands
		return price(texts(args))
	}
	return nil
}

// sizes stops where a walk over a value would cost more than MaxCost, and then gives the largest number.
var sizes = types.NewSizeCalculator(types.SizeCalculatorMaxTraversal(MaxCost), types.SizeCalculatorMaxDepth(maxDepth))

// sizeOf counts all values inside a value; a text counts one for every ten bytes.
func sizeOf(v ref.Val) uint64 { return uint64(sizes.AggregateSize(v)) }

// texts is 1 plus 1 for every ten bytes of the texts in values. It ignores values that are not texts.
func texts(values []ref.Val) uint64 {
	n := uint64(1)
	for _, v := range values {
		switch v := v.(type) {
		case types.String:
			n += uint64(len(v)) / 10
		case types.Bytes:
			n += uint64(len(v)) / 10
		}
	}
	return n
}

// comparison is cheap for lists of different lengths: the common case is a comparison with [].
func comparison(a, b ref.Val) uint64 {
	switch a := a.(type) {
	case types.String:
		if b, ok := b.(types.String); ok && len(a) == len(b) {
			return 1 + uint64(len(a))/10
		}
	case traits.Lister, traits.Mapper:
		if other, ok := b.(traits.Sizer); ok && a.(traits.Sizer).Size() == other.Size() {
			return sizeOf(a) + sizeOf(b)
		}
	}
	return 1
}

func membership(v, in ref.Val) uint64 {
	list, ok := in.(traits.Lister)
	if !ok {
		return texts([]ref.Val{v})
	}
	entries := 1 + uint64(list.Size().(types.Int))
	switch v.(type) {
	case traits.Lister, traits.Mapper:
		return entries + sizeOf(v) + sizeOf(list)
	}
	return entries
}

func addition(to, result ref.Val) uint64 {
	// The accumulator of a loop: its entries were charged when they were made.
	if _, ok := to.(traits.MutableLister); ok {
		return 1
	}
	return sizeOf(result)
}

var one uint64 = 1

func price(n uint64) *uint64 {
	if n == 1 {
		return &one // saves an allocation
	}
	other := n // the address of n would mean an allocation in any case
	return &other
}

// What costs something, but is not a call of a function.
const (
	construction = "construction"
	iteration    = "iteration"
)

// priced charges for lists, maps and the steps of loops, which are the nodes with these ids.
func priced(steps map[int64]bool) interpreter.InterpretableDecoratorV2 {
	return func(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		if steps[node.ID()] {
			return &step{node}, nil
		}
		c, ok := node.(interpreter.InterpretableConstructor)
		if !ok {
			return node, nil
		}
		for _, v := range c.InitVals() {
			if _, constant := v.(interpreter.InterpretableConst); !constant {
				return constructor{c}, nil
			}
		}
		// A constant is made once, by cel.OptOptimize, which does not recognize a constructor that is wrapped.
		return node, nil
	}
}

// constructor charges for the list or map that it makes.
type constructor struct {
	interpreter.InterpretableConstructor
}

func (c constructor) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := c.InterpretableConstructor.Exec(frame)
	if costs := frame.CostTracker(); costs != nil {
		costs.EvalUnary(frame, c.ID(), c, v, v)
	}
	return v
}

func (c constructor) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, c.Exec)
}

func (constructor) Function() string   { return construction }
func (constructor) OverloadID() string { return construction }

// step charges for an entry of a loop.
type step struct{ interpreter.InterpretableV2 }

func (s *step) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := s.InterpretableV2.Exec(frame)
	if costs := frame.CostTracker(); costs != nil {
		costs.EvalZeroArity(frame, s.ID(), s, v)
	}
	return v
}

func (s *step) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, s.Exec)
}

func (*step) Function() string   { return iteration }
func (*step) OverloadID() string { return iteration }
