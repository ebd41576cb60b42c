package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"stopgate/gate"
)

// sameHooks compares hooks by what they were declared as.
var sameHooks = cmp.Options{
	cmp.Comparer(func(a, b gate.Matcher) bool { return a.String() == b.String() }),
	cmp.Comparer(func(a, b *gate.Rule) bool { return a == b || a != nil && b != nil && a.String() == b.String() }),
	cmpopts.EquateEmpty(),
}

func TestClaudeCode01Handlers(t *testing.T) {
	const settings = `{
  "$schema": "https://example.com/settings.json", "model": "opus", "permissions": {"allow": ["Bash"]},
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [
        {"type": "command", "command": "check.sh", "statusMessage": "Checking"},
        {"type": "command", "command": "check", "args": ["--all", "a b"], "timeout": 5, "if": "Bash(git push *)"},
        {"type": "command", "command": "check", "args": [], "timeout": 0.5}]},
      {"hooks": [
        {"type": "http", "url": "http://localhost:8080/h", "headers": {"Authorization": "Bearer $TOKEN"}, "allowedEnvVars": ["TOKEN"]}]}],
    "PostToolUse": [{"matcher": "*", "hooks": [
        {"type": "prompt", "prompt": "Fine? $ARGUMENTS"},
        {"type": "prompt", "prompt": "Fine?", "continueOnBlock": true, "model": "haiku", "timeout": 10}]}],
    "SessionStart": [{"matcher": "resume", "hooks": [{"type": "command", "command": "notes"}]}],
    "Stop": [{"hooks": [{"type": "agent", "prompt": "Do the tests pass?"}]}]
  }}`
	spec, findings := ReadAttached(gate.ClaudeCode, "default", []byte(settings))
	if len(findings) > 0 {
		t.Errorf("findings: %v", findings)
	}
	if spec == nil {
		t.FailNow()
	}
	rule, err := gate.CompileRule("Bash(git push *)")
	if err != nil {
		t.Fatal(err)
	}
	matcher := func(pattern string) gate.Matcher {
		m, err := gate.CompileClaudeCodeMatcher(pattern)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	hook := func(name string, event gate.EventName, kind gate.HookType, pattern string, timeout time.Duration, h gate.Hook) gate.Hook {
		h.Name, h.Event, h.Type, h.Matcher, h.Timeout = name, event, kind, matcher(pattern), timeout
		h.Level, h.Dialect, h.FailMode = gate.CustomLevel, gate.ClaudeCode, gate.FailAllow
		return h
	}
	want := []gate.Hook{
		hook("PreToolUse[0].hooks[0]", gate.PreToolUse, gate.CommandHook, "Bash", 600*time.Second, gate.Hook{Command: "check.sh"}),
		hook("PreToolUse[0].hooks[1]", gate.PreToolUse, gate.CommandHook, "Bash", 5*time.Second, gate.Hook{Command: "check", Args: []string{"--all", "a b"}, If: rule}),
		hook("PreToolUse[0].hooks[2]", gate.PreToolUse, gate.CommandHook, "Bash", 500*time.Millisecond, gate.Hook{Command: "check", Args: []string{}}),
		hook("PreToolUse[1].hooks[0]", gate.PreToolUse, gate.HTTPHook, "", 600*time.Second, gate.Hook{URL: "http://localhost:8080/h",
			Headers: []gate.Header{{Name: "Authorization", Value: "Bearer $TOKEN"}}, AllowedEnv: []string{"TOKEN"}}),
		hook("PostToolUse[0].hooks[0]", gate.PostToolUse, gate.PromptHook, "*", 30*time.Second, gate.Hook{Prompt: "Fine? $ARGUMENTS", Model: gate.DefaultModel, EndsTurn: true}),
		hook("PostToolUse[0].hooks[1]", gate.PostToolUse, gate.PromptHook, "*", 10*time.Second, gate.Hook{Prompt: "Fine?", Model: "haiku"}),
		hook("SessionStart[0].hooks[0]", gate.Start, gate.CommandHook, "resume", 600*time.Second, gate.Hook{Command: "notes"}),
		hook("Stop[0].hooks[0]", gate.Stop, gate.PromptHook, "", 60*time.Second, gate.Hook{Prompt: "Do the tests pass?", Model: gate.DefaultModel}),
	}
	if diff := cmp.Diff(want, spec.Hooks, sameHooks); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if args := spec.Hooks[2].Args; args == nil {
		t.Error("an empty list of arguments is none: the command would be run by a shell")
	}
	if text := string(spec.Document); strings.Contains(text, "permissions") || !strings.HasPrefix(text, `{"hooks":{"PreToolUse":[{"matcher":"Bash",`) || spec.Kind != gate.Attached(gate.ClaudeCode) || spec.Name != "default" {
		t.Errorf("%s %s, document %.40s", spec.Kind, spec.Name, spec.Document)
	}
}

// claudeHook is settings with one hook.
func claudeHook(event, group, hook string) string {
	return fmt.Sprintf("{\"hooks\":{%q:[{%s\"hooks\":[\n%s]}]}}", event, group, hook)
}

// What settings say that does not do what it looks like. Hooks that are never
// asked are left out.
func TestClaudeCode01And02Warnings(t *testing.T) {
	const run = `{"type":"command","command":"x"}`
	for _, c := range []struct {
		name, settings string
		hooks          int
		want           string // one warning; empty: none
	}{
		{"fault schema-04: a plugin's file", `{"description":"d","hooks":{"Stop":[{"hooks":[` + run + `]}]}}`, 1, ""},
		{"nothing but hooks", claudeHook("Stop", "", run), 1, ""},
		{"no hooks", `{"model":"opus"}`, 0, `1:1: settings have no member "hooks": nothing is asked`},
		{"no hooks in hooks", `{"hooks":{}}`, 0, `1:10: settings have no hooks: nothing is asked`},
		{"hooks are switched off", `{"disableAllHooks":true,"hooks":{"Stop":[{"hooks":[` + run + `]}]}}`, 0, "1:20: disableAllHooks is set: no hook is asked"},
		{"an event that the gate never sees", claudeHook("PreCompact", "", run), 0, "1:11: the gate is never asked about PreCompact"},
		{"an event that nobody knows", claudeHook("PreToolUsed", "", run), 0, `1:11: "PreToolUsed" is no event of Claude Code that is known here: its hooks are never asked; did you mean "PreToolUse"?`},
		{"a matcher without effect", claudeHook("Stop", `"matcher":"Bash",`, run), 1, "matcher has no effect on Stop: the hooks run on every Stop"},
		{"a matcher that takes all", claudeHook("Stop", `"matcher":"*",`, run), 1, ""},
		{"a server without its tools", claudeHook("PreToolUse", `"matcher":"mcp__memory",`, run), 1, `matcher "mcp__memory" matches nothing, since a server's tools have longer names: write "mcp__memory__.*" for all of them`},
		{"a server in a list", claudeHook("PreToolUse", `"matcher":"Bash|mcp__memory",`, run), 1, `"mcp__memory__.*"`},
		{"a server with its tools", claudeHook("PreToolUse", `"matcher":"mcp__memory__.*",`, run), 1, ""},
		{"a server's tool", claudeHook("PreToolUse", `"matcher":"mcp__memory__read",`, run), 1, ""},
		{"an expression that reaches further", claudeHook("PreToolUse", `"matcher":"Edit.*",`, run), 1,
			`matcher "Edit.*" is a regular expression, which may match anywhere in a name: it is about MultiEdit, NotebookEdit too; write ^(?:…)$ for whole names`},
		{"an expression that does not", claudeHook("PreToolUse", `"matcher":"^Edit",`, run), 1, ""},
		{"one that is meant to reach further", claudeHook("PreToolUse", `"matcher":"^Notebook",`, run), 1, ""},
		{"a rule for a matcher", claudeHook("PreToolUse", `"matcher":"Bash(git *)",`, run), 1, `matcher "Bash(git *)" matches nothing, since matchers are names of tools, and rules stand in the hook: write the matcher "Bash", and "if": "Bash(git *)"`},
		{"an expression in brackets", claudeHook("PreToolUse", `"matcher":"WebFetch(|x)",`, run), 1, ""},
		{"a rule about another tool", claudeHook("PreToolUse", `"matcher":"Edit|Write",`, `{"type":"command","command":"x","if":"Bash(git push *)"}`), 1, `if is about Bash alone, and matcher "Edit|Write" is not: the hook is never asked`},
		{"a rule about a tool by another host's name", claudeHook("PreToolUse", `"matcher":"run_shell_command",`, `{"type":"command","command":"x","if":"Bash(git push *)"}`), 1, ""},
		{"a rule about one of them", claudeHook("PreToolUse", `"matcher":"Bash|Write",`, `{"type":"command","command":"x","if":"Bash(git push *)"}`), 1, ""},
		{"an answer of another system", claudeHook("PreToolUse", "", `{"type":"command","command":"echo '{\"decision\": \"deny\"}'"}`), 1, `command answers {"decision":"deny"}, which Claude Code reads as no answer`},
		{"such an answer on Stop", claudeHook("Stop", "", `{"type":"command","command":"echo '{\"decision\": \"deny\"}'"}`), 1, `say {"decision":"block","reason":"…"}`},
		{"an answer without what it stands in", claudeHook("PreToolUse", "", `{"type":"command","command":"echo '{\"permissionDecision\": \"deny\"}'"}`), 1, `command answers {"permissionDecision":"deny"}`},
		{"its own answer", claudeHook("PreToolUse", "", `{"type":"command","command":"echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\"}}'"}`), 1, ""},
		{"words about a decision", claudeHook("PreToolUse", "", `{"type":"command","command":"./gate.sh # the decision: allow; deny by exit 2"}`), 1, ""},
		{"a line beside arguments", claudeHook("PreToolUse", "", `{"type":"command","command":"bash x.sh a","args":["b"]}`), 1, `command "bash x.sh a" is the name of one program beside args`},
		{"a path with a space", claudeHook("PreToolUse", "", `{"type":"command","command":"/opt/our tools/gate","args":["b"]}`), 1, ""},
		{"another machine by plain http", claudeHook("Stop", "", `{"type":"http","url":"http://policy.example/"}`), 1, "url begins with http://, which the gate sends to its own machine alone"},
		{"this machine by plain http", claudeHook("Stop", "", `{"type":"http","url":"http://127.0.0.1:8080/"}`), 1, ""},
		{"letter case", claudeHook("PreToolUse", `"matcher":"Edit, bash",`, run), 1, `matcher "bash" matches nothing, since case counts: did you mean "Bash"?`},
		{"a list of nothing", claudeHook("PreToolUse", `"matcher":" , ",`, run), 1, `matcher " , " names nothing: its hooks are never asked`},
		{"async", claudeHook("Stop", "", `{"type":"command","command":"x","async":true}`), 0, "2:41: an async hook cannot decide anything, since Claude Code does not wait for it: it is left out"},
		{"asyncRewake", claudeHook("Stop", "", `{"type":"command","command":"x","asyncRewake":true}`), 0, "an asyncRewake hook cannot decide"},
		{"async that is not", claudeHook("Stop", "", `{"type":"command","command":"x","async":false}`), 1, ""},
		{"once", claudeHook("Stop", "", `{"type":"command","command":"x","once":true}`), 1, "once has no effect in settings"},
		{"if where there is no tool", claudeHook("Stop", "", `{"type":"command","command":"x","if":"Bash(ls)"}`), 0, "on others Claude Code never asks such a hook, and it is left out"},
		{"a type that Claude Code has alone", claudeHook("Stop", "", `{"type":"mcp_tool","server":"s","tool":"t"}`), 0, "a server that Claude Code has and the gate has not: it is left out"},
		{"a session is started by commands alone", claudeHook("SessionStart", "", `{"type":"http","url":"http://localhost/x"}`), 0, "Claude Code never asks a hook of type http on SessionStart: it is left out"},
		{"an unknown field", claudeHook("Stop", "", `{"type":"command","command":"x","blocking":true}`), 1, `field "blocking" is unknown and has no effect`},
		{"milliseconds", claudeHook("Stop", "", `{"type":"command","command":"x","timeout":5000}`), 1, "timeout of 5000 s: the unit is seconds, not milliseconds"},
		{"fault exit-05: exit 1", claudeHook("PreToolUse", "", `{"type":"command","command":"test -f x || exit 1"}`), 1, "command can exit with 1, which is a failure and blocks nothing; exit 2 blocks"},
		{"exit 1 with an answer", claudeHook("PreToolUse", "", `{"type":"command","command":"echo '{\"decision\":\"block\"}'; exit 1"}`), 1, ""},
		{"broken bash", claudeHook("Stop", "", `{"type":"command","command":"if x"}`), 1, "command is not valid bash"},
		{"no shell reads it", claudeHook("Stop", "", `{"type":"command","command":"if x","args":["exit 1"]}`), 1, `command "if x" is the name of one program beside args`},
		{"a home directory", claudeHook("Stop", "", `{"type":"command","command":"~/.claude/x.sh"}`), 1, "command lies in a home directory or a plugin, which hooks do not see here"},
		{"a home directory behind a program", claudeHook("PreToolUse", "", `{"type":"command","command":"timeout 5 python3 -u \"$HOME/x.py\""}`), 1, `command lies in a home directory`},
		{"a plugin's script", claudeHook("PreToolUse", "", `{"type":"command","command":"bash \"${CLAUDE_PLUGIN_ROOT}/x.sh\""}`), 1, `command lies in a home directory`},
		{"a home directory in a line of its own", claudeHook("PreToolUse", "", `{"type":"command","command":"bash -c '. ~/x.sh'"}`), 1, `command lies in a home directory`},
		{"a home directory that is named alone", claudeHook("PreToolUse", "", `{"type":"command","command":"echo \"$(id -u) $HOME ~/x\"; python3 x.py --to ~/log; A=$HOME/x"}`), 1, ""},
		{"a call that is changed", claudeHook("PreToolUse", "", `{"type":"command","command":"jq '{hookSpecificOutput: {hookEventName: \"PreToolUse\", updatedInput: .tool_input}}'"}`), 1, `command answers with updatedInput, and a gate cannot change what a tool gets or gives`},
		{"a credential in the command", claudeHook("PreToolUse", "", `{"type":"command","command":"API_TOKEN=s3cretvalue python3 x.py"}`), 1, `command sets API_TOKEN to a text that stands in it, and API_TOKEN looks like a credential`},
		{"a credential for a program", claudeHook("PreToolUse", "", `{"type":"command","command":"env GITHUB_TOKEN=s3cretvalue gh api /"}`), 1, `command sets GITHUB_TOKEN`},
		{"a credential for all that comes", claudeHook("PreToolUse", "", `{"type":"command","command":"export DB_PASSWORD='s3cretvalue'; ./x.sh"}`), 1, `command sets DB_PASSWORD`},
		{"a credential from elsewhere", claudeHook("PreToolUse", "", `{"type":"command","command":"TOKEN=$(cat /run/token) KEY_FILE=x API_KEY=/etc/key SECRET= AUTH=yes POLICY=strict ./x.sh \"$TOKEN\""}`), 1, ""},
		{"a session that begins with updatedInput", claudeHook("SessionStart", "", `{"type":"command","command":"echo updatedInput"}`), 1, ""},
		{"a plugin's script as an argument", claudeHook("Stop", "", `{"type":"command","command":"python3","args":["${CLAUDE_PLUGIN_ROOT}/x.py"]}`), 1, "command lies in a home directory"},
		{"a bare word for an answer", claudeHook("Stop", "", `{"type":"prompt","prompt":"Answer yes or no."}`), 1, `prompt asks for the answer "yes", which is no verdict`},
		{"a model of Anthropic's", claudeHook("Stop", "", `{"type":"prompt","prompt":"Ready?","model":"claude-haiku-4-5"}`), 1, `the gate asks its own models: "claude-haiku-4-5" is a name of the server file's, or else one of its default provider's`},
		{"a variable that is not allowed", claudeHook("Stop", "", `{"type":"http","url":"http://localhost/x","headers":{"X-A":"${A}$B"},"allowedEnvVars":["B"]}`), 1, `header "X-A" names the variable A, which allowedEnvVars does not: it is sent empty`},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, findings := ReadAttached(gate.ClaudeCode, "a", []byte(c.settings))
			if spec == nil {
				t.Fatalf("refused: %v", findings)
			}
			if len(spec.Hooks) != c.hooks {
				t.Errorf("%d hooks, want %d", len(spec.Hooks), c.hooks)
			}
			var said []string
			for _, f := range findings {
				said = append(said, fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Message))
			}
			if c.want == "" && len(said) > 0 || c.want != "" && (len(said) != 1 || !strings.Contains(said[0], c.want)) {
				t.Errorf("findings %q, want one with %q", said, c.want)
			}
		})
	}
}

