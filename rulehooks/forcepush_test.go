package rulehooks

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"stopgate/gate"
)

// Each of these overwrites a diverged branch when a bash runs it where there are
// such programs and repositories.
func TestAXCode23ForcePushInOtherWords(t *testing.T) {
	for _, tt := range []struct{ name, forced string }{
		{"an option taken back takes no word: recurse", `git push --no-recurse-submodules --force origin main`},
		{"push-option", `git push --no-push-option --force origin main`},
		{"receive-pack", `git push --no-receive-pack -f origin main`},
		{"exec", `git push --no-exec -f origin main`},
		{"repo", `git push --no-repo -f origin main`},
		{"an alias of an alias", `git -c alias.a=b -c alias.b='push -f' a origin main`},
		{"settings hold for an alias", `git -c remote.origin.push=+main -c alias.a=push a origin`},
		{"settings hold for an alias that is a shell's", `git -c alias.p='!git q' -c alias.q='push -f origin main' p`},
		{"behind a hundred aliases", strings.Repeat("git -c alias.a=status a\n", 100) + `git -c alias.p='push -f' p origin main`},
		{"braces make the command", `{git,push,-f,origin,main}`},
		{"braces make the words", `git push {--force,origin,main}`},
		{"a pattern for the program", `/usr/bin/gi[t] push -f origin main`},
		{"a program below the home", `~/bin/git push -f origin main`},
		{"a program in an unknown place", `"$PREFIX"/bin/git push -f origin main`},
		{"a program that is looked for", `$(which git) push --force origin main`},
		{"an empty environment", `env - PATH="$PATH" git push -f origin main`},
		{"split and continued", `env -S 'git push' -f origin main`},
		{"split behind another letter", `env -iS 'git push -f origin main'`},
		{"script, letters together", `script -qc 'git push -f origin main' /dev/null`},
		{"script, other letters", `script -qec 'git push --force origin main' /dev/null`},
		{"su, letters together", `su root -lc 'git push -f origin main'`},
		{"runuser", `runuser -u me -- git push -f origin main`},
		{"xargs of a here string", `xargs git push <<< '-f origin main'`},
		{"a block written into a shell", `{ echo git push -f origin main; } | sh`},
		{"a subshell written into a shell", `(echo git push -f origin main) | bash`},
		{"a shell that reads descriptor 0", `echo 'git push -f origin main' | bash /dev/fd/0`},
		{"a shell's arguments", `bash -c 'git push "$@"' _ -f origin main`},
		{"a shell's arguments, all", `bash -c '"$@"' _ git push -f origin main`},
		{"configuration in the environment", `GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0='push -f' git p origin main`},
		{"rebase --exec", `git rebase -q --exec 'git push -f origin main' --root`},
		{"rebase -x", `git rebase -x 'git push -f origin main' --root`},
		{"submodule foreach", `git submodule foreach 'git push -f origin main'`},
		{"submodule foreach, words", `git submodule foreach git push -f origin main`},
		{"bisect run", `git bisect run git push -f origin main`},
		{"chrt", `chrt -o 0 git push -f origin main`},
		{"taskset", `taskset 3 git push -f origin main`},
		{"unshare", `unshare git push -f origin main`},
		{"prlimit", `prlimit git push -f origin main`},
		{"setpriv", `setpriv --reuid me git push -f origin main`},
		{"runuser's text", `runuser -lc 'git push -f' me`},
		{"su's shell has the letter", `su -s /bin/c-c -c 'git push -f'`},
		{"a starter's option, cut short", `sudo --us me git push -f`},
		{"a program that is not known, for a shell", `$SHELL -c 'git push -f'`},
		{"a starter in an unknown place", `"$PREFIX"/sudo git push -f`},
		{"a text that env splits, with its options", `env -S '-i A=b git push' -f`},
		{"an interactive shell heeds no -n", `bash -i -n -c 'git push -f'`},
		{"a -n that is taken back", `bash -n +n -c 'git push -f'`},
		{"braces with a row of letters", `git push -{f..f}`},
		{"an alias of a verb is none", `git -c alias.push=status push -f`},
		{"the later alias", `git -c alias.a=status -c alias.a='push -f' a`},
		{"settings hold for what rebase runs", `git -c alias.a='push -f' rebase -x 'git a'`},
		{"rebase -x among letters", `git rebase -ix'git push -f' HEAD~2`},
		{"configuration by env", `env GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0='push -f' git p`},
		{"configuration in one variable", `GIT_CONFIG_PARAMETERS="'alias.p=push -f'" git p`},
		{"a list written into a shell", `echo a && echo git push -f | sh; { true && echo git push -f; } | sh`},
		{"a loop written into a shell", `for i in 1 2; do echo git push -f; done | sh`},
		{"a here string into a block", `{ sh; } <<< 'git push -f'`},
		{"an echo behind a starter", `command echo git push -f | sh`},
		{"xargs puts it in a place", `echo -f | xargs -I{} git push {} origin`},
		{"xargs puts it into a text", `echo -f | xargs -I % sh -c 'git push % origin'`},
		{"xargs puts it behind a plus", `echo main | xargs -I{} git push origin +{}`},
		{"a function's arguments", `f() { git push "$@"; }; f -f origin main`},
		{"all of a function's", `f() { "$@"; }; f git push -f`},
		{"a function's arguments by number", `f() { git "$1" "${2}"; }; f push -f`},
		{"a function's text", `f() { eval "$1"; }; f 'git push -f'`},
		{"a function of a function", `g() { git "$@"; }; f() { g push "$@"; }; f -f`},
		{"a function that shifts", "function f {\n  shift\n  git push $*\n}\nf origin -f"},
		{"a function within a shell", `bash -c 'f() { git push "$@"; }; f "$@"' _ -f`},
		{"a shell's arguments by number", `sh -c 'git push $1 "${2}"' _ origin +main`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if v := asked(t, "block-force-push", bash(tt.forced)); v.Outcome != gate.Block {
				t.Errorf("%.200s: %s", tt.forced, v.Outcome)
			}
		})
	}
	for _, tt := range []struct{ name, command string }{
		{"sudo is asked what it may", `sudo -l git push -f`},
		{"a shell that runs nothing", `bash -n -c 'git push -f'`},
		{"a push option that looks like a refspec", `git push --push-option +x origin`},
		{"a push option, cut short", `git push --push-o +x origin`},
		{"an alias that follows itself", `git -c alias.a=a a`},
		{"another program in an unknown place", `"$BIN"/hub push -f`},
		{"a pattern that is no git", `./bin/*.sh push -f`},
		{"what is not known pushes", `$TOOL push origin main`},
		{"words made by braces", `git add {a,b}/{c,d} -f`},
		{"a block that is shown", `{ echo git push -f; } | less`},
		{"a function's other arguments", `f() { git push origin "$1"; }; f main -f`},
		{"a function that calls itself", `f() { f "$@"; f "$@" x; git push "$1"; }; f a b`},
		{"a shell's other arguments", `sh -c 'git push "$1"' _ origin -f`},
		{"rebase of a branch", `git rebase --onto main x -f`},
		{"xargs puts it elsewhere", `echo -f | xargs -I{} sh -c 'git push; tail {}'`},
		{"each submodule", `git submodule foreach 'git push origin main'`},
		{"a long text without one", strings.Repeat("some words, ", 20_000)},
	} {
		t.Run("not: "+tt.name, func(t *testing.T) {
			if v := asked(t, "block-force-push", bash(tt.command)); v.Outcome != gate.Allow {
				t.Errorf("%.200s: %s %q", tt.command, v.Outcome, v.Reason)
			}
		})
	}
}

