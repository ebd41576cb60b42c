package wire

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"stopgate/gate"
)

// A string member means what package json says it does.
func TestStringMembers(t *testing.T) {
	for _, raw := range []string{`""`, `"plain"`, `"ünï 😀"`, `"a\nb"`, `"\ud83d\ude00 \/ \u0000"`, `"\ud83d alone"`, `"ends in \\"`, "\"not \xff UTF-8\"", "\"\x7f\"",
		`null`, `1`, `true`, `[]`, `{"a":"b"}`} {
		m, err := object([]byte(`{ "k" : ` + raw + ` }`))
		if err != nil {
			t.Fatal(raw, err)
		}
		var want string
		isText := json.Unmarshal([]byte(raw), &want) == nil && raw != "null"
		if got, ok := stringOf(m["k"]); ok != isText || got != want {
			t.Errorf("%s is %q, %t; want %q, %t", raw, got, ok, want, isText)
		}
	}
}

func TestAzure25NativeFields(t *testing.T) {
	body := `{"hook_event_name":"PostToolUse","agent_name":"a","session_id":"s","current_turn":3,"max_turns":9.0,
	"execution_summary":"/t/x","tool_name":"Bash","tool_input":{"command":"ls"},"tool_result":"ok","tool_succeeded":true,
	"final_output":"f","stop_hook_active":true,"stop_rejection_count":2,"transcript":"hello","cwd":"/w","prompt":"p",
	"prompt_id":"p1","agent_id":"sub","agent_type":"reviewer","labels":{"team":"web"},"added_by_a_host":{"x":[1]}}`
	got, err := DecodeNative([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	want := gate.Event{Name: gate.PostToolUse, Protocol: "native", Agent: "a", Session: "s", Turn: 3, MaxTurns: 9,
		TranscriptPath: "/t/x", ToolName: "Bash", ToolInput: json.RawMessage(`{"command":"ls"}`), ToolResult: "ok",
		ToolSucceeded: true, FinalOutput: "f", ClaimedActive: true, ClaimedRejections: 2, InlineTranscript: json.RawMessage(`"hello"`),
		Cwd: "/w", Prompt: "p", PromptID: "p1", SubAgent: "sub", AgentType: "reviewer", ByPerson: true, Labels: map[string]string{"team": "web"}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(gate.Event{}, "Payload")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if string(got.Payload) != body {
		t.Error("the payload is not kept as it came")
	}
}

func TestAzure26AbsentToolSucceededMeansTrue(t *testing.T) {
	for body, want := range map[string]bool{
		`{"hook_event_name":"PostToolUse","agent_name":"a","tool_name":"T"}`:                          true,
		`{"hook_event_name":"PostToolUse","agent_name":"a","tool_name":"T","tool_succeeded":null}`:    true,
		`{"hook_event_name":"PostToolUse","agent_name":"a","tool_name":"T","tool_succeeded":false}`:   false,
		`{"hook_event_name":"PostToolUseFailure","agent_name":"a","tool_name":"T"}`:                   false,
		`{"hook_event_name":"PostToolUse","agent_name":"a","tool_name":"T","tool_result":{"any":[]}}`: true,
	} {
		ev, err := DecodeNative([]byte(body))
		if err != nil || ev.ToolSucceeded != want {
			t.Errorf("%s: %v %v", body, ev.ToolSucceeded, err)
		}
	}
}

func TestNativeErrors(t *testing.T) {
	for _, c := range []struct {
		name, body string
		code       gate.Code
		text       string
	}{
		{"empty", ``, gate.CodeInvalidJSON, "body is empty, want a JSON object"},
		{"blank", "\ufeff \n", gate.CodeInvalidJSON, "body is empty"},
		{"cut off", `{"agent_name":"a`, gate.CodeInvalidJSON, "not valid JSON"},
		{"labels that are no texts", `{"hook_event_name":"Stop","agent_name":"a","labels":{"n":1}}`, gate.CodeValidation, `"labels": want an object whose members are strings`},
		{"a label that is long", `{"hook_event_name":"Stop","agent_name":"a","labels":{"n":"` + strings.Repeat("x", 513) + `"}}`, gate.CodeValidation, `"labels": want at most 64 members`},
		{"array", `[]`, gate.CodeInvalidJSON, "not a JSON object"},
		{"null", `null`, gate.CodeInvalidJSON, "not a JSON object"},
		{"trailing", `{} x`, gate.CodeInvalidJSON, "byte 3"},
		{"fault stdout-04: raw control character", "{\"a\":\"x\ny\"}", gate.CodeInvalidJSON, "byte 7"},
		{"unknown event", `{"hook_event_name":"Stopp","agent_name":"a"}`, gate.CodeValidation, "Start, UserPromptSubmit; did you mean \"Stop\"?"},
		{"Claude Code's name of an event", `{"hook_event_name":"SessionStart","agent_name":"a"}`, gate.CodeValidation, "want one of Start, ; did you mean \"Start\"?"},
		{"Gemini CLI's", `{"hook_event_name":"AfterAgent","agent_name":"a"}`, gate.CodeValidation, "did you mean \"Stop\"?"},
		{"an event that no hook is about anywhere", `{"hook_event_name":"PreCompact","agent_name":"a"}`, gate.CodeValidation, "SubagentStop"},
		{"no event", `{"agent_name":"a"}`, gate.CodeValidation, "hook_event_name"},
		{"no agent", `{"hook_event_name":"Stop"}`, gate.CodeValidation, "agent_name"},
		{"no tool", `{"hook_event_name":"PreToolUse","agent_name":"a"}`, gate.CodeValidation, "tool_name"},
		{"wrong types, all of them", `{"hook_event_name":"Stop","agent_name":1,"current_turn":"2","tool_succeeded":"yes","transcript":{}}`,
			gate.CodeValidation, `"agent_name": want a string; "transcript"`},
		{"negative count", `{"hook_event_name":"Stop","agent_name":"a","stop_rejection_count":-1}`, gate.CodeValidation, "not negative"},
		{"half a turn", `{"hook_event_name":"Stop","agent_name":"a","current_turn":1.5}`, gate.CodeValidation, "whole number"},
		{"long session", `{"hook_event_name":"Stop","agent_name":"a","session_id":"` + strings.Repeat("s", 513) + `"}`, gate.CodeValidation, "512 bytes"},
		{"long tool name", `{"hook_event_name":"PreToolUse","agent_name":"a","tool_name":"` + strings.Repeat("t", 513) + `"}`, gate.CodeValidation, "512 bytes"},
		{"session with NUL", `{"hook_event_name":"Stop","agent_name":"a","session_id":"a\u0000b"}`, gate.CodeValidation, "without NUL"},
		{"huge turn", `{"hook_event_name":"Stop","agent_name":"a","current_turn":1e300}`, gate.CodeValidation, "whole number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := DecodeNative([]byte(c.body))
			if gate.CodeOf(err) != c.code {
				t.Fatalf("%v, want %s", err, c.code)
			}
			want := strings.Split(c.text, "; ")
			for _, w := range want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v, want it to say %s", err, w)
				}
			}
		})
	}
	_, err := DecodeNative([]byte("{\n  \"a\": tru\n}"))
	if e, ok := errors.AsType[*gate.Error](err); !ok || e.Details[0].Line != 2 || e.Details[0].Column != 11 {
		t.Errorf("%v, want position 2:11", err)
	}
}

