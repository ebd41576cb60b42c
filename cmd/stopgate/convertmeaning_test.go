package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"stopgate/commandhooks"
	"stopgate/config"
	"stopgate/gate"
)

// answeringScripts are hooks of every way of answering, none of which looks at its
// input: what differs between two systems is what they make of it.
var answeringScripts = func() (scripts []string) {
	for _, answer := range []string{
		`{}`, `{"decision":"allow"}`, `{"decision":"approve"}`, `{"decision":"deny","reason":"r"}`, `{"decision":"block","reason":"r"}`, `{"decision":"block"}`, `{"decision":"ask","reason":"r"}`,
		`{"decision":"BLOCK","reason":"r"}`, `{"Decision":"block","reason":"r"}`, `{"decision":null,"reason":"r"}`, `{"decision":"block","reason":5}`, `{"decision":"block","reason":null}`, `{"decision":"block","reason":" "}`,
		`{"ok":true}`, `{"ok":false,"reason":"r"}`, `{"ok":"false","reason":"r"}`, `{"ok":true,"decision":"block","reason":"r"}`, `{"ok":false,"decision":"approve","reason":"r"}`,
		`{"permissionDecision":"deny","reason":"r"}`, `{"permissionDecision":"ask"}`, `{"permissionDecision":"block"}`, `{"permissionDecision":"allow","hookSpecificOutput":{"permissionDecision":"deny"}}`,
		`{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"r"}}`, `{"hookSpecificOutput":{"hookEventName":"EVENT","permissionDecision":"deny","permissionDecisionReason":"r"}}`,
		`{"hookSpecificOutput":{"hookEventName":"Other","permissionDecision":"deny"}}`, `{"hookSpecificOutput":{"hookEventName":"EVENT","permissionDecision":"ask"}}`, `{"hookSpecificOutput":{"hookEventName":"EVENT","permissionDecision":"defer"}}`,
		`{"hookSpecificOutput":{"hookEventName":"EVENT","additionalContext":"c"}}`, `{"hookSpecificOutput":{"hookEventName":"EVENT","updatedInput":{"a":1}}}`, `{"hookSpecificOutput":null,"decision":"block","reason":"r"}`,
		`{"continue":false,"stopReason":"r"}`, `{"continue":"false"}`, `{"continue":true,"decision":"block","reason":"r"}`, `{"suppressOutput":"yes","decision":"block","reason":"r"}`, `{"systemMessage":3,"decision":"block","reason":"r"}`,
		`{"additionalContext":"c"}`, `{"unknown":1}`, `{"unknown":1,"decision":"block","reason":"r"}`, `[{"decision":"block"}]`, `"deny"`, `deny`, `{"decision":"deny"`,
	} {
		scripts = append(scripts, "echo '"+answer+"'")
	}
	for _, answer := range []string{`{"decision":"block","reason":"r"}`, `{"hookSpecificOutput":{"hookEventName":"EVENT","permissionDecision":"deny"}}`} {
		scripts = append(scripts,
			"echo '"+answer+"' >&2", "echo '"+answer+"' >&2; exit 2", "echo log >&2; echo '"+answer+"'", "echo log; echo '"+answer+"'", "printf '%s' '"+answer+"'", "cat <<'E'\n"+answer+"\nE",
			"answer() { echo '"+answer+"'; }; answer", "{ echo '"+answer+"'; } 1>&2", "{ echo '"+answer+"' >&2; } 2>&1", "trap \"echo '"+strings.ReplaceAll(answer, `"`, `\"`)+"'\" EXIT", "(echo '"+answer+"')", "echo '"+answer+"' | cat",
			"bash -c 'echo \"$0\"' '"+answer+"'", "a='"+answer+"'; echo \"$a\"", "echo \"${x:-$(echo '"+answer+"')}\"", ": >(echo '"+answer+"'); sleep 0.1", "cat <<E < /dev/null\n"+answer+"\nE",
			"/bin/grep() { echo '"+answer+"'; }; /bin/grep -q x", "exec 3>&1; echo '"+answer+"' >&3", "sh -c \"echo '"+strings.ReplaceAll(answer, `"`, `\"`)+"' &>/dev/null\"",
			"python3 -c 'import json\ndef f(x): return "+shellQuoted(answer)+"\njson.dumps = f\nprint(json.dumps({\"decision\": \"approve\"}))'")
	}
	return append(scripts, "true", "exit 1", "exit 2", "echo why >&2; exit 2", "exit 3", "echo plain", "echo why >&2; exit 1", "cat > /dev/null; echo no >&2; exit 2", "set -e; false; true", "trap 'exit 2' ERR; false",
		"(exit 2)", "(exit 2); true", "sleep 20 & echo why >&2; exit 2", "printf 'a\\000b'", "kill -9 $$")
}()

