package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/config"
	"stopgate/gate"
	"stopgate/internal/contract"
	"stopgate/wire"
)

// noTranscripts is for events whose conversation does not matter.
type noTranscripts struct{}

func (noTranscripts) Attach(context.Context, *gate.Event) (gate.Transcript, error) { return nil, nil }

// What a hook is told of an event that Claude Code itself sent is what Claude
// Code sent: every captured payload, member by member.
func TestClaudeCode01RealPayloads(t *testing.T) {
	dir := contract.Dir(t, "wire/claude-code")
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(filepath.Join(dir, "events", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var settings strings.Builder
	for _, event := range []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop"} {
		settings.WriteString(`,"` + event + `":[{"hooks":[{"type":"command","command":"x"}]}]`)
	}
	spec, findings := config.ReadAttached(gate.ClaudeCode, gate.DefaultAgent, []byte(`{"hooks":{`+settings.String()[1:]+`}}`))
	if spec == nil {
		t.Fatal(findings)
	}
	host, _ := wire.Find("claude-code")
	asked := 0
	for _, file := range append(files, more...) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var captured struct{ Request json.RawMessage }
			if err := json.Unmarshal(b, &captured); err != nil {
				t.Fatal(err)
			}
			ev, err := host.Decode(captured.Request, wire.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if ev.Name == "" {
				return // no gate is asked
			}
			ev.Dry = true // the loop stands where the payload says
			var told []byte
			hear := gate.EvaluatorFunc(func(_ context.Context, in gate.Input) gate.Verdict {
				told = in.Context
				return gate.Verdict{Outcome: gate.Allow}
			})
			g := &gate.Gate{Policies: &gate.Policies{}, Store: noStore{}, Transcripts: noTranscripts{}, Parallel: 1, Now: time.Now,
				NewID: func() string { return "id" }, Evaluators: map[gate.HookType]gate.Evaluator{gate.CommandHook: hear}}
			if _, err := g.Decide(t.Context(), ev, gate.Options{Specs: []*gate.Spec{spec}}); err != nil {
				t.Fatal(err)
			}
			var want, got any
			if json.Unmarshal(captured.Request, &want) != nil || json.Unmarshal(told, &got) != nil {
				t.Fatalf("told %s", told)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-sent +told)\n%s", diff)
			}
			asked++
		})
	}
	if asked < 7 {
		t.Errorf("only %d payloads were told to a hook", asked)
	}
}

// Hooks of a settings.json gate agents behind other hosts, which call tools,
// arguments and events otherwise and want other answers.
func TestClaudeCodeHooksBehindOtherHosts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stopgate.yaml")
	if err := os.WriteFile(file, []byte("sandbox: {mode: process}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newServiceWith(t, t.TempDir(), file)
	s.answer = func(string) string { return `{"ok":false,"reason":"run the tests"}` }
	settings := `{"model":"opus","hooks":{
		"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","if":"Bash(git push *)","command":"grep -q '\"command\":\"git push' && echo no push >&2 && exit 2"}]},
			{"matcher":"Edit|Write","hooks":[{"type":"command","if":"Write(secrets/**)","command":"echo hands off >&2; exit 2"}]}],
		"UserPromptSubmit":[{"hooks":[{"type":"command","command":"grep -q sk- && echo '{\"decision\":\"block\",\"reason\":\"that is a key\"}'; exit 0"}]}],
		"Stop":[{"hooks":[{"type":"prompt","model":"haiku","prompt":"Were the tests run? $ARGUMENTS"}]}]}}`
	if code, body := s.do(http.MethodPut, "/v1/agents/coder/hooks?dialect=claude-code", "application/json", []byte(settings)); code/100 != 2 {
		t.Fatalf("PUT: %d %s", code, body)
	}
	for _, c := range []struct{ name, host, payload, want string }{
		{"claude-code", "claude-code", `{"session_id":"1","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"git push"}}`,
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no push"}}`},
		{"another command", "claude-code", `{"session_id":"1","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"git status"}}`, ``},
		{"codex, which says cmd", "codex", `{"session_id":"2","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"exec_command","tool_input":{"cmd":"git push"}}`,
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no push"}}`},
		{"gemini-cli", "gemini-cli", `{"session_id":"3","cwd":"/w","hook_event_name":"BeforeTool","tool_name":"run_shell_command","tool_input":{"command":"git push"}}`,
			`{"decision":"deny","reason":"no push"}`},
		{"qwen-code, a file", "qwen-code", `{"session_id":"4","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"write_file","tool_input":{"absolute_path":"/w/secrets/a"}}`,
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"hands off"}}`},
		{"another file", "qwen-code", `{"session_id":"4","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"write_file","tool_input":{"absolute_path":"/w/src/a"}}`, `{}`},
		{"copilot", "copilot", `{"session_id":"5","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"bash","tool_input":{"command":"git push"}}`,
			`{"permissionDecision":"deny","permissionDecisionReason":"no push"}`},
		{"a prompt", "gemini-cli", `{"session_id":"3","hook_event_name":"BeforeAgent","prompt":"use sk-1"}`, `{"decision":"block","reason":"that is a key"}`},
		{"another prompt", "codex", `{"session_id":"2","hook_event_name":"UserPromptSubmit","prompt":"go on"}`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, body := s.do(http.MethodPost, "/v1/hooks/"+c.host+"?agent=coder", "application/json", []byte(c.payload))
			if code != http.StatusOK || string(body) != c.want {
				t.Errorf("%d %s, want %s", code, body, c.want)
			}
		})
	}
	t.Run("7: eight blocks of a host that has no cap of its own", func(t *testing.T) {
		for i := range 9 {
			want := `{"decision":"block","reason":"run the tests"}`
			if i == 8 {
				want = ""
			}
			_, body := s.do(http.MethodPost, "/v1/hooks/codex?agent=coder", "application/json",
				[]byte(`{"session_id":"6","cwd":"/w","hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"All done."}`))
			if string(body) != want {
				t.Fatalf("Stop %d: %s", i+1, body)
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if n := len(s.requests); n != 8 || !strings.Contains(s.requests[0], "All done.") || !strings.Contains(s.requests[7], `stop_hook_active`) {
			t.Errorf("the judge was asked %d times", n)
		}
	})
}