// fault encoding-05: bytes that are not UTF-8 are replaced, never fatal.
func TestNativeReplacesBadBytes(t *testing.T) {
	ev, err := DecodeNative([]byte("\xef\xbb\xbf{\"hook_event_name\":\"Stop\",\"agent_name\":\"a\",\"final_output\":\"caf\xe9\"}"))
	if err != nil || ev.FinalOutput != "caf\uFFFD" {
		t.Errorf("%q %v", ev.FinalOutput, err)
	}
}

func TestNativeAnswerShape(t *testing.T) {
	code := 2
	b := EncodeNative(gate.Decision{EvaluationID: "e", Outcome: gate.Allow, Messages: []gate.Message{},
		Hooks: []gate.Verdict{{Name: "h", Notes: []gate.Note{}, Evidence: &gate.Evidence{ExitCode: &code}}}})
	want := `{"evaluation_id":"e","decision":"allow","reason":"","additional_context":"","messages":[],"forced":false,` +
		`"degraded":false,"stop_hook_active":false,"stop_rejection_count":0,"hooks":[{"name":"h","level":"","type":"","outcome":"",` +
		`"reason":"","notes":[],"fail_mode":"","additional_context":"","injected":false,"duration_ms":0}]}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func FuzzDecodeNative(f *testing.F) {
	f.Add([]byte(`{"hook_event_name":"Stop","agent_name":"a","transcript":[{"role":"user","content":"x"}]}`))
	f.Add([]byte(`{"hook_event_name":"PostToolUse","agent_name":"a","tool_name":"t","tool_input":[1],"tool_result":null}`))
	f.Add([]byte("{\"a\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		ev, err := DecodeNative(body)
		if err != nil {
			if c := gate.CodeOf(err); c != gate.CodeInvalidJSON && c != gate.CodeValidation {
				t.Errorf("%v has code %s", err, c)
			}
			return
		}
		if !ev.Name.Known() || ev.Agent == "" || ev.Turn < 0 || ev.ClaimedRejections < 0 {
			t.Errorf("accepted %+v", ev)
		}
	})
}

// eventsOf8KB are events whose result has no escapes, and many.
func eventsOf8KB() map[string][]byte {
	events := map[string][]byte{}
	for name, words := range map[string]string{"plain": "func main runs the server and waits for it. ", "escaped": `func main runs the server\n and waits \"for it\". `} {
		events[name] = []byte(`{"hook_event_name":"PostToolUse","agent_name":"a","session_id":"s","current_turn":7,"max_turns":50,"tool_name":"ReadFile","tool_input":{"path":"src/main.go"},"tool_succeeded":true,"tool_result":"` +
			strings.Repeat(words, 8000/len(words)) + `"}`)
	}
	return events
}

// BenchmarkDecodeNative reads an event of 8 KB, its result without escapes and with.
func BenchmarkDecodeNative(b *testing.B) {
	for name, body := range eventsOf8KB() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeNative(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDecodeBesideJSON reads the same events and has encoding/json read them
// into a map, in turns. "of-json" is the speed as a share of that, each in the
// quickest of its turns, which are short enough that some are not interrupted.
func BenchmarkDecodeBesideJSON(b *testing.B) {
	for name, body := range eventsOf8KB() {
		b.Run(name, func(b *testing.B) {
			ours, theirs := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
			for b.Loop() {
				ours = min(ours, turnOf(b, func() error { _, err := DecodeNative(body); return err }))
				theirs = min(theirs, turnOf(b, func() error { return json.Unmarshal(body, new(map[string]any)) }))
			}
			b.ReportMetric(theirs.Seconds()/ours.Seconds(), "of-json")
		})
	}
}

// turnOf is how long twenty calls take.
func turnOf(b *testing.B, call func() error) time.Duration {
	began := time.Now()
	for range 20 {
		if err := call(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began)
}
