package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stopgate/gate"
)

// commandHook is a file with one command that is asked before every tool, and
// may refuse in every way that its dialect has.
func commandHook(d gate.Dialect, command string) string {
	switch text := fmt.Sprintf("%q", command); d {
	case gate.Antigravity:
		return sandboxFile("pre_tool_execution", "*", `"type":"command","command":`+text)
	case gate.AXCode:
		return axFile(`"event":"PreToolUse","protocol":"claude-code","command":` + text)
	case gate.ClaudeCode:
		return claudeHook("PreToolUse", "", `{"type":"command","command":`+text+`}`)
	default:
		return agentHook("PreToolUse", `type: command, matcher: "*", command: `+text)
	}
}

// echo prints an answer as a hook before a tool has to have it.
func echo(w wording) string {
	return "echo '" + strings.Replace(w.shown, `"hookSpecificOutput":{`, `"hookSpecificOutput":{"hookEventName":"PreToolUse",`, 1) + "'"
}

// What is found of a hook's answers between each two systems, by how much of the
// hook is seen. Whoever reads exit codes alike keeps their meaning without a
// word.
func TestConvertAnswers(t *testing.T) {
	const nothing, warning, failure = "", "warning", "error"
	// None of what these hooks run can put words into their answers.
	silent := []string{"exit 2", "grep -q 'rm -rf' && { echo 'no rm here' >&2; exit 2; }; exit 0", "./lint >&2 || exit 2", "bash -c 'exit 2'", `jq -e . > /dev/null; exit $?`}
	for _, c := range []struct {
		from, to gate.Dialect
		unseen   string  // of a command whose text is not there
		lost     wording // said, it is an error; none: what is said here is read there
		kept     wording // said, it is nothing; none: nothing that is said here is read there
	}{
		{gate.Azure, gate.Antigravity, warning, saysNotOK, saysDeny},
		{gate.Azure, gate.AXCode, warning, saysDeny, saysNested},
		{gate.Azure, gate.ClaudeCode, warning, saysAsk, saysBlock},
		{gate.Antigravity, gate.Azure, warning, wording{}, saysDeny},
		{gate.Antigravity, gate.AXCode, failure, saysDeny, wording{}}, // nothing that such a hook can do refuses there
		{gate.Antigravity, gate.ClaudeCode, failure, saysDeny, wording{}},
		{gate.AXCode, gate.Azure, warning, saysFlat, saysNestedAsk},
		{gate.AXCode, gate.Antigravity, warning, saysNestedAsk, wording{}},
		{gate.AXCode, gate.ClaudeCode, warning, saysFlatAsk, saysNested},
		{gate.ClaudeCode, gate.Azure, warning, saysHalt, saysNested},
		{gate.ClaudeCode, gate.Antigravity, warning, saysNested, wording{}},
		{gate.ClaudeCode, gate.AXCode, warning, saysBlock, saysNestedAsk},
	} {
		check := func(what, command, want string) {
			t.Run(fmt.Sprintf("%s to %s, %s", c.from, c.to, what), func(t *testing.T) {
				document, report := converted(c.from, c.to, commandHook(c.from, command), false)
				got := nothing
				if found := regexp.MustCompile(`(warning|error): \S+: answer on .* counts in`).FindStringSubmatch(report); found != nil {
					got = found[1]
				}
				if got != want || (document == "") != (want == failure) {
					t.Errorf("%q: %s, want %s; document %q, report:\n%s", command, got, want, document, report)
				}
				if document, _ := converted(c.from, c.to, commandHook(c.from, command), true); document == "" {
					t.Error("nothing is written in part")
				}
			})
		}
		for _, command := range silent {
			check("by its exit code alone", command, nothing)
		}
		check("unseen", "./gate.sh", c.unseen)
		if c.lost.shown != "" {
			check("in words that are lost", echo(c.lost), failure)
		}
		if c.kept.shown != "" {
			check("in words that are kept", echo(c.kept), nothing)
		}
	}
}