// cats is a pipe of 3,700 cats in 500 bytes.
var cats = "printf '" + strings.Repeat("cat|", 61) + "cat%s' " + strings.Repeat("'|' ", 60) + "'' | sh\n"

// What is too involved to read in time is no more let pass than what is read.
func TestAXCode23ForcePushIsReadOrBlocked(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name, command string
		ctx           context.Context
		want          string // begins the reason
	}{
		{"no time", "true", ended, "Blocked by block-force-push hook: the command is too involved"},
		{"no time for a long text", strings.Repeat("a ", 1<<20), ended, "Blocked by block-force-push hook: the command is too involved"},
		{"aliases that multiply", aliases(20) + " a0", t.Context(), "Blocked by block-force-push hook: the command is too involved"},
		{"before them", "git push -f;" + aliases(20) + " a0", t.Context(), "Blocked force push"},
		{"pipes that are not too long", strings.Repeat(cats, 3) + "git push -f", t.Context(), "Blocked force push"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data, err := gate.PlainJSON(bash(tt.command))
			if err != nil {
				t.Fatal(err)
			}
			v := Evaluate(tt.ctx, gate.Input{Hook: &gate.Hook{Pack: "block-force-push", Dialect: gate.AXCode, Type: gate.RuleHook}, Context: data})
			if v.Outcome != gate.Block || !strings.HasPrefix(v.Reason, tt.want) {
				t.Errorf("%s %q", v.Outcome, v.Reason)
			}
		})
	}
}

