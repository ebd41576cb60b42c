package commandhooks

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgate/gate"
)

// ofClaudeCode makes the hook one of Claude Code's, a shell line.
func ofClaudeCode(in *gate.Input) {
	inline(in)
	in.Hook.Dialect = gate.ClaudeCode
}

// withArgs gives the hook's command arguments, so that no shell reads it.
func withArgs(args ...string) func(*gate.Input) {
	return func(in *gate.Input) { in.Hook.Args = append([]string{}, args...) }
}

func TestClaudeCode03Law(t *testing.T) {
	const (
		blocks  = `{"decision":"block","reason":"r"}`
		denies  = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"r"}}`
		permits = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}`
		adds    = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"c"}}`
	)
	long := strings.Repeat("ä", 10_001)
	for _, tt := range []struct {
		name  string
		event gate.EventName
		end   ending
		want  string // the context stands behind a "+"
	}{
		{"fault loop-02: silence", gate.Stop, ended(0, "", ""), "allow"},
		{"an answer at exit 0", gate.Stop, ended(0, blocks, ""), "block r"},
		{"at exit 1", gate.Stop, ended(1, blocks, "err"), "block r"},
		{"at exit 127", gate.PreToolUse, ended(127, denies, "err"), "block r"},
		{"an exit that the sandbox takes for a signal's", gate.Stop, ending{code: 137, signal: "SIGKILL", unsure: true, stdout: text{kept: []byte(blocks)}}, "block r"},
		{"no objection at exit 1", gate.Stop, ended(1, "{}", "err"), "allow"},
		{"with white space and a mark round it", gate.Stop, ended(0, "\ufeff\r\n "+blocks+"\r\n", ""), "block r"},
		{"fault stdout-07: none of the known keys", gate.Stop, ended(0, `{"status":"ok"}`, ""), "allow"},
		{"exit 2: the JSON's own reason", gate.Stop, ended(2, blocks, "err"), "block r"},
		{"exit 2: of a denial too", gate.PreToolUse, ended(2, denies, "err"), "block r"},
		{"fault exit-01: exit 2: else stderr", gate.PreToolUse, ended(2, "", " lint failed\n"), "block lint failed"},
		{"exit 2: an allow does not soften it", gate.PreToolUse, ended(2, permits, "err"), "block err"},
		{"exit 2: nor an empty object", gate.Stop, ended(2, "{}", "err"), "block err"},
		{"exit 2: continue:false lets a Stop go", gate.Stop, ended(2, `{"continue":false,"stopReason":"enough"}`, "err"), "allow enough"},
		{"exit 2: nor a broken answer", gate.Stop, ended(2, `{"decision":"deny"}`, "err"), "block err"},
		{"exit 2: an empty reason is none", gate.Stop, ended(2, `{"decision":"block","reason":" "}`, "err"), "block err"},
		{"fault exit-03: exit 2: a context is kept", gate.PreToolUse, ended(2, adds, "blocked"), "block blocked +c"},
		{"exit 2: on Stop too", gate.Stop, ended(2, `{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"c"}}`, "err"), "block err +c"},
		{"fault schema-07: exit 2: whatever the keys", gate.PreToolUse, ended(2, `{"permission":"deny","reason":"in .aiignore"}`, ""), "block"},
		{"fault stdout-06: exit 2: JSON on stderr is text", gate.PreToolUse, ended(2, "", `{"decision":"block"}`), `block {"decision":"block"}`},
		{"exit 2: after a flood", gate.Stop, ending{code: 2, stdout: text{kept: []byte(blocks), cut: true}, stderr: text{kept: []byte("err")}}, "block err"},
		{"fault exit-04: exit 2: of an interpreter", gate.PreToolUse, ended(2, "", "python3: can't open file 'x.py'"), "block python3: can't open file 'x.py'"},
		{"text says nothing", gate.Stop, ended(0, "all good", ""), "allow"},
		{"nor after a tool", gate.PostToolUse, ended(0, "all good", ""), "allow"},
		{"text is a prompt's context", gate.UserPromptSubmit, ended(0, " mind the tests\n", ""), "allow +mind the tests"},
		{"and a session's", gate.Start, ended(0, "on branch x", ""), "allow +on branch x"},
		{"5: at most so long", gate.UserPromptSubmit, ended(0, long, ""), "allow +" + long[:2*9_999] + "…"},
		{"not at exit 1", gate.UserPromptSubmit, ended(1, "mind the tests", ""), "no_verdict nonzero_exit"},
		{"fault exit-09: prose before JSON is text", gate.Stop, ended(0, "note\n"+blocks, ""), "allow"},
		{"prose behind it too", gate.Stop, ended(0, blocks+"\nnote", ""), "allow"},
		{"an array is text", gate.Stop, ended(0, "["+blocks+"]", ""), "allow"},
		{"fault exit-05: exit 1", gate.PreToolUse, ended(1, "", "violation"), "no_verdict nonzero_exit"},
		{"exit 1 and text", gate.Stop, ended(1, "no", ""), "no_verdict nonzero_exit"},
		{"an answer of a wrong shape", gate.Stop, ended(0, `{"decision":"deny"}`, ""), "no_verdict bad_output"},
		{"at exit 1", gate.Stop, ended(1, `{"decision":"deny"}`, ""), "no_verdict bad_output"},
		{"an answer that is too long", gate.Stop, ending{stdout: text{kept: []byte(`{"reason":"aaa`), cut: true}}, "no_verdict output_too_large"},
		{"a text that is too long", gate.Stop, ending{stdout: text{kept: []byte("aaa"), cut: true}}, "allow"},
		{"a time-out decides nothing, whatever was said", gate.Stop, ending{timedOut: true, stdout: text{kept: []byte(blocks)}}, "no_verdict timeout"},
		{"a signal", gate.Stop, ending{signal: "SIGKILL", stdout: text{kept: []byte(blocks)}}, "no_verdict signalled"},
		{"what may be one", gate.Stop, ending{code: 137, signal: "SIGKILL", unsure: true}, "no_verdict signalled"},
		{"too much memory", gate.Stop, ending{signal: "SIGKILL", overMemory: 1 << 20}, "no_verdict signalled"},
	} {
		t.Run(fmt.Sprintf("%s/%s", tt.event, tt.name), func(t *testing.T) {
			in := input("true", ofClaudeCode, on(tt.event))
			v := judge(in.Hook, in.Event.Name, tt.end)
			got := told(v)
			if v.AdditionalContext != "" {
				got += " +" + v.AdditionalContext
			}
			if got != tt.want {
				t.Errorf("got %.300s\nwant %.300s", got, tt.want)
			}
			if v.Evidence == nil {
				t.Error("no evidence")
			}
		})
	}
	in := input("true", ofClaudeCode, on(gate.PreToolUse))
	if v := judge(in.Hook, in.Event.Name, ended(2, `{"continue":false,"stopReason":"enough"}`, "err")); told(v) != "block enough" || !v.Has(gate.HaltRequested) {
		t.Errorf("exit 2 with continue:false on a tool: %s, notes %v", told(v), v.Notes)
	}
	if v := judge(in.Hook, in.Event.Name, ended(2, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"defer"}}`, "err")); told(v) != "block err" || len(v.Notes) > 0 {
		t.Errorf("exit 2 with defer: %s, notes %v", told(v), v.Notes)
	}
	in.Event.Name, in.Hook.Event = gate.PostToolUse, gate.PostToolUseFailure // a host that has no such event
	if v := judge(in.Hook, in.Event.Name, ended(0, `{"hookSpecificOutput":{"hookEventName":"PostToolUseFailure","additionalContext":"c"}}`, "")); v.AdditionalContext != "c" {
		t.Errorf("an answer about the hook's own event: %s", show(v))
	}
}

// Commands with arguments are run as they are: no shell reads them.
func TestClaudeCode01CommandWithArguments(t *testing.T) {
	project := openDir(t)
	everyMode(t, Options{Workspace: Workspace{Access: ReadOnly, Roots: []string{project}}}, func(t *testing.T, r *Runner) {
		for _, tt := range []struct {
			name, command string
			args          []string
			want          string // on standard output
		}{
			{"arguments stay as they are", "printf", []string{"<%s>", "a b", "$HOME", "*", "`id`", "'", ""}, "<a b><$HOME><*><`id`><'><>"},
			{"none", "pwd", []string{}, "/"},
			{"an interpreter", "bash", []string{"-c", "echo $#", "x", "y"}, "1"},
			{"the project's directory", "echo", []string{"${CLAUDE_PROJECT_DIR}/x", "$CLAUDE_PROJECT_DIR"}, project + "/x $CLAUDE_PROJECT_DIR"},
		} {
			v := ask(t, r, tt.command, ofClaudeCode, withArgs(tt.args...), in(project))
			if told(v) != "allow" || !strings.HasPrefix(v.Evidence.Stdout, tt.want) {
				t.Errorf("%s: %s", tt.name, show(v))
			}
		}
		for _, command := range []string{"stopgate-no-such-command", "-x", "echo a; exit 2", "exit", "/usr"} {
			if v := ask(t, r, command, ofClaudeCode, withArgs("2")); told(v) != "no_verdict nonzero_exit" {
				t.Errorf("%q is no program: %s", command, show(v))
			}
		}
	})
}

// Hooks find the project's directory in their environment, and nothing of the
// host's beside it (DESIGN §9).
func TestClaudeCode01Environment(t *testing.T) {
	t.Setenv("STOPGATE_API_KEY", "secret")
	project := openDir(t)
	everyMode(t, Options{HostEnv: []string{"FROM_HOST=1"}, Workspace: Workspace{Access: ReadOnly, Roots: []string{project}}}, func(t *testing.T, r *Runner) {
		v := ask(t, r, `env | cut -d= -f1 | sort | tr '\n' ' '; echo $CLAUDE_PROJECT_DIR`, ofClaudeCode, in(project))
		if got := v.Evidence.Stdout; !strings.HasSuffix(strings.TrimSpace(got), " "+project) || strings.Contains(got, "FROM_HOST") || strings.Contains(got, "STOPGATE_API_KEY") {
			t.Errorf("got %s", show(v))
		}
		if v := ask(t, r, `printenv CLAUDE_PROJECT_DIR || echo unset`, ofClaudeCode); strings.TrimSpace(v.Evidence.Stdout) != "unset" {
			t.Errorf("without a working directory: %s", show(v))
		}
		if v := ask(t, r, `printenv CLAUDE_PROJECT_DIR; exit 2`, ofClaudeCode, in("/a\x00b")); told(v) != "block" {
			t.Errorf("a hostile working directory: %s", show(v))
		}
		if v := ask(t, r, `echo "${CLAUDE_PROJECT_DIR-unset}"`, in(project)); !strings.Contains(v.Evidence.Stdout, "unset") {
			t.Errorf("hooks of azure: %s", show(v))
		}
	})
}

// They run in the agent's working directory, where hooks may see that.
func TestClaudeCode01RunsInTheProject(t *testing.T) {
	project := openDir(t)
	script := filepath.Join(mkdir(t, project, ".claude", "hooks"), "check.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\npwd\necho \"no $1\" >&2\nexit 2\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	everyMode(t, Options{Workspace: Workspace{Access: ReadOnly, Roots: []string{project}}}, func(t *testing.T, r *Runner) {
		for _, hook := range []func(*gate.Input){
			func(in *gate.Input) { in.Hook.Command = `"$CLAUDE_PROJECT_DIR"/.claude/hooks/check.sh a` },
			func(in *gate.Input) { in.Hook.Command = `.claude/hooks/check.sh a` },
			func(in *gate.Input) {
				in.Hook.Command, in.Hook.Args = `${CLAUDE_PROJECT_DIR}/.claude/hooks/check.sh`, []string{"a"}
			},
		} {
			v := ask(t, r, "", ofClaudeCode, in(project), hook)
			if told(v) != "block no a" || strings.TrimSpace(v.Evidence.Stdout) != project {
				t.Errorf("got %s", show(v))
			}
		}
	})
}

// Hooks on SessionStart can write where Claude Code takes variables from, as they do
// there; nothing comes of it. Others do not have the file.
func TestClaudeCode01EnvFile(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		const line = `echo "export A=b" >> "$CLAUDE_ENV_FILE" && cat "$CLAUDE_ENV_FILE" && echo context`
		if v := ask(t, r, line, ofClaudeCode, on(gate.Start)); v.AdditionalContext != "context" {
			t.Errorf("got %s", show(v))
		}
		if v := ask(t, r, `echo "${CLAUDE_ENV_FILE-none}" >&2; exit 2`, ofClaudeCode, on(gate.PreToolUse)); told(v) != "block none" {
			t.Errorf("before a call: got %s", show(v))
		}
	})
}

// What is deep in quotes, and text in braces that is no JSON, is no answer.
func TestClaudeCode03TextInBraces(t *testing.T) {
	for text, want := range map[string]bool{
		`{"a":` + strings.Repeat("[", maxDepth): true, `{"a":` + strings.Repeat("[", maxDepth-1): false,
		`{"a":"` + strings.Repeat(`[\"`, 2*maxDepth): false, strings.Repeat("{}", 2*maxDepth): false,
	} {
		if got := deeper([]byte(text), maxDepth); got != want {
			t.Errorf("%.40s…: %v", text, got)
		}
	}
	if v := judge(&gate.Hook{Dialect: gate.ClaudeCode, Event: gate.PreToolUse}, gate.PreToolUse, ending{stdout: text{kept: []byte("{no JSON")}}); told(v) != "allow" {
		t.Errorf("got %s", show(v))
	}
}

// An answer is JSON however deep what nobody reads of it is: JavaScript reads it,
// and what cannot be read here is no text without a decision.
func TestClaudeCode03DeepAnswer(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		const line = `printf '{"decision":"block","reason":"r","seen":'; head -c 20000 /dev/zero | tr '\0' '['; head -c 20000 /dev/zero | tr '\0' ']'; echo '}'`
		if v := ask(t, r, line, ofClaudeCode, on(gate.PreToolUse)); told(v) != "block r" && v.Failure == nil {
			t.Errorf("the block is lost without a word: got %q", told(v))
		}
	})
}