// Over HTTP and after a tool no exit code counts, or no answer.
func TestConvertOtherAnswers(t *testing.T) {
	const server = `"type":"http","url":"https://x.example/"`
	for _, c := range []struct {
		name     string
		from, to gate.Dialect
		source   string
		want     string // a part of the report's only error; empty: it has none
	}{
		{"a server", gate.ClaudeCode, gate.Antigravity, claudeHook("PreToolUse", "", "{"+server+"}"), `{"decision":"block"} or`},
		{"a server of the sandbox's", gate.Antigravity, gate.ClaudeCode, sandboxFile("pre_tool_execution", "*", server), `{"decision":"deny"} counts`},
		{"a server that is only told", gate.ClaudeCode, gate.Antigravity, claudeHook("PostToolUse", "", "{"+server+"}"), ""},
		{"feedback", gate.ClaudeCode, gate.AXCode, claudeHook("PostToolUse", "", `{"type":"command","command":"x"}`), ""},
		{"blockOnFailure", gate.AXCode, gate.ClaudeCode, axFile(`"event":"PreToolUse","command":"x","blockOnFailure":true`), ""},
		{"what is only watched there", gate.ClaudeCode, gate.Antigravity, claudeHook("PostToolUse", "", `{"type":"command","command":"x"}`), ""},
		{"what is only watched here", gate.Antigravity, gate.Azure, sandboxFile("post_tool_execution", "*", `"type":"command","command":"x"`), ""},
		{"a script that says what both read", gate.Azure, gate.ClaudeCode, agentHook("Stop", `type: command, script: "echo '{\"decision\":\"block\",\"token\":1}'"`), ""},
		{"a script that does not", gate.Azure, gate.ClaudeCode, agentHook("Stop", `type: command, script: "echo '{\"ok\": false}'"`), `{"ok":false} counts in Azure SRE Agent and for nothing in Claude Code, which reads {"decision":"block"}: let`},
	} {
		t.Run(c.name, func(t *testing.T) {
			document, report := converted(c.from, c.to, c.source, false)
			if (document == "") != (c.want != "") || !strings.Contains(report, c.want) || strings.Contains(report, ": error: ") != (c.want != "") {
				t.Errorf("document %q, report:\n%s\nwant %s", document, report, c.want)
			}
		})
	}
	t.Run("what is printed is context", func(t *testing.T) {
		_, report := converted(gate.ClaudeCode, gate.Azure, claudeHook("SessionStart", "", `{"type":"command","command":"echo Mind the tests."}`), false)
		if !strings.Contains(report, "context: Claude Code gives the agent the plain text that a hook on SessionStart prints; Azure SRE Agent does not") {
			t.Errorf("report:\n%s", report)
		}
		_, report = converted(gate.Azure, gate.ClaudeCode, agentHook("Start", `type: command, command: "echo Mind the tests."`), false)
		if !strings.Contains(report, "context: Claude Code gives the agent the plain text that a hook on SessionStart prints; Azure SRE Agent does not") {
			t.Errorf("the other way: %s", report)
		}
		if _, report = converted(gate.AXCode, gate.ClaudeCode, axFile(`"event":"SessionStart","command":"echo Mind the tests."`), false); strings.Contains(report, "context:") {
			t.Errorf("what is only watched prints nothing there: %s", report)
		}
	})
}

