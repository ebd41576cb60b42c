package expressions

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// call is a tool call as an event.
func call(command string) gate.Input {
	input, err := gate.PlainJSON(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return asking(gate.PreToolUse, gate.Event{ToolName: "Bash", ToolInput: input})
}

func asking(event gate.EventName, ev gate.Event) gate.Input {
	ev.Name = event
	return gate.Input{Hook: &gate.Hook{Name: "h", Event: event}, Event: &ev}
}

// answered compiles and answers; the expression must compile.
func answered(t *testing.T, in gate.Input, text string) (bool, *gate.Failure) {
	t.Helper()
	var c Compiler
	condition, problems := c.Condition(in.Hook.Event, text)
	if problems != nil {
		t.Fatalf("%s: %v", text, problems)
	}
	return condition.Holds(t.Context(), in)
}

type conversation struct {
	gate.Transcript
	said gate.Recalled
	err  error
}

func (c conversation) Recall(context.Context) (gate.Recalled, error) { return c.said, c.err }

func TestVariables(t *testing.T) {
	ev := gate.Event{Agent: "deployer", Session: "s", Turn: 3, MaxTurns: 9, Labels: map[string]string{"team": "web"}, FinalOutput: "Hi.",
		ToolName: "Bash", ToolInput: json.RawMessage(`{"command":"ls","n":3,"deep":{"list":[1.5,true,null,"x"]}}`), ToolResult: "out", ToolSucceeded: true}
	said := conversation{said: gate.Recalled{Prompt: "Deploy web.", Tools: []string{"Bash", "Edit"}}}
	for event, texts := range map[gate.EventName][]string{
		gate.Start: {`event == "Start" && agent == "deployer"`},
		gate.Stop: {`final_output.matches("^Hi") && session == "s" && turn == 3 && turn < max_turns`, `labels.team == "web"`, `"team" in labels && !("x" in labels)`,
			`labels[?"x"].orValue("none") == "none"`, `user_prompt.startsWith("Deploy")`, `"Edit" in tools_used && tools_used.size() == 2`},
		gate.PreToolUse: {`tool_name == "Bash"`, `tool_input.command == "ls"`, `tool_input.n + 1 == 4 && tool_input.n > 2.5`,
			`tool_input.deep.list[0] == 1.5 && tool_input.deep.list[1]`, `!has(tool_input.path)`, `tool_input[?"path"].orValue("") == ""`},
		gate.PostToolUse: {`tool_result == "out" && tool_succeeded`},
	} {
		for _, text := range texts {
			in := asking(event, ev)
			in.Transcript = said
			if holds, failure := answered(t, in, text); !holds || failure != nil {
				t.Errorf("%s on %s: %v %v", text, event, holds, failure)
			}
		}
	}
}

// An input that is no object is put into one, as all hooks get it.
func TestToolInputIsAnObject(t *testing.T) {
	for _, tt := range []struct{ input, text string }{
		{`"ls"`, `tool_input.value == "ls"`}, {`[1,2]`, `tool_input.value[1] == 2`}, {`null`, `tool_input == {}`}, {``, `tool_input == {}`}, {`{`, `tool_input == {}`},
		{`{"n":12345678901234567}`, `tool_input.n == 12345678901234567`}, {`{"n":1e3}`, `tool_input.n == 1000.0`},
	} {
		if holds, failure := answered(t, asking(gate.PreToolUse, gate.Event{ToolInput: json.RawMessage(tt.input)}), tt.text); !holds || failure != nil {
			t.Errorf("%s of %s: %v %v", tt.text, tt.input, holds, failure)
		}
	}
}

func TestShell(t *testing.T) {
	for _, tt := range []struct {
		command, text string
		want          bool
	}{
		{`rm -rf "a b"`, `shell(tool_input.command).exists(c, c.program == "rm" && "-rf" in c.args && c.args[1] == "a b")`, true},
		{`cd x && sudo /usr/bin/rm y`, `shell(tool_input.command).map(c, c.program) == ["cd", "sudo", "rm"]`, true},
		{`echo 'rm -rf x'`, `shell(tool_input.command).exists(c, c.program == "rm")`, false},
		{`cat <a >/etc/passwd`, `shell(tool_input.command)[0].redirections.exists(r, r.operator.startsWith(">") && path.within(r.target, "/etc") && r.literal)`, true},
		{`rm $X`, `shell(tool_input.command)[0].literal`, false},
		{`rm x`, `shell(tool_input.command)[0].literal`, true},
		{`if if (`, `shell(tool_input.command).all(c, !c.literal)`, true},
		{``, `shell(tool_input.command) == []`, true},
	} {
		if holds, failure := answered(t, call(tt.command), tt.text); holds != tt.want || failure != nil {
			t.Errorf("%s of %s: %v %v", tt.text, tt.command, holds, failure)
		}
	}
}

// What a command may run and the reading does not list is said of it.
func TestShellOpaque(t *testing.T) {
	for command, want := range map[string]bool{`sh -c "$X"`: true, `$X -rf /`: true, `python3 -c x`: true, `echo $X`: false, `rm -rf "$X"`: false, `if if (`: true, `cat x | xargs rm`: false} {
		if holds, failure := answered(t, call(command), `shell(tool_input.command).exists(c, c.opaque)`); holds != want || failure != nil {
			t.Errorf("%s: %v %v", command, holds, failure)
		}
	}
	if holds, failure := answered(t, call(`cat x | xargs rm`), `shell(tool_input.command).exists(c, c.program == "rm" && !c.literal)`); !holds || failure != nil {
		t.Errorf("what xargs adds: %v %v", holds, failure)
	}
}

// Codex gives a program and its arguments.
func TestShellOfList(t *testing.T) {
	const rm = `shell(tool_input.command).exists(c, c.program == "rm" && c.args == ["-rf", "/"])`
	for _, tt := range []struct {
		command, text string
		want          bool
	}{
		{`["bash","-lc","cd x && rm -rf /"]`, rm, true}, {`["rm","-rf","/"]`, rm, true}, {`["sudo","rm","-rf","/"]`, rm, true}, {`["rm -rf /"]`, rm, true}, {`"rm -rf /"`, rm, true},
		{`["echo","a; rm -rf /"]`, rm, false}, {`["echo","$(rm -rf /)"]`, rm, false}, {`["echo","it's","'; rm -rf / #"]`, rm, false},
		{`["A=b","rm","-rf","/"]`, `shell(tool_input.command)[0].program == "A=b"`, true}, {`[]`, `shell(tool_input.command) == []`, true},
		{`["rm","*"]`, `shell(tool_input.command)[0].literal`, true}, {`["a"]`, `shell(dyn(["ls", "-l"]))[0].args == ["-l"] && shell(["x", "y z"])[0].args == ["y z"]`, true},
	} {
		in := asking(gate.PreToolUse, gate.Event{ToolInput: json.RawMessage(`{"command":` + tt.command + `}`)})
		if holds, failure := answered(t, in, tt.text); holds != tt.want || failure != nil {
			t.Errorf("%s of %s: %v %v", tt.text, tt.command, holds, failure)
		}
	}
	for _, command := range []string{`["rm",1]`, `[["rm"]]`, `7`, `{"a":"rm"}`, `null`, `true`} {
		in := asking(gate.PreToolUse, gate.Event{ToolInput: json.RawMessage(`{"command":` + command + `}`)})
		if holds, failure := answered(t, in, rm); holds || failure == nil || failure.Code != gate.BadExpression {
			t.Errorf("%s: %v %v", command, holds, failure)
		}
	}
}

func TestPath(t *testing.T) {
	for _, text := range []string{
		`path.clean("/a/../b//c/.") == "/b/c"`, `path.base("/a/b.go") == "b.go"`, `path.ext("/a/b.go") == ".go"`,
		`path.within("/srv/app/x", "/srv/app")`, `path.within("/srv/app", "/srv/app/")`, `!path.within("/srv/app/../x", "/srv/app")`, `!path.within("/srv/apple", "/srv/app")`,
		`path.within("/x", "/")`, `!path.within("x", "/")`, `path.within("a/b", ".")`, `!path.within("../x", ".")`, `!path.within("/x", ".")`, `path.within("../a/b", "../a")`,
		`!path.within("../../x", "..")`, `path.within("../x", "..")`,
		`"a-b".replace("-", "+") == "a+b"`, `"a-b-c".replace("-", "", 1) == "ab-c"`, `"a,b".split(",") == ["a", "b"]`, `"a,b,c".split(",", 2) == ["a", "b,c"]`,
		`["a", "b"].join() == "ab"`, `["a", "b"].join("-") == "a-b"`, `"ab".split("") == ["a", "b"]`, `" x ".trim().upperAscii() == "X"`, `"a".split(",", 0) == []`,
		`"aa".replace("a", "b", -1) == "bb"`, `"ab".replace("", "-") == "-a-b-"`,
	} {
		if holds, failure := answered(t, call(""), text); !holds || failure != nil {
			t.Errorf("%s: %v %v", text, holds, failure)
		}
	}
}

// What cannot be answered is a failure, never a no.
func TestNoGuesses(t *testing.T) {
	lost := asking(gate.Stop, gate.Event{})
	lost.Transcript = conversation{err: errors.New("it is gone")}
	for _, tt := range []struct {
		name string
		in   gate.Input
		text string
		says string
	}{
		{"a member that is not there", call("ls"), `tool_input.path == "x"`, "no such key"},
		{"a value of another type", call("ls"), `tool_input.command > 3`, "no such overload"},
		{"neither true nor false", call("ls"), `tool_input.command`, "neither true nor false"},
		{"no conversation", asking(gate.Stop, gate.Event{}), `"Bash" in tools_used`, "no conversation"},
		{"a conversation that cannot be read", lost, `user_prompt == ""`, "it is gone"},
		{"a text that is too long", asking(gate.Stop, gate.Event{FinalOutput: strings.Repeat("x", maxText+1)}), `final_output == "x"`, "more than the"},
		{"an input of too many values", asking(gate.PreToolUse, gate.Event{ToolInput: json.RawMessage("[" + strings.Repeat("1,", maxValues) + "1]")}), `tool_input.value.size() > 1`, "values"},
		{"an input that is too deep", asking(gate.PreToolUse, gate.Event{ToolInput: json.RawMessage(strings.Repeat("[", 500) + strings.Repeat("]", 500))}), `tool_input.value.size() > 1`, "deeper"},
		{"a command that is too involved", call(strings.Repeat("a ", 1<<20)), `shell(tool_input.command).exists(c, c.program == "x")`, ""},
		{"division", call("ls"), `1 / (turn) == 1`, "division by zero"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			holds, failure := answered(t, tt.in, tt.text)
			if holds || failure == nil || failure.Code != gate.BadExpression || !strings.Contains(failure.Message, tt.says) {
				t.Errorf("%v, %v", holds, failure)
			}
		})
	}
}

