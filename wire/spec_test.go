package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// decode reads a payload that must be readable.
func decode(t *testing.T, protocol, payload string, opt Options) gate.Event {
	t.Helper()
	p, ok := Find(protocol)
	if !ok {
		t.Fatalf("no protocol %q", protocol)
	}
	ev, err := p.Decode([]byte(payload), opt)
	if err != nil {
		t.Fatalf("%s: %v", payload, err)
	}
	return ev
}

// encode answers an event of that name.
func encode(t *testing.T, protocol string, name gate.EventName, d gate.Decision) string {
	t.Helper()
	p, ok := Find(protocol)
	if !ok {
		t.Fatalf("no protocol %q", protocol)
	}
	return string(p.Encode(gate.Event{Protocol: protocol, Name: name}, d).Body)
}

var hosts = []string{"claude-code", "codex", "gemini-cli", "qwen-code", "copilot", "antigravity", "ax-code"}

func TestNamesAreTheProtocols(t *testing.T) {
	if diff := cmp.Diff(append(slices.Clone(hosts), "native"), Names()); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"", "cursor", "Claude-Code"} {
		if _, ok := Find(name); ok {
			t.Errorf("found %q", name)
		}
	}
}

// The table of spec/claude-code.md 7 is in the golden files and the contracts;
// here is what it says of no objection.
func TestClaudeCode07NoObjection(t *testing.T) {
	for host, want := range map[string]string{"claude-code": "", "codex": "", "gemini-cli": "{}", "qwen-code": "{}", "copilot": "{}", "ax-code": ""} {
		for _, name := range append(slices.Clone(gate.EventNames), "") {
			if got := encode(t, host, name, gate.Decision{Outcome: gate.Allow}); got != want {
				t.Errorf("%s %s: %q, want %q", host, name, got, want)
			}
		}
	}
}

func TestClaudeCode08Texts(t *testing.T) {
	long := strings.Repeat("ä", TextBytes) // two bytes each
	for _, host := range hosts {
		for _, name := range gate.EventNames {
			for _, d := range []gate.Decision{
				{Outcome: gate.Block}, {Outcome: gate.Block, Reason: " \n"}, {Outcome: gate.Ask},
				{Outcome: gate.Block, Reason: long, AdditionalContext: long},
				{Outcome: gate.Block, Reason: "\xff" + long}, {Outcome: gate.Block, Reason: "x" + long}, {Outcome: gate.Allow, AdditionalContext: long},
				{Outcome: gate.Allow, AdditionalContext: " \t"},
			} {
				for key, s := range texts(t, encode(t, host, name, d)) {
					if strings.TrimSpace(s) == "" || len(s) > TextBytes || !utf8.ValidString(s) {
						t.Errorf("%s %s %s: %s has %d bytes", host, name, d.Outcome, key, len(s))
					}
				}
			}
		}
	}
	if got := texts(t, encode(t, "codex", gate.Stop, gate.Decision{Outcome: gate.Block, Reason: long}))["reason"]; !strings.HasSuffix(got, "ä\n[cut]") {
		t.Errorf("a cut reason ends %q", got[len(got)-12:])
	}
	if got := texts(t, encode(t, "codex", gate.Stop, gate.Decision{Outcome: gate.Block, Reason: "x" + long}))["reason"]; strings.ContainsRune(got, utf8.RuneError) {
		t.Error("a rune is cut in two")
	}
	whole := strings.Repeat("x", TextBytes)
	if got := texts(t, encode(t, "codex", gate.Stop, gate.Decision{Outcome: gate.Block, Reason: whole}))["reason"]; got != whole {
		t.Errorf("a reason of exactly the limit is not whole: %d bytes", len(got))
	}
}

// texts are an answer's members by path; every one must be a string.
func texts(t *testing.T, body string) map[string]string {
	t.Helper()
	flat := map[string]string{}
	if body == "" {
		return flat
	}
	var o map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if inner, ok := o["hookSpecificOutput"]; ok {
		delete(o, "hookSpecificOutput")
		for k, v := range texts(t, string(inner)) {
			flat["hookSpecificOutput."+k] = v
		}
	}
	for k, v := range o {
		var s string
		if err := json.Unmarshal(v, &s); err != nil {
			t.Fatalf("%s: %s: %v", body, k, err)
		}
		flat[k] = s
	}
	return flat
}

