package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"stopgate/gate"
)

// A client that a gate's own hook starts asks nobody, by a server or here, and says
// so where the hook's owner finds it. It is no objection in the host's own form.
func TestNoGateIsAskedFromWithinAHook(t *testing.T) {
	onBothHooks(t, func(t *testing.T, hook hookProgram) {
		var asked atomic.Int64
		url := serveOnce(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
		spec := filepath.Join(t.TempDir(), "a.yaml")
		write(t, spec, `{api_version: azuresre.ai/v2, kind: ExtendedAgent, metadata: {name: a}, spec: {hooks: {Stop: [{type: command, command: "echo no >&2; exit 2"}]}}}`)
		for _, tt := range []struct {
			name, payload, want string
			flags               []string
		}{
			{"says nothing", stopPayload, "", []string{"--protocol", "codex"}},
			{"an empty object", `{"hook_event_name":"AfterAgent"}`, "{}", []string{"--protocol", "gemini-cli"}},
			{"a word for it", `{"tool_call":{"name":"read_file","args":{}}}`, `{"decision":"allow"}`, []string{"--protocol", "antigravity", "--event", "pre_tool_execution"}},
			{"an unreadable payload", `{`, "", []string{"--protocol", "claude-code"}},
			{"no payload", ``, "{}", []string{"--protocol", "qwen-code"}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				out, said, code := fromWithin(t, hook, tt.payload, append(tt.flags, "--server", url, "--on-unreachable", "block")...)
				if code != exitDone || strings.TrimSpace(out) != tt.want || strings.Count(said, "\n") != 1 || !strings.Contains(said, gate.FromHookVariable) {
					t.Errorf("exit %d, %q, want %q; standard error %q", code, out, tt.want, said)
				}
			})
		}
		if asked.Load() != 0 {
			t.Errorf("the server was asked %d times", asked.Load())
		}
		t.Run("deciding here", func(t *testing.T) {
			if hook.words[0] != "stopgate" {
				t.Skip("it hands over to the other")
			}
			out, said, code := fromWithin(t, hook, stopPayload, "--protocol", "codex", "-f", spec, "--data", t.TempDir())
			if code != exitDone || out != "" || !strings.Contains(said, gate.FromHookVariable) {
				t.Errorf("exit %d, %q, standard error %q", code, out, said)
			}
		})
		t.Run("a bad flag is one there too", func(t *testing.T) {
			if _, _, code := fromWithin(t, hook, stopPayload, "--protocol", "nobody"); code != 1 {
				t.Errorf("exit %d, want 1", code)
			}
		})
	})
}

// fromWithin runs the program as a hook of a gate's would.
func fromWithin(t *testing.T, hook hookProgram, payload string, flags ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := hook.command(t, flags...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(payload), &out, &errs
	cmd.Env = append(os.Environ(), gate.FromHookVariable+"=1", "XDG_STATE_HOME="+t.TempDir())
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// A hook that asks its own gate from a script, where nothing in its file shows it: the
// gate is asked once.
func TestAHookThatAsksItsOwnGate(t *testing.T) {
	onBothHooks(t, func(t *testing.T, hook hookProgram) {
		program, err := exec.LookPath(hook.words[0])
		if err != nil {
			t.Fatal(err)
		}
		project := t.TempDir()
		s := withServerFile(t, t.TempDir(), "sandbox: {mode: process}")
		write(t, filepath.Join(project, "relay.sh"), fmt.Sprintf("exec %s --protocol claude-code --agent self --server %s --data %s\n",
			strings.Join(append([]string{program}, hook.words[1:]...), " "), s.url, t.TempDir()))
		s.want(202, "PUT", "/v1/agents/self/hooks?dialect=claude-code",
			`{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"bash `+project+`/relay.sh"}]}]}}`)
		answer := s.want(200, "POST", "/v1/hooks/claude-code?agent=self", `{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`)
		if answer != "" {
			t.Errorf("answer %s, want no objection", answer)
		}
		list := s.want(200, "GET", "/v1/evaluations", "")
		if strings.Count(list, `"evaluation_id"`) != 1 {
			t.Errorf("more than the one event is recorded: %s", list)
		}
		_, id, _ := strings.Cut(list, `"evaluation_id":"`)
		id, _, _ = strings.Cut(id, `"`)
		if record := s.want(200, "GET", "/v1/evaluations/"+id, ""); !strings.Contains(record, "no gate is asked from within") {
			t.Errorf("the record does not say why: %s", record)
		}
	})
}
