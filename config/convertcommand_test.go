package config

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// denied reports what a system does with a command's end, by its hook's fields
// (spec/azure.md 41, antigravity.md 11, ax-code.md 11–13, claude-code.md 3).
func denied(h gate.Hook, code int, stdout string) bool {
	var said struct {
		Decision, PermissionDecision string
	}
	isJSON := json.Unmarshal([]byte(stdout), &said) == nil
	denies := said.Decision == "deny" || said.Decision == "block" || said.PermissionDecision == "deny"
	switch h.Dialect {
	case gate.Antigravity:
		return code == 0 && said.Decision == "deny"
	case gate.AXCode:
		if h.ReadsAnswer {
			return code == 2 || code == 0 && said.PermissionDecision == "deny"
		}
		return h.BlockOnFailure && code != 0
	case gate.ClaudeCode:
		return code == 2 || denies
	}
	failed := code != 0 && code != 2 || code == 0 && stdout != "" && !isJSON
	return code == 2 || failed && h.FailMode == gate.FailBlock || code == 0 && denies
}

// What a command refuses by the law it was written under it refuses in every
// system that it is put into.
func TestConvertKeepsLaws(t *testing.T) {
	answer := map[gate.Dialect]string{gate.Azure: `{"decision":"block","reason":"no"}`, gate.Antigravity: `{"decision":"deny"}`,
		gate.AXCode: `{"permissionDecision":"deny"}`, gate.ClaudeCode: `{"decision":"block"}`}
	for _, on := range []struct {
		to    gate.Dialect
		event gate.EventName
	}{{gate.Azure, gate.PreToolUse}, {gate.Azure, gate.Stop}, {gate.Antigravity, gate.PreToolUse}, {gate.AXCode, gate.PreToolUse}, {gate.ClaudeCode, gate.PreToolUse}} {
		for l, name := range map[law]string{watches: "watches", speaks: "speaks", refuses: "refuses", failsClosed: "fails closed", exitCloses: "exit closes"} {
			for _, c := range []struct {
				command string
				code    int
				says    bool
			}{
				{command: "exit 0"}, {command: "exit 1", code: 1}, {command: "exit 2 # no", code: 2}, {command: "cat; exit 127", code: 127},
				{command: "echo because >&2; exit 2", code: 2}, {command: "echo ' ' >&2; exit 2", code: 2}, {command: "echo fine >&2"},
				{command: "set -e\nfalse\necho checked >&2", code: 1}, {command: "set -euo pipefail\nfalse | cat\nexit 0", code: 1}, {command: "trap 'exit 2' ERR\nfalse\nexit 0", code: 2},
				{command: "echo '" + answer[on.to] + "'", says: true}, {command: "cat <<E\n" + answer[on.to] + "\nE", says: true},
			} {
				want := map[law]bool{watches: false, speaks: c.says, refuses: c.code == 2 || c.says, failsClosed: c.code != 0 || c.says, exitCloses: c.code != 0}[l]
				h := gate.Hook{Dialect: on.to, Event: on.event, FailMode: gate.FailAllow}
				w := express(&h, l)
				code, stdout, stderr := run(t, w.head+c.command+w.tail, "")
				got := denied(h, code, strings.TrimSpace(stdout))
				if on.event == gate.Stop && code == 2 { // spec/azure.md 34
					got = got && strings.TrimSpace(stderr) != ""
				}
				if got != want {
					t.Errorf("%s, %s on %s: %q refuses: %v (exit %d, stdout %q, stderr %q)", on.to, name, on.event, c.command, got, code, stdout, stderr)
				}
				if strings.Contains(c.command, "because") && l == refuses && on.to != gate.Antigravity && stderr != "because\n" {
					t.Errorf("%s, %s on %s: the reason is %q", on.to, name, on.event, stderr)
				}
				inner, back := unwrapped(&declared{Hook: gate.Hook{Dialect: on.to, Event: h.Event, FailMode: h.FailMode, ReadsAnswer: h.ReadsAnswer,
					BlockOnFailure: h.BlockOnFailure, Command: w.head + c.command + w.tail}})
				if inner != c.command || back != l {
					t.Errorf("%s, %s on %s: unwrapped it is %q, %v", on.to, name, on.event, inner, back)
				}
			}
		}
	}
}

