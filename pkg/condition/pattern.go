package condition

import (
	"regexp"

	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// patterns makes a condition compile its regular expressions once. Go's regular expressions (RE2) take time linear in
// the text.
var patterns = []*interpreter.RegexOptimization{pattern(overloads.Matches), pattern(overloads.MatchesString)}

func pattern(overload string) *interpreter.RegexOptimization {
	return &interpreter.RegexOptimization{
		Function: overloads.Matches, OverloadID: overload, RegexIndex: 1, Factory: compilePattern,
	}
}

func compilePattern(call interpreter.InterpretableCall, text string) (interpreter.InterpretableCall, error) {
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(),
		func(args ...ref.Val) ref.Val {
			subject, ok := args[0].(types.String)
			if !ok {
				return types.NoSuchOverloadErr()
			}
			if len(subject) > maxText { // several texts joined by the condition
				return tooLong
			}
			return types.Bool(compiled.MatchString(string(subject)))
		}), nil
}