// shellQuoted is a JSON text as one of Python's, between the single quotes of a shell.
func shellQuoted(text string) string { return fmt.Sprintf("%q", text) }

// hooksAs is a file of a dialect with one command, in each of the ways that it may
// refuse.
func hooksAs(d gate.Dialect, event gate.EventName, command string) (files []string) {
	text, name := fmt.Sprintf("%q", command), config.EventName(d, event)
	command = `"command":` + strings.ReplaceAll(text, `\x00`, `\u0000`)
	switch d {
	case gate.Antigravity:
		return []string{`{"g":{"` + name + `":[{"matcher":"*","hooks":[{"type":"command",` + command + `}]}]}}`}
	case gate.AXCode:
		for _, way := range []string{"", `,"blockOnFailure":true`, `,"protocol":"claude-code"`} {
			files = append(files, `{"hooks":[{"event":"`+name+`",`+command+way+`}]}`)
		}
		return files
	case gate.ClaudeCode:
		return []string{`{"hooks":{"` + name + `":[{"hooks":[{"type":"command",` + command + `}]}]}}`}
	}
	matcher := ""
	if event.ForTool() {
		matcher = `"matcher":"*",`
	}
	for _, way := range []string{"", `,"failMode":"block"`} {
		files = append(files, `{"name":"a","properties":{"hooks":{"`+name+`":[{"type":"command",`+matcher+command+way+`}]}}}`)
	}
	return files
}

// decided is what a system does with a hook's end: settled, as package gate does.
func decided(h *gate.Hook, v gate.Verdict) gate.Outcome {
	switch {
	case v.Outcome == gate.NoVerdict && h.FailMode == gate.FailBlock:
		return gate.Block
	case v.Outcome == gate.NoVerdict:
		return gate.Allow
	case v.Outcome == gate.Block && h.Dialect == gate.Azure && h.Event == gate.Stop && strings.TrimSpace(v.Reason) == "": // spec/azure.md 34
		return gate.Allow
	case v.Outcome == gate.Block && h.Event != gate.Stop && !h.Event.ForTool() && h.Event != gate.UserPromptSubmit:
		return gate.Allow
	case v.Outcome == gate.Block && h.Dialect == gate.Antigravity && h.Event != gate.PreToolUse:
		return gate.Allow
	}
	return v.Outcome
}

// general is what a report says of every hook of a kind: no word about this one.
var general = regexp.MustCompile(`: (?:input of|tools|environment|trust|limits|order|cap|timeout|names of groups|matcher|reach|project)\b|command (?:exits|is looked for|can exit)`)

// readings says of all hooks what is read, on which exit codes too.
var readings = regexp.MustCompile(`answer on \S+: .* reads .*; .* reads `)

