package gate

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func claudeMatcher(t *testing.T, pattern string) Matcher {
	t.Helper()
	m, err := CompileClaudeCodeMatcher(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestClaudeCode02WhatAHookIsAbout(t *testing.T) {
	rule, err := CompileRule("Bash(git push *)")
	if err != nil {
		t.Fatal(err)
	}
	push := json.RawMessage(`{"command":"git push"}`)
	for _, c := range []struct {
		name string
		hook Hook
		ev   Event
		want bool
	}{
		{"by event", Hook{Event: Stop}, Event{Name: Stop}, true},
		{"a sub-agent's stop is another event", Hook{Event: Stop}, Event{Name: SubagentStop}, false},
		{"by tool", Hook{Event: PreToolUse, Matcher: claudeMatcher(t, "Bash")}, Event{Name: PreToolUse, Protocol: "claude-code", ToolName: "Bash"}, true},
		{"by another tool", Hook{Event: PreToolUse, Matcher: claudeMatcher(t, "Edit")}, Event{Name: PreToolUse, Protocol: "claude-code", ToolName: "MultiEdit", ToolAliases: []string{"Edit"}}, false},
		{"fault gx-013: another host's tool by the name it has here", Hook{Event: PreToolUse, Matcher: claudeMatcher(t, "Edit")},
			Event{Name: PreToolUse, Protocol: "codex", ToolName: "apply_patch", ToolAliases: []string{"Write", "Edit"}}, true},
		{"and by its own", Hook{Event: PreToolUse, Matcher: claudeMatcher(t, "apply_.*")},
			Event{Name: PreToolUse, Protocol: "codex", ToolName: "apply_patch", ToolAliases: []string{"Write", "Edit"}}, true},
		{"Agent is the newer name of Task", Hook{Event: PreToolUse, Matcher: claudeMatcher(t, "Task")},
			Event{Name: PreToolUse, Protocol: "claude-code", ToolName: "Agent", ToolAliases: []string{"Task"}}, true},
		{"fault context-04: a tool of a server", Hook{Event: PostToolUse, Matcher: claudeMatcher(t, "mcp__srv__.*")},
			Event{Name: PostToolUse, Protocol: "claude-code", ToolName: "mcp__srv__do", ToolSucceeded: true}, true},
		{"fault match-04: a plugin's tool has a longer name", Hook{Event: PreToolUse, Matcher: claudeMatcher(t, "mcp__linear__create_issue")},
			Event{Name: PreToolUse, Protocol: "claude-code", ToolName: "mcp__plugin_linear_linear__create_issue"}, false},
		{"a failed call has an event of its own", Hook{Event: PostToolUse, Matcher: claudeMatcher(t, "")}, Event{Name: PostToolUseFailure, ToolName: "Bash"}, false},
		{"also where the host has none", Hook{Event: PostToolUseFailure, Matcher: claudeMatcher(t, "")}, Event{Name: PostToolUse, ToolName: "Bash"}, true},
		{"where it succeeded it is the other", Hook{Event: PostToolUseFailure, Matcher: claudeMatcher(t, "")}, Event{Name: PostToolUse, ToolName: "Bash", ToolSucceeded: true}, false},
		{"a session by its source", Hook{Event: Start, Matcher: claudeMatcher(t, "resume")}, Event{Name: Start, Payload: []byte(`{"source":"resume"}`)}, true},
		{"a session of another source", Hook{Event: Start, Matcher: claudeMatcher(t, "resume")}, Event{Name: Start, Payload: []byte(`{"source":"compact"}`)}, false},
		{"a session that says nothing starts up", Hook{Event: Start, Matcher: claudeMatcher(t, "startup|clear")}, Event{Name: Start}, true},
		{"a sub-agent by its type", Hook{Event: SubagentStop, Matcher: claudeMatcher(t, "Explore")}, Event{Name: SubagentStop, AgentType: "Explore"}, true},
		{"a sub-agent of another type", Hook{Event: SubagentStop, Matcher: claudeMatcher(t, "Explore")}, Event{Name: SubagentStop, AgentType: "Plan"}, false},
		{"by its rule", Hook{Event: PreToolUse, Matcher: claudeMatcher(t, ""), If: rule}, Event{Name: PreToolUse, ToolName: "Bash", ToolInput: push}, true},
		{"not by its rule", Hook{Event: PreToolUse, Matcher: claudeMatcher(t, ""), If: rule}, Event{Name: PreToolUse, ToolName: "Bash", ToolInput: json.RawMessage(`{"command":"ls"}`)}, false},
		{"a rule on another host's argument", Hook{Event: PreToolUse, Matcher: claudeMatcher(t, ""), If: rule},
			Event{Name: PreToolUse, Protocol: "codex", ToolName: "exec_command", ToolAliases: []string{"Bash"}, ToolInput: json.RawMessage(`{"cmd":"ls"}`)}, false},
		{"a decoy in the place of another host's argument", Hook{Event: PreToolUse, Matcher: claudeMatcher(t, ""), If: rule},
			Event{Name: PreToolUse, Protocol: "codex", ToolName: "exec_command", ToolAliases: []string{"Bash"}, ToolInput: json.RawMessage(`{"command":"ls","cmd":"git push -f"}`)}, true},
		{"a decoy where the host's name is not known", Hook{Event: PreToolUse, Matcher: claudeMatcher(t, ""), If: rule},
			Event{Name: PreToolUse, Protocol: "qwen-code", ToolName: "run_shell_command", ToolAliases: []string{"Bash"}, ToolInput: json.RawMessage(`{"command":"ls","code":"git push -f"}`)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.hook.Dialect = ClaudeCode
			if got := c.hook.Concerns(&c.ev); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// An event that came from Claude Code is told as it came, but for what the gate
// knows better.
func TestClaudeCode01PayloadOfItsOwnEvents(t *testing.T) {
	sent := `{"session_id":"s","transcript_path":"/far/t.jsonl","cwd":"/w","permission_mode":"plan","effort":{"level":"low"},` +
		`"hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"a<b","background_tasks":[],"new_member":[1,2.50]}`
	ev := Event{Name: Stop, Protocol: "claude-code", Payload: []byte(sent)}
	h := &Hook{Dialect: ClaudeCode, Event: Stop}
	got := string(h.told(&ev, loopState{StopHookActive: true}, view{}))
	want := `{"background_tasks":[],"cwd":"/w","effort":{"level":"low"},"hook_event_name":"Stop","last_assistant_message":"a<b",` +
		`"new_member":[1,2.50],"permission_mode":"plan","session_id":"s","stop_hook_active":true,"transcript_path":"/raw.jsonl"}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	ev.ClaimedActive = true // by hooks that are not ours
	if got := string(h.told(&ev, loopState{}, nil)); !strings.Contains(got, `"stop_hook_active":true`) || !strings.Contains(got, `"/far/t.jsonl"`) {
		t.Errorf("%s", got)
	}
}

// What a caller knows and the payload does not say is told too.
func TestClaudeCode01PayloadThatLeavesThingsOut(t *testing.T) {
	ev := Event{Name: PreToolUse, Protocol: "claude-code", ToolName: "Bash", Cwd: "/here", Payload: []byte(`{"tool_input":{"command":"ls"}}`)}
	h := &Hook{Dialect: ClaudeCode, Event: PreToolUse}
	want := `{"cwd":"/here","hook_event_name":"PreToolUse","tool_input":{"command":"ls"},"tool_name":"Bash"}`
	if got := string(h.told(&ev, loopState{}, nil)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// view is a transcript of which only the paths matter.
type view struct{ Transcript }

func (view) Path() string    { return "/view.txt" }
func (view) RawPath() string { return "/raw.jsonl" }

// Events of other hosts are told as Claude Code would tell them.
func TestClaudeCode01PayloadOfOtherHosts(t *testing.T) {
	codex := func(name EventName) Event {
		return Event{Name: name, Protocol: "codex", Session: "s", Cwd: "/w", ToolName: "exec_command", ToolAliases: []string{"Bash"},
			ToolInput: json.RawMessage(`{"cmd":"ls"}`), ToolResult: "out", ToolSucceeded: true, Payload: []byte(`{"tool_use_id":"call_1","source":"resume"}`)}
	}
	failed := codex(PostToolUse)
	failed.ToolSucceeded = false
	const common = `"cwd":"/w","permission_mode":"default","session_id":"s"`
	for _, c := range []struct {
		name string
		hook Hook
		ev   Event
		want string
	}{
		{"before a tool", Hook{Event: PreToolUse}, codex(PreToolUse),
			`{"hook_event_name":"PreToolUse","tool_input":{"cmd":"ls","command":"ls"},"tool_name":"Bash","tool_use_id":"call_1","transcript_path":"/raw.jsonl"}`},
		{"after a tool", Hook{Event: PostToolUse}, codex(PostToolUse),
			`{"hook_event_name":"PostToolUse","tool_input":{"cmd":"ls","command":"ls"},"tool_name":"Bash","tool_use_id":"call_1","transcript_path":"/raw.jsonl",` +
				`"tool_response":{"stdout":"out","stderr":"","interrupted":false,"isImage":false}}`},
		{"after a failed one", Hook{Event: PostToolUseFailure}, failed,
			`{"hook_event_name":"PostToolUseFailure","tool_input":{"cmd":"ls","command":"ls"},"tool_name":"Bash","tool_use_id":"call_1","transcript_path":"/raw.jsonl",` +
				`"error":"out","is_interrupt":false}`},
		{"a patch by the name that the hook matches", Hook{Event: PreToolUse, Matcher: claudeMatcher(t, "Edit")},
			Event{Name: PreToolUse, Protocol: "codex", Session: "s", Cwd: "/w", ToolName: "apply_patch", ToolAliases: []string{"Write", "Edit"}, ToolInput: json.RawMessage(`"x"`)},
			`{"hook_event_name":"PreToolUse","tool_input":{"value":"x"},"tool_name":"Edit","tool_use_id":"","transcript_path":"/raw.jsonl"}`},
		{"a path", Hook{Event: PreToolUse}, Event{Name: PreToolUse, Protocol: "ax-code", Session: "s", Cwd: "/w", ToolName: "read", ToolAliases: []string{"Read"}, ToolInput: json.RawMessage(`{"filePath":"/x"}`)},
			`{"hook_event_name":"PreToolUse","tool_input":{"filePath":"/x","file_path":"/x"},"tool_name":"Read","tool_use_id":"","transcript_path":"/raw.jsonl"}`},
		{"a command that has its name, and not the tool's", Hook{Event: PreToolUse}, Event{Name: PreToolUse, Protocol: "codex", Session: "s", Cwd: "/w", ToolName: "exec_command", ToolAliases: []string{"Bash"}, ToolInput: json.RawMessage(`{"command":"ls","cmd":"rm"}`)},
			`{"hook_event_name":"PreToolUse","tool_input":{"command":"rm","cmd":"rm"},"tool_name":"Bash","tool_use_id":"","transcript_path":"/raw.jsonl"}`},
		{"a command that has its name", Hook{Event: PreToolUse}, Event{Name: PreToolUse, Protocol: "codex", Session: "s", Cwd: "/w", ToolName: "shell", ToolAliases: []string{"Bash"}, ToolInput: json.RawMessage(`{"command":"ls","cmd":"rm"}`)},
			`{"hook_event_name":"PreToolUse","tool_input":{"command":"ls","cmd":"rm"},"tool_name":"Bash","tool_use_id":"","transcript_path":"/raw.jsonl"}`},
		{"a result of another tool", Hook{Event: PostToolUse}, Event{Name: PostToolUse, ToolSucceeded: true, Session: "s", Cwd: "/w", ToolName: "look", ToolResult: "t", Payload: []byte(`{"tool_response":{"a":1}}`)},
			`{"hook_event_name":"PostToolUse","tool_input":{},"tool_name":"look","tool_use_id":"","tool_response":{"a":1},"transcript_path":"/raw.jsonl"}`},
		{"a result as text", Hook{Event: PostToolUse}, Event{Name: PostToolUse, ToolSucceeded: true, Session: "s", Cwd: "/w", ToolName: "look", ToolResult: "t"},
			`{"hook_event_name":"PostToolUse","tool_input":{},"tool_name":"look","tool_use_id":"","tool_response":"t","transcript_path":"/raw.jsonl"}`},
		{"a prompt", Hook{Event: UserPromptSubmit}, Event{Name: UserPromptSubmit, Session: "s", Cwd: "/w", Prompt: "do it"},
			`{"hook_event_name":"UserPromptSubmit","prompt":"do it","transcript_path":"/raw.jsonl"}`},
		{"a session", Hook{Event: Start}, codex(Start), `{"hook_event_name":"SessionStart","source":"resume","transcript_path":"/raw.jsonl"}`},
		{"a stop", Hook{Event: Stop}, Event{Name: Stop, Session: "s", Cwd: "/w", FinalOutput: "done", PromptID: "p", Background: []json.RawMessage{json.RawMessage(`{"id":"b"}`)}},
			`{"hook_event_name":"Stop","prompt_id":"p","stop_hook_active":false,"last_assistant_message":"done","background_tasks":[{"id":"b"}],"session_crons":[],"transcript_path":"/raw.jsonl"}`},
		{"a sub-agent's stop", Hook{Event: SubagentStop}, Event{Name: SubagentStop, Session: "s", Cwd: "/w", FinalOutput: "done", SubAgent: "a1", AgentType: "Plan"},
			`{"hook_event_name":"SubagentStop","agent_id":"a1","agent_type":"Plan","stop_hook_active":false,"last_assistant_message":"done","background_tasks":[],"session_crons":[],` +
				`"transcript_path":"","agent_transcript_path":"/raw.jsonl"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.hook.Dialect = ClaudeCode
			var got, want map[string]any
			if err := json.Unmarshal(c.hook.told(&c.ev, loopState{}, view{}), &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(strings.TrimSuffix(c.want, "}")+","+common+"}"), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestClaudeCode05HooksTogether(t *testing.T) {
	deny, ask := Verdict{Outcome: Block, Reason: "no"}, Verdict{Outcome: Ask, Reason: "sure?"}
	deferred := Verdict{Outcome: Ask, Reason: "later", Notes: []Note{Deferred}}
	halt := Verdict{Outcome: Block, Reason: "enough", Notes: []Note{HaltRequested}}
	let := Verdict{Outcome: Allow, Reason: "enough", Notes: []Note{HaltRequested}}
	context := func(text string) Verdict { return Verdict{Outcome: Allow, AdditionalContext: text} }
	unheard := Verdict{Outcome: NoVerdict, Failure: &Failure{Code: NonzeroExit, Message: "x"}, FailMode: FailAllow}
	for _, c := range []struct {
		name     string
		event    EventName
		verdicts []Verdict
		outcome  Outcome
		reason   string
		context  string
	}{
		{"deny beats defer, ask and allow", PreToolUse, []Verdict{ask, {Outcome: Allow}, deferred, deny}, Block, "no", ""},
		{"defer beats ask", PreToolUse, []Verdict{ask, deferred, {Outcome: Allow}}, Ask, "later", ""},
		{"ask beats allow", PreToolUse, []Verdict{{Outcome: Allow}, ask}, Ask, "sure?", ""},
		{"every reason of a block", Stop, []Verdict{deny, {Outcome: Block, Reason: "nor this"}}, Block, "no\n\nnor this", ""},
		{"every context", PostToolUse, []Verdict{context("one"), context(""), context("two")}, Allow, "", "one\n\ntwo"},
		{"contexts beside a deny", PreToolUse, []Verdict{context("one"), {Outcome: Block, Reason: "no", AdditionalContext: "two"}}, Block, "no", "one\n\ntwo"},
		{"continue:false blocks a tool with its reason", PreToolUse, []Verdict{deny, halt}, Block, "enough", ""},
		{"continue:false lets a Stop go, whoever blocks it", Stop, []Verdict{deny, let}, Allow, "", ""},
		{"a Stop is blocked without a reason too", Stop, []Verdict{{Outcome: Block}}, Block, defaultReason, ""},
		{"a context alone is what a Stop goes on with", Stop, []Verdict{{Outcome: Block, AdditionalContext: "look again"}}, Block, "look again", ""},
		{"a context beside a reason", Stop, []Verdict{{Outcome: Block, Reason: "no", AdditionalContext: "look again"}}, Block, "no", "look again"},
		{"what failed says nothing", Stop, []Verdict{unheard}, Allow, "", ""},
		{"a context of what gives no verdict", PreToolUse, []Verdict{{Outcome: NoVerdict, Failure: unheard.Failure, FailMode: FailAllow, AdditionalContext: "c"}}, Allow, "", "c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ev := &Event{Name: c.event}
			var settled []Verdict
			for _, v := range c.verdicts {
				v.hook = &Hook{Dialect: ClaudeCode}
				settled = append(settled, settle(ev, v))
			}
			d := combine(ev, settled)
			if d.Outcome != c.outcome || d.Reason != c.reason || d.AdditionalContext != c.context {
				t.Errorf("%s %q, context %q", d.Outcome, d.Reason, d.AdditionalContext)
			}
			for i, v := range d.Hooks {
				if said := c.context != "" && c.verdicts[i].AdditionalContext != ""; v.Injected != said {
					t.Errorf("hook %d: injected is %v", i, v.Injected)
				}
			}
		})
	}
}

// Other loops end after eight rejections too.
func TestClaudeCode07OtherLoops(t *testing.T) {
	no := says(Verdict{Outcome: Block, Reason: "tests fail"})
	t.Run("fault loop-01: a sub-agent's own", func(t *testing.T) {
		g := newGate(newMemory(), answers{"c": no}, attached(ClaudeCode, Hook{Name: "c", Event: SubagentStop, Matcher: claudeMatcher(t, "")}))
		for i := range 9 {
			ev := stop("s")
			ev.Name, ev.SubAgent, ev.AgentType, ev.Protocol = SubagentStop, "a1", "Plan", "claude-code"
			if d := decide(t, g, ev); (d.Outcome == Allow) != (i == 8) {
				t.Fatalf("Stop %d: %s", i+1, d.Outcome)
			}
		}
	})
	t.Run("with a command hook of azure, which has no cap", func(t *testing.T) {
		g := newGate(newMemory(), answers{"c": no, "k": no}, agent(Hook{Name: "k"}), attached(ClaudeCode, Hook{Name: "c", Event: Stop}))
		for i := range 10 {
			d := decide(t, g, stop("s"))
			if d.Outcome != Block || (d.Hooks[1].Outcome == Skipped) != (i >= 8) {
				t.Fatalf("Stop %d: %s, %s", i+1, d.Outcome, d.Hooks[1].Outcome)
			}
		}
	})
}

// Of hooks that do the same one is asked, under whatever matchers they stand.
func TestClaudeCode07TheSameHookOnce(t *testing.T) {
	every, some := claudeMatcher(t, "*"), claudeMatcher(t, "Bash")
	g := newGate(newMemory(), answers{}, attached(ClaudeCode,
		Hook{Name: "a", Event: PreToolUse, Matcher: some, Command: "x"}, Hook{Name: "again", Event: PreToolUse, Matcher: every, Command: "x", Timeout: time.Second},
		Hook{Name: "unread", Event: PreToolUse, Matcher: every, Command: "x", Args: []string{}}, Hook{Name: "args", Event: PreToolUse, Matcher: every, Command: "x", Args: []string{"y"}},
		Hook{Name: "other", Event: PreToolUse, Matcher: claudeMatcher(t, "Edit"), Command: "z"}, Hook{Name: "z", Event: PreToolUse, Matcher: every, Command: "z"},
		Hook{Name: "p", Event: PreToolUse, Matcher: every, Type: PromptHook, Prompt: "x"}),
		agent(Hook{Name: "az1", Event: PreToolUse, Command: "x"}, Hook{Name: "az2", Event: PreToolUse, Command: "x"}))
	var names []string
	for _, v := range decide(t, g, tool(PreToolUse)).Hooks {
		names = append(names, v.Name)
	}
	if diff := cmp.Diff([]string{"az1", "az2", "a", "unread", "args", "z", "p"}, names); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// continue:false of one dialect is no word over the hooks of another.
func TestClaudeCode05ContinueFalseAndOtherDialects(t *testing.T) {
	g := newGate(newMemory(), answers{"k": says(Verdict{Outcome: Block, Reason: "tests"}), "c": says(Verdict{Outcome: Allow, Notes: []Note{HaltRequested}})},
		agent(Hook{Name: "k"}), attached(ClaudeCode, Hook{Name: "c", Event: Stop}))
	if d := decide(t, g, stop("s")); d.Outcome != Block || d.Reason != "tests" {
		t.Errorf("%s %q", d.Outcome, d.Reason)
	}
}
