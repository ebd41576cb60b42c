package gate

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
)

// The permission rules of Claude Code, as the `if` of a hook has them
// (spec/claude-code.md 1).
func TestClaudeCode01Rules(t *testing.T) {
	bash := func(command string) string { return string(mustJSON(map[string]string{"command": command})) }
	file := func(path string) string { return string(mustJSON(map[string]string{"file_path": path})) }
	for _, c := range []struct {
		rule, tool, input string
		want              bool
	}{
		{"Bash", "Bash", bash("ls"), true},
		{"Bash", "Read", file("ls"), false},
		{"Bash(*)", "Bash", bash("ls"), true},
		{"Bash(git push *)", "Bash", bash("git push origin main"), true},
		{"Bash(git push *)", "Bash", bash("git push"), true},
		{"Bash(git push *)", "Bash", bash("git pushy"), false},
		{"Bash(git push *)", "Bash", bash("git status"), false},
		{"Bash(git push *)", "Read", bash("git push"), false},
		{"Bash(git push:*)", "Bash", bash("git push --force"), true},
		{"Bash(git push:*)", "Bash", bash("git pushy"), false},
		{"Bash(ls*)", "Bash", bash("lsof"), true},
		{"Bash(npm run build)", "Bash", bash("npm run build"), true},
		{"Bash(npm run build)", "Bash", bash("npm run build --x"), false},
		{"Bash(* --version)", "Bash", bash("node --version"), true},
		{"Bash(git * main)", "Bash", bash("git push origin main"), true},
		{"Bash(rm *)", "Bash", bash("cd /tmp && rm -rf x"), true},
		{"Bash(rm *)", "Bash", bash("ls; (cd x || rm y) | cat"), true},
		{"Bash(rm *)", "Bash", bash("echo $(rm x)"), true},
		{"Bash(rm *)", "Bash", bash("echo `rm x`"), true},
		{"Bash(rm *)", "Bash", bash("if true; then\n  rm x\nfi"), true},
		{"Bash(rm *)", "Bash", bash("f() { rm x; }; f"), true},
		{"Bash(rm *)", "Bash", bash("A=1 B=2 rm x"), true},
		{"Bash(rm *)", "Bash", bash("rm x > /dev/null 2>&1 &"), true},
		{"Bash(rm *)", "Bash", bash("echo rm x"), false},
		{"Bash(rm *)", "Bash", bash("echo 'rm x'"), false},
		{"Bash(rm *)", "Bash", bash("ls # rm x"), false},
		{"Bash(git push *)", "Bash", bash("git   push  origin"), true},
		{"Bash(git push *)", "Bash", bash(`g"it" 'push' origin`), true},
		{"Bash(git push *)", "Bash", bash(`g\it push origin`), true},
		{"Bash(git push *)", "Bash", bash("time git push"), true},
		{"Bash(git push *)", "Bash", bash("A=$(git push x)"), true},
		{"Bash(git push *)", "Bash", bash("cat <<E\nhello\nE"), true}, // it may be a program's
		{"Bash(git push x)", "Bash", bash("git push x > out.txt"), true},
		{"Bash(echo a b)", "Bash", bash(`echo "a b"`), true},
		{"Bash(a && *)", "Bash", bash("a && b"), false},
		{"Bash(l:*)", "Bash", bash("ls"), false},
		{"Bash(export *)", "Bash", bash("export A=1"), true},
		{"Bash(rm *)", "Bash", bash("echo a # b \\\nrm x"), true},                              // which no backslash continues
		{"Bash(rm *)", "Bash", bash("echo a \\\n rm x"), false},                                // as it does a command
		{"Bash(rm *)", "Bash", bash("echo a\\\r\nrm x"), true},                                 // a word of bash's, no end of one
		{"Bash(rm *)", "Bash", bash("rm\\"), true},                                             // what is left of it depends
		{"Bash(git push *)", "Bash", bash("git push 'unclosed"), true},                         // bash cannot read it
		{"Bash(git push *)", "Bash", bash("$X push"), true},                                    // known only when it runs
		{"Bash(git push *)", "Bash", bash("$'git' status"), true},                              // the same
		{"Bash(git push *)", "Bash", `{}`, true},                                               // no command
		{"Bash(git push *)", "Bash", `{"command":["git"]}`, true},                              // none that is a text
		{"Bash(git push *)", "Bash", bash("ls " + strings.Repeat("x", maxCommandBytes)), true}, // too long to look into
		{"Edit(src/**)", "Edit", file("/w/src/a/b.go"), true},
		{"Edit(src/**)", "Edit", file("src/b.go"), true},
		{"Edit(src/**)", "Write", file("/w/src/b.go"), false},
		{"Edit", "Write", file("/w/src/b.go"), false},
		{"Write(src/**)", "Write", file("/w/src/b.go"), true},
		{"Write(./src/**)", "Write", file("/w/src/b.go"), true},
		{"Write(./src/**)", "Write", file("/w/lib/src/b.go"), false},
		{"Write(SRC/**)", "Write", file("/w/src/b.go"), true},
		{"Write(*/src/**)", "Write", file("/w/lib/src/b.go"), true},
		{"Write(lib)", "Write", file("/w/lib/src/b.go"), true},
		{"NotebookEdit(src/**)", "NotebookEdit", `{"notebook_path":"/w/src/n.ipynb"}`, true},
		{"NotebookEdit(src/**)", "NotebookEdit", `{"file_path":"/w/x","notebook_path":"/w/src/n.ipynb"}`, true}, // a name that it does not know
		{"Edit(src/**)", "Read", file("/w/src/b.go"), false},
		{"Edit(src/**)", "Edit", file("/w/lib/b.go"), false},
		{"Edit(src/**)", "Edit", file("/w/lib/src/b.go"), false},
		{"Edit(src/**)", "Edit", file("/other/src/b.go"), false},
		{"Edit(src/**)", "Edit", file("/w/src/../lib/b.go"), false},
		{"Edit(src/**)", "Edit", file("/w/lib/../src/b.go"), true},
		{"Edit(/src/*.go)", "Edit", file("/w/src/b.go"), true},
		{"Edit(/src/*.go)", "Edit", file("/w/src/a/b.go"), false},
		{"Edit(src)", "Edit", file("/w/a/src/b.go"), true},
		{"Edit(src/)", "Edit", file("/w/src/b.go"), true},
		{"Edit(a?.go)", "Edit", file("/w/ab.go"), true},
		{"Edit(a?.go)", "Edit", file("/w/a/.go"), false},
		{"Edit(**/test/*.go)", "Edit", file("/w/a/b/test/x.go"), true},
		{"Read(./.env)", "Read", file("/w/.env"), true},
		{"Read(./.env)", "Read", file("/w/a/.env"), true},
		{"Read(/.env)", "Read", file("/w/a/.env"), false},
		{"Read(.env)", "Read", file("/w/a/.env"), true},
		{"Read(.env)", "Read", file("/w/a/xenv"), false},
		{"Read(//etc/**)", "Read", file("/etc/passwd"), true},
		{"Read(//etc/**)", "Read", file("../etc/passwd"), true},
		{"Read(//etc/**)", "Read", file("/w/etc/passwd"), false},
		{"Read(~/.ssh/**)", "Read", file("/home/me/.ssh/id"), true},
		{"Read(~/.ssh/**)", "Read", file("/root/.ssh/id"), true},
		{"Read(~/.ssh/**)", "Read", file("/home/me/ssh/id"), false},
		{"Read(src/**)", "Read", `{}`, true}, // it names no file
		{"Read(src/**)", "Grep", `{"pattern":"x","path":"/w/src"}`, false},
		{"Write(src/**)", "Edit", file("/w/src/a"), false},
		{"WebFetch(domain:example.com)", "WebFetch", `{"url":"https://EXAMPLE.com./x"}`, true},
		{"WebFetch(domain:example.com)", "WebFetch", `{"url":"https://example.com.evil.net/"}`, false},
		{"WebFetch(domain:*.example.com)", "WebFetch", `{"url":"https://a.example.com"}`, true},
		{"WebFetch(domain:example.com)", "WebFetch", `{"url":"%"}`, true},
		{"Agent(Explore)", "Agent", `{"subagent_type":"Explore"}`, true},
		{"Task(Explore)", "Task", `{"subagent_type":"Plan"}`, false},
		{"mcp__github", "mcp__github__get_issue", `{}`, true},
		{"mcp__github", "mcp__githubber__get_issue", `{}`, false},
		{"mcp__github__*", "mcp__github__get_issue", `{}`, true},
		{"mcp__github__get_*", "mcp__github__put_issue", `{}`, false},
	} {
		r, err := CompileRule(c.rule)
		if err != nil {
			t.Errorf("%s: %v", c.rule, err)
			continue
		}
		if got := r.holds([]string{c.tool}, json.RawMessage(c.input), "/w"); got != c.want {
			t.Errorf("%s on %s %.80s: %v, want %v", c.rule, c.tool, c.input, got, c.want)
		}
	}
	for _, c := range []struct {
		rule, path string
		want       bool
	}{{"Edit(src/**)", "/w/src/a", true}, {"Edit(src/**)", "src/a", true}, {"Edit(src/**)", "lib/a", false}, {"Edit(//w/**)", "src/a", true}} {
		r, err := CompileRule(c.rule)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.holds([]string{"Edit"}, json.RawMessage(file(c.path)), ""); got != c.want {
			t.Errorf("%s on %s without a working directory: %v, want %v", c.rule, c.path, got, c.want)
		}
	}
}