// A hook that convert writes decides the same when it is run under its new system's law
// as it did under its own; or the report says that it does not, of this hook.
func TestConvertedHooksDecideAsBefore(t *testing.T) {
	none := func(string) string { return "" }
	cfg, err := config.LoadServer("", none, func(s *config.Server) { s.Data, s.Sandbox.Mode = t.TempDir(), config.SandboxProcess })
	if err != nil {
		t.Fatal(err)
	}
	runner, err := commandhooks.New(t.Context(), commandOptions(cfg, none))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { runner.Close() })
	run := func(h gate.Hook) gate.Outcome {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		h.Timeout = 30 * time.Second
		return decided(&h, runner.Evaluate(ctx, gate.Input{Hook: &h, Event: &gate.Event{Name: h.Event, Agent: "a", ToolName: "Bash"}, Context: []byte(`{"x":1}`)}))
	}
	comparisons, refused := convertedBothWays(t)
	outcomes := map[string]*gate.Outcome{}
	var waiting []func()
	for _, c := range comparisons {
		for _, h := range []*gate.Hook{c.was, c.is} {
			if outcomes[endKey(h)] == nil {
				o := new(gate.Outcome)
				outcomes[endKey(h)] = o
				waiting = append(waiting, func() { *o = run(*h) })
			}
		}
	}
	inParallel(4, waiting) // what they leave running is waited for, a little
	same := 0
	for _, c := range comparisons {
		switch before, after := *outcomes[endKey(c.was)], *outcomes[endKey(c.is)]; {
		case before == after:
			same++
		case !explained(c.report, c.was.Command+c.was.Script):
			t.Errorf("%s to %s on %s: %q was %s and is %s, and the report says nothing of it:\n%q", c.was.Dialect, c.is.Dialect, c.was.Event, c.was.Command+c.was.Script, before, after, c.is.Command+c.is.Script)
		}
	}
	t.Logf("%d runs; %d of %d conversions decide as before, of the others it is said; %d were not written", len(waiting), same, len(comparisons), refused)
	if same < 1000 && !testing.Short() {
		t.Errorf("only %d conversions decide as before", same)
	}
}

// comparison is a hook as it was and as it became.
type comparison struct {
	was, is *gate.Hook
	report  []gate.Finding
}

// convertedBothWays are the scripts as hooks of every system, converted to every other;
// refused is how many were not written, with an error.
func convertedBothWays(t *testing.T) (all []comparison, refused int) {
	for _, event := range []gate.EventName{gate.PreToolUse, gate.PostToolUse, gate.Stop, gate.UserPromptSubmit} {
		for i, script := range answeringScripts {
			if testing.Short() && i%5 > 0 {
				continue
			}
			script = strings.ReplaceAll(script, "EVENT", string(event))
			for _, from := range gate.Dialects {
				for _, to := range gate.Dialects {
					if from == to {
						continue
					}
					for _, file := range hooksAs(from, event, script) {
						document, report := config.Conversion{From: from, To: to, Tools: convertedTools()}.Convert("x.json", []byte(file))
						if document == nil {
							if refused++; !gate.HasErrors(report) {
								t.Errorf("nothing is written, for no reason: %s", file)
							}
							continue
						}
						all = append(all, comparison{readOne(t, from, []byte(file), event), readOne(t, to, document, event), report})
					}
				}
			}
		}
	}
	return all, refused
}

// endKey is what decides how a hook ends.
func endKey(h *gate.Hook) string {
	return fmt.Sprint(h.Dialect, h.Event, h.FailMode, h.ReadsAnswer, h.BlockOnFailure, h.Script, "\x00", h.Command)
}

func inParallel(workers int, jobs []func()) {
	next := make(chan func())
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for job := range next {
				job()
			}
		})
	}
	for _, job := range jobs {
		next <- job
	}
	close(next)
	all.Wait()
}

// explained reports whether a report says of one hook that it may behave otherwise.
func explained(report []gate.Finding, script string) bool {
	for _, f := range report {
		switch {
		case general.MatchString(": " + f.Message):
		case readings.MatchString(f.Message) && !strings.Contains(script, "exit"):
		default:
			return true
		}
	}
	return false
}

func readOne(t *testing.T, d gate.Dialect, document []byte, event gate.EventName) *gate.Hook {
	t.Helper()
	name := "hooks.json"
	if d == gate.Azure {
		name = "agent.yaml"
	}
	specs, findings := config.ReadHooks(d, name, document)
	if len(specs) != 1 {
		t.Fatalf("%d specs of %s: %v", len(specs), document, findings)
	}
	for i := range specs[0].Hooks {
		if h := &specs[0].Hooks[i]; h.Event == event {
			return h
		}
	}
	t.Fatalf("no hook on %s in %s", event, document)
	return nil
}
