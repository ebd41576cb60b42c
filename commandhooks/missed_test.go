package commandhooks

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"stopgate/gate"
)

// However a script that the sandbox does not have is named, the verdict says that it
// is missing: as why the hook was left out or its silence is none, or beside a refusal,
// which the shell and interpreters may well be the authors of.
func TestAScriptThatHooksDoNotSeeHoweverItIsNamed(t *testing.T) {
	_, project := hookedProject(t)
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		needsPython(t, r)
		for want, lines := range map[string][]string{
			"left out": {
				// programs before it
				`/usr/bin/env python3 hooks/no.py`,
				`/usr/bin/timeout 5 python3 hooks/no.py`,
				`timeout --signal KILL 5 python3 hooks/no.py`,
				`ionice python3 hooks/no.py`,
				// options whose value has a letter of -c, -m or -e in it
				`python3 -Wignore::DeprecationWarning hooks/no.py`,
				`python3 -Xfrozen_modules=off hooks/no.py`,
				`perl -MData::Dumper hooks/no.pl`,
				// a shell's text
				`bash -c -e 'python3 hooks/no.py'`,
				`bash -c -- 'python3 hooks/no.py'`,
				`bash -c "python3 hooks/no.py --tmp $HOME"`,
				`eval "python3 hooks/no.py"`,
				// directories
				`log() { cd /tmp; }; python3 hooks/no.py`,
				`here="$(cd "$(dirname "$0")" && pwd)"; python3 hooks/no.py`,
				`cd "$(git rev-parse --show-toplevel 2>/dev/null || pwd)" && python3 hooks/no.py`,
				`python3 "$(git rev-parse --show-toplevel 2>/dev/null || pwd)/hooks/no.py"`,
				`python3 "${HOOK:-hooks/no.py}"`,
				// others whose want of a file is an exit with 2
				`awk -f hooks/no.awk`,
				`make -C hooks`,
				`make -f hooks/Makefile`,
				`make check`,
				`grep -qf hooks/deny.txt && exit 2`,
			},
			"silent": {
				`cat hooks/no.sh | bash`,
				`bash -c "$(cat hooks/no.sh)"`,
				`eval "$(cat hooks/no.sh)"`,
				`bash <(cat hooks/no.sh)`,
				`trap 'python3 hooks/no.py' EXIT`,
				`python3 hooks/no.py || exit 1`,
				`git status && exit 2`,
			},
			"refuses": {
				"bash <<'X'\npython3 hooks/no.py\nX",
				`(cd /tmp && touch log); python3 hooks/no.py`,
				`cd /tmp; cd - >/dev/null; python3 hooks/no.py`,
				`pushd /tmp >/dev/null; popd >/dev/null; python3 hooks/no.py`,
				`d=hooks; [ -d /usr/share/nosuch ] && d=/usr/share/nosuch; python3 "$d/no.py"`,
				`for h in hooks/*.py; do python3 "$h" || exit 2; done`,
				`python3 hooks/no.py || exit 2`,
				`git diff --quiet || exit 2`,
				`cd hooks || exit 2; python3 no.py`,
			},
		} {
			for _, line := range lines {
				v := ask(t, r, line, ofClaudeCode, in(project), on(gate.PreToolUse))
				got := told(v)
				switch {
				case got == "no_verdict script_missing" && v.Evidence == nil:
					got = "left out"
				case got == "no_verdict script_missing" && v.Evidence.Missing != nil:
					got = "silent"
				case v.Outcome == gate.Block && v.Has(gate.FileMissing) && v.Evidence.Missing != nil:
					got = "refuses"
				}
				if got != want {
					t.Errorf("%s: got %s, want %s: %.200s", line, got, want, show(v))
				}
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

// An agent may have a hook say anything: what it repeats, makes of the agent's words,
// or reads from what the agent wrote elsewhere. A refusal stands all the same, and the
// record says what it may have come of.
func TestARefusalIsNotVoidedByWhatWasSaid(t *testing.T) {
	_, project := hookedProject(t)
	const said = `hooks/yes.sh: No such file or directory`
	const field = `x=$(jq -r .tool_input.command); : hooks/yes.sh; `
	deny := `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"%s","permissionDecisionReason":"no"}}`
	axCode := func(in *gate.Input) {
		in.Hook.Dialect, in.Hook.ReadsAnswer, in.Hook.Timeout = gate.AXCode, true, time.Minute
	}
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		needsPython(t, r)
		for _, tt := range []struct {
			name, line, command, want string
			change                    func(*gate.Input)
		}{
			{"repeated", field + `echo "no: $x" >&2; exit 2`, said, "block", ofClaudeCode},
			{"backwards", field + `rev <<<"$x" >&2; exit 2`, backwards(said), "block", ofClaudeCode},
			{"by other letters", field + `tr a-zA-Z n-za-mN-ZA-M <<<"$x" >&2; exit 2`, rotated(said), "block", ofClaudeCode},
			{"in base64", field + `base64 -d <<<"$x" >&2; exit 2`, base64.StdEncoding.EncodeToString([]byte(said)), "block", ofClaudeCode},
			{"in pieces", field + `printf %s "${x#*,}" "${x%%,*}" >&2; exit 2`, said[9:] + "," + said[:9], "block", ofClaudeCode},
			{"of another kind", field + `tr a-z n-za-m <<<"$x" >&2; exit 2`, rotated(`not a git repository`), "block", ofClaudeCode},
			{"a file's name", field + `head -c1 "$(rev <<<"$x")" || exit 2`, backwards("hooks/yes.sh"), "block", ofClaudeCode},
			{"what it should look at", field + `grep -q ok "$(rev <<<"$x")" || exit 2`, backwards(project + "/hooks/yes.sh"), "block", ofClaudeCode},
			{"JSON", field + `rev <<<"$x" >&2; echo '{"decision":"block","reason":"no"}'`, backwards(said), "block", ofClaudeCode},
			{"a deny", field + `rev <<<"$x" >&2; echo '` + fmt.Sprintf(deny, "deny") + `'`, backwards(said), "block", ofClaudeCode},
			{"a question", field + `rev <<<"$x" >&2; echo '` + fmt.Sprintf(deny, "ask") + `'`, backwards(said), "ask", ofClaudeCode},
			{"of azure", field + `rev <<<"$x" >&2; exit 2`, backwards(said), "block", func(*gate.Input) {}},
			{"JSON of azure", field + `rev <<<"$x" >&2; echo '{"ok":false,"reason":"no"}'`, backwards(said), "block", func(*gate.Input) {}},
			{"of the Gemini API", field + `rev <<<"$x" >&2; echo '{"decision":"deny","reason":"no"}'`, backwards(said), "block",
				func(in *gate.Input) { inline(in); in.Hook.Dialect = gate.Antigravity }},
			{"of AX Code", field + `rev <<<"$x" >&2; exit 2`, backwards(said), "block", func(in *gate.Input) { inline(in); axCode(in) }},
			{"of AX Code, on failure", field + `rev <<<"$x" >&2; exit 1`, backwards(said), "block",
				func(in *gate.Input) {
					inline(in)
					axCode(in)
					in.Hook.ReadsAnswer, in.Hook.BlockOnFailure = false, true
				}},
			{"its own want of a file", `x=1; cat docs/rules.md >&2; exit 2`, `ls`, "block", ofClaudeCode},
			{"its interpreter's", `true; f() { python3 hooks/no.py; }; f`, `ls`, "block", ofClaudeCode},
		} {
			payload, err := json.Marshal(map[string]any{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": map[string]string{"command": tt.command}})
			if err != nil {
				t.Fatal(err)
			}
			v := ask(t, r, tt.line, tt.change, in(project), on(gate.PreToolUse), withContext(payload))
			if tt.name == "what it should look at" && r.status.Mode == Process { // which sees it by its whole path
				if v.Outcome != gate.Block {
					t.Errorf("%s: got %.300s", tt.name, show(v))
				}
				continue
			}
			if string(v.Outcome) != tt.want || !v.Has(gate.FileMissing) {
				t.Errorf("%s: got %s %v", tt.name, show(v), v.Notes)
			} else if m := v.Evidence.Missing; m == nil || !strings.Contains(m.Why, "sandbox.workspace") || m.Said == "" {
				t.Errorf("%s: the record does not say why: %+v", tt.name, m)
			}
		}
	})
}

func backwards(s string) string {
	letters := []rune(s)
	slices.Reverse(letters)
	return string(letters)
}

// rotated is s by the letters thirteen places on, as tr makes it back.
func rotated(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'a' + (r-'a'+13)%26
		case r >= 'A' && r <= 'Z':
			return 'A' + (r-'A'+13)%26
		}
		return r
	}, s)
}