// Never continue:false, never a permission of the gate's own, never a word that
// voids the answer.
func TestClaudeCode08NeverSaid(t *testing.T) {
	for _, host := range hosts {
		for _, name := range append(slices.Clone(gate.EventNames), "") {
			for _, w := range wishes {
				got := encode(t, host, name, w.decision)
				for _, never := range []string{"continue", "stopReason", "suppressOutput", "systemMessage", "approve", `Decision":"allow`, "null"} {
					if strings.Contains(got, never) {
						t.Errorf("%s %s, %s: %s", host, name, w.name, got)
					}
				}
				if strings.Contains(got, `"decision":"allow"`) && host != "antigravity" {
					t.Errorf("%s %s, %s: %s", host, name, w.name, got)
				}
			}
		}
	}
}

func TestClaudeCode09UnknownEvents(t *testing.T) {
	for _, host := range hosts {
		for _, event := range []string{"PreCompact", "Stopp", "stop", "STOP", "\x00", strings.Repeat("E", 1<<16)} {
			payload, err := json.Marshal(map[string]any{"hook_event_name": event, "session_id": "s"})
			if err != nil {
				t.Fatal(err)
			}
			ev := decode(t, host, string(payload), Options{Event: event})
			if ev.Name != "" {
				t.Errorf("%s: %q is %s", host, event, ev.Name)
			}
			p, _ := Find(host)
			if got, want := string(p.Encode(ev, gate.Decision{Outcome: gate.Block, Reason: "r"}).Body), encode(t, host, "", gate.Decision{}); got != want {
				t.Errorf("%s: %q is answered %s, want %s", host, event, got, want)
			}
		}
	}
}

