package commandhooks

import (
	"testing"

	"stopgate/gate"
)

// A hook that cannot look at its directory is told from one that may; only the
// first is certain.
func TestLooksAround(t *testing.T) {
	const py = "#!/usr/bin/env python3\n"
	for _, tt := range []struct {
		name, script string
		want         bool
	}{
		{"grep of the input", "#!/bin/bash\nif grep -qE 'rm -rf|-delete'; then echo no >&2; exit 2; fi\n", false},
		{"grep of a file", "grep -q done notes.txt", true},
		{"grep below the directory", "grep -rq done", true},
		{"patterns in a file", "grep -qf patterns", true},
		{"patterns in a file, quoted", `grep -q "-fpatterns"`, true},
		{"patterns in a file, among others", "grep -qvf patterns", true},
		{"grep of what a variable holds", `grep -q "$pattern"`, false},
		{"cat of the input", "cat >/dev/null\necho no >&2\nexit 2", false},
		{"cat of a file", "cat ok", true},
		{"a numbered file", "cat -n ok", true},
		{"is it there", "[ -f ok ] || { echo no ok file >&2; exit 2; }", true},
		{"is it there, by bash", "[[ -e ok ]] || exit 2", true},
		{"is it newer", "[[ a -nt b ]] || exit 2", true},
		{"is it there, by test", "test -s ok || exit 2", true},
		{"is it empty", `x=$(cat); if [ -z "$x" ] || [[ $x == *rm* ]]; then exit 2; fi`, false},
		{"jq", `c=$(jq -r .tool_input.command); case "$c" in *sudo*) exit 2;; esac`, false},
		{"jq of a file", `jq -e .ok state.json`, true},
		{"jq with a module", `jq 'import "a" as a; a::ok'`, true},
		{"from a file", "read x < ok", true},
		{"to a file", "echo x > log", true},
		{"names of files", "for f in *.go; do echo $f; done", true},
		{"names of files, told", "echo *", true},
		{"names of files that the input may name", "x=$(cat)\nfor f in $x; do echo \"$f\"; done", true},
		{"the same, from a command", "for f in $(cat); do echo \"$f\"; done", true},
		{"numbers", `x=$(cat); [ ${#x} -gt 5 ] && exit $?`, false},
		{"a quoted star", `echo "*"`, false},
		{"git", "git diff --quiet || exit 2", true},
		{"what a variable says", "$cmd", true},
		{"its own function", "no() { echo no >&2; exit 2; }\ngrep -q sudo && no", false},
		{"its own function that looks", "no() { ls; }\nno", true},
		{"in a substitution", `x=$(ls)`, true},
		{"no shell", "if", true},
		{"python", py + "import json, re, sys\nx = json.load(sys.stdin)\nif re.search('rm', x['a']):\n    print(json.dumps({'decision': 'block'}))\n", false},
		{"python, names of a module", py + "import sys\nfrom collections import deque, Counter\n", false},
		{"python with a main", py + "import sys\nif __name__ == '__main__':\n    sys.exit(0)\n", false},
		{"python, by another name", py + "import json as j\n", false},
		{"python with a file", py + "print(open('ok').read())\n", true},
		{"python with os", py + "import json, os\n", true},
		{"python from os", py + "from os import path\n", true},
		{"python in a line", py + "import json; import os\n", true},
		{"python by the back door", py + "import sys\nsys.modules['os'].listdir()\n", true},
		{"another interpreter", "#!/usr/bin/perl\n", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := LooksAround(&gate.Hook{Type: gate.CommandHook, Script: tt.script}); got != tt.want {
				t.Errorf("looks around: %v", got)
			}
		})
	}
	if !LooksAround(&gate.Hook{Command: "true", Args: []string{}}) || LooksAround(&gate.Hook{Command: "grep -q x && exit 2"}) {
		t.Error("a program is not told from a shell line")
	}
}

// What a hook saw of where its agent works is kept.
func TestEvidenceOfTheWorkspace(t *testing.T) {
	root := openDir(t)
	everyMode(t, Options{Workspace: Workspace{Access: ReadOnly, Roots: []string{root}}}, func(t *testing.T, r *Runner) {
		if got := ask(t, r, "exit 0", in(root)).Evidence.Workspace; got != "read-only" {
			t.Errorf("in it: %q", got)
		}
		if got := ask(t, r, "exit 0", in("/elsewhere")).Evidence.Workspace; got != "none" {
			t.Errorf("elsewhere: %q", got)
		}
	})
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		if got := ask(t, r, "exit 0", in(root)).Evidence.Workspace; got != "none" {
			t.Errorf("without any: %q", got)
		}
	})
}