// aliases is a git with aliases each of which stands for two of the next.
func aliases(n int) string {
	var b strings.Builder
	b.WriteString("git")
	for i := range n {
		fmt.Fprintf(&b, " -c alias.a%d='!git a%d; git a%d'", i, i+1, i+1)
	}
	return b.String()
}

// What is kept of a command is no more than a few times its length, beside what the
// budget of a reading lets aliases within aliases take.
func TestAXCode23ForcePushKeepsLittle(t *testing.T) {
	for _, tt := range []struct{ name, text string }{
		{"words", strings.Repeat("a ", 1<<18)},
		{"words of git", strings.Repeat("git push ", 1<<15)},
		{"a pipe", cats},
		{"pipes in aliases", strings.Repeat("git -c alias.a='!sh -c \""+strings.ReplaceAll(cats, "'", "'\\''")+"\"' a\n", 2)},
		{"blocks in blocks", "{ " + strings.Repeat("{ ", 1500) + "echo " + strings.Repeat("a", 50_000) + strings.Repeat("; }", 1500) + "; } | sh"},
		{"assignments in a row", strings.Repeat("env A=b ", 8000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			asked(t, "block-force-push", bash(tt.text))
			runtime.ReadMemStats(&after)
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > uint64(64*len(tt.text))+64<<20 {
				t.Errorf("%d bytes: %d MiB allocated", len(tt.text), allocated>>20)
			}
		})
	}
}

// Programs that start another which `if` of claude-code's hooks looks behind
// (gate/rulecommand.go), and AX Code's own expression finds.
func TestAXCode23ForcePushBehindStarters(t *testing.T) {
	for _, command := range []string{
		`docker exec c git push -f`, `podman exec c git push --force`, `kubectl exec p -- git push -f`, `systemd-run --user git push -f`,
		`parallel git push -f ::: origin`, `ssh host git push -f`, `ssh host 'cd x && git push --force'`, `setarch x86_64 git push -f`, `ltrace git push -f`, `unbuffer git push -f`, `fd -x git push -f`, `fish -c 'git push -f'`,
		`proxychains4 git push -f`, `dbus-run-session git push -f`, `pkexec git push -f`,
		`git config alias.p 'push -f' && git p`,
	} {
		t.Run(command, func(t *testing.T) {
			if v := asked(t, "block-force-push", bash(command)); v.Outcome != gate.Block {
				t.Errorf("%s: %s", command, v.Outcome)
			}
		})
	}
}
