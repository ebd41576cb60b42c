package expressions

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"stopgate/gate"
)

// manyInts is a tool's input with a list of as many values as may be.
func manyInts() gate.Input {
	list := strings.Repeat("1,", maxValues-3) + "1"
	return asking(gate.PostToolUse, gate.Event{ToolInput: json.RawMessage(`{"l":[` + list + `]}`), ToolResult: strings.Repeat("abc ", maxText/4)})
}

// doubled nests lists each of which is a hundred times the one before.
func doubled(depth int, most string) string {
	text := most
	for i := depth; i > 0; i-- {
		text = fmt.Sprintf("[%s].all(v%d, %s)", strings.Repeat(fmt.Sprintf("v%d+", i-1), 99)+fmt.Sprintf("v%d", i-1), i, text)
	}
	return "[[1,2,3]].all(v0, " + text + ")"
}

// Each of these would take gigabytes, or hours.
func TestBombsAreRefusedOrEnd(t *testing.T) {
	for _, tt := range []struct{ name, text string }{
		{"loops in loops", `tool_input.l.all(a, tool_input.l.all(b, tool_input.l.all(c, a+b+c > 0)))`},
		{"loops in loops in loops", `tool_input.l.all(a, tool_input.l.all(b, tool_input.l.all(c, tool_input.l.all(d, tool_input.l.all(e, true)))))`},
		{"a text put between all letters of itself", `tool_result.replace("", tool_result) == ""`},
		{"and so often", `tool_result.replace("", tool_result, 1000000) == ""`},
		{"a text between many", `tool_input.l.map(x, "a").join(tool_result) == ""`},
		{"a text many times", `tool_input.l.map(x, tool_result).join() == ""`},
		{"a letter each", `tool_result.split("").size() > 3`},
		{"a text that grows", doubledText(4)},
		{"lists that grow", doubled(3, "4 in v3")},
		{"lists that are compared", doubled(3, "v3 == v3 + [1]")},
		{"a pattern that is large", `tool_result.matches("(((a{100}){10}){10}){10}")`},
		{"patterns over a long text", `tool_input.l.exists(x, tool_result.matches("(a|b|c| )*(a|b|c| )*(a|b|c| )*(abc|bcd|cde)*z"))`},
		{"a short pattern that is large", `tool_result.matches("(.?){150}z")`},
		{"and whose answer makes no difference", `matches(tool_result, "(.?){150}z") || true`},
		{"and over a shorter text, often", `tool_input.l.exists(x, tool_result.substring(0, 300).matches("(.?){150}z"))`},
		{"letters that are counted", `tool_input.l.exists(x, tool_result.size() == 1)`},
		{"and counted", `tool_input.l.exists(x, size(tool_result) == 1)`},
		{"a long path", `tool_input.l.exists(x, path.clean(tool_result) == "")`},
		{"a path within itself", `tool_input.l.exists(x, path.within(tool_result, tool_result + "x"))`},
		{"numbers that are none", `tool_input.l.exists(x, double(tool_result) == 1.0)`},
		{"whole ones", `tool_input.l.exists(x, int(tool_result) == 1 || uint(tool_result) == 1u)`},
		{"times that are none", `tool_input.l.exists(x, duration(tool_result) == duration("1s") || timestamp(tool_result) == timestamp("2026-01-01T00:00:00Z"))`},
		{"truths that are none", `tool_input.l.exists(x, bool(tool_result))`},
		{"places that are looked for", `tool_input.l.exists(x, tool_result.indexOf("z") == 1)`},
		{"from the end", `tool_input.l.exists(x, tool_result.lastIndexOf("z") == 1)`},
		{"deep nesting", strings.Repeat("(", 3000) + "true" + strings.Repeat(")", 3000)},
		{"deep lists", strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + " == []"},
		{"a megabyte", "true || " + strings.Repeat("false || ", 1<<17) + "true"},
		{"a long chain of conditions", strings.Repeat("true ? ", 1000) + "true"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c Compiler
			condition, problems := c.Condition(gate.PostToolUse, tt.text)
			if problems != nil {
				t.Log(problems[0])
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // of a slow machine, so that it is the cost that ends it
			defer cancel()
			holds, failure := condition.Holds(ctx, manyInts())
			if failure == nil || failure.Code != gate.BadExpression {
				t.Errorf("%v, %v", holds, failure)
			}
		})
	}
}

// Looking for one long text in another takes the time of both, and not of one times the
// other, which nothing would interrupt.
func TestLongTextsAreLookedForInLongOnes(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	in := asking(gate.PostToolUse, gate.Event{ToolInput: json.RawMessage(`{"t":"` + long + `b","u":"b` + long + `"}`), ToolResult: long + long})
	for _, text := range []string{`tool_result.indexOf(tool_input.t) == -1`, `tool_result.lastIndexOf(tool_input.u) == -1`, `tool_result.indexOf(tool_input.t, 5) == -1`, `tool_result.lastIndexOf(tool_input.u, 2000000) == -1`} {
		if holds, failure := answered(t, in, text); !holds || failure != nil {
			t.Errorf("%s: %v, %v", text, holds, failure)
		}
	}
}

