// Package condition compiles and evaluates stored conditions: CEL expressions (https://cel.dev) over records, with a
// boolean result. The authors of conditions are not trusted: the length, depth, patterns and cost of a condition are
// bounded, and it reads nothing but its input.
package condition

import (
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/ext"

	"github.com/idplatform/idplatform/pkg/cache"
)

// Variable is a name that conditions can use.
type Variable struct{ declare cel.EnvOption }

// Map declares an object with members of any type, such as a record (see FromJSON).
func Map(name string) Variable {
	return Variable{cel.Variable(name, cel.MapType(cel.StringType, cel.DynType))}
}

// Timestamp declares a moment; its value in an input is a time.Time.
func Timestamp(name string) Variable { return Variable{cel.Variable(name, cel.TimestampType)} }

// Text declares a string.
func Text(name string) Variable { return Variable{cel.Variable(name, cel.StringType)} }

// Texts declares a list of strings; its value in an input is a []string.
func Texts(name string) Variable { return Variable{cel.Variable(name, cel.ListType(cel.StringType))} }

// Flag declares a boolean.
func Flag(name string) Variable { return Variable{cel.Variable(name, cel.BoolType)} }

// Networks declares the functions ip and cidr, such as in cidr("10.0.0.0/8").containsIP(address), and no variable.
func Networks() Variable { return Variable{ext.Network()} }

// Environment declares what one kind of condition can use: its variables, CEL's standard functions and macros, and
// from the extension "strings" charAt, lowerAscii, reverse, split, substring, trim and upperAscii. The pattern of
// matches must be a literal. An Environment is safe for concurrent use; create it once and keep it for the life of
// the process.
type Environment struct {
	env      *cel.Env
	result   *cel.Type
	tracker  *cost.Tracker
	programs *cache.Cache[string, compiled]
}

// NewEnvironment fails only if a name is declared twice.
func NewEnvironment(variables ...Variable) (*Environment, error) {
	return environmentOf(cel.BoolType, variables)
}

// NewTexts is NewEnvironment for expressions whose result is a text (Program.Text).
func NewTexts(variables ...Variable) (*Environment, error) {
	return environmentOf(cel.StringType, variables)
}

func environmentOf(result *cel.Type, variables []Variable) (*Environment, error) {
	options := []cel.EnvOption{
		cel.EagerlyValidateDeclarations(true), // report faulty declarations here, not at the first condition
		ext.Strings(),
		cel.CrossTypeNumericComparisons(true), // a record's 1 and 1.0 are the same number
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals()),
		cel.ParserRecursionLimit(maxDepth),
		cel.ParserErrorRecoveryLimit(1), // only the first fault is reported
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
	tracker, err := newTracker(env)
	if err != nil {
		return nil, fmt.Errorf("condition environment: %w", err)
	}
	return &Environment{env: env, result: result, tracker: tracker, programs: newCache()}, nil
}