func TestClaudeCode01RulesThatAreNone(t *testing.T) {
	for rule, want := range map[string]string{
		"Bash(git":               "not of the form",
		"(x)":                    "not of the form",
		"Bash, Edit":             "not of the form",
		"Bash(a) || Bash(b)":     "", // read as one pattern, as Claude Code does
		"Read(~me/.ssh/**)":      "home directory",
		"Edit(![a])":             "does not evaluate",
		"Edit(src/{a,b})":        "does not evaluate",
		"WebFetch(example.*)":    "WebFetch(domain:example.com)",
		"Grep(src/**)":           "are not evaluated",
		"Skill(x)":               "are not evaluated",
		"mcp__github(x)":         "are not evaluated",
		strings.Repeat("x", 1e4): "bytes long",
	} {
		_, err := CompileRule(rule)
		if want == "" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want an error with %q", rule, err, want)
		}
	}
}

// TestRulesLookBehindStarters: more than Claude Code 2.1.332 does, which was
// measured not to look behind timeout, sudo, nice and nohup.
func TestRulesLookBehindStarters(t *testing.T) {
	pushes(t, true, `timeout 5 git push -f`, `nice -n 5 git push -f`, `nohup git push`, `stdbuf -oL git push -f`, `sudo -u me git push`, `command git push`,
		`env A=1 git push`, `sudo timeout 5 /usr/bin/git push`, `/usr/bin/sudo git push`, `/usr/bin/git push -f`, `find . -exec git push \;`,
		`xargs git push`, `echo push | xargs git`, `echo push | xargs -n 1 git`, `xargs -I% git %`, `xargs -I% sh -c %`,
		`bash -c 'git push'`, `bash -lc "cd x&&git push -f"`, `sudo bash -c 'cd x;git push'`, `bash -c "bash -c 'cd x;git push'"`, `eval git push`, `eval 'g\it' push`,
		`ssh host 'cd x&&git push'`, `trap 'ls;git push' EXIT`, `echo 'git push' | sh`, `curl https://example.com/x | bash -s`, `source <(echo git push)`, "git pu\\\nsh")
	pushes(t, false, `timeout 5 git status`, `sudo ls`, `bash -c 'git status'`, `bash x.sh`, `. venv/bin/activate`, `bash -c "bash -c 'cd x;ls'"`, `eval ls`, `find . -name '*.go' | xargs rm`,
		`echo git push`, `echo sudo git push`, `/usr/bin/git status`, `ssh host ls`, `find . -name x -exec rm {} \;`)
}

