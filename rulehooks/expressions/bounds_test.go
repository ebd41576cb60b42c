package expressions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/traits"

	"stopgate/gate"
)

// Each bound is met by what is just beyond it, and says which it is; what is just
// within is answered.
func TestBounds(t *testing.T) {
	text := func(n int) json.RawMessage { // an input of n bytes
		const around = `{"c":""}`
		return json.RawMessage(`{"c":"` + strings.Repeat("x", n-len(around)) + `"}`)
	}
	texts := json.RawMessage(`{"l":[` + strings.Repeat(`"a",`, maxValues/2-1) + `"a"]}`)
	commas := func(n int) gate.Event { return gate.Event{ToolResult: strings.Repeat(",", n)} }
	for _, tt := range []struct {
		name string
		ev   gate.Event
		text string
		says string // "": it holds
	}{
		{"an input of 4 MiB", gate.Event{ToolInput: text(maxText)}, `tool_input.c.startsWith("x")`, ""},
		{"a longer one", gate.Event{ToolInput: text(maxText + 1)}, `tool_input.c.startsWith("x")`, "tool_input has 4194305 bytes, more than the 4194304"},
		{"a list of 4 MiB", gate.Event{ToolInput: text(maxText / 2)}, `shell([tool_input.c, tool_input.c]).size() >= 0`, ""},
		{"a longer list", gate.Event{ToolInput: text(maxText/2 + 10)}, `shell([tool_input.c, tool_input.c]).size() >= 0`, "shell: the list has more than 4194304 bytes, or 10000 words"},
		{"many parts", commas(maxParts - 1000), fmt.Sprintf(`tool_result.split(",").size() == %d`, maxParts-999), ""},
		{"too many", commas(maxParts), `tool_result.split(",").size() > 0`, "split would make more than"},
		{"a few of many parts", commas(maxText), `tool_result.split(",", 3).size() == 3 && tool_result.split(",", 0).size() == 0`, ""},
		{"a few too many", commas(maxText), fmt.Sprintf(`tool_result.split(",", %d).size() > 0`, maxParts+1), "split would make more than"},
		{"all, in another way", commas(maxParts), `tool_result.split(",", -7).size() > 0`, "split would make more than"},
		{"a list of texts", gate.Event{ToolInput: texts}, `tool_input.l.map(x, x).size() > 0`, ""},
		{"a list of such lists, which costs no more", gate.Event{ToolInput: texts}, `tool_input.l.map(x, tool_input.l).size() > 0`, "memory limit exceeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			holds, failure := answered(t, asking(gate.PostToolUse, tt.ev), tt.text)
			if tt.says == "" && (!holds || failure != nil) || tt.says != "" && (holds || failure == nil || failure.Code != gate.BadExpression || !strings.Contains(failure.Message, tt.says)) {
				t.Errorf("%v, %.300v", holds, failure)
			}
		})
	}
}

// A list has at most ten thousand words, wherever it comes from.
func TestShellOfLongList(t *testing.T) {
	for words, good := range map[int]bool{maxValues: true, maxValues + 1: false} {
		list := types.DefaultTypeAdapter.NativeToValue(slices.Repeat([]string{"a"}, words)).(traits.Lister)
		a := &asked{Context: t.Context()}
		if _, err := a.lineOf(list); (err == nil) != good {
			t.Errorf("%d words: %v", words, err)
		}
	}
}

// What costs too much on every event is refused when the spec is read.
func TestLeastCostIsToldAtOnce(t *testing.T) {
	nested := func(n int) string {
		list := "[" + strings.Repeat("1,", n-1) + "1]"
		return list + ".map(a, " + list + ".map(b, " + list + ".map(c, a + b + c))).size() > 0"
	}
	var c Compiler
	_, problems := c.Condition(gate.Stop, nested(200))
	if len(problems) != 1 || problems[0].At != 0 || !strings.HasPrefix(problems[0].Message, "costs at least ") || !strings.HasSuffix(problems[0].Message, " steps, want at most 2000000") {
		t.Errorf("%+v", problems)
	}
	if _, problems := c.Condition(gate.Stop, nested(20)); problems != nil {
		t.Errorf("a cheap one: %+v", problems)
	}
}

// counting sees how often a loop asks for the turn, and ends the time at the first.
type counting struct {
	*asked
	end   func()
	turns *int
}

func (c counting) ResolveName(name string) (any, bool) {
	if name == "turn" {
		*c.turns++
		c.end()
	}
	return c.asked.ResolveName(name)
}

// A loop under way ends soon after its time has.
func TestLoopsAreInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var c Compiler
	condition, problems := c.Condition(gate.PostToolUse, `tool_input.l.all(x, turn == 0)`)
	if problems != nil {
		t.Fatal(problems)
	}
	turns := 0
	a := counting{&asked{Context: ctx, in: manyInts()}, cancel, &turns}
	a.adapter = condition.adapter
	if _, _, err := condition.program.ContextEval(ctx, a); err == nil || turns == 0 || turns > 2*checkEvery {
		t.Errorf("it was asked %d times, error %v", turns, err)
	}
}
