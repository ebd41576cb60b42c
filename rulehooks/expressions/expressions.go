// Package expressions compiles and answers what specs ask about an event in CEL
// (https://cel.dev): the `when` of a hook, and the conditions and texts of a rule
// hook.
//
//	var c expressions.Compiler
//	condition, problems := c.Condition(gate.PreToolUse, `shell(tool_input.command).exists(c, c.program == "sudo")`)
//
// An expression is checked against the variables that its event has, so that a
// misspelt one, or one of another event, is found when the spec is read. It ends: it
// has no loops but over lists, its cost, memory and the size of what it is given
// are bounded, and patterns are RE2, in linear time. What cannot be answered, as a
// member that is not there, is an error and never a no.
package expressions

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"

	"stopgate/gate"
)

// MaxBytes is how long one expression may be; those that people write are far
// below it, and a parser's time is not.
const MaxBytes = 8 << 10

// Bounds of one answer.
const (
	// maxCost in CEL's units: a search through a megabyte for a pattern of some
	// length costs less, and half a second of an idle core is about as much.
	maxCost = 2_000_000
	// maxMemory is the size of the largest value, in tens of bytes or elements. CEL counts
	// no further than ten thousand values, and what has more is beyond every limit.
	// Without this option it counts nothing, and without the next it never stops.
	maxMemory = 2_000_000
	// checkEvery so many steps of a loop it is asked whether there is time left.
	checkEvery = 100
)

// Compiler compiles expressions. Its zero value is ready; it is for one goroutine.
// What it has compiled is safe for concurrent use.
type Compiler struct {
	environments map[gate.EventName]*cel.Env
}

// Condition is a compiled question; it is a [gate.Condition].
type Condition struct{ expression }

// expression is one compiled text.
type expression struct {
	text    string
	tree    *ast.AST
	program cel.Program
	adapter types.Adapter
}

// String is the expression as it was written.
func (e *expression) String() string { return e.text }

// Condition compiles a question about an event, which must be one that hooks are
// bound to. Where there are problems there is no condition.
func (c *Compiler) Condition(event gate.EventName, text string) (*Condition, []Problem) {
	e, kind, problems := c.compile(event, text)
	if problems != nil {
		return nil, problems
	}
	if kind != cel.BoolType && kind != cel.DynType {
		return nil, []Problem{{0, fmt.Sprintf("is of type %s, want true or false", kind)}}
	}
	return &Condition{e}, nil
}

// Equal reports whether both were written alike.
func (c *Condition) Equal(o *Condition) bool {
	return c == o || c != nil && o != nil && c.text == o.text
}

func (c *Compiler) compile(event gate.EventName, text string) (e expression, kind *cel.Type, problems []Problem) {
	switch {
	case len(text) > MaxBytes:
		return e, nil, []Problem{{0, fmt.Sprintf("is %d bytes long, want at most %d", len(text), MaxBytes)}}
	case strings.TrimSpace(text) == "":
		return e, nil, []Problem{{0, "is empty"}}
	}
	defer func() { // the parser's own failures are no better than the text's
		if p := recover(); p != nil {
			problems = []Problem{{0, "cannot be read"}}
		}
	}()
	env, err := c.environment(event)
	if err != nil {
		return e, nil, []Problem{{0, err.Error()}}
	}
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		return e, nil, problemsOf(env, event, text, issues)
	}
	least, err := env.EstimateCost(checked, nil)
	if err == nil && least.Min > maxCost {
		return e, nil, []Problem{{0, fmt.Sprintf("costs at least %d steps, want at most %d", least.Min, maxCost)}}
	}
	program, err := env.Program(checked, append(patterns{}.matching(),
		cel.CostLimit(maxCost), cel.MemoryLimit(maxMemory), cel.InterruptCheckFrequency(checkEvery))...)
	if err != nil {
		return e, nil, []Problem{{0, err.Error()}}
	}
	return expression{text, checked.NativeRep(), program, env.CELTypeAdapter()}, checked.OutputType(), nil
}

// Holds answers the question; see [gate.Condition].
func (c *Condition) Holds(ctx context.Context, in gate.Input) (bool, *gate.Failure) {
	type answer struct {
		holds   bool
		failure *gate.Failure
	}
	a, ended := inTime(ctx, func() (a answer) {
		a.holds, a.failure = c.holds(ctx, &asked{Context: ctx, in: in})
		return a
	})
	if !ended {
		return false, c.late()
	}
	return a.holds, a.failure
}

func (c *Condition) holds(ctx context.Context, a *asked) (bool, *gate.Failure) {
	out, failure := c.value(ctx, a)
	if failure != nil {
		return false, failure
	}
	holds, ok := out.(bool)
	if !ok {
		return false, &gate.Failure{Code: gate.BadExpression, Message: fmt.Sprintf("%s: is neither true nor false", brief(c.text))}
	}
	return holds, nil
}

// value is what the expression comes to.
func (e *expression) value(ctx context.Context, a *asked) (any, *gate.Failure) {
	if ctx.Err() != nil { // CEL itself asks only within loops
		return nil, e.late()
	}
	a.adapter = e.adapter
	out, _, err := e.program.ContextEval(ctx, a)
	switch {
	case ctx.Err() != nil:
		return nil, e.late()
	case err != nil:
		return nil, &gate.Failure{Code: gate.BadExpression, Message: fmt.Sprintf("%s: %s", brief(e.text), gate.FirstRunes(why(err), 300))}
	}
	if err, is := out.(*types.Err); is {
		return nil, &gate.Failure{Code: gate.BadExpression, Message: fmt.Sprintf("%s: %s", brief(e.text), gate.FirstRunes(err.Error(), 300))}
	}
	return out.Value(), nil
}

func (e *expression) late() *gate.Failure {
	return &gate.Failure{Code: gate.Timeout, Message: fmt.Sprintf("%s: was not answered in time", brief(e.text))}
}

// why says what a limit means.
func why(err error) string {
	if cancelled, ok := errors.AsType[interpreter.EvalCancelledError](err); ok && cancelled.Cause == interpreter.CostLimitExceeded {
		return "costs too much on this event"
	}
	if _, ok := errors.AsType[cost.LimitExceededError](err); ok {
		return "costs too much on this event"
	}
	return err.Error()
}

// brief is an expression on one line of a message.
func brief(text string) string {
	line := strings.Join(strings.Fields(text), " ")
	if short := gate.FirstRunes(line, 80); short != line {
		return short + "…"
	}
	return line
}