// What is wrong with one hook, or one group, costs that one alone, there and here
// (seen with 2.1.332).
func TestClaudeCode01LeftOut(t *testing.T) {
	const sibling = `{"type":"command","command":"x"}`
	const hook, group = ": Claude Code leaves this hook out", ": Claude Code leaves it out"
	for _, c := range []struct{ name, event, want string }{ // beside a sibling
		{"an event that is no list", `{}`, "Stop is an object, want a list of groups, each with its hooks" + group},
		{"a hook without a group", `[` + sibling + `]`, "Stop[0] has no list of hooks" + group + `; a hook stands in a group: {"hooks":[{"type":…}]}`},
		{"a group that is text", `["x"]`, `Stop[0] is the text "x", want an object with matcher and hooks` + group},
		{"a hook that is text", `[{"hooks":["x"]}]`, `Stop[0].hooks[0] is the text "x", want an object` + group},
		{"no type", `[{"hooks":[{"command":"x"}]}]`, "type is missing, want one of command, http, prompt, agent" + hook},
		{"an unknown type", `[{"hooks":[{"type":"comand","command":"x"}]}]`, `did you mean "command"?` + hook},
		{"no command", `[{"hooks":[{"type":"command"}]}]`, "command is missing: a hook of type command needs one" + hook},
		{"no prompt", `[{"hooks":[{"type":"agent","prompt":" "}]}]`, "prompt is missing: a hook of type agent needs one" + hook},
		{"no url", `[{"hooks":[{"type":"http"}]}]`, "url is missing: a hook of type http needs one" + hook},
		{"fault http-03: a variable in the url", `[{"hooks":[{"type":"http","url":"${GATE_URL}/v1/hooks"}]}]`, "variables are not expanded in it" + hook},
		{"another scheme", `[{"hooks":[{"type":"http","url":"ftp://x/"}]}]`, "want http://host/path or https://host/path" + hook},
		{"a header that is no text", `[{"hooks":[{"type":"http","url":"https://x/","headers":{"A":1}}]}]`, `header "A" is the number 1, want text` + hook},
		{"no time", `[{"hooks":[{"type":"command","command":"y","timeout":0}]}]`, "timeout is 0, want more than 0 (seconds)" + hook},
		{"less", `[{"hooks":[{"type":"command","command":"y","timeout":-1}]}]`, "timeout is -1, want more than 0 (seconds)" + hook},
		{"a time that is text", `[{"hooks":[{"type":"command","command":"y","timeout":"5"}]}]`, `timeout is the text "5", want seconds without quotes` + hook},
		{"arguments that are text", `[{"hooks":[{"type":"command","command":"y","args":"z"}]}]`, `args is the text "z", want a list of texts` + hook},
		{"an unknown shell", `[{"hooks":[{"type":"command","command":"y","shell":"fish"}]}]`, `shell is "fish", want one of bash, powershell` + hook},
		{"a mark that is text", `[{"hooks":[{"type":"command","command":"y","async":"yes"}]}]`, `async is the text "yes", want true or false without quotes` + hook},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, findings := ReadAttached(gate.ClaudeCode, "a", []byte(`{"hooks":{"Stop":`+c.event+`,"SubagentStop":[{"hooks":[`+sibling+`]}]}}`))
			if spec == nil || len(spec.Hooks) != 1 || spec.Hooks[0].Name != "SubagentStop[0].hooks[0]" {
				t.Errorf("spec %v, findings %v", spec, findings)
			}
			if len(findings) != 1 || !strings.Contains(findings[0].Message, c.want) || findings[0].Line != 1 || findings[0].Column < 10 {
				t.Errorf("findings %v, want %q", findings, c.want)
			}
		})
	}
}

