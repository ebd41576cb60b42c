package commandhooks

import (
	"strings"
	"testing"

	"stopgate/gate"
)

// blind is what a hook sees whose project is not mounted, but is on this machine.
func blind(project string) sight {
	return sight{cwd: project, project: project, unseen: "unseen", projectUnseen: "unseen", confined: true,
		env: map[string]string{projectDir: project}, tools: tools{path: "/usr/bin"}, held: []string{"/usr"}}
}

// What is told ahead of the run: the hook's own program or script, and nothing that
// may not be run, or that the text may have made.
func TestWhatAHookStartsFirst(t *testing.T) {
	_, project := hookedProject(t)
	s := blind(project)
	for _, tt := range []struct{ name, line, want string }{
		{"a program", `hooks/no.sh a b`, "hooks/no.sh"},
		{"bash", `bash hooks/x.sh`, "hooks/x.sh"},
		{"sh", `sh hooks/x.sh`, "hooks/x.sh"},
		{"dash", `/usr/bin/dash hooks/x.sh`, "hooks/x.sh"},
		{"zsh", `/usr/bin/zsh hooks/x.sh`, "hooks/x.sh"},
		{"ksh", `/usr/bin/ksh hooks/x.sh`, "hooks/x.sh"},
		{"python", `/usr/bin/python3.12 x.py`, "x.py"},
		{"node", `/usr/bin/node x.js`, "x.js"},
		{"ruby", `/usr/bin/ruby x.rb`, "x.rb"},
		{"perl", `/usr/bin/perl x.pl`, "x.pl"},
		{"php", `/usr/bin/php x.php`, "x.php"},
		{"a shell's options", `bash -eu -x hooks/x.sh`, "hooks/x.sh"},
		{"Python's options", `/usr/bin/python3 -uB -E -I -sS x.py`, "x.py"},
		{"other options are left to the run", `bash -o pipefail hooks/x.sh`, ""},
		{"code", `bash -c 'hooks/x.sh'; perl -e 'x'`, ""},
		{"behind exec", `exec bash hooks/x.sh`, "hooks/x.sh"},
		{"behind env", `/usr/bin/env A=b bash hooks/x.sh`, "hooks/x.sh"},
		{"behind timeout", `timeout --signal KILL 5 bash hooks/x.sh`, "hooks/x.sh"},
		{"behind nohup", `nohup bash hooks/x.sh`, "hooks/x.sh"},
		{"behind nice", `nice -n 5 bash hooks/x.sh`, "hooks/x.sh"},
		{"a program behind nice", `nice -n 5 hooks/x.sh`, "hooks/x.sh"},
		{"a mention behind timeout", `timeout 5s grep bash hooks/x.sh`, ""},
		{"a value made of itself", "a=x;" + strings.Repeat("a=$a$a;", 12) + `bash "$a"`, ""},
		{"a mention", `echo bash hooks/x.sh`, ""},
		{"the project", `"$CLAUDE_PROJECT_DIR"/hooks/x.sh`, project + "/hooks/x.sh"},
		{"another name of it, which hooks do not have", `bash ${AX_CODE_PROJECT_DIR}/x.sh`, "$AX_CODE_PROJECT_DIR/x.sh"},
		{"of the line's own", `GEMINI_PROJECT_DIR=/usr/x; bash "$GEMINI_PROJECT_DIR/x.sh"`, ""},
		{"a plugin", `bash "${CLAUDE_PLUGIN_ROOT}/x.sh"`, "$CLAUDE_PLUGIN_ROOT/x.sh"},
		{"a home directory", `bash ~/x.sh`, "~/x.sh"},
		{"by its name", `bash "$HOME/x.sh"`, "~/x.sh"},
		{"PWD", `bash "$PWD/x.sh"`, "./x.sh"},
		{"a default", `bash "${HOOK:-hooks/x.sh}"`, "hooks/x.sh"},
		{"behind a variable", `D="$CLAUDE_PROJECT_DIR/hooks"; bash "$D/x.sh"`, project + "/hooks/x.sh"},
		{"a variable that is not known", `D=$(f); bash "$D/x.sh"`, ""},
		{"a pattern", `bash hooks/*.sh`, ""},
		{"elsewhere", `bash /srv/x.sh`, "/srv/x.sh"},
		{"of the system", `bash /usr/x.sh`, ""},
		{"the sandbox's own", `bash /tmp/stopgate-none.sh`, ""},
		{"standard input", `bash /dev/stdin`, ""},
		{"cd", `cd "$CLAUDE_PROJECT_DIR" && true`, project},
		{"cd below", `cd hooks && ./x.sh`, "hooks"},
		{"cd nowhere", `cd "$PWD"; exit 2`, ""},
		{"cd home", `cd ~; exit 2`, ""},
		{"cd home, and a file there", `cd; bash x.sh`, "~/x.sh"},
		{"cd to who knows where", `cd "$(mktemp -d)" && ./x.sh`, ""},
		{"cd back", `cd /usr; cd -; ./x.sh`, ""},
		{"cd to what may be there", `cd /srv/x; exit 2`, ""},
		{"cd elsewhere", `cd /usr && bash x.sh`, ""},
		{"set first", `set -e; bash x.sh`, "x.sh"},
		{"shopt first", `shopt -s nullglob; bash x.sh`, "x.sh"},
		{": first", `: "${A:=b}"; bash x.sh`, "x.sh"},
		{"a declaration first", `export A=b; bash x.sh`, "x.sh"},
		{"an assignment first", `in=$(cat); bash x.sh`, "x.sh"},
		{"an assignment that may fail", `in=$(grep x) && bash hooks/no.sh || exit 2`, ""},
		{"an assignment that may refuse", `in=$(grep x) || exit 2; bash x.sh`, ""},
		{"a pipeline", `cat | bash x.sh`, "x.sh"},
		{"in braces", `{ bash x.sh; }`, "x.sh"},
		{"after another", `touch x.sh; bash x.sh`, ""},
		{"in a branch", `if [ -n "$CI" ]; then bash x.sh; fi; exit 2`, ""},
		{"never", `false && bash x.sh; exit 2`, ""},
		{"in the background", `bash x.sh & exit 2`, ""},
		{"asked for", `[ -x hooks/no.sh ] && hooks/no.sh`, "hooks/no.sh"},
		{"asked for by test", `test -f hooks/no.sh && bash hooks/no.sh`, "hooks/no.sh"},
		{"asked for by bash", `[[ -f hooks/no.sh ]] && bash hooks/no.sh`, "hooks/no.sh"},
		{"asked for or nothing", `[ -x hooks/no.sh ] || exit 0; hooks/no.sh`, "hooks/no.sh"},
		{"asked for in a branch", `if [ -x hooks/no.sh ]; then bash hooks/no.sh; fi`, "hooks/no.sh"},
		{"asked for, and not run", `[ -x hooks/no.sh ] && exit 2; exit 2`, ""},
		{"another is asked for", `[ -x hooks/yes.sh ] && bash hooks/no.sh; exit 2`, ""},
		{"an interpreter in a branch", `[ -n "$CI" ] && node24 x.js`, ""},
		{"asked for, and not there", `[ -x x.sh ] && ./x.sh; exit 2`, ""},
		{"asked for in another project", `f=$AX_CODE_PROJECT_DIR/hooks/no.sh; [ -x "$f" ] && "$f"`, "$AX_CODE_PROJECT_DIR/hooks/no.sh"},
		{"its failure is dealt with", `bash x.sh 2>/dev/null || true; exit 2`, ""},
		{"its failure is dealt with, and it is there", `bash hooks/no.sh 2>/dev/null || exit 2`, "hooks/no.sh"},
		{"sourced", `. ./.env 2>/dev/null || true; exit 2`, ""},
		{"an interpreter", `node24 -e 1`, "!node24"},
		{"an interpreter whose absence is dealt with", `node24 -e 1 || exit 2`, ""},
		{"another search path", `PATH=/opt/x; node24 -e 1`, ""},
		{"no shell", `bash "x.sh`, ""},
		{"many brackets", "bash x.sh; " + strings.Repeat("(", maxReadBrackets+1), ""},
		{"too long", "bash x.sh #" + strings.Repeat("a", maxReadBytes), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := lacking(s.lacks(job{inline: tt.line}, &gate.Hook{Command: tt.line})); got != tt.want {
				t.Errorf("%.200s\n got %s\nwant %s", tt.line, got, tt.want)
			}
		})
	}
}