// How much of what a hook runs is seen, in the hook and in the project's files.
func TestConvertSeesScripts(t *testing.T) {
	files := map[string]string{
		"hooks/quiet.sh": "#!/bin/bash\ncheck() { grep -q secret; }\ncheck && { echo secret >&2; exit 2; }\nexit 0\n",
		"hooks/says.py":  "#!/usr/bin/env python3\nimport json\nprint(json.dumps({'decision': 'block', 'reason': 'no'}))\n",
		"hooks/calls.sh": "#!/bin/sh\nexec python3 hooks/says.py\n",
		"hooks/asks.sh":  "#!/usr/bin/env bash\ncurl -s https://policy.example/\n",
		"hooks/made.py":  "#!/usr/bin/env python3\nprint({'decision': verdict})\n",
		"hooks/self.sh":  ". hooks/self.sh\n",
		"hooks/nul":      "\x7fELF\x00",
		"answer.json":    `{"decision": "block"}`,
	}
	for i := range maxScripts + 1 {
		files[fmt.Sprintf("hooks/%d.sh", i)] = "#!/bin/sh\nexit 0\n"
	}
	many := func(n int) (line string) {
		for i := range n {
			line += fmt.Sprintf("hooks/%d.sh;", i)
		}
		return line
	}
	for command, want := range map[string]sight{
		"hooks/quiet.sh":                                 unsaid,
		`"$CLAUDE_PROJECT_DIR"/hooks/quiet.sh`:           unsaid,
		`bash "${CLAUDE_PROJECT_DIR}/hooks/quiet.sh"`:    unsaid,
		"bash -eu hooks/quiet.sh":                        unsaid,
		"source hooks/quiet.sh":                          unseen, // it may change what follows
		"exec hooks/self.sh":                             unseen,
		"python3 <<'E'\nimport sys; sys.exit(2)\nE":      unsaid,
		"npm test > /dev/null 2>&1 || exit 2":            unsaid,
		"make lint 1>&2 || exit 2":                       unsaid,
		"f() { return 2; }; f":                           unsaid,
		"node -e 'process.exit(2)'":                      unsaid,
		"cat > /dev/null; exit 2":                        unsaid,
		many(maxScripts):                                 unsaid,
		"hooks/says.py":                                  said,
		"python3 -u hooks/says.py":                       said,
		"hooks/calls.sh":                                 said,
		"cat answer.json; exit 1":                        said,
		`printf '{"decision":"%s"}' block`:               said,
		"hooks/asks.sh":                                  unseen,
		"hooks/made.py":                                  unseen,
		"hooks/nul":                                      unseen,
		"hooks/none.sh":                                  unseen,
		"./hooks/$NAME.sh":                               unseen,
		"cd hooks && ./quiet.sh":                         unseen,
		"npm test || exit 2":                             unseen,
		"npm test 2> /dev/null || exit 2":                unseen,
		"curl -s https://policy.example/ | jq .":         unseen,
		"answer=$(./judge); echo \"$answer\"":            unseen,
		"python3 -m gate":                                unseen,
		"python3 -c \"$CODE\"":                           unseen,
		"python3":                                        unseen,
		"if":                                             unseen,
		many(maxScripts + 1):                             unseen,
		"echo 'the decision is to block'":                unsaid, // in a text that is no object
		`echo '{"decision":"approve","reason":"block"}'`: unsaid,
		`echo "{\"decision\":\"$V\"}"`:                   unseen,
	} {
		c := converter{Conversion: Conversion{From: gate.ClaudeCode, Script: func(path string) (string, bool) {
			text, ok := files[strings.TrimPrefix(path, "./")]
			return text, ok
		}}}
		d := declared{Hook: gate.Hook{Dialect: gate.ClaudeCode, Type: gate.CommandHook, Event: gate.PreToolUse, FailMode: gate.FailAllow, Command: command}}
		if got := saysBlock.in(c.text(&d)); got != want {
			t.Errorf("%q: %d, want %d", command, got, want)
		}
		if c.Script = nil; strings.Contains(command, "hooks/") && want != said {
			if got := saysBlock.in(c.text(&d)); got != unseen {
				t.Errorf("%q without its files: %d, want %d", command, got, unseen)
			}
		}
	}
	c := converter{Conversion: Conversion{Script: func(path string) (string, bool) { text, ok := files[path]; return text, ok }}}
	d := declared{Hook: gate.Hook{Dialect: gate.ClaudeCode, Type: gate.CommandHook, Command: "${CLAUDE_PROJECT_DIR}/hooks/says.py", Args: []string{}}}
	if c.Script = func(path string) (string, bool) { return files["hooks/says.py"], path == "./hooks/says.py" }; saysBlock.in(c.text(&d)) != said {
		t.Error("the program of args is not seen")
	}
}

// In the nested form the same word is no flat one.
func TestConvertFlatAndNested(t *testing.T) {
	for text, want := range map[string][2]sight{
		saysFlat.shown:                                {said, unseen},
		saysNested.shown:                              {unseen, said},
		saysFlat.shown + saysNested.shown:             {said, said},
		`{"permissionDecisionReason":"deny"}`:         {unseen, unseen},
		`hookSpecificOutput = {permissionDecision:v}`: {unseen, unseen},
	} {
		known := hookText{all: text, doubt: "some"}
		if got := [2]sight{saysFlat.in(known), saysNested.in(known)}; got != want {
			t.Errorf("%s: flat, nested %v, want %v", text, got, want)
		}
	}
}

// One sentence stands once, with the names of the hooks that it is about.
func TestConvertNamesHooks(t *testing.T) {
	hook := `{"type":"command","command":"./gate.sh","timeout":7}`
	_, report := converted(gate.ClaudeCode, gate.AXCode, claudeHook("PreToolUse", "", strings.Join(slices.Repeat([]string{hook}, 9), ",")), false)
	for _, want := range []string{`answer on PreToolUse: what the hook answers .* \(also PreToolUse\[0\]\.hooks\[1\], .*hooks\[5\] and 3 more\)`,
		`PreToolUse\[0\]\.hooks\[0\]\.timeout: timeout: AX Code gives every hook 30 s, and this one has 7 s \(also PreToolUse\[0\]\.hooks\[1\]\.timeout, `} {
		if len(regexp.MustCompile(want).FindAllString(report, -1)) != 1 {
			t.Errorf("not once: %s\n%s", want, report)
		}
	}
	if lines := strings.Count(report, "\n"); lines > 10 {
		t.Errorf("the report has %d lines:\n%s", lines, report)
	}
}