// What costs the whole file; and whether it does so in Claude Code too, or is
// only more than the gate can do.
func TestClaudeCode01And02Errors(t *testing.T) {
	const run = `{"type":"command","command":"x"}`
	for _, c := range []struct {
		name, settings string
		skipped        bool // by Claude Code
		want           string
	}{
		{"no object", `[]`, true, "1:1: settings are a list, want an object"},
		{"hooks that are a list", `{"hooks":[]}`, true, "1:10: hooks is a list, want an object"},
		{"a matcher that is a number", claudeHook("PreToolUse", `"matcher":5,`, run), true, "1:36: matcher is the number 5, want text"},
		{"a matcher that is null", claudeHook("PreToolUse", `"matcher":null,`, run), true, "matcher is null, want text"},
		{"a rule that is a number", claudeHook("PreToolUse", "", `{"type":"command","command":"x","if":5}`), true, "2:38: if is the number 5, want text"},
		{"a switch that is text", `{"disableAllHooks":"no","hooks":{}}`, true, "disableAllHooks is the text"},
		{"events without hooks round them", `{"Stop":[{"hooks":[` + run + `]}]}`, false, `1:2: Stop stands by itself, and Claude Code reads hooks only from the member "hooks"`},
		{"a password in the url", claudeHook("Stop", "", `{"type":"http","url":"http://u:p@x/"}`), false, "put them into a header"},
		{"a header that breaks the line", claudeHook("Stop", "", `{"type":"http","url":"http://x/","headers":{"A":"b\r\nC: d"}}`), false, "has a value with a line break"},
		{"a header with no name", claudeHook("Stop", "", `{"type":"http","url":"http://x/","headers":{"A b":"c"}}`), false, "is no name of a header"},
		{"a matcher that RE2 cannot run", claudeHook("PreToolUse", `"matcher":"^(?!Bash)",`, run), false, "RE2 has no negative look-ahead (?!…); Claude Code may run it, the gate cannot"},
		{"a rule that the gate does not know", claudeHook("PreToolUse", "", `{"type":"command","command":"x","if":"Skill(x)"}`), false, "rules on the arguments of Skill are not evaluated by the gate"},
		{"another shell", claudeHook("Stop", "", `{"type":"command","command":"x","shell":"powershell"}`), false, "shell is powershell, which is not run here"},
		{"a NUL in the command", claudeHook("Stop", "", `{"type":"command","command":"x\u0000"}`), false, "NUL character"},
		{"a command that is too long", claudeHook("Stop", "", `{"type":"command","command":"`+strings.Repeat("x", gate.MaxScriptBytes+1)+`"}`), false, "65537 bytes long"},
		{"too many hooks", claudeHook("Stop", "", strings.Repeat(run+",", maxAttached)+run), false, "settings have 1001 hooks, want at most 1000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, findings := ReadAttached(gate.ClaudeCode, "a", []byte(c.settings))
			if spec != nil {
				t.Error("it is taken")
			}
			said, skipped := "", false
			for _, f := range findings {
				if f.Severity == gate.SeverityError {
					said += fmt.Sprintf("%d:%d: %s\n", f.Line, f.Column, f.Message)
				}
				skipped = skipped || strings.Contains(f.Message, "Claude Code skips this file whole")
			}
			if !strings.Contains(said, c.want) {
				t.Errorf("findings\n%swant %q", said, c.want)
			}
			if skipped != c.skipped {
				t.Errorf("Claude Code skips the file: %v, want %v", skipped, c.skipped)
			}
		})
	}
}