func TestAScriptInPythonIsNotReadAhead(t *testing.T) {
	s := blind(t.TempDir())
	if f := s.lacks(job{interpreter: interpreter{file: "/usr/bin/python3"}, script: "hooks/no.sh"}, &gate.Hook{}); f != nil {
		t.Errorf("got %v", f)
	}
}

// lacking is what a failure names, behind "!" if it is an interpreter.
func lacking(f *gate.Failure) string {
	if f == nil {
		return ""
	}
	_, rest, _ := strings.Cut(f.Message, `"`)
	named, _, _ := strings.Cut(rest, `"`)
	if f.Code == gate.InterpreterMissing {
		return "!" + named
	}
	return named
}

// The forms in which programs say it, one of each.
func TestHowProgramsSayThatAPathIsNotThere(t *testing.T) {
	for line, want := range map[string]string{
		`bash: line 1: hooks/x.sh: No such file or directory`:                     "hooks/x.sh",
		`bash: line 1: cd: hooks: No such file or directory`:                      "hooks",
		`sh: 0: cannot open x.sh: No such file`:                                   "x.sh",
		`sh: 1: cd: can't cd to hooks`:                                            "hooks",
		`sh: 1: hooks/x.sh: not found`:                                            "hooks/x.sh",
		`python3: can't open file '/p/x.py': [Errno 2] No such file or directory`: "/p/x.py",
		`FileNotFoundError: [Errno 2] No such file or directory: 'a/b.json'`:      "a/b.json",
		`/usr/bin/python3: Error while finding module specification for 'hooks.x' (ModuleNotFoundError: No module named 'hooks')`: "hooks",
		`Error: Cannot find module '/p/x.js'`:                                  "/p/x.js",
		`Error: ENOENT: no such file or directory, open 'x.json'`:              "x.json",
		`ruby: No such file or directory -- x.rb (LoadError)`:                  "x.rb",
		`Can't open perl script "x.pl": No such file or directory`:             "x.pl",
		`awk: cannot open x.awk (No such file or directory)`:                   "x.awk",
		`tail: cannot open 'a b/x' for reading: No such file or directory`:     "b/x",
		`env: ‘hooks/x’: No such file or directory`:                            "hooks/x",
		`make: *** hooks: No such file or directory.  Stop.`:                   "hooks",
		`make: *** No targets specified and no makefile found.  Stop.`:         ".",
		`make: *** No rule to make target 'check'.  Stop.`:                     ".",
		`fatal: not a git repository (or any of the parent directories): .git`: ".",
		`Could not open input file: x.php`:                                     "x.php",
		`lua: cannot open x.lua`:                                               "x.lua",
		`ERROR: file or directory not found: tests/a`:                          "tests/a",
		`error: Module not found "file:///p/x.ts".`:                            "/p/x.ts",
		`bash: line 1: node: command not found`:                                "",
		`see docs/rules.md: no licence was found there`:                        "",
		`cannot open file`: "",
	} {
		got, ok := wanted(line)
		if got.path != want || ok != (want != "") {
			t.Errorf("%s\n got %q, want %q", line, got.path, want)
		}
		if joined := strings.HasPrefix(want, "/p/"); got.joined != joined {
			t.Errorf("%s: joined %v, want %v", line, got.joined, joined)
		}
	}
}

