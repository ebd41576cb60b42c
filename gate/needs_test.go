package gate

import (
	"strings"
	"testing"
)

// What a command cannot do without; "?" stands before what it can, "!" before an
// interpreter.
func TestNeedsOfALine(t *testing.T) {
	for _, tt := range []struct{ name, line, want string }{
		{"a variable, quoted", `python3 "$CLAUDE_PROJECT_DIR/.claude/hooks/x.py"`, "!python3 $CLAUDE_PROJECT_DIR/.claude/hooks/x.py $CLAUDE_PROJECT_DIR"},
		{"a variable in quotes of its own", `"$CLAUDE_PROJECT_DIR"/.claude/hooks/x.sh`, "$CLAUDE_PROJECT_DIR/.claude/hooks/x.sh $CLAUDE_PROJECT_DIR"},
		{"in braces", `"${AX_CODE_PROJECT_DIR}/x.sh" a b`, "$AX_CODE_PROJECT_DIR/x.sh $AX_CODE_PROJECT_DIR"},
		{"with another for where it is not set", `python3 ${CLAUDE_PROJECT_DIR:-.}/x.py`, "!python3 $CLAUDE_PROJECT_DIR/x.py $CLAUDE_PROJECT_DIR"},
		{"set by the line", `CLAUDE_PROJECT_DIR=/usr/share/x; python3 "$CLAUDE_PROJECT_DIR/x.py"`, "!python3 /usr/share/x/x.py"},
		{"set from itself", `CLAUDE_PROJECT_DIR=${CLAUDE_PROJECT_DIR:-.}; true`, "$CLAUDE_PROJECT_DIR"},
		{"used as data", `grep -q x "$CLAUDE_PROJECT_DIR/a.txt"`, "$CLAUDE_PROJECT_DIR"},
		{"behind a variable", `D="$CLAUDE_PROJECT_DIR/hooks"; bash "$D/x.sh"`, "$CLAUDE_PROJECT_DIR !bash $CLAUDE_PROJECT_DIR/hooks/x.sh"},
		{"cd first", `cd "$CLAUDE_PROJECT_DIR" && python3 hooks/x.py`, "$CLAUDE_PROJECT_DIR !python3 $CLAUDE_PROJECT_DIR/hooks/x.py"},
		{"cd below", `cd hooks && ./x.sh`, "?hooks hooks/x.sh"},
		{"cd to who knows where", `cd "$(mktemp -d)" && ./x.sh`, ""},
		{"a path of its own", `.claude/hooks/x.sh`, ".claude/hooks/x.sh"},
		{"a path with a name that is not known", `./hooks/$name.sh`, "./hooks"},
		{"bash", `bash hooks/x.sh`, "!bash hooks/x.sh"},
		{"bash with options", `bash -euo pipefail -x hooks/x.sh a`, "!bash hooks/x.sh"},
		{"bash -c", `bash -c 'python3 hooks/x.py'`, "!bash !python3 hooks/x.py"},
		{"a path without slash", `python3 -u x.py`, "!python3 x.py"},
		{"options with a value", `python3 -W ignore -X dev x.py`, "!python3 x.py"},
		{"a version in the name", `python3.12 x.py`, "!python3.12 x.py"},
		{"node", `node --require ./a.js x.js`, "!node x.js"},
		{"source", `. hooks/lib.sh; check`, "hooks/lib.sh"},
		{"standard input", `python3 - < hooks/x.py`, "!python3 hooks/x.py"},
		{"behind other programs", `timeout -k 1 5 env A=b nice -n 5 python3 x.py`, "!python3 x.py"},
		{"the repository's root", `python3 "$(git rev-parse --show-toplevel)/x.py"`, "!python3 $PWD/x.py"},
		{"pwd", `"$(pwd)/x.sh" || $PWD/y.sh`, "$PWD/x.sh $PWD/y.sh"},
		{"a home directory", `python3 ~/.claude/x.py; "$HOME/y.sh"`, "!python3 ~/.claude/x.py ~/y.sh"},
		{"a plugin", `"${CLAUDE_PLUGIN_ROOT}/x.sh"`, "$CLAUDE_PLUGIN_ROOT/x.sh"},
		{"in a branch", `if true; then x=$(python3 hooks/x.py); fi`, "!python3 hooks/x.py"},
		{"asked for", `[ -x ./x.sh ] && ./x.sh`, "?./x.sh"},
		{"asked for by bash", `[[ -f x.py ]] && python3 x.py`, "!python3 ?x.py"},
		{"an interpreter that is asked for", `command -v node >/dev/null || exit 0; node x.js`, "?!node x.js"},
		{"another search path", `PATH=/opt/x:$PATH; node x.js`, "x.js"},
		{"made", `echo 'exit 2' > x.sh; bash x.sh`, "!bash ?x.sh"},
		{"code in the line", `python3 -c 'open("hooks/x.py")'; node -e 'f("./x")'; perl -ne 's/a/b/'`, "!python3 !node !perl"},
		{"a here-document", "python3 <<'EOF'\nopen('x/y')\nEOF", "!python3"},
		{"a mention", `echo "see docs/rules.md, $X/y" >&2; exit 2`, ""},
		{"data", `jq -e .a docs/x.json || grep -q 'a/b' c/d`, ""},
		{"another variable", `python3 "$SCRIPT"`, "!python3"},
		{"no shell", `python3 "x.py`, ""},
		{"many brackets", "./x.sh; " + strings.Repeat("(", maxBrackets+1), ""},
		{"too long", "./x.sh #" + strings.Repeat("a", maxCommandBytes), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := shownNeeds(&Hook{Command: tt.line}); got != tt.want {
				t.Errorf("needs of %.200s\n got %s\nwant %s", tt.line, got, tt.want)
			}
		})
	}
}

func TestNeedsOfOtherForms(t *testing.T) {
	for _, tt := range []struct {
		name string
		hook Hook
		want string
	}{
		{"arguments", Hook{Command: "python3", Args: []string{"${CLAUDE_PROJECT_DIR}/x.py"}}, "$CLAUDE_PROJECT_DIR !python3 $CLAUDE_PROJECT_DIR/x.py"},
		{"arguments that no shell reads", Hook{Command: "python3", Args: []string{"~/x.py"}}, "!python3 ~/x.py"},
		{"a program alone", Hook{Command: "${CLAUDE_PROJECT_DIR}/x.sh", Args: []string{}}, "$CLAUDE_PROJECT_DIR $CLAUDE_PROJECT_DIR/x.sh"},
		{"a script", Hook{Script: "#!/bin/bash\nset -e\nbash hooks/x.sh\n"}, "!bash hooks/x.sh"},
		{"a script without its first line", Hook{Script: "./gradlew check || exit 2\n"}, "./gradlew"},
		{"a script in Python", Hook{Script: "#!/usr/bin/env python3\n./x.sh\n"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := shownNeeds(&tt.hook); got != tt.want {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func shownNeeds(h *Hook) string {
	var all []string
	for _, n := range h.Needs() {
		text := n.String()
		if n.Kind == ProgramNeed {
			text = "!" + text
		}
		if n.Spare {
			text = "?" + text
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}
