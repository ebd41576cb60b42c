package config

import (
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// converted is the document and the report of a conversion, by way of --partial
// if partial.
func converted(from, to gate.Dialect, source string, partial bool) (document, report string) {
	b, list := Conversion{From: from, To: to, Tools: testTools, Partial: partial}.Convert(fileName(from), []byte(source))
	return string(b), textOf(list)
}

// agentHook is an agent of azure with one hook, whose members stand from line 6.
func agentHook(event, members string) string {
	return "api_version: azuresre.ai/v2\nkind: ExtendedAgent\nmetadata: {name: a}\nspec:\n  hooks:\n    " + event + ": [{" + members + "}]\n"
}

func axFile(members string) string { return `{"hooks":[{` + members + `}]}` }

func sandboxFile(event, matcher, handler string) string {
	return `{"g":{"` + event + `":[{"matcher":"` + matcher + `","hooks":[{` + handler + `}]}]}}`
}

func TestConvertExpresses(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to gate.Dialect
		source   string
		want     string // a part of the document
		warnings []string
	}{
		{"a script is a shell line with its text", gate.Azure, gate.ClaudeCode, agentHook("Stop", `type: command, script: "#!/usr/bin/env python3\nprint('x')"`),
			`"command": "python3 -I -c '#!/usr/bin/env python3\nprint('\\''x'\\'')'"`, []string{`6:\d+: warning: .*input of Stop: Azure SRE Agent gives final_output.*; Claude Code gives last_assistant_message`,
				`cap: Claude Code ends the loop after 8 blocks in a row`}},
		{"and a script again", gate.ClaudeCode, gate.Azure, claudeHook("PreToolUse", "", `{"type":"command","command":"bash -c 'exit 2'"}`), "script: exit 2\n", nil},
		{"a Stop is refused with a reason, and without end", gate.ClaudeCode, gate.Azure, claudeHook("Stop", "", `{"type":"command","command":"exit 2"},{"type":"command","command":"exit 2 # too"}`),
			"|| echo 'A hook refused this stop by its exit code.' >&2 ;; esac", []string{`reason: Azure SRE Agent lets a Stop go that is refused without a reason`,
				`cap: Claude Code ends the loop after 8 blocks in a row; a command of Azure SRE Agent may reject for ever, .* stop_rejection_count .* \(also Stop\[0\]\.hooks\[1\]\)`}},
		{"and what was no refusal there is one", gate.Azure, gate.ClaudeCode, agentHook("Stop", `type: command, command: exit 2`), `"command": "exit 2"`,
			[]string{`reason: a refusal without one, .* lets the agent stop in Azure SRE Agent, and blocks in Claude Code`}},
		{"the usual timeout is written out, as far as it is meant to be there", gate.ClaudeCode, gate.Azure, claudeHook("Stop", "", `{"type":"command","command":"x"}`), "timeout: 300\n",
			[]string{`timeout: 600 s become 300 s, the longest`}},
		{"also the other way", gate.Azure, gate.ClaudeCode, agentHook("Stop", "type: prompt, prompt: x"), `"timeout": 30`, []string{`cap: this hook may reject 3 times`}},
		{"seconds are whole", gate.ClaudeCode, gate.Antigravity, claudeHook("PreToolUse", "", `{"type":"command","command":"x","timeout":1.5}`), `"timeout": 2`,
			[]string{`timeout: 1.5 s become 2 s`}},
		{"AX Code has one timeout", gate.Antigravity, gate.AXCode, sandboxFile("pre_tool_execution", "code_execution", `"type":"command","command":"x","timeout":10`),
			`"protocol": "claude-code"`, []string{`1:\d+: warning: .*timeout: AX Code gives every hook 30 s, and this one has 10 s`, `trust: AX Code`}},
		{"failMode block is an exit with 2", gate.Azure, gate.ClaudeCode, agentHook("PreToolUse", `type: command, command: x, matcher: Bash, failMode: block`),
			`"command": "(\nx\n)\ncase $? in 0) ;; *) exit 2 ;; esac"`, []string{`failure: failMode block becomes an exit with 2; a time-out`}},
		{"blockOnFailure is failMode block", gate.AXCode, gate.Azure, axFile(`"event":"PreToolUse","command":"x","blockOnFailure":true`), "failMode: block\n", nil},
		{"and comes back", gate.Azure, gate.AXCode, agentHook("PreToolUse", `type: command, command: "(\nx\n) >&2\ncase $? in 0) ;; *) exit 2 ;; esac", matcher: "*", failMode: block`),
			`"blockOnFailure": true`, nil},
		{"exit 2 denies in the sandbox too", gate.ClaudeCode, gate.Antigravity, claudeHook("PreToolUse", `"matcher":"Bash",`, `{"type":"command","command":"exit 2"}`),
			`2) cat <&8 >&2; echo '{\"decision\":\"deny\"`, []string{`reason: no exit code refuses in the Gemini API's sandbox`}},
		{"what is only watched says nothing", gate.AXCode, gate.ClaudeCode, axFile(`"event":"Stop","command":"x"`), `"command": "(\nx\n) >&2\ntrue"`, nil},
		{"feedback is context", gate.AXCode, gate.Azure, axFile(`"event":"PostToolUse","command":"x","matcher":"edit"`), `"additionalContext":"%s"`,
			[]string{`context: of several hooks the last one's context counts in Azure SRE Agent`}},
		{"and feedback again", gate.ClaudeCode, gate.AXCode, claudeHook("PostToolUse", "", `{"type":"command","command":`+string(appendText(nil, fed.head+"./lint"+fed.tail))+`}`), `"command": "./lint"`, nil},
		{"but in the sandbox it is nothing", gate.AXCode, gate.Antigravity, axFile(`"event":"PostToolUse","command":"x","matcher":"edit"`), `"command": "x"`,
			[]string{`effect: the Gemini API's sandbox only watches post_tool_execution`}},
		{"arguments are quoted", gate.ClaudeCode, gate.AXCode, claudeHook("PreToolUse", "", `{"type":"command","command":"${CLAUDE_PROJECT_DIR}/x","args":["it's","$y"]}`),
			`"command": "export CLAUDE_PROJECT_DIR=\"${CLAUDE_PROJECT_DIR:-$PWD}\"\n\"${CLAUDE_PROJECT_DIR}\"/x 'it'\\''s' '$y'"`, []string{`project: CLAUDE_PROJECT_DIR is not set by AX Code, so the command sets it`}},
		{"and back", gate.AXCode, gate.ClaudeCode, axFile(`"event":"PreToolUse","protocol":"claude-code","command":"export CLAUDE_PROJECT_DIR=\"${CLAUDE_PROJECT_DIR:-$PWD}\"\n$CLAUDE_PROJECT_DIR/x"`),
			`"command": "$CLAUDE_PROJECT_DIR/x"`, nil},
		{"a project's files are not everywhere", gate.ClaudeCode, gate.Azure, claudeHook("PreToolUse", "", `{"type":"command","command":"python3 $CLAUDE_PROJECT_DIR/x.py"}`),
			`export CLAUDE_PROJECT_DIR=`, []string{`elsewhere python3 exits with 2 for want of its script, which blocks every call`}},
		{"after a tool is after a failed one too", gate.Antigravity, gate.ClaudeCode, sandboxFile("post_tool_execution", "*", `"type":"command","command":"x"`), `"PostToolUseFailure": [`,
			[]string{`matcher: every tool is, there`}},
		{"and the two are one", gate.ClaudeCode, gate.Antigravity, `{"hooks":{"PostToolUse":[{"hooks":[{"type":"http","url":"https://x.example/"}]}],"PostToolUseFailure":[{"hooks":[{"type":"http","url":"https://x.example/"}]}]}}`,
			`"timeout": 600`, nil},
		{"events of two systems that the gate is not asked about", gate.AXCode, gate.ClaudeCode, axFile(`"event":"PreCompact","command":"x"`), `"PreCompact": [`, nil},
		{"a model's family is a tier", gate.ClaudeCode, gate.Azure, claudeHook("Stop", "", `{"type":"prompt","prompt":"x","model":"opus"}`), "model: Reasoning\n", nil},
		{"a refusal after a tool does not end the turn", gate.Azure, gate.ClaudeCode, agentHook("PostToolUse", `prompt: x, matcher: "*"`), `"continueOnBlock": true`, nil},
		{"names of tools", gate.AXCode, gate.Antigravity, axFile(`"event":"PreToolUse","matcher":"bash|read","command":"x","protocol":"claude-code"`), `"matcher": "code_execution|read_file"`, nil},
		{"a name that stands for more", gate.ClaudeCode, gate.Antigravity, claudeHook("PreToolUse", `"matcher":"Write",`, `{"type":"command","command":"x"}`), `"matcher": "write_file"`,
			[]string{`matcher: write_file there is also what Edit, MultiEdit is here`}},
		{"a pattern, tried on the known tools", gate.Antigravity, gate.AXCode, sandboxFile("pre_tool_execution", "(read|list)_file.*", `"type":"command","command":"x"`), `"matcher": "read|glob|list"`, nil},
		{"and what it may match beyond", gate.ClaudeCode, gate.AXCode, claudeHook("PreToolUse", `"matcher":"Web",`+"", `{"type":"command","command":"x"}`), `"matcher": "Web"`,
			[]string{`no tool is known by the name of Web: kept as written`}},
		{"a regular expression beyond", gate.ClaudeCode, gate.AXCode, claudeHook("PreToolUse", `"matcher":"Web.",`, `{"type":"command","command":"x"}`), `"matcher": "webfetch|websearch"`,
			[]string{`matcher "Web\." may match other tools than the known ones \(WebFetch, WebSearch\)`}},
		{"a server's tools are a beginning", gate.ClaudeCode, gate.AXCode, claudeHook("PreToolUse", `"matcher":"^mcp__a__.*$",`, `{"type":"command","command":"x"}`), `"matcher": "mcp__a__*"`, nil},
		{"what is no pattern stays none", gate.AXCode, gate.Azure, axFile(`"event":"PreToolUse","matcher":".*","command":"x"`), `matcher: \..*`, []string{`no tool is known by the name of \.: kept`}},
		{"a variable of the settings", gate.ClaudeCode, gate.AXCode, `{"env":{"LIMIT":"5","OTHER":"6"},"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"test $LIMIT -gt 3 || exit 2"}]}]}}`,
			"test $LIMIT -gt 3", []string{`environment: the command uses LIMIT, which env of these settings sets and AX Code does not`, `env stay behind`}},
		{"other settings are said to stay", gate.ClaudeCode, gate.Azure, `{"model":"m","permissions":{},"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"true"}]}]}}`, "command: \"true\"\n",
			[]string{`1:1: warning: only hooks are converted: model, permissions stay behind`}},
		{"whole names are whole", gate.Azure, gate.ClaudeCode, agentHook("PreToolUse", `type: command, command: x, matcher: "Web.*"`), `"matcher": "^(?:Web.*)$"`, nil},
		{"a part is a part", gate.ClaudeCode, gate.Azure, claudeHook("PreToolUse", `"matcher":"^Web.",`, `{"type":"command","command":"x"}`), "matcher: .*(?:^Web.).*\n", nil},
		{"a group that is switched off is said to be", gate.Antigravity, gate.Azure, `{"on":{"pre_tool_execution":[{"matcher":"*","hooks":[{"type":"command","command":"x"}]}]},` + "\n" +
			`"off":{"enabled":false,"pre_tool_execution":[{"matcher":"*","hooks":[{"type":"command","command":"y"}]}]}}`, "*) exit 1 ;;", []string{`2:1: warning: off: group "off" is switched off, and is not written`}},
		{"spaces make no list of a pattern", gate.Azure, gate.ClaudeCode, agentHook("PreToolUse", `type: command, command: x, matcher: "Bash, Read"`), `"matcher": "^(?:Bash, Read)$"`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			document, report := converted(c.from, c.to, c.source, true)
			for line := range strings.Lines(report) {
				if strings.Contains(line, " error: ") && !strings.Contains(line, ": answer on ") { // of which TestConvertAnswers is
					t.Errorf("not expressed: %s", line)
				}
			}
			if !strings.Contains(document, c.want) {
				t.Errorf("no %s in\n%s\n%s", c.want, document, report)
			}
			for _, w := range c.warnings {
				if !regexp.MustCompile(w).MatchString(report) {
					t.Errorf("the report has no %s:\n%s", w, report)
				}
			}
		})
	}
}

