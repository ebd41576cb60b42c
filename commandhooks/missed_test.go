package commandhooks

import (
	"strings"
	"testing"
	"time"

	"stopgate/gate"
)

// saysOfTheFile reports whether a hook without its script has no verdict, or a
// refusal of which the record says what was missing.
func saysOfTheFile(v gate.Verdict) bool {
	switch told := told(v); {
	case told == "no_verdict script_missing", told == "no_verdict interpreter_missing":
		return true
	case v.Outcome == gate.Block:
		return v.Has(gate.FileMissing) && strings.Contains(v.Evidence.Missing, "sandbox.workspace")
	}
	return false
}

// However a script that the sandbox does not have is named, it is never an allow, nor
// a block, that says nothing of what is missing.
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
			if v := ask(t, r, line, ofClaudeCode, in(project), on(gate.PreToolUse)); !saysOfTheFile(v) {
				t.Errorf("%s: got %.120s", line, show(v))
			}
		}
		// A first line that is run as bash.
		if v := ask(t, r, "#! /bin/bash\npython3 hooks/no.py\n", in(project), on(gate.PreToolUse)); !saysOfTheFile(v) {
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

// A hook that reads the file that a call is about, and refuses what it cannot read,
// is heard, whatever the agent calls a file that is not there: no path of its
// choosing is taken for one that the hook names.
func TestTheAgentCannotVoidARefusalByAPath(t *testing.T) {
	root, project := hookedProject(t)
	opt := Options{Workspace: Workspace{Access: ReadOnly, Roots: []string{root}}}
	everyMode(t, opt, func(t *testing.T, r *Runner) {
		const reads = `f=$(jq -r .tool_input.file_path); head -c1 "$f" >/dev/null || exit 2; `
		for line, paths := range map[string][]string{
			reads + `bash "$CLAUDE_PROJECT_DIR/hooks/yes.sh"`:    {"/elsewhere", "/hooks", "/hooks/yes.sh", "/h"},
			`mkdir -p "$HOME/.cache"; ` + reads + `exit 0`:       {"/elsewhere", "/nowhere/jq", "/nowhere/d", "/nowhere/."},
			`[ -d ~/.x ]; ` + reads + `exit 0`:                   {"/nowhere/head"},
			`touch /var/tmp/seen 2>/dev/null; ` + reads + `exit`: {"/var/tm"},
		} {
			for _, path := range paths {
				payload := `{"hook_event_name":"PreToolUse","tool_name":"Write","tool_input":{"file_path":"` + path + `"}}`
				v := ask(t, r, line, ofClaudeCode, in(project), on(gate.PreToolUse), withContext([]byte(payload)))
				if v.Outcome != gate.Block {
					t.Errorf("%s: %s: got %.200s", line, path, show(v))
				}
			}
		}
	})
}

// Nor by any other text of an event that reaches a path which is not there, whether
// the hook sees the project or not: as it stands, joined with what the hook puts
// before or behind it, or decoded.
func TestTheAgentCannotVoidARefusalByAnyText(t *testing.T) {
	root, project := hookedProject(t)
	const needs = `bash "$CLAUDE_PROJECT_DIR/hooks/yes.sh"` // so that there are names of the hook's own
	field := func(name string) string { return `f=$(jq -r .tool_input.` + name + `); ` }
	for _, opt := range []Options{{}, {Workspace: Workspace{Access: ReadOnly, Roots: []string{root}}}} {
		everyMode(t, opt, func(t *testing.T, r *Runner) {
			needsPython(t, r)
			for _, tt := range []struct{ name, line, input string }{
				{"relative", field("p") + `head -c1 "$f" || exit 2; ` + needs, `{"p":"hooks/yes"}`},
				{"the name of the hook's script", field("p") + `head -c1 "$f" || exit 2; ` + needs, `{"p":"elsewhere/yes.sh"}`},
				{"below the project", field("p") + `head -c1 "$CLAUDE_PROJECT_DIR/$f" || exit 2; ` + needs, `{"p":"x/yes.sh"}`},
				{"the project itself", field("p") + `head -c1 "$f/" || exit 2; ` + needs, `{"p":"` + project + `x"}`},
				{"the working directory", field("p") + `ls "$f"; grep -q ok /dev/null || exit 2; ` + needs, `{"p":"` + project + `"}`},
				{"the directory of a file in it", field("p") + `ls "${f%/*}"; grep -q ok /dev/null || exit 2; ` + needs, `{"p":"` + project + `/x"}`},
				{"through ..", field("p") + `head -c1 "$f" || exit 2; ` + needs, `{"p":"/nowhere/../hooks/yes.sh"}`},
				{"made plain", field("p") + `head -c1 "$(realpath -m "$f")" || exit 2; ` + needs, `{"p":"` + project + `/x/../yes.sh"}`},
				{"a part of it", field("p") + `ls "${f%/*}" || exit 2; ` + needs, `{"p":"/nowhere/hooks/x"}`},
				{"its directory", field("p") + `x=1; cd "$f" || exit 2; ` + needs, `{"p":"/nowhere/hooks"}`},
				{"a name of the hook's in it", field("p") + `x=1; head -c1 "$f/yes.sh" || exit 2; ` + needs, `{"p":"nowhere"}`},
				{"an end of the hook's", field("p") + `head -c1 "$f.allow" || exit 2; ` + needs, `{"p":"f"}`},
				{"without its end", field("p") + `head -c1 "${f%.*}_test.sh" || exit 2; ` + needs, `{"p":"yes.x"}`},
				{"with odd letters", field("p") + `head -c1 "$f" || exit 2; ` + needs, `{"p":"h\u00e9\nooks/yes.sh"}`},
				{"in base64", field("p") + `head -c1 "$(base64 -d <<<"$f")" || exit 2; ` + needs, `{"p":"aG9va3MveWVz"}`},
				{"in base64, the hook's own name", field("p") + `head -c1 "$(base64 -d <<<"$f")" || exit 2; ` + needs, `{"p":"eC95ZXMuc2g="}`},
				{"in hexadecimal digits", field("p") + `head -c1 "$(printf %b "$f")" || exit 2; ` + needs, `{"p":"\\x78\\x2fyes.\\x73h"}`},
				{"in a text of JSON", field("p | fromjson | .q") + `head -c1 "$f" || exit 2; ` + needs, `{"p":"{\"q\":\"x\\u002f\\u0079es.sh\"}"}`},
				{"of a URL", `python3 -c '
import json, sys, urllib.parse
open(urllib.parse.unquote(json.load(sys.stdin)["tool_input"]["p"]))' || exit 2; ` + needs, `{"p":"%78%2f%79es.sh"}`},
				{"two of them", field("p") + field("q") + `head -c1 "$f" || exit 2; ` + needs, `{"p":"x/yes.sh"}`},
			} {
				payload := `{"hook_event_name":"PreToolUse","cwd":"` + project + `","tool_name":"Write","tool_input":` + tt.input + `}`
				v := ask(t, r, `exec 3</dev/stdin; jq() { command jq "$@" </dev/fd/3; }; `+tt.line, ofClaudeCode, in(project), on(gate.PreToolUse), withContext([]byte(payload)))
				if v.Outcome != gate.Block {
					t.Errorf("%s: got %.300s", tt.name, show(v))
				}
			}
			for name, payload := range map[string]string{
				"a tool's result":  `{"tool_name":"Bash","tool_response":{"stdout":"x/yes.sh"}}`,
				"a prompt":         `{"prompt":"see x/yes.sh"}`,
				"its conversation": `{"transcript_path":"/nowhere/yes.sh"}`,
			} {
				line := `f=$(jq -r '.tool_response.stdout // .prompt // .transcript_path'); head -c1 "${f#see }" || exit 2; ` + needs
				if v := ask(t, r, line, ofClaudeCode, in(project), on(gate.PostToolUse), withContext([]byte(payload))); v.Outcome != gate.Block {
					t.Errorf("%s: got %.300s", name, show(v))
				}
			}
			// Arguments of AX Code's are all the agent's, whatever they are called.
			v := ask(t, r, `f=$(jq -r .cwd); head -c1 "$f" || exit 2; bash hooks/yes.sh`, inline, in(project), on(gate.PreToolUse), withContext([]byte(`{"cwd":"x/yes.sh"}`)),
				func(in *gate.Input) {
					in.Hook.Dialect, in.Hook.ReadsAnswer, in.Hook.Timeout = gate.AXCode, true, time.Minute
				})
			if v.Outcome != gate.Block {
				t.Errorf("AX Code: got %.300s", show(v))
			}
		})
	}
}

// What the agent says of other things does not keep a hook that could not refuse
// from being told from one that did.
func TestAMissingScriptIsToldWhateverTheAgentDoes(t *testing.T) {
	_, project := hookedProject(t)
	payload := `{"session_id":"hooks","transcript_path":"/root/.claude/hooks/no.py","cwd":"` + project + `/hooks","tool_name":"Write","tool_input":{"file_path":"` + project + `/src/a.go"}}`
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		needsPython(t, r)
		for _, line := range []string{
			`x=1; true; python3 .claude/hooks/no.py`,
			`cat >/dev/null; git diff --quiet || exit 2`,
			`cat >/dev/null; cd "$CLAUDE_PROJECT_DIR" || exit 2; python3 hooks/none.py`,
			`cat >/dev/null; python3 "$CLAUDE_PROJECT_DIR/hooks/no.py"`,
		} {
			if strings.Contains(line, projectDir) && r.status.Mode != Bubblewrap { // which has it by its whole path
				continue
			}
			v := ask(t, r, line, ofClaudeCode, in(project), on(gate.PreToolUse), withContext([]byte(payload)))
			if !saysOfTheFile(v) {
				t.Errorf("%s: got %.200s", line, show(v))
			}
		}
	})
}