func TestClaudeCode09NoEventAtAll(t *testing.T) {
	for _, host := range hosts {
		p, _ := Find(host)
		_, err := p.Decode([]byte(`{"sessionId":"s"}`), Options{})
		if gate.CodeOf(err) != gate.CodeValidation || !strings.Contains(err.Error(), "event=") {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestClaudeCode09PayloadsNameBeatsTheURLs(t *testing.T) {
	if ev := decode(t, "claude-code", `{"hook_event_name":"Stop"}`, Options{Event: "PreToolUse"}); ev.Name != gate.Stop {
		t.Errorf("is %s", ev.Name)
	}
}

// Types that are not what they should be are no reason to lose the event.
func TestClaudeCode09WrongTypes(t *testing.T) {
	ev := decode(t, "claude-code", `{"hook_event_name":"Stop","session_id":42,"cwd":null,"stop_hook_active":"yes",
		"last_assistant_message":{"text":"x"},"transcript_path":[]}`, Options{})
	if ev.Session != "42" || ev.FinalOutput != `{"text":"x"}` || ev.ClaimedActive || ev.Cwd != "" {
		t.Errorf("%+v", ev)
	}
}

func TestClaudeCode10NewestAnswer(t *testing.T) {
	ev := decode(t, "gemini-cli", `{"hook_event_name":"AfterAgent","session_id":"s","prompt_response":"A1\nA2"}`, Options{})
	if ev.FinalOutput != "A1\nA2" || !ev.AnswersJoined {
		t.Errorf("gemini-cli: %+v, want the gate to know that its answers are joined", ev)
	}
	ev = decode(t, "codex", `{"hook_event_name":"Stop","session_id":"s","last_assistant_message":"A2"}`, Options{})
	if ev.AnswersJoined {
		t.Error("codex sends the newest answer alone")
	}
}

func TestClaudeCode10AnswerSought(t *testing.T) {
	const path = "/s/events.jsonl"
	moment := time.UnixMilli(1796041575777).UTC()
	for _, c := range []struct {
		name, protocol, payload string
		opt                     Options
		want                    Sought
		sought                  bool
	}{
		{"copilot camelCase", "copilot", `{"timestamp":1796041575777,"transcriptPath":"` + path + `"}`, Options{Event: "agentStop"}, Sought{Path: path, Since: moment, Within: time.Second}, true},
		{"copilot PascalCase", "copilot", `{"hook_event_name":"Stop","timestamp":"2026-11-30T12:26:15.777Z","transcript_path":"` + path + `"}`, Options{}, Sought{Path: path, Since: moment, Within: time.Second}, true},
		{"copilot, finer than milliseconds", "copilot", `{"hook_event_name":"Stop","timestamp":"2026-11-30T14:26:15.777999+02:00","transcript_path":"` + path + `"}`, Options{}, Sought{Path: path, Since: moment, Within: time.Second}, true},
		{"copilot without a usable moment", "copilot", `{"timestamp":{},"transcriptPath":"` + path + `"}`, Options{Event: "agentStop"}, Sought{Path: path, Since: time.Time{}, Within: time.Second}, true},
		{"copilot without a file: unknown", "copilot", `{"timestamp":1}`, Options{Event: "agentStop"}, Sought{}, true},
		{"copilot sub-agent has its text", "copilot", `{"response":"","transcriptPath":"` + path + `"}`, Options{Event: "subagentStop"}, Sought{}, false},
		{"ax-code shows it nowhere", "ax-code", `{}`, Options{Event: "Stop"}, Sought{}, true},
		{"an old claude-code", "claude-code", `{"hook_event_name":"Stop","transcript_path":"` + path + `"}`, Options{}, Sought{Path: path}, true},
		{"said to be empty", "claude-code", `{"hook_event_name":"Stop","last_assistant_message":"","transcript_path":"` + path + `"}`, Options{}, Sought{}, false},
		{"said to be null", "codex", `{"hook_event_name":"Stop","last_assistant_message":null,"transcript_path":"` + path + `"}`, Options{}, Sought{}, false},
		{"there", "codex", `{"hook_event_name":"Stop","last_assistant_message":"x"}`, Options{}, Sought{}, false},
		{"no stop", "copilot", `{"transcriptPath":"` + path + `"}`, Options{Event: "preToolUse"}, Sought{}, false},
	} {
		got, sought := AnswerSought(decode(t, c.protocol, c.payload, c.opt))
		if sought != c.sought || got != c.want {
			t.Errorf("%s: %+v %v, want %+v %v", c.name, got, sought, c.want, c.sought)
		}
	}
}

func TestClaudeCode11Background(t *testing.T) {
	ev := decode(t, "claude-code", `{"hook_event_name":"Stop","background_tasks":[{"id":"a","status":"running"},{"id":"b","status":"completed"},7,{"id":"c"}]}`, Options{})
	var ids []string
	for _, task := range ev.Background {
		var o struct{ ID string }
		if err := json.Unmarshal(task, &o); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, o.ID)
	}
	if diff := cmp.Diff([]string{"a", "c"}, ids); diff != "" {
		t.Error(diff)
	}
	for status, want := range map[string]int{"completed": 0, "failed": 0, "cancelled": 0, "killed": 0, "stopped": 0, "running": 1, "pending": 1, "": 1} {
		ev := decode(t, "claude-code", `{"hook_event_name":"Stop","background_tasks":[{"id":"a","status":"`+status+`"}]}`, Options{})
		if len(ev.Background) != want {
			t.Errorf("status %q: %d tasks run, want %d", status, len(ev.Background), want)
		}
	}
	self := `{"hook_event_name":"SubagentStop","agent_id":"sub-1","background_tasks":[{"id":"sub-1","status":"running"}]}`
	if got := decode(t, "qwen-code", self, Options{}).Background; got != nil {
		t.Errorf("a sub-agent that stops waits for itself: %s", got)
	}
	if got := decode(t, "claude-code", `{"hook_event_name":"Stop","background_tasks":"?"}`, Options{}).Background; got != nil {
		t.Errorf("%s", got)
	}
}

// A sub-agent's stop is about its own conversation and its own count; inside
// one, nothing is said by a person.
func TestClaudeCode12SubAgents(t *testing.T) {
	const parent = "/p/s1.jsonl"
	for _, host := range []string{"claude-code", "codex", "qwen-code"} {
		ev := decode(t, host, `{"hook_event_name":"SubagentStop","session_id":"s1","transcript_path":"`+parent+`","agent_transcript_path":"/p/own.jsonl",
			"agent_id":"a1","agent_type":"reviewer","last_assistant_message":"x"}`, Options{})
		if ev.Name != gate.SubagentStop || ev.SubAgent != "a1" || ev.AgentType != "reviewer" || ev.TranscriptPath != "/p/own.jsonl" || ev.FinalOutput != "x" {
			t.Errorf("%s: %+v", host, ev)
		}
		ev = decode(t, host, `{"hook_event_name":"UserPromptSubmit","agent_id":"a1","prompt":"p","submitted_prompt":"p"}`, Options{})
		if ev.ByPerson || ev.SubAgent != "a1" {
			t.Errorf("%s: a sub-agent's prompt counts as a person's: %+v", host, ev)
		}
	}
}

func TestClaudeCode12FailedTools(t *testing.T) {
	for _, c := range []struct {
		name, host, payload string
		opt                 Options
		succeeded           bool
		result              string
	}{
		{"PostToolUseFailure", "claude-code", `{"hook_event_name":"PostToolUseFailure","error":"Exit code 3\noops"}`, Options{}, false, "Exit code 3\noops"},
		{"an error in the response", "gemini-cli", `{"hook_event_name":"AfterTool","tool_response":{"llmContent":"x","error":{"message":"no such file"}}}`, Options{}, false, "x"},
		{"an error beside no response", "claude-code", `{"hook_event_name":"PostToolUse","error":"gone"}`, Options{}, false, "gone"},
		{"an empty error", "gemini-cli", `{"hook_event_name":"AfterTool","tool_response":{"llmContent":"x","error":""}}`, Options{}, true, "x"},
		{"an MCP error", "claude-code", `{"hook_event_name":"PostToolUse","tool_response":{"isError":true,"content":[{"type":"text","text":"x"}]}}`, Options{}, false, "x"},
		{"copilot success", "copilot", `{"toolResult":{"resultType":"success","textResultForLlm":"ok"}}`, Options{Event: "postToolUse"}, true, "ok"},
		{"copilot failure", "copilot", `{"hook_event_name":"PostToolUse","tool_result":{"result_type":"failure","text_result_for_llm":"bad"}}`, Options{}, false, "bad"},
		{"the text's own word does not count", "codex", `{"hook_event_name":"PostToolUse","tool_response":"Exit Code: 3\nerror"}`, Options{}, true, "Exit Code: 3\nerror"},
		{"antigravity", "antigravity", `{"tool_call":{"name":"code_execution"},"error":"boom"}`, Options{Event: "post_tool_execution"}, false, "boom"},
		{"antigravity without", "antigravity", `{"tool_call":{"name":"code_execution"}}`, Options{Event: "post_tool_execution"}, true, ""},
	} {
		ev := decode(t, c.host, c.payload, c.opt)
		if ev.ToolSucceeded != c.succeeded || ev.ToolResult != c.result {
			t.Errorf("%s: %v %q, want %v %q", c.name, ev.ToolSucceeded, ev.ToolResult, c.succeeded, c.result)
		}
	}
}

func TestClaudeCode13Session(t *testing.T) {
	for _, c := range []struct{ host, payload, event string }{
		{"claude-code", `{"hook_event_name":"Stop","session_id":"s"}`, ""},
		{"codex", `{"hook_event_name":"Stop","session_id":"s"}`, ""},
		{"gemini-cli", `{"hook_event_name":"AfterAgent","session_id":"s"}`, ""},
		{"qwen-code", `{"hook_event_name":"Stop","session_id":"s"}`, ""},
		{"copilot", `{"sessionId":"s"}`, "agentStop"},
		{"copilot", `{"hook_event_name":"Stop","session_id":"s"}`, ""},
		{"antigravity", `{"environment_id":"s"}`, "pre_tool_execution"},
	} {
		if ev := decode(t, c.host, c.payload, Options{Event: c.event}); ev.Session != "s" || ev.Agent != gate.DefaultAgent {
			t.Errorf("%s: session %q, agent %q", c.host, ev.Session, ev.Agent)
		}
	}
}

// DESIGN §9, "What resets the counts": which prompts are a person's.
func TestPromptsByAPerson(t *testing.T) {
	for _, c := range []struct {
		name, host, payload string
		opt                 Options
		event               gate.EventName
		byPerson            bool
	}{
		{"claude-code", "claude-code", `{"hook_event_name":"UserPromptSubmit","prompt":"hi"}`, Options{}, gate.UserPromptSubmit, true},
		{"a task's end", "claude-code", `{"hook_event_name":"UserPromptSubmit","prompt":"<task-notification>\nx"}`, Options{}, gate.UserPromptSubmit, false},
		{"only talked about", "claude-code", `{"hook_event_name":"UserPromptSubmit","prompt":"what is <task-notification>?"}`, Options{}, gate.UserPromptSubmit, true},
		{"codex", "codex", `{"hook_event_name":"UserPromptSubmit","prompt":"hi"}`, Options{}, gate.UserPromptSubmit, true},
		{"gemini-cli", "gemini-cli", `{"hook_event_name":"BeforeAgent","prompt":"hi"}`, Options{}, gate.UserPromptSubmit, true},
		{"copilot", "copilot", `{"prompt":"hi"}`, Options{Event: "userPromptSubmitted"}, gate.UserPromptSubmit, true},
		{"qwen-code", "qwen-code", `{"hook_event_name":"UserPromptSubmit","prompt":"hi","submitted_prompt":"hi"}`, Options{}, gate.UserPromptSubmit, true},
		{"qwen-code after tools", "qwen-code", `{"hook_event_name":"UserPromptSubmit","prompt":""}`, Options{}, "", false},
		{"qwen-code with a reason", "qwen-code", `{"hook_event_name":"UserPromptSubmit","prompt":"End with 'Task complete.'"}`, Options{}, "", false},
		{"ax-code", "ax-code", `{"prompt":"hi"}`, Options{Event: "UserPromptSubmit"}, gate.UserPromptSubmit, true},
	} {
		if ev := decode(t, c.host, c.payload, c.opt); ev.Name != c.event || ev.ByPerson != c.byPerson {
			t.Errorf("%s: %q by a person %v", c.name, ev.Name, ev.ByPerson)
		}
	}
	// Only claude-code's prompt_id marks a new prompt on a Stop.
	stop := `{"hook_event_name":"Stop","prompt_id":"p1","turn_id":"t1"}`
	for host, want := range map[string]string{"claude-code": "p1", "codex": "", "qwen-code": ""} {
		if ev := decode(t, host, stop, Options{}); ev.PromptID != want {
			t.Errorf("%s: prompt %q, want %q", host, ev.PromptID, want)
		}
	}
}

// A reason that comes back as the next prompt is known again only if it was
// sent as it is.
func TestReasonIsSentAsItIs(t *testing.T) {
	const reason = "End with <b>\"Task complete.\"</b> & nothing else.\n\nThen stop."
	for _, host := range []string{"claude-code", "codex", "gemini-cli", "qwen-code", "copilot"} {
		got := texts(t, encode(t, host, gate.Stop, gate.Decision{Outcome: gate.Block, Reason: reason, AdditionalContext: "C"}))["reason"]
		if got != reason {
			t.Errorf("%s: %q", host, got)
		}
	}
}

func TestAntigravity10Payload(t *testing.T) {
	ev := decode(t, "antigravity", `{"tool_call":{"name":"write_file","args":{"path":"a"}},"environment_id":"e","hook_event_name":"post_tool_execution"}`,
		Options{Event: "pre_tool_execution"})
	if ev.Name != gate.PreToolUse || ev.ToolName != "write_file" || !slices.Equal(ev.ToolAliases, []string{"Write"}) || string(ev.ToolInput) != `{"path":"a"}` || ev.Session != "e" {
		t.Errorf("%+v", ev)
	}
	if ev := decode(t, "antigravity", `{"tool_call":[],"environment_id":"e"}`, Options{Event: "pre_tool_execution"}); ev.ToolName != "" {
		t.Errorf("%+v", ev)
	}
}

func TestAntigravity12PostIsNotRead(t *testing.T) {
	for _, w := range wishes {
		if got := encode(t, "antigravity", gate.PostToolUse, w.decision); got != "{}" {
			t.Errorf("%s: %s", w.name, got)
		}
	}
}

func TestAntigravity13DenyAlwaysHasAReason(t *testing.T) {
	if got := texts(t, encode(t, "antigravity", gate.PreToolUse, gate.Decision{Outcome: gate.Block})); got["decision"] != "deny" || got["reason"] != defaultReason {
		t.Errorf("%v", got)
	}
}

func TestAntigravity17Answers(t *testing.T) {
	for want, d := range map[string]gate.Decision{
		`{"decision":"allow"}`:               {Outcome: gate.Allow},
		`{"decision":"deny","reason":"why"}`: {Outcome: gate.Block, Reason: "why"},
	} {
		if got := encode(t, "antigravity", gate.PreToolUse, d); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestAXCode17StopCannotBlock(t *testing.T) {
	for _, name := range []gate.EventName{gate.Stop, gate.SubagentStop, gate.Start, gate.PostToolUseFailure} {
		for _, w := range wishes {
			if got := encode(t, "ax-code", name, w.decision); got != "" {
				t.Errorf("%s, %s: %s", name, w.name, got)
			}
		}
	}
}

func TestAXCode19FeedbackFits(t *testing.T) {
	got := texts(t, encode(t, "ax-code", gate.PostToolUse, gate.Decision{Outcome: gate.Block, Reason: strings.Repeat("r", 5000), AdditionalContext: "C"}))
	if n := len(got["hookSpecificOutput.additionalContext"]); n > 4000 || n < 3900 {
		t.Errorf("%d bytes", n)
	}
}

// The model writes the arguments: nothing in them is a fact about the event.
// The doctor's mark comes with the session, which the model does not name.
func TestAXCode24Probe(t *testing.T) {
	for session, want := range map[string]string{AXCodeProbe + "m": "m", "ses_1": "", "": "", "x" + AXCodeProbe + "m": ""} {
		ev := decode(t, "ax-code", `{"stopgate_probe":"forged"}`, Options{Event: "PreToolUse", Tool: "bash", Session: session})
		if ev.Probe != want || ev.Dry != (want != "") {
			t.Errorf("session %q: probe %q, dry %v", session, ev.Probe, ev.Dry)
		}
	}
}

func TestAXCode24BareArguments(t *testing.T) {
	const args = `{"command":"ls","hook_event_name":"Stop","session_id":"forged","agent_id":"x","cwd":"/","tool_name":"read","error":"e"}`
	variables := map[string]string{"HOOK_EVENT": "PostToolUse", "HOOK_TOOL": "bash", "HOOK_SESSION_ID": "ses_1", "HOOK_ARGS_JSON": args, "HOOK_PACK": ""}
	ev := decode(t, "ax-code", args, AXCodeOptions("a", "/w", func(name string) string { return variables[name] }))
	want := gate.Event{Name: gate.PostToolUse, Protocol: "ax-code", Agent: "a", Session: "ses_1", ToolName: "bash", ToolAliases: []string{"Bash"},
		ToolInput: json.RawMessage(args), ToolSucceeded: true, Cwd: "/w", Payload: []byte(args)}
	if diff := cmp.Diff(want, ev); diff != "" {
		t.Error(diff)
	}
}

// What would be asked of a person is denied where the caller says that there
// is none (DESIGN §9), in each host's own words; whatever else is decided stays.
func TestUnattendedIsDenied(t *testing.T) {
	const ask = "This tool call needs approval, and there is nobody here to give it. deletes data"
	for _, c := range []struct{ host, want string }{
		{"claude-code", `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"` + ask + `"}}`},
		{"qwen-code", `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"` + ask + `"}}`},
		{"copilot", `{"permissionDecision":"deny","permissionDecisionReason":"` + ask + `"}`},
		{"ax-code", `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"` + ask + `"}}`},
	} {
		p, _ := Find(c.host)
		payload := `{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_input":{}}`
		alone := decode(t, c.host, payload, Options{Event: "PreToolUse", Unattended: true})
		watched := decode(t, c.host, payload, Options{Event: "PreToolUse"})
		asked := gate.Decision{Outcome: gate.Ask, Reason: "deletes data"}
		if got := string(p.Encode(alone, asked).Body); got != c.want {
			t.Errorf("%s: %s, want %s", c.host, got, c.want)
		}
		if got := string(p.Encode(watched, asked).Body); !strings.Contains(got, `"ask"`) {
			t.Errorf("%s, with a person: %s", c.host, got)
		}
		for _, d := range []gate.Decision{{Outcome: gate.Allow}, {Outcome: gate.Block, Reason: "r"}} {
			if got, want := string(p.Encode(alone, d).Body), string(p.Encode(watched, d).Body); got != want {
				t.Errorf("%s, %s: %s, want %s", c.host, d.Outcome, got, want)
			}
		}
	}
	native := decode(t, gate.Native, `{"hook_event_name":"PreToolUse","tool_name":"Bash"}`, Options{Unattended: true})
	p, _ := Find(gate.Native)
	if got := string(p.Encode(native, gate.Decision{Outcome: gate.Ask, Reason: "deletes data"}).Body); !strings.Contains(got, `"decision":"block"`) || !strings.Contains(got, ask) {
		t.Errorf("native: %s", got)
	}
}
