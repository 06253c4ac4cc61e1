package condition

import (
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// MaxCost bounds what one evaluation may cost. An operation or the look-up of a member costs 1, and what goes through a text or a list
// costs more with its size. A condition is refused when it would cost more with lists of assumedSize entries and texts of as many
// characters, and stopped when it does cost more with the real ones.
const (
	MaxCost     = 200_000 // a few milliseconds
	assumedSize = 50
)

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

// pricer prices what CEL's own model has too cheap: it doesn't know the operands of a call whose types it can't tell, as with all that
// comes out of a record, trusts patterns, and looks at lists from outside only. Lists within lists can stand for far more than was read
// or written: [[x, x, x]].all(y, [[y, y, y]].all(z, z == z)) compares nine x, and a few more levels never end. So a list pays for all
// that is in it when it is made, and a comparison when it compares; then nothing that exists is larger than what was paid for.
type pricer struct{}

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
	case overloads.Matches:
		return price(texts(args[:1]) * (12 + texts(args[1:])*10/4)) // a pattern of a few characters can have 200 instructions
	case overloads.TimeGetFullYear, overloads.TimeGetMonth, overloads.TimeGetDayOfYear, overloads.TimeGetDate, overloads.TimeGetDayOfMonth,
		overloads.TimeGetDayOfWeek, overloads.TimeGetHours, overloads.TimeGetMinutes, overloads.TimeGetSeconds, overloads.TimeGetMilliseconds:
		if len(args) == 2 { // reads the time zone's file
			return price(500)
		}
	case overloads.Size, overloads.TypeConvertBool, overloads.TypeConvertInt, overloads.TypeConvertUint, overloads.TypeConvertDouble,
		overloads.TypeConvertString, overloads.TypeConvertBytes, overloads.TypeConvertTimestamp, overloads.TypeConvertDuration:
		return price(texts(args))
	}
	if overload == "" { // CEL's model goes by it
		return price(texts(args))
	}
	return nil
}

// sizes gives up, with the largest number, where a walk would cost more than MaxCost.
var sizes = types.NewSizeCalculator(types.SizeCalculatorMaxTraversal(MaxCost), types.SizeCalculatorMaxDepth(maxDepth))

// sizeOf counts all values in a value, and a text's tens of bytes.
func sizeOf(v ref.Val) uint64 { return uint64(sizes.AggregateSize(v)) }

// texts is 1, and 1 for ten bytes of the texts among some values.
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

// comparison costs little between lists of different lengths, which is what most are compared for: with [].
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
	if _, ok := to.(traits.MutableLister); ok { // what a loop gathers; the entries paid when they were made
		return 1
	}
	return sizeOf(result)
}

var one uint64 = 1

func price(n uint64) *uint64 {
	if n == 1 {
		return &one // no allocation
	}
	return &n
}

const construction = "construction"

// constructor charges for what it makes.
type constructor struct {
	interpreter.InterpretableConstructor
}

func priceConstructors(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	c, ok := node.(interpreter.InterpretableConstructor)
	if !ok {
		return node, nil
	}
	for _, v := range c.InitVals() {
		if _, constant := v.(interpreter.InterpretableConst); !constant {
			return constructor{c}, nil
		}
	}
	return node, nil // made once, by cel.OptOptimize, which would not know it in disguise
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