// What has no equal is an error with its place, and keeps everything from being
// written, or itself alone.
func TestConvertCannotExpress(t *testing.T) {
	const other = `,{"type":"command","command":"y"}`
	for _, c := range []struct {
		name     string
		from, to gate.Dialect
		source   string
		want     string
		partial  bool // something else is left
	}{
		{"an event", gate.ClaudeCode, gate.Antigravity, claudeHook("Stop", "", `{"type":"command","command":"x"}`), `2:\d+: error: Stop\[0\].hooks\[0\]: the Gemini API's sandbox has no event like Stop`, false},
		{"a Stop that AX Code only watches", gate.ClaudeCode, gate.AXCode, claudeHook("Stop", "", `{"type":"command","command":"exit 2"}`), `AX Code only watches Stop`, false},
		{"an interruption", gate.AXCode, gate.ClaudeCode, `{"hooks":[{"event":"Interrupt","command":"x"},` + "\n" + `{"event":"Stop","command":"y"}]}`, `1:\d+: error: hooks\[0\].Interrupt.event: Claude Code has no event like Interrupt`, true},
		{"a pack", gate.AXCode, gate.Azure, `{"packs":["block-force-push"]}`, `1:11: error: packs\[0\].block-force-push: the pack block-force-push is a part of AX Code`, false},
		{"a prompt", gate.Azure, gate.AXCode, agentHook("PreToolUse", `prompt: x, matcher: Bash`), `6:\d+: error: .*AX Code has no hooks that a model judges`, false},
		{"a prompt at the start", gate.Azure, gate.ClaudeCode, agentHook("Start", `prompt: x`), `asks only commands on SessionStart`, false},
		{"HTTP", gate.ClaudeCode, gate.Azure, claudeHook("Stop", "", `{"type":"http","url":"https://x.example/"}`+other), `Azure SRE Agent has no hooks that are asked over HTTP`, true},
		{"plain HTTP", gate.ClaudeCode, gate.Antigravity, claudeHook("PreToolUse", "", `{"type":"http","url":"http://x.example/"}`), `reaches https:// alone`, false},
		{"a header's variable", gate.ClaudeCode, gate.Antigravity, claudeHook("PreToolUse", "", `{"type":"http","url":"https://x.example/","headers":{"A":"$B"},"allowedEnvVars":["B"]}`), `a dollar sign stands for a variable`, false},
		{"a rule", gate.ClaudeCode, gate.AXCode, claudeHook("PreToolUse", "", `{"type":"command","command":"x","if":"Bash(git push *)"}`+other), `2:\d+: error: .*\.if: AX Code has no rules on a tool's arguments`, true},
		{"what is not waited for", gate.ClaudeCode, gate.AXCode, claudeHook("PreToolUse", "", `{"type":"command","command":"x","async":true}`+other), `error: .*async: an async hook cannot decide anything`, true},
		{"an event that nobody else has", gate.ClaudeCode, gate.AXCode, `{"hooks":{"Notification":[],"PreToolUse":[{"hooks":[` + other[1:] + `]}]}}`, `error: hooks.Notification: .*never asked about Notification`, true},
		{"how a session starts", gate.ClaudeCode, gate.AXCode, claudeHook("SessionStart", `"matcher":"resume",`, `{"type":"command","command":"x"}`), `AX Code has no matcher on SessionStart`, false},
		{"why a session is compacted", gate.ClaudeCode, gate.AXCode, claudeHook("PreCompact", `"matcher":"manual",`, `{"type":"command","command":"x"}`), `AX Code has no matcher on PreCompact`, false},
		{"a tool", gate.Antigravity, gate.AXCode, sandboxFile("pre_tool_execution", "code_execution|delete_file", `"type":"command","command":"x"`), `AX Code has no tool like delete_file`, true},
		{"a tool of an MCP server", gate.AXCode, gate.Antigravity, axFile(`"event":"PreToolUse","matcher":"mcp__x","command":"x"`), `five tools alone, and "mcp__x" is like none of them`, false},
		{"a pattern about who knows what", gate.ClaudeCode, gate.AXCode, claudeHook("PreToolUse", `"matcher":"(a|b)c",`, `{"type":"command","command":"x"}`), `matches none of the known tools of Claude Code`, false},
		{"a condition", gate.Azure, gate.ClaudeCode, agentHook("Stop", `prompt: x, when: turn > 1`), `6:\d+: error: .*when: .*Claude Code has no conditions`, false},
		{"rules", gate.Azure, gate.ClaudeCode, agentHook("Stop", `type: rule, rules: [{if: turn > 1, then: block, reason: x}]`), `6:\d+: error: .*type: Claude Code has no rules like these`, false},
		{"a panel", gate.Azure, gate.ClaudeCode, agentHook("Stop", `prompt: x, votes: 3`), `6:\d+: error: .*votes: Claude Code judges once, by one model`, false},
		{"in shadow", gate.Azure, gate.ClaudeCode, agentHook("Stop", `type: command, command: "exit 2", mode: shadow`), `6:\d+: error: .*Claude Code has no hooks in shadow`, false},
		{"of an agent in shadow", gate.Azure, gate.AXCode, strings.Replace(agentHook("PreToolUse", `type: command, command: "exit 2", matcher: Bash`), "hooks:", "mode: shadow\n  hooks:", 1), `AX Code has no hooks in shadow`, false},
		{"on demand", gate.Azure, gate.ClaudeCode, "api_version: azuresre.ai/v2\nkind: GlobalHook\nmetadata: {name: g}\nspec: {eventType: Stop, activationMode: onDemand, hook: {prompt: x}}\n", `no hooks that are switched on by demand`, false},
		{"tasks that run", gate.Azure, gate.ClaudeCode, "name: a\nproperties: {deferStopForBackgroundTasks: true, hooks: {Stop: [{prompt: x}]}}\n", `error: properties.deferStopForBackgroundTasks: deferStopForBackgroundTasks has no equal`, true},
		{"a variable that nobody else sets", gate.AXCode, gate.ClaudeCode, axFile(`"event":"PreToolUse","blockOnFailure":true,"command":"echo $HOOK_TOOL $HOOK_ARGS_JSON | grep -qv rm"`),
			`error: .*input: the hook reads HOOK_TOOL \(there: tool_name\), HOOK_ARGS_JSON \(there: tool_input\), which Claude Code does not give`, false},
		{"a block without a reason", gate.ClaudeCode, gate.Azure, claudeHook("Stop", "", `{"type":"command","command":"echo '{\"decision\":\"block\"}'"}`), `error: .*also without a reason, .* and lets the agent stop in Azure SRE Agent`, true},
		{"what goes on behind its end", gate.AXCode, gate.ClaudeCode, axFile(`"event":"Stop","command":"echo x \\"`), `command is not bash that can be read`, false},
		{"what is no bash", gate.AXCode, gate.ClaudeCode, axFile(`"event":"Stop","command":"if"`), `command is not bash that can be read`, false},
		{"a script that is too long in quotes", gate.Azure, gate.ClaudeCode, agentHook("Stop", `type: command, script: "`+strings.Repeat("'", 40_000)+`"`), `command is 160\d+ long as Claude Code has to be given it, and it takes 65536`, false},
		{"a source with an error", gate.AXCode, gate.Azure, axFile(`"event":"Stop"`), `AX Code ignores this whole file`, false},
		{"what is no JSON", gate.AXCode, gate.Azure, `{`, `1:1: error: text is not JSON`, false},
		{"several agents", gate.Azure, gate.ClaudeCode, "name: a\nproperties: {}\n---\nname: b\nproperties: {}\n", `4:1: error: file has several agents`, false},
		{"nothing", gate.AXCode, gate.Azure, `{}`, `1:1: error: file has no hook that is asked`, false},
		{"hooks that are switched off", gate.ClaudeCode, gate.Azure, `{"disableAllHooks":true,"hooks":{"Stop":[{"hooks":[` + other[1:] + `]}]}}`, `disableAllHooks is set`, false},
		{"a hook that is never asked would be asked about everything", gate.Azure, gate.ClaudeCode, agentHook("PreToolUse", `type: command, command: x, matcher: ""`), `hook is never asked, as its matcher matches no tool`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			document, report := converted(c.from, c.to, c.source, false)
			if document != "" || !regexp.MustCompile(c.want).MatchString(report) {
				t.Errorf("document %q, report:\n%s\nwant %s", document, report, c.want)
			}
			if document, _ := converted(c.from, c.to, c.source, true); (document != "") != c.partial {
				t.Errorf("in part it is %q", document)
			}
		})
	}
	t.Run("a hostile nest costs nothing", func(t *testing.T) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, report := converted(gate.AXCode, gate.ClaudeCode, axFile(`"event":"Stop","command":"`+strings.Repeat("(", 65_000)+`"`), false)
		if runtime.ReadMemStats(&after); after.StackSys > before.StackSys+64<<20 || !strings.Contains(report, "command is not bash that can be read") {
			t.Errorf("from %d to %d MiB of stack; report:\n%s", before.StackSys>>20, after.StackSys>>20, report)
		}
	})
	t.Run("more than 100", func(t *testing.T) {
		hook := `{"type":"command","command":"y"}`
		document, report := converted(gate.ClaudeCode, gate.AXCode, claudeHook("PreToolUse", "", hook+strings.Repeat(","+hook, 100)), true)
		if strings.Count(document, "command\"") != 100 || !strings.Contains(report, "AX Code takes 100 hooks at most, and this is one more") {
			t.Errorf("report:\n%s", report)
		}
	})
}