func TestProblemsHaveTheirPlace(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []Problem
	}{
		{"another event's variable", `turn > 1 && tool_name == "x"`, []Problem{{12, "tool_name is not known on Stop, only on PreToolUse and PostToolUse"}}},
		{"an unknown one", "turn > 1 &&\n  ünknown", nil},
		{"a misspelt one", "turn > 1 &&\n  'é' != final_outputs", []Problem{{21, `"final_outputs" is not known; on Stop there are event, agent, session, turn, max_turns, labels, user_prompt, tools_used, final_output; did you mean "final_output"?`}}},
		{"a wrong type", `turn == "x"`, []Problem{{5, "found no matching overload for '_==_' applied to '(int, string)'"}}},
		{"no condition", `turn`, []Problem{{0, "is of type int, want true or false"}}},
		{"nothing", " \n", []Problem{{0, "is empty"}}},
		{"a pattern from the event", `final_output.matches(user_prompt)`, []Problem{{21, `the pattern of matches must be written out, as in matches("^a+$")`}}},
		{"a pattern that is none", `final_output.matches("(")`, []Problem{{21, "the pattern is no RE2 pattern: missing closing ): ("}}},
		{"looking ahead", `final_output.matches("(?=x)")`, []Problem{{21, "the pattern is no RE2 pattern: invalid or unsupported Perl syntax: (?=; RE2 has no looking ahead or behind, and no back-references"}}},
		{"a back-reference", `final_output.matches("(a)\\1")`, []Problem{{21, `the pattern is no RE2 pattern: invalid escape sequence: \1; RE2 has no looking ahead or behind, and no back-references`}}},
		{"a field that calls lack", `shell(final_output).exists(c, c.prog == "rm")`, []Problem{{31,
			`there is no field "prog": what shell finds has program, args, redirections, literal, opaque, and a redirection operator, target, literal; did you mean "program"?`}}},
		{"a misspelt function", `final_output.contain("x")`, []Problem{{20, `there is no function "contain"; did you mean "contains"?`}}},
		{"one of ours", `path.bsae(final_output) == "x"`, []Problem{{9, `there is no function "path.bsae"; did you mean "path.base"?`}}},
		{"not", `not(turn > 1)`, []Problem{{3, `there is no function "not"; did you mean "!"?`}}},
		{"format", `"%s".format([final_output]) == "x"`, []Problem{{11, `there is no function "format"`}}},
		{"one equals sign", `turn = 3`, []Problem{{5, `there is no operator =; did you mean "=="?`}}},
		{"three of them", `turn === 3`, []Problem{{7, `there is no operator ===; did you mean "=="?`}}},
		{"an arrow", `turn => 3`, []Problem{{5, `there is no operator =>; did you mean ">="?`}}},
		{"and", "turn > 1 and turn < 3", []Problem{{9, `there is no operator and; did you mean "&&"?`}}},
		{"one ampersand", "turn > 1 & turn < 3", []Problem{{9, `there is no operator &; did you mean "&&"?`}}},
		{"a text without an end", "final_output == 'x", []Problem{{16, "the text that begins here does not end"}}},
		{"half an expression", "turn > ", []Problem{{7, "ends too early"}}},
		{"a text in a text", `"a" in final_output`, []Problem{{4, `found no matching overload for '@in' applied to '(string, string)'; whether a text holds another is asked by text.contains("…")`}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c Compiler
			_, problems := c.Condition(gate.Stop, tt.text)
			if problems == nil {
				t.Fatal("it compiles")
			}
			if diff := cmp.Diff(tt.want, problems); tt.want != nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}
