package expressions

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/ext"

	"stopgate/gate"
)

// variable is one name that expressions on some events have.
type variable struct {
	name   string
	kind   *cel.Type
	events []gate.EventName // nil: all
}

// variables are all of them; [asked] has their values.
func variables() []variable {
	tool := []gate.EventName{gate.PreToolUse, gate.PostToolUse}
	return []variable{
		{"event", cel.StringType, nil},
		{"agent", cel.StringType, nil},
		{"session", cel.StringType, nil},
		{"turn", cel.IntType, nil},
		{"max_turns", cel.IntType, nil},
		{"labels", cel.MapType(cel.StringType, cel.StringType), nil},
		{"user_prompt", cel.StringType, nil},
		{"tools_used", cel.ListType(cel.StringType), nil},
		{"final_output", cel.StringType, []gate.EventName{gate.Stop}},
		{"tool_name", cel.StringType, tool},
		{"tool_input", cel.MapType(cel.StringType, cel.DynType), tool},
		{"tool_result", cel.StringType, tool[1:]},
		{"tool_succeeded", cel.BoolType, tool[1:]},
	}
}

func (v variable) on(event gate.EventName) bool {
	return v.events == nil || slices.Contains(v.events, event)
}

// namesOf are the variables of an event.
func namesOf(event gate.EventName) (names []string) {
	for _, v := range variables() {
		if v.on(event) {
			names = append(names, v.name)
		}
	}
	return names
}

// eventsWith says on which events alone there is a variable; empty: it is on all, or
// none.
func eventsWith(name string) string {
	var names []string
	for _, v := range variables() {
		if v.name == name {
			for _, e := range v.events {
				names = append(names, string(e))
			}
		}
	}
	return strings.Join(names, " and ")
}

// environment is what expressions on an event may use. Comprehensions are nested
// four deep at most, and patterns stand in the text, where their size is seen.
func (c *Compiler) environment(event gate.EventName) (*cel.Env, error) {
	if env := c.environments[event]; env != nil {
		return env, nil
	}
	options := []cel.EnvOption{
		cel.OptionalTypes(), ext.Strings(), ext.NativeTypes(reflect.TypeFor[Call](), reflect.TypeFor[Redirection](), ext.ParseStructTags(true)),
		cel.ParserRecursionLimit(64), cel.ParserExpressionSizeLimit(MaxBytes), cel.CostModelVersion(1),
		cel.ASTValidators(writtenPatterns{}, cel.ValidateRegexProgramSizeLimit(1000),
			cel.ValidateComprehensionNestingLimit(4), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),
	}
	for _, v := range variables() {
		if v.on(event) {
			options = append(options, cel.Variable(v.name, v.kind))
		}
	}
	env, err := cel.NewEnv(append(options, functions()...)...)
	if err != nil {
		return nil, fmt.Errorf("expressions on %s: %w", event, err)
	}
	if c.environments == nil {
		c.environments = map[gate.EventName]*cel.Env{}
	}
	c.environments[event] = env
	return env, nil
}

// costs are those that CEL has wrong or does not know: a step for each byte that is
// read as a shell would, a tenth of one for each that a function goes through.
func costs() []cost.OverloadModel {
	through := func(bytes cost.QuantityExpr) cost.OverloadModelOption {
		return cost.EvalCost(cost.Sum(cost.Const(cost.CallCost), cost.Scale(bytes, cost.StringTraversalCostFactor)))
	}
	models := []cost.OverloadModel{
		cost.Overload(shellOverload, cost.EvalCost(cost.Sum(cost.Const(cost.CallCost), cost.Length(cost.Arg(0))))),
		// The words of a list are counted, not their bytes, which the budget of the reading bounds.
		cost.Overload(shellListOverload, cost.EvalCost(cost.Sum(cost.Const(cost.CallCost), cost.Length(cost.Arg(0))))),
		cost.Overload("path_clean", through(cost.Length(cost.Arg(0)))),
		cost.Overload("path_base", through(cost.Length(cost.Arg(0)))),
		cost.Overload("path_ext", through(cost.Length(cost.Arg(0)))),
		cost.Overload("path_within", through(cost.Sum(cost.Length(cost.Arg(0)), cost.Length(cost.Arg(1))))),
		cost.Overload(overloads.SizeString, through(cost.Length(cost.Arg(0)))), // counts runes
		cost.MemberOverload(overloads.SizeStringInst, through(cost.Length(cost.Target()))),
	}
	for _, conversion := range []string{overloads.StringToBool, overloads.StringToDouble, overloads.StringToDuration, overloads.StringToInt, overloads.StringToTimestamp, overloads.StringToUint} {
		models = append(models, cost.Overload(conversion, through(cost.Length(cost.Arg(0))))) // what is none stands in the error
	}
	for _, search := range []string{"string_index_of_string", "string_index_of_string_int", "string_last_index_of_string", "string_last_index_of_string_int"} {
		models = append(models, cost.MemberOverload(search, through(cost.Sum(cost.Length(cost.Target()), cost.Length(cost.Arg(0))))))
	}
	return models
}
