package rulehooks

import (
	"encoding/json"
	"strings"
	"testing"

	"stopgate/gate"
)

// asked is the verdict of a pack on a tool call.
func asked(t *testing.T, pack string, args any) gate.Verdict {
	t.Helper()
	data, ok := args.(json.RawMessage)
	if !ok {
		var err error
		if data, err = gate.PlainJSON(args); err != nil {
			t.Fatal(err)
		}
	}
	return Evaluate(t.Context(), gate.Input{Hook: &gate.Hook{Pack: pack, Dialect: gate.AXCode, Type: gate.RuleHook}, Context: data})
}

func bash(command string) map[string]string { return map[string]string{"command": command} }

func TestAXCode23ForcePush(t *testing.T) {
	for _, tt := range []struct{ name, forced string }{
		{"plain", `git push --force`},
		{"short", `git push -f origin main`},
		{"behind", `git push origin main --force`},
		{"another directory", `git -C d push --force`},
		{"another repository", `git --git-dir=x/.git --work-tree x push -f`},
		{"another repository in two words", `git --git-dir x/.git push -f`},
		{"with settings", `git -c user.name=a --no-pager push --force`},
		{"a plus", `git push origin +main`},
		{"a plus and two sides", `git push origin '+refs/heads/a:refs/heads/b'`},
		{"a plus behind --", `git push -- origin +main`},
		{"letters together", `git push -fu origin main`},
		{"letters the other way", `git push -uf origin main`},
		{"mirror", `git push --mirror`},
		{"mirror, cut short", `git push --mirr backup`},
		{"lease", `git push --force-with-lease`},
		{"lease with a value", `git push --force-with-lease=main:abc origin`},
		{"lease, cut short", `git push --force-w`},
		{"a shell's text", `bash -c 'git push --force'`},
		{"a login shell's text", `/bin/bash -lc "cd d && git push -f"`},
		{"a text in a text", `sh -c "bash -c 'git push -f'"`},
		{"a subshell", `(git push --force)`},
		{"a substitution", `echo "$(git push --force 2>&1)"`},
		{"after cd", `cd d && git push --force`},
		{"after others", "npm test; git add -A\ngit commit -m x\ngit push -f"},
		{"in the background", `git push -f &`},
		{"into a pipe", `git push -f | tee log`},
		{"in a condition", `if ! git push -f; then echo no; fi`},
		{"in a function", `f() { git push -f; }; f`},
		{"eval", `eval "git push" --force`},
		{"sudo", `sudo -u me git push --force`},
		{"env", `env GIT_SSH_COMMAND=ssh git push --force`},
		{"an assignment", `GIT_TRACE=1 git push --force`},
		{"starters", `nohup timeout 60 nice -n 5 git push -f`},
		{"command", `command git push -f`},
		{"xargs", `git remote | xargs -n1 git push -f`},
		{"xargs of a known word", `echo --force | xargs git push origin`},
		{"find", `find . -name .git -execdir git push -f \;`},
		{"written into a shell", `echo 'git push --force' | sh`},
		{"a here document", "bash <<'EOF'\ngit push --force\nEOF"},
		{"a here string", `bash <<< 'git push --force'`},
		{"by its path", `/usr/bin/git push -f`},
		{"quotes inside", `g"i"t p'us'h --fo\rce`},
		{"over two lines", "git push \\\n  --force"},
		{"the plumbing", `git send-pack --force host:repo main`},
		{"the program of the verb", `git-push --force`},
		{"by configuration", `git -c remote.origin.push=+main push`},
		{"a mirror by configuration", `git -c remote.origin.mirror=true push origin`},
		{"an alias of its own", `git -c alias.up='push --force' up origin`},
		{"an alias that is a shell's", `git -c 'alias.up=!git push -f' up`},
		{"an unknown remote", `git push "$REMOTE" +main`},
		{"an unknown prefix", `$SUDO git push -f`},
		{"both of two", `git push --no-force --force`},
		{"a deletion by force", `git push -f origin :old`},
		{"nothing sent", `git push --force --dry-run`},
		{"no shell can run it, and who knows", `git push --force 'unclosed`},
		{"arithmetic that is none", `echo $((git push -f) )`},
		{"behind a long text", strings.Repeat("# text\n", 20_000) + "git push -f"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := asked(t, "block-force-push", bash(tt.forced))
			if v.Outcome != gate.Block || v.Reason != "Blocked force push by block-force-push hook" {
				t.Errorf("%.200s: %s %q", tt.forced, v.Outcome, v.Reason)
			}
		})
	}
	for _, tt := range []struct{ name, command string }{
		{"a push", `git push origin main`},
		{"a deletion of something else behind it", `git push && rm -f x`},
		{"another option behind it", `git push; tail -f log`},
		{"a mention", `echo 'git push --force'`},
		{"a mention without quotes", `echo git push --force`},
		{"in a message", `git commit -m "never git push --force"`},
		{"in a search", `grep -rn 'push --force' .`},
		{"in a comment", `git push # --force`},
		{"another verb", `git fetch --force`},
		{"a branch of that name", `git push origin force`},
		{"force taken back", `git push --force --no-force`},
		{"behind --", `git push -- --force`},
		{"a remote's name", `git push --repo --force`},
		{"an option's text", `git push -o f`},
		{"an option's text, joined", `git push -of`},
		{"an option's long text", `git push --push-option -f`},
		{"a deletion", `git push origin :old`},
		{"a deletion by name", `git push --delete origin old`},
		{"a colon", `git push origin a:b`},
		{"upstream", `git push -u origin main`},
		{"if includes alone", `git push --force-if-includes`},
		{"written into a file", "cat > note <<'EOF'\ngit push --force\nEOF"},
		{"a setting of another", `git -c push.default=current push`},
		{"an alias that is not used", `git -c alias.up='push --force' push`},
		{"a stash", `git stash push -f`},
		{"another program", `hub push --force`},
		{"asked for help", `man git push --force`},
		{"nothing", ``},
	} {
		t.Run("not: "+tt.name, func(t *testing.T) {
			if v := asked(t, "block-force-push", bash(tt.command)); v.Outcome != gate.Allow {
				t.Errorf("%s: %s %q", tt.command, v.Outcome, v.Reason)
			}
		})
	}
}