// The worst stands first, whatever the order of the text, and of what is not
// written nothing but the reason.
func TestConvertOrderOfReport(t *testing.T) {
	source := `{"hooks":[
{"event":"PreToolUse","command":"x","matcher":"bash|mine","pack":"p"},
{"event":"PreToolUse","command":"x $HOOK_TOOL","protocol":"claude-code"},
{"event":"PreToolUse","command":"y"}],
"packs":["protect-env-files"]}`
	_, report := converted(gate.AXCode, gate.ClaudeCode, source, true)
	if first, last := strings.Index(report, ": warning: "), strings.LastIndex(report, ": error: "); last < 0 || first < last {
		t.Errorf("an error behind a warning:\n%s", report)
	}
	if !strings.Contains(report, "error: packs[0].protect-env-files: the pack") || strings.Contains(report, "warning: packs[0]") || strings.Contains(report, "warning: hooks[1]") {
		t.Errorf("of a pack that is not written:\n%s", report)
	}
	if own, all := strings.Index(report, "no tool is known by the name of mine"), strings.Index(report, "input of PreToolUse"); own < 0 || all < own {
		t.Errorf("what holds for all stands before what one hook loses:\n%s", report)
	}
}

// On a Stop of Claude Code additionalContext alone keeps the turn going, and
// elsewhere it does not.
func TestConvertStopContext(t *testing.T) {
	const answer = `{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"Run the tests first."}}`
	_, report := converted(gate.ClaudeCode, gate.Azure, claudeHook("Stop", "", `{"type":"command","command":`+fmt.Sprintf("%q", "echo '"+answer+"'")+`}`), false)
	if !strings.Contains(report, "error: Stop[0].hooks[0]: answer on Stop") {
		t.Errorf("a block by additionalContext is lost, and the report says nothing of it:\n%s", report)
	}
	// The other way: what Azure SRE Agent takes as context beside an allow blocks in Claude Code.
	_, report = converted(gate.Azure, gate.ClaudeCode, agentHook("Stop", `type: command, command: `+fmt.Sprintf("%q", "echo '"+answer+"'")), false)
	if !regexp.MustCompile(`(?i)additionalContext.*(?:block|keeps)`).MatchString(report) {
		t.Errorf("context becomes a block, and the report says nothing of it:\n%s", report)
	}
}

// A member may be written without a colon after its name.
func TestConvertShorthandMembers(t *testing.T) {
	for _, command := range []string{
		`jq -n --argjson ok false --arg reason no '{$ok, $reason}'`,
		`node -e 'function answer(ok, reason) { console.log(JSON.stringify({ok, reason})) } answer(false, "no")'`,
		`python3 -c 'import json; print(json.dumps(dict([("ok", False), ("reason", "no")])))'`,
		`python3 -c 'import json; print(json.dumps(dict(zip(["ok", "reason"], [False, "no"]))))'`,
		`node -e 'console.log(JSON.stringify(Object.fromEntries([["ok", false], ["reason", "no"]])))'`,
	} {
		for _, to := range []gate.Dialect{gate.ClaudeCode, gate.Antigravity, gate.AXCode} {
			_, report := converted(gate.Azure, to, commandHook(gate.Azure, command), false)
			if !regexp.MustCompile(`answer on .*"ok":false.* counts in`).MatchString(report) {
				t.Errorf("to %s: %s: the refusal is lost without a word:\n%s", to, command, report)
			}
		}
	}
}

// A value that is made as the hook runs is not ruled out by a word of everyday
// that is also some verdict's.
func TestConvertValueMadeUp(t *testing.T) {
	for _, c := range []struct {
		from, to gate.Dialect
		command  string
	}{
		{gate.ClaudeCode, gate.Antigravity, `python3 -c 'import json, sys; print(json.dumps({"continue": "rm" not in sys.stdin.read(), "stopReason": "ask the owner first"}))'`},
		{gate.ClaudeCode, gate.Antigravity, `jq -c '{continue: (.x | test("rm") | not), stopReason: "ask the owner first"}'`},
		{gate.ClaudeCode, gate.AXCode, `node -e 'console.log(JSON.stringify({continue: !bad, stopReason: "I do not allow this"}))'`},
		{gate.Azure, gate.ClaudeCode, `python3 -c 'import json; v = "DENY" if 1 else "allow"; print(json.dumps({"decision": v.lower()}))'`},
		{gate.Azure, gate.ClaudeCode, `v=DENY; [ -n "$x" ] && v=allow; echo "{\"decision\":\"${v,,}\"}"`},
	} {
		_, report := converted(c.from, c.to, commandHook(c.from, c.command), false)
		if !regexp.MustCompile(`answer on .* counts in`).MatchString(report) {
			t.Errorf("%s to %s: %s: the refusal is lost without a word:\n%s", c.from, c.to, c.command, report)
		}
	}
}
