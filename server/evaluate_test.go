package server

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

const stop = `{"hook_event_name":"Stop","agent_name":"marker","session_id":"s1","current_turn":1,"max_turns":9,"final_output":"done"}`

// needsMarker rejects an answer that does not end as asked.
func needsMarker(_ context.Context, in gate.Input) gate.Verdict {
	if strings.HasSuffix(in.Event.FinalOutput, "Task complete.") {
		return gate.Verdict{Outcome: gate.Allow}
	}
	return gate.Verdict{Outcome: gate.Block, Reason: "End with 'Task complete.'", Evidence: &gate.Evidence{Stderr: "secret evidence"}}
}

func TestAzure33StopLoopOverHTTP(t *testing.T) {
	w := newWorld(t)
	w.judge = needsMarker
	w.agent(t, "marker", gate.Stop, "ends")

	first := w.must(t, 200, "POST", "/v1/evaluate", stop)
	if strings.Contains(first.Body.String(), "secret evidence") {
		t.Error("the answer has the evidence, which belongs into the record")
	}
	got := fields(t, first)
	want := map[string]any{"decision": "block", "reason": "End with 'Task complete.'", "stop_hook_active": true, "stop_rejection_count": 1.0,
		"messages": []any{map[string]any{"role": "user", "content": "End with 'Task complete.'"}}}
	for k := range want {
		if d := cmp.Diff(want[k], got[k]); d != "" {
			t.Errorf("first Stop, %s (-want +got):\n%s", k, d)
		}
	}
	second := fields(t, w.must(t, 200, "POST", "/v1/evaluate", stop))
	if second["stop_rejection_count"] != 2.0 {
		t.Errorf("second Stop: stop_rejection_count %v, want 2", second["stop_rejection_count"])
	}
	third := fields(t, w.must(t, 200, "POST", "/v1/evaluate", strings.Replace(stop, `"done"`, `"Task complete."`, 1)))
	if third["decision"] != "allow" || third["stop_rejection_count"] != 0.0 || third["stop_hook_active"] != false {
		t.Errorf("third Stop: %v", third)
	}
}

func TestAzure25ContextNames(t *testing.T) {
	w := newWorld(t)
	var context25 []byte
	w.judge = func(_ context.Context, in gate.Input) gate.Verdict {
		context25 = in.Context
		return gate.Verdict{Outcome: gate.Allow}
	}
	w.agent(t, "marker", gate.Stop, "ends")
	w.agent(t, "auditor", gate.PostToolUse, "audit")
	for name, c := range map[string]struct{ body, want string }{
		"Stop": {stop, `{"hook_event_name":"Stop","agent_name":"marker","current_turn":1,"max_turns":9,"execution_summary":"",
			"session_id":"s1","hook_name":"ends","final_output":"done","stop_hook_active":false,"stop_rejection_count":0}`},
		"PostToolUse": {`{"hook_event_name":"PostToolUse","agent_name":"auditor","session_id":"s1","tool_name":"Bash","tool_input":{"command":"ls"},"tool_result":"ok"}`,
			`{"hook_event_name":"PostToolUse","agent_name":"auditor","current_turn":0,"max_turns":0,"execution_summary":"",
			"session_id":"s1","hook_name":"audit","tool_name":"Bash","tool_input":{"command":"ls"},"tool_result":"ok","tool_succeeded":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			w.must(t, 200, "POST", "/v1/evaluate", c.body)
			var got, want any
			if err := json.Unmarshal(context25, &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("context (-want +got):\n%s", d)
			}
		})
	}
}

// queryHost shows what it was told beside the payload.
type queryHost struct{ told *HostQuery }

func (h queryHost) Decode(payload []byte, q HostQuery) (gate.Event, error) {
	*h.told = q
	return gate.Event{Name: gate.Stop, Agent: gate.DefaultAgent}, nil
}

func (queryHost) Encode(gate.Event, gate.Decision) ([]byte, string) { return nil, typeJSON }

func TestHostIsToldWhatTheRequestSays(t *testing.T) {
	var told HostQuery
	w := newWorld(t, func(o *Options) {
		o.Protocol = func(string) (HostProtocol, bool) { return queryHost{told: &told}, true }
	})
	for query, want := range map[string]HostQuery{
		"": {},
		"?agent=a&event=e&session=s&tool=t&cwd=/w&project=/p&transcript=u&stale=true&unattended=true": {Agent: "a", Event: "e", Session: "s", Tool: "t", Cwd: "/w", Project: "/p",
			Transcript: "u", Stale: true, Unattended: true},
		"?stale=false&unattended=false": {},
	} {
		want.UserAgent = "copilot/1.0.102 (linux)"
		w.must(t, 200, "POST", "/v1/hooks/plain"+query, "{}", "User-Agent: "+want.UserAgent)
		if d := cmp.Diff(want, told); d != "" {
			t.Errorf("%q (-want +got):\n%s", query, d)
		}
	}
}
