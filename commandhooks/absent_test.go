package commandhooks

import (
	"testing"

	"stopgate/gate"
)

// What comes of a script that a project does not have, where that is certain.
func TestAScriptThatTheProjectDoesNotHave(t *testing.T) {
	_, project := hookedProject(t)
	symlink(t, project+"/nowhere", project, "dangling.sh")
	for _, tt := range []struct {
		name, line, want string
		change           func(*gate.Hook)
	}{
		{"python", `python3 "$CLAUDE_PROJECT_DIR/.claude/hooks/guard.py"`, `"` + project + `/.claude/hooks/guard.py" is not in this project: python3 exits with 2, which blocks every call`, nil},
		{"on Stop", `python3 x.py`, `"x.py" is not in this project: python3 exits with 2, which blocks every stop`, onEvent(gate.Stop)},
		{"on a prompt", `perl x.pl`, `"x.pl" is not in this project: perl exits with 2, which blocks every prompt`, onEvent(gate.UserPromptSubmit)},
		{"after a call", `dash x.sh`, `"x.sh" is not in this project: dash exits with 2, which blocks on every PostToolUse`, onEvent(gate.PostToolUse)},
		{"bash", `bash x.sh`, `"x.sh" is not in this project: bash exits with 127, which decides nothing`, nil},
		{"sh", `sh x.sh`, `"x.sh" is not in this project: sh exits with 2 or, on other systems, 127, which blocks every call`, nil},
		{"node", `node x.js`, `"x.js" is not in this project: node exits with 1, which decides nothing`, nil},
		{"itself", `.claude/hooks/x.sh`, `".claude/hooks/x.sh" is not in this project: the shell exits with 127, which decides nothing`, nil},
		{"behind a pipe", `cat | python3 x.py`, `"x.py" is not in this project: python3 exits with 2, which blocks every call`, nil},
		{"not at the end", `python3 x.py; true`, `"x.py" is not in this project: python3 exits with 2`, nil},
		{"as arguments", `python3`, `"x.py" is not in this project: python3 exits with 2, which blocks every call`, withWords("x.py")},
		{"itself, without a shell", `./x.sh`, `"./x.sh" is not in this project: the hook cannot be started, and decides nothing`, withWords()},
		{"a link to nothing", `bash dangling.sh`, `"dangling.sh" is not in this project: bash exits with 127, which decides nothing`, nil},
		{"AX Code, which blocks on failure", `node x.js`, `"x.js" is not in this project: node exits with 1, which blocks every call`,
			func(h *gate.Hook) { h.Dialect, h.BlockOnFailure = gate.AXCode, true }},
		{"AX Code", `python3 x.py`, `"x.py" is not in this project: python3 exits with 2, which decides nothing`, func(h *gate.Hook) { h.Dialect = gate.AXCode }},
		{"a directory", `cd nosuch && ./x.sh`, `"nosuch" is not in this project: cd exits with 1`, nil},
		{"a library", `. ./lib.sh`, `"./lib.sh" is not in this project: source exits with 1, which decides nothing`, nil},
		{"patterns", `grep -qf deny.txt`, `"deny.txt" is not in this project: grep exits with 2, which blocks every call`, nil},
		{"standard input", `bash < x.sh`, `"x.sh" is not in this project: the shell exits with 1`, nil},
		{"the second", `bash x.sh; python3 y.py`, `"x.sh" is not in this project: bash exits with 127`, nil},
		{"it is there", `bash hooks/no.sh; python3 x.py`, "", nil},
		{"asked for", `[ -f x.py ] && python3 x.py`, "", nil},
		{"dealt with", `python3 x.py || true`, "", nil},
		{"elsewhere", `python3 /srv/x.py; python3 ../x.py`, "", nil},
		{"at home", `python3 ~/x.py`, "", nil},
		{"of a plugin", `python3 "$CLAUDE_PLUGIN_ROOT/x.py"`, "", nil},
		{"through a directory that is not known", `cd "$(f)" && python3 x.py`, "", nil},
		{"made by the hook", `touch x.sh; bash x.sh`, "", nil},
		{"of the Gemini API's sandbox", `python3 x.py`, "", func(h *gate.Hook) { h.Dialect = gate.Antigravity }},
	} {
		h := &gate.Hook{Name: "h", Event: gate.PreToolUse, Type: gate.CommandHook, Dialect: gate.ClaudeCode, Command: tt.line}
		if tt.change != nil {
			tt.change(h)
		}
		if got := Absent(h, project); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func onEvent(event gate.EventName) func(*gate.Hook) { return func(h *gate.Hook) { h.Event = event } }

func withWords(args ...string) func(*gate.Hook) {
	return func(h *gate.Hook) { h.Args = append([]string{}, args...) }
}

// A program that needs a network is told ahead where hooks have none, and only where
// a command starts it.
func TestAProgramThatNeedsANetwork(t *testing.T) {
	confined := &Runner{opt: Options{}, status: Status{Mode: Bubblewrap}, tools: tools{bash: interpreter{file: "/bin/bash"}, python: interpreter{file: "/usr/bin/python3"}}}
	for line, want := range map[string]string{
		`curl -sf https://policy.example/ || exit 2`:       "curl",
		`x=$(timeout 5 /usr/bin/wget -qO- http://a/)`:      "wget",
		`if ! echo "$x" | nc -w1 host 1; then exit 2; fi`:  "nc",
		`env A=b ssh host true`:                            "ssh",
		`command -v curl; grep curl x; echo "curl"; : ssh`: "",
		`if x`:                               "",
		"#!/usr/bin/env python3\ncurl = 1\n": "",
	} {
		h := &gate.Hook{Event: gate.PreToolUse, Type: gate.CommandHook, Dialect: gate.ClaudeCode, Command: line}
		if line[0] == '#' {
			h.Command, h.Script, h.Dialect = "", line, gate.Azure
		}
		if got := confined.Offline(h); got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
		for _, r := range []*Runner{{status: Status{Mode: Process}, tools: confined.tools}, {opt: Options{Network: true}, status: confined.status, tools: confined.tools}} {
			if got := r.Offline(h); got != "" {
				t.Errorf("%s, where there is a network: got %q", line, got)
			}
		}
	}
	h := &gate.Hook{Event: gate.PreToolUse, Type: gate.CommandHook, Dialect: gate.ClaudeCode, Command: "curl", Args: []string{"https://policy.example/"}}
	if got := confined.Offline(h); got != "curl" {
		t.Errorf("arguments: got %q", got)
	}
}