// TestRulesOnWordsThatAreNotKnown: what bash puts together when it runs may be
// what the rule is about, unless what comes before is already another command.
func TestRulesOnWordsThatAreNotKnown(t *testing.T) {
	pushes(t, true, `{git,push,-f}`, `git {push,-f}`, `gi[t] push -f`, `/usr/bin/gi[t] push -f`, `~/bin/git push -f`, `git $X -f`, `git "$(echo push)" -f`,
		`git "pu$X" -f`, `git $'push' -f`, `git pu?h`, `git p*`, `git push$IFS-f`, `/usr/bin/git $X`, `'/opt/my tools/git' $X`, `sudo $X`, `bash <<< 'git push -f'`,
		`git "pu\
sh"`)
	pushes(t, false, `git status $X`, `git pull{,}`, `ls *.go`, `cat ~/x`, `git log HEAD~1`, `[ -f x ]`, `echo "$X"`, `git 'p*'`, `git p\*`, `git "pu\sh"`, `git pu\\sh`)
}

// pushes expects a rule on git push to be about the commands, or not.
func pushes(t *testing.T, want bool, commands ...string) {
	t.Helper()
	r, err := CompileRule("Bash(git push *)")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		if got := r.holds([]string{"Bash"}, mustJSON(map[string]string{"command": command}), "/w"); got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
}