// What people ask about long answers is within the bounds.
func TestLongTextsAreSearched(t *testing.T) {
	in := asking(gate.Stop, gate.Event{FinalOutput: strings.Repeat("abc ", 64<<10) + "The PassWord is"})
	if holds, failure := answered(t, in, `final_output.matches("(?i)password|secret|token") && final_output.size() > 1000`); !holds || failure != nil {
		t.Errorf("%v, %v", holds, failure)
	}
}

func doubledText(depth int) string {
	text := fmt.Sprintf("v%d == ''", depth)
	for i := depth; i > 0; i-- {
		text = fmt.Sprintf("[%s].all(v%d, %s)", strings.Repeat(fmt.Sprintf("v%d+", i-1), 9)+fmt.Sprintf("v%d", i-1), i, text)
	}
	return strings.ReplaceAll(text, "v0", "tool_result")
}

// A long expression that does little is one, and stays within its time.
func TestLongExpressionsAreRead(t *testing.T) {
	var c Compiler
	text := strings.Repeat("turn == 7 || ", 300) + "true"
	condition, problems := c.Condition(gate.Stop, text)
	if problems != nil {
		t.Fatal(problems)
	}
	if holds, failure := condition.Holds(t.Context(), asking(gate.Stop, gate.Event{})); !holds || failure != nil {
		t.Errorf("%v %v", holds, failure)
	}
}

// An evaluation ends with its time.
func TestTimeout(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var c Compiler
	condition, problems := c.Condition(gate.PostToolUse, `tool_input.l.all(a, tool_input.l.all(b, a + b > 0))`)
	if problems != nil {
		t.Fatal(problems)
	}
	if holds, failure := condition.Holds(ctx, manyInts()); holds || failure == nil || failure.Code != gate.Timeout {
		t.Errorf("%v, %v", holds, failure)
	}
}

// A command beyond what is parsed is guessed at, by words that share what follows them;
// as calls they would not, and take a hundred times its memory.
func TestGuessedCommandsAreBounded(t *testing.T) {
	if _, failure := answered(t, call(strings.Repeat("a-word-of-some-length ", 5000)), `shell(tool_input.command).size() > 0`); failure == nil || !strings.Contains(failure.Message, "words") {
		t.Errorf("%v", failure)
	}
}

// What would be put into a text is not worked out once there is no time left: a text
// has twenty places, and none of them need have a loop that could be interrupted.
func TestNothingIsBegunAfterItsTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var c Compiler
	text, problems := c.Template(gate.PreToolUse, "{{ tool_input.command }} is not allowed.")
	if problems != nil {
		t.Fatal(problems)
	}
	a := &asked{Context: ctx, in: call("ls")}
	if got := text.render(ctx, a); a.input != nil || !strings.Contains(got, "not answered in time] is not allowed.") {
		t.Errorf("%q, input %v", got, a.input)
	}
}

// A list is made a line each time it is asked about; a long one is not, any number of
// times.
func TestListsAreNotReadForever(t *testing.T) {
	in := asking(gate.PreToolUse, gate.Event{ToolInput: json.RawMessage(`{"l":[` + strings.Repeat("1,", maxValues-20) + `1],"c":["a","` + strings.Repeat("b", maxText-200_000) + `"]}`)})
	if _, failure := answered(t, in, `tool_input.l.all(x, shell(tool_input.c).size() > 0)`); failure == nil || !strings.Contains(failure.Message, "too involved") {
		t.Errorf("%v", failure)
	}
}

func TestHostileCommands(t *testing.T) {
	for _, command := range []string{"\x00rm", "rm\x00-rf", "$(((((((((", strings.Repeat("$(", 5000), strings.Repeat("bash -c '", 500), "\xff\xfe", strings.Repeat("{a,b}", 40),
		strings.Repeat("| cat", 20_000), "<<<<<<", strings.Repeat("if ", 5000), strings.Repeat("`", 9999)} {
		holds, failure := answered(t, call(command), `shell(tool_input.command).exists(c, c.program == "nothing-of-the-kind")`)
		if holds || failure != nil && failure.Code != gate.BadExpression {
			t.Errorf("%.40q: %v %v", command, holds, failure)
		}
	}
}

func FuzzCondition(f *testing.F) {
	for _, text := range []string{`tool_name == "x"`, `shell(tool_input.command).exists(c, "-f" in c.args)`, `tool_input.a.b[0] ? true : false`, `"a".replace("", "b") == ""`, `[1].map(x, x + 1).all(y, y in [2])`} {
		f.Add(text, `{"command":"rm -f x","a":{"b":[true]}}`)
	}
	f.Fuzz(func(t *testing.T, text, input string) {
		var c Compiler
		condition, problems := c.Condition(gate.PreToolUse, text)
		for _, p := range problems {
			if p.At < 0 || p.At > len(text)+1 || p.Message == "" {
				t.Errorf("%+v", p)
			}
		}
		if problems != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		holds, failure := condition.Holds(ctx, asking(gate.PreToolUse, gate.Event{ToolName: "x", ToolInput: json.RawMessage(input)}))
		if holds && failure != nil || failure != nil && failure.Code != gate.BadExpression {
			t.Errorf("%v %v", holds, failure)
		}
	})
}