// Whose doing it is that a path is not there.
func TestWhoseFaultAMissingPathIs(t *testing.T) {
	_, project := hookedProject(t)
	_, shared := hookedProject(t)
	symlink(t, shared+"/hooks", project, "shared")
	seeing := blind(project)
	seeing.unseen, seeing.projectUnseen, seeing.held = "", "", []string{"/usr", project}
	free := blind(project)
	free.confined = false
	untold := free
	untold.env = nil
	for _, tt := range []struct {
		name  string
		sight sight
		want  want
		ours  bool
	}{
		{"relative", blind(project), want{path: "x.sh"}, true},
		{"relative, in sight", seeing, want{path: "x.sh", fatal: true}, false},
		{"relative, without a sandbox", free, want{path: "x.sh"}, true},
		{"in the project", blind(project), want{path: project + "/x.sh"}, true},
		{"in the project, in sight", seeing, want{path: project + "/x.sh", fatal: true}, false},
		{"in the project, which is seen by its path", free, want{path: project + "/x.sh", fatal: true, joined: true}, false},
		{"behind a link", seeing, want{path: "shared/no.sh", text: "perl shared/no.sh"}, true},
		{"behind a link, by its whole path", seeing, want{path: project + "/shared/no.sh", text: "perl $P/shared/no.sh"}, true},
		{"behind a link that the hook does not name", seeing, want{path: "shared/no.sh", fatal: true}, false},
		{"behind a link, and not there", seeing, want{path: "shared/x.sh", text: "shared/x.sh"}, false},
		{"joined with where the hook starts", free, want{path: "/tmp/1/x.py", joined: true}, true},
		{"made by the hook", free, want{path: "/tmp/1/x.py"}, false},
		{"below a variable that is empty here", untold, want{path: "/x.sh", text: "bash $QWEN_PROJECT_DIR/x.sh"}, true},
		{"the hook's own path", free, want{path: "/srv/x.py", joined: true, text: "python3 /srv/x.py"}, false},
		{"elsewhere", seeing, want{path: "/etc/hostname", text: "cat /etc/hostname"}, false},
		{"elsewhere, and the last word", seeing, want{path: "/srv/x.py", text: "python3 /srv/x.py", fatal: true}, true},
		{"elsewhere, and not the hook's own", seeing, want{path: "/srv/x.py", fatal: true}, false},
		{"below home, and not the hook's own", seeing, want{path: "/tmp/y", text: "cd ~/x", fatal: true}, false},
		{"at home", seeing, want{path: "/tmp/.claude/x.py", text: "python3 -W x ~/.claude/x.py", fatal: true}, true},
		{"at home by its name", seeing, want{path: "/tmp/x.py", text: "python3 -W x $HOME/x.py", fatal: true}, true},
		{"at home, and dealt with", seeing, want{path: "/tmp/.profile", text: ". ~/.profile"}, false},
	} {
		tt.want.own = ownPaths(tt.want.text)
		if why := tt.sight.ours(tt.want); (why != "") != tt.ours {
			t.Errorf("%s: %q, want ours: %v", tt.name, why, tt.ours)
		}
	}
}

