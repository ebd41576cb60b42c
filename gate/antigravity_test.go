package gate

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sandboxed makes hooks of the agent "a" that follow antigravity's rules.
func sandboxed(t *testing.T, hooks ...Hook) *Spec {
	t.Helper()
	for i := range hooks {
		h := &hooks[i]
		h.Level, h.Dialect, h.Timeout, h.FailMode = CustomLevel, Antigravity, DefaultTimeout, FailAllow
		if h.Type == "" {
			h.Type = CommandHook
		}
		if h.Event == "" {
			h.Event = PreToolUse
		}
		if h.Matcher.String() == "" {
			h.Matcher = matcher(t, "*")
		}
	}
	return &Spec{Kind: Attached(Antigravity), Name: "a", Hooks: hooks}
}

func matcher(t *testing.T, pattern string) Matcher {
	t.Helper()
	m, err := CompileMatcher(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// call is an event of an agent of the Gemini API.
func call(event EventName, tool string) Event {
	return Event{Name: event, Protocol: "antigravity", Agent: "a", Session: "env-1", ToolName: tool, ToolSucceeded: true,
		ToolInput: json.RawMessage(`{"path":"/workspace/a"}`)}
}

func asked(d Decision) (names []string) {
	for _, v := range d.Hooks {
		names = append(names, v.Name)
	}
	return names
}

func TestAntigravity05WholeNameMatches(t *testing.T) {
	for pattern, want := range map[string][]string{
		"*":                    AntigravityTools,
		".*":                   AntigravityTools,
		"code_execution":       {"code_execution"},
		"read_file|write_file": {"read_file", "write_file"},
		".*_file":              {"read_file", "write_file", "delete_file"},
		"file":                 nil,
		"Read_file":            nil,
	} {
		t.Run(pattern, func(t *testing.T) {
			g := newGate(newMemory(), answers{}, sandboxed(t, Hook{Name: "h", Matcher: matcher(t, pattern)}))
			var got []string
			for _, tool := range AntigravityTools {
				if len(decide(t, g, call(PreToolUse, tool)).Hooks) == 1 {
					got = append(got, tool)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("tools (-want +got)\n%s", diff)
			}
		})
	}
}

func TestAntigravity09EveryHandlerRunsInTurn(t *testing.T) {
	var order []string
	running := 0
	say := func(v Verdict) func(Input) Verdict {
		return func(in Input) Verdict {
			if running++; running != 1 {
				t.Errorf("%s runs beside another", in.Hook.Name)
			}
			order = append(order, in.Hook.Name)
			running--
			return v
		}
	}
	g := newGate(newMemory(), answers{
		"one": say(Verdict{Outcome: Allow}), "two": say(Verdict{Outcome: Block, Reason: "first deny"}),
		"three": say(Verdict{Outcome: Block, Reason: "second deny"}), "four": say(Verdict{Outcome: Allow}),
	}, sandboxed(t, Hook{Name: "one"}, Hook{Name: "two"}, Hook{Name: "three"}, Hook{Name: "four"}))
	d := decide(t, g, call(PreToolUse, "read_file"))
	if d.Outcome != Block || d.Reason != "first deny" {
		t.Errorf("%s %q, want the first deny", d.Outcome, d.Reason)
	}
	if want := []string{"one", "two", "three", "four"}; !slices.Equal(order, want) || !slices.Equal(asked(d), want) {
		t.Errorf("ran %q, answered %q, want %q", order, asked(d), want)
	}
}

func TestAntigravity10Payload(t *testing.T) {
	var got string
	g := newGate(newMemory(), answers{"pre": see(&got), "post": see(&got)}, sandboxed(t, Hook{Name: "pre"}, Hook{Name: "post", Event: PostToolUse}))
	failed := func(ev Event) Event { ev.ToolSucceeded = false; return ev }
	said := func(ev Event, text string) Event { ev.ToolResult = text; return ev }
	as := func(ev Event, protocol, tool string, aliases ...string) Event {
		ev.Protocol, ev.ToolName, ev.ToolAliases = protocol, tool, aliases
		return ev
	}
	pre, post := call(PreToolUse, "read_file"), call(PostToolUse, "read_file")
	bare := pre
	bare.ToolInput, bare.Session = nil, ""
	const args = `"args":{"path":"/workspace/a"}},"environment_id":"env-1"`
	for _, c := range []struct {
		name string
		ev   Event
		want string
	}{
		{"before a tool", pre, `{"tool_call":{"name":"read_file",` + args + `}`},
		{"after it, without a key error", said(post, "the text"), `{"tool_call":{"name":"read_file",` + args + `}`},
		{"after one that failed", said(failed(post), "no such <file>"), `{"tool_call":{"name":"read_file",` + args + `,"error":"no such <file>"}`},
		{"after one that failed without a word", failed(post), `{"tool_call":{"name":"read_file",` + args + `,"error":"The tool call failed."}`},
		{"before a tool, of which no host says that it succeeded", failed(pre), `{"tool_call":{"name":"read_file",` + args + `}`},
		{"no arguments, no environment", bare, `{"tool_call":{"name":"read_file","args":{}},"environment_id":""}`},
		{"another host's tool, by the name it has here", as(pre, "gemini-cli", "run_shell_command", "Bash"), `{"tool_call":{"name":"code_execution",` + args + `}`},
		{"another host's failed call", said(failed(as(call(PostToolUseFailure, ""), "claude-code", "Edit")), "denied"), `{"tool_call":{"name":"write_file",` + args + `,"error":"denied"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got = ""
			decide(t, g, c.ev)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("payload (-want +got)\n%s", diff)
			}
		})
	}
}

func see(into *string) func(Input) Verdict {
	return func(in Input) Verdict { *into = string(in.Context); return Verdict{Outcome: Allow} }
}

func TestAntigravity11OnlyADenyBlocks(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       Outcome
		reason     string
		fault      string // what is wrong with an answer that is none
	}{
		{name: "deny", text: `{"decision":"deny","reason":"not this"}`, want: Block, reason: "not this"},
		{name: "deny, among unknown keys and white space", text: "\n {\"a\":[1],\"reason\":\"r\",\"decision\":\"deny\"}\n", want: Block, reason: "r"},
		{name: "deny, escaped", text: `{"decision":"d\u0065ny"}`, want: Block},
		{name: "deny, the reason is no text", text: `{"decision":"deny","reason":{"a":1}}`, want: Block},
		{name: "of a key given twice the last counts, as readers have it", text: `{"decision":"allow","decision":"deny"}`, want: Block},
		{name: "bytes that are not UTF-8", text: "{\"decision\":\"deny\",\"reason\":\"a\xffb\"}", want: Block, reason: "a\uFFFDb"},
		{name: "allow", text: `{"decision":"allow"}`, want: Allow},
		{name: "nothing", text: "", want: Allow},
		{name: "white space", text: " \n", want: Allow},
		{name: "plain text", text: "checked, all fine\n", want: Allow},
		{name: "JSON without a decision", text: `{"ok":false,"reason":"r"}`, want: Allow},
		{name: "a list", text: `[{"a":1}]`, want: Allow},
		{name: "null", text: `null`, want: Allow},
		{name: "a number", text: `2`, want: Allow},
		{name: "keys are exact", text: `{"Decision":"deny"}`, want: Allow},
		{name: "another system's word", text: `{"decision":"block","reason":"r"}`, fault: `decision is "block", want allow or deny`},
		{name: "another case", text: `{"decision":"DENY"}`, fault: `decision is "DENY"`},
		{name: "no text", text: `{"decision":null}`, fault: `decision is null`},
		{name: "broken JSON", text: `{"decision":"deny",}`, fault: "not one JSON object"},
		{name: "cut JSON", text: `{"decision":"deny"`, fault: "not one JSON object"},
		{name: "a line before the answer", text: "debug\n{\"decision\":\"deny\"}", fault: "not one JSON object"},
		{name: "two answers", text: "{\"decision\":\"allow\"}\n{\"decision\":\"deny\"}", fault: "not one JSON object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := ReadAntigravityAnswer(PreToolUse, []byte(c.text))
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Fatalf("%s, error %v, want %q", v.Outcome, err, c.fault)
				}
				return
			}
			if err != nil || v.Outcome != c.want || v.Reason != c.reason {
				t.Errorf("%s %q, error %v, want %s %q", v.Outcome, v.Reason, err, c.want, c.reason)
			}
		})
	}
	t.Run("a failure lets the call go on and is recorded", func(t *testing.T) {
		m := newMemory()
		g := newGate(m, answers{"h": fails}, sandboxed(t, Hook{Name: "h"}))
		d := decide(t, g, call(PreToolUse, "code_execution"))
		if d.Outcome != Allow || !d.Degraded || !d.Hooks[0].Has(FailedOpen) || d.Hooks[0].Failure.Code != Timeout {
			t.Errorf("%+v", d)
		}
		if len(m.records) != 1 || !m.records[0].Hooks[0].Has(FailedOpen) {
			t.Errorf("records: %+v", m.records)
		}
	})
}

func TestAntigravity12AfterAToolNothingIsRead(t *testing.T) {
	for _, text := range []string{`{"decision":"deny","reason":"r"}`, `{"decision":"block"}`, `{"decision":`, "deny", ""} {
		for _, event := range []EventName{PostToolUse, PostToolUseFailure} {
			if v, err := ReadAntigravityAnswer(event, []byte(text)); err != nil || v.Outcome != Allow || v.Reason != "" {
				t.Errorf("%s %q: %s %q, error %v", event, text, v.Outcome, v.Reason, err)
			}
		}
	}
}

func TestAntigravity13DenyWithoutAReason(t *testing.T) {
	g := newGate(newMemory(), answers{"h": block("  ")}, sandboxed(t, Hook{Name: "h"}))
	if d := decide(t, g, call(PreToolUse, "write_file")); d.Outcome != Block || d.Reason != "A hook blocked this tool call and gave no reason." {
		t.Errorf("%s %q, want a deny with the default reason", d.Outcome, d.Reason)
	}
}

func TestAntigravity14OtherToolsAreNotGated(t *testing.T) {
	g := newGate(newMemory(), answers{"h": block("no")}, sandboxed(t, Hook{Name: "h", Matcher: matcher(t, "*")}))
	named := func(protocol, tool string, aliases ...string) Event {
		ev := call(PreToolUse, tool)
		ev.Protocol, ev.ToolAliases = protocol, aliases
		return ev
	}
	for _, c := range []struct {
		name string
		ev   Event
		want int
	}{
		{"a function tool", named("antigravity", "get_weather"), 0},
		{"a tool of an MCP server", named("antigravity", "mcp__files__read_file"), 0},
		{"no tool", named("antigravity", ""), 0},
		{"another host's MCP tool", named("claude-code", "mcp__db__query"), 0},
		{"another host's tool that has none of ours", named("claude-code", "WebFetch"), 0},
		{"one of the five", named("antigravity", "delete_file"), 1},
		{"another host's shell", named("codex", "exec_command", "Bash"), 1},
		{"a native event's own name", named(Native, "Read"), 1},
		{"an event without a tool", Event{Name: Stop, Protocol: Native, Agent: "a", Session: "s"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := decide(t, g, c.ev); len(d.Hooks) != c.want {
				t.Errorf("%d hooks were asked, want %d", len(d.Hooks), c.want)
			}
		})
	}
}

// FuzzReadAntigravityAnswer: whatever a hook says, only a deny before a tool
// blocks.
func FuzzReadAntigravityAnswer(f *testing.F) {
	f.Add([]byte(`{"decision":"deny","reason":"r"}`), true)
	f.Add([]byte(`{"decision":"allow"}`), true)
	f.Add([]byte(`{"decision":`), true)
	f.Add([]byte("\xff\x00"), false)
	f.Fuzz(func(t *testing.T, text []byte, before bool) {
		event := PostToolUse
		if before {
			event = PreToolUse
		}
		v, err := ReadAntigravityAnswer(event, text)
		switch {
		case err != nil && !before:
			t.Fatalf("after a tool: %v", err)
		case err == nil && v.Outcome != Allow && v.Outcome != Block:
			t.Fatalf("outcome %q", v.Outcome)
		case v.Outcome == Block && (!before || !strings.Contains(string(text), "d") && !strings.Contains(string(text), `\u`)):
			t.Fatalf("%q blocks", text)
		}
	})
}