func TestConvertAgents(t *testing.T) {
	const source = "name: a\nproperties: {hooks: {Stop: [{prompt: own}]}}\n---\nname: b\nproperties: {}\n---\ntype: GlobalHook\nname: g\nproperties: {eventType: Stop, hook: {prompt: everybody's}}\n"
	for agent, want := range map[string]string{"a": "everybody's own", "b": "everybody's", "c": "everybody's"} {
		document, list := Conversion{From: gate.Azure, To: gate.ClaudeCode, Agent: agent}.Convert("x.yaml", []byte(source))
		var prompts []string
		for _, h := range reread(t, gate.ClaudeCode, document) {
			prompts = append(prompts, h.Prompt)
		}
		if diff := cmp.Diff(want, strings.Join(prompts, " ")); diff != "" {
			t.Errorf("%s:\n%s\n%s", agent, diff, textOf(list))
		}
	}
	if _, list := (Conversion{From: gate.Azure, To: gate.ClaudeCode, Agent: "c"}).Convert("x.yaml", []byte("name: a\nproperties: {}\n")); !strings.Contains(textOf(list), `file has no agent "c"`) {
		t.Errorf("report:\n%s", textOf(list))
	}
	document, _ := Conversion{From: gate.ClaudeCode, To: gate.Azure, Agent: "mine"}.Convert("x", []byte(claudeHook("Stop", "", `{"type":"command","command":"true"}`)))
	if specs, _ := ReadDraft("x.yaml", document); len(specs) != 1 || specs[0].Name != "mine" {
		t.Errorf("written:\n%s", document)
	}
}