// A hook that says itself that a file is not there: its refusal counts, with a note
// where it does not see the project; that it has no objection counts only where it
// does.
func TestWhatAHookSaysOfAMissingFile(t *testing.T) {
	root, project := hookedProject(t)
	refusals := []string{
		`echo "docs/rules.md: No such file or directory" >&2; exit 2`,
		`x=1; cat docs/rules.md; echo '{"decision":"block"}'`,
		`x=1; cat docs/rules.md 2>&1; exit 2`,
	}
	silences := []string{
		`x=1; cat docs/rules.md; exit 0`,
		`x=1; cat docs/rules.md; echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'`,
		`x=1; cat docs/rules.md; exit 1`,
		`cat hooks/no.sh | bash`,
	}
	const context = `x=1; cat docs/rules.md; echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"c"}}'`
	failClosed := func(in *gate.Input) { in.Hook.FailMode = gate.FailBlock }
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		for _, line := range refusals {
			v := ask(t, r, line, ofClaudeCode, in(project), on(gate.PreToolUse))
			if m := v.Evidence.Missing; v.Outcome != gate.Block || !v.Has(gate.FileMissing) || m == nil || m.Path != "docs/rules.md" || !strings.Contains(m.Why, "sandbox.workspace") {
				t.Errorf("%s: got %s %v %+v", line, show(v), v.Notes, m)
			}
		}
		for _, line := range silences {
			v := ask(t, r, line, ofClaudeCode, in(project), on(gate.PreToolUse))
			if told(v) != "no_verdict script_missing" || v.Evidence.Missing == nil || !strings.Contains(v.Failure.Message, "sandbox.workspace") || v.Has(gate.FileMissing) {
				t.Errorf("%s: got %s %v", line, show(v), v.Notes)
			}
		}
		if v := ask(t, r, context, ofClaudeCode, in(project), on(gate.PreToolUse)); v.Outcome != gate.Allow || v.AdditionalContext != "c" || !v.Has(gate.FileMissing) {
			t.Errorf("what the agent is told: got %s %v", show(v), v.Notes)
		}
		if v := ask(t, r, context, ofClaudeCode, in(project), on(gate.PreToolUse), failClosed); told(v) != "no_verdict script_missing" {
			t.Errorf("what the agent is told by a hook that is to fail closed: got %s", show(v))
		}
		if v := ask(t, r, `echo '{"decision":"block","reason":"docs/x.md: No such file"}'; exit 1`, ofClaudeCode, in(project)); v.Outcome != gate.Block || v.Has(gate.FileMissing) {
			t.Errorf("an answer: got %s %v", show(v), v.Notes)
		}
		if v := ask(t, r, `cat docs/rules.md; exit 0`, inline, in(""), func(in *gate.Input) { in.Hook.Dialect = gate.Azure }); v.Outcome != gate.Allow || v.Evidence.Missing != nil {
			t.Errorf("a script of azure's on an event without a directory: got %s", show(v))
		}
		if v := ask(t, r, `cat docs/rules.md; kill -9 $$`, ofClaudeCode, in(project)); told(v) != "no_verdict signalled" || v.Evidence.Missing != nil {
			t.Errorf("killed: got %s", show(v))
		}
	})
	everyMode(t, Options{Workspace: Workspace{Access: ReadOnly, Roots: []string{root}}}, func(t *testing.T, r *Runner) {
		for _, line := range refusals {
			if v := ask(t, r, line, ofClaudeCode, in(project)); v.Outcome != gate.Block || len(v.Notes) > 0 || v.Evidence.Missing != nil {
				t.Errorf("in sight: %s: got %s %v", line, show(v), v.Notes)
			}
		}
		if v := ask(t, r, silences[0], ofClaudeCode, in(project)); v.Outcome != gate.Allow {
			t.Errorf("in sight: got %s", show(v))
		}
	})
}
