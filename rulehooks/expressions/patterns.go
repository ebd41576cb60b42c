package expressions

import (
	"regexp"
	"regexp/syntax"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// writtenPatterns refuses a regular expression that an event would bring along, and one
// that is none.
type writtenPatterns struct{}

func (writtenPatterns) Name() string { return "stopgate.patterns" }

func (writtenPatterns) Validate(_ *cel.Env, _ cel.ValidatorConfig, a *ast.AST, issues *cel.Issues) {
	for _, call := range ast.MatchDescendants(ast.NavigateAST(a), ast.FunctionMatcher(overloads.Matches)) {
		args := call.AsCall().Args()
		pattern := args[len(args)-1]
		if pattern.Kind() != ast.LiteralKind {
			issues.ReportErrorAtID(pattern.ID(), "the pattern of matches must be written out, as in matches(\"^a+$\")")
			continue
		}
		text, _ := pattern.AsLiteral().Value().(string) // it was checked to be one
		if why := whyNoPattern(text); why != "" {
			issues.ReportErrorAtID(pattern.ID(), "%s", why)
		}
	}
}

// patterns are how many instructions each pattern of an expression is compiled to.
// CEL would charge a match by the length of the pattern, and (.?){200} is short: in the
// worst case each byte of a text is held against each instruction.
type patterns map[string]uint64

// A match costs so much for each byte of the text: (perByte + instructions) / perUnit.
// Measured are up to five nanoseconds for an instruction, and a hundred for a byte.
const (
	perByte = 20
	perUnit = 50
)

func (p patterns) cost(pattern, text string) uint64 {
	return 1 + uint64(len(text))*(perByte+p[pattern])/perUnit
}

// matching is how programs match, and what they are charged for it. A match cannot be
// interrupted, so one that would cost too much is not begun; its charge then
// ends the answer.
func (p patterns) matching() []cel.ProgramOption {
	compiled := func(call interpreter.InterpretableCall, pattern string) (interpreter.InterpretableCall, error) {
		tree, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			return nil, err
		}
		program, err := syntax.Compile(tree.Simplify())
		if err != nil {
			return nil, err
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil, err
		}
		p[pattern] = uint64(len(program.Inst))
		return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
			text, ok := args[0].(types.String)
			switch {
			case !ok:
				return types.MaybeNoSuchOverloadErr(args[0])
			case p.cost(pattern, string(text)) > maxCost:
				return types.NewErr("matches: costs too much on this event")
			}
			return types.Bool(re.MatchString(string(text)))
		}), nil
	}
	charge := func(args []ref.Val, _ ref.Val) *uint64 {
		text, isText := args[0].(types.String)
		pattern, isPattern := args[1].(types.String)
		if !isText || !isPattern {
			return nil
		}
		costs := p.cost(string(pattern), string(text))
		return &costs
	}
	return []cel.ProgramOption{
		cel.OptimizeRegex(&interpreter.RegexOptimization{Function: overloads.Matches, RegexIndex: 1, Factory: compiled}),
		cel.CostTrackerOptions(cost.OverloadTracker(overloads.Matches, charge), cost.OverloadTracker(overloads.MatchesString, charge)),
	}
}