func TestAXCode23WhereTheCommandStands(t *testing.T) {
	for _, tt := range []struct {
		name string
		args any
		want gate.Outcome
	}{
		{"command", bash("git push -f"), gate.Block},
		{"cmd", map[string]string{"cmd": "git push -f"}, gate.Block},
		{"code", map[string]string{"code": "git push -f"}, gate.Block},
		{"words", map[string][]string{"command": {"bash", "-lc", "git push -f"}}, gate.Block},
		{"words with a quote", map[string][]string{"command": {"git", "push", "it's", "-f"}}, gate.Block},
		{"words that only mention it", map[string][]string{"command": {"echo", "git push -f"}}, gate.Allow},
		{"a description", map[string]string{"description": "git push -f", "command": "true"}, gate.Allow},
		{"a number", map[string]int{"command": 7}, gate.Allow},
		{"no object", json.RawMessage(`["git push -f"]`), gate.Allow},
		{"nothing", json.RawMessage(``), gate.Allow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if v := asked(t, "block-force-push", tt.args); v.Outcome != tt.want {
				t.Errorf("%s", v.Outcome)
			}
		})
	}
}

func TestAXCodePackProtectEnvFiles(t *testing.T) {
	for _, tt := range []struct {
		name string
		args any
		want string // the file that is warned of
	}{
		{"a path", map[string]string{"filePath": "/p/.env"}, ".env"},
		{"the file alone", map[string]string{"filePath": ".env"}, ".env"},
		{"of a kind", map[string]string{"filePath": "p/.env.local"}, ".env.local"},
		{"a command", bash("cat .env | sort"), ".env"},
		{"a redirection", bash("echo A=b>>.env.prod.eu"), ".env.prod.eu"},
		{"quoted", bash(`cat "$HOME/.env"`), ".env"},
		{"deep in the arguments", map[string]any{"edits": []any{map[string]string{"file": "a/.env"}}}, ".env"},
		{"another suffix", map[string]string{"filePath": "prod.env"}, ""},
		{"direnv", map[string]string{"filePath": ".envrc"}, ""},
		{"an environment", bash("echo process.env.HOME"), ""},
		{"a directory", map[string]string{"filePath": ".environment/x"}, ""},
		{"nothing", json.RawMessage(`{}`), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := asked(t, "protect-env-files", tt.args)
			said := ""
			if v.Evidence != nil {
				said = v.Evidence.Stderr
			}
			if v.Outcome != gate.Allow || v.Reason != "" || (said != "") != (tt.want != "") || !strings.Contains(said, tt.want+", ") && tt.want != "" {
				t.Errorf("%s %q, said %q", v.Outcome, v.Reason, said)
			}
		})
	}
}

func TestAXCodePackLogBashCommands(t *testing.T) {
	v := asked(t, "log-bash-commands", bash(strings.Repeat("é", 600)))
	if v.Outcome != gate.Allow || v.Evidence.Stderr != strings.Repeat("é", 500) {
		t.Errorf("%s, logged %d bytes", v.Outcome, len(v.Evidence.Stderr))
	}
}

func TestAXCodePacksThatRemind(t *testing.T) {
	v := asked(t, "format-after-edit", map[string]string{"filePath": "a.go"})
	if v.Outcome != gate.Allow || !strings.Contains(v.AdditionalContext, "formatter") {
		t.Errorf("format-after-edit: %s, feedback %q", v.Outcome, v.AdditionalContext)
	}
	v = asked(t, "require-tests-on-stop", struct{}{})
	if v.Outcome != gate.Allow || v.AdditionalContext != "" || !strings.Contains(v.Evidence.Stderr, "tests") {
		t.Errorf("require-tests-on-stop: %s, feedback %q, logged %q", v.Outcome, v.AdditionalContext, v.Evidence.Stderr)
	}
}

func TestEveryPackHasARule(t *testing.T) {
	for _, p := range gate.AXCodePacks {
		if v := asked(t, p.Name, bash("true")); v.Outcome != gate.Allow {
			t.Errorf("%s: %s %v", p.Name, v.Outcome, v.Failure)
		}
	}
	if v := asked(t, "another", bash("true")); v.Outcome != gate.NoVerdict || v.Failure == nil {
		t.Errorf("a rule that is not known: %s", v.Outcome)
	}
}

// TestForcePushBesideDecoys: the model writes the arguments, and hosts pass over
// those that their tool does not know (codex: cmd, the Gemini API's sandbox: code).
func TestForcePushBesideDecoys(t *testing.T) {
	for _, args := range []string{`{"command":"ls","cmd":"git push -f"}`, `{"command":"ls","code":"git push -f"}`, `{"cmd":["ls"],"code":"git push -f"}`} {
		if v := asked(t, "block-force-push", json.RawMessage(args)); v.Outcome != gate.Block {
			t.Errorf("%s: %s", args, v.Outcome)
		}
		if v := asked(t, "log-bash-commands", json.RawMessage(args)); !strings.Contains(v.Evidence.Stderr, "git push -f") {
			t.Errorf("%s is logged as %q", args, v.Evidence.Stderr)
		}
	}
}
