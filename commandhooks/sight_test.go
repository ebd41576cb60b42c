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
		{"an option with a value", `bash -o pipefail hooks/x.sh`, "hooks/x.sh"},
		{"Python's, in one word", `/usr/bin/python3 -Wignore::X -Xdev x.py`, "x.py"},
		{"perl's", `/usr/bin/perl -MData::Dumper x.pl`, "x.pl"},
		{"other options are left to the run", `bash --posix hooks/x.sh`, ""},
		{"a module", `/usr/bin/python3 -m x y.py`, ""},
		{"code", `/usr/bin/perl -e 'x' y.pl`, ""},
		{"a shell's text", `bash -c 'hooks/x.sh'`, "hooks/x.sh"},
		{"… behind options", `bash -c -e -- 'python3 hooks/x.py'`, "hooks/x.py"},
		{"… that nobody knows", `bash -c "$(cat hooks/x.sh)"`, ""},
		{"… which does not have the line's variables", `D=/usr; bash -c 'bash "$D/x.sh"'`, ""},
		{"evaluated", `eval "bash hooks/x.sh"`, "hooks/x.sh"},
		{"evaluated for ever", `a='eval "$a"'; eval "$a"`, ""},
		{"sourced first", `source hooks/lib.sh; check`, "hooks/lib.sh"},
		{"sourced by the project", `. "$CLAUDE_PROJECT_DIR/lib.sh"`, project + "/lib.sh"},
		{"read by the shell", `bash < hooks/x.sh`, "hooks/x.sh"},
		{"patterns", `grep -qf .claude/deny.txt && exit 2`, ".claude/deny.txt"},
		{"patterns of the system", `grep -qf /usr/deny.txt && exit 2`, ""},
		{"a filter", `jq -ef hooks/x.jq`, "hooks/x.jq"},
		{"awk", `awk -f hooks/x.awk`, "hooks/x.awk"},
		{"make", `make -s check`, "."},
		{"make elsewhere", `make -C /usr/x check`, ""},
		{"make of its own", `make -f - check`, ""},
		{"make in a directory", `make -C src check`, "src"},
		{"make's version", `make --version`, ""},
		{"npm", `npm test --silent`, "."},
		{"npm of the system", `npm --prefix /usr/x test; npm view x`, ""},
		{"go", `cd /usr; go version`, ""},
		{"go test", `go test ./... || exit 2`, "."},
		{"go test elsewhere", `cd /usr && go test ./...`, ""},
		{"go test who knows where", `cd "$(mktemp -d)" && go test ./...`, ""},
		{"behind ionice", `ionice -c 3 bash hooks/x.sh`, "hooks/x.sh"},
		{"git's directory", `cd "$(git rev-parse --show-toplevel 2>/dev/null || pwd)" && bash x.sh`, "$(git rev-parse --show-toplevel)"},
		{"below git's directory", `bash "$(git rev-parse --show-toplevel)/x.sh"`, "$(git rev-parse --show-toplevel)/x.sh"},
		{"pwd", `bash "$(pwd)/x.sh"`, "./x.sh"},
		{"pwd elsewhere", `cd /usr; bash "$(pwd)/x.sh"`, ""},
		{"in a child", `(cd hooks && ./x.sh)`, "hooks"},
		{"behind a child", `(cd /usr); bash hooks/x.sh`, "hooks/x.sh"},
		{"behind a function", `log() { cd /usr; }; bash hooks/x.sh`, "hooks/x.sh"},
		{"its own function", `bash() { exit 2; }; bash hooks/x.sh`, ""},
		{"behind what is thrown away", `cat >/dev/null; echo checking >&2; bash hooks/x.sh`, "hooks/x.sh"},
		{"behind a word to a file", `echo 'exit 0' > x.sh; bash x.sh`, ""},
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
			got, _ := s.lacks(job{inline: tt.line}, &gate.Hook{Command: tt.line})
			if lacking(got) != tt.want {
				t.Errorf("%.200s\n got %s\nwant %s", tt.line, lacking(got), tt.want)
			}
		})
	}
}