// The families that hooks of Claude Code name their models by stand for tiers,
// where the server file gives them no other meaning.
func TestClaudeCode01ModelFamilies(t *testing.T) {
	m := Models{Providers: map[string]Provider{"p": {}}, Default: "p",
		Tiers:    map[string]string{"ReasoningFast": "p/small", "GeneralPurpose": "p/middle", "Reasoning": "p/large"},
		Fallback: map[string][]string{"GeneralPurpose": {"p/other"}, "opus": {"p/spare"}}}
	for model, want := range map[string]string{"haiku": "small", "sonnet": "middle", "opus": "large", "claude-haiku-4-5": "claude-haiku-4-5"} {
		if _, deployment := m.Resolve(model); deployment != want {
			t.Errorf("%s is %s, want %s", model, deployment, want)
		}
	}
	if diff := cmp.Diff([]string{"p/other"}, m.InPlaceOf("sonnet")); diff != "" {
		t.Errorf("in place of sonnet (-want +got)\n%s", diff)
	}
	m.Named = map[string]string{"opus": "p/mine"}
	if _, deployment := m.Resolve("opus"); deployment != "mine" {
		t.Errorf("a name of the server file's is %s", deployment)
	}
	if diff := cmp.Diff([]string{"p/spare"}, m.InPlaceOf("opus")); diff != "" {
		t.Errorf("in place of a name of the server file's (-want +got)\n%s", diff)
	}
}

