package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stopgate/gate"
)

const examples = "../examples"

func TestExamplesReadWithoutFindings(t *testing.T) {
	specs, findings, _ := OpenDir(examples).Load()
	for file, list := range findings {
		t.Errorf("%s:\n%s", file, textOf(list))
	}
	want := []string{"approval-gate", "audit", "completeness", "careful_operator_by_rules", "careful_operator", "evidence_checklist", "marker", "when_it_matters"}
	var got []string
	for _, s := range specs {
		got = append(got, s.Name)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("examples are %q, want %q", got, want)
	}
}

// example is one hook of an example file.
func example(t *testing.T, file string, event gate.EventName) gate.Hook {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(examples, file))
	if err != nil {
		t.Fatal(err)
	}
	specs, findings := ReadSpecFile(file, data)
	for _, s := range specs {
		for _, h := range s.Hooks {
			if h.Event == event {
				return h
			}
		}
	}
	t.Fatalf("%s has no hook on %s; findings:\n%s", file, event, textOf(findings))
	return gate.Hook{}
}

// run gives a script its context and answers exit code and both streams.
func run(t *testing.T, script, context string) (code int, stdout, stderr string) {
	t.Helper()
	interpreter := "bash"
	if strings.HasPrefix(script, "#!/usr/bin/env python3\n") {
		interpreter = "python3"
	}
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), interpreter, file)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(context), &out, &errs
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("%s is needed to try the examples: %v", interpreter, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func stopContext(final string, rejections int) string {
	b, _ := json.Marshal(map[string]any{"hook_event_name": "Stop", "final_output": final, "stop_rejection_count": rejections})
	return string(b)
}

func TestExampleMarker(t *testing.T) {
	h := example(t, "marker.yaml", gate.Stop)
	for _, c := range []struct {
		name       string
		final      string
		rejections int
		code       int
	}{
		{"ends with the marker", "All done.\nTask complete.\n", 0, 0},
		{"has no marker", "All done.", 0, 2},
		{"has it elsewhere", "Task complete. Nearly.", 1, 2},
		{"fault loop-01: it does not loop without end", "All done.", 5, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := run(t, h.Script, stopContext(c.final, c.rejections))
			if code != c.code || stdout != "" || code == 2 && !strings.Contains(stderr, "Task complete.") {
				t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
			}
		})
	}
}

func TestExampleDangerousCommand(t *testing.T) {
	for _, event := range []gate.EventName{gate.PreToolUse, gate.PostToolUse} {
		h := example(t, "dangerous-command.yaml", event)
		if !h.Matcher.Match("Bash") || h.Matcher.Match("BashOutput") {
			t.Errorf("matcher of %s is %s", event, h.Matcher)
		}
		for input, blocked := range map[string]bool{
			`{"command":"rm -rf /tmp/x"}`:       true,
			`{"command":"rm -v -fr x"}`:         true,
			`{"command":"cd / && sudo reboot"}`: true,
			`{"command":"chmod -R 777 ."}`:      true,
			`{"command":["sudo","ls"]}`:         true,
			`{"value":"sudo ls"}`:               true, // a tool whose input is a string
			`{"command":"rm x"}`:                false,
			`{"command":"echo pseudo"}`:         false,
			`{"command":"chmod 644 x"}`:         false,
			`{"other":1}`:                       false,
		} {
			code, stdout, stderr := run(t, h.Script, `{"tool_name":"Bash","tool_input":`+input+`}`)
			if code != 0 || stderr != "" || answers(t, event, stdout) != map[bool]gate.Outcome{true: gate.Block, false: gate.Allow}[blocked] {
				t.Errorf("%s on %s: exit %d, stdout %q, stderr %q", event, input, code, stdout, stderr)
			}
		}
	}
}

// answers is the outcome of a script's output by the gate's own reading.
func answers(t *testing.T, event gate.EventName, stdout string) gate.Outcome {
	t.Helper()
	if stdout == "" {
		return gate.Allow
	}
	v, err := gate.ReadAnswer(event, []byte(stdout))
	if err != nil {
		t.Fatal(err)
	}
	return v.Outcome
}

func TestExampleAudit(t *testing.T) {
	h := example(t, "audit.yaml", gate.PostToolUse)
	for turn, want := range map[string]string{
		"4": `[AUDIT] Tool 'Read'"File' was executed in turn 4.`,
		"0": `[AUDIT] Tool 'Read'"File' was executed.`, // no host counts turns
	} {
		_, stdout, _ := run(t, h.Script, `{"tool_name":"Read'\"File","current_turn":`+turn+`,"tool_input":{}}`)
		v, err := gate.ReadAnswer(gate.PostToolUse, []byte(stdout))
		if err != nil || v.AdditionalContext != want {
			t.Errorf("answer is %+v, error %v", v, err)
		}
	}
}

func TestExampleApprovalGate(t *testing.T) {
	h := example(t, "approval-gate.yaml", gate.PreToolUse)
	for tool, matched := range map[string]bool{"DeployService": true, "kubectl_delete": true, "mcp__db__drop_table": true, "ReadFile": false} {
		if h.Matcher.Match(tool) != matched {
			t.Errorf("%s is matched: %v", tool, !matched)
		}
	}
	_, stdout, _ := run(t, h.Script, `{"tool_name":"DeployService","tool_input":{"to":"prod"}}`)
	if answers(t, gate.PreToolUse, stdout) != gate.Ask || !strings.Contains(stdout, "prod") {
		t.Errorf("answer is %s", stdout)
	}
}
