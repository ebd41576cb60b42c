package expressions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"stopgate/gate"
	"stopgate/internal/jsonscan"
	"stopgate/rulehooks/shell"
)

// Bounds of what an event brings along. What is beyond them cannot be asked about.
const (
	maxText   = 4 << 20
	maxValues = 10_000 // in a tool's input
	maxNested = 100
	maxWords  = 1 << 19 // of all programs that a command starts: 8 MiB
)

// asked is one hook's event as its expressions see it: each value is worked out
// once, and only if something asks for it. It is for one goroutine.
type asked struct {
	context.Context
	in      gate.Input
	adapter types.Adapter // of the environment that the expressions were compiled in

	input    any // of the tool, or a *types.Err; nil: not asked for yet
	recalled *gate.Recalled
	lost     ref.Val // why nothing is recalled
	budget   *shell.Budget
	read     map[string]ref.Val // what shell said of a text
}

var _ cel.FunctionActivation = (*asked)(nil)

func (a *asked) Parent() cel.Activation { return nil }

// ResolveName is the value of a variable, or why there is none.
func (a *asked) ResolveName(name string) (any, bool) {
	ev := a.in.Event
	switch name {
	case "event":
		return string(a.in.Hook.Event), true
	case "agent":
		return ev.Agent, true
	case "session":
		return ev.Session, true
	case "turn":
		return int64(ev.Turn), true
	case "max_turns":
		return int64(ev.MaxTurns), true
	case "labels":
		if ev.Labels == nil {
			return map[string]string{}, true
		}
		return ev.Labels, true
	case "final_output":
		return bounded(name, ev.FinalOutput), true
	case "tool_name":
		return ev.ToolName, true
	case "tool_input":
		return a.toolInput(), true
	case "tool_result":
		return bounded(name, ev.ToolResult), true
	case "tool_succeeded":
		return ev.ToolSucceeded, true
	case "user_prompt":
		said, lost := a.recall()
		if lost != nil {
			return lost, true
		}
		return said.Prompt, true
	case "tools_used":
		said, lost := a.recall()
		if lost != nil {
			return lost, true
		}
		return append([]string{}, said.Tools...), true
	}
	return nil, false
}

func bounded(name, text string) any {
	if len(text) > maxText {
		return types.NewErr("%s has %d bytes, more than the %d that can be asked about", name, len(text), maxText)
	}
	return text
}

// ResolveFunction is what `shell` does for this event.
func (a *asked) ResolveFunction(name string) (cel.LateBoundFunction, bool) {
	return func(_ string, args ...ref.Val) ref.Val {
		switch command := args[0].(type) {
		case types.String:
			return a.shell(string(command))
		case traits.Lister:
			text, err := a.lineOf(command)
			if err != nil {
				return types.WrapErr(err)
			}
			return a.shell(text)
		}
		return types.MaybeNoSuchOverloadErr(args[0])
	}, name == "shell"
}

// lineOf is the command line that starts a program with its arguments, as Codex has
// them: ["bash", "-lc", "ls"]. One word alone is taken for a line, which some
// hosts make of it, and which is the same if it is a program's name.
func (a *asked) lineOf(argv traits.Lister) (string, error) {
	var words []shell.Word
	size := 0
	for it := argv.Iterator(); it.HasNext() == types.True; {
		word, ok := it.Next().(types.String)
		if !ok {
			return "", errors.New("shell: the list holds what is no text")
		}
		if size += len(word); size > maxText || len(words) == maxValues {
			return "", fmt.Errorf("shell: the list has more than %d bytes, or %d words", maxText, maxValues)
		}
		words = append(words, shell.Word{Text: string(word), Literal: true})
	}
	if len(words) == 1 {
		return words[0].Text, nil
	}
	if !a.reading().Spend(size / listBytes) { // a condition may ask about a long one again and again
		return "", errInvolved
	}
	return shell.Quoted(words), nil
}

// shell reads a command as a shell would. A reading that had to end early is
// none: what it left out may be what is looked for.
func (a *asked) shell(text string) ref.Val {
	if calls, ok := a.read[text]; ok {
		return calls
	}
	calls, words := []Call{}, 0
	for c := range shell.Read(a.reading(), text) {
		// Programs that are guessed at have a thousand arguments each, and the same.
		if words += len(c.Args); words > maxWords || len(calls) == maxParts {
			return types.NewErr("shell: the command starts more than %d programs, or with more than %d words", maxParts, maxWords)
		}
		calls = append(calls, callOf(c))
	}
	if a.budget.Spent() {
		return types.WrapErr(errInvolved)
	}
	a.read[text] = a.adapter.NativeToValue(calls)
	return a.read[text]
}

var errInvolved = errors.New("shell: the command is too involved to be read")

// listBytes of a list are a unit of the budget each time it is made a line.
const listBytes = 64

// reading is the budget of all that is read for this event.
func (a *asked) reading() *shell.Budget {
	if a.budget == nil {
		a.budget, a.read = shell.NewBudget(a), map[string]ref.Val{}
	}
	return a.budget
}

// recall reads the conversation, which costs more than all else here.
func (a *asked) recall() (gate.Recalled, ref.Val) {
	if a.recalled == nil && a.lost == nil {
		said, err := gate.Recalled{}, errors.New("there is no conversation to look into")
		if talk, ok := a.in.Transcript.(gate.Recalling); ok {
			said, err = talk.Recall(a)
		}
		if err != nil {
			a.lost = types.WrapErr(err)
		} else {
			a.recalled = &said
		}
	}
	if a.lost != nil {
		return gate.Recalled{}, a.lost
	}
	return *a.recalled, nil
}

// toolInput is always an object, as hooks of every kind get it (spec/azure.md 25).
func (a *asked) toolInput() any {
	if a.input == nil {
		v, err := valueOf(a.in.Event.ToolInput)
		if err != nil {
			a.input = types.WrapErr(err)
		} else {
			a.input = v
		}
	}
	return a.input
}

// valueOf reads a tool's input. A whole number is an int, of which "a + 1" holds, any
// other a double; CEL compares both.
func valueOf(input json.RawMessage) (map[string]any, error) {
	if len(input) > maxText {
		return nil, fmt.Errorf("tool_input has %d bytes, more than the %d that can be asked about", len(input), maxText)
	}
	if !jsonscan.Valid(input) {
		return map[string]any{}, nil
	}
	v, ok := jsonscan.Value(input, maxValues, maxNested, number)
	if !ok {
		return nil, fmt.Errorf("tool_input holds more than %d values, or nests them deeper than %d", maxValues, maxNested)
	}
	switch v := v.(type) {
	case map[string]any:
		return v, nil
	case nil:
		return map[string]any{}, nil
	}
	return map[string]any{"value": v}, nil
}

func number(digits string) any {
	if !strings.ContainsAny(digits, ".eE") {
		if i, err := strconv.ParseInt(digits, 10, 64); err == nil {
			return i
		}
	}
	f, _ := strconv.ParseFloat(digits, 64) // beyond a double: infinite, as everywhere
	return f
}