// Settings full of mistakes cost no more than their length, and few findings.
func TestHostileClaudeCodeSettings(t *testing.T) {
	var fields, events strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&fields, `,"statusMesage%d":1`, i)
		fmt.Fprintf(&events, `"PreToolUs%d":1,`, i)
	}
	hook := `{"type":"command","command":"x"` + fields.String() + `}`
	settings := `{"hooks":{` + events.String() + `"Stop":[{"hooks":[` + hook + `,` + hook + `]}]}}`
	spec, findings := ReadAttached(gate.ClaudeCode, "a", []byte(settings))
	if spec == nil || len(spec.Hooks) != 2 || len(findings) > maxFindings {
		t.Errorf("spec %v, %d findings", spec, len(findings))
	}
}

// Whatever stands in settings, reading them neither fails nor makes a hook that
// cannot be asked.
func FuzzReadClaudeCode(f *testing.F) {
	f.Add(claudeHook("PreToolUse", `"matcher":"Edit.*",`, `{"type":"command","command":"x","args":["y"],"if":"Edit(src/**)","timeout":0.1}`))
	f.Add(claudeHook("Stop", "", `{"type":"agent","prompt":"done?","model":"opus","continueOnBlock":true}`))
	f.Add(claudeHook("PreToolUse", "", `{"type":"http","url":"http://x/","headers":{"A":"$B"},"allowedEnvVars":["B"]}`))
	f.Add(claudeHook("Stop", "", `{"type":"command","command":"x","timeout":1e-300}`))
	f.Fuzz(func(t *testing.T, settings string) {
		spec, findings := ReadAttached(gate.ClaudeCode, "a", []byte(settings))
		if (spec == nil) != gate.HasErrors(findings) {
			t.Fatalf("spec %v, findings %v", spec, findings)
		}
		if spec == nil {
			return
		}
		for _, h := range spec.Hooks {
			asked := h.Type == gate.CommandHook && h.Command != "" || h.Type == gate.HTTPHook && h.URL != "" || h.Type == gate.PromptHook && h.Prompt != ""
			if !asked || h.Timeout <= 0 || h.FailMode != gate.FailAllow || h.Name == "" {
				t.Errorf("%+v", h)
			}
		}
	})
}
