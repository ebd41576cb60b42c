package commandhooks

import (
	"testing"

	"stopgate/gate"
)

// However a script that the sandbox does not have is named, it is neither a block
// of every call nor an allow that says nothing of what is missing.
func TestAScriptThatHooksDoNotSeeHoweverItIsNamed(t *testing.T) {
	_, project := hookedProject(t)
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		needsPython(t, r)
		for _, line := range []string{
			// programs before it
			`/usr/bin/env python3 hooks/no.py`,
			`/usr/bin/timeout 5 python3 hooks/no.py`,
			`timeout --signal KILL 5 python3 hooks/no.py`,
			`ionice python3 hooks/no.py`,
			// options whose value has a letter of -c, -m or -e in it
			`python3 -Wignore::DeprecationWarning hooks/no.py`,
			`python3 -Xfrozen_modules=off hooks/no.py`,
			`perl -MData::Dumper hooks/no.pl`,
			// options behind -c
			`bash -c -e 'python3 hooks/no.py'`,
			`bash -c -- 'python3 hooks/no.py'`,
			`bash -c "python3 hooks/no.py --tmp $HOME"`,
			`eval "python3 hooks/no.py"`,
			"bash <<'X'\npython3 hooks/no.py\nX",
			// a directory that the line is not in, or is in again
			`(cd /tmp && touch log); python3 hooks/no.py`,
			`log() { cd /tmp; }; python3 hooks/no.py`,
			`cd /tmp; cd - >/dev/null; python3 hooks/no.py`,
			`pushd /tmp >/dev/null; popd >/dev/null; python3 hooks/no.py`,
			`here="$(cd "$(dirname "$0")" && pwd)"; python3 hooks/no.py`,
			`cd "$(git rev-parse --show-toplevel 2>/dev/null || pwd)" && python3 hooks/no.py`,
			`python3 "$(git rev-parse --show-toplevel 2>/dev/null || pwd)/hooks/no.py"`,
			// variables
			`d=hooks; [ -d /usr/share/nosuch ] && d=/usr/share/nosuch; python3 "$d/no.py"`,
			`python3 "${HOOK:-hooks/no.py}"`,
			`for h in hooks/*.py; do python3 "$h" || exit 2; done`,
			`for h in hooks/no.py; do python3 "$h" || exit 2; done`,
			// other interpreters whose want of a script is an exit with 2
			`awk -f hooks/no.awk`,
			`make -C hooks`,
			`make -f hooks/Makefile`,
			// allowed, and nothing in the record says why
			`cat hooks/no.sh | bash`,
			`bash -c "$(cat hooks/no.sh)"`,
			`eval "$(cat hooks/no.sh)"`,
			`bash <(cat hooks/no.sh)`,
			`trap 'python3 hooks/no.py' EXIT`,
		} {
			if v := ask(t, r, line, ofClaudeCode, in(project), on(gate.PreToolUse)); told(v) != "no_verdict script_missing" && told(v) != "no_verdict interpreter_missing" {
				t.Errorf("%s: got %.120s", line, show(v))
			}
		}
		// A first line that is run as bash.
		if v := ask(t, r, "#! /bin/bash\npython3 hooks/no.py\n", in(project), on(gate.PreToolUse)); told(v) != "no_verdict script_missing" {
			t.Errorf("a script: got %.120s", show(v))
		}
	})
}

// Arguments that no shell reads (docs/dialects.md: "also in args").
func TestAPluginsScriptInArguments(t *testing.T) {
	root, project := hookedProject(t)
	r := newRunner(t, Options{Mode: Bubblewrap, Workspace: Workspace{Access: ReadOnly, Roots: []string{root}}})
	needsPython(t, r)
	v := ask(t, r, `python3`, ofClaudeCode, in(project), on(gate.PreToolUse), withArgs("${CLAUDE_PLUGIN_ROOT}/no.py"))
	if told(v) != "no_verdict script_missing" {
		t.Errorf("got %.200s", show(v))
	}
}

// A link in the project to scripts that several projects share: the sandbox has the
// link and not what it leads to.
func TestALinkedScriptThatTheSandboxDoesNotHold(t *testing.T) {
	root, project := hookedProject(t)
	_, shared := hookedProject(t)
	symlink(t, shared+"/hooks", project, "shared")
	r := newRunner(t, Options{Mode: Bubblewrap, Workspace: Workspace{Access: ReadOnly, Roots: []string{root}}})
	needsPython(t, r)
	for _, line := range []string{`python3 shared/no.py`, `python3 "$CLAUDE_PROJECT_DIR/shared/no.py"`, `sh shared/yes.sh`} {
		if v := ask(t, r, line, ofClaudeCode, in(project), on(gate.PreToolUse)); told(v) != "no_verdict script_missing" {
			t.Errorf("%s: got %.160s", line, show(v))
		}
	}
	// and a path that leads out of what is mounted
	src := mkdir(t, project, "src")
	for _, line := range []string{`python3 ../hooks/no.py`, `sh "$CLAUDE_PROJECT_DIR/../hooks/yes.sh"`, `cd .. && sh hooks/yes.sh`} {
		if v := ask(t, r, line, ofClaudeCode, in(src), on(gate.PreToolUse)); told(v) != "no_verdict script_missing" {
			t.Errorf("%s: got %.160s", line, show(v))
		}
	}
}