// Nor by a file of its project that the hook asks for, or whose failure it deals with.
func TestTheAgentCannotVoidARefusalByAFile(t *testing.T) {
	_, project := hookedProject(t) // in which it has made hooks/no.sh
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		for _, line := range []string{
			`[ -x hooks/no.sh ] && hooks/no.sh; echo no >&2; exit 2`,
			`if [ -x hooks/no.sh ]; then hooks/no.sh; fi; echo no >&2; exit 2`,
			`bash hooks/no.sh 2>/dev/null || true; echo no >&2; exit 2`,
			`. hooks/no.sh 2>/dev/null || true; echo '{"decision":"block","reason":"no"}'`,
		} {
			if v := ask(t, r, line, ofClaudeCode, in(project), on(gate.PreToolUse)); told(v) != "block no" {
				t.Errorf("%s: got %.200s", line, show(v))
			}
		}
		// What it would have said there is not known if it has no objection here.
		if v := ask(t, r, `[ -x hooks/no.sh ] && hooks/no.sh; exit 0`, ofClaudeCode, in(project), on(gate.PreToolUse)); told(v) != "no_verdict script_missing" {
			t.Errorf("no objection: got %.200s", show(v))
		}
		if v, _ := askFor(500*time.Millisecond, r, input(`[ -x hooks/no.sh ] && hooks/no.sh; sleep 60`, ofClaudeCode, in(project))); told(v) != "no_verdict timeout" {
			t.Errorf("no end: got %.200s", show(v))
		}
	})
}
