// Package condition compiles and evaluates conditions that people store: CEL expressions (https://cel.dev) over records, which answer
// yes or no. Whoever writes one is not trusted with the machine: its length, its depth, its patterns and its cost are bounded, and it
// can read nothing but its input.
package condition

import (
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"
	"github.com/maypok86/otter/v2"
)

// Variable is a name that conditions may use.
type Variable struct{ declare cel.EnvOption }

// Map declares an object with members of any type: a record, see FromJSON.
func Map(name string) Variable {
	return Variable{cel.Variable(name, cel.MapType(cel.StringType, cel.DynType))}
}

// Timestamp declares a moment; its value is a time.Time.
func Timestamp(name string) Variable { return Variable{cel.Variable(name, cel.TimestampType)} }

// Environment is what conditions of one kind may use: their variables, CEL's standard functions and macros, and of the extension
// "strings" charAt, lowerAscii, reverse, split, substring, trim and upperAscii. The pattern of matches is written in the condition. An
// Environment is safe for concurrent use and meant to live as long as the process.
type Environment struct {
	env      *cel.Env
	programs *otter.Cache[string, compiled]
}

// NewEnvironment fails only for names that are declared twice.
func NewEnvironment(variables ...Variable) (*Environment, error) {
	options := []cel.EnvOption{
		cel.EagerlyValidateDeclarations(true), // not by the first condition
		ext.Strings(),
		cel.CrossTypeNumericComparisons(true), // a record's 1 and 1.0 are both just numbers
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals()),
		cel.ParserRecursionLimit(maxDepth),
		cel.ParserErrorRecoveryLimit(1), // one fault is told
		cel.ExpressionNodeLimit(maxNodes),
		cel.RegexProgramSizeLimit(maxPattern),
	}
	for _, v := range variables {
		options = append(options, v.declare)
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("condition environment: %w", err)
	}
	return &Environment{env: env, programs: newCache()}, nil
}