// A hook is left out only if nothing in its text refuses without what is missing: not
// if it goes on to look at something else, nor if it is the agent that made there be
// what is missing here.
func TestWhichHooksAreLeftOut(t *testing.T) {
	_, project := hookedProject(t)
	s := blind(project)
	for _, tt := range []struct {
		line string
		want bool
	}{
		{`bash hooks/x.sh`, true},
		{`exec bash hooks/x.sh`, true},
		{`cat | bash hooks/x.sh`, true},
		{`jq -r .x | bash hooks/x.sh`, true},
		{`set -euo pipefail; in=$(cat); bash hooks/x.sh <<<"$in"`, true},
		{`set -e; bash hooks/x.sh; grep -q sudo && exit 2`, true}, // it ends before
		{`bash hooks/x.sh; exit $?`, true},
		{`bash hooks/x.sh; bash hooks/y.sh; exit 0`, true},
		{`cd hooks && make test && exit 0`, true},
		{`bash -c 'cd hooks && ./x.sh'; exit`, true},
		{`(cd hooks && ./x.sh)`, true},
		{`[ -z "$CI" ] || exit 0; cat >/dev/null`, false}, // nothing is missing
		{`bash hooks/x.sh; grep -q sudo && exit 2`, false},
		{`bash hooks/x.sh; exit 2`, false},
		{`bash hooks/x.sh; echo '{"decision":"block"}'`, false},
		{`bash hooks/x.sh && exit 0; exit 2`, false},
		{`bash hooks/x.sh || exit 2`, false},
		{`if ! bash hooks/x.sh; then exit 2; fi`, false},
		{`! bash hooks/x.sh && exit 2`, false},
		{`bash hooks/x.sh; [ $? = 0 ] || exit 2`, false},
		{`bash hooks/x.sh; [ -n "$CI" ] && exit 0; grep -q sudo && exit 2`, false},
		{`(bash hooks/x.sh; exit 0); grep -q sudo && exit 2`, false},
		{`bash hooks/x.sh | grep -q no && exit 2`, false},
		{`bash hooks/x.sh & grep -q sudo && exit 2`, false},
		{`set -e; bash hooks/x.sh && true; exit 2`, false},
		{`set -e; { bash hooks/x.sh; } || exit 2`, false},
		{`set -e; in=$(check); bash hooks/x.sh`, false},
		{`set -- -e; bash hooks/x.sh; exit 2`, false},
		{`set -o errexit; bash hooks/x.sh; exit 2`, true},
		{`set "$options"; bash hooks/x.sh`, false},
		{`env -C /usr bash hooks/x.sh`, false},
		{`make -C /usr/x -f x.mk`, false},
		{`set -e; set +e; bash hooks/x.sh; exit 2`, false},
		{`no() { exit 2; }; bash hooks/x.sh; no`, false},
		{`trap 'exit 2' EXIT; bash hooks/x.sh`, false},
		{`cat; bash hooks/x.sh`, false},
		{`eval "bash hooks/x.sh; exit 2"`, false},
		{`bash -c 'bash hooks/x.sh || exit 2'`, false},
		{`bash hooks/no.sh 2>/dev/null || true; grep -q sudo && exit 2`, false}, // which the agent has
		{`[ -x hooks/no.sh ] && hooks/no.sh; grep -q sudo && exit 2`, false},
		{`[ -x hooks/no.sh ] && hooks/no.sh`, false},
		{`go test ./... || exit 2`, false},
	} {
		if l, sure := s.lacks(job{inline: tt.line}, &gate.Hook{Command: tt.line}); sure != tt.want {
			t.Errorf("%s: left out: %v (%+v)", tt.line, sure, l)
		}
	}
	onFailure := &gate.Hook{Command: `bash hooks/x.sh; exit 1`, Dialect: gate.AXCode, BlockOnFailure: true}
	if _, sure := s.lacks(job{inline: onFailure.Command}, onFailure); sure {
		t.Error("a hook that refuses by each failure is left out")
	}
}

// Whatever a text is, reading it ends, and finds nothing where there is no command.
func FuzzWhatAHookStartsFirst(f *testing.F) {
	for _, line := range []string{`bash hooks/x.sh`, `cd hooks && { make -C x; } || (exit 2)`, `a='eval "$a"'; eval "$a"`, `f() { bash "$@"; }; f <x >&2`, `bash -c 'eval "$(git rev-parse --show-toplevel)"'`, `()0`} {
		f.Add(line)
	}
	s := blind(f.TempDir())
	f.Fuzz(func(t *testing.T, line string) {
		h := &gate.Hook{Command: line, Type: gate.CommandHook, Dialect: gate.ClaudeCode}
		l, sure := s.lacks(job{inline: line}, h)
		if l == nil && sure || l != nil && (l.Why == "" || l.clause == "") {
			t.Errorf("%+v, %v", l, sure)
		}
		LooksAround(h)
		Absent(h, s.project)
	})
}

func TestAScriptInPythonIsNotReadAhead(t *testing.T) {
	s := blind(t.TempDir())
	if l, _ := s.lacks(job{interpreter: interpreter{file: "/usr/bin/python3"}, script: "hooks/no.sh"}, &gate.Hook{}); l != nil {
		t.Errorf("got %v", l)
	}
}

// lacking is what a lack names, behind "!" if it is an interpreter.
func lacking(l *lack) string {
	switch {
	case l == nil:
		return ""
	case l.code == gate.InterpreterMissing:
		return "!" + l.Path
	}
	return l.Path
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