// What AX Code gives the agent of a hook's output is additionalContext elsewhere,
// whatever it holds; a failure says nothing.
func TestConvertFeedback(t *testing.T) {
	for command, want := range map[string]string{
		"echo 'Run the formatter.'":                               "Run the formatter.",
		`printf '%s\n' 'a "b" \n & c\\d' "	it's \$x" '' 'e%s \e'`: "a \"b\" \\n & c\\\\d\n\tit's $x\n\ne%s \\e",
		`printf 'caf\303\251\033[1m\001!\n'`:                      "café[1m!",
		"cat":                                                     "stdin",
		"echo '  '":                                               "",
		"true":                                                    "",
		"echo 'not this'; exit 2":                                 "",
		"echo 'nor this'; exit 1":                                 "",
		"seq 1 20000 | tr '\n' ' '; echo end":                     strings.TrimSuffix(counted(20000), " ") + " end",
	} {
		for _, d := range []gate.Dialect{gate.ClaudeCode, gate.Azure} {
			h := gate.Hook{Dialect: d, Event: gate.PostToolUse, FailMode: gate.FailAllow}
			w := express(&h, feeds)
			code, stdout, _ := run(t, w.head+command+w.tail, "stdin")
			if code == 2 {
				t.Errorf("%q exits with 2, which blocks", command)
			}
			got := ""
			if stdout != "" {
				v, err := gate.ReadClaudeCodeAnswer(gate.PostToolUse, []byte(stdout))
				if got = v.AdditionalContext; err != nil || v.Outcome != gate.Allow {
					t.Errorf("%q: %v, %v of %s", command, v.Outcome, err, stdout)
				}
			}
			if diff := cmp.Diff(gate.FirstText(want), got); diff != "" && len(want) < 10_000 || len(want) > 10_000 && len(got) < 9_000 {
				t.Errorf("%q:\n%s", command, diff)
			}
		}
	}
}

func counted(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d ", i+1)
	}
	return b.String()
}

// Whatever a script or an argument holds, the line hands it on whole, and the
// hook's standard input too.
func TestConvertQuoting(t *testing.T) {
	words := []string{"a", "", "it's", "$HOME", "`x`", "a\n\tb", "é\u2028\x01", "-n", "~", "*", "if", "a=b", `\`, `'`, "''", "!", "#x", "a;b", "\r\n"}
	dir := t.TempDir()
	program := filepath.Join(dir, "pro=gram it's")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nprintf '%s\\0' \"$@\"\ncat\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, shell := range []string{"sh", "bash"} {
		line := argsLine(program, append(words, "x${CLAUDE_PROJECT_DIR}/y z"))
		cmd := exec.CommandContext(t.Context(), shell, "-c", line)
		cmd.Stdin, cmd.Env = strings.NewReader("stdin"), append(os.Environ(), "CLAUDE_PROJECT_DIR=/the project")
		out, err := cmd.Output()
		if want := strings.Join(append(words, "x/the project/y z"), "\x00") + "\x00stdin"; err != nil || string(out) != want {
			t.Errorf("%s: %v\n%s", shell, err, cmp.Diff(want, string(out)))
		}
	}
	for _, c := range []struct{ script, want string }{
		{"printf %s \"it's $1\"; cat", "it's stdin"},
		{"#!/bin/bash\n[[ x == x ]] && cat", "stdin"},
		{"#!/usr/bin/env python3\nimport sys\nprint('it\\'s \"' + sys.stdin.read(), end='')\n", `it's "stdin`},
	} {
		line := scriptLine(c.script)
		if _, stdout, stderr := run(t, line, "stdin"); stdout != c.want {
			t.Errorf("%q: %s%s", line, stdout, stderr)
		}
		if back, _ := scriptOf(line); back != c.script {
			t.Errorf("%q is again %q", line, back)
		}
	}
	if got := argsLine("a=b", nil); got != "'a=b'" {
		t.Errorf("a program by the name of a=b is %s", got)
	}
}

// A spec's script in Python takes in none of the modules that lie where it is started,
// as the agent may have written them.
func TestConvertedPythonTakesInItsOwnModules(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "json.py"), []byte("print('{\"decision\":\"allow\"}')\nimport os\nos._exit(0)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", scriptLine("#!/usr/bin/env python3\nimport json, sys\nsys.exit(2)\n"))
	cmd.Dir = dir
	if out, err := cmd.Output(); len(out) > 0 || cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("%q, %v", out, err)
	}
	for line, want := range map[string]bool{"python3 -c '#!/usr/bin/env python3'": false, "python3 -I -c '#!/usr/bin/env python3'": true} {
		if script, python := scriptOf(line); python != want || (script != "") != want {
			t.Errorf("%s is the script %q", line, script)
		}
	}
}