// TestHostilePathsInRules: a path that costs more than paths do is asked about,
// whatever it is.
func TestHostilePathsInRules(t *testing.T) {
	for _, c := range []struct {
		name, pattern, path string
		want                bool
	}{
		{"as long as paths are", "a/**/b/**/c", strings.Repeat("a/", 2000), false},
		{"longer", "a/**/b/**/c", strings.Repeat("x", 2<<20), true},
		{"as much as is compared", strings.Repeat("**/b/", 100) + "c", strings.Repeat("a/", maxPathWork/2/502), false},
		{"more", strings.Repeat("**/b/", 800) + "c", strings.Repeat("a/", 1000), true},
	} {
		r, err := CompileRule("Edit(" + c.pattern + ")")
		if err != nil {
			t.Fatal(err)
		}
		if got := r.holds([]string{"Edit"}, mustJSON(map[string]string{"file_path": c.path}), "/w"); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	r, err := CompileRule("WebFetch(domain:example.com)")
	if err != nil {
		t.Fatal(err)
	}
	if !r.holds([]string{"WebFetch"}, mustJSON(map[string]string{"url": "https://" + strings.Repeat("x", maxHostBytes+1) + ".net"}), "") {
		t.Error("a host longer than any is not asked about")
	}
}

// A command that nests as deep as its length allows is looked into or left: it
// takes no more stack than other requests take.
func TestHostileCommandsInRules(t *testing.T) {
	r, err := CompileRule("Bash(rm *)")
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{"$(", "(", "((", "$((", "a[", "${a[", "`", "{ ", "if ", "while ", "${a:-", "\"${a:-", "[[ (", "<(", "\"$(", "!", "time ", "coproc ", "f() "} {
		for _, n := range []int{maxBrackets, maxCommandBytes} {
			command := mustJSON(map[string]string{"command": strings.Repeat(level, n/len(level))})
			held := make(chan uint64)
			go func() { // on a stack of its own
				r.holds([]string{"Bash"}, command, "")
				var now runtime.MemStats
				runtime.ReadMemStats(&now)
				held <- now.StackInuse
			}()
			if stack := <-held; stack > 24<<20 {
				t.Errorf("%d times %q takes %d MiB of stack", n, level, stack>>20)
			}
			runtime.GC()
		}
	}
	many := mustJSON(map[string]string{"command": strings.Repeat("ls;", maxCommandBytes/3)})
	if r.holds([]string{"Bash"}, many, "") {
		t.Error("ls is taken for rm")
	}
}
